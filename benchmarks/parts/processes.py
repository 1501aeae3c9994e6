"""`map` in worker processes: what they bring on a function of pure Python, and what handing arrays over costs.

The functions are as dear as their names say on an idle machine; `work` is set once, by measuring it here.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

from aiodata import Dataset
from benchmarks.measuring import Row, drain, interleaved, row_of

COUNT = 1500
WORKERS = 2
SPEED_UP = 1.7
ELEMENTS = 64
SIZES = {"64 kB": 64_000, "1 MB": 1_000_000, "10 MB": 10_000_000}


def count(steps: int, x: Any) -> int:
    """Add numbers in plain Python, which holds the interpreter's lock."""
    total = int(x)
    for number in range(steps):
        total += number & 7
    return total


def turned(x: Any) -> Any:
    """Give a large array back: it goes through both ways."""
    return x


def steps_for(seconds: float) -> int:
    """Give how many steps of `count` take so long."""
    best = min(_seconds_of(10_000) for _ in range(20))
    return int(10_000 * seconds / best)


def _seconds_of(steps: int) -> float:
    start = process_time()
    count(steps, 0)
    return process_time() - start


def measure(rounds: int) -> list[Row]:
    """Time a function of 1 ms serially, in threads and in processes; short epochs; and large arrays."""
    work = partial(count, steps_for(1e-3))
    serial: Any = Dataset.range(COUNT).map(work)
    threads: Any = Dataset.range(COUNT).map(work, WORKERS)
    processes: Any = Dataset.range(COUNT).map(work, WORKERS, executor="process")
    competitors = {
        "1 ms of Python, in place": lambda: drain(serial),
        "1 ms of Python, 2 threads": lambda: drain(threads),
        "1 ms of Python, 2 processes": lambda: drain(processes),
    }
    seconds = interleaved(competitors, rounds)
    first, *others = competitors
    rows = [row_of(seconds, first, COUNT), *(row_of(seconds, name, COUNT, first) for name in others)]
    rows[-1].limit = 1 / SPEED_UP
    rows.append(Row("this process's share of a core, 2 processes", _share(processes, rounds), "s/s"))
    rows.append(Row("4 calls, first epoch", [_epoch(_short()) for _ in range(rounds)], "ms"))
    short = _short()
    _epoch(short)
    rows.append(Row("4 calls, next epoch", [_epoch(short) for _ in range(rounds)], "ms"))
    for name, size in SIZES.items():
        array = np.zeros(size, np.uint8)
        ds: Any = Dataset.from_tensors(array).repeat(ELEMENTS).map(turned, WORKERS, executor="process")
        copied: Any = Dataset.from_tensors(array).repeat(ELEMENTS).map(np.copy)
        both = interleaved(
            {f"{name} copied": partial(drain, copied), f"{name} there and back": partial(drain, ds)}, rounds
        )
        rows += [row_of(both, what, ELEMENTS) for what in both]
    return rows


def _share(dataset: Any, rounds: int) -> list[float]:
    """Give how much of a core the handing over takes in this process, while the workers work."""
    found = []
    for _ in range(rounds):
        busy, start = process_time(), perf_counter()
        drain(dataset)
        found.append((process_time() - busy) / (perf_counter() - start))
    return found


def _short() -> Any:
    return Dataset.range(4).map(abs, WORKERS, executor="process")


def _epoch(dataset: Any) -> float:
    start = perf_counter()
    drain(dataset)
    return (perf_counter() - start) * 1e3
