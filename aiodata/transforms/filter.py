"""`filter`: keep the elements that a predicate accepts."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.engine.block import Block, Tally, resumable
from aiodata.engine.position import locate
from aiodata.functions import as_error, check_callable, is_coroutine_function, name_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["filter"]

T = TypeVar("T")


def filter(self: Dataset[T], predicate: Callable[..., Any]) -> Dataset[T]:
    """Keep the elements for which `predicate` is true.

    It is called lazily, as `map` calls its function: a plain tuple is unpacked into arguments.

    Args:
        predicate: A plain function that gives a bool scalar.

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
    check_callable(predicate, "filter", "predicate")
    if is_coroutine_function(predicate):
        raise TypeError("filter: predicate must be a plain function; map to (keep, element) with a coroutine instead")
    label = f"filter({name_of(predicate)})"
    return self.then("filter", partial(_filter, predicate=predicate, label=label), detail=name_of(predicate))


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
        origin = block.origin.within(block.here(), block.offset)
        place = origin.place
        origin.place = partial(_place, place, kept)
        yield Block(origin, rows=_kept(block, predicate, label, index, kept))


def _place(place: Callable[[int], str | None], kept: array[int], offset: int) -> str | None:
    return place(kept[offset] if offset < len(kept) else kept[-1] + 1 if kept else 0)


def _kept(
    block: Block[Any], predicate: Callable[..., Any], label: str, index: Tally, kept: array[int]
) -> Iterator[Any]:
    rows = block.rows()
    origin, first = block.origin, block.offset
    done = 0

    def keeping() -> Iterator[Any]:
        nonlocal done
        number = done
        try:
            for element in rows:
                try:
                    keep = predicate(*element) if element.__class__ is tuple else predicate(element)
                    if keep.__class__ is not bool and keep.__class__ is not np.bool_:
                        keep = _as_bool(keep)
                except Exception as error:
                    failure = as_error(error)
                    locate(failure, label, index.count + number - done, origin, first + number)
                    try:
                        raise failure
                    finally:
                        del failure  # else it and this frame, which its traceback holds, would be a cycle
                if keep:
                    kept.append(number)
                    number += 1
                    yield element
                else:
                    number += 1
        except Exception:
            kept.append(number)
            number += 1
            raise
        finally:
            index.count += number - done
            done = number

    return resumable(keeping)


def _as_bool(keep: Any) -> bool:
    if isinstance(keep, np.ndarray) and keep.shape == () and keep.dtype == np.bool_:
        return bool(keep)
    raise TypeError(f"a predicate must give a bool, not {type(keep).__name__}: {keep!r:.80}")
