"""Memory of the readers of files: flat over 2 GB of records, however many files they come from.

A file of some tens of MB is read again and again under its name, by a process of its own for each format. Its peak
when a tenth has been read is compared with the peak at the end. That takes some minutes; with one or two rounds a
tenth is read.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import json
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Row
from benchmarks.parts.memory_use import resident

BYTES = 2_000_000_000
FILE_BYTES = 50_000_000
RECORD_BYTES = 1000
RECORDS = FILE_BYTES // RECORD_BYTES
SAMPLES = 2000
LIMIT_MB = 8.0
"""What the peak may grow by: allocators keep some of what they were given back."""


def measure(rounds: int) -> list[Row]:
    """Read with every reader, once; the rounds say how much."""
    files = round((BYTES if rounds > 2 else BYTES / 10) / FILE_BYTES)
    rows = []
    for name, (write, _) in READERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            try:
                write(path)
            except ImportError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            command = [sys.executable, __file__, name, str(files), str(path)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        before, early, late = json.loads(done.stdout)
        rows += [
            Row("peak before", [before], "MB", stage=name),
            Row("after 10%", [early], "MB", stage=name),
            Row("at the end", [late], "MB", stage=name),
            Row("growth", [late - early], "MB", limit=LIMIT_MB, stage=name),
        ]
    return rows


def _work(name: str, files: int, path: str) -> tuple[float, float, float]:
    """Read a file so many times; give the peak before, after a tenth of the records, and at the end."""
    import aiodata  # noqa: F401 - what it takes is there before

    before = resident()[0]
    dataset = READERS[name][1]([path] * files)
    records = files * (SAMPLES if name == "tar" else RECORDS)
    count, early = 0, 0.0
    for _ in dataset:
        count += 1
        if count == records // 10:
            early = resident()[0]
    assert count == records, count
    return before, early, resident()[0]


# What is written: 50,000 records of about 1,000 bytes


def _contents() -> Any:
    generator = np.random.default_rng(0)
    return (generator.bytes(RECORD_BYTES) for _ in range(RECORDS))


def _texts() -> Any:
    return (content.hex()[:RECORD_BYTES] for content in _contents())


def _numbers() -> Any:
    return np.random.default_rng(0).standard_normal((RECORDS, RECORD_BYTES // 8))


def _write_records(path: Path) -> None:
    from aiodata import TFRecordWriter

    with TFRecordWriter(path) as writer:
        for content in _contents():
            writer.write(content)


def _write_bytes(path: Path) -> None:
    with open(path, "wb") as file:
        file.writelines(_contents())


def _write_lines(path: Path, open_file: Any = open) -> None:
    with open_file(path, "wt") as file:
        file.writelines(text + "\n" for text in _texts())


def _write_csv(path: Path) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows((number, number / 7, text) for number, text in enumerate(_texts()))


def _write_json(path: Path) -> None:
    with open(path, "w") as file:
        for number, text in enumerate(_texts()):
            file.write(json.dumps({"id": number, "x": [number / 7] * 3, "text": text}) + "\n")


def _table() -> Any:
    import pyarrow as pa

    numbers = _numbers()
    lists = pa.FixedSizeListArray.from_arrays(numbers.ravel(), numbers.shape[1])
    return pa.table({"id": np.arange(RECORDS), "x": lists})


def _write_parquet(path: Path) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(_table(), path, row_group_size=RECORDS // 4, compression=None)


def _write_arrow(path: Path) -> None:
    import pyarrow as pa

    table = _table()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, RECORDS // 40)


def _write_npy(path: Path) -> None:
    with open(path, "wb") as file:
        np.save(file, _numbers())


def _write_tar(path: Path) -> None:
    # A sample takes tens of microseconds, whatever its size, so they are large.
    generator = np.random.default_rng(0)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(SAMPLES):
            info = tarfile.TarInfo(f"{number:06d}.bin")
            info.size = FILE_BYTES // SAMPLES
            archive.addfile(info, io.BytesIO(generator.bytes(info.size)))


def _write_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE contents (id INTEGER PRIMARY KEY, content BLOB)")
        connection.executemany("INSERT INTO contents VALUES (?, ?)", enumerate(_contents()))
    connection.close()


def _read_database(paths: list[str]) -> Any:
    """Read all in one query, whose rows are those of the table again and again."""
    from aiodata import SqlDataset

    passes = f"WITH RECURSIVE passes(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM passes WHERE n < {len(paths)})"
    query = f"{passes} SELECT n, id, content FROM passes CROSS JOIN contents"
    return SqlDataset("sqlite", paths[0], query, (np.int64, np.int64, bytes))


def _read(reader: str, *arguments: Any, **options: Any) -> Callable[[list[str]], Any]:
    return lambda paths: getattr(importlib.import_module("aiodata"), reader)(paths, *arguments, **options)


READERS: dict[str, tuple[Callable[[Path], None], Callable[[list[str]], Any]]] = {
    "text lines": (_write_lines, _read("TextLineDataset")),
    "text lines, GZIP": (
        partial(_write_lines, open_file=partial(gzip.open, compresslevel=1)),
        _read("TextLineDataset", "GZIP"),
    ),
    "TFRecord": (_write_records, _read("TFRecordDataset")),
    "TFRecord, 4 files at once": (_write_records, _read("TFRecordDataset", num_parallel_reads=4)),
    "fixed length": (_write_bytes, _read("FixedLengthRecordDataset", RECORD_BYTES)),
    "CSV": (_write_csv, _read("CsvDataset", [np.int64, np.float64, bytes])),
    "JSON lines": (_write_json, _read("JsonLinesDataset")),
    "Parquet": (_write_parquet, _read("ParquetDataset")),
    "Arrow": (_write_arrow, _read("ArrowDataset")),
    "npy": (_write_npy, _read("NpyDataset")),
    "tar": (_write_tar, _read("TarDataset")),
    "SQLite": (_write_database, _read_database),
}


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent.parent))
    reader, times, file = sys.argv[1:]
    print(json.dumps(_work(reader, int(times), file)))
