"""`filter`: keep the elements that a predicate accepts."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.engine.block import Block, Tally
from aiodata.functions import name_of
from aiodata.spec import same
from aiodata.transforms._predicate import accepted, check_predicate, kept_origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["filter"]

T = TypeVar("T")


def filter(self: Dataset[T], predicate: Callable[..., Any], name: str | None = None) -> Dataset[T]:
    """Keep the elements for which `predicate` is true.

    It is called lazily, as `map` calls its function: a plain tuple is unpacked into arguments.

    Args:
        predicate: A plain function that gives a bool scalar.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of the elements that were kept, in order; its cardinality is unknown.

    Raises:
        TypeError: `predicate` is not a plain function (at the call), or gives something else than a bool (while
            iterating, in place of the element).

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(6).filter(lambda x: x % 2 == 1)]
    [1, 3, 5]

    Source: `tf.data.Dataset.filter`.
    """
    check_predicate(predicate, "filter")
    detail = name_of(predicate)
    stage = partial(_filter, predicate=predicate, label=f"filter({detail})")
    return self.then("filter", stage, detail=detail, spec=same, title=name)


def _filter(
    run: Run, source: Source, *, start: Cursor | None, predicate: Callable[..., Any], label: str
) -> AsyncIterator[Block[Any]]:
    return _filter_blocks(run, source.open(start), predicate, label)


async def _filter_blocks(
    run: Run, blocks: AsyncIterator[Block[Any]], predicate: Callable[..., Any], label: str
) -> AsyncIterator[Block[Any]]:
    run.inline.append(label)
    index = Tally()
    async for block in blocks:
        kept = array("L")
        origin = kept_origin(block, kept, block.here())
        yield Block(origin, rows=accepted(block, predicate, label, index, kept))
