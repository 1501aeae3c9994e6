"""`iterate`: one iterator with a sync and an async face, which can be left, resumed and asked."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import arr, assert_same, counted, first, i64, to_list

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def test_next_gives_elements_and_then_stops_for_good() -> None:
    iterator = Dataset.range(2).iterate()
    assert iter(iterator) is iterator
    assert_same([next(iterator), next(iterator)], i64(0, 1))
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


async def test_anext_gives_elements_and_then_stops_for_good() -> None:
    iterator = Dataset.range(2).iterate()
    assert aiter(iterator) is iterator
    assert_same([await anext(iterator), await anext(iterator)], i64(0, 1))
    for _ in range(3):
        with pytest.raises(StopAsyncIteration):
            await anext(iterator)


def test_a_plain_loop_over_the_dataset() -> None:
    ds = Dataset.range(3).map(lambda x: x * 2)
    assert_same(list(ds), i64(0, 2, 4))
    assert_same(list(iter(ds)), i64(0, 2, 4))


async def test_an_async_loop_over_the_dataset() -> None:
    ds = Dataset.range(3).map(lambda x: x * 2)
    assert_same([x async for x in ds], i64(0, 2, 4))
    assert_same([x async for x in aiter(ds)], i64(0, 2, 4))


async def test_a_plain_loop_works_within_a_running_loop() -> None:
    async def later(x: Any) -> Any:
        return x + 1

    assert_same(to_list(Dataset.range(3).map(later).prefetch(1)), i64(1, 2, 3))
    assert_same([x for x in Dataset.range(3)], i64(0, 1, 2))  # noqa: C416


def test_elements_come_one_by_one_and_not_before_they_are_asked_for() -> None:
    ds, seen = counted(Dataset.range(5))
    with ds.iterate() as iterator:
        assert seen == []
        next(iterator)
        assert seen == [0]
        next(iterator)
        assert seen == [0, 1]


def test_iterators_of_one_dataset_are_independent() -> None:
    ds = Dataset.range(5).map(lambda x: x)
    with ds.iterate() as one, ds.iterate() as other:
        assert_same([next(one), next(one), next(other), next(one), next(other)], i64(0, 1, 0, 2, 1))


async def test_closing_twice_is_fine() -> None:
    iterator = Dataset.range(5).iterate()
    next(iterator)
    iterator.close()
    iterator.close()
    other = Dataset.range(5).iterate()
    await anext(other)
    await other.aclose()
    await other.aclose()


def test_closing_an_unused_iterator_runs_nothing() -> None:
    ds, seen = counted(Dataset.range(5))
    ds.iterate().close()
    assert seen == []


async def test_closing_runs_the_sources_finally() -> None:
    ended: list[bool] = []

    async def source() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.append(True)

    async with Dataset.from_generator(source).map(lambda x: x).batch(2).iterate() as iterator:
        assert_same(await anext(iterator), arr([1, 1]))
        assert ended == []
    assert ended == [True]


@pytest.mark.parametrize("taken", range(8))
def test_state_resumes_at_the_next_element(taken: int) -> None:
    ds = Dataset.range(10).map(lambda x: x + 1).batch(3).repeat(2)
    with ds.iterate() as iterator:
        before = list(islice(iterator, taken))
        state = json.loads(json.dumps(iterator.state_dict()))
        rest = list(iterator)
    assert len(before) == taken
    for _ in range(2):
        with ds.iterate(state) as resumed:
            assert_same(list(resumed), rest)


async def test_state_of_one_face_resumes_on_the_other() -> None:
    ds = Dataset.range(10).shuffle(4, seed=1)
    whole = to_list(Dataset.range(10).shuffle(4, seed=1))
    async with ds.iterate() as iterator:
        assert_same([await anext(iterator) for _ in range(3)], whole[:3])
        state = iterator.state_dict()
    with ds.iterate(state) as resumed:
        assert_same(list(resumed), whole[3:])


def test_asking_for_the_state_does_not_disturb() -> None:
    with Dataset.range(5).batch(2).iterate() as iterator:
        got = []
        for element in iterator:
            iterator.state_dict()
            iterator.statistics()
            got.append(element)
    assert_same(got, [arr([0, 1]), arr([2, 3]), arr([4])])


def test_a_dataset_is_not_changed_by_what_is_derived_from_it() -> None:
    ds = Dataset.range(3)
    ds.map(lambda x: x + 1).batch(2).repeat(2)
    assert_same(to_list(ds), i64(0, 1, 2))
    assert_same(first(ds, 1), [np.int64(0)])
