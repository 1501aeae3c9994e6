"""What each reader of files costs, beside the plain reader of its format in the standard library, numpy or pyarrow.

Both sides do the same: the elements one by one, then batches of 256. A format whose package is not installed is left
out, and standard error says why.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
import struct
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import aiodata
from aiodata import Dataset, image
from benchmarks.measuring import Row, drain, interleaved, ratios

BATCH = 256
FEW = 30_000
BLOCK_LIMIT = 1.5
"""For what is read as blocks of numbers: the reader may take so many times as long as the plain one."""

Elements = Iterable[Any]


class Case(NamedTuple):
    """A line of the table.

    Args:
        name: The format, and the plain reader.
        count: Number of elements in a pass.
        dataset: The elements; None where only batches are compared.
        loop: Gives them with no library.
        batches: The same in batches.
        loops: Gives those with no library.
        limit: How many times the plain reader's time the reader may take.
        few: How many of the elements are read one by one, where that would take too long for all of them.
    """

    name: str
    count: int
    dataset: Any
    loop: Callable[[], Elements] | None
    batches: Any
    loops: Callable[[], Elements] | None
    limit: float | None = None
    few: int | None = None


def measure(rounds: int) -> list[Row]:
    """Time every format."""
    rows = []
    for made in (tf_record, example, fixed_length, comma_separated, json_lines, parquet, arrow, npy, tar, jpeg, sqlite):
        with tempfile.TemporaryDirectory() as folder:
            try:
                cases = made(Path(folder))
            except ImportError as error:
                print(f"{made.__name__} is left out: {error}", file=sys.stderr)
                continue
            rows += [row for case in cases for row in _measured(case, rounds)]
    return rows


def _measured(case: Case, rounds: int) -> list[Row]:
    rows = []
    if case.loop is not None:
        one_by_one, few = case.loop, case.few or case.count
        rows += _pair(case, few, "for", case.dataset.take(few), lambda: islice(one_by_one(), few), rounds)
    if case.loops is not None:
        rows += _pair(case, case.count, f"batch({BATCH})", case.batches, case.loops, rounds)
    return rows


def _pair(
    case: Case, count: int, what: str, dataset: Any, loop: Callable[[], Elements], rounds: int
) -> tuple[Row, Row]:
    seconds = interleaved({"plain": lambda: drain(loop()), "aiodata": lambda: drain(dataset)}, rounds)
    plain, ours = [
        Row(f"{who}, {what}", [count / one for one in taken], "elements/s", stage=case.name)
        for who, taken in seconds.items()
    ]
    ours.beside, ours.ratio, ours.limit = plain.what, ratios(seconds["aiodata"], seconds["plain"]), case.limit
    return plain, ours


def lists(elements: Elements) -> Iterator[list[Any]]:
    """Gather batches as lists."""
    rest = iter(elements)
    while batch := list(islice(rest, BATCH)):
        yield batch


def objects(elements: Elements) -> Iterator[Any]:
    """Gather batches of bytes as arrays."""
    for batch in lists(elements):
        yield np.fromiter(batch, object, len(batch))


# TFRecord and tf.train.Example


def tf_record(folder: Path) -> list[Case]:
    """Write records of 844 bytes, as they are and compressed."""
    from google_crc32c import value as crc

    header, checksum = struct.Struct("<QI"), struct.Struct("<I")

    def masked(data: bytes) -> int:
        found = crc(data)
        return ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF

    def by_hand(path: Path, open: Any = open) -> Iterator[bytes]:
        with open(path, "rb") as file:
            while head := file.read(12):
                length, wanted = header.unpack(head)
                assert masked(head[:8]) == wanted
                record = file.read(length)
                (wanted,) = checksum.unpack(file.read(4))
                assert masked(record) == wanted
                yield record

    count = 10_000
    values = np.random.default_rng(0).integers(0, 64, (count, 844), np.uint8)
    cases = []
    for compression, opened in {"": open, "GZIP": gzip.open}.items():
        path = folder / f"records{compression}"
        with aiodata.TFRecordWriter(path, compression) as writer:
            for record in values:
                writer.write(record)
        dataset = aiodata.TFRecordDataset(path, compression)
        name = f"TFRecord{', GZIP' if compression else ''}: {'gzip, ' if compression else ''}struct, google_crc32c"

        def loop(path: Path = path, opened: Any = opened) -> Elements:
            return by_hand(path, opened)

        def loops(path: Path = path, opened: Any = opened) -> Elements:
            return objects(by_hand(path, opened))

        cases.append(Case(name, count, dataset, loop, dataset.batch(BATCH), loops))
    return cases


def example(folder: Path) -> list[Case]:
    """Make examples, with features of one size and of many sizes; they are read from memory."""
    from aiodata.formats.example_proto import message_class

    parse = message_class("Example", "benchmark").FromString
    count = 4096
    generator = np.random.default_rng(0)

    def by_hand(records: list[bytes]) -> Iterator[tuple[Any, int, bytes]]:
        for record in records:
            found = parse(record).features.feature
            x = np.array(found["x"].float_list.value, np.float32)
            yield x, found["label"].int64_list.value[0], found["name"].bytes_list.value[0]

    def batches(records: list[bytes]) -> Iterator[Any]:
        for batch in lists(by_hand(records)):
            x, label, name = zip(*batch, strict=True)
            yield np.array(x), np.array(label), np.fromiter(name, object, len(name))

    def ragged(records: list[bytes]) -> Iterator[Any]:
        for batch in lists(by_hand(records)):
            x, label, name = zip(*batch, strict=True)
            yield np.fromiter(x, object, len(x)), np.array(label), np.fromiter(name, object, len(name))

    cases = []
    for name, sizes, feature, loops in (
        ("alike", np.full(count, 16), aiodata.FixedLenFeature([16], np.float32), batches),
        ("of many sizes", generator.integers(1, 32, count), aiodata.RaggedFeature(np.float32), ragged),
    ):
        features = {
            "x": feature,
            "label": aiodata.FixedLenFeature([], np.int64),
            "name": aiodata.FixedLenFeature([], bytes),
        }
        records = [
            aiodata.encode_example(
                {"x": generator.standard_normal(size, np.float32), "label": number % 10, "name": b"%06d" % number}
            )
            for number, size in enumerate(sizes)
        ]
        given: Any = Dataset.from_list(records)
        cases.append(
            Case(
                f"tf.train.Example, {name}: protobuf",
                count,
                given.map(lambda record, features=features: aiodata.parse_single_example(record, features)),
                lambda records=records: by_hand(records),
                given.batch(BATCH).map(lambda batch, features=features: aiodata.parse_example(batch, features)),
                lambda records=records, loops=loops: loops(records),
            )
        )
    return cases


# Rows of numbers


def fixed_length(folder: Path) -> list[Case]:
    """Write records of 128 bytes."""
    count, size = 200_000, 128
    path = folder / "records"
    path.write_bytes(np.random.default_rng(0).bytes(count * size))

    def by_hand() -> Iterator[bytes]:
        with open(path, "rb") as file:
            while record := file.read(size):
                yield record

    dataset: Any = aiodata.FixedLengthRecordDataset(path, size)
    batches = dataset.batch(BATCH)
    return [Case("fixed length: file.read", count, dataset, by_hand, batches, lambda: objects(by_hand()), BLOCK_LIMIT)]


def comma_separated(folder: Path) -> list[Case]:
    """Write eight columns of numbers."""
    count, width = 10_000, 8
    path = folder / "numbers.csv"
    np.savetxt(path, np.random.default_rng(0).standard_normal((count, width)), "%.5g", ",")

    def by_hand() -> Iterator[list[float]]:
        with open(path, newline="") as file:
            for row in csv.reader(file):
                yield [float(field) for field in row]

    def batches() -> Iterator[Any]:
        for batch in lists(by_hand()):
            yield np.array(batch)

    def loaded() -> Iterator[Any]:
        rows = np.loadtxt(path, delimiter=",")
        return (rows[begin : begin + BATCH] for begin in range(0, count, BATCH))

    dataset: Any = aiodata.CsvDataset(path, [np.float64] * width)
    batched = dataset.batch(BATCH)
    return [
        Case("CSV: csv.reader, float", count, dataset, by_hand, batched, batches),
        Case("CSV: numpy.loadtxt", count, None, None, batched, loaded),
    ]


def json_lines(folder: Path) -> list[Case]:
    """Write objects of a number, a text and a list, to be read as they are and as columns."""
    count = 8000
    path = folder / "objects.jsonl"
    values = np.random.default_rng(0).standard_normal((count, 4)).round(3).tolist()
    path.write_text("".join(json.dumps({"id": n, "name": f"n{n}", "x": x}) + "\n" for n, x in enumerate(values)))

    def as_they_are() -> Iterator[Any]:
        with open(path, "rb") as file:
            for line in file:
                yield json.loads(line)

    def by_hand() -> Iterator[Any]:
        for value in as_they_are():
            value["x"] = np.array(value["x"])
            yield value

    def batches() -> Iterator[Any]:
        for batch in lists(as_they_are()):
            yield {
                "id": np.array([value["id"] for value in batch]),
                "name": np.array([value["name"] for value in batch], object),
                "x": np.array([value["x"] for value in batch]),
            }

    dataset: Any = aiodata.JsonLinesDataset(path)
    columns: Any = {"id": np.int64, "name": str, "x": aiodata.TensorSpec([4], np.float64)}
    chosen: Any = aiodata.JsonLinesDataset(path, columns=columns)
    return [
        Case("JSON lines: json.loads, lists to arrays", count, dataset, by_hand, dataset.batch(BATCH), batches),
        Case("JSON lines, columns: json.loads", count, chosen, as_they_are, chosen.batch(BATCH), batches),
    ]


def _table(count: int) -> Any:
    import pyarrow as pa

    generator = np.random.default_rng(0)
    columns = {f"x{number}": generator.standard_normal(count) for number in range(6)}
    return pa.table({**columns, "id": np.arange(count), "label": generator.integers(0, 10, count, np.int32)})


def _table_cases(
    name: str, count: int, dataset: Any, small: Callable[[], Elements], large: Callable[[], Elements]
) -> list[Case]:
    """Make the lines of a columnar format from what gives its record batches, of the batches' size and its own."""

    def arrays() -> Iterator[dict[str, Any]]:
        for batch in large():
            yield {key: batch.column(key).to_numpy() for key in batch.schema.names}

    def by_hand() -> Iterator[dict[str, Any]]:
        for columns in arrays():
            for row in zip(*columns.values(), strict=True):
                yield dict(zip(columns, row, strict=True))

    def batches() -> Iterator[dict[str, Any]]:
        for batch in small():
            yield {key: batch.column(key).to_numpy(zero_copy_only=False) for key in batch.schema.names}

    def cut() -> Iterator[dict[str, Any]]:
        for batch in large():
            columns = {key: batch.column(key).to_numpy().copy() for key in batch.schema.names}
            for begin in range(0, batch.num_rows, BATCH):
                yield {key: column[begin : begin + BATCH] for key, column in columns.items()}

    batched = dataset.batch(BATCH)
    return [
        Case(f"{name}({BATCH}), to_numpy", count, dataset, by_hand, batched, batches, BLOCK_LIMIT, FEW),
        Case(f"{name}, to_numpy, copied and cut", count, None, None, batched, cut),
    ]


def parquet(folder: Path) -> list[Case]:
    """Write eight columns of numbers, not compressed."""
    import pyarrow.parquet

    count = 300_000
    path = folder / "table.parquet"
    pyarrow.parquet.write_table(_table(count), path, row_group_size=25_000, compression=None)

    def small() -> Elements:
        return pyarrow.parquet.ParquetFile(path).iter_batches(BATCH)

    def large() -> Elements:
        return pyarrow.parquet.ParquetFile(path).iter_batches()

    dataset: Any = aiodata.ParquetDataset(path)
    alone = Case(f"Parquet: iter_batches({BATCH})", count, None, None, dataset.batch(BATCH), small, BLOCK_LIMIT)
    return [alone, *_table_cases("Parquet: iter_batches", count, dataset, small, large)]


def arrow(folder: Path) -> list[Case]:
    """Write the same columns in record batches of 25,000 rows."""
    import pyarrow as pa

    count = 300_000
    path = folder / "table.arrow"
    table = _table(count)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, 25_000)

    def large() -> Elements:
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    def small() -> Elements:
        for batch in large():
            for begin in range(0, batch.num_rows, BATCH):
                yield batch.slice(begin, BATCH)

    return _table_cases("Arrow: get_batch", count, aiodata.ArrowDataset(path), small, large)


def npy(folder: Path) -> list[Case]:
    """Write rows of 64 floats."""
    count = 300_000
    path = folder / "rows.npy"
    np.save(path, np.random.default_rng(0).standard_normal((count, 64), np.float32))

    def by_hand() -> Iterator[Any]:
        for row in np.load(path, mmap_mode="r"):
            yield np.array(row)

    def batches() -> Iterator[Any]:
        rows = np.load(path, mmap_mode="r")
        for begin in range(0, count, BATCH):
            yield np.array(rows[begin : begin + BATCH])

    dataset: Any = aiodata.NpyDataset(path)
    return [Case("npy: np.load, mapped", count, dataset, by_hand, dataset.batch(BATCH), batches, BLOCK_LIMIT, FEW)]


# Files in files, images, a database


def tar(folder: Path) -> list[Case]:
    """Write samples of two files, 1 kB and 2 bytes."""
    count = 1000
    path = folder / "samples.tar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(count):
            for extension, content in {"bin": bytes(1000), "cls": b"%2d" % (number % 10)}.items():
                info = tarfile.TarInfo(f"{number:06d}.{extension}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))

    def by_hand() -> Iterator[dict[str, Any]]:
        sample: dict[str, Any] = {}
        with tarfile.open(path) as archive:
            for member in archive:
                key, _, extension = member.name.partition(".")
                if sample and sample["__key__"] != key:
                    yield sample
                    sample = {}
                sample["__key__"] = key
                sample[extension] = archive.extractfile(member).read()
        yield sample

    def batches() -> Iterator[Any]:
        for batch in lists(by_hand()):
            yield {key: np.array([sample[key] for sample in batch], object) for key in batch[0]}

    dataset: Any = aiodata.TarDataset(path)
    return [Case("tar: tarfile", count, dataset, by_hand, dataset.batch(BATCH), batches)]


def jpeg(folder: Path) -> list[Case]:
    """Make images of 160 by 120 pixels; they are read from memory."""
    count = 512
    y, x = np.mgrid[:120, :160]
    pixels = [np.stack([x + number, y, (x * y) // 80], axis=-1).astype(np.uint8) for number in range(count)]
    contents = [image.encode_jpeg(one) for one in pixels]
    given: Any = Dataset.from_list(contents)
    dataset = given.map(image.decode_jpeg)
    batched = dataset.batch(BATCH)

    def lines(name: str, decode: Callable[[bytes], Any]) -> Case:
        def batches() -> Iterator[Any]:
            return map(np.stack, lists(map(decode, contents)))

        return Case(f"JPEG: {name}", count, dataset, lambda: map(decode, contents), batched, batches)

    from PIL import Image

    cases = [lines("Pillow", lambda content: np.array(Image.open(io.BytesIO(content))))]
    try:
        import simplejpeg
    except ImportError as error:
        print(f"JPEG beside simplejpeg is left out: {error}", file=sys.stderr)
        return cases
    return [lines("simplejpeg", simplejpeg.decode_jpeg), *cases]


def sqlite(folder: Path) -> list[Case]:
    """Write rows of two numbers and a text."""
    count = 50_000
    path = folder / "rows.db"
    query = "SELECT id, x, name FROM rows ORDER BY id"
    values = np.random.default_rng(0).standard_normal(count).tolist()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, x REAL, name TEXT)")
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", [(n, x, f"n{n}") for n, x in enumerate(values)])
    connection.close()

    def fetched() -> Iterator[list[Any]]:
        connection = sqlite3.connect(path)
        try:
            cursor = connection.execute(query)
            while rows := cursor.fetchmany(BATCH):
                yield rows
        finally:
            connection.close()

    def by_hand() -> Iterator[Any]:
        for rows in fetched():
            yield from rows

    def batches() -> Iterator[Any]:
        for rows in fetched():
            number, x, name = zip(*rows, strict=True)
            yield np.array(number), np.array(x), np.fromiter(name, object, len(name))

    dataset: Any = aiodata.SqlDataset("sqlite", path, query, (np.int64, np.float64, str))
    return [Case("SQLite: fetchmany", count, dataset, by_hand, dataset.batch(BATCH), batches)]
