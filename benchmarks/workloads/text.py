"""Token sequences of unequal length as batches: 200,000 sequences of 5 to 100 int64, 64 in a batch.

Once padded as they come, once bucketed by length first.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Pass, Workload

ROWS, BATCH = 200_000, 64
BOUNDARIES = [16, 24, 32, 48]
SIZES = [BATCH] * (len(BOUNDARIES) + 1)


def prepare(folder: Path) -> None:
    """Write the tokens, one sequence after the other, and the lengths."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.gamma(2.2, 13.5, ROWS), 5, 100).astype(np.int64)
    np.save(folder / "lengths.npy", lengths)
    np.save(folder / "tokens.npy", generator.integers(1, 30_000, lengths.sum()))


WORKLOAD = Workload(
    "text",
    "text: 200,000 sequences of 5 to 100 tokens, padded in batches of 64; or bucketed by length first",
    ROWS,
    prepare,
    unit="sequence",
    size=len,
    total=lambda batch: np.asarray(batch, np.float64).sum(),
)


def sequences(folder: Path) -> list[Any]:
    """Read the sequences into memory, each an array of its own."""
    tokens, lengths = np.load(folder / "tokens.npy"), np.load(folder / "lengths.npy")
    return [part.copy() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


def padded(rows: list[Any]) -> Any:
    """Pad with numpy."""
    out = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for number, row in enumerate(rows):
        out[number, : len(row)] = row
    return out


def _only_for(dataset: Any) -> Iterator[Any]:
    yield from dataset


async def _only_async(dataset: Any) -> AsyncIterator[Any]:
    async for batch in dataset:
        yield batch


def _from_list(folder: Path) -> Any:
    from aiodata import Dataset

    return Dataset.from_list(sequences(folder))


@WORKLOAD.ours("padded: aiodata")
def ours_padded(folder: Path) -> Pass:
    """Pad batches of a list's elements."""
    dataset = _from_list(folder).padded_batch(BATCH)
    return lambda: _only_for(dataset)


@WORKLOAD.ours("padded: aiodata, async for")
def ours_padded_async(folder: Path) -> Pass:
    """Do the same in an event loop."""
    dataset = _from_list(folder).padded_batch(BATCH)
    return lambda: _only_async(dataset)


@WORKLOAD.ours("padded: aiodata, from_generator")
def ours_generator(folder: Path) -> Pass:
    """Pad batches of a generator's elements."""
    from aiodata import Dataset, TensorSpec

    rows = sequences(folder)
    dataset: Any = Dataset.from_generator(lambda: iter(rows), output_signature=TensorSpec((None,), np.int64))
    batches = dataset.padded_batch(BATCH)
    return lambda: _only_for(batches)


@WORKLOAD.ours("padded: aiodata, ragged_batch, map")
def ours_ragged(folder: Path) -> Pass:
    """Pad ragged batches with numpy."""
    dataset = _from_list(folder).ragged_batch(BATCH).map(padded)
    return lambda: _only_for(dataset)


@WORKLOAD.ours("bucketed: aiodata")
def ours_bucketed(folder: Path) -> Pass:
    """Bucket by length and pad."""
    dataset = _from_list(folder).bucket_by_sequence_length(len, BOUNDARIES, SIZES)
    return lambda: _only_for(dataset)


@WORKLOAD.ours("bucketed: aiodata, async for")
def ours_bucketed_async(folder: Path) -> Pass:
    """Do the same in an event loop."""
    dataset = _from_list(folder).bucket_by_sequence_length(len, BOUNDARIES, SIZES)
    return lambda: _only_async(dataset)


def _tf_rows(folder: Path) -> Any:
    import tensorflow as tf

    tokens, lengths = np.load(folder / "tokens.npy"), np.load(folder / "lengths.npy")
    return tf.data.Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(tokens, lengths))


def _same(row: Any) -> Any:
    return row  # padded_batch refuses the elements of a RaggedTensor; a map makes tensors of them


def _to_tensor(batch: Any) -> Any:
    return batch.to_tensor()


@WORKLOAD.peer("padded: tf.data padded_batch", "tensorflow")
def tf_padded(folder: Path) -> Pass:
    """Pad batches."""
    import tensorflow as tf

    dataset = _tf_rows(folder).map(_same).padded_batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return lambda: dataset


@WORKLOAD.peer("padded: tf.data batches of a RaggedTensor, to_tensor", "tensorflow")
def tf_ragged(folder: Path) -> Pass:
    """Batch rows as they are, then pad a batch at once."""
    import tensorflow as tf

    dataset = _tf_rows(folder).batch(BATCH).map(_to_tensor, num_parallel_calls=tf.data.AUTOTUNE)
    prefetched = dataset.prefetch(tf.data.AUTOTUNE)
    return lambda: prefetched


@WORKLOAD.peer("padded: tf.data ragged_batch, to_tensor", "tensorflow")
def tf_ragged_batch(folder: Path) -> Pass:
    """Do the same by the method of that name."""
    import tensorflow as tf

    dataset = _tf_rows(folder).map(_same).ragged_batch(BATCH).map(_to_tensor, num_parallel_calls=tf.data.AUTOTUNE)
    prefetched = dataset.prefetch(tf.data.AUTOTUNE)
    return lambda: prefetched


@WORKLOAD.peer("bucketed: tf.data bucket_by_sequence_length", "tensorflow")
def tf_bucketed(folder: Path) -> Pass:
    """Bucket by length and pad."""
    import tensorflow as tf

    def length(row: Any) -> Any:
        return tf.shape(row)[0]

    dataset = _tf_rows(folder).map(_same).bucket_by_sequence_length(length, BOUNDARIES, SIZES)
    prefetched = dataset.prefetch(tf.data.AUTOTUNE)
    return lambda: prefetched


def _collate(rows: list[Any]) -> Any:
    from torch.nn.utils.rnn import pad_sequence

    return pad_sequence(rows, batch_first=True)


def _tensors(folder: Path) -> Any:
    import torch

    return list(map(torch.from_numpy, sequences(folder)))


@WORKLOAD.peer("padded: torch pad_sequence, 0 workers", "torch")
def torch_padded(folder: Path) -> Pass:
    """Collate by pad_sequence."""
    from torch.utils.data import DataLoader

    rows = _tensors(folder)
    return lambda: DataLoader(rows, BATCH, collate_fn=_collate)


def _in_buckets(numbers_of_rows: Any, lengths: list[int]) -> Iterator[list[int]]:
    """Give the numbers of the rows of each batch."""
    buckets: list[list[int]] = [[] for _ in SIZES]
    for number in numbers_of_rows:
        place = bisect(BOUNDARIES, lengths[number])
        bucket = buckets[place]
        bucket.append(number)
        if len(bucket) == BATCH:
            yield bucket
            buckets[place] = []
    yield from filter(None, buckets)


class _BucketSampler:
    """A batch sampler for torch."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def __iter__(self) -> Iterator[list[int]]:
        return _in_buckets(range(ROWS), self.lengths)


@WORKLOAD.peer("bucketed: torch batch sampler, pad_sequence, 0 workers", "torch")
def torch_bucketed(folder: Path) -> Pass:
    """Choose the rows of a batch by lengths that are known in advance."""
    from torch.utils.data import DataLoader

    rows = _tensors(folder)
    sampler: Any = _BucketSampler(list(map(len, rows)))
    return lambda: DataLoader(rows, batch_sampler=sampler, collate_fn=_collate)


@WORKLOAD.peer("padded: Grain batch_fn", "grain")
def grain_padded(folder: Path) -> Pass:
    """Batch by a function of one's own."""
    import grain

    dataset = grain.MapDataset.source(sequences(folder)).batch(BATCH, batch_fn=padded)
    iterable = dataset.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
    return lambda: iterable


def _spdl(parts: Iterator[list[Any]]) -> Iterator[Any]:
    from spdl.pipeline import PipelineBuilder

    pipeline = PipelineBuilder().add_source(parts).pipe(padded, output_order="input").add_sink(8)
    with (built := pipeline.build(num_threads=1)).auto_stop():
        yield from built


@WORKLOAD.peer("padded: SPDL, a batch per task", "spdl")
def spdl_padded(folder: Path) -> Pass:
    """Pad a batch in a thread."""
    rows = sequences(folder)
    return lambda: _spdl(rows[start : start + BATCH] for start in range(0, ROWS, BATCH))


@WORKLOAD.limit("padded: plain loop")
def plain_padded(folder: Path) -> Pass:
    """Pad batches of consecutive rows."""
    rows = sequences(folder)

    def batches() -> Iterator[Any]:
        each = iter(rows)
        while batch := list(islice(each, BATCH)):
            yield padded(batch)

    return batches


@WORKLOAD.limit("bucketed: plain loop")
def plain_bucketed(folder: Path) -> Pass:
    """Bucket by length and pad."""
    rows = sequences(folder)

    def batches() -> Iterator[Any]:
        buckets: list[list[Any]] = [[] for _ in SIZES]
        for row in rows:
            place = bisect(BOUNDARIES, len(row))
            bucket = buckets[place]
            bucket.append(row)
            if len(bucket) == BATCH:
                buckets[place] = []
                yield padded(bucket)
        yield from map(padded, filter(None, buckets))

    return batches


for form, beside in (("padded", 4), ("bucketed", 40)):
    peers = tuple(f"{form}: {library}" for library in ("tf.data", "torch", "Grain", "SPDL"))
    WORKLOAD.target(f"{form}: aiodata", f"{form}: tf.data", beside, "tf.data's best form")
    WORKLOAD.target(f"{form}: aiodata", peers, 3, "the fastest peer")
    WORKLOAD.target(f"{form}: aiodata", f"{form}: plain loop", 0.67)
