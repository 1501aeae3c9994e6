"""Stop in the middle of an epoch, and go on at the very next batch.

The first half reads some batches and saves the place where it stands to a JSON file, which takes some kilobytes
although thousands of lines wait in the shuffle and others have been read ahead. The second half begins anew from that
file alone, as another process would after a crash. What both have read is compared with a run that nobody stopped.

    python examples/resume.py
    python examples/resume.py --stop-after 250 --state place.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from aiodata import Dataset, TextLineDataset, decode_csv

Batch: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[np.float64]]
"""The flights' carriers, and their delays at departure in minutes."""

DATA = Path(__file__).resolve().parent / "data" / "flights"


def parse(line: bytes) -> tuple[bytes, np.float64]:
    """Turn a line of a file into a carrier and a delay; a cancelled flight's is not a number."""
    delay, carrier = decode_csv(line, [np.nan, bytes], select_cols=[5, 9])
    return carrier, delay


def batches() -> Dataset[Batch]:
    """Describe the pipeline: two epochs, shuffled, parsed in parallel, fetched ahead."""
    files = Dataset.list_files(str(DATA / "flights-*.csv"), seed=7).repeat(2)
    lines = files.interleave(lambda path: TextLineDataset(path).skip(1), cycle_length=5, num_parallel_calls=5)
    return lines.shuffle(5_000, seed=7).map(parse, num_parallel_calls=4).batch(100).prefetch(2)


async def read_and_stop(stop_after: int) -> tuple[list[Batch], dict[str, Any]]:
    """Read some batches and leave; give them, and the place where the reading stopped."""
    read: list[Batch] = []
    async with batches().iterate() as iterator:
        async for batch in iterator:
            read.append(batch)
            if len(read) == stop_after:
                break
        return read, iterator.state_dict()


async def go_on(state: dict[str, Any]) -> list[Batch]:
    """Read everything behind a saved place."""
    return [batch async for batch in batches().iterate(state)]


async def read_all() -> list[Batch]:
    """Read everything without a stop."""
    return [batch async for batch in batches()]


def same(one: Batch, other: Batch) -> bool:
    """Compare two batches value by value."""
    return np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1], equal_nan=True)


def demonstrate(path: Path, stop_after: int) -> str | None:
    """Run the example; give what went wrong, if anything did."""
    before, state = asyncio.run(read_and_stop(stop_after))
    path.write_text(json.dumps(state), encoding="utf-8")
    print(f"stopped after {len(before)} batches; the state takes {path.stat().st_size:,} bytes")

    after = asyncio.run(go_on(json.loads(path.read_text(encoding="utf-8"))))
    print(f"went on with {len(after)} batches")

    both, whole = before + after, asyncio.run(read_all())
    if len(both) != len(whole) or not all(map(same, both, whole)):
        return "the batches differ from those of a run that was not stopped"
    print(f"together they are the {len(whole)} batches of a run that was not stopped, value by value")
    return None


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Read the command line and run the example."""
    parser = argparse.ArgumentParser(description="Stop in the middle of an epoch, and go on at the next batch.")
    parser.add_argument("--stop-after", type=int, default=173, help="batches before the stop (default: 173)")
    parser.add_argument("--state", type=Path, help="file for the state (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        return demonstrate(options.state or Path(folder) / "state.json", options.stop_after)


if __name__ == "__main__":
    sys.exit(main())
