"""How the cost of an element grows: with elements, files, open files, stages, and an element's size.

    python -m benchmarks --only growth
    python -m benchmarks.parts.growth PLOT.svg     also draws it, with matplotlib

A figure is the processor time of a whole pass divided by its elements; it should stay flat.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from aiodata import Dataset, TextLineDataset
from benchmarks.measuring import Row

LINES = 200_000
"""Lines in all files together, unless there are more files than that allows to have ten lines each."""
MOST_BYTES = 256 << 20
"""What elements of one size may come to in a pass."""
LONG_SECONDS = 3.0


def measure(rounds: int) -> list[Row]:
    """Time every size of every sweep; the best of at most three rounds counts, of long ones a single one."""
    rows = []
    for name, (unit, sizes, prepare) in SWEEPS.items():
        with tempfile.TemporaryDirectory() as folder:
            for size in sizes:
                count, run = prepare(Path(folder), size)
                seconds = [_timed(run)]
                while len(seconds) < min(rounds, 3) and seconds[0] < LONG_SECONDS:
                    seconds.append(_timed(run))
                figures = [one / count * 1e6 for one in seconds]
                rows.append(Row(f"{size:,}", figures, unit, take="best", stage=name))
                print(name, f"{size:,}", min(figures), file=sys.stderr)
    return rows


def _timed(run: Callable[[], Any]) -> float:
    start = process_time()
    run()
    return process_time() - start


def _drain(dataset: Any) -> None:
    for _ in dataset:
        pass


def _increment(x: Any) -> Any:
    return x + 1


def _elements(folder: Path, size: int) -> tuple[int, Callable[[], Any]]:
    dataset = Dataset.range(size).shuffle(10_000, seed=1).map(_increment, vectorized=True).batch(1000)
    return size, lambda: _drain(dataset)


def _mapped(folder: Path, size: int) -> tuple[int, Callable[[], Any]]:
    dataset = Dataset.range(size).map(_increment).batch(100)
    return size, lambda: _drain(dataset)


def _files(folder: Path, size: int) -> tuple[int, Callable[[], Any]]:
    lines = 20
    names = _written(folder / f"files-{size}", size, lines)
    dataset = Dataset.from_tensor_slices(names).interleave(TextLineDataset, cycle_length=16).batch(1000)
    return size * lines, lambda: _drain(dataset)


def _width(folder: Path, size: int) -> tuple[int, Callable[[], Any]]:
    names = _written(folder / "width", 1000, LINES // 1000)
    dataset = Dataset.from_tensor_slices(names).interleave(TextLineDataset, cycle_length=size).batch(1000)
    return LINES, lambda: _drain(dataset)


def _depth(folder: Path, size: int) -> tuple[int, Callable[[], Any]]:
    dataset: Any = Dataset.range(50_000)
    for _ in range(size):
        dataset = dataset.map(_increment)
    return 50_000 * size, lambda: _drain(dataset.batch(100))


def _bytes(folder: Path, size: int) -> tuple[int, Callable[[], Any]]:
    count = max(4, min(20_000, MOST_BYTES // size))
    array = np.zeros(size // 8)

    def same() -> Iterator[Any]:
        return repeat(array, count)

    dataset: Any = Dataset.from_generator(same).map(_itself).shuffle(2, seed=1).prefetch(2)
    return count, lambda: _drain(dataset)


def _itself(x: Any) -> Any:
    return x


def _written(folder: Path, files: int, lines: int) -> list[str]:
    """Write so many files of short lines, in folders of a thousand."""
    names = []
    content = b"".join(b"%d,%d\n" % (line, line * 7) for line in range(lines))
    for number in range(files):
        inner = folder / f"{number // 1000:03}"
        if number % 1000 == 0:
            inner.mkdir(parents=True, exist_ok=True)
        name = inner / f"{number:06}.csv"
        if not name.exists():
            name.write_bytes(content)
        names.append(str(name))
    return names


SWEEPS: dict[str, tuple[str, list[int], Callable[[Path, int], tuple[int, Callable[[], Any]]]]] = {
    "elements, as columns": ("us/element", [10**power for power in range(4, 9)], _elements),
    "elements, each mapped": ("us/element", [10**power for power in range(4, 8)], _mapped),
    "files": ("us/line", [10, 100, 1000, 10_000, 100_000], _files),
    "interleaved files": ("us/line", [1, 10, 100, 1000], _width),
    "stages": ("us/element and stage", [1, 2, 5, 10, 20, 50], _depth),
    "bytes of an element": ("us/element", [8, 1 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20], _bytes),
}


def plot(path: str, rows: list[Row]) -> None:
    """Draw each sweep, both axes logarithmic, as an SVG file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "aiodata"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(12, 6.5), layout="constrained")
    for axis, (name, (unit, _, _)) in zip(axes.flat, SWEEPS.items(), strict=True):
        own = [row for row in rows if row.stage == name]
        axis.loglog([int(row.what.replace(",", "")) for row in own], [row.figure for row in own], "o-")
        axis.set(title=name, ylabel=unit, ylim=(1e-3, 1e3))
        axis.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    found = measure(3)
    for found_row in found:
        print(f"| {found_row.stage} | {found_row.what} | {found_row.figure:.3g} | {found_row.unit} |")
    plot(sys.argv[1], found)
