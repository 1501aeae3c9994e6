"""How late are the flights of three airlines? Columns of Parquet files, filtered while they are read.

The flights are written to a Parquet file a month, as they would come from a data lake. Of the nineteen columns four are
read, and of the rows those that the filter lets pass; the parts of a file that hold none of them are skipped. Batches
come as numpy arrays without a step of Python for each row. The result is compared with the same sums made from the CSV
files.

    python examples/parquet.py
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pyarrow import csv, parquet

from aiodata import Dataset, ParquetDataset

Batch: TypeAlias = dict[str, npt.NDArray[Any]]
"""The chosen columns, (n,) each."""

DATA = Path(__file__).resolve().parent / "data" / "flights"
AIRLINES = ["AA", "DL", "UA"]
MISSING = -9999
"""Stands for the delay of a flight that has not arrived: int64 has no value of its own for that."""


def write_months(folder: Path) -> None:
    """Write each month's flights, sorted by airline, so that a group of rows holds few of them."""
    for path in sorted(DATA.glob("flights-*.csv")):
        table = csv.read_csv(path).sort_by("carrier")
        parquet.write_table(table, folder / f"{path.stem}.parquet", row_group_size=250, write_page_checksum=True)


def batches(folder: Path) -> Dataset[Batch]:
    """Describe the pipeline: two files at a time, shuffled, batched, fetched ahead."""
    flights = ParquetDataset(
        sorted(folder.glob("*.parquet")),
        columns=["carrier", "arr_delay", "distance", "time_hour"],
        filter=[("carrier", "in", AIRLINES), ("distance", ">", 500)],
        null_values={"arr_delay": MISSING},
        num_parallel_reads=2,
    )
    return flights.shuffle(1_000, seed=7).batch(256).prefetch(2)


async def read_delays(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Count the flights that arrived and add up their delays, by airline."""
    flights: Counter[str] = Counter()
    minutes: Counter[str] = Counter()
    async for batch in batches(folder):
        assert batch["time_hour"].dtype == np.dtype("M8[ms]")  # as Parquet keeps it
        for airline in AIRLINES:
            delays = batch["arr_delay"][(batch["carrier"] == airline) & (batch["arr_delay"] != MISSING)]
            flights[airline] += len(delays)
            minutes[airline] += int(delays.sum())
    return flights, minutes


def delays_of_csv() -> tuple[Counter[str], Counter[str]]:
    """Do the same with the CSV files and plain Python."""
    flights: Counter[str] = Counter()
    minutes: Counter[str] = Counter()
    for path in DATA.glob("flights-*.csv"):
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            flight = dict(zip(header.split(","), line.split(","), strict=True))
            if flight["carrier"] in AIRLINES and int(flight["distance"]) > 500 and flight["arr_delay"]:
                flights[flight["carrier"]] += 1
                minutes[flight["carrier"]] += int(flight["arr_delay"])
    return flights, minutes


def main() -> str | None:
    """Run the example; give what went wrong, if anything did."""
    with tempfile.TemporaryDirectory() as name:
        write_months(Path(name))
        flights, minutes = asyncio.run(read_delays(Path(name)))
    for airline in AIRLINES:
        mean = minutes[airline] / flights[airline]
        print(f"{airline}: {flights[airline]:5,} flights of more than 500 miles, {mean:5.1f} minutes late on average")
    if (flights, minutes) != delays_of_csv():
        return "the sums differ from those of the CSV files"
    print("the sums are those of the CSV files")
    return None


if __name__ == "__main__":
    sys.exit(main())
