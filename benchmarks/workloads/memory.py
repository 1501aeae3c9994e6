"""Rows of arrays in memory, shuffled and batched: 1,000,000 rows of 16 float32 and a label, batches of 256.

Once in the order of a window of 10,000 rows, once in an order of all rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Pass, Workload

ROWS, FEATURES, WINDOW, BATCH = 1_000_000, 16, 10_000, 256
STEP_BITS = 12
STEP = 1 << STEP_BITS  # rows that go through the exact window at once


def prepare(folder: Path) -> None:
    """Write the arrays."""
    generator = np.random.default_rng(0)
    np.save(folder / "x.npy", generator.random((ROWS, FEATURES), np.float32))
    np.save(folder / "y.npy", generator.integers(0, 10, ROWS))


WORKLOAD = Workload(
    "memory",
    "memory: 1,000,000 rows of 16 float32 and a label, shuffle, batch 256",
    ROWS,
    prepare,
    # A row that lost its own label changes the sum.
    total=lambda batch: (np.asarray(batch[0], np.float64).sum(1) * (1 + np.asarray(batch[1]))).sum(),
)


def arrays(folder: Path) -> tuple[Any, Any]:
    """Read the arrays into memory."""
    return np.load(folder / "x.npy"), np.load(folder / "y.npy")


def _only_for(dataset: Any) -> Iterator[Any]:
    yield from dataset


async def _only_async(dataset: Any) -> AsyncIterator[Any]:
    async for batch in dataset:
        yield batch


def ours(folder: Path, window: int, way: Any) -> Pass:
    """Shuffle and batch."""
    from aiodata import Dataset

    dataset = Dataset.from_tensor_slices(arrays(folder)).shuffle(window, seed=1).batch(BATCH)
    return lambda: way(dataset)


def tf_rows(folder: Path, window: int) -> Pass:
    """Shuffle and batch, and prefetch as its guide says."""
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(arrays(folder)).shuffle(window, seed=1).batch(BATCH)
    prefetched = dataset.prefetch(tf.data.AUTOTUNE)
    return lambda: prefetched


def tf_rows_alone(folder: Path, window: int) -> Pass:
    """Do the same in one thread."""
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(arrays(folder)).shuffle(window, seed=1).batch(BATCH)
    return lambda: dataset


def tf_indices(folder: Path, window: int) -> Pass:
    """Shuffle numbers, gather the rows of a batch at once."""
    import tensorflow as tf

    x, y = map(tf.constant, arrays(folder))

    def gather(indices: Any) -> Any:
        return tf.gather(x, indices), tf.gather(y, indices)

    indices = tf.data.Dataset.range(ROWS).shuffle(window, seed=1).batch(BATCH)
    dataset = indices.map(gather, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return lambda: dataset


for form, size in (("shuffle 10k", WINDOW), ("whole", ROWS)):
    WORKLOAD.ours(f"{form}: aiodata")(partial(ours, window=size, way=_only_for))
    WORKLOAD.ours(f"{form}: aiodata, async for")(partial(ours, window=size, way=_only_async))
    WORKLOAD.peer(f"{form}: tf.data", "tensorflow")(partial(tf_rows, window=size))
    WORKLOAD.peer(f"{form}: tf.data, no prefetch", "tensorflow")(partial(tf_rows_alone, window=size))
    WORKLOAD.peer(f"{form}: tf.data, indices, batch, gather", "tensorflow")(partial(tf_indices, window=size))


def _torch_rows(folder: Path) -> Any:
    import torch
    from torch.utils.data import TensorDataset

    return TensorDataset(*map(torch.from_numpy, arrays(folder)))


@WORKLOAD.peer("whole: torch BatchSampler, 0 workers", "torch")
def torch_batches(folder: Path) -> Pass:
    """Index tensors with the numbers of a batch, as its documentation says for data that is read in bulk."""
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler

    rows = _torch_rows(folder)
    return lambda: DataLoader(rows, sampler=BatchSampler(RandomSampler(rows), BATCH, False), batch_size=None)


@WORKLOAD.peer("whole: torch shuffle=True, 0 workers", "torch")
def torch_rows(folder: Path) -> Pass:
    """Index row by row and collate, as most do."""
    from torch.utils.data import DataLoader

    rows = _torch_rows(folder)
    return lambda: DataLoader(rows, BATCH, shuffle=True)


@WORKLOAD.peer("whole: torchdata.nodes", "torch,torchdata")
def torch_nodes(folder: Path) -> Pass:
    """Map the numbers of a batch to its rows."""
    from torch.utils.data import BatchSampler, RandomSampler
    from torchdata.nodes import Loader, Mapper, SamplerWrapper

    rows = _torch_rows(folder)
    numbers = SamplerWrapper(BatchSampler(RandomSampler(rows), BATCH, False))
    loader = Loader(Mapper(numbers, rows.__getitem__))
    return lambda: loader


def _grain(dataset: Any) -> Any:
    import grain

    return dataset.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))


class _Gathered:
    """Rows for numbers."""

    def __init__(self, folder: Path) -> None:
        self.x, self.y = arrays(folder)

    def __call__(self, numbers: Any) -> tuple[Any, Any]:
        return self.x[numbers], self.y[numbers]


class _Rows:
    """A source for Grain."""

    def __init__(self, folder: Path) -> None:
        self.x, self.y = arrays(folder)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        return self.x[number], self.y[number]


@WORKLOAD.peer("shuffle 10k: Grain WindowShuffleMapDataset, indices, batch, gather", "grain")
def grain_window(folder: Path) -> Pass:
    """Shuffle numbers within windows that do not overlap, gather the rows of a batch at once."""
    import grain

    numbers = grain.experimental.WindowShuffleMapDataset(grain.MapDataset.range(ROWS), window_size=WINDOW, seed=1)
    dataset = _grain(numbers.batch(BATCH).map(_Gathered(folder)))
    return lambda: dataset


@WORKLOAD.peer("whole: Grain MapDataset, indices, batch, gather", "grain")
def grain_indices(folder: Path) -> Pass:
    """Shuffle numbers, gather the rows of a batch at once."""
    import grain

    dataset = _grain(grain.MapDataset.range(ROWS).shuffle(seed=1).batch(BATCH).map(_Gathered(folder)))
    return lambda: dataset


@WORKLOAD.peer("whole: Grain MapDataset", "grain")
def grain_rows(folder: Path) -> Pass:
    """Shuffle rows and batch them."""
    import grain

    dataset = _grain(grain.MapDataset.source(_Rows(folder)).shuffle(seed=1).batch(BATCH))
    return lambda: dataset


@WORKLOAD.peer("whole: SPDL, a batch per task", "spdl")
def spdl_batches(folder: Path) -> Pass:
    """Gather the rows of a batch in a thread."""
    from spdl.pipeline import PipelineBuilder

    gather = _Gathered(folder)

    def numbers() -> Iterator[Any]:
        order = np.random.permutation(ROWS)
        for start in range(0, ROWS, BATCH):
            yield order[start : start + BATCH]

    def batches() -> Iterator[Any]:
        pipeline = PipelineBuilder().add_source(numbers()).pipe(gather, output_order="input").add_sink(8)
        with (built := pipeline.build(num_threads=1)).auto_stop():
            yield from built

    return batches


def _exact_window(generator: np.random.Generator) -> Iterator[Any]:
    """Give row numbers in the order of a window, draw for draw, STEP of them at once.

    Each step takes out what its slot holds and puts its own number there: what it finds is what the last earlier step
    with this slot put there, else what was there before.
    """
    held = np.arange(WINDOW)
    steps = np.arange(STEP)
    for start in range(WINDOW, ROWS, STEP):
        new = np.arange(start, min(ROWS, start + STEP))
        slots = generator.integers(0, WINDOW, len(new))
        out = held.take(slots)
        keys = slots << STEP_BITS | steps[: len(new)]
        keys.sort()  # the steps of a slot come together, in order
        again = np.flatnonzero((keys[1:] ^ keys[:-1]) < STEP)
        keys &= STEP - 1
        out[keys[again + 1]] = new[keys[again]]
        held[slots] = new  # of steps with one slot the last one counts
        yield out
    generator.shuffle(held)
    yield held


@WORKLOAD.limit("shuffle 10k: numpy, exact window in blocks")
def exact_window(folder: Path) -> Pass:
    """Shuffle numbers in an exact window with numpy, gather the rows of a batch at once."""
    x, y = arrays(folder)

    def batches() -> Iterator[Any]:
        rest = np.empty(0, np.int64)
        for numbers in _exact_window(np.random.default_rng()):
            rest = np.concatenate([rest, numbers])
            stop = len(rest) // BATCH * BATCH
            for start in range(0, stop, BATCH):
                chosen = rest[start : start + BATCH]
                yield x.take(chosen, 0), y.take(chosen)
            rest = rest[stop:]
        yield x.take(rest, 0), y.take(rest)

    return batches


@WORKLOAD.limit("shuffle 10k: plain loop, window of numbers")
def plain_window(folder: Path) -> Pass:
    """Shuffle numbers one by one, gather the rows of a batch at once."""
    x, y = arrays(folder)

    def batches() -> Iterator[Any]:
        generator = np.random.default_rng()
        held = list(range(WINDOW))
        chosen: list[int] = []
        for start in range(WINDOW, ROWS, BATCH):
            new = range(start, min(ROWS, start + BATCH))
            for number, slot in zip(new, generator.integers(0, WINDOW, len(new)).tolist(), strict=True):
                chosen.append(held[slot])
                held[slot] = number
            if len(chosen) >= BATCH:
                yield x.take(chosen[:BATCH], 0), y.take(chosen[:BATCH])
                chosen = chosen[BATCH:]
        generator.shuffle(held)
        chosen += held
        for start in range(0, len(chosen), BATCH):
            yield x.take(chosen[start : start + BATCH], 0), y.take(chosen[start : start + BATCH])

    return batches


def _permuted(folder: Path, gather: Any) -> Pass:
    """Gather the rows of a batch at once, in an order that is drawn in advance."""
    x, y = arrays(folder)

    def batches() -> Iterator[Any]:
        order = np.random.permutation(ROWS)
        for start in range(0, ROWS, BATCH):
            chosen = order[start : start + BATCH]
            yield gather(x, chosen), gather(y, chosen)

    return batches


WORKLOAD.limit("whole: numpy permutation, take")(partial(_permuted, gather=partial(np.take, axis=0)))
WORKLOAD.limit("whole: numpy permutation, fancy index")(partial(_permuted, gather=getitem))


WORKLOAD.target("shuffle 10k: aiodata", "shuffle 10k: tf.data", 5, "tf.data's best form")
WORKLOAD.target(
    "shuffle 10k: aiodata", ("shuffle 10k: tf.data", "shuffle 10k: Grain", "whole: torch"), 2, "the fastest peer"
)
WORKLOAD.target("shuffle 10k: aiodata", "shuffle 10k: numpy", 0.6)
WORKLOAD.target("whole: aiodata", "whole: tf.data", 5, "tf.data's best form")
WORKLOAD.target(
    "whole: aiodata", ("whole: tf.data", "whole: torch", "whole: Grain", "whole: SPDL"), 2, "the fastest peer"
)
