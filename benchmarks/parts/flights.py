"""The textbook chain: files -> interleaved lines -> shuffle -> parse -> batch -> prefetch."""

from __future__ import annotations

import asyncio
import csv
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from aiodata import Dataset, TextLineDataset, decode_csv
from benchmarks.measuring import Row, adrain, drain, interleaved, row_of

FILES = Path(__file__).parent.parent.parent / "examples" / "data" / "flights"
CYCLE = 5
WINDOW = 10_000
BATCH = 32
# month, day, sched_dep_time, dep_delay, sched_arr_time, arr_delay (what is to be learned), air_time, distance, hour
COLUMNS = [1, 2, 4, 5, 7, 8, 14, 15, 16]
LABEL = COLUMNS.index(8)
DEFAULTS = [np.float32(0)] * len(COLUMNS)
MEAN = np.array([6.5, 15.7, 1344, 12.6, 1536, 150, 1040, 13.2], np.float32)
STD = np.array([3.4, 8.8, 467, 40, 497, 94, 733, 4.7], np.float32)


def measure(rounds: int) -> list[Row]:
    """Time the chain beside a plain loop with the csv module that makes the same features."""
    dataset = chain()
    count = sum(1 for _ in in_turn(sorted(FILES.glob("*.csv")), CYCLE))
    by_batch = chain_by_batch()
    seconds = interleaved(
        {
            "plain loop with csv": lambda: drain(by_hand()),
            "aiodata, for": lambda: drain(dataset),
            "aiodata, async for": lambda: asyncio.run(adrain(dataset)),
            "aiodata, batch before map, for": lambda: drain(by_batch),
            "aiodata, batch before map, async for": lambda: asyncio.run(adrain(by_batch)),
        },
        rounds,
    )
    rows = []
    for name, taken in seconds.items():
        row = row_of(seconds, name, count, "" if name.startswith("plain") else "plain loop with csv", unit="us/row")
        rows += [row, Row(name, [count / one for one in taken], "rows/s")]
    return rows


def chain() -> Any:
    """Make the chain as a user would."""
    return _shuffled().map(parse, num_parallel_calls=5).batch(BATCH).prefetch(1)


def chain_by_batch() -> Any:
    """Make the chain that parses a batch at a time."""
    return _shuffled().batch(BATCH).map(parse_batch, num_parallel_calls=5).prefetch(1)


def _shuffled() -> Any:
    files: Any = Dataset.list_files(str(FILES / "*.csv"))
    lines = files.interleave(lambda path: TextLineDataset(path).skip(1), cycle_length=CYCLE, num_parallel_calls=CYCLE)
    return lines.shuffle(WINDOW)


def parse(line: bytes) -> tuple[Any, Any]:
    """Make the features and the label of one line."""
    fields = decode_csv(line, DEFAULTS, select_cols=COLUMNS)
    x = np.array(fields[:LABEL] + fields[LABEL + 1 :])
    return (x - MEAN) / STD, fields[LABEL]


def parse_batch(lines: Any) -> tuple[Any, Any]:
    """Make the features and the labels of many lines."""
    fields = decode_csv(lines, DEFAULTS, select_cols=COLUMNS)
    x = np.stack(fields[:LABEL] + fields[LABEL + 1 :], axis=1)
    return (x - MEAN) / STD, fields[LABEL]


def by_hand() -> Iterator[tuple[Any, Any]]:
    """Do the same with no library."""
    paths = sorted(FILES.glob("*.csv"))
    random.shuffle(paths)
    features: list[Any] = []
    labels: list[Any] = []
    for row in shuffled(in_turn(paths, CYCLE), WINDOW):
        fields = [float(row[i] or 0) for i in COLUMNS]
        labels.append(np.float32(fields.pop(LABEL)))
        features.append((np.array(fields, np.float32) - MEAN) / STD)
        if len(features) == BATCH:
            yield np.array(features), np.array(labels)
            features, labels = [], []
    if features:
        yield np.array(features), np.array(labels)


def in_turn(paths: Iterable[Path], length: int) -> Iterator[list[str]]:
    """Read `length` files in turn, a row of each."""
    waiting = iter(paths)
    slots: list[Iterator[list[str]]] = []
    while True:
        while len(slots) < length and (path := next(waiting, None)) is not None:
            slots.append(_rows(path))
        if not slots:
            return
        for slot in list(slots):
            row = next(slot, None)
            if row is None:
                slots.remove(slot)
            else:
                yield row


def _rows(path: Path) -> Iterator[list[str]]:
    with open(path, newline="") as file:
        rows = csv.reader(file)
        next(rows)
        yield from rows


def shuffled(elements: Iterator[Any], size: int) -> Iterator[Any]:
    """Shuffle within a window."""
    window: list[Any] = []
    draw = random.random
    for element in elements:
        if len(window) < size:
            window.append(element)
            continue
        i = int(draw() * size)
        out, window[i] = window[i], element
        yield out
    random.shuffle(window)
    yield from window
