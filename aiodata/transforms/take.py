"""`take`: the first elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.block import Block, Tally, counted, no_blocks
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["take"]

T = TypeVar("T")


def take(self: Dataset[T], count: int, name: str | None = None) -> Dataset[T]:
    """Give the first `count` elements; the ones behind are not computed.

    An element that fails counts as one. Behind a `shuffle` each pass has others; `split` parts a dataset for good.

    Args:
        count: How many; any negative number takes all. `take(0)` does not even open its input.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `count` is not an integer.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(6).take(2)]
    [0, 1]

    Source: `tf.data.Dataset.take`.
    """
    count = check_integer(count, "take", "count")
    available = partial(_count, most=count)
    return self.then("take", partial(_take, count=count), detail=str(count), count=available, spec=same, title=name)


def _count(available: int, most: int) -> int:
    if most < 0 or available == UNKNOWN:
        return available
    return most if available == INFINITE else min(most, available)


def _take(run: Run, source: Source, *, start: Cursor | None, count: int) -> AsyncIterator[Block[Any]]:
    taken, cursor = start or (0, None)
    if count >= 0 and taken >= count:
        return no_blocks()
    return _first(source.open(cursor), count, taken)


async def _first(blocks: AsyncIterator[Block[Any]], count: int, taken: int) -> AsyncIterator[Block[Any]]:
    async for block in blocks:
        missing = count - taken
        origin = block.origin.within(partial(_position, taken, block.here()), block.offset)
        if count < 0 or (block.length is not None and block.length <= missing):
            yield block.moved(origin)
            taken += block.length or 0
        elif block.has_columns:
            yield block.sliced(0, missing).moved(origin)
            return
        else:
            tally = Tally()
            yield Block(origin, rows=counted(block.rows(), tally, missing))
            taken += tally.count
        if taken >= count >= 0:
            return


def _position(taken: int, cursor: Any) -> Any:
    return [taken, cursor()]
