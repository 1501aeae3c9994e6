"""Parallel calls beside a plain map: functions of 2 us to 10 ms, and what handing them to a pool costs.

A function that holds the interpreter's lock cannot get faster by threads; the limits say how much slower it may get.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from time import thread_time
from typing import Any

import numpy as np

from aiodata import AUTOTUNE, Dataset
from benchmarks.measuring import Row, adrain, drain, interleaved, row_of

NEVER_SLOWER = 1 / 0.9
HAND_OVER = 1.05
ARRAY = np.zeros(1 << 20)


def measure(rounds: int) -> list[Row]:
    """Time each function in a plain map, and with calls at once."""
    rows = []
    for us, count in ((2, 200_000), (50, 4_000), (1_000, 300)):
        work = busy(us * 1e-6)
        rows += beside_plain(f"{us} us of Python", work, count, rounds, {5: NEVER_SLOWER if us == 2 else None})
    rows += beside_plain("1 ms of numpy", numpy_work(1e-3), 500, rounds, {1: HAND_OVER, 2: None, AUTOTUNE: None})
    return rows + beside_plain("10 ms of waiting", wait, 100, rounds, {1: HAND_OVER, 5: 0.25, 20: 0.1, AUTOTUNE: 0.12})


def beside_plain(
    what: str, work: Callable[[Any], Any], count: int, rounds: int, limits: dict[int, float | None]
) -> list[Row]:
    """Time a map with each number of calls beside the plain one, on both faces."""
    rows = []
    for face, run in (("for", drain), ("async for", lambda dataset: asyncio.run(adrain(dataset)))):
        source: Any = Dataset.range(count)
        plain = f"{what}, plain, {face}"
        competitors: dict[str, Callable[[], Any]] = {plain: partial(run, source.map(work))}
        named = {f"{what}, {'AUTOTUNE' if calls < 0 else f'{calls} calls'}, {face}": calls for calls in limits}
        for name, calls in named.items():
            competitors[name] = partial(run, source.map(work, calls))
        seconds = interleaved(competitors, rounds)
        rows.append(row_of(seconds, plain, count))
        rows += [row_of(seconds, name, count, plain, limits[calls]) for name, calls in named.items()]
    return rows


def busy(seconds: float) -> Callable[[Any], Any]:
    """Make a function that computes for so long in Python."""
    steps = 10

    def work(x: Any) -> Any:
        total = 0
        for step in range(steps):
            total += step
        return x

    while (taken := timed(work)) < 0.8 * seconds:
        steps = max(steps + 1, int(min(4, seconds / taken) * steps))
    return work


def numpy_work(seconds: float) -> Callable[[Any], Any]:
    """Make a function that computes for so long in numpy, without the interpreter's lock."""
    size = 1000

    def work(x: Any) -> Any:
        np.sin(ARRAY[:size])
        return x

    while (taken := timed(work)) < 0.8 * seconds and size < len(ARRAY):
        size = min(len(ARRAY), max(size + 1, int(min(4, seconds / taken) * size)))
    return work


def timed(work: Callable[[Any], Any]) -> float:
    """Give the processor time of a call."""
    start = thread_time()
    for _ in range(20):
        work(0)
    return (thread_time() - start) / 20


def wait(x: Any) -> Any:
    """Wait for 10 ms."""
    time.sleep(0.01)
    return x
