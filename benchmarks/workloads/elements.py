"""What an element costs when there is next to nothing to do: 200,000 numbers, each plus 1, in batches of 100."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Pass, Workload

ROWS, BATCH = 200_000, 100

WORKLOAD = Workload(
    "elements",
    "cost of an element: 200,000 numbers, map(x + 1), batch 100",
    ROWS,
    unit="element",
    size=len,
    total=lambda batch: np.asarray(batch, np.float64).sum(),
)


def add_one(x: Any) -> Any:
    """Do next to nothing."""
    return x + 1


def _only_for(dataset: Any) -> Iterator[Any]:
    yield from dataset


async def _only_async(dataset: Any) -> AsyncIterator[Any]:
    async for batch in dataset:
        yield batch


@WORKLOAD.ours("aiodata")
def per_element(folder: Path) -> Pass:
    """Call the function for each element."""
    from aiodata import Dataset

    dataset = Dataset.range(ROWS).map(add_one).batch(BATCH)
    return lambda: _only_for(dataset)


@WORKLOAD.ours("aiodata, async for")
def per_element_async(folder: Path) -> Pass:
    """Do the same in an event loop."""
    from aiodata import Dataset

    dataset = Dataset.range(ROWS).map(add_one).batch(BATCH)
    return lambda: _only_async(dataset)


@WORKLOAD.ours("aiodata, vectorized=True")
def vectorized(folder: Path) -> Pass:
    """Call the function for blocks of elements."""
    from aiodata import Dataset

    dataset = Dataset.range(ROWS).map(add_one, vectorized=True).batch(BATCH)
    return lambda: _only_for(dataset)


@WORKLOAD.ours("aiodata, batch then map")
def batch_first(folder: Path) -> Pass:
    """Call the function for batches."""
    from aiodata import Dataset

    dataset = Dataset.range(ROWS).batch(BATCH).map(add_one)
    return lambda: _only_for(dataset)


@WORKLOAD.peer("tf.data, same chain", "tensorflow")
def tf_same(folder: Path) -> Pass:
    """Map a function that is compiled to a graph."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(ROWS).map(add_one).batch(BATCH)
    return lambda: dataset


@WORKLOAD.peer("tf.data, batch then map", "tensorflow")
def tf_batch_first(folder: Path) -> Pass:
    """Map it over batches, as its guide says."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(ROWS).batch(BATCH).map(add_one)
    return lambda: dataset


class _Numbers:
    """A map-style data set."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> int:
        if not 0 <= number < ROWS:
            raise IndexError(number)
        return number + 1


@WORKLOAD.peer("torch map-style, 0 workers", "torch")
def torch_map_style(folder: Path) -> Pass:
    """Have rows collated by default."""
    from torch.utils.data import DataLoader

    rows: Any = _Numbers()
    return lambda: DataLoader(rows, BATCH)


@WORKLOAD.peer("torchdata.nodes Mapper", "torch,torchdata")
def torch_nodes(folder: Path) -> Pass:
    """Map, batch, and make tensors of the batches."""
    import torch
    from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper

    mapped = Mapper(IterableWrapper(range(ROWS)), add_one)
    loader = Loader(Mapper(Batcher(mapped, BATCH, drop_last=False), torch.tensor))
    return lambda: loader


@WORKLOAD.peer("Grain map, no threads", "grain")
def grain_map(folder: Path) -> Pass:
    """Map and batch with random access."""
    import grain

    dataset = grain.MapDataset.range(ROWS).map(add_one).batch(BATCH)
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    iterable = dataset.to_iter_dataset(options)
    return lambda: iterable


@WORKLOAD.peer("SPDL, a batch per task", "spdl")
def spdl_batches(folder: Path) -> Pass:
    """Compute a batch in a thread."""
    from spdl.pipeline import PipelineBuilder

    def compute(numbers: range) -> Any:
        return np.array([add_one(number) for number in numbers])

    def batches() -> Iterator[Any]:
        numbers = range(ROWS)
        parts = (numbers[start : start + BATCH] for start in range(0, ROWS, BATCH))
        pipeline = PipelineBuilder().add_source(parts).pipe(compute, output_order="input").add_sink(8)
        with (built := pipeline.build(num_threads=1)).auto_stop():
            yield from built

    return batches


@WORKLOAD.limit("plain generators")
def plain_generators(folder: Path) -> Pass:
    """Chain generators."""

    def batches() -> Iterator[Any]:
        mapped = (add_one(number) for number in range(ROWS))
        while rows := list(islice(mapped, BATCH)):
            yield np.array(rows)

    return batches


async def _blocks(values: Any) -> AsyncIterator[list[Any]]:
    for start in range(0, ROWS, BATCH):
        yield list(values(start, min(ROWS, start + BATCH)))


async def _mapped(blocks: AsyncIterator[list[Any]]) -> AsyncIterator[list[Any]]:
    async for block in blocks:
        yield [add_one(value) for value in block]


async def _batched(blocks: AsyncIterator[list[Any]]) -> AsyncIterator[Any]:
    async for block in blocks:
        yield np.array(block)


@WORKLOAD.limit("block loop, async generators, lists of 100")
def block_loop(folder: Path) -> Pass:
    """Pass lists of Python's integers between async generators."""
    return lambda: _batched(_mapped(_blocks(range)))


@WORKLOAD.limit("block loop of numpy scalars")
def block_loop_of_scalars(folder: Path) -> Pass:
    """Pass lists of numpy scalars, which is what aiodata's elements are."""
    return lambda: _batched(_mapped(_blocks(np.arange)))


@WORKLOAD.limit("numpy, batch then map")
def numpy_batches(folder: Path) -> Pass:
    """Compute whole batches."""
    return lambda: (add_one(np.arange(start, min(ROWS, start + BATCH))) for start in range(0, ROWS, BATCH))


for way in ("aiodata", "aiodata, vectorized=True"):
    WORKLOAD.target(way, "tf.data, batch then map", 5)
    WORKLOAD.target(way, "tf.data, same chain", 100)
    WORKLOAD.target(way, ("torch", "Grain", "SPDL", "tf.data"), 2, "the fastest peer")
    WORKLOAD.target(way, "block loop, async generators", 0.8, "the block loop")
