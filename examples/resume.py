"""Kill a training run in the middle of an epoch, and go on at the very next batch.

A process learns from shuffled flights and saves a checkpoint every 50 batches: the place where the pipeline stands,
which takes some kilobytes although thousands of lines wait in the shuffle and others have been read ahead, and the
model. It is killed with signal 9, so it can save nothing more, and a new process goes on from the last checkpoint.
What both have read and learned is compared with a run that nobody killed.

    python examples/resume.py
    python examples/resume.py --kill-after 300 --folder checkpoints
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from aiodata import CheckpointManager, Dataset, TextLineDataset, decode_csv

Batch: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""The flights' delays at departure and at arrival, in minutes, each (100,)."""

DATA = Path(__file__).resolve().parent / "data" / "flights"
SAVE_EVERY = 50


def parse(line: bytes) -> tuple[np.float64, np.float64]:
    """Turn a line of a file into the two delays; those of a cancelled flight are not numbers."""
    departure, arrival = decode_csv(line, [np.nan, np.nan], select_cols=[5, 8])
    return departure, arrival


def batches() -> Dataset[Batch]:
    """Describe the pipeline: two epochs, shuffled, parsed in parallel, fetched ahead."""
    files = Dataset.list_files(str(DATA / "flights-*.csv"), seed=7).repeat(2)
    lines = files.interleave(lambda path: TextLineDataset(path).skip(1), cycle_length=5, num_parallel_calls=5)
    return lines.shuffle(5_000, seed=7).map(parse, num_parallel_calls=4).batch(100).prefetch(2)


def learn(model: npt.NDArray[np.float64], batch: Batch) -> None:
    """Move a line, which tells the delay at arrival from that at departure, towards a batch."""
    departure, arrival = (delays[~np.isnan(batch[1])] / 60 for delays in batch)
    errors = model[0] * departure + model[1] - arrival
    model -= 0.05 * np.array([(errors * departure).mean(), errors.mean()])


async def train(folder: Path) -> None:
    """Learn from all batches behind the last checkpoint in a folder; print a line for each."""
    manager = CheckpointManager(folder, max_to_keep=2)
    step, place, model = 0, None, np.zeros(2)
    if (found := manager.restore()) is not None:
        step, saved = found
        place, model = saved["data"], np.array(saved["model"])
    async with batches().iterate(place) as iterator:
        async for batch in iterator:
            step += 1
            learn(model, batch)
            print(step, crc32(np.array(batch).tobytes()), flush=True)
            if step % SAVE_EVERY == 0:
                # A larger model goes to a file of its own, written before, and its name goes here.
                await manager.asave(step, {"data": iterator.state_dict(), "model": model.tolist()})
    print("model", *model, flush=True)


def run(folder: Path, kill_after: int | None = None) -> list[str]:
    """Train in a process of its own, and kill it when it has read so many batches; give the lines that it printed."""
    command = [sys.executable, __file__, "--train", "--folder", str(folder)]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.endswith("\n"):
                break  # what a process was printing when it was killed
            lines.append(line.strip())
            if len(lines) == kill_after:
                process.kill()
    if kill_after is None and process.returncode != 0:
        sys.exit("the training failed")
    return lines


def demonstrate(folder: Path, kill_after: int) -> str | None:
    """Run the example; give what went wrong, if anything did."""
    killed = run(folder, kill_after)
    newest = CheckpointManager(folder).latest_checkpoint
    what = "there was no checkpoint yet"
    if newest is not None:
        what = f"the last checkpoint, {Path(newest).name}, takes {Path(newest).stat().st_size:,} bytes"
    print(f"killed after {kill_after} batches; {what}")

    resumed = run(folder)
    print(f"a new process went on with batch {resumed[0].split()[0]}")

    with tempfile.TemporaryDirectory() as other:
        whole = run(Path(other))
    begun = int(resumed[0].split()[0]) - 1
    if killed[:begun] + resumed != whole or not set(killed) <= set(whole):
        return "the batches or the model differ from those of a run that nobody killed"
    print(f"the {len(whole) - 1} batches and the {whole[-1]} are those of a run that nobody killed, bit by bit")
    return None


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Read the command line and run the example."""
    parser = argparse.ArgumentParser(description="Kill a training run, and go on at the next batch.")
    parser.add_argument("--kill-after", type=int, default=173, help="batches before the end (default: 173)")
    parser.add_argument("--folder", type=Path, help="folder for the checkpoints, empty at first (default: a new one)")
    parser.add_argument(
        "--train", action="store_true", help="train and do nothing else; the example starts this itself"
    )
    options = parser.parse_args(arguments)
    if options.train:
        asyncio.run(train(options.folder))
        return None
    with tempfile.TemporaryDirectory() as folder:
        return demonstrate(options.folder or Path(folder), options.kill_after)


if __name__ == "__main__":
    sys.exit(main())
