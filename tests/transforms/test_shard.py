"""`shard`: every `num_shards`-th element, from number `index` on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from tests.programs import (
    Boom,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    plain,
    to_list,
)


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 6, 7, 8])
def test_gives_every_nth_element(size: int, shards: int) -> None:
    for index in range(shards):
        assert_gives(Dataset.range(size).shard(shards, index), i64(*range(index, size, shards)))


def test_shards_together_are_the_input() -> None:
    ds = Dataset.range(10).map(lambda x: x)
    assert sorted(x for index in range(4) for x in plain(to_list(ds.shard(4, index)))) == [*range(10)]


def test_shards_nested_structures() -> None:
    assert_gives(nested(5).shard(2, 1), nested_rows(1, 3))


def test_shard_of_shard() -> None:
    assert_gives(Dataset.range(12).shard(2, 1).shard(3, 1), i64(3, 9))


def test_endless_input_can_be_left() -> None:
    assert_same(first(Dataset.range(3).repeat().shard(2, 0), 4), i64(0, 2, 1, 0))


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(ds.shard(3, 1), 2), i64(1, 4))
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("shards", "index"), [(0, 0), (-1, 0), (2, 2), (2, 3), (2, -1), (1.5, 0), (2, 0.5), (None, 0), (2, None)]
)
def test_wrong_numbers_are_refused_at_the_call(shards: Any, index: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).shard(shards, index)


@pytest.mark.parametrize("bad", [3, 4, 5])
def test_an_error_keeps_its_number_and_comes_in_its_own_shard_only(bad: int) -> None:
    for index in range(3):
        expected = [Boom(number) if number == bad else np.int64(number) for number in range(index, 10, 3)]
        assert_outcomes(failing(Dataset.range(10), bad).shard(3, index), expected)


def test_cardinality_is_the_share() -> None:
    assert [Dataset.range(10).shard(4, index).cardinality() for index in range(4)] == [3, 3, 2, 2]
    assert Dataset.range(0).shard(4, 0).cardinality() == 0
    assert Dataset.range(3).repeat().shard(2, 0).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(3).filter(lambda x: True).shard(2, 0).cardinality() == aiodata.UNKNOWN_CARDINALITY
