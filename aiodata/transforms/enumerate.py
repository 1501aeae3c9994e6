"""`enumerate`: elements with their numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.checks import check_integer
from aiodata.engine.block import Block, Tally, resumable
from aiodata.spec import TensorSpec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["enumerate"]

T = TypeVar("T")


def enumerate(self: Dataset[T], start: int = 0, name: str | None = None) -> Dataset[tuple[np.int64, T]]:
    """Give `(number, element)` for each element; the numbers are int64 and go up by one.

    A tuple element stays one, as the pair's second part. An element that fails uses up its number.

    Args:
        start: The first number; may be negative.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `start` is not an integer.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_tensor_slices([b"a", b"b"]).enumerate(5))
    [(np.int64(5), b'a'), (np.int64(6), b'b')]

    Source: `tf.data.Dataset.enumerate`.
    """
    begin = check_integer(start, "enumerate", "start")
    stage = partial(_enumerate, begin=begin)
    return self.then("enumerate", stage, detail=str(begin), count=lambda count: count, spec=_spec, title=name)


def _spec(known: Any) -> Any:
    return None if known is None else (TensorSpec((), np.int64), known)


def _enumerate(run: Run, source: Source, *, start: Cursor | None, begin: int) -> AsyncIterator[Block[Any]]:
    number, cursor = start or (begin, None)
    return _numbered(source.open(cursor), number)


async def _numbered(blocks: AsyncIterator[Block[Any]], number: int) -> AsyncIterator[Block[Any]]:
    async for block in blocks:
        origin = block.origin.within(partial(_position, number, block.here()), block.offset)
        if block.columns is not None and block.length is not None:
            numbers = np.arange(number, number + block.length, dtype=np.int64)
            number += block.length
            yield Block(origin, columns=(numbers, block.columns), length=block.length)
        else:
            tally = Tally(number)
            yield Block(origin, rows=_pairs(block.rows(), tally), length=block.length)
            number = tally.count


def _pairs(rows: Iterator[Any], tally: Tally) -> Iterator[Any]:
    def pairing() -> Iterator[Any]:
        number = tally.count
        try:
            for element in rows:
                number += 1
                yield np.int64(number - 1), element
        except Exception:
            number += 1
            raise
        finally:
            tally.count = number

    return resumable(pairing)


def _position(number: int, cursor: Callable[[], Any]) -> Any:
    return [number, cursor()]
