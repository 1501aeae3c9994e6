"""`decode_raw`: bytes to numbers, one record or many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from aiodata import Dataset, decode_raw
from aiodata.errors import DataError
from tests.programs import arr, assert_gives, assert_outcomes, assert_same, objects

NUMBERS = [np.dtype(code) for code in "efdbhilqBHILQFD"]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("little", [True, False])
def test_numbers_of_every_dtype_in_both_orders(dtype: np.dtype[Any], little: bool) -> None:
    values = np.array([0, 1, 2, 100], dtype)
    record = values.astype(dtype.newbyteorder("<" if little else ">")).tobytes()
    assert_same(decode_raw(record, dtype, little), values)
    assert_same(decode_raw([record, record], dtype, little), np.stack([values, values]))


def test_the_shape_of_the_records_comes_first() -> None:
    assert_same(decode_raw(b"\1\2", np.uint8), arr([1, 2], np.uint8))
    assert_same(decode_raw(np.array(b"\1\2", object), np.uint8), arr([1, 2], np.uint8))
    assert_same(decode_raw((b"\1", b"\2"), np.uint8), arr([[1], [2]], np.uint8))
    assert_same(decode_raw([[b"\1"], [b"\2"]], np.uint8), arr([[[1]], [[2]]], np.uint8))
    assert_same(decode_raw(objects(b"\1\0", b"\2\0").reshape(1, 2), "uint16"), arr([[[1], [2]]], np.uint16))


@pytest.mark.parametrize("empty", [[], (), np.zeros(0, object)])
def test_no_records(empty: Any) -> None:
    assert_same(decode_raw(empty, np.int32), np.zeros((0, 0), np.int32))
    assert_same(decode_raw(empty, np.int32, fixed_length=8), np.zeros((0, 2), np.int32))


def test_records_without_bytes() -> None:
    assert_same(decode_raw(b"", np.int32), np.zeros(0, np.int32))
    assert_same(decode_raw([b"", b""], np.int32), np.zeros((2, 0), np.int32))
    assert_same(decode_raw([b"", b""], np.int32, fixed_length=4), np.zeros((2, 1), np.int32))


def test_numpys_own_bytes_keep_the_zeros_at_their_end() -> None:
    assert_same(decode_raw(np.array([b"\1\0\0\0", b"\2"]), np.uint16), arr([[1, 0], [2, 0]], np.uint16))
    assert_same(decode_raw(np.array([[b"\1\0", b"\2\1"]])[:, ::-1], np.uint16), arr([[[258], [1]]], np.uint16))


def test_any_byte_but_zero_is_true() -> None:
    found = decode_raw(b"\0\1\2\xff", bool)
    assert_same(found, arr([False, True, True, True], bool))
    assert found.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_structured_dtypes() -> None:
    dtype = np.dtype([("x", np.float32), ("n", np.int16, (2,))])
    rows = np.array([(0.5, [1, 2]), (-1, [3, 4])], dtype)
    found = decode_raw([row.tobytes() for row in rows], dtype)
    assert found.dtype == dtype
    assert found.shape == (2, 1)
    assert_same(found[:, 0]["x"], rows["x"])
    assert_same(found[:, 0]["n"], rows["n"])


def test_the_array_is_writable_and_nobody_elses() -> None:
    record = bytearray(b"\1\2")
    for given_record in (record, bytes(record), memoryview(record), [bytes(record)]):
        found = decode_raw(given_record, np.uint8)
        found[...] = 9
        assert record == b"\1\2"


# A fixed length


@pytest.mark.parametrize(
    ("length", "expected"),
    [(2, [[1], [4], [0], [6]]), (4, [[1, 3], [4, 5], [0, 0], [6, 0]])],
)
def test_records_are_cut_off_or_filled_up(length: int, expected: Any) -> None:
    records = [b"\1\0\3\0\7", b"\4\0\5\0", b"", b"\6"]
    assert_same(decode_raw(records, np.uint16, fixed_length=length), arr(expected, np.uint16))


def test_one_record_is_filled_up() -> None:
    assert_same(decode_raw(b"\1", np.uint16, False, 4), arr([256, 0], np.uint16))


# What is refused


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (b"abc", "decode_raw: 3 bytes are no whole number of int16 of 2 bytes"),
        ([b"ab", b"abc"], "decode_raw: 3 bytes are no whole number of int16 of 2 bytes in row 1"),
        ([b"ab", b"abcd", b"a"], "decode_raw: 4 bytes in row 1 where the first record has 2"),
        (
            np.array([[b"ab"], [b"a"]], object),
            "decode_raw: 1 bytes are no whole number of int16 of 2 bytes in row (1, 0)",
        ),
    ],
)
def test_lengths_that_do_not_fit_name_the_row(records: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        decode_raw(records, np.int16)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("text", np.int16), TypeError, "input_bytes must be bytes"),
        ((None, np.int16), TypeError, "input_bytes must be bytes"),
        ((["ab"], np.int16), TypeError, "a record must be bytes, not str in row 0"),
        (([b"ab", None], np.int16), TypeError, "a record must be bytes, not NoneType in row 1"),
        (([b"ab", "ab"], np.int16, True, 2), TypeError, "a record must be bytes, not str in row 1"),
        ((np.zeros(2), np.int16), TypeError, "a record must be bytes, not float in row 0"),
        ((b"", object), TypeError, "out_type"),
        ((b"", bytes), TypeError, "out_type"),
        ((b"", "U3"), TypeError, "out_type"),
        ((b"", (np.int16, (2,))), TypeError, "out_type"),
        ((b"", "what"), TypeError, "what"),
        ((b"", np.dtype(np.int16).newbyteorder()), ValueError, "little_endian"),
        ((b"", np.int16, True, 3), ValueError, "fixed_length must be a multiple of the 2 bytes of int16, not 3"),
        ((b"", np.int16, True, 0), ValueError, "fixed_length must be at least 1"),
        ((b"", np.int16, True, -2), ValueError, "fixed_length must be at least 1"),
        ((b"", np.int16, True, 2.0), TypeError, "fixed_length must be an integer"),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        decode_raw(*arguments)


# In a pipeline, and against numpy


def test_maps_records_and_batches() -> None:
    ds = Dataset.from_generator(lambda: [b"\1\0", b"\2\0", b"\3"])
    expected = [arr([1], np.uint16), arr([2], np.uint16), DataError]
    assert_outcomes(ds.map(lambda record: decode_raw(record, np.uint16)), expected)
    assert_gives(ds.take(2).batch(2).map(lambda batch: decode_raw(batch, np.uint16)), [arr([[1], [2]], np.uint16)])


@given(
    st.sampled_from(NUMBERS).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    ),
    st.booleans(),
)
def test_gives_back_what_numpy_wrote(values: np.ndarray[Any, Any], little: bool) -> None:
    stored = values.astype(values.dtype.newbyteorder("<" if little else ">"))
    records = np.empty(values.shape[:-1], object)
    for place in np.ndindex(values.shape[:-1]):
        records[place] = stored[place].tobytes()
    width = values.shape[-1] if records.size else 0
    assert_same(decode_raw(records, values.dtype, little), values.reshape(*values.shape[:-1], width))
