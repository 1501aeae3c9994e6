"""Flights written as tf.train.Examples to TFRecord files, and read back in batches of columns, without TensorFlow.

Each month becomes a compressed file, written by a coroutine of its own; a file appears under its name when it is
complete. Reading shuffles records, which are still bytes, and parses whole batches at once, which costs a fraction of
parsing them one by one. What comes back is compared with the CSV files.

    python examples/tfrecord.py
"""

from __future__ import annotations

import asyncio
import csv
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from aiodata import Dataset, FixedLenFeature, TFRecordDataset, TFRecordWriter, encode_example, parse_example

DATA = Path(__file__).resolve().parent / "data" / "flights"
FEATURES = {
    "carrier": FixedLenFeature([], bytes),
    "distance": FixedLenFeature([], "float32"),
    "arr_delay": FixedLenFeature([], "int64", default_value=-9999),  # a flight that never arrived has none
}


async def write_month(source: Path, folder: Path) -> None:
    """Write a month's flights to a TFRecord file."""
    with source.open(encoding="utf-8", newline="") as file:
        flights = list(csv.DictReader(file))
    async with TFRecordWriter(folder / f"{source.stem}.tfrecord", "GZIP") as writer:
        for flight in flights:
            await writer.awrite(encode_example(features_of(flight)))


def features_of(flight: dict[str, str]) -> dict[str, Any]:
    """Choose what to write of a flight."""
    features: dict[str, Any] = {"carrier": flight["carrier"].encode(), "distance": float(flight["distance"])}
    if flight["arr_delay"] not in ("", "NA"):
        features["arr_delay"] = int(float(flight["arr_delay"]))
    return features


def batches(folder: Path) -> Dataset[Any]:
    """Describe the pipeline: files two at a time, records shuffled, batches parsed at once."""
    records = TFRecordDataset(
        Dataset.list_files(f"{folder}/*.tfrecord", seed=3), compression_type="GZIP", num_parallel_reads=2
    )
    parse = partial(parse_example, features=FEATURES)
    return records.shuffle(2_000, seed=3).batch(128).map(parse).prefetch(2)


async def main() -> None:
    """Write, read back, and compare."""
    sources = sorted(DATA.glob("flights-*.csv"))
    expected = []
    for source in sources:
        with source.open(encoding="utf-8", newline="") as file:
            for flight in csv.DictReader(file):
                found = features_of(flight)
                expected.append((found["carrier"], found["distance"], found.get("arr_delay", -9999)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await asyncio.gather(*(write_month(source, folder) for source in sources))
        rows: list[Any] = []
        async for batch in batches(folder):
            rows += zip(batch["carrier"], batch["distance"].tolist(), batch["arr_delay"].tolist(), strict=True)
    if sorted(rows) != sorted(expected):
        sys.exit("what was read is not what was written")
    print(f"{len(rows)} flights of {len(sources)} files came back as they were written")


if __name__ == "__main__":
    asyncio.run(main())
