"""`prefetch`: the same elements, read ahead of the consumer, but never further than the buffer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
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
)

BUFFERS = [0, 1, 2, 100, aiodata.AUTOTUNE]


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 50])
def test_changes_nothing(size: int, buffer: int) -> None:
    assert_gives(Dataset.range(size).prefetch(buffer), i64(*range(size)))
    assert_gives(Dataset.range(size).map(lambda x: x + 1).prefetch(buffer), i64(*range(1, size + 1)))


def test_structures_are_kept() -> None:
    assert_gives(nested(3).prefetch(2), nested_rows(0, 1, 2))


def test_prefetches_may_be_stacked() -> None:
    ds = Dataset.range(20).prefetch(2).map(lambda x: x * 2).prefetch(3).prefetch(0)
    assert_gives(ds, i64(*range(0, 40, 2)))


@pytest.mark.parametrize("buffer", BUFFERS)
def test_errors_keep_their_places(buffer: int) -> None:
    ds = failing(Dataset.range(5), 0, 3).prefetch(buffer)
    assert_outcomes(ds, [Boom(0), *i64(1, 2), Boom(3), np.int64(4)])


@pytest.mark.parametrize("buffer", [-2, -100, 1.5, "2"])
def test_wrong_buffer_size_is_refused_at_the_call(buffer: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).prefetch(buffer)


@pytest.mark.parametrize("buffer", [1, 2, 5])
def test_reads_no_further_ahead_than_the_buffer(buffer: int) -> None:
    ds, seen = counted(Dataset.range(1000))
    with ds.prefetch(buffer).iterate() as iterator:
        for taken in range(1, 50):
            next(iterator)
            assert len(seen) <= taken + buffer + 1


def test_reads_ahead_while_the_consumer_does_not_ask() -> None:
    reached = threading.Event()

    def numbers() -> Iterator[int]:
        for number in range(10):
            if number == 3:
                reached.set()
            yield number

    with Dataset.from_generator(numbers).prefetch(5).iterate() as iterator:
        assert next(iterator) == 0
        assert reached.wait(10)


def test_making_a_dataset_reads_nothing() -> None:
    ds, seen = counted(Dataset.range(10))
    ds.prefetch(5)
    assert seen == []


@pytest.mark.parametrize("buffer", [0, 2, aiodata.AUTOTUNE])
def test_endless_source_ends_with_its_iterator(buffer: int) -> None:
    ended = threading.Event()

    def endless() -> Iterator[int]:
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            ended.set()

    ds = Dataset.from_generator(endless).prefetch(buffer)
    assert first(ds, 2) == [0, 1]
    assert ended.is_set()


def test_dropping_the_iterator_ends_the_background_thread() -> None:
    before = set(threading.enumerate())
    iterator = iter(Dataset.range(3).repeat().map(lambda x: x).prefetch(2))
    next(iterator)
    started = [thread for thread in threading.enumerate() if thread not in before]
    del iterator
    for thread in started:
        thread.join(30)
    assert not any(thread.is_alive() for thread in started)


async def test_async_source_is_closed_with_the_iterator() -> None:
    ended: list[bool] = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                await asyncio.sleep(0)
                yield 7
        finally:
            ended.append(True)

    async with Dataset.from_generator(endless).prefetch(2).iterate() as iterator:
        assert await anext(iterator) == 7
    assert ended == [True]


def test_cardinality_is_that_of_the_input() -> None:
    assert Dataset.range(5).prefetch(2).cardinality() == 5
    assert Dataset.range(5).repeat().prefetch(2).cardinality() == aiodata.INFINITE_CARDINALITY


def test_infinite_input_can_be_left() -> None:
    assert_same(first(Dataset.range(2).repeat().prefetch(3), 5), i64(0, 1, 0, 1, 0))


def test_none_is_automatic() -> None:
    assert repr(Dataset.range(2).prefetch(None)) == repr(Dataset.range(2).prefetch())
