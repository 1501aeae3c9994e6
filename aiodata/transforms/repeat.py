"""`repeat`: the same elements again."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.block import Block, no_blocks
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["repeat"]

T = TypeVar("T")


def repeat(self: Dataset[T], count: int | None = None, name: str | None = None) -> Dataset[T]:
    """Give the elements `count` times, opening the input anew for each epoch.

    A `shuffle` before it gives each epoch another order. An epoch with no elements ends the repetition, so repeating
    an empty dataset for ever ends too.

    Args:
        count: Number of epochs; None or any negative number repeats for ever.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `count` is neither None nor an integer.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(2).repeat(2)]
    [0, 1, 0, 1]

    Source: `tf.data.Dataset.repeat`.
    """
    times = -1 if count is None else max(-1, check_integer(count, "repeat", "count"))
    detail = "" if times < 0 else str(times)
    fused = _is_shuffle(self.plan)
    stage = partial(_repeat, times=times, fused=fused)
    return self.then("repeat", stage, detail=detail, count=partial(_count, times=times), spec=same, title=name)


def _count(available: int, times: int) -> int:
    if times == 0 or available == 0:
        return 0
    if times < 0:
        return INFINITE
    return available if available in (INFINITE, UNKNOWN) else available * times


def _is_shuffle(plan: Plan) -> bool:
    """Tell whether a shuffle comes next, seen through stages that do nothing.

    tf.data fuses the two then, which shows in the seeds: a plain repeat opens its input once more than it needs.
    """
    idle = (("repeat", "1"), ("skip", "0"), ("shard", "1, 0"))
    while (plan.name, plan.detail) in idle or (plan.name == "take" and plan.detail.startswith("-")):
        plan = plan.inputs[0]
    return plan.name == "shuffle"


def _repeat(run: Run, source: Source, *, start: Cursor | None, times: int, fused: bool) -> AsyncIterator[Block[Any]]:
    if times == 0:
        return no_blocks()
    epoch, seen, cursor = start or (0, False, None)
    return _epochs(run, source, source.open(cursor), times, fused or times == 1, epoch, seen)


async def _epochs(
    run: Run, source: Source, blocks: AsyncIterator[Block[Any]], times: int, fused: bool, epoch: int, seen: bool
) -> AsyncIterator[Block[Any]]:
    while True:
        noted = _Noted(seen)
        async for block in blocks:
            origin = block.origin.within(partial(_position, epoch, noted.seen, block.here()), block.offset)
            if noted.seen or block.length:
                noted.seen = True
                yield block.moved(origin)
            else:
                rows = block.rows()
                yield Block(origin, rows=chain(noted.first_of(rows), rows), length=block.length)
        await run.release(blocks)
        await run.breathe()  # epochs may be short and many, and no reader of theirs has to wait for anything
        if not noted.seen and (times < 0 or fused):
            return  # an empty epoch: there is nothing to repeat
        epoch, seen = epoch + 1, False
        if epoch == times and fused:
            return
        blocks = source.open()
        if epoch == times:
            return


class _Noted:
    """Whether an epoch has had an element."""

    def __init__(self, seen: bool) -> None:
        self.seen = seen

    def first_of(self, rows: Iterator[Any]) -> Iterator[Any]:
        """Give one element and note that there was one, also if it failed."""
        try:
            for element in rows:
                self.seen = True
                yield element
                return
        except Exception:
            self.seen = True
            raise


def _position(epoch: int, seen: bool, cursor: Callable[[], Any]) -> Any:
    return [epoch, seen, cursor()]
