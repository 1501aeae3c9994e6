"""`skip`: leave out the first elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.block import Block, Failure, no_blocks
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.position import Origin
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
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


def _skip(run: Run, source: Source, *, start: Cursor | None, count: int) -> AsyncIterator[Block[Any]]:
    if count < 0:
        return no_blocks()
    return _behind(run, source.open(start), count if start is None else 0)


async def _behind(run: Run, blocks: AsyncIterator[Block[Any]], count: int) -> AsyncIterator[Block[Any]]:
    failed = 0
    async for block in blocks:
        rest = block
        while count and (skipped := rest.chunk(min(count, 256))) is not None:
            count -= skipped.length or 0
            for failure in skipped.computed or ():
                if failure.__class__ is Failure:
                    yield Block(Origin(_begin), failed, computed=[failure])
                    failed += 1
            await run.breathe()
        if count:
            continue
        rest = rest.remainder()
        yield rest.moved(rest.origin.within(rest.here(), rest.offset))


def _begin() -> None:
    """Give the position of a skip that failed: opening there skips, and fails, again."""
    return None
