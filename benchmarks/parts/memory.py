"""Arrays in memory, shuffled and batched: from_tensor_slices -> shuffle -> batch(256)."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from benchmarks.measuring import Row, interleaved, rows_of
from benchmarks.parts.overhead import adrain, drain

from aiodata import Dataset

COUNT = 200_000
BATCH = 256
LIMIT = 2.0
BESIDE = "numpy: permutation, fancy index"


def measure(rounds: int) -> list[Row]:
    """Time both sizes of the window beside numpy's own shuffling."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((COUNT, 16), np.float32)
    y = generator.integers(0, 10, COUNT)
    rows: Any = Dataset.from_tensor_slices((x, y))
    window = rows.shuffle(10_000, seed=1).batch(BATCH)
    whole = rows.shuffle(COUNT, seed=1).batch(BATCH)

    def by_hand() -> None:
        order = generator.permutation(COUNT)
        for i in range(0, COUNT, BATCH):
            chosen = order[i : i + BATCH]
            _ = x[chosen], y[chosen]

    seconds = interleaved(
        {
            BESIDE: by_hand,
            "aiodata, shuffle(10,000), for": lambda: drain(window),
            "aiodata, shuffle(10,000), async for": lambda: asyncio.run(adrain(window)),
            "aiodata, whole shuffle, for": lambda: drain(whole),
            "aiodata, whole shuffle, async for": lambda: asyncio.run(adrain(whole)),
        },
        rounds,
    )
    rows = rows_of(seconds, COUNT, BESIDE, LIMIT)
    for row in rows:
        if "whole" in row.what:
            row.limit = None  # every row is moved twice more, into the window and out
    return rows
