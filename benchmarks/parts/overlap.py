"""What a prefetched element costs, and whether `prefetch` hides the pipeline behind a step that holds the event loop.

The step waits without the interpreter's lock, as one does that waits for a device; the pipeline computes with numpy and
Python. An epoch can take no less than the longer of the two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from aiodata import Dataset
from benchmarks.measuring import Row, adrain, drain, interleaved, row_of

COUNT = 20_000
BATCHES, BATCH = 40, 256
LIMIT = 1.1
STEPS = {"short": 0.5, "equal": 1.0, "long": 2.0}
"""How long a step takes, as a part of what the pipeline takes for a batch."""


def measure(rounds: int) -> list[Row]:
    """Time cheap elements, then epochs beside the longer one of the pipeline alone and the steps alone."""
    cheap: Any = Dataset.range(COUNT).map(lambda x: x + 1)
    competitors: dict[str, Callable[[], Any]] = {"cheap elements, no prefetch, for": lambda: drain(cheap)}
    for size in (1, 8, 100):
        dataset = cheap.prefetch(size)
        competitors[f"cheap elements, prefetch({size}), for"] = partial(drain, dataset)
        competitors[f"cheap elements, prefetch({size}), async for"] = partial(_arun, dataset)
    seconds = interleaved(competitors, rounds)
    return [row_of(seconds, name, COUNT) for name in competitors] + _epochs(rounds)


def _arun(dataset: Any) -> None:
    asyncio.run(adrain(dataset))


def _epochs(rounds: int) -> list[Row]:
    plain, ahead = chain(), chain().prefetch(2)
    alone = interleaved({"pipeline": lambda: run(plain, 0.0)}, rounds)["pipeline"]
    seconds = min(alone) / BATCHES
    rows = [Row("pipeline alone", [one / BATCHES * 1e3 for one in alone], "ms/batch")]
    for name, part in STEPS.items():
        step = seconds * part
        competitors: dict[str, Callable[[], Any]] = {
            "pipeline alone": partial(run, plain, 0.0),
            "steps alone": partial(steps, step),
            "no prefetch, for": partial(run, plain, step),
            "prefetch, for": partial(run, ahead, step),
            "prefetch, async for": partial(_atrained, ahead, step),
        }
        found = interleaved(competitors, rounds)
        longer = [max(pair) for pair in zip(found["pipeline alone"], found["steps alone"], strict=True)]
        for what in list(competitors)[2:]:
            ratios = sorted(one / other for one, other in zip(found[what], longer, strict=True))
            rows.append(
                Row(
                    f"{name} step, {what}",
                    [one / BATCHES * 1e3 for one in found[what]],
                    "ms/batch",
                    "the longer of pipeline and steps",
                    ratios[len(ratios) // 2],
                    LIMIT if "no prefetch" not in what else None,
                )
            )
    return rows


def chain() -> Any:
    """Make batches that take some milliseconds each, most of it without the interpreter's lock, as decoding does."""
    return Dataset.range(BATCHES * BATCH).batch(BATCH).map(features)


def features(numbers: Any) -> Any:
    """Compute something for a while."""
    x = np.sin(np.outer(numbers, np.arange(1.0, 513.0)))
    return np.sort(x, axis=1)


def step_for(seconds: float) -> None:
    """Hold the loop, and nothing else."""
    if seconds:
        time.sleep(seconds)


def steps(seconds: float) -> None:
    """Do nothing but an epoch's steps."""
    for _ in range(BATCHES):
        step_for(seconds)


def run(dataset: Any, seconds: float) -> None:
    """Train for an epoch."""
    for _ in dataset:
        step_for(seconds)


def _atrained(dataset: Any, seconds: float) -> None:
    asyncio.run(arun(dataset, seconds))


async def arun(dataset: Any, seconds: float) -> None:
    """Train for an epoch in an event loop."""
    async for _ in dataset:
        step_for(seconds)
