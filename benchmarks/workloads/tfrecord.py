"""Examples in TFRecord files: read and check, shuffle, batch, parse, prefetch.

128,000 `tf.train.Example`s of 784 bytes and a label, as MNIST's digits are, in 8 files: shuffle within 2,000 records,
batch 128, and give images as uint8 (n, 784) and labels as int64 (n,). Checksums are verified unless a name says no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Pass, Workload
from benchmarks.workloads._tfrecord_loops import (
    BATCH,
    FILES,
    PARSERS,
    PIXELS,
    RECORDS,
    WINDOW,
    cut,
    gathered,
    learnt,
    parse_batches,
    paths,
    protobuf,
    read_records,
    shuffled,
)


def prepare(folder: Path) -> None:
    """Write the files."""
    from aiodata import TFRecordWriter, encode_example

    generator = np.random.default_rng(0)
    for number in range(FILES):
        images = generator.integers(0, 256, (RECORDS, PIXELS), np.uint8)
        labels = generator.integers(0, 10, RECORDS).tolist()
        with TFRecordWriter(folder / f"part-{number}.tfrecord") as writer:
            for image, label in zip(images, labels, strict=True):
                writer.write(encode_example({"image": image.tobytes(), "label": label}))


def total(batch: Any) -> float:
    """Sum up what depends on each image and its label."""
    if isinstance(batch, np.ndarray):
        batch = parse_batches()(batch.tolist())
    pixels = np.asarray(batch["image"], np.float64).sum(axis=1)
    return float((pixels * (np.asarray(batch["label"], np.float64) + 1)).sum())


WORKLOAD = Workload(
    "tfrecord",
    "TFRecord: 8 files of 16,000 examples of 784 bytes and a label, shuffle 2,000, batch 128, parse",
    FILES * RECORDS,
    prepare,
    unit="record",
    total=total,
)


def _records(folder: Path) -> tuple[Any, Callable[[Any], Any]]:
    """Give the shuffled records, and what parses a batch of them."""
    from aiodata import FixedLenFeature, RawFeature, TFRecordDataset, parse_example

    features = {"image": RawFeature([PIXELS], np.uint8), "label": FixedLenFeature([], np.int64)}
    return TFRecordDataset(paths(folder)).shuffle(WINDOW, seed=1), partial(parse_example, features=features)


def _vectorized(folder: Path) -> Any:
    records, parse = _records(folder)
    return records.map(parse, vectorized=True).batch(BATCH).prefetch(1)


@WORKLOAD.ours("aiodata")
def vectorized(folder: Path) -> Pass:
    """Parse blocks of records, and cut batches from what they hold."""
    dataset = _vectorized(folder)
    return lambda: dataset


@WORKLOAD.ours("aiodata, async for")
def vectorized_async(folder: Path) -> Pass:
    """Do the same in an event loop."""
    dataset = _vectorized(folder)
    return lambda: _only_async(dataset)


@WORKLOAD.ours("aiodata, batches are parsed")
def batched(folder: Path) -> Pass:
    """Cut batches of records, and parse each."""
    records, parse = _records(folder)
    dataset = records.batch(BATCH).map(parse).prefetch(1)
    return lambda: dataset


async def _only_async(dataset: Any) -> Any:
    async for batch in dataset:
        yield batch


def _tf_data(folder: Path, parse_batch: bool = True, calls: int | None = None, **arguments: Any) -> Pass:
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    parser = tf.io.parse_example if parse_batch else tf.io.parse_single_example

    def parse(records: Any) -> Any:
        found = parser(records, features)
        return {"image": tf.io.decode_raw(found["image"], tf.uint8), "label": found["label"]}

    dataset = tf.data.TFRecordDataset(paths(folder), **arguments).shuffle(WINDOW)
    if parse_batch:
        dataset = dataset.batch(BATCH).map(parse, num_parallel_calls=calls)
    else:
        dataset = dataset.map(parse, num_parallel_calls=calls).batch(BATCH)
    dataset = dataset.prefetch(1)
    return lambda: dataset


@WORKLOAD.peer("tf.data, parse_example", "tensorflow")
def tf_batched(folder: Path) -> Pass:
    """Parse batches, two at once."""
    return _tf_data(folder, calls=2)


@WORKLOAD.peer("tf.data, parse_example, one call at a time", "tensorflow")
def tf_sequential(folder: Path) -> Pass:
    """Parse batches one after the other."""
    return _tf_data(folder)


@WORKLOAD.peer("tf.data, parse_example, parallel reads", "tensorflow")
def tf_parallel(folder: Path) -> Pass:
    """Read two files at once as well."""
    return _tf_data(folder, calls=2, num_parallel_reads=2)


@WORKLOAD.peer("tf.data, parse_single_example", "tensorflow")
def tf_single(folder: Path) -> Pass:
    """Parse each record by itself."""
    return _tf_data(folder, parse_batch=False, calls=2)


def _torch_loader(folder: Path, **arguments: Any) -> Pass:
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Records(IterableDataset):
        def __iter__(self) -> Iterator[Any]:
            worker = get_worker_info()
            files = paths(folder) if worker is None else paths(folder)[worker.id :: worker.num_workers]
            return shuffled(read_records(files))

    loader: Any = DataLoader(Records(), BATCH, collate_fn=parse_batches(), **arguments)
    return lambda: loader


@WORKLOAD.peer("torch DataLoader, own reader, 0 workers", f"torch,{PARSERS}")
def torch_inline(folder: Path) -> Pass:
    """Read by hand, parse by protobuf where batches are gathered."""
    return _torch_loader(folder)


@WORKLOAD.peer("torch DataLoader, own reader, 2 workers", f"torch,{PARSERS}")
def torch_workers(folder: Path) -> Pass:
    """Share the files between two processes that live on."""
    return _torch_loader(folder, num_workers=2, persistent_workers=True, multiprocessing_context="fork")


@WORKLOAD.peer("SPDL, one file per task", f"spdl.pipeline,{PARSERS}")
def spdl_files(folder: Path) -> Pass:
    """Read and parse files in two threads, shuffle and gather what they give."""
    from spdl.pipeline import PipelineBuilder

    parse = protobuf()

    def examples() -> Iterator[Any]:
        builder: Any = PipelineBuilder().add_source(paths(folder))
        stage = builder.pipe(lambda path: list(map(parse, read_records([path]))), concurrency=2)
        pipeline = stage.add_sink(1).build(num_threads=2)
        with pipeline.auto_stop():
            for file in pipeline:
                yield from file

    return lambda: map(gathered, cut(shuffled(examples())))


@WORKLOAD.peer("Grain, checksums not verified", "grain,google.protobuf")
def grain_batched(folder: Path) -> Pass:
    """Read files one after the other, let their threads run ahead, and parse batches."""
    from grain.experimental import InterleaveIterDataset, TFRecordIterDataset, WindowShuffleIterDataset

    records = InterleaveIterDataset(list(map(TFRecordIterDataset, paths(folder))), cycle_length=1, iter_buffer_size=500)
    shuffled = WindowShuffleIterDataset(records, window_size=WINDOW, seed=1)
    dataset = shuffled.batch(BATCH, batch_fn=list).map(parse_batches())
    return lambda: dataset


@WORKLOAD.limit("plain loop, protobuf", PARSERS)
def plain_protobuf(folder: Path) -> Pass:
    """Do it with generators and protobuf."""
    parse = parse_batches()
    return lambda: map(parse, cut(shuffled(read_records(paths(folder)))))


@WORKLOAD.limit("plain loop, cached layout", PARSERS)
def plain_layout(folder: Path) -> Pass:
    """Slice the records of a batch at once, where they have the bytes of the first one around image and label."""
    parse = parse_batches()

    def batches() -> Iterator[Any]:
        layout: Any = None
        for records in cut(shuffled(read_records(paths(folder)))):
            layout = layout or learnt(records[0])
            first, start, stop = layout
            size = len(first)
            if set(map(len, records)) == {size}:
                rows = np.frombuffer(b"".join(records), np.uint8).reshape(len(records), size)
                labels = rows[:, -1]
                same = (rows[:, :start] == first[:start]).all() and (rows[:, stop:-1] == first[stop:-1]).all()
                if same and (labels < 128).all():
                    yield {"image": rows[:, start:stop].copy(), "label": labels.astype(np.int64)}
                    continue
            yield parse(records)

    return batches


@WORKLOAD.limit("plain loop, not parsed", "google_crc32c")
def plain_unparsed(folder: Path) -> Pass:
    """Give batches of records."""
    batches = partial(np.fromiter, dtype=object)
    return lambda: map(batches, cut(shuffled(read_records(paths(folder)))))


WORKLOAD.target("aiodata", "tf.data", 2.5, "tf.data's best form")
WORKLOAD.target("aiodata", ("torch", "Grain", "SPDL", "tf.data"), 2, "the fastest peer")
WORKLOAD.target("aiodata", "plain loop, cached layout", 0.8)
