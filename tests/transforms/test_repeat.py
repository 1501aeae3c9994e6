"""`repeat`: pass after pass over the input, each pass opened only when it is reached."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import aiodata
from aiodata import Dataset
from tests.programs import (
    Boom,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    to_list,
)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_gives_that_many_passes(size: int, count: int) -> None:
    assert_gives(Dataset.range(size).repeat(count), i64(*[*range(size)] * count))


@pytest.mark.parametrize("count", [None, -1, -2, -100])
def test_none_and_negative_counts_repeat_for_ever(count: int | None) -> None:
    assert_same(first(Dataset.range(3).repeat(count), 8), i64(0, 1, 2, 0, 1, 2, 0, 1))
    assert_gives(Dataset.range(3).repeat(count).take(7), i64(0, 1, 2, 0, 1, 2, 0))


def test_repeats_nested_structures() -> None:
    assert_gives(nested(2).repeat(2), nested_rows(0, 1, 0, 1))


def test_repeat_of_repeat_multiplies() -> None:
    assert_gives(Dataset.range(2).repeat(2).repeat(3), i64(*[0, 1] * 6))


@pytest.mark.parametrize("empty", [Dataset.range(0), Dataset.range(9).filter(lambda x: False)], ids=["range", "filter"])
def test_endless_repeat_of_an_empty_input_ends(empty: Dataset[Any]) -> None:
    assert_gives(empty.repeat(), [])
    assert_gives(empty.repeat().take(1), [])
    assert_gives(empty.repeat().repeat(), [])


async def test_endless_repeat_of_an_empty_input_ends_within_a_time_limit() -> None:
    ds = Dataset.range(9).filter(lambda x: False).repeat().take(1)
    async with asyncio.timeout(10), ds.iterate() as iterator:
        with pytest.raises(StopAsyncIteration):
            await anext(iterator)


async def test_endless_repeat_that_lets_nothing_through_can_be_cancelled() -> None:
    ds = Dataset.range(9).repeat().filter(lambda x: False).repeat().take(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await collect(ds)
    task = asyncio.create_task(collect(ds))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_each_pass_reads_the_input_anew() -> None:
    ds, seen = counted(Dataset.range(3))
    to_list(ds.repeat(2))
    assert seen == [0, 1, 2, 0, 1, 2]


def test_passes_not_reached_are_not_opened() -> None:
    calls: list[int] = []

    def make() -> list[int]:
        calls.append(1)
        return [1, 2]

    ds = Dataset.from_generator(make).repeat()
    first(ds, 2)
    assert len(calls) == 1
    first(ds, 3)
    assert len(calls) == 3


def test_zero_reads_nothing() -> None:
    ds, seen = counted(Dataset.range(3))
    assert to_list(ds.repeat(0)) == []
    assert seen == []


def test_error_keeps_its_place_in_every_pass() -> None:
    one_pass = [*i64(0), Boom(1), *i64(2)]
    assert_outcomes(failing(Dataset.range(3), 1).repeat(2), one_pass * 2)


@pytest.mark.parametrize("count", [1.5, "2"])
def test_wrong_count_is_refused_at_the_call(count: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).repeat(count)


def test_cardinality_is_the_product() -> None:
    unknown = Dataset.range(3).filter(lambda x: True)
    assert Dataset.range(3).repeat(4).cardinality() == 12
    assert Dataset.range(3).repeat(0).cardinality() == 0
    assert Dataset.range(3).repeat().cardinality() == aiodata.INFINITE_CARDINALITY
    assert unknown.repeat(2).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert unknown.repeat(0).cardinality() == 0
    assert unknown.repeat().cardinality() == aiodata.INFINITE_CARDINALITY


def test_it_can_have_a_name_and_keeps_the_spec() -> None:
    ds = nested(3).repeat(2, name="epochs")
    assert ds.plan.title == "epochs"
    assert ds.element_spec == nested(3).element_spec


def test_a_take_of_all_between_wastes_no_order() -> None:
    for count in (-1, -2):
        ds = Dataset.range(4).shuffle(4, seed=3).take(count).repeat(2).batch(2)
        first, second = ([x.tolist() for x in to_list(ds)] for _ in range(2))
        assert first == [[0, 1], [2, 3], [0, 3], [2, 1]]
        assert second == [[0, 1], [3, 2], [0, 3], [2, 1]]
