"""`from_tensor_slices`: one element for each row of every component."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import (
    Pair,
    arr,
    assert_gives,
    assert_same,
    first,
    i64,
    nested,
    nested_rows,
    objects,
    to_list,
)


@pytest.mark.parametrize("size", [0, 1, 2, 50])
def test_gives_the_rows(size: int) -> None:
    assert_gives(Dataset.from_tensor_slices(np.arange(size)), i64(*range(size)))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float64", "complex64", "datetime64[s]"])
def test_dtype_is_kept(dtype: str) -> None:
    rows = np.arange(2).astype(dtype)
    assert_gives(Dataset.from_tensor_slices(rows), [rows[0], rows[1]])


def test_rows_of_several_axes_are_arrays() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    assert_gives(Dataset.from_tensor_slices(rows), [rows[0], rows[1], rows[2]])


def test_rows_of_no_length() -> None:
    assert_gives(Dataset.from_tensor_slices(np.zeros((2, 0))), [np.zeros(0), np.zeros(0)])


@pytest.mark.parametrize("size", [0, 1, 4])
def test_structures_are_sliced_part_by_part(size: int) -> None:
    assert_gives(nested(size), nested_rows(*range(size)))


def test_one_tuple_stays_one() -> None:
    assert_gives(Dataset.from_tensor_slices((arr([1, 2]),)), [(np.int64(1),), (np.int64(2),)])


def test_named_tuple_stays_one() -> None:
    ds = Dataset.from_tensor_slices(Pair(arr([1, 2]), objects(b"a", b"b")))
    assert_gives(ds, [Pair(np.int64(1), b"a"), Pair(np.int64(2), b"b")])


def test_lists_are_arrays() -> None:
    got = to_list(Dataset.from_tensor_slices([1, 2, 3]))
    assert got == [1, 2, 3]
    assert all(isinstance(x, np.integer) for x in got)
    assert [x.tolist() for x in to_list(Dataset.from_tensor_slices([[1, 2], [3, 4]]))] == [[1, 2], [3, 4]]


def test_bytes_keep_their_trailing_zeros() -> None:
    assert_gives(Dataset.from_tensor_slices([b"a\x00", b"", b"\x00"]), [b"a\x00", b"", b"\x00"])


def test_the_empty_list_has_no_elements() -> None:
    assert_gives(Dataset.from_tensor_slices([]), [])
    assert Dataset.from_tensor_slices([]).cardinality() == 0


@pytest.mark.parametrize(
    "value", [(np.arange(2), np.arange(3)), {"a": np.arange(2), "b": [1]}, ([], [1])], ids=["tuple", "dict", "empty"]
)
def test_unequal_leading_lengths_are_refused_at_the_call(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        Dataset.from_tensor_slices(value)


@pytest.mark.parametrize("value", [3, np.int64(3), b"abc", None, (np.arange(2), 3), {"a": np.array(1)}, {1, 2}])
def test_what_has_no_rows_is_refused_at_the_call(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.from_tensor_slices(value)


def test_data_is_copied_when_the_dataset_is_made() -> None:
    rows = np.arange(3)
    ds = Dataset.from_tensor_slices(rows)
    rows[:] = 100
    assert_gives(ds, i64(0, 1, 2))


def test_in_place_steps_do_not_change_the_next_pass() -> None:
    ds = Dataset.from_tensor_slices(np.arange(4).reshape(2, 2))
    for row in first(ds, 2):
        if row.flags.writeable:
            row += 100
    assert_gives(ds, [arr([0, 1]), arr([2, 3])])


def test_cardinality_is_the_number_of_rows() -> None:
    assert nested(5).cardinality() == 5
    assert_same(len(nested(5)), 5)
