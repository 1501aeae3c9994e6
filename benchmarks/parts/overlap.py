"""Whether `prefetch` hides the pipeline behind a training step that holds the event loop.

The step waits without the interpreter's lock, as one does that waits for a device; the pipeline computes with numpy and
Python. An epoch can take no less than the longer of the two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from aiodata import Dataset
from benchmarks.measuring import Row, interleaved

BATCHES, BATCH = 40, 256
LIMIT = 1.1
STEPS = {"short": 0.5, "equal": 1.0, "long": 2.0}
"""How long a step takes, as a part of what the pipeline takes for a batch."""


def measure(rounds: int) -> list[Row]:
    """Time epochs beside the longer one of the pipeline alone and the steps alone."""
    plain, ahead = chain(), chain().prefetch(2)
    alone = interleaved({"pipeline": lambda: run(plain, 0.0)}, rounds)["pipeline"]
    seconds = min(alone) / BATCHES
    rows = [Row("pipeline alone", [one / BATCHES * 1e3 for one in alone], "ms/batch")]
    for name, part in STEPS.items():
        step = seconds * part
        competitors: dict[str, Callable[[], Any]] = {
            "pipeline alone": lambda: run(plain, 0.0),
            "steps alone": lambda step=step: steps(step),  # type: ignore[misc]
            "no prefetch, for": lambda step=step: run(plain, step),  # type: ignore[misc]
            "prefetch, for": lambda step=step: run(ahead, step),  # type: ignore[misc]
            "prefetch, async for": lambda step=step: asyncio.run(arun(ahead, step)),  # type: ignore[misc]
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


async def arun(dataset: Any, seconds: float) -> None:
    """Train for an epoch in an event loop."""
    async for _ in dataset:
        step_for(seconds)
