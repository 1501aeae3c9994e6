"""A pipeline whose input never ends, and that gives nothing, leaves the loop to others and can be cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset
from aiodata.experimental import Reducer

if TYPE_CHECKING:
    from collections.abc import Callable


MANY = 10**12


def forever() -> Any:
    while True:
        yield 0


INPUTS: dict[str, Callable[[], Dataset[Any]]] = {
    "short epochs": lambda: Dataset.range(1).repeat(),
    "long blocks": lambda: Dataset.range(MANY),
    "a generator": lambda: Dataset.from_generator(forever),
    "counter": lambda: Dataset.counter(),
    "random": lambda: Dataset.random(seed=1),
    "kept": lambda: Dataset.range(2).cache().repeat(),
    "shuffled": lambda: Dataset.range(3).shuffle(3, seed=1).repeat(),
    "flat_map": lambda: Dataset.counter().flat_map(lambda x: Dataset.range(1)),
    "interleave": lambda: Dataset.counter().interleave(lambda x: Dataset.range(1), 2),
    "interleave at once": lambda: Dataset.counter().interleave(lambda x: Dataset.range(1), 2, num_parallel_calls=2),
    "map at once": lambda: Dataset.range(1).repeat().map(abs, num_parallel_calls=2),
    "zip": lambda: Dataset.zip(Dataset.range(1).repeat(), Dataset.range(2).repeat()).map(lambda x, y: y),
    "windows": lambda: Dataset.counter().window(1).flat_map(lambda window: window),
    "unbatch": lambda: Dataset.counter().map(lambda x: np.array([x])).unbatch(),
    "mixed": lambda: Dataset.sample_from_datasets([Dataset.range(1).repeat(), Dataset.counter()], seed=1),
    "prefetch": lambda: Dataset.range(1).repeat().prefetch(2),
}

READERS: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "batch": lambda ds: ds.batch(MANY),
    "batch_by_size": lambda ds: ds.batch_by_size(1, lambda x: 0),
    "empty datasets": lambda ds: ds.flat_map(lambda x: Dataset.range(0)),
    "empty datasets at once": lambda ds: ds.interleave(lambda x: Dataset.range(0), 2, num_parallel_calls=2),
    "empty rows": lambda ds: ds.map(lambda x: np.zeros(0)).unbatch(),
    "filter": lambda ds: ds.filter(lambda x: False),
    "group_by_reducer": lambda ds: ds.group_by_reducer(abs, Reducer(lambda key: 0, lambda state, x: 0, lambda x: x)),
    "group_by_window": lambda ds: ds.group_by_window(lambda x: 0, lambda key, window: window, window_size=MANY),
    "ignore_errors": lambda ds: ds.map(lambda x: 1 // 0).ignore_errors(),
    "padded_batch": lambda ds: ds.padded_batch(MANY),
    "rebatch": lambda ds: ds.batch(1).rebatch(MANY),
    "scan": lambda ds: ds.scan(0, lambda state, x: (state, x)).filter(lambda x: False),
    "shard": lambda ds: ds.shard(MANY, MANY - 1),
    "shuffle": lambda ds: ds.shuffle(10**7),
    "skip": lambda ds: ds.skip(MANY),
    "take_while": lambda ds: ds.take_while(lambda x: True).skip(MANY),
    "unique": lambda ds: ds.map(lambda x: 0).unique().skip(1),
    "window": lambda ds: ds.window(MANY),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", INPUTS)
async def test_the_loop_goes_on(name: str, reader: str) -> None:
    async def read() -> None:
        async with READERS[reader](INPUTS[name]()).iterate() as iterator:
            await anext(iterator)

    reading = asyncio.create_task(read())
    for _ in range(4):
        await asyncio.sleep(0)
        assert not reading.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


@pytest.mark.parametrize("name", INPUTS)
async def test_the_loop_goes_on_while_reducing(name: str) -> None:
    reducing = asyncio.create_task(INPUTS[name]().areduce(0, lambda state, x: 0))
    for _ in range(4):
        await asyncio.sleep(0)
        assert not reducing.done()
    reducing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reducing
