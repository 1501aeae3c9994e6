"""`unbatch`: the rows of every element, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import StructureError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    objects,
    outcomes,
)


def from_list(elements: list[Any]) -> Dataset[Any]:
    return Dataset.from_generator(lambda: elements)


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7])
def test_takes_batch_back(count: int, size: int) -> None:
    assert_gives(Dataset.range(count).batch(size).unbatch(), i64(*range(count)))
    assert_gives(Dataset.range(count).batch(size).map(lambda x: x).unbatch(), i64(*range(count)))


def test_nested_structures_are_taken_apart() -> None:
    assert_gives(nested(5).batch(2).unbatch(), nested_rows(*range(5)))


def test_rows_of_arrays_stay_arrays() -> None:
    ds = Dataset.from_tensors(np.arange(6, dtype=np.float32).reshape(3, 2)).unbatch()
    assert_gives(ds, [arr([0, 1], np.float32), arr([2, 3], np.float32), arr([4, 5], np.float32)])


def test_rows_of_bytes_and_text() -> None:
    assert_gives(from_list([objects(b"a\x00", b""), objects(b"c")]).unbatch(), [b"a\x00", b"", b"c"])
    assert_gives(from_list([objects("x", "é")]).unbatch(), ["x", "é"])


def test_empty_batches_vanish() -> None:
    ds = from_list([arr([]), arr([1, 2]), arr([]), arr([3]), arr([])]).unbatch()
    assert_gives(ds, i64(1, 2, 3))
    assert_gives(from_list([arr([])] * 3).unbatch(), [])


def test_many_empty_batches_are_no_recursion() -> None:
    assert_gives(from_list([arr([])] * 3000 + [arr([5])]).unbatch(), i64(5))


def test_rows_of_no_length_are_elements() -> None:
    assert_gives(Dataset.from_tensors(np.zeros((2, 0))).unbatch(), [np.zeros(0), np.zeros(0)])


def test_unequal_leading_lengths_skip_that_batch() -> None:
    good = (arr([1, 2]), arr([3, 4]))
    ds = from_list([good, (arr([1, 2]), arr([3])), good]).unbatch()
    rows = [(*i64(1, 3),), (*i64(2, 4),)]
    assert_outcomes(ds, [*rows, StructureError, *rows])
    text = str(outcomes(ds)[2])
    assert "2" in text
    assert "1" in text


def test_scalars_have_no_rows() -> None:
    with pytest.raises((TypeError, ValueError)):
        first(Dataset.range(3).unbatch(), 1)
    with pytest.raises((TypeError, ValueError)):
        first(from_list([Pair(arr([1]), np.int64(2))]).unbatch(), 1)


def test_input_error_keeps_its_place() -> None:
    ds = failing(Dataset.range(3), 1).map(lambda x: np.array([x, x])).unbatch()
    assert_outcomes(ds, [*i64(0, 0), Boom(1), *i64(2, 2)])


def test_twice_takes_two_axes_off() -> None:
    assert_gives(Dataset.range(8).batch(2).batch(2).unbatch().unbatch(), i64(*range(8)))


def test_reads_the_input_only_as_far_as_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(ds.batch(4).unbatch(), 5), i64(0, 1, 2, 3, 4))
    assert seen == [*range(8)]


def test_endless_input_can_be_left() -> None:
    assert_same(first(Dataset.range(3).batch(2).repeat().unbatch(), 5), i64(0, 1, 2, 0, 1))


def test_cardinality_is_known_where_the_batches_are_full() -> None:
    assert Dataset.range(10).batch(2, drop_remainder=True).unbatch().cardinality() == 10
    assert Dataset.range(10).batch(4, drop_remainder=True).unbatch().cardinality() == 8


def test_cardinality_is_else_unknown_or_infinite() -> None:
    assert Dataset.range(10).batch(3).unbatch().cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(10).repeat().batch(3).unbatch().cardinality() == aiodata.INFINITE_CARDINALITY
