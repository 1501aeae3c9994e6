"""What states cost: their size, asking for one, writing it, and going on from it; and what is read again for that.

Each job is stopped in the middle. What is read again is what the run that was stopped and the one that goes on have
read together, beyond what one run reads: what had been read ahead, and the blocks in which the readers stood.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from aiodata import CheckpointManager, Dataset, TextLineDataset
from benchmarks.measuring import Row, drain, interleaved, row_of
from benchmarks.parts.flights import BATCH, CYCLE, FILES, WINDOW, chain, parse

LARGE = 80_000
"""Bytes of a large element."""
COUNT = 200_000


def measure(rounds: int) -> list[Row]:
    """Measure the flights chain without and with its shuffle, and a shuffle of large elements."""
    rows = _job("flights, no shuffle", unshuffled, 300, rounds, limits=(2.0, 1000.0))
    rows += _job(f"flights, shuffle({WINDOW:,})", chain, 500, rounds, limits=(200.0, None))
    rows += _job(f"{LARGE:,} bytes each, shuffle({WINDOW:,})", large, COUNT * 3 // 4, rounds, limits=(200.0, None))
    return rows + _unused(rounds)


def unshuffled() -> Any:
    """Make the flights chain without its shuffle."""
    files: Any = Dataset.list_files(str(FILES / "*.csv"), shuffle=False)
    lines = files.interleave(lambda path: TextLineDataset(path).skip(1), cycle_length=CYCLE, num_parallel_calls=CYCLE)
    return lines.map(parse, num_parallel_calls=5).batch(BATCH).prefetch(1)


made = 0


def large() -> Any:
    """Make a shuffle of large elements; they are one array, else they would take 800 MB."""
    array = np.zeros(LARGE // 8)

    def element(x: Any) -> Any:
        global made
        made += 1
        return x, array

    return Dataset.range(COUNT).map(element).shuffle(WINDOW)


def _job(
    name: str, make: Callable[[], Any], count: int, rounds: int, limits: tuple[float | None, float | None]
) -> list[Row]:
    """Stop a job in the middle, and go on, once a round.

    Args:
        name: Its name.
        make: Makes the dataset.
        count: Elements before the stop.
        rounds: How often.
        limits: The most kilobytes and the most microseconds to ask.
    """
    figures: dict[tuple[str, str], list[float]] = {}

    def note(what: str, unit: str, value: float) -> None:
        figures.setdefault((what, unit), []).append(value)

    dataset = make()  # one for all, for a state tells the seeds that a shuffle without one has drawn
    whole = sum(path.stat().st_size for path in FILES.glob("*.csv"))
    with tempfile.TemporaryDirectory() as folder:
        manager = CheckpointManager(folder)
        for _ in range(rounds):
            before = made
            with dataset.iterate() as iterator:
                for _ in islice(iterator, count):
                    pass
                note("asking", "us", _seconds(iterator.state_dict) * 1e6)
                state = iterator.state_dict()
                text = json.dumps(state)
                read = _bytes_read(iterator)
            note("size", "kB", len(text) / 1000)
            note("json.dumps", "us", _seconds(lambda state=state: json.dumps(state)) * 1e6)
            note("CheckpointManager.save", "ms", _seconds(lambda state=state: manager.save(None, state), 1) * 1e3)
            begun = perf_counter()
            with dataset.iterate(json.loads(text)) as iterator:
                next(iterator)
                note("going on, to the first element", "ms", (perf_counter() - begun) * 1e3)
                drain(iterator)
                read += _bytes_read(iterator)
            if read:
                note("read again", "kB", (read - whole) / 1000)
            else:
                note("made again", "elements", made - before - COUNT)
    rows = [Row(f"{name}: {what}", values, unit) for (what, unit), values in figures.items()]
    rows[1].limit, rows[0].limit = limits
    return rows


def _unused(rounds: int) -> list[Row]:
    """Time a fast pipeline that is never asked, and one that is asked at every element."""
    dataset: Any = Dataset.range(20_000).map(abs)

    def asked() -> None:
        with dataset.iterate() as iterator:
            for _ in iterator:
                iterator.state_dict()

    seconds = interleaved({"never asked": lambda: drain(dataset), "asked at every element": asked}, rounds)
    return [row_of(seconds, what, 20_000) for what in seconds]


def _seconds(work: Callable[[], Any], times: int = 20) -> float:
    begun = perf_counter()
    for _ in range(times):
        work()
    return (perf_counter() - begun) / times


def _bytes_read(iterator: Any) -> int:
    return sum(int(counters.get("bytes_read", 0)) for counters in iterator.statistics())
