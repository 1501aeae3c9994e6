"""Every public source and transformation by itself, some in several forms: `name: form` to what makes a dataset."""

from __future__ import annotations

import gzip
import io
import sqlite3
import tarfile
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata import (
    AUTOTUNE,
    UNKNOWN_CARDINALITY,
    ArrowDataset,
    AutotuneOptions,
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    NpyDataset,
    Options,
    ParquetDataset,
    SqlDataset,
    TarDataset,
    TextLineDataset,
    TFRecordDataset,
    make_csv_dataset,
)
from aiodata.experimental import Reducer
from aiodata.spec import TensorSpec
from tests.programs import Boom, Pair, failing, nested

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path


NEEDS = {
    "ArrowDataset": "pyarrow",
    "ParquetDataset": "pyarrow",
    "TFRecordDataset": "google_crc32c",
    "from_sql": "aiosqlite",
}
"""Packages of the extras, by the stages that need them."""

LEFT_OUT = {stage: f"{stage} needs {package}" for stage, package in NEEDS.items() if find_spec(package) is None}
LEFT_OUT["BigQueryDataset"] = "BigQueryDataset needs a server; its own tests restore it at every element"
LEFT_OUT |= {stage: f"{stage} needs a server, as in test_network_sources.py" for stage in ("from_http", "from_socket")}
"""Stages that are not in the table, and why; most of them as their package is not installed."""


def tar_of(number: int, samples: int) -> bytes:
    """Make an archive of samples, of which number 1 has an extension twice; archive 3 is cut short."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for sample in range(samples):
            for name in (f"{sample}.txt", f"{sample}.{'txt' if sample == 1 else 'n' * 120}"):
                info = tarfile.TarInfo(f"{number}/{name}")
                info.size = sample * 300
                archive.addfile(info, io.BytesIO(b"t" * info.size))
    return buffer.getvalue().rstrip(b"\0") if number == 3 else buffer.getvalue()


def write_files(folder: Path) -> Path:
    """Write the files that the sources below read, and make a folder for those that they write."""
    (folder / "caches").mkdir()
    nested(9).save(folder / "saved")
    Dataset.range(9).map(rows).save(folder / "shards", "GZIP", lambda x: len(x) % 3)
    Dataset.range(9000).save(folder / "damaged")
    shard = next((folder / "damaged").glob("*/*.npz"))
    content = shard.read_bytes()
    shard.write_bytes(content[:40_000] + b"?" + content[40_001:])  # the second chunk
    for number, lines in enumerate((5, 0, 7, 3)):
        text = "".join(f"file {number} line {line}{'!' * line}\r\n" for line in range(lines))
        (folder / f"{number}.txt").write_bytes(text.encode())
        (folder / f"{number}.gz").write_bytes(gzip.compress(text.encode()[:-2]))
        records = [f'{line},"{number}\n",{line / 8}' for line in range(lines)]
        (folder / f"{number}.csv").write_text("\n".join(["id,text,x", *records]).replace("4,", "four,"))
        (folder / f"{number}.tar").write_bytes(tar_of(number, lines))
    for number, odd in enumerate((0, 0, 1)):
        body = b"".join(b"record %d" % record for record in range(9)) + b"x" * odd
        (folder / f"{number}.bin").write_bytes(b"head" + body + b"end")
        (folder / f"{number}.bin.gz").write_bytes(gzip.compress(b"head" + body + b"end"))
    values = ['{"n": 1, "x": [1, 2]}', "", '{"n": 2}', "{", "[1, [2, 3]]", '{"n": null, "x": []}', "7", '{"n": 3}\r']
    (folder / "values.jsonl").write_text("\n".join([*values, '{"n']))
    for number in range(3):
        np.save(folder / f"{number}.npy", np.arange(number, 14).reshape(-1, 2) if number != 1 else np.ones((3, 3)))
        np.savez_compressed(folder / f"{number}.npz", x=np.arange(70.0), y=np.array(["a"] * (70 - number % 2)))
    if "ParquetDataset" not in LEFT_OUT:
        from tests.arrow_files import write_tables

        write_tables(folder)
    if "TFRecordDataset" not in LEFT_OUT:
        from aiodata.formats.tfrecord import frame

        content = b"".join(frame(b"record %d" % record * record) for record in range(7))
        (folder / "0.tfrecord").write_bytes(content[:40] + b"?" + content[41:])  # a payload that is damaged
        (folder / "1.tfrecord").write_bytes(content[:-3])
        (folder / "tfrecord.gz").write_bytes(gzip.compress(content))
        even = b"".join(frame(b"%02d" % record) for record in range(50))
        (folder / "even.tfrecord").write_bytes(even[: 18 * 25 + 12] + b"?" + even[18 * 25 + 13 :])
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, x REAL, text TEXT)")
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", [(n, n / 2, "t" * n) for n in range(0, 140, 7)])
    connection.close()
    (folder / "tar.gz").write_bytes(gzip.compress(tar_of(4, 4)))
    return folder


def double(x: Any) -> Any:
    return x * 2


def slowly(x: Any) -> Any:
    time.sleep(0.0002)
    return check(x)


def check(x: Any) -> Any:
    if int(x) % 4 == 2:
        raise Boom(int(x))
    return x


def one(x: Any) -> int:
    return 1


def drawn(x: Any, rng: np.random.Generator) -> Any:
    return x, rng.integers(1000)


async def drawn_later(x: Any, rng: np.random.Generator) -> Any:
    return drawn(x, rng)


async def awaited(x: Any) -> Any:
    return check(x)


def rows(x: Any) -> Any:
    return {"n": np.full(int(x) % 3, x), "name": b"n" * int(x)}


def few(x: Any) -> Dataset[Any]:
    return Dataset.range(10 * int(x), 10 * int(x) + int(x) % 4)


def few_failing(x: Any) -> Dataset[Any]:
    return failing(few(check(x)), 11, 31, 32)


def few_shuffled(x: Any) -> Dataset[Any]:
    return few(x).shuffle(3)


def few_async(x: Any) -> Dataset[Any]:
    return few(x).map(awaited)


def lines_of(path: Any) -> Dataset[Any]:
    return TextLineDataset(path)


def is_odd(x: Any) -> bool:
    return bool(check(x + 2 if x > 6 else x) % 2 == 1)


def parity(x: Any) -> Any:
    return check(x) % 2


def is_third(x: Any) -> bool:
    return bool(x % 3 == 0)


def count_to(n: int) -> Iterator[dict[str, Any]]:
    for x in range(n):
        yield {"x": x, "y": [x, [x + 1]]}


def count_and_fail(n: int) -> Iterator[int]:
    yield from range(n)
    raise Boom(n)


async def count_to_async(n: int) -> AsyncIterator[int]:
    for x in range(n):
        yield x


class Stubborn:
    """An iterator that goes on after an error; sync, or async where `later`."""

    def __init__(self, count: int, later: bool = False) -> None:
        self.numbers = iter(range(count))
        if later:
            self.__class__ = StubbornLater

    def __iter__(self) -> Stubborn:
        return self

    def __next__(self) -> int:
        return int(check(next(self.numbers)))


class StubbornLater(Stubborn):
    __iter__ = None  # type: ignore[assignment]

    def __aiter__(self) -> StubbornLater:
        return self

    async def __anext__(self) -> int:
        for number in self.numbers:
            return int(check(number))
        raise StopAsyncIteration


class Stateful:
    """An iterable that can save its place."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.next = 0

    def __iter__(self) -> Iterator[int]:
        while self.next < self.count:
            self.next += 1
            yield self.next - 1

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


def bad(count: int = 11) -> Dataset[Any]:
    """Numbers of which 2 and 5 fail."""
    return failing(Dataset.range(count), 2, 5)


def rowed(count: int) -> Dataset[Any]:
    """Numbers as rows, not columns."""
    return Dataset.range(count).map(double)


def size_of(row: Any) -> int:
    return len(row["n"])


def is_third_or_fails(x: Any) -> int:
    return int(is_third(check(x)))


def add_or_fail(state: Any, x: Any) -> Any:
    return state[0] + check(x), state[1] + 1


MEAN = Reducer(lambda key: (0, 0), add_or_fail, lambda total, count: total / count)


def some_batches(key: Any, group: Dataset[Any]) -> Dataset[Any]:
    return group.batch(2).concatenate(group.take(key).batch(1))


def few_of(key: Any, group: Dataset[Any]) -> Dataset[Any]:
    return failing(group.skip(check(key + 1) - 1).take(5), 9, 12, 30)


def size_by_key(key: Any) -> Any:
    return 3 + 2 * key


def read(window: Any) -> Any:
    """Read a window, so that map makes an element of it."""
    if isinstance(window, dict):
        return {"id": list(window["id"]), "row": list(window["parts"][0]), "even": list(window["parts"][1].x)}
    return list(window)


def batched_by_7(window: Dataset[Any]) -> Dataset[Any]:
    return window.batch(7)


def refuse(error: Exception) -> None:
    if error.args == (6,):
        raise KeyError(6)


def running_sum(state: Any, x: Any) -> Any:
    return state + x, state + check(x)


def count_kinds(state: Any, x: Any) -> Any:
    seen, latest = state["seen"], Pair(check(x), state["latest"].x)
    return {"latest": latest, "seen": np.append(seen, x % 3)}, (seen, latest)


def below_eight(x: Any) -> bool:
    return bool(check(x) < 8)


def uneven(x: Any) -> Any:
    return np.arange(int(x) % 3), np.arange(int(x) % 3 if x != 4 else 2)


def lengths(x: Any) -> Any:
    return lengths_always(check(x))


def lengths_always(x: Any) -> Any:
    return np.full(int(x) % 3 + 1, x)


STAGES: dict[str, Callable[[Path], Dataset[Any]]] = {
    "range": lambda _: Dataset.range(3, 90, 7),
    "random_map": lambda _: nested(7).random_map(drawn, seed=3),
    "random_map: failing": lambda _: bad(70).random_map(drawn, seed=3),
    "random_map: async": lambda _: bad(12).random_map(drawn_later, seed=3),
    "random_map: parallel": lambda _: bad(30).random_map(drawn, 3, num_parallel_calls=2),
    "random_map: parallel, async": lambda _: bad(20).random_map(drawn_later, 3, num_parallel_calls=3),
    "random_map: shuffled": lambda _: bad(9).shuffle(4, seed=1).random_map(drawn, seed=3).repeat(2),
    "range: several blocks": lambda _: Dataset.range(130, output_type=np.float32),
    "counter": lambda _: Dataset.counter(0, 0.1, np.float32).take(70),
    "counter: going around": lambda _: Dataset.counter(120, 3, np.int8).take(9),
    "choose_from_datasets": lambda _: Dataset.choose_from_datasets(
        [Dataset.range(5), nested(6).map(lambda element: element["id"] * 1), rowed(9)],
        Dataset.range(90).map(is_third).map(int),
    ),
    "choose_from_datasets: failing": lambda _: Dataset.choose_from_datasets(
        [bad(), rowed(3), few(13)], failing(Dataset.range(40), 3, 4).map(lambda x: x % 5), stop_on_empty_dataset=False
    ),
    "choose_from_datasets: shuffled": lambda _: Dataset.choose_from_datasets(
        [Dataset.range(5).shuffle(3, seed=1), Dataset.range(10, 14)],
        Dataset.range(2).repeat().take(9).shuffle(4, seed=2),
        stop_on_empty_dataset=False,
    ).repeat(3),
    "from_tensors": lambda _: Dataset.from_tensors({"x": [1, 2], "y": (b"x", None)}),
    "from_list": lambda _: Dataset.from_list([{"x": n, "y": ("a" * n, [n, n])} for n in range(70)]).skip(60),
    "from_list: rows": lambda _: Dataset.from_list([{"x": [n] * (n % 3 + 1), "y": b"y"} for n in range(7)]),
    "from_tensor_slices": lambda _: nested(9),
    "from_tensor_slices: large rows": lambda _: Dataset.from_tensor_slices(
        (np.ones((5, 60_000)), [b"a", b"", b"c", b"", b"e"])
    ),
    "from_generator": lambda _: Dataset.from_generator(count_to, args=[9]),
    "from_generator: failing": lambda _: Dataset.from_generator(count_and_fail, args=[2]),
    "from_generator: failing later": lambda _: Dataset.from_generator(count_and_fail, args=[5]),
    "from_generator: declared": lambda _: Dataset.from_generator(
        Stubborn, output_types=np.float32, output_shapes=(), args=[9]
    ),
    "from_generator: declared, not fitting": lambda _: Dataset.from_generator(
        lambda: iter([1, "x", 2.5, [3], 4, None, 5]), output_signature=TensorSpec((), np.int8)
    ),
    "from_generator: declared, async": lambda _: Dataset.from_generator(
        count_to_async, output_types=np.int16, args=[6]
    ),
    "from_generator: async": lambda _: Dataset.from_generator(count_to_async, args=[6]),
    "from_generator: going on": lambda _: Dataset.from_generator(Stubborn, args=[12]),
    "from_generator: going on, async": lambda _: Dataset.from_generator(Stubborn, args=[8, True]),
    "from_generator: stateful": lambda _: Dataset.from_generator(Stateful, args=[7]),
    "list_files": lambda path: Dataset.list_files(f"{path}/*.txt", shuffle=False),
    "list_files: shuffled": lambda path: Dataset.list_files(f"{path}/*", seed=3),
    "random": lambda _: Dataset.random(seed=5).take(9),
    "sample_from_datasets": lambda _: Dataset.sample_from_datasets(
        [Dataset.range(6), Dataset.range(10, 14), Dataset.range(20, 29)], weights=[0.5, 0.2, 0.3], seed=7
    ),
    "sample_from_datasets: failing": lambda _: Dataset.sample_from_datasets([bad(), rowed(4)], seed=1),
    "SqlDataset": lambda path: SqlDataset("sqlite", path / "rows.db", "SELECT id, text FROM rows", (int, bytes)),
    "SqlDataset: failing": lambda path: SqlDataset(
        "sqlite", path / "rows.db", "SELECT id * 3, x FROM rows ORDER BY id % 4, id", (np.int8, float)
    ),
    "SqlDataset: wrong": lambda path: SqlDataset("sqlite", path / "rows.db", "SELECT id, x FROM rows", (int,)),
    "from_sql": lambda path: Dataset.from_sql(f"sqlite:///{path}/rows.db", "SELECT * FROM rows", batch_rows=7),
    "from_sql: key": lambda path: Dataset.from_sql(
        f"sqlite:///{path}/rows.db",
        "SELECT id, CASE WHEN x > :least THEN x END AS x FROM rows",
        {"least": 20},
        key="id",
        batch_rows=6,
    ),
    "from_sql: key that repeats": lambda path: Dataset.from_sql(
        f"sqlite:///{path}/rows.db", "SELECT max(id, 28) AS k FROM rows WHERE id > 21", key="k", batch_rows=3
    ).concatenate(Dataset.from_sql(f"sqlite:///{path}/rows.db", "SELECT id / 2 / 7 AS k FROM rows", key="k")),
    "from_sql: partitions": lambda path: Dataset.from_sql(
        f"sqlite:///{path}/rows.db",
        "SELECT id, x FROM rows",
        key="id",
        partitions=4,
        num_parallel_reads=2,
        batch_rows=2,
    ),
    "from_sql: wrong": lambda path: Dataset.from_sql(f"sqlite:///{path}/rows.db", "SELECT 1 AS x, 2 AS x"),
    "zip": lambda _: Dataset.zip(Dataset.range(9), nested(8)),
    "zip: dict of rows": lambda _: Dataset.zip({"a": rowed(7), "b": (Dataset.range(70), rowed(9).batch(2).unbatch())}),
    "zip: failing": lambda _: Dataset.zip(bad(), failing(Dataset.range(20, 29), 25, 27), Dataset.range(9)),
    "zip: behind a block that is all skipped": lambda _: Dataset.zip(
        Dataset.range(9), Dataset.range(75).filter(lambda x: bool(x >= 70)).skip(1)
    ),
    "zip: unequal blocks": lambda _: Dataset.zip(rowed(150).filter(is_third), Dataset.range(66)),
    "TFRecordDataset": lambda path: TFRecordDataset([path / f"{n}.tfrecord" for n in (0, 9, 1)], buffer_size=40),
    "TFRecordDataset: of one length": lambda path: TFRecordDataset(path / "even.tfrecord", buffer_size=350),
    "TFRecordDataset: gzip": lambda path: TFRecordDataset(path / "tfrecord.gz", "GZIP"),
    "TarDataset": lambda path: TarDataset([path / f"{n}.tar" for n in (0, 1, 9, 3)], buffer_size=700),
    "TarDataset: gzip": lambda path: TarDataset(path / "tar.gz", "GZIP", group=False),
    "TarDataset: select": lambda path: TarDataset(path / "2.tar", select=["txt"], buffer_size=99),
    "TarDataset: parallel": lambda path: TarDataset([path / f"{n}.tar" for n in range(4)], num_parallel_reads=2),
    "CsvDataset": lambda path: CsvDataset(path / "3.csv", [int, bytes, [0.5]], header=True),
    "CsvDataset: failing": lambda path: CsvDataset(
        [path / f"{n}.csv" for n in (0, 1, 9, 2)], [int, bytes, [0.5]], buffer_size=9, header=True
    ),
    "CsvDataset: plain": lambda path: CsvDataset(path / "2.txt", [bytes], field_delim="!", select_cols=[0]),
    "CsvDataset: parallel": lambda path: CsvDataset(
        [path / f"{n}.csv" for n in range(4)], [b"", b"", b""], num_parallel_reads=2
    ),
    "CsvDataset: make_csv_dataset": lambda path: make_csv_dataset(
        f"{path}/*.csv", 4, label_name="x", num_epochs=2, shuffle=False
    ),
    "CsvDataset: make_csv_dataset, failing": lambda path: make_csv_dataset(
        f"{path}/*.csv",
        2,
        None,
        [int, bytes, float],
        num_epochs=1,
        shuffle_buffer_size=7,
        shuffle_seed=3,
        num_parallel_reads=2,
    ),
    "FixedLengthRecordDataset": lambda path: FixedLengthRecordDataset(path / "0.bin", 8, 4, 3, 20),
    "FixedLengthRecordDataset: not fitting": lambda path: FixedLengthRecordDataset(
        [path / f"{n}.bin" for n in (2, 9, 0)], 8, 4, 3
    ),
    "FixedLengthRecordDataset: gzip": lambda path: FixedLengthRecordDataset(
        [path / f"{n}.bin.gz" for n in (0, 2, 1)], 8, 4, 3, 9, "GZIP"
    ),
    "FixedLengthRecordDataset: parallel": lambda path: FixedLengthRecordDataset(
        [path / f"{n}.bin" for n in (0, 2, 1)], 8, 4, 3, num_parallel_reads=2
    ),
    "JsonLinesDataset": lambda path: JsonLinesDataset([path / "values.jsonl", path / "none"], buffer_size=20),
    "JsonLinesDataset: columns": lambda path: JsonLinesDataset(
        path / "values.jsonl", columns={"n": (np.int64, 0)}, on_truncated="skip", buffer_size=30
    ),
    "JsonLinesDataset: rows": lambda path: JsonLinesDataset(
        path / "values.jsonl", columns={"x": (TensorSpec([None], float), [0.5])}
    ),
    "NpyDataset": lambda path: NpyDataset(path / "0.npy"),
    "NpyDataset: several": lambda path: NpyDataset([path / f"{n}.npy" for n in (0, 1, 9, 2)]),
    "NpyDataset: npz": lambda path: NpyDataset([path / f"{n}.npz" for n in (0, 1)]).skip(66),
    "ParquetDataset": lambda path: ParquetDataset(path / "plain.parquet"),
    "ParquetDataset: several": lambda path: ParquetDataset(
        [path / f"{name}.parquet" for name in ("plain", "none", "damaged", "missing", "few")]
    ),
    "ParquetDataset: damaged": lambda path: ParquetDataset([path / "damaged.parquet"] * 2, columns=["text", "n"]),
    "ParquetDataset: loose": lambda path: ParquetDataset(path / "loose.parquet"),
    "ParquetDataset: filter": lambda path: ParquetDataset(
        path / "plain.parquet", ["s.text"], filter=[("n", ">", 6), ("n", "not in", [7, 12, 13])]
    ),
    "ParquetDataset: parallel": lambda path: ParquetDataset(
        Dataset.from_tensor_slices([str(path / f"{name}.parquet") for name in ("few", "damaged", "loose", "plain")]),
        columns=["n"],
        null_values={"n": -1},
        num_parallel_reads=2,
    ),
    "ArrowDataset": lambda path: ArrowDataset(path / "plain.arrow"),
    "ArrowDataset: stream": lambda path: ArrowDataset(path / "plain.arrows", filter=[("n", ">", 3)]),
    "ArrowDataset: several": lambda path: ArrowDataset(
        [path / name for name in ("cut.arrows", "loose.arrow", "cut.arrows", "missing")], ["n"]
    ),
    "TextLineDataset": lambda path: TextLineDataset(path / "2.txt", buffer_size=20),
    "TextLineDataset: several": lambda path: TextLineDataset([path / f"{n}.txt" for n in (0, 1, 2, 9, 3)]),
    "TextLineDataset: gzip": lambda path: TextLineDataset([path / f"{n}.gz" for n in (0, 1, 3)], "GZIP", buffer_size=9),
    "TextLineDataset: parallel": lambda path: TextLineDataset(
        [path / f"{n}.txt" for n in range(4)], num_parallel_reads=2
    ),
    "load": lambda path: Dataset.load(path / "saved"),
    "load: shards": lambda path: Dataset.load(path / "shards"),
    "load: shuffled shards": lambda path: Dataset.load(
        path / "shards", reader_func=lambda shards: shards.shuffle(3, seed=1).flat_map(lambda shard: shard).repeat(2)
    ),
    "load: damaged": lambda path: Dataset.load(path / "damaged").skip(4090).take(20),
    "apply": lambda _: Dataset.range(7).apply(lambda ds: ds.skip(1).batch(2)),
    "assert_cardinality": lambda _: nested(7).assert_cardinality(7),
    "assert_cardinality: too few": lambda _: bad(9).assert_cardinality(9),
    "assert_cardinality: too few, columns": lambda _: Dataset.range(70).assert_cardinality(72).skip(62),
    "assert_cardinality: too many": lambda _: bad(9).assert_cardinality(5),
    "assert_cardinality: too many, columns": lambda _: Dataset.range(70).assert_cardinality(66).skip(62),
    "batch": lambda _: nested(11).batch(3),
    "batch: across blocks": lambda _: Dataset.range(250).batch(40),
    "batch: rows": lambda _: rowed(130).batch(7),
    "batch: drop": lambda _: rowed(11).batch(3, drop_remainder=True),
    "batch: failing": lambda _: bad().batch(3),
    "batch: not fitting": lambda _: Dataset.range(9).map(rows).batch(2),
    "batch: parallel": lambda _: bad(14).batch(3, num_parallel_calls=2),
    "batch_by_size": lambda _: Dataset.range(11).map(rows).batch_by_size(6, size_of),
    "batch_by_size: columns": lambda _: Dataset.range(130).batch_by_size(90, lambda x: int(x) % 7, 20),
    "batch_by_size: failing": lambda _: bad(20).batch_by_size(15, check, drop_remainder=True),
    "bucket_by_sequence_length": lambda _: (
        Dataset.range(19).map(rows).bucket_by_sequence_length(size_of, [1, 2], [3, 2, 4])
    ),
    "bucket_by_sequence_length: failing": lambda _: (
        bad(12).map(rows).bucket_by_sequence_length(size_of, [1, 2], [2, 2, 2], pad_to_bucket_boundary=True)
    ),
    "bucket_by_sequence_length: of a list": lambda _: Dataset.from_list(
        [[n] * (n * 7 % 5 + 1) for n in range(300)]
    ).bucket_by_sequence_length(len, [2, 4], [40, 16, 9], drop_remainder=True),
    "cache": lambda _: nested(6).cache(),
    "cache: rows": lambda _: rowed(9).cache(),
    "cache: failing": lambda _: bad().cache(),
    "cache: repeated": lambda _: bad(7).cache().repeat(3),
    "cache: file": lambda files: nested(9).cache(files / "caches" / "nested").repeat(2),
    "cache: file, rows": lambda files: Dataset.range(9).map(rows).cache(files / "caches" / "rows"),
    "cache: file, shuffled": lambda files: (
        Dataset.range(9).shuffle(4, 1, False).cache(files / "caches" / "shuffled").repeat(2)
    ),
    "snapshot": lambda path: nested(9).snapshot(path / "snapshots"),
    "snapshot: rows": lambda path: Dataset.range(9).map(rows).snapshot(path / "snapshots", "GZIP"),
    "snapshot: failing": lambda path: bad().snapshot(path / "snapshots").ignore_errors(),
    "snapshot: shuffled": lambda path: Dataset.range(9).shuffle(4, 1, False).snapshot(path / "snapshots").repeat(3),
    "concatenate": lambda _: Dataset.range(4).concatenate(rowed(3)).concatenate(bad(7)),
    "concatenate: shuffled": lambda _: Dataset.range(3).concatenate(Dataset.range(5).shuffle(3, seed=1)).repeat(2),
    "enumerate": lambda _: nested(7).enumerate(3),
    "enumerate: failing": lambda _: bad(90).enumerate(-2),
    "filter": lambda _: nested(9).filter(lambda element: bool(element["id"] % 3)),
    "filter: failing": lambda _: bad(13).filter(is_odd),
    "filter: nothing left": lambda _: Dataset.range(100).filter(lambda x: False),
    "flat_map": lambda _: Dataset.range(7).flat_map(few),
    "flat_map: failing": lambda _: failing(Dataset.range(9), 5).flat_map(few_failing),
    "flat_map: async inside": lambda _: Dataset.range(5).flat_map(few_async),
    "flat_map: files": lambda path: Dataset.list_files(f"{path}/*.txt", shuffle=False).flat_map(lines_of),
    "ignore_errors": lambda _: nested(7).concatenate(nested(3)).ignore_errors(),
    "ignore_errors: rows": lambda _: bad(90).ignore_errors(),
    "ignore_errors: limit": lambda _: Dataset.range(9).map(check).ignore_errors(limit=2).repeat(2),
    "ignore_errors: share": lambda _: bad(70).map(check).ignore_errors(limit=0.5),
    "ignore_errors: raising": lambda _: Dataset.range(12).map(check).ignore_errors(on_error=refuse),
    "ignore_errors: shuffled": lambda _: bad(7).shuffle(3, seed=1).repeat(3).ignore_errors(),
    "group_by_reducer": lambda _: Dataset.range(9).shuffle(4, seed=1).group_by_reducer(parity, MEAN),
    "group_by_reducer: failing": lambda _: bad(70).group_by_reducer(is_third_or_fails, MEAN),
    "group_by_window": lambda _: nested(17).group_by_window(lambda x: x["id"] % 3 - 1, some_batches, 4),
    "group_by_window: failing": lambda _: bad(70).group_by_window(parity, few_of, window_size_func=size_by_key),
    "group_by_window: shuffled": lambda _: (
        Dataset.range(23)
        .shuffle(5, seed=1)
        .group_by_window(lambda x: x % 3, lambda key, group: group.shuffle(3, seed=2).concatenate(group), 4)
    ),
    "group_by_window: many keys": lambda _: Dataset.range(40).group_by_window(
        lambda x: x * 7 % 19, lambda key, group: group.batch(5), 2
    ),
    "group_by_window: async inside": lambda _: Dataset.range(9).group_by_window(
        lambda x: x % 2, lambda key, group: group.map(awaited), 3
    ),
    "interleave: of a shuffled parallel one": lambda path: (
        Dataset.list_files(f"{path}/*.txt", seed=3)
        .interleave(lines_of, 2, 2, num_parallel_calls=2)
        .shuffle(3, seed=1)
        .map(len)
        .interleave(few, 1, 2)
    ),
    "interleave: of a parallel one": lambda path: (
        Dataset.list_files(f"{path}/*.txt", shuffle=False)
        .interleave(lines_of, 3, 2, num_parallel_calls=1)
        .map(len)
        .interleave(few, 1, 2)
    ),
    "interleave": lambda _: Dataset.range(8).interleave(few, cycle_length=3),
    "interleave: failing": lambda _: bad(9).interleave(few_failing, cycle_length=3, block_length=2),
    "interleave: parallel": lambda _: Dataset.range(8).interleave(few, cycle_length=3, num_parallel_calls=2),
    "interleave: parallel, failing": lambda _: bad(9).interleave(
        few_failing, cycle_length=3, block_length=2, num_parallel_calls=AUTOTUNE
    ),
    "interleave: parallel, async inside": lambda _: Dataset.range(6).interleave(few_async, 2, num_parallel_calls=2),
    "map": lambda _: Dataset.zip(Dataset.range(7), nested(7)).map(lambda number, element: Pair(number, element)),
    "map: failing": lambda _: bad().map(check),
    "map: async": lambda _: bad().map(awaited),
    "map: parallel": lambda _: bad(70).map(check, num_parallel_calls=2),
    "map: parallel, slow": lambda _: bad(14).map(slowly, num_parallel_calls=2),
    "map: parallel, async": lambda _: bad(30).map(awaited, num_parallel_calls=3),
    "map: limited": lambda _: bad().map(check, timeout_seconds=60),
    "map: limited, async": lambda _: bad().map(awaited, timeout_seconds=60),
    "map: limited, parallel": lambda _: bad(30).map(check, 2, timeout_seconds=60),
    "map: vectorized, not fitting": lambda _: bad(9).map(rows).map(lambda x: x["n"], vectorized=True),
    "map: vectorized": lambda _: Dataset.range(80).map(double, vectorized=True),
    "map: vectorized, failing": lambda _: bad(9).map(double, 2, vectorized=True),
    "pad_to_cardinality": lambda _: nested(5).pad_to_cardinality(8),
    "pad_to_cardinality: rows": lambda _: bad(7).map(rows).pad_to_cardinality(9, mask_key="real"),
    "pad_to_cardinality: of nothing": lambda _: nested(5).take(0).pad_to_cardinality(3),
    "pad_to_cardinality: not fitting": lambda _: failing(Dataset.range(3), 0).pad_to_cardinality(5),
    "padded_batch": lambda _: Dataset.range(11).map(rows).padded_batch(3),
    "padded_batch: failing": lambda _: bad().map(rows).padded_batch(2, {"n": [2], "name": []}, drop_remainder=True),
    "prefetch": lambda _: rowed(9).prefetch(3),
    "prefetch: failing": lambda _: bad().prefetch(4),
    "prefetch: automatic": lambda _: bad(40).prefetch(),
    "prefetch: none": lambda _: bad().prefetch(0),
    "prefetch: twice": lambda _: bad(12).prefetch(2).batch(2).prefetch(2),
    "prefetch: of whole blocks": lambda _: Dataset.range(5).prefetch(20).map(awaited, num_parallel_calls=2),
    "prefetch: of parts of blocks": lambda _: Dataset.range(4).batch(2).unbatch().prefetch(1).map(awaited, 2),
    "prefetch: of coroutines": lambda _: bad().map(awaited).prefetch(3),
    "rejection_resample": lambda _: nested(15).rejection_resample(
        lambda element: element["id"] % 3, [0.3, 0.3, 0.4], [0.5, 0.3, 0.2], seed=1
    ),
    "rejection_resample: estimated": lambda _: Dataset.range(40).rejection_resample(parity, [0.3, 0.7], seed=1),
    "rejection_resample: all": lambda _: bad().rejection_resample(parity, [0.5, 0.5], [0.5, 0.5]),
    "rejection_resample: accepted": lambda _: bad(40).rejection_resample(
        lambda x: check(x) % 3, [0.0, 0.4, 0.6], [0.3, 0.3, 0.4], seed=1
    ),
    "rejection_resample: shuffled": lambda _: (
        Dataset.range(9).shuffle(4, seed=2).rejection_resample(lambda x: x % 2, [0.2, 0.8], seed=1).repeat(3)
    ),
    "ragged_batch": lambda _: bad().map(rows).ragged_batch(3),
    "ragged_batch: columns": lambda _: nested(8).ragged_batch(3, drop_remainder=True),
    "rebatch": lambda _: nested(11).batch(4).rebatch(3),
    "rebatch: across blocks": lambda _: Dataset.range(300).batch(7).rebatch(40, drop_remainder=True),
    "rebatch: sizes": lambda _: Dataset.range(11).batch(4).rebatch([0, 3, 1, 0, 0]),
    "rebatch: rows": lambda _: Dataset.range(8).map(lengths_always).rebatch([2, 0]),
    "rebatch: rows of one size": lambda _: Dataset.range(8).map(lengths_always).rebatch(2),
    "rebatch: failing": lambda _: Dataset.range(11).map(lengths).rebatch([3, 0]),
    "rebatch: not fitting": lambda _: Dataset.range(9).map(uneven).rebatch(2),
    "rebatch: of nothing": lambda _: Dataset.range(0).batch(2).rebatch([0, 2]),
    "repeat": lambda _: Dataset.range(4).repeat(3),
    "repeat: failing": lambda _: failing(Dataset.range(3), 0, 2).repeat(3),
    "repeat: of nothing": lambda _: Dataset.range(9).filter(lambda x: False).repeat(),
    "repeat: endless": lambda _: rowed(3).repeat().take(8),
    "scan": lambda _: Dataset.range(70).scan(0, lambda state, x: (state + x, state)).skip(62),
    "scan: failing": lambda _: bad().scan(np.int64(0), running_sum),
    "scan: structures": lambda _: bad().scan({"seen": [0.0], "latest": Pair(0, -1)}, count_kinds),
    "shard": lambda _: nested(11).shard(3, 1),
    "shard: failing": lambda _: bad(90).shard(2, 1),
    "shard: drop": lambda _: nested(11).shard(3, 1, remainder="drop"),
    "shard: drop, rows": lambda _: rowed(11).concatenate(Dataset.range(70)).shard(4, 2, remainder="drop"),
    "shard: drop, failing": lambda _: bad(13).map(check).shard(4, 2, remainder="drop"),
    "shard: pad": lambda _: nested(10).shard(3, 1, remainder="pad"),
    "shard: pad, rows": lambda _: rowed(9).concatenate(Dataset.range(70)).shard(4, 3, remainder="pad"),
    "shard: pad, failing": lambda _: bad(10).map(check).shard(4, 2, remainder="pad"),
    "shard_files": lambda path: Dataset.list_files(f"{path}/*.*").shard_files(3, 1),
    "shard_files: shuffled": lambda path: (
        Dataset.list_files(f"{path}/*.*").shard_files(2, 0).shuffle(9, seed=2).repeat(2)
    ),
    "shard: pad, failing only": lambda _: Dataset.range(10).map(check).shard(4, 2, remainder="pad"),
    "shuffle": lambda _: nested(12).shuffle(5, seed=1),
    "shuffle: rows": lambda _: rowed(12).shuffle(5, seed=1),
    "shuffle: failing": lambda _: bad(12).shuffle(5, seed=1),
    "shuffle: all": lambda _: bad(12).shuffle(UNKNOWN_CARDINALITY, seed=1, reshuffle_each_iteration=False),
    "shuffle: repeated": lambda _: Dataset.range(5).shuffle(3, seed=1).repeat(3),
    "shuffle: twice": lambda _: bad(9).shuffle(3, seed=1).batch(2).shuffle(2, seed=2).repeat(2),
    "skip": lambda _: Dataset.range(70).skip(66),
    "skip: failing": lambda _: failing(Dataset.range(9), 1, 4, 6).skip(3),
    "skip: failing behind": lambda _: failing(Dataset.range(9), 4, 6).skip(3),
    "split": lambda _: nested(11).split([0.7, 0.3], seed=1)[0],
    "split: across blocks": lambda _: Dataset.range(200).split([150, 20], seed=1)[1],
    "split: failing": lambda _: bad(20).split([0.6, 0.4], seed=2)[0],
    "split: rows": lambda _: bad(400).filter(is_third).split([0.2, 0.1], seed=3)[1],
    "split: shuffled": lambda _: bad(9).shuffle(4, seed=1).repeat(2).split([0.5, 0.5], seed=3)[1].repeat(2),
    "split: without seeds": lambda _: Dataset.range(9).shuffle(9).split([0.6])[0].map(one),
    "split: of a split": lambda _: rowed(30).shuffle(9, seed=1).split([0.6], 4)[0].split([0.5], seed=1)[0].prefetch(2),
    "split: of what functions make": lambda _: Dataset.range(5).interleave(few_shuffled, 2).split([0.7], seed=1)[0],
    "split: both in one": lambda _: (lambda parts: parts[0].concatenate(parts[1]))(
        Dataset.range(9).shuffle(5, seed=2).split([0.5, 0.5], seed=1)
    ),
    "sparse_batch": lambda _: Dataset.range(11).map(lengths).sparse_batch(2, [None]),
    "sparse_batch: too long": lambda _: Dataset.range(9).map(lengths_always).sparse_batch(2, [2]),
    "take": lambda _: nested(9).take(5),
    "take: failing": lambda _: bad().take(7),
    "take_while": lambda _: bad(12).take_while(below_eight),
    "take_while: columns": lambda _: nested(12).take_while(lambda element: bool(element["id"] < 5)),
    "unbatch": lambda _: Dataset.range(9).batch(4).unbatch(),
    "unbatch: failing": lambda _: Dataset.range(9).map(uneven).unbatch(),
    "window": lambda _: nested(11).window(4, shift=3).map(read),
    "window: across blocks": lambda _: Dataset.range(150).window(20, shift=30, stride=2).flat_map(batched_by_7),
    "window: rows": lambda _: rowed(14).window(3, shift=1, drop_remainder=True).flat_map(batched_by_7),
    "window: failing": lambda _: bad(14).window(2, shift=1, stride=3).map(read),
    "window: mixed": lambda _: (
        Dataset.range(70).concatenate(rowed(5)).concatenate(Dataset.range(3)).window(9).map(read)
    ),
    "window: components": lambda _: (
        Dataset.zip(bad(12), Dataset.range(12))
        .window(3, shift=2)
        .flat_map(lambda a, b: Dataset.zip((a.batch(2), b.batch(2))))
    ),
    "window: shuffled": lambda _: Dataset.range(9).shuffle(4, seed=1).window(3, shift=1).flat_map(batched_by_7),
    "unique": lambda _: Dataset.range(70).map(lambda x: x % 7).concatenate(bad()).unique(),
    "unique: columns": lambda _: Dataset.from_tensor_slices([x * x % 13 for x in range(90)]).unique(),
    "unique: rows": lambda _: bad().map(lambda x: np.full(2, x % 4)).unique(),
    "unique: not fitting": lambda _: Dataset.range(9).map(lambda x: x / 2 if x % 4 == 2 else str(x % 3)).unique(),
    "unique: shuffled": lambda _: Dataset.range(9).shuffle(4, seed=1).map(lambda x: x % 5).repeat(2).unique().repeat(2),
    "with_options": lambda _: bad().with_options(Options(autotune=AutotuneOptions(cpu_budget=1))),
}

for entry in [entry for entry in STAGES if entry.partition(":")[0] in LEFT_OUT]:
    del STAGES[entry]
