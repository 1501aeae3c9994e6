"""`shard`: every n-th element."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.block import Block, Tally, resumable
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.structure import map_structure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["shard"]

T = TypeVar("T")


def shard(self: Dataset[T], num_shards: int, index: int) -> Dataset[T]:
    """Give the elements whose number is `index` modulo `num_shards`.

    The shards 0 to `num_shards - 1` together hold each element once. Put it before a `shuffle`, or give the shuffle
    a seed: shards of different orders overlap. The elements of the other shards are computed and dropped. An element
    that fails counts (in tf.data counting starts over) and raises in its own shard only.

    Args:
        num_shards: Number of shards, at least 1.
        index: This shard's number, from 0.

    Raises:
        TypeError: An argument is not an integer.
        ValueError: Not `0 <= index < num_shards`.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(5).shard(2, 1)]
    [1, 3]

    Source: `tf.data.Dataset.shard`.
    """
    shards = check_integer(num_shards, "shard", "num_shards", 1)
    number = check_integer(index, "shard", "index", 0)
    if number >= shards:
        raise ValueError(f"shard: index must be below num_shards ({shards}), not {number}")
    return self.then(
        "shard",
        partial(_shard, shards=shards, number=number),
        detail=f"{shards}, {number}",
        count=partial(_count, shards=shards, number=number),
    )


def _count(available: int, shards: int, number: int) -> int:
    return available if available in (INFINITE, UNKNOWN) else max(0, (available - number + shards - 1) // shards)


def _shard(run: Run, source: Source, *, start: Cursor | None, shards: int, number: int) -> AsyncIterator[Block[Any]]:
    phase, cursor = start or (0, None)
    return _every(source.open(cursor), shards, number, phase)


async def _every(blocks: AsyncIterator[Block[Any]], shards: int, number: int, phase: int) -> AsyncIterator[Block[Any]]:
    """Give every n-th element; `phase` is the number of the next input element modulo `shards`."""
    async for block in blocks:
        first = (number - phase) % shards
        origin = block.origin.within(partial(_position, phase, block.here()), block.offset)
        origin.place = partial(_place, origin.place, first, shards)
        if block.columns is not None and block.length is not None:
            count = max(0, (block.length - first + shards - 1) // shards)
            yield Block(
                origin, columns=map_structure(partial(_stride, first=first, step=shards), block.columns), length=count
            )
            phase = (phase + block.length) % shards
        else:
            tally = Tally()
            yield Block(origin, rows=_picked(block.rows(), first, shards, tally))
            phase = (phase + tally.count) % shards


def _stride(array: Any, first: int, step: int) -> Any:
    return None if array is None else array[first::step]


def _picked(rows: Iterator[Any], first: int, shards: int, tally: Tally) -> Iterator[Any]:
    def picking() -> Iterator[Any]:
        while True:
            wanted = (tally.count - first) % shards == 0
            try:
                element = next(rows, tally)
            except Exception:
                tally.count += 1
                if wanted:
                    raise
                continue
            if element is tally:
                return
            tally.count += 1
            if wanted:
                yield element

    return resumable(picking)


def _place(place: Callable[[int], str | None], first: int, shards: int, offset: int) -> str | None:
    return place(first + offset * shards)


def _position(phase: int, cursor: Callable[[], Any]) -> Any:
    return [phase, cursor()]
