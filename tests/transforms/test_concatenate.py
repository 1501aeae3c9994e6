"""`concatenate`: this dataset, then the other, which is opened when the first one ends."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from tests.programs import (
    Boom,
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
    to_list,
)


@pytest.mark.parametrize("left", [0, 1, 3])
@pytest.mark.parametrize("right", [0, 1, 3])
def test_gives_one_after_the_other(left: int, right: int) -> None:
    ds = Dataset.range(left).concatenate(Dataset.range(10, 10 + right))
    assert_gives(ds, i64(*range(left), *range(10, 10 + right)))


def test_may_take_itself() -> None:
    ds = Dataset.range(2)
    assert_gives(ds.concatenate(ds).concatenate(ds), i64(0, 1, 0, 1, 0, 1))


def test_structures_are_kept() -> None:
    assert_gives(nested(2).concatenate(nested(1)), nested_rows(0, 1, 0))


def test_shapes_and_ranks_may_differ() -> None:
    ds = Dataset.from_tensors(arr([1, 2])).concatenate(Dataset.from_tensors(arr([[3]])))
    assert_gives(ds.concatenate(Dataset.range(1)), [arr([1, 2]), arr([[3]]), np.int64(0)])


def test_batches_cross_the_joint() -> None:
    ds = Dataset.range(3).concatenate(Dataset.range(10, 12)).batch(2)
    assert_gives(ds, [arr([0, 1]), arr([2, 10]), arr([11])])


def test_second_is_not_read_before_the_first_ends() -> None:
    ds, seen = counted(Dataset.range(10, 20))
    joined = Dataset.range(3).concatenate(ds)
    first(joined, 3)
    assert seen == []
    assert_same(first(joined, 4), i64(0, 1, 2, 10))
    assert seen == [10]


def test_second_is_never_reached_behind_an_endless_first() -> None:
    ds, seen = counted(Dataset.range(10, 20))
    first(Dataset.range(2).repeat().concatenate(ds), 50)
    assert seen == []


def test_errors_of_both_keep_their_places() -> None:
    ds = failing(Dataset.range(3), 2).concatenate(failing(Dataset.range(10, 13), 10))
    assert_outcomes(ds, [*i64(0, 1), Boom(2), Boom(10), *i64(11, 12)])


@pytest.mark.parametrize("other", [None, 3, [1, 2], np.arange(3)])
def test_what_is_no_dataset_is_refused_at_the_call(other: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.range(3).concatenate(other)


def chain(count: int) -> Dataset[Any]:
    ds = Dataset.range(1)
    for number in range(1, count):
        ds = ds.concatenate(Dataset.range(number, number + 1))
    return ds


def test_five_thousand_are_no_recursion() -> None:
    ds = chain(5000)
    assert ds.cardinality() == 5000
    assert_same(to_list(ds), i64(*range(5000)))
    assert_same(to_list(ds.map(lambda x: x).batch(5000)), [arr(range(5000))])


def test_time_grows_linearly_with_the_number_of_parts() -> None:
    def seconds(count: int) -> float:
        ds = chain(count)
        began = time.perf_counter()
        to_list(ds)
        return time.perf_counter() - began

    small = min(seconds(500) for _ in range(3))
    assert seconds(5000) < 30 * max(small, 0.01)


def test_cardinality_is_the_sum() -> None:
    unknown, endless = Dataset.range(3).filter(lambda x: True), Dataset.range(3).repeat()
    assert Dataset.range(3).concatenate(Dataset.range(4)).cardinality() == 7
    assert Dataset.range(3).concatenate(unknown).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).concatenate(endless).cardinality() == aiodata.INFINITE_CARDINALITY
    assert endless.concatenate(unknown).cardinality() == aiodata.INFINITE_CARDINALITY
    assert unknown.concatenate(endless).cardinality() == aiodata.INFINITE_CARDINALITY


def test_chains_that_grow_from_behind_are_flat_too() -> None:
    ds = Dataset.range(1)
    for _ in range(5000):
        ds = Dataset.range(1).concatenate(ds)
    assert len(ds) == len(to_list(ds)) == 5001
