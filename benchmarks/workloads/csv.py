"""The textbook chain on CSV files: list, interleave, shuffle, parse and normalise, batch, prefetch.

100,000 rows of eight features and a target, in 20 files with headers: interleave 5 files, shuffle within 10,000 rows,
scale the features, batch 32. As in the "Loading and preprocessing" chapters of TensorFlow textbooks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Pass, Workload

FILES, ROWS, FEATURES = 20, 5_000, 8
CYCLE, WINDOW, BATCH = 5, 10_000, 32
MEAN = np.linspace(-1, 1, FEATURES, dtype=np.float32)
STD = np.linspace(1, 2, FEATURES, dtype=np.float32)
DEFAULTS = [np.float32(0)] * (FEATURES + 1)


def prepare(folder: Path) -> None:
    """Write the files."""
    generator = np.random.default_rng(0)
    header = ",".join([f"x{number}" for number in range(FEATURES)] + ["y"])
    for number in range(FILES):
        rows = generator.standard_normal((ROWS, FEATURES + 1)).astype(np.float32)
        np.savetxt(folder / f"part-{number:02}.csv", rows, "%.6f", ",", header=header, comments="")


WORKLOAD = Workload(
    "csv",
    "textbook CSV: 20 files of 5,000 rows, interleave 5, shuffle 10,000, parse and scale, batch 32",
    FILES * ROWS,
    prepare,
    total=lambda batch: np.abs(np.asarray(batch[0], np.float64)).sum() + np.asarray(batch[1], np.float64).sum(),
)


def paths(folder: Path) -> list[str]:
    """Name the files."""
    return sorted(map(str, folder.glob("*.csv")))


def _textbook(folder: Path, parse: Any, **arguments: Any) -> Any:
    from aiodata import Dataset, TextLineDataset

    files: Any = Dataset.list_files(str(folder / "*.csv"), seed=1)
    lines = files.interleave(lambda path: TextLineDataset(path).skip(1), cycle_length=CYCLE)
    return lines.shuffle(WINDOW, seed=1).map(parse, **arguments).batch(BATCH).prefetch(1)


def parse_row(line: bytes) -> tuple[Any, Any]:
    """Parse a line with numpy alone."""
    values = np.array(line.split(b","), np.float32)
    return (values[:-1] - MEAN) / STD, values[-1]


def parse_rows(lines: Any) -> tuple[Any, Any]:
    """Parse many lines with aiodata's `decode_csv`."""
    from aiodata import decode_csv

    fields = decode_csv(lines, DEFAULTS)
    return (np.stack(fields[:-1], axis=1) - MEAN) / STD, fields[-1]


@WORKLOAD.ours("aiodata, vectorized=True")
def vectorized(folder: Path) -> Pass:
    """Parse whole blocks of lines."""
    dataset = _textbook(folder, parse_rows, vectorized=True)
    return lambda: dataset


@WORKLOAD.ours("aiodata, vectorized=True, async for")
def vectorized_async(folder: Path) -> Pass:
    """Do the same in an event loop."""
    dataset = _textbook(folder, parse_rows, vectorized=True)
    return lambda: _only_async(dataset)


async def _only_async(dataset: Any) -> Any:
    async for batch in dataset:
        yield batch


@WORKLOAD.ours("aiodata, per-row function")
def per_row(folder: Path) -> Pass:
    """Parse each line with numpy."""
    dataset = _textbook(folder, _list_row)
    return lambda: dataset


@WORKLOAD.ours("aiodata, per-row function, 5 calls")
def per_row_calls(folder: Path) -> Pass:
    """Do the same as the textbook writes it, with parallel calls."""
    dataset = _textbook(folder, _list_row, num_parallel_calls=5)
    return lambda: dataset


def _list_row(line: bytes) -> tuple[Any, Any]:
    values = np.array(list(map(float, line.split(b","))), np.float32)
    return (values[:-1] - MEAN) / STD, values[-1]


def _interleaved(folder: Path) -> Iterator[bytes]:
    waiting = paths(folder)
    random.shuffle(waiting)
    slots: list[Iterator[bytes]] = []
    while waiting or slots:
        while len(slots) < CYCLE and waiting:
            lines = iter(open(waiting.pop(), "rb"))  # noqa: SIM115 - closed when its last line is read
            next(lines)
            slots.append(lines)
        for slot in list(slots):
            line = next(slot, None)
            if line is None:
                slots.remove(slot)
            else:
                yield line


def _shuffled(elements: Iterator[Any]) -> Iterator[Any]:
    window: list[Any] = []
    draw = random.random
    for element in elements:
        if len(window) < WINDOW:
            window.append(element)
            continue
        at = int(draw() * WINDOW)
        out, window[at] = window[at], element
        yield out
    random.shuffle(window)
    yield from window


@WORKLOAD.limit("plain loop, per row")
def plain_per_row(folder: Path) -> Pass:
    """Do it with generators, a row at a time."""

    def batches() -> Iterator[Any]:
        features: list[Any] = []
        targets: list[Any] = []
        for line in _shuffled(_interleaved(folder)):
            x, y = _list_row(line)
            features.append(x)
            targets.append(y)
            if len(features) == BATCH:
                yield np.array(features), np.array(targets)
                features, targets = [], []
        if features:
            yield np.array(features), np.array(targets)

    return batches


@WORKLOAD.limit("plain loop, batched")
def plain_batched(folder: Path) -> Pass:
    """Shuffle lines with generators, parse 32 of them at once."""

    def parsed(lines: list[bytes]) -> tuple[Any, Any]:
        values = np.fromstring(b",".join(lines), np.float32, sep=",").reshape(len(lines), -1)
        return (values[:, :-1] - MEAN) / STD, values[:, -1]

    def batches() -> Iterator[Any]:
        lines: list[bytes] = []
        for line in _shuffled(_interleaved(folder)):
            lines.append(line)
            if len(lines) == BATCH:
                yield parsed(lines)
                lines = []
        if lines:
            yield parsed(lines)

    return batches


@WORKLOAD.limit("np.loadtxt, whole files, columns")
def loadtxt(folder: Path) -> Pass:
    """Parse each file at once, shuffle all rows, slice."""

    def batches() -> Iterator[Any]:
        values = np.concatenate([np.loadtxt(path, np.float32, delimiter=",", skiprows=1) for path in paths(folder)])
        order = np.random.permutation(len(values))
        for start in range(0, len(values), BATCH):
            chosen = values[order[start : start + BATCH]]
            yield (chosen[:, :-1] - MEAN) / STD, chosen[:, -1]

    return batches


@WORKLOAD.limit("pyarrow, whole files, columns", "pyarrow")
def arrow(folder: Path) -> Pass:
    """Do the same with pyarrow's CSV reader."""
    from pyarrow import csv

    def batches() -> Iterator[Any]:
        tables = [csv.read_csv(path) for path in paths(folder)]
        values = np.concatenate(
            [np.stack([column.to_numpy() for column in table.columns], 1).astype(np.float32) for table in tables]
        )
        order = np.random.permutation(len(values))
        for start in range(0, len(values), BATCH):
            chosen = values[order[start : start + BATCH]]
            yield (chosen[:, :-1] - MEAN) / STD, chosen[:, -1]

    return batches


WORKLOAD.target("aiodata, vectorized=True", "tf.data", 7, "tf.data's best form")
WORKLOAD.target("aiodata, vectorized=True", "tf.data, textbook", 20)
WORKLOAD.target("aiodata, vectorized=True", ("torch", "Grain", "SPDL", "tf.data"), 1.5, "the fastest peer")
WORKLOAD.target("aiodata, vectorized=True", "plain loop, batched", 1.2)
WORKLOAD.target("aiodata, vectorized=True", ("np.loadtxt", "pyarrow"), 0.6, "the columnar loop")
WORKLOAD.target("aiodata, per-row function", "tf.data, textbook", 4)
WORKLOAD.target("aiodata, per-row function", ("torch", "Grain", "SPDL"), 1, "the fastest peer")
WORKLOAD.target("aiodata, per-row function", "plain loop, per row", 0.8)
