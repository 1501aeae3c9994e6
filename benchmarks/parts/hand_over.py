"""Reading ahead: what a prefetched element costs, and how much of a training step is overlapped."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.measuring import Row, interleaved, row_of
from benchmarks.parts.overhead import adrain, drain

from aiodata import Dataset

COUNT = 20_000
STEPS = 200
STEP_SECONDS = 0.001
LIMIT_US = 20.0


def measure(rounds: int) -> list[Row]:
    """Time cheap elements, then a step of 1 ms beside input that takes 1 ms; perfect overlap makes the ratio 0.5."""
    cheap: Any = Dataset.range(COUNT).map(lambda x: x + 1)
    rows = []
    competitors = {"aiodata, no prefetch, for": lambda: drain(cheap)}
    for size in (1, 8, 100):
        dataset = cheap.prefetch(size)
        competitors[f"aiodata, prefetch({size}), for"] = lambda dataset=dataset: drain(dataset)
        competitors[f"aiodata, prefetch({size}), async for"] = lambda dataset=dataset: asyncio.run(adrain(dataset))
    seconds = interleaved(competitors, rounds)
    for name in competitors:
        row = row_of(seconds, name, COUNT)
        row.limit = LIMIT_US if name == "aiodata, prefetch(8), for" else None
        rows.append(row)
    slow: Any = Dataset.range(STEPS).map(_slow)
    ahead = slow.prefetch(1)
    trained = interleaved(
        {
            "1 ms input, 1 ms blocking step, no prefetch": lambda: _train(slow),
            "the same, prefetch(1), for": lambda: _train(ahead),
            "the same, prefetch(1), async for": lambda: asyncio.run(_atrain(ahead)),
        },
        rounds,
    )
    first, *others = trained
    return [*rows, row_of(trained, first, STEPS), *[row_of(trained, name, STEPS, first) for name in others]]


def _slow(x: Any) -> Any:
    time.sleep(STEP_SECONDS)
    return x


def _train(dataset: Any) -> None:
    for _ in dataset:
        time.sleep(STEP_SECONDS)


async def _atrain(dataset: Any) -> None:
    async for _ in dataset:
        time.sleep(STEP_SECONDS)
