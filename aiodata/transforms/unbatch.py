"""`unbatch`: the rows of each element as elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.columns import length, merge_batches
from aiodata.engine.block import Block, Failure, Tally
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.position import locate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["unbatch"]


def unbatch(self: Dataset[Any]) -> Dataset[Any]:
    """Split every element along its components' first axis.

    Elements with no rows vanish. Components whose numbers of rows differ are an error in place of that element.

    Raises:
        StructureError: While iterating: a component has no first axis, or the numbers of rows differ.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(5).batch(2).unbatch()]
    [0, 1, 2, 3, 4]

    Source: `tf.data.Dataset.unbatch`.
    """
    return self.then("unbatch", _unbatch, count=partial(_count, rows=self.plan.rows))


def _count(available: int, rows: int | None) -> int:
    if available == INFINITE:
        return INFINITE
    return UNKNOWN if rows is None or available == UNKNOWN else available * rows


def _unbatch(run: Run, source: Source, *, start: Cursor | None) -> AsyncIterator[Block[Any]]:
    return _rows_of(run, source.open(start))


async def _rows_of(run: Run, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
    index = Tally()
    async for block in blocks:
        if block.columns is not None and block.length:
            try:
                rows = merge_batches(block.columns)
                count = length(rows)
            except ValueError:
                pass  # one element at a time, to name the one that does not fit
            else:
                index.count += block.length
                if count:
                    yield Block(block.origin.within(block.here(), block.offset), columns=rows, length=count)
                continue
        while (chunk := block.chunk(1)) is not None:
            yield _rows_of_one(chunk, index.count)
            index.count += 1
            await run.breathe()


def _rows_of_one(chunk: Block[Any], index: int) -> Block[Any]:
    origin = chunk.origin.within(chunk.here(), chunk.offset)
    element = next(chunk.rows()) if chunk.computed is None else chunk.computed[0]
    if element.__class__ is Failure:
        return Block.failed(element.exception, origin)
    try:
        return Block(origin, columns=element, length=length(element))
    except ValueError as error:
        locate(error, "unbatch()", index, chunk.origin, chunk.offset)
        return Block.failed(error, origin)
