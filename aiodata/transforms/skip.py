"""`skip`: leave out the first elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.block import Block, Failure, no_blocks
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.position import cursor
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Origin
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["skip"]

T = TypeVar("T")


def skip(self: Dataset[T], count: int, name: str | None = None) -> Dataset[T]:
    """Leave out the first `count` elements.

    They are computed and dropped when the first element is asked for. An error among them is raised, and counts as an
    element that was left out (in tf.data counting starts over). Behind a `shuffle` each pass skips others; `split`
    parts a dataset for good.

    Args:
        count: How many; any negative number skips all.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `count` is not an integer.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(4).skip(2)]
    [2, 3]

    Source: `tf.data.Dataset.skip`.
    """
    count = check_integer(count, "skip", "count")
    available = partial(_count, least=count)
    return self.then("skip", partial(_skip, count=count), detail=str(count), count=available, spec=same, title=name)


def _count(available: int, least: int) -> int:
    if available in (INFINITE, UNKNOWN):
        return available
    return 0 if least < 0 else max(0, available - least)


def _skip(run: Run, source: Source, *, start: Any, count: int) -> AsyncIterator[Block[Any]]:
    if count < 0:
        return no_blocks()
    left, at = start or (count, None)
    return _behind(run, source.open(at), left)


async def _behind(run: Run, blocks: AsyncIterator[Block[Any]], left: int) -> AsyncIterator[Block[Any]]:
    async for block in blocks:
        rest = block
        while left and (skipped := rest.chunk(min(left, 256))) is not None:
            for index, element in enumerate(skipped.computed or ()):
                if element.__class__ is Failure:
                    yield Block(_origin(skipped, index, left - index), computed=[element])
            left -= skipped.length or 0
            await run.breathe()
        if not left:
            rest = rest.remainder()
            yield rest.moved(_origin(rest, 0, 0))


def _origin(block: Block[Any], index: int, left: int) -> Origin:
    """Give the origin of a block's element, at which so many elements are left to skip."""
    offset = block.offset + index
    return block.origin.within(partial(_position, left, partial(cursor, block.origin, offset)), offset)


def _position(left: int, here: Callable[[], Any]) -> Any:
    return [left, here()]
