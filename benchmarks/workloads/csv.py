"""The textbook chain on CSV files: list, interleave, shuffle, parse and normalise, batch, prefetch.

100,000 rows of eight features and a target, in 20 files with headers: interleave 5 files, shuffle within 10,000 rows,
scale the features, batch 32. As in the "Loading and preprocessing" chapters of TensorFlow textbooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Pass, Workload
from benchmarks.workloads._csv_lines import (
    BATCH,
    CYCLE,
    DEFAULTS,
    FEATURES,
    FILES,
    MEAN,
    ROWS,
    STD,
    WINDOW,
    cut,
    gathered,
    grain_lines,
    lines_of,
    list_row,
    list_rows,
    paths,
    tf_lines,
)


def prepare(folder: Path) -> None:
    """Write the files."""
    generator = np.random.default_rng(0)
    header = ",".join([f"x{number}" for number in range(FEATURES)] + ["y"])
    for number in range(FILES):
        rows = generator.standard_normal((ROWS, FEATURES + 1)).astype(np.float32)
        np.savetxt(folder / f"part-{number:02}.csv", rows, "%.6f", ",", header=header, comments="")


WORKLOAD = Workload(
    "csv",
    "textbook CSV: 20 files of 5,000 rows, interleave 5, shuffle 10,000, parse and scale, batch 32",
    FILES * ROWS,
    prepare,
    total=lambda batch: np.abs(np.asarray(batch[0], np.float64)).sum() + np.asarray(batch[1], np.float64).sum(),
)


def _textbook(folder: Path, parse: Any, **arguments: Any) -> Any:
    from aiodata import Dataset, TextLineDataset

    files: Any = Dataset.list_files(str(folder / "*.csv"), seed=1)
    lines = files.interleave(lambda path: TextLineDataset(path).skip(1), cycle_length=CYCLE)
    return lines.shuffle(WINDOW, seed=1).map(parse, **arguments).batch(BATCH).prefetch(1)


def parse_rows(lines: Any) -> tuple[Any, Any]:
    """Parse many lines with aiodata's `decode_csv`."""
    from aiodata import decode_csv

    fields = decode_csv(lines, DEFAULTS)
    return (np.stack(fields[:-1], axis=1) - MEAN) / STD, fields[-1]


@WORKLOAD.ours("aiodata, vectorized=True")
def vectorized(folder: Path) -> Pass:
    """Parse whole blocks of lines."""
    dataset = _textbook(folder, parse_rows, vectorized=True)
    return lambda: dataset


@WORKLOAD.ours("aiodata, vectorized=True, async for")
def vectorized_async(folder: Path) -> Pass:
    """Do the same in an event loop."""
    dataset = _textbook(folder, parse_rows, vectorized=True)
    return lambda: _only_async(dataset)


async def _only_async(dataset: Any) -> Any:
    async for batch in dataset:
        yield batch


@WORKLOAD.ours("aiodata, per-row function")
def per_row(folder: Path) -> Pass:
    """Parse each line with numpy."""
    dataset = _textbook(folder, list_row)
    return lambda: dataset


@WORKLOAD.ours("aiodata, per-row function, 5 calls")
def per_row_calls(folder: Path) -> Pass:
    """Do the same as the textbook writes it, with parallel calls."""
    dataset = _textbook(folder, list_row, num_parallel_calls=5)
    return lambda: dataset


@WORKLOAD.limit("plain loop, per row")
def plain_per_row(folder: Path) -> Pass:
    """Do it with generators, a row at a time."""
    return lambda: map(gathered, cut(map(list_row, lines_of(paths(folder)))))


@WORKLOAD.limit("plain loop, batched")
def plain_batched(folder: Path) -> Pass:
    """Shuffle lines with generators, parse 32 of them at once."""
    return lambda: map(list_rows, cut(lines_of(paths(folder))))


@WORKLOAD.limit("np.loadtxt, whole files, columns")
def loadtxt(folder: Path) -> Pass:
    """Parse each file at once, shuffle all rows, slice."""

    def batches() -> Iterator[Any]:
        values = np.concatenate([np.loadtxt(path, np.float32, delimiter=",", skiprows=1) for path in paths(folder)])
        order = np.random.permutation(len(values))
        for start in range(0, len(values), BATCH):
            chosen = values[order[start : start + BATCH]]
            yield (chosen[:, :-1] - MEAN) / STD, chosen[:, -1]

    return batches


@WORKLOAD.limit("pyarrow, whole files, columns", "pyarrow")
def arrow(folder: Path) -> Pass:
    """Do the same with pyarrow's CSV reader."""
    from pyarrow import csv

    def batches() -> Iterator[Any]:
        tables = [csv.read_csv(path) for path in paths(folder)]
        values = np.concatenate(
            [np.stack([column.to_numpy() for column in table.columns], 1).astype(np.float32) for table in tables]
        )
        order = np.random.permutation(len(values))
        for start in range(0, len(values), BATCH):
            chosen = values[order[start : start + BATCH]]
            yield (chosen[:, :-1] - MEAN) / STD, chosen[:, -1]

    return batches


def _tf_parse(axis: int) -> Callable[[Any], Any]:
    import tensorflow as tf

    def parse(lines: Any) -> Any:
        fields = tf.io.decode_csv(lines, [0.0] * (FEATURES + 1))
        return (tf.stack(fields[:-1], axis) - MEAN) / STD, fields[-1]

    return parse


@WORKLOAD.peer("tf.data, textbook", "tensorflow")
def tf_textbook(folder: Path) -> Pass:
    """Parse each row in a call of its own, as textbooks write it."""
    dataset = tf_lines(folder).map(_tf_parse(0), num_parallel_calls=5).batch(BATCH).prefetch(1)
    return lambda: dataset


@WORKLOAD.peer("tf.data, vectorised", "tensorflow")
def tf_vectorised(folder: Path) -> Pass:
    """Parse batches, some at once."""
    dataset = tf_lines(folder).batch(BATCH).map(_tf_parse(1), num_parallel_calls=5).prefetch(1)
    return lambda: dataset


@WORKLOAD.peer("tf.data, vectorised, one call at a time", "tensorflow")
def tf_sequential(folder: Path) -> Pass:
    """Parse batches one after the other."""
    dataset = tf_lines(folder).batch(BATCH).map(_tf_parse(1)).prefetch(1)
    return lambda: dataset


@WORKLOAD.peer("tf.data, make_csv_dataset", "tensorflow")
def tf_make_csv(folder: Path) -> Pass:
    """Have batches of columns read, and stack and scale them."""
    import tensorflow as tf

    dataset = tf.data.experimental.make_csv_dataset(
        str(folder / "*.csv"),
        BATCH,
        column_defaults=[0.0] * (FEATURES + 1),
        label_name="y",
        num_epochs=1,
        shuffle_buffer_size=WINDOW,
        num_parallel_reads=CYCLE,
        prefetch_buffer_size=1,
    ).map(lambda x, y: ((tf.stack(list(x.values()), 1) - MEAN) / STD, y))
    return lambda: dataset


def _torch_loader(folder: Path, per_row: bool = True, **arguments: Any) -> Pass:
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Rows(IterableDataset):
        def __iter__(self) -> Iterator[Any]:
            worker = get_worker_info()
            files = paths(folder) if worker is None else paths(folder)[worker.id :: worker.num_workers]
            return map(list_row, lines_of(files)) if per_row else lines_of(files)

    loader: Any = DataLoader(Rows(), BATCH, **arguments)
    return lambda: loader


@WORKLOAD.peer("torch DataLoader, 0 workers", "torch")
def torch_inline(folder: Path) -> Pass:
    """Parse rows with numpy, and gather them as numpy does."""
    return _torch_loader(folder, collate_fn=gathered)


@WORKLOAD.peer("torch DataLoader, 0 workers, default collate", "torch")
def torch_default(folder: Path) -> Pass:
    """Do the same as people write it first."""
    return _torch_loader(folder)


@WORKLOAD.peer("torch DataLoader, batch first: collate_fn parses", "torch")
def torch_collate(folder: Path) -> Pass:
    """Give the loader lines, and parse 32 of them where it gathers a batch."""
    return _torch_loader(folder, per_row=False, collate_fn=list_rows)


@WORKLOAD.peer("torch DataLoader, 2 workers", "torch")
def torch_workers(folder: Path) -> Pass:
    """Share the files between two processes that live on, and send numpy's arrays."""
    workers: Any = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}
    return _torch_loader(folder, collate_fn=gathered, **workers)


@WORKLOAD.peer("torchdata.nodes", "torchdata")
def torch_nodes(folder: Path) -> Pass:
    """Parse rows, then gather them."""
    from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper

    def batches() -> Any:
        rows: Any = Mapper(IterableWrapper(lines_of(paths(folder))), list_row)
        return Loader(Mapper(Batcher(rows, BATCH, drop_last=False), gathered))

    return batches


@WORKLOAD.peer("torchdata, batch first", "torchdata")
def torch_nodes_batched(folder: Path) -> Pass:
    """Gather lines, then parse 32 at once."""
    from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper

    def batches() -> Any:
        lines: Any = IterableWrapper(lines_of(paths(folder)))
        return Loader(Mapper(Batcher(lines, BATCH, drop_last=False), list_rows))

    return batches


@WORKLOAD.peer("Grain, threads", "grain")
def grain_threads(folder: Path) -> Pass:
    """Parse each row, with the library's own defaults."""
    dataset = grain_lines(folder, 1).map(list_row).batch(BATCH, batch_fn=gathered)
    return lambda: dataset


@WORKLOAD.peer("Grain, batch first, 500 lines ahead", "grain")
def grain_batched(folder: Path) -> Pass:
    """Parse 32 rows at once, and let each file's thread run far ahead."""
    dataset = grain_lines(folder, 500).batch(BATCH, batch_fn=list).map(list_rows)
    return lambda: dataset


@WORKLOAD.peer("SPDL, batched", "spdl.pipeline")
def spdl_batched(folder: Path) -> Pass:
    """Give the pipeline lists of 32 lines, which two threads parse."""
    from spdl.pipeline import PipelineBuilder

    def batches() -> Iterator[Any]:
        builder: Any = PipelineBuilder().add_source(cut(lines_of(paths(folder))))
        pipeline = builder.pipe(list_rows, concurrency=2).add_sink(3).build(num_threads=2)
        with pipeline.auto_stop():
            yield from pipeline

    return batches


WORKLOAD.target("aiodata, vectorized=True", "tf.data", 7, "tf.data's best form")
WORKLOAD.target("aiodata, vectorized=True", "tf.data, textbook", 20)
WORKLOAD.target("aiodata, vectorized=True", ("torch", "Grain", "SPDL", "tf.data"), 1.5, "the fastest peer")
WORKLOAD.target("aiodata, vectorized=True", "plain loop, batched", 1.2)
WORKLOAD.target("aiodata, vectorized=True", ("np.loadtxt", "pyarrow"), 0.6, "the columnar loop")
WORKLOAD.target("aiodata, per-row function", "tf.data, textbook", 4)
PER_ROW = ("torch DataLoader, 0", "torch DataLoader, 2", "torchdata.nodes", "Grain, threads", "tf.data, textbook")
WORKLOAD.target("aiodata, per-row function", PER_ROW, 1, "the fastest peer that parses rows")
WORKLOAD.target("aiodata, per-row function", "plain loop, per row", 0.8)
