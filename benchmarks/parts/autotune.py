"""AUTOTUNE beside what a user would set by hand: the usual values, and the best of several, on three workloads."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from aiodata import AUTOTUNE, Dataset, FixedLengthRecordDataset, TextLineDataset, aread_file, read_file
from benchmarks.measuring import Row, adrain, drain, interleaved, row_of
from benchmarks.workloads import csv, images, remote

WITHIN = 1.1
"""How many times as long as the best value by hand AUTOTUNE may take."""


def measure(rounds: int) -> list[Row]:
    """Time the CSV chain, the decoding of images, and remote objects in coroutines, threads and readers."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        csv.prepare(Path(folder))
        chain = partial(_csv, folder)
        rows += _table("csv, per row", chain, csv.FILES * csv.ROWS, rounds, drain, "5", [None, 1, 2, 5])
        lines = partial(_lines, folder)
        rows += _table("csv, interleave", lines, csv.FILES * csv.ROWS, rounds, drain, "5", [None, 1, 2, 5])
    if importlib.util.find_spec("PIL") is not None:
        with tempfile.TemporaryDirectory() as folder:
            images.prepare(Path(folder))
            decoded = partial(_images, folder)
            rows += _table("images", decoded, images.IMAGES, rounds, drain, "2", [1, 2, 4, 8])
    if importlib.util.find_spec("aiohttp") is not None:
        rows += _remote(rounds)
    return rows


def _table(
    what: str,
    make: Callable[[int | None], Any],
    count: int,
    rounds: int,
    run: Callable[[Any], Any],
    usual: str,
    values: list[int | None],
) -> list[Row]:
    """Time a pipeline with each value by hand, and with AUTOTUNE beside the usual one and the best."""
    competitors = {f"{what}, {value}": partial(run, make(value)) for value in values}
    tuned = f"{what}, AUTOTUNE"
    seconds = interleaved({**competitors, tuned: partial(run, make(AUTOTUNE))}, rounds)
    best = min(competitors, key=lambda name: median(seconds[name]))
    rows = [row_of(seconds, name, count) for name in competitors]
    rows.append(row_of(seconds, tuned, count, f"{what}, {usual}", 1.0 if best != f"{what}, {usual}" else WITHIN))
    return [*rows, row_of(seconds, tuned, count, best, WITHIN)]


def _csv(folder: str, calls: int | None) -> Any:
    files = Dataset.list_files(f"{folder}/*.csv", seed=1)
    lines: Any = files.interleave(lambda path: TextLineDataset(path).skip(1), csv.CYCLE)
    ahead = 1 if calls is None or calls > 0 else AUTOTUNE
    return lines.shuffle(csv.WINDOW, seed=1).map(csv.list_row, calls).batch(csv.BATCH).prefetch(ahead)


def _lines(folder: str, calls: int | None) -> Any:
    files = Dataset.list_files(f"{folder}/*.csv", seed=1)
    return files.interleave(TextLineDataset, csv.CYCLE, num_parallel_calls=calls).batch(csv.BATCH)


def _images(folder: str, calls: int | None) -> Any:
    files: Any = Dataset.list_files(f"{folder}/*.jpg", shuffle=False)
    return files.map(images.read_and_decode, calls).batch(images.BATCH).prefetch(2)


def _adrained(dataset: Any) -> None:
    asyncio.run(adrain(dataset))


def _remote(rounds: int) -> list[Row]:
    with subprocess.Popen(remote.server(Path()), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        os.environ["AIODATA_BENCHMARK_SERVER"] = server.stdout.readline().strip()
        try:
            names: Any = Dataset.from_tensor_slices(remote.urls())
            read = partial(FixedLengthRecordDataset, record_bytes=remote.RECORD)
            kinds: dict[str, Callable[[int | None], Any]] = {
                "remote, coroutines": lambda calls: names.map(aread_file, calls),
                "remote, threads": lambda calls: names.map(read_file, calls),
                "remote, readers": lambda calls: names.interleave(read, 64, num_parallel_calls=calls).batch(
                    remote.BATCH
                ),
            }
            rows = []
            for what, make in kinds.items():
                rows += _table(what, make, remote.OBJECTS, rounds, _adrained, "16", [16, 32, 64])
            return rows
        finally:
            server.stdin.close()
