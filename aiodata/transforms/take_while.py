"""`take_while`: the elements before the first that a predicate refuses."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.engine.block import Block, Tally
from aiodata.functions import name_of
from aiodata.spec import same
from aiodata.transforms._predicate import accepted, check_predicate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["take_while"]

T = TypeVar("T")


def take_while(self: Dataset[T], predicate: Callable[..., Any], name: str | None = None) -> Dataset[T]:
    """Give the elements up to the first one for which `predicate` is false, which is not given.

    It is called lazily, as `map` calls its function: a plain tuple is unpacked into arguments. Where it fails, the
    error takes the element's place, and the next pull goes on.

    Args:
        predicate: A plain function that gives a bool scalar.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of the elements before; its cardinality is unknown.

    Raises:
        TypeError: `predicate` is not a plain function (at the call), or gives something else than a bool (while
            iterating, in place of the element).

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(6).take_while(lambda x: x < 3)]
    [0, 1, 2]

    Source: `tf.data.Dataset.take_while`.
    """
    check_predicate(predicate, "take_while")
    detail = name_of(predicate)
    stage = partial(_take_while, predicate=predicate, label=f"take_while({detail})")
    return self.then("take_while", stage, detail=detail, spec=same, resumes_by_cursor=True, title=name)


def _take_while(
    run: Run, source: Source, *, start: Cursor | None, predicate: Callable[..., Any], label: str
) -> AsyncIterator[Block[Any]]:
    return _until_refused(run, source.open(start), predicate, label)


async def _until_refused(
    run: Run, blocks: AsyncIterator[Block[Any]], predicate: Callable[..., Any], label: str
) -> AsyncIterator[Block[Any]]:
    run.inline.append(label)
    index, refused = Tally(), Tally()
    async for block in blocks:
        # An element given is an element read, so the input's own cursors hold. At the end it is the refused element's.
        rows = accepted(block, predicate, label, index, array("L"), refused)
        yield Block(block.origin, block.offset, rows=rows)
        if refused.count:
            return
