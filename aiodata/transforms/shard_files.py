"""`shard_files`: the files of one shard."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from aiodata.engine.block import Block, Tally
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.position import Origin
from aiodata.errors import DataError, StateError
from aiodata.spec import same
from aiodata.transforms._shards import check_share

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["shard_files"]

T = TypeVar("T")


def shard_files(self: Dataset[T], num_shards: int, index: int, name: str | None = None) -> Dataset[T]:
    """Give one shard's files out of a dataset of file names, so that each process reads files of its own.

    All names are read first, and sorted by their bytes; a shard has those whose number is `index` modulo `num_shards`.
    So the shards 0 to `num_shards - 1` together hold each file once whatever order the names come in, also where every
    process lists or shuffles them in another one. Shuffle the files of a shard behind this. The shards' numbers of
    files differ by one at most, those of their elements as the files do.

    Fewer files than shards are an error in every shard, for some would have nothing to do: then read all files in each
    process and put `shard(num_shards, index)` behind the reader, which parts the elements.

    A saved state is refused when the names are others.

    Args:
        num_shards: Number of shards, at least 1.
        index: This shard's number, from 0.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `num_shards` or `index` is not an integer. While iterating: an element is no file name.
        ValueError: Not `0 <= index < num_shards`; or there are endlessly many names, or known to be too few.
        DataError: While iterating: there are fewer files than shards.
        Exception: While iterating: what a name failed with; it ends the iteration, for every name decides.

    >>> import aiodata
    >>> names = aiodata.Dataset.from_tensor_slices(["c.csv", "a.csv", "d.csv", "b.csv", "e.csv"])
    >>> [list(names.shard_files(2, index)) for index in range(2)]
    [['a.csv', 'c.csv', 'e.csv'], ['b.csv', 'd.csv']]

    Source: an addition; tf.data's ways are `shard` on a dataset of names, and the FILE policy of `AutoShardPolicy`.
    """
    shards, number = check_share(num_shards, index, "shard_files")
    available = self.plan.cardinality()
    if available == INFINITE:
        raise ValueError("shard_files: the dataset has endlessly many names; put repeat() behind it")
    if available != UNKNOWN and available < shards:
        raise ValueError(_too_few(available, shards, number))
    return self.then(
        "shard_files",
        partial(_shard_files, shards=shards, number=number),
        detail=f"{shards}, {number}",
        count=partial(_count, shards=shards, number=number),
        spec=same,
        title=name,
    )


def _too_few(count: int, shards: int, number: int) -> str:
    return (
        f"shard_files: {count} file{'' if count == 1 else 's'} cannot be parted into {shards} shards; to part the "
        f"elements, leave it out and put shard({shards}, {number}) behind the reader"
    )


def _count(available: int, shards: int, number: int) -> int:
    return available if available < 0 else (available + shards - 1 - number) // shards


def _shard_files(
    run: Run, source: Source, *, start: list[int] | None, shards: int, number: int
) -> AsyncIterator[Block[Any]]:
    return _share(run, source.open(), start, shards, number)


async def _share(
    run: Run, blocks: AsyncIterator[Block[Any]], start: list[int] | None, shards: int, number: int
) -> AsyncIterator[Block[Any]]:
    names: list[Any] = []
    pace = Tally(1)
    async for block in blocks:
        while await run.gather(names, block.rows(), 1 << 12, pace):
            pass
        await run.breathe()
    encoded = [_encoded(name) for name in names]
    order = sorted(range(len(names)), key=encoded.__getitem__)
    if len(names) < shards:
        raise DataError(_too_few(len(names), shards, number))
    facts = [len(names), crc32(b"\0".join(encoded[place] for place in order))]
    if start is not None and start != facts:
        raise StateError(
            f"shard_files: the state was saved with {start[0]} files, now there are {facts[0]}"
            + ("" if start[0] != facts[0] else " of other names")
        )
    own = [names[place] for place in order[number::shards]]
    yield Block(Origin(lambda: facts), computed=own, clean=True)


def _encoded(name: Any) -> bytes:
    if not isinstance(name, (str, bytes, os.PathLike)):
        raise TypeError(f"shard_files: an element is {name!r:.80}, not the name of a file")
    return os.fsencode(name)
