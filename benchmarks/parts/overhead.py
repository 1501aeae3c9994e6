"""What a short chain costs an element: range -> map(x + 1) -> batch(100).

The limit is beside three plain generators that do the same: numpy's int64 scalars, on which a function is called.
Python's own integers with `x + 1` written in place are shown too; their arithmetic alone takes half as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from benchmarks.measuring import Row, interleaved, row_of, rows_of

from aiodata import Dataset

COUNT = 200_000
BATCH = 100
LIMIT = 2.0


def measure(rounds: int) -> list[Row]:
    """Time the chain beside three chained generators."""
    dataset: Any = Dataset.range(COUNT).map(increment).batch(BATCH)
    only_map: Any = Dataset.range(COUNT).map(increment)
    seconds = interleaved(
        {
            "plain generators, Python ints": lambda: drain(batches(mapped(numbers()), BATCH)),
            "plain generators, int64 scalars": lambda: drain(batches(called(increment, arange()), BATCH)),
            "aiodata, for": lambda: drain(dataset),
            "aiodata, async for": lambda: asyncio.run(adrain(dataset)),
            "plain generators without batch": lambda: drain(mapped(numbers())),
            "aiodata without batch, for": lambda: drain(only_map),
            "aiodata without batch, async for": lambda: asyncio.run(adrain(only_map)),
        },
        rounds,
    )
    chain = {name: taken for name, taken in seconds.items() if "without" not in name}
    rows = rows_of(chain, COUNT, "plain generators, int64 scalars", LIMIT)
    rows += [row_of(seconds, name, COUNT, "plain generators, Python ints") for name in chain if "aiodata" in name]
    beside = "plain generators without batch"
    rows += [row_of(seconds, name, COUNT, beside if name != beside else "") for name in seconds if name not in chain]
    return rows


def numbers() -> Iterator[Any]:
    yield from range(COUNT)


def arange() -> Iterator[Any]:
    yield from np.arange(COUNT)


def mapped(elements: Iterable[Any]) -> Iterator[Any]:
    for x in elements:
        yield x + 1


def increment(x: Any) -> Any:
    return x + 1


def called(function: Callable[[Any], Any], elements: Iterable[Any]) -> Iterator[Any]:
    for x in elements:
        yield function(x)


def batches(elements: Iterator[Any], size: int) -> Iterator[Any]:
    while batch := list(islice(elements, size)):
        yield np.array(batch)


def drain(elements: Iterable[Any]) -> None:
    for _ in elements:
        pass


async def adrain(elements: Any) -> None:
    async for _ in elements:
        pass
