"""`RawFeature`: values of bytes that are the numbers of an array."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import (
    Dataset,
    FixedLenFeature,
    RawFeature,
    decode_raw,
    encode_sequence_example,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from aiodata.errors import StructureError
from tests.programs import arr, assert_same, outcomes, to_list

pytest.importorskip("google.protobuf", reason="tf.train.Example needs protobuf")

from tests.formats.examples import example, parsed

DTYPES = [np.dtype(code) for code in "?bBhHiIqQefdFD"]
DTYPES += [np.dtype("M8[ns]"), np.dtype("m8[D]"), np.dtype([("a", np.uint8), ("b", np.int16)])]
COUNTS = [1, 15, 16, 40]
"""Batches that are read one by one, and by layout."""


def records_of(values: list[bytes]) -> list[bytes]:
    return [example(("x", "bytes", [value]), ("n", "int64", [5])) for value in values]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_is_what_decode_raw_gives(dtype: np.dtype[Any], count: int) -> None:
    random = np.random.default_rng(count)
    values = [random.bytes(6 * dtype.itemsize) for _ in range(count)]
    expected = decode_raw(values, dtype).reshape(count, 2, 3)
    found = parse_example(records_of(values), {"x": RawFeature([2, 3], dtype)})["x"]
    assert (found.dtype, found.shape) == (dtype, (count, 2, 3))
    assert found.tobytes() == expected.tobytes()
    single = parse_single_example(records_of(values)[-1], {"x": RawFeature([2, 3], dtype)})["x"]
    assert (single.dtype, single.shape, single.tobytes()) == (dtype, (2, 3), expected[-1].tobytes())


@given(st.lists(st.binary(min_size=8, max_size=8), max_size=50), st.sampled_from(["<u8", "f4", "i2", "?", "u1"]))
def test_any_bytes(values: list[bytes], code: str) -> None:
    dtype = np.dtype(code)
    wanted = {"n": FixedLenFeature([], np.int64), "x": RawFeature([8 // dtype.itemsize], dtype)}
    found, expected = parse_example(records_of(values), wanted), parsed(records_of(values), wanted)
    assert found["x"].tobytes() == expected["x"].tobytes()
    assert (found["x"].shape, found["x"].dtype) == (expected["x"].shape, dtype)


@pytest.mark.parametrize("count", COUNTS)
def test_single_numbers_and_none(count: int) -> None:
    records = [example(("one", "bytes", [b"\1\2"]), ("none", "bytes", [b""]))] * count
    wanted = {"one": RawFeature([], np.uint16), "none": RawFeature([0, 2], np.float32)}
    assert_same(
        parse_example(records, wanted),
        {"one": np.full(count, 513, np.uint16), "none": np.zeros((count, 0, 2), np.float32)},
    )
    single = parse_single_example(records[0], wanted)
    assert_same(single, {"one": np.uint16(513), "none": np.zeros((0, 2), np.float32)})


def test_any_byte_but_zero_is_true() -> None:
    for count in COUNTS:
        found = parse_example(records_of([b"\0\1\2\xff"] * count), {"x": RawFeature([4], bool)})["x"]
        assert found.view(np.uint8).tolist() == [[0, 1, 1, 1]] * count
    assert_same(
        parse_single_example(records_of([b"\0\2"])[0], {"x": RawFeature([2], bool)}), {"x": arr([False, True], bool)}
    )


def test_an_empty_batch() -> None:
    assert_same(parse_example([], {"x": RawFeature([2], np.int16)}), {"x": np.zeros((0, 2), np.int16)})


@pytest.mark.parametrize("missing", [[2], list(range(20)), list(range(40)), list(range(0, 40, 2))])
def test_a_default_stands_where_there_is_none(missing: list[int]) -> None:
    values = [bytes([number, 1]) for number in range(40)]
    records = records_of(values)
    for number in missing:
        records[number] = example(("y", "int64", [5]), ("x", None, []))
        values[number] = b"\xff\xfe"
    wanted = {"x": RawFeature([1], np.uint16, b"\xff\xfe")}
    assert_same(parse_example(records, wanted), {"x": decode_raw(values, np.uint16)})
    assert_same([parse_single_example(record, wanted)["x"] for record in records], list(decode_raw(values, np.uint16)))


@pytest.mark.parametrize("count", COUNTS)
def test_results_are_writable_and_nobody_elses(count: int) -> None:
    wanted = {
        "x": RawFeature([2], np.uint8),
        "default": RawFeature([2], np.uint8, b"ab"),
        "b": RawFeature(1, bool, b"x"),
    }
    records = records_of([b"cd"] * count)
    for parse in (partial(parse_example, records), partial(parse_single_example, records[0])):
        first: dict[str, Any] = parse(wanted)
        for array in first.values():
            array[...] = 0
        again: dict[str, Any] = parse(wanted)
        assert np.unique(again["x"]).tolist() == [99, 100]
        assert np.unique(again["default"]).tolist() == [97, 98]
        assert again["b"].all()


@pytest.mark.parametrize("count", [4, 50])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "it is required (bytes), but the example does not have it"),
        ([("x", None, [])], "it is required (bytes), but the example does not have it"),
        ([("x", "int64", [1])], "it should hold bytes, but holds int64"),
        ([("x", "bytes", [])], "it should be one value of 4 bytes for int16 of shape (1, 2), but has 0 values"),
        (
            [("x", "bytes", [b"abcd", b"efgh"])],
            "it should be one value of 4 bytes for int16 of shape (1, 2), but has 2 values",
        ),
        (
            [("x", "bytes", [b"abcde"])],
            "it should be one value of 4 bytes for int16 of shape (1, 2), but has 5 bytes",
        ),
        ([("x", "bytes", [b""])], "it should be one value of 4 bytes for int16 of shape (1, 2), but has 0 bytes"),
    ],
)
def test_an_error_names_example_and_feature(count: int, wrong: Any, message: str) -> None:
    wanted = {"x": RawFeature([1, 2], np.int16)}
    records = records_of([b"abcd"] * count)
    records[2] = example(*wrong)
    with pytest.raises(StructureError) as raised:
        parse_example(records, wanted)
    assert str(raised.value) == f"example 2, feature 'x': {message}"
    with pytest.raises(StructureError) as raised:
        parse_example(records[2:3] * count, wanted, ["name"] * count)  # all of them alike
    assert str(raised.value) == f"example 0 'name', feature 'x': {message}"
    with pytest.raises(StructureError) as raised:
        parse_single_example(records[2], wanted)
    assert str(raised.value) == f"feature 'x': {message}"


def test_pipelines_of_batches_and_of_blocks() -> None:
    wanted = {"x": RawFeature([2], np.uint8), "n": FixedLenFeature([], np.int64)}
    records = Dataset.from_list(records_of([bytes([number, 255 - number]) for number in range(100)]))
    parse = partial(parse_example, features=wanted)
    single = to_list(records.map(partial(parse_single_example, features=wanted)))
    assert_same(to_list(records.map(parse, vectorized=True)), single)
    assert_same(to_list(records.batch(30).map(parse)), to_list(Dataset.from_list(single).batch(30)))


def test_bad_records_in_a_pipeline_are_errors_in_their_places() -> None:
    records = Dataset.from_list(records_of([b"ab", b"c", b"de"]))
    found = outcomes(records.map(partial(parse_single_example, features={"x": RawFeature([2], np.uint8)})))
    assert [type(one) for one in found] == [dict, StructureError, dict]


def test_the_context_of_a_sequence_example() -> None:
    records = [encode_sequence_example({"x": bytes([n, 0])}, {"y": [1, 2]}) for n in range(3)]
    wanted = {"x": RawFeature([], np.int16)}
    assert_same(parse_sequence_example(records, wanted)[0], {"x": arr([0, 1, 2], np.int16)})
    assert_same(parse_single_sequence_example(records[2], wanted)[0], {"x": np.int16(2)})
    with pytest.raises(TypeError, match="sequence_features: there can be no such feature as 'y' is: RawFeature"):
        parse_sequence_example(records, None, {"y": RawFeature([], np.int16)})


def test_wrong_features_are_refused_where_they_are_made() -> None:
    other_order = np.dtype(np.int16).newbyteorder()
    wrong: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        (([], object), TypeError, "dtype must be a dtype of numbers"),
        (([], "S3"), TypeError, "dtype must be a dtype of numbers"),
        (([], other_order), ValueError, "dtype must be in the machine's byte order, which >i2 is not"),
        ((None, np.uint8), TypeError, "shape"),
        (([None], np.uint8), ValueError, "every axis of the shape must be known"),
        (([-2], np.uint8), ValueError, "at least 0"),
        (([2], np.uint8, [1, 2]), TypeError, "default_value must be bytes, not list"),
        (([2], np.int16, b"abc"), ValueError, "default_value must be 4 bytes for int16 of shape (2,), not 3"),
    ]
    for arguments, error, message in wrong:
        with pytest.raises(error) as raised:
            RawFeature(*arguments)
        assert str(raised.value).startswith("RawFeature: ")
        assert message in str(raised.value)


def test_it_is_a_named_tuple() -> None:
    feature = RawFeature([2], "uint8", b"ab")
    assert tuple(feature) == ((2,), np.dtype(np.uint8), b"ab")
    assert RawFeature._fields == ("shape", "dtype", "default_value")
    assert pickle.loads(pickle.dumps(feature)) == feature
    with pytest.raises(ValueError, match="3 bytes"):
        parse_example([], {"x": feature._replace(shape=(3,))})
