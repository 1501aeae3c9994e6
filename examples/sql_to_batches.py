"""Train from a database: batches of a query's rows, and going on in the middle without reading what came before.

The flights are written to a SQLite database, which stands for any: another URL, such as `postgresql://user@host/name`,
is all that changes. The query has parameters, which are sent beside it and never pasted into its text. Half of the
batches are read, the place is saved as JSON, and another run goes on at the very next batch. It asks the database only
for the rows from a key on. What both have read is compared with a run that nobody stopped, and with the database's own
sums.

    python examples/sql_to_batches.py
    python examples/sql_to_batches.py --airport LGA --miles 1000
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from aiodata import Dataset

Batch: TypeAlias = dict[str, npt.NDArray[Any]]
"""The columns of the query, (n,) each."""

DATA = Path(__file__).resolve().parent / "data" / "flights"
ROWS = """
SELECT id, carrier, distance, arr_delay
FROM flights
WHERE origin = :airport AND distance >= :miles
"""
SUMS = "SELECT count(*), sum(distance), sum(arr_delay) FROM flights WHERE origin = ? AND distance >= ?"
LATE_UNKNOWN = -9999
"""Stands for the delay of a flight that has not arrived: NULL would be None, which is no number."""


def write_database(path: Path) -> None:
    """Make a table of all flights."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "CREATE TABLE flights "
            "(id INTEGER PRIMARY KEY, origin TEXT, carrier TEXT, distance INTEGER, arr_delay INTEGER)"
        )
        for month in sorted(DATA.glob("flights-*.csv")):
            with month.open(encoding="utf-8", newline="") as file:
                flights = [
                    (line["origin"], line["carrier"], int(line["distance"]), line["arr_delay"] or None)
                    for line in csv.DictReader(file)
                ]
            connection.executemany(
                "INSERT INTO flights (origin, carrier, distance, arr_delay) VALUES (?, ?, ?, ?)", flights
            )
    connection.close()


def batches(path: Path, airport: str, miles: int) -> Dataset[Batch]:
    """Describe the pipeline: rows in the key's order, shuffled, batched, fetched ahead."""
    rows = Dataset.from_sql(
        f"sqlite:///{path}",
        ROWS,
        {"airport": airport, "miles": miles},
        key="id",
        batch_rows=500,
        null_values={"arr_delay": LATE_UNKNOWN},
    )
    return rows.shuffle(1_000, seed=7).batch(128).prefetch(2)


async def read_and_stop(ds: Dataset[Batch], count: int) -> tuple[list[Batch], str]:
    """Read some batches and leave; give them, and the place where the reading stopped."""
    read: list[Batch] = []
    async with ds.iterate() as iterator:
        async for batch in iterator:
            read.append(batch)
            if len(read) == count:
                break
        return read, json.dumps(iterator.state_dict())


async def read_on(ds: Dataset[Batch], place: str | None = None) -> list[Batch]:
    """Read everything, or everything behind a saved place."""
    return [batch async for batch in ds.iterate(None if place is None else json.loads(place))]


def same(one: Batch, other: Batch) -> bool:
    """Compare two batches value by value."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def sums(read: list[Batch]) -> tuple[int, int, int]:
    """Count the flights, and add up their miles and the minutes that they were late."""
    late = [batch["arr_delay"][batch["arr_delay"] != LATE_UNKNOWN] for batch in read]
    miles = sum(int(batch["distance"].sum()) for batch in read)
    return sum(len(batch["id"]) for batch in read), miles, sum(int(minutes.sum()) for minutes in late)


def demonstrate(path: Path, airport: str, miles: int) -> str | None:
    """Run the example; give what went wrong, if anything did."""
    write_database(path)
    whole = asyncio.run(read_on(batches(path, airport, miles)))
    before, place = asyncio.run(read_and_stop(batches(path, airport, miles), len(whole) // 2))
    after = asyncio.run(read_on(batches(path, airport, miles), place))
    print(f"{len(before)} batches, then {len(after)} from a place that took {len(place):,} bytes")
    if len(before) + len(after) != len(whole) or not all(map(same, before + after, whole)):
        return "the two parts are not the batches of a run that was not stopped"
    print(f"together they are the {len(whole)} batches of a run that was not stopped, value by value")

    connection = sqlite3.connect(path)
    expected = connection.execute(SUMS, (airport, miles)).fetchone()
    connection.close()
    flights, distance, minutes = sums(whole)
    if (flights, distance, minutes) != expected:
        return f"the sums are {(flights, distance, minutes)}, but {expected} in the database"
    print(f"{airport}: {flights:,} flights, {distance:,} miles, {minutes:,} minutes late, as the database says")
    return None


def main() -> str | None:
    """Read the arguments and run the example."""
    parser = argparse.ArgumentParser(description="Train from a database.")
    parser.add_argument("--airport", default="JFK", help="where the flights begin")
    parser.add_argument("--miles", type=int, default=500, help="how far they go at least")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return demonstrate(Path(folder) / "flights.db", arguments.airport, arguments.miles)


if __name__ == "__main__":
    sys.exit(main())
