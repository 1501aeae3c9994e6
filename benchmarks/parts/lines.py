"""Reading text files line by line."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aiodata import TextLineDataset
from benchmarks.measuring import Row, adrain, drain, interleaved, rows_of

FLIGHTS = sorted((Path(__file__).parent.parent.parent / "examples" / "data" / "flights").glob("*.csv"))
BYTES = 20_000_000
BATCH = 1000
LIMIT = 2.0


def measure(rounds: int) -> list[Row]:
    """Time many small files and one large one beside Python's own loop over a file."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.txt"
        large.write_bytes(b"".join(b"%08d" % i + b"x" * (20 + i * 7 % 73) + b"\n" for i in range(BYTES // 65)))
        files = [str(path) for path in FLIGHTS]
        return [*_measured(f"{len(files)} files", files, rounds), *_measured("20 MB", [str(large)], rounds)]


def _measured(name: str, files: Sequence[str], rounds: int) -> list[Row]:
    dataset = TextLineDataset(files if len(files) > 1 else files[0])
    batches = dataset.batch(BATCH)
    plain = f"plain loop, {name}"
    seconds = interleaved(
        {
            plain: lambda: by_hand(files),
            f"aiodata, {name}, for": lambda: drain(dataset),
            f"aiodata, {name}, async for": lambda: asyncio.run(adrain(dataset)),
            f"aiodata, {name}, batch({BATCH}), for": lambda: drain(batches),
            f"aiodata, {name}, batch({BATCH}), async for": lambda: asyncio.run(adrain(batches)),
        },
        rounds,
    )
    return rows_of(seconds, by_hand(files), plain, LIMIT)


def by_hand(files: Sequence[str | os.PathLike[str]]) -> int:
    """Read all lines; give their number."""
    count = 0
    for path in files:
        with open(path, "rb") as file:
            for line in file:
                line.rstrip(b"\r\n")
                count += 1
    return count
