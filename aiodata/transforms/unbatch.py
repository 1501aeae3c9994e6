"""`unbatch`: the rows of each element as elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.columns import length, merge_batches
from aiodata.engine.block import Block, Failure, Tally
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.position import locate
from aiodata.spec import unbatched

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor, Origin
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["rows_of", "unbatch"]


def unbatch(self: Dataset[Any], name: str | None = None) -> Dataset[Any]:
    """Split every element along its components' first axis.

    Elements with no rows vanish. Components whose numbers of rows differ are an error in place of that element.

    Args:
        name: A name for the stage, shown in `repr`.

    Raises:
        ValueError: It is known already that a component has no first axis, or that the numbers of rows differ.
        StructureError: While iterating: a component has no first axis, or the numbers of rows differ.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(5).batch(2).unbatch()]
    [0, 1, 2, 3, 4]

    Source: `tf.data.Dataset.unbatch`.
    """
    _, rows = unbatched(self.plan.element_spec())
    rows = self.plan.rows if rows is None else rows
    count = partial(_count, rows=rows)
    return self.then("unbatch", _unbatch, count=count, spec=lambda known: unbatched(known)[0], title=name)


def _count(available: int, rows: int | None) -> int:
    if available == INFINITE:
        return INFINITE
    return UNKNOWN if rows is None or available == UNKNOWN else available * rows


def _unbatch(run: Run, source: Source, *, start: Cursor | None) -> AsyncIterator[Block[Any]]:
    return rows_of(run, source.open(start), "unbatch()")


async def rows_of(run: Run, blocks: AsyncIterator[Block[Any]], label: str) -> AsyncGenerator[Block[Any], None]:
    """Give the rows of elements, as columns, and the errors among them; `label` is what an error calls the stage."""
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
                    yield Block(_origin(block, count // block.length), columns=rows, length=count)
                continue
        while (chunk := block.chunk(1)) is not None:
            yield _rows_of_one(chunk, index.count, label)
            index.count += 1
            await run.breathe()


def _rows_of_one(chunk: Block[Any], index: int, label: str) -> Block[Any]:
    element = next(chunk.rows()) if chunk.computed is None else chunk.computed[0]
    if element.__class__ is Failure:
        return Block.failed(element.exception, _origin(chunk, 1))
    try:
        rows = length(element)
    except ValueError as error:
        locate(error, label, index, chunk.origin, chunk.offset)
        return Block.failed(error, _origin(chunk, 1))
    return Block(_origin(chunk, rows), columns=element, length=rows)


def _origin(block: Block[Any], size: int) -> Origin:
    """Give the origin of the rows of a block's elements, `size` each: an element's place is that of all its rows."""
    origin = block.origin.within(block.here(), block.offset)
    origin.place = partial(_place, origin.place, max(1, size))
    return origin


def _place(place: Callable[[int], str | None], size: int, offset: int) -> str | None:
    return place(offset // size)
