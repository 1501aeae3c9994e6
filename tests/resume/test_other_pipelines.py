"""A state of a pipeline with other arguments is refused, naming the stage; arguments that change nothing may differ."""

from __future__ import annotations

import functools
import re
from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import (
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    NpyDataset,
    Reducer,
    SqlDataset,
    TarDataset,
    TextLineDataset,
    make_csv_dataset,
    text_dataset_from_directory,
)
from aiodata.engine.contents import SAMPLE, checksum
from aiodata.errors import StateError
from tests.programs import assert_same
from tests.resume.saving import drive, part, through_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Pair = namedtuple("Pair", "a b")
Other = namedtuple("Other", "c d")


def one(*x: Any) -> Any:
    return x[0]


def two(*x: Any) -> Any:
    return x[0]


def few(*x: Any) -> Dataset[Any]:
    return Dataset.range(2)


def many(*x: Any) -> Dataset[Any]:
    return Dataset.range(2)


def group(key: Any, window: Dataset[Any]) -> Dataset[Any]:
    return window


def group_too(key: Any, window: Dataset[Any]) -> Dataset[Any]:
    return window


def step(state: Any, x: Any) -> Any:
    return state, x


def step_too(state: Any, x: Any) -> Any:
    return state, x


def count_to(*limits: int) -> Iterator[int]:
    yield from range(max(limits))


def reducer(*functions: Any) -> Reducer:
    return Reducer(*functions)


N: Any = Dataset.range(10)
ROWS: Any = N.batch(2)
SAME: Any = Dataset.from_tensor_slices
BOTH: Any = [N, Dataset.range(5)]
OTHERS: dict[str, tuple[str, Any, Any]] = {
    # Sources in memory
    "range": ("range", Dataset.range(5), Dataset.range(6)),
    "range: dtype": ("range", Dataset.range(5), Dataset.range(5, output_type=np.int32)),
    "counter: start": ("counter", Dataset.counter(0), Dataset.counter(1)),
    "counter: step": ("counter", Dataset.counter(0, 1), Dataset.counter(0, 2)),
    "counter: dtype": ("counter", Dataset.counter(0), Dataset.counter(0, 1, np.int32)),
    "random": ("random", Dataset.random(1), Dataset.random(2)),
    "random: rerandomize": ("random", Dataset.random(1), Dataset.random(1, rerandomize_each_iteration=True)),
    "slices": ("from_tensor_slices", SAME([1, 2]), SAME([1, 3])),
    "slices: text": ("from_tensor_slices", SAME(["a", "b"]), SAME(["b", "a"])),
    "slices: dtype": ("from_tensor_slices", SAME([1, 2]), SAME([1.0, 2.0])),
    "slices: shape": ("from_tensor_slices", SAME(np.zeros((2, 6))), SAME(np.zeros((2, 3, 2)))),
    "slices: tuple": ("from_tensor_slices", SAME(([1], [2])), SAME(Pair([1], [2]))),
    "slices: named tuple": ("from_tensor_slices", SAME(Other([1], [2])), SAME(Pair([1], [2]))),
    "slices: keys": ("from_tensor_slices", SAME({"a": [1]}), SAME({"b": [1]})),
    "slices: none": ("from_tensor_slices", SAME(([1], None)), SAME(([1],))),
    "slices: last of many": (
        "from_tensor_slices",
        SAME(np.zeros(10 * SAMPLE)),
        SAME(np.append(np.zeros(10 * SAMPLE - 1), 1)),
    ),
    "tensors": ("from_tensors", Dataset.from_tensors(1), Dataset.from_tensors(2)),
    "list": ("from_list", Dataset.from_list([1, 2]), Dataset.from_list([1, 3])),
    "list: rows": ("from_list", Dataset.from_list([[1], [2, 3]]), Dataset.from_list([[1], [2, 4]])),
    "generator": ("from_generator", Dataset.from_generator(count_to), Dataset.from_generator(one)),
    "generator: arguments": (
        "from_generator",
        Dataset.from_generator(count_to, args=[1]),
        Dataset.from_generator(count_to, args=[2]),
    ),
    "generator: signature": (
        "from_generator",
        Dataset.from_generator(count_to, output_types=np.int64),
        Dataset.from_generator(count_to, output_types=np.int32),
    ),
    # Several inputs
    "zip: dict": ("zip", Dataset.zip(N, N), Dataset.zip({"a": N, "b": N})),
    "zip: keys": ("zip", Dataset.zip({"a": N}), Dataset.zip({"b": N})),
    "zip: nested": ("zip", Dataset.zip((N, N)), Dataset.zip((N, (N,)))),
    "zip: order": ("zip", Dataset.zip({"a": N, "b": N}), Dataset.zip({"b": N, "a": N})),
    "choose": (
        "choose_from_datasets",
        Dataset.choose_from_datasets(BOTH, N),
        Dataset.choose_from_datasets(BOTH, N, stop_on_empty_dataset=False),
    ),
    "sample: weights": (
        "sample_from_datasets",
        Dataset.sample_from_datasets(BOTH, [0.5, 0.5]),
        Dataset.sample_from_datasets(BOTH, [0.4, 0.6]),
    ),
    "sample: seed": (
        "sample_from_datasets",
        Dataset.sample_from_datasets(BOTH, seed=1),
        Dataset.sample_from_datasets(BOTH, seed=2),
    ),
    "sample: stop": (
        "sample_from_datasets",
        Dataset.sample_from_datasets(BOTH, seed=1),
        Dataset.sample_from_datasets(BOTH, seed=1, stop_on_empty_dataset=True),
    ),
    "concatenate": ("range", N.concatenate(N), N.concatenate(Dataset.range(3))),
    # Files
    "list_files": ("list_files", Dataset.list_files("a"), Dataset.list_files("b")),
    "list_files: several": ("list_files", Dataset.list_files(["a", "b"]), Dataset.list_files("a, b")),
    "list_files: seed": ("shuffle", Dataset.list_files("a", seed=1), Dataset.list_files("a", seed=2)),
    "shard_files": ("shard_files", SAME(["a", "b"]).shard_files(2, 0), SAME(["a", "b"]).shard_files(2, 1)),
    "lines: file": ("text_line", TextLineDataset("a"), TextLineDataset("b")),
    "lines: files": ("from_tensor_slices", TextLineDataset(["a", "b"]), TextLineDataset(["a", "c"])),
    "lines: order": ("from_tensor_slices", TextLineDataset(["a", "b"]), TextLineDataset(["b", "a"])),
    "lines: compression": ("text_line", TextLineDataset("a"), TextLineDataset("a", "GZIP")),
    "lines: compressions": ("flat_map", TextLineDataset(["a"]), TextLineDataset(["a"], "GZIP")),
    "lines: in turn": ("flat_map", TextLineDataset(["a"]), TextLineDataset(["a"], num_parallel_reads=2)),
    "lines: how many in turn": (
        "interleave",
        TextLineDataset(["a"], num_parallel_reads=3),
        TextLineDataset(["a"], num_parallel_reads=2),
    ),
    "records": ("fixed_length_record", FixedLengthRecordDataset("a", 3), FixedLengthRecordDataset("a", 4)),
    "records: header": ("fixed_length_record", FixedLengthRecordDataset("a", 3), FixedLengthRecordDataset("a", 3, 1)),
    "records: header, footer": (
        "fixed_length_record",
        FixedLengthRecordDataset("a", 3, 0, 1),
        FixedLengthRecordDataset("a", 3, 1, 0),
    ),
    "records: several files": ("flat_map", FixedLengthRecordDataset(["a"], 3), FixedLengthRecordDataset(["a"], 4)),
    "csv: types": ("csv", CsvDataset("a", [1, 2]), CsvDataset("a", [1, 2.0])),
    "csv: defaults": ("csv", CsvDataset("a", [1, 2]), CsvDataset("a", [1, 3])),
    "csv: required": ("csv", CsvDataset("a", [1, 2]), CsvDataset("a", [1, int])),
    "csv: delimiter": ("csv", CsvDataset("a", [1]), CsvDataset("a", [1], field_delim=";")),
    "csv: quotes": ("csv", CsvDataset("a", [1]), CsvDataset("a", [1], use_quote_delim=False)),
    "csv: missing": ("csv", CsvDataset("a", [1]), CsvDataset("a", [1], na_value="x")),
    "csv: columns": ("csv", CsvDataset("a", [1, 2]), CsvDataset("a", [1, 2], select_cols=[0, 2])),
    "csv: left out": ("csv", CsvDataset("a", [1]), CsvDataset("a", [1], exclude_cols=[0])),
    "csv: header": ("csv", CsvDataset("a", [1]), CsvDataset("a", [1], header=True)),
    "csv: several files": ("flat_map", CsvDataset(["a"], [1]), CsvDataset(["a"], [2])),
    "json": ("json_lines", JsonLinesDataset("a"), JsonLinesDataset("a", columns={"x": int})),
    "json: cut short": ("json_lines", JsonLinesDataset("a"), JsonLinesDataset("a", on_truncated="skip")),
    "json: several files": ("flat_map", JsonLinesDataset(["a"]), JsonLinesDataset(["a"], columns={"x": int})),
    "npy": ("npy", NpyDataset("a.npz", members=["x"]), NpyDataset("a.npz", members=["y"])),
    "npy: several files": ("flat_map", NpyDataset(["a.npz"]), NpyDataset(["a.npz"], members=["y"])),
    "tar": ("tar", TarDataset("a"), TarDataset("a", group=False)),
    "tar: several files": ("flat_map", TarDataset(["a"]), TarDataset(["a"], group=False)),
    "sql": ("sql", SqlDataset("sqlite", "a", "q", [np.int64]), SqlDataset("sqlite", "a", "q2", [np.int64])),
    "sql: long query": (
        "sql",
        SqlDataset("sqlite", "a", f"select {'x' * 300} a", [np.int64]),
        SqlDataset("sqlite", "a", f"select {'x' * 300} b", [np.int64]),
    ),
    "sql: types": ("sql", SqlDataset("sqlite", "a", "q", [np.int64]), SqlDataset("sqlite", "a", "q", [np.int32])),
    # Functions
    "map": ("map", N.map(one), N.map(two)),
    "map: vectorized": ("map", N.map(one), N.map(one, vectorized=True)),
    "map: order": ("map", N.map(one, 2), N.map(one, 2, deterministic=False)),
    "random_map": ("random_map", N.random_map(one, seed=1), N.random_map(one, seed=2)),
    "filter": ("filter", N.filter(one), N.filter(two)),
    "take_while": ("take_while", N.take_while(one), N.take_while(two)),
    "flat_map": ("flat_map", N.flat_map(few), N.flat_map(many)),
    "interleave": ("interleave", N.interleave(few, 2), N.interleave(many, 2)),
    "interleave: cycle": ("interleave", N.interleave(few, 2), N.interleave(few, 3)),
    "interleave: block": ("interleave", N.interleave(few, 2), N.interleave(few, 2, 2)),
    "interleave: order": (
        "interleave",
        N.interleave(few, 2, num_parallel_calls=2),
        N.interleave(few, 2, num_parallel_calls=2, deterministic=False),
    ),
    "scan": ("scan", N.scan(0, step), N.scan(0, step_too)),
    "scan: state": ("scan", N.scan(0, step), N.scan(1, step)),
    "scan: tuple": ("scan", N.scan((0, 1), step), N.scan((0, 2), step)),
    "scan: array": ("scan", N.scan(np.zeros(2), step), N.scan(np.ones(2), step)),
    "scan: text": ("scan", N.scan("a" * 50, step), N.scan("a" * 49 + "b", step)),
    "group_by_window: key": ("group_by_window", N.group_by_window(one, group, 2), N.group_by_window(two, group, 2)),
    "group_by_window": ("group_by_window", N.group_by_window(one, group, 2), N.group_by_window(one, group_too, 2)),
    "group_by_window: size": ("group_by_window", N.group_by_window(one, group, 2), N.group_by_window(one, group, 3)),
    "group_by_window: sizes": (
        "group_by_window",
        N.group_by_window(one, group, window_size_func=one),
        N.group_by_window(one, group, window_size_func=two),
    ),
    "group_by_reducer: key": (
        "group_by_reducer",
        N.group_by_reducer(one, reducer(one, step, one)),
        N.group_by_reducer(two, reducer(one, step, one)),
    ),
    **{
        f"group_by_reducer: {place}": (
            "group_by_reducer",
            N.group_by_reducer(one, reducer(one, one, one)),
            N.group_by_reducer(one, reducer(*[two if number == place else one for number in range(3)])),
        )
        for place in range(3)
    },
    # Batches
    "batch": ("batch", N.batch(2), N.batch(3)),
    "batch: remainder": ("batch", N.batch(2), N.batch(2, drop_remainder=True)),
    "padded_batch": ("padded_batch", ROWS.padded_batch(2), ROWS.padded_batch(2, [5])),
    "padded_batch: values": (
        "padded_batch",
        ROWS.padded_batch(2, padding_values=1),
        ROWS.padded_batch(2, padding_values=2),
    ),
    "padded_batch: remainder": ("padded_batch", ROWS.padded_batch(2), ROWS.padded_batch(2, drop_remainder=True)),
    "ragged_batch": ("ragged_batch", N.ragged_batch(2), N.ragged_batch(2, drop_remainder=True)),
    "sparse_batch": ("sparse_batch", N.sparse_batch(2, [3]), N.sparse_batch(2, [4])),
    "batch_by_size": ("batch_by_size", N.batch_by_size(9, one), N.batch_by_size(8, one)),
    "batch_by_size: function": ("batch_by_size", N.batch_by_size(9, one), N.batch_by_size(9, two)),
    "batch_by_size: most": ("batch_by_size", N.batch_by_size(9, one), N.batch_by_size(9, one, max_elements=2)),
    "rebatch": ("rebatch", ROWS.rebatch(2), ROWS.rebatch(3)),
    "rebatch: sizes": ("rebatch", ROWS.rebatch([2, 3]), ROWS.rebatch([3, 2])),
    "rebatch: remainder": ("rebatch", ROWS.rebatch(2), ROWS.rebatch(2, drop_remainder=True)),
    "window": ("window", N.window(2), N.window(3)),
    "window: shift": ("window", N.window(2), N.window(2, 1)),
    "window: stride": ("window", N.window(2), N.window(2, None, 2)),
    "window: remainder": ("window", N.window(2), N.window(2, drop_remainder=True)),
    "bucket: length": (
        "bucket_by_sequence_length",
        N.bucket_by_sequence_length(one, [2], [1, 2]),
        N.bucket_by_sequence_length(two, [2], [1, 2]),
    ),
    "bucket: boundaries": (
        "bucket_by_sequence_length",
        N.bucket_by_sequence_length(one, [2], [1, 2]),
        N.bucket_by_sequence_length(one, [3], [1, 2]),
    ),
    "bucket: sizes": (
        "bucket_by_sequence_length",
        N.bucket_by_sequence_length(one, [2], [1, 2]),
        N.bucket_by_sequence_length(one, [2], [2, 2]),
    ),
    "bucket: padding": (
        "bucket_by_sequence_length",
        ROWS.bucket_by_sequence_length(one, [2], [1, 2], padding_values=1),
        ROWS.bucket_by_sequence_length(one, [2], [1, 2], padding_values=2),
    ),
    "bucket: no padding": (
        "bucket_by_sequence_length",
        N.bucket_by_sequence_length(one, [2], [1, 2]),
        N.bucket_by_sequence_length(one, [2], [1, 2], no_padding=True),
    ),
    # Order and choice
    "shuffle": ("shuffle", N.shuffle(2, 1), N.shuffle(3, 1)),
    "shuffle: seed": ("shuffle", N.shuffle(2, 1), N.shuffle(2, 2)),
    "shuffle: no seed": ("shuffle", N.shuffle(2, 1), N.shuffle(2)),
    "shuffle: once": ("shuffle", N.shuffle(2, 1), N.shuffle(2, 1, reshuffle_each_iteration=False)),
    "repeat": ("repeat", N.repeat(2), N.repeat(3)),
    "repeat: endless": ("repeat", N.repeat(2), N.repeat()),
    "take": ("take", N.take(2), N.take(3)),
    "skip": ("skip", N.skip(2), N.skip(3)),
    "enumerate": ("enumerate", N.enumerate(), N.enumerate(1)),
    "shard": ("shard", N.shard(2, 0), N.shard(2, 1)),
    "shard: remainder": ("shard", N.shard(2, 0), N.shard(2, 0, remainder="pad")),
    "split: part": ("split", N.split([0.5, 0.5], seed=1)[0], N.split([0.5, 0.5], seed=1)[1]),
    "split: fractions": ("split", N.split([0.5, 0.5], seed=1)[0], N.split([0.4, 0.6], seed=1)[0]),
    "split: seed": ("split", N.split([0.5, 0.5], seed=1)[0], N.split([0.5, 0.5], seed=2)[0]),
    "rejection_resample": (
        "rejection_resample",
        N.rejection_resample(one, [0.5, 0.5], seed=1),
        N.rejection_resample(one, [0.4, 0.6], seed=1),
    ),
    "rejection_resample: initial": (
        "rejection_resample",
        N.rejection_resample(one, [0.5, 0.5], [0.5, 0.5], seed=1),
        N.rejection_resample(one, [0.5, 0.5], [0.4, 0.6], seed=1),
    ),
    "rejection_resample: seed": (
        "rejection_resample",
        N.rejection_resample(one, [0.5, 0.5], seed=1),
        N.rejection_resample(one, [0.5, 0.5], seed=2),
    ),
    "ignore_errors": ("ignore_errors", N.ignore_errors(), N.ignore_errors(limit=3)),
    "assert_cardinality": ("assert_cardinality", N.assert_cardinality(1), N.assert_cardinality(2)),
    "pad_to_cardinality": (
        "pad_to_cardinality",
        Dataset.zip({"a": N}).pad_to_cardinality(20),
        Dataset.zip({"a": N}).pad_to_cardinality(21),
    ),
    "pad_to_cardinality: key": (
        "pad_to_cardinality",
        Dataset.zip({"a": N}).pad_to_cardinality(20),
        Dataset.zip({"a": N}).pad_to_cardinality(20, "real"),
    ),
    "cache": ("cache", N.cache(), N.cache("file")),
    "prefetch": ("prefetch", N.prefetch(1), N.prefetch(2)),
}


def check_refused(stage: str, saved: Dataset[Any], other: Dataset[Any]) -> None:
    for before, after in ((saved, other), (other, saved)):
        with before.iterate() as iterator:
            state = through_json(iterator.state_dict())
        before.iterate(state).close()
        with pytest.raises(StateError, match=r"stage \d was .*, here it is ") as caught:
            after.iterate(state)
        assert stage in re.findall(r"(?:was|it is) (\w+)\(", str(caught.value))


@pytest.mark.parametrize("what", OTHERS)
def test_another_argument_is_refused(what: str) -> None:
    check_refused(*OTHERS[what])


def test_readers_of_whole_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in "xy":
        (tmp_path / folder).mkdir()
        for name in "ab":
            (tmp_path / folder / f"{name}.txt").write_text(f"{folder}{name}")
    for name in "cd":
        (tmp_path / f"{name}.csv").write_text("p,q\n1,2\n3,4\n")
    texts: Any = functools.partial(text_dataset_from_directory, tmp_path, seed=1)
    check_refused("map", texts(), texts(max_length=1))
    check_refused("from_tensor_slices", texts(), texts(class_names=["y", "x"]))
    tables: Any = functools.partial(make_csv_dataset, str(tmp_path / "*.csv"), 2, shuffle_seed=1)
    check_refused("interleave", tables(column_defaults=[1, 1]), tables(column_defaults=[1, 2]))
    check_refused("map", tables(), tables(label_name="q"))
    check_refused("shuffle", tables(), tables(shuffle_seed=2))
    check_refused("from_tensor_slices", tables(), make_csv_dataset(str(tmp_path / "c.csv"), 2, shuffle_seed=1))


def test_queries_are_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("aiosqlite", reason="from_sql needs aiosqlite")
    query: Any = functools.partial(Dataset.from_sql, f"sqlite:///{tmp_path}/a.db", "SELECT :n AS n")
    check_refused("from_sql", query({"n": 1}), query({"n": 2}))
    check_refused("from_sql", query({"n": 1}), query({"n": 1}, key="n"))


@pytest.mark.parametrize(
    ("calls", "deterministic", "cycle"), [(None, None, 1), (None, None, 2), (2, None, 2), (2, False, 2)]
)
def test_a_function_that_makes_another_dataset_is_refused(calls: Any, deterministic: Any, cycle: int) -> None:
    skipped = 1

    def some(x: Any) -> Dataset[Any]:
        return Dataset.range(100 * x, 100 * x + 50).skip(skipped)

    def make() -> Dataset[Any]:
        ds = Dataset.range(4).interleave(some, cycle, num_parallel_calls=calls, deterministic=deterministic)
        return ds.shuffle(3, seed=1)

    begun, state = drive("async", part(make(), "async", None, 9))
    rest = drive("async", part(make(), "async", state))[0]
    assert sorted(begun + rest) == [100 * x + n for x in range(4) for n in range(1, 50)]
    skipped = 2
    message = r"in interleave\(some\), the function made another dataset; now its stages are range\(.*\), skip\(2\)"
    with pytest.raises(StateError, match=message):
        drive("async", read_on(make(), state))


@pytest.mark.parametrize("windows", [5, 100])
def test_a_function_that_makes_another_dataset_of_a_group_is_refused(windows: int) -> None:
    size = 2

    def batched(key: Any, window: Dataset[Any]) -> Dataset[Any]:
        return window.batch(size)

    def make() -> Dataset[Any]:
        return Dataset.range(20).group_by_window(lambda x: x % 2, batched, windows)

    begun, state = drive("sync", part(make(), "sync", None, 1))
    assert_same(begun + drive("sync", part(make(), "sync", state))[0], drive("sync", part(make(), "sync"))[0])
    size = 3
    message = r"in group_by_window\(<lambda>\), the function made another dataset; now its stages are .*batch\(3\)"
    with pytest.raises(StateError, match=message), make().iterate(state) as iterator:
        next(iterator)


async def read_on(ds: Dataset[Any], state: Any) -> None:
    async with ds.iterate(state) as iterator:
        await anext(iterator)


def double(x: Any) -> Any:
    return x * 2


HARMLESS: dict[str, list[Any]] = {
    "buffer_size": [lambda path, n=n: TextLineDataset(path, None, n) for n in (None, 3, 100)],
    "parallel map": [lambda _, n=n: N.map(double, n).batch(3) for n in (None, 1, 3)],
    "parallel batch": [lambda _, n=n: N.batch(3, num_parallel_calls=n) for n in (1, 3)],
    "parallel interleave": [lambda _, n=n: N.interleave(few, 3, 2, num_parallel_calls=n) for n in (None, 1, 3)],
    "timeout_seconds": [lambda _, n=n: N.map(double, timeout_seconds=n) for n in (None, 20)],
    "name": [lambda _, n=n: N.shuffle(4, 1, name=n).batch(2, name=n) for n in (None, "mine")],
    "row_splits_dtype": [lambda _, n=n: N.ragged_batch(2, row_splits_dtype=n) for n in (np.int64, np.int32)],
}
"""Arguments that say how, not what: datasets that differ in one of them, each by the file that it may read."""


@pytest.mark.parametrize("what", HARMLESS)
def test_arguments_that_change_nothing_may_differ(what: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"{number}\n" for number in range(10)))
    whole = drive("async", part(HARMLESS[what][0](path), "async"))[0]
    for saving in HARMLESS[what]:
        for restoring in HARMLESS[what]:
            for count in (0, 1, 3):
                begun, state = drive("async", part(saving(path), "async", None, count))
                assert_same(begun + drive("async", part(restoring(path), "async", state))[0], whole)


def test_checksums_differ_where_values_do() -> None:
    values: list[Any] = [
        1,
        1.0,
        True,
        None,
        "1",
        b"1",
        np.int64(1),
        np.array(1),
        np.array([1]),
        np.array([1], np.int32),
        np.array([[1]]),
        np.array([1], object),
        np.array(["1"], object),
        [1],
        (1,),
        ((1,),),
        {"a": 1},
        {1: 1},
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        Pair(1, 2),
        Other(1, 2),
        (1, 2),
        ("ab", ""),
        ("a", "b"),
        object(),
    ]
    found = [checksum(value) for value in values]
    assert found == [checksum(value) for value in values]
    assert len(set(found)) == len(values)


def test_checksums_do_not_depend_on_how_an_array_lies_in_memory() -> None:
    rows = np.arange(60_000).reshape(300, 200)
    assert checksum(rows) == checksum(np.asfortranarray(rows)) == checksum(np.repeat(rows, 2, axis=0)[::2])
    assert checksum(np.asfortranarray(rows)) != checksum(rows + 1)
