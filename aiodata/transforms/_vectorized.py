"""Calling a user's function once for a whole block, with the meaning of calling it for each element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.collate import stack
from aiodata.columns import iterate, length, slice_columns
from aiodata.engine.block import Block, Failure, Tally, pull
from aiodata.engine.position import locate
from aiodata.errors import StructureError
from aiodata.structure import normalize
from aiodata.transforms._in_worker import compute, is_timed_out, timed_out

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = ["on_columns", "vectorized_block"]


def vectorized_block(function: Callable[..., Any], block: Block[Any], label: str, index: Tally) -> Block[Any]:
    """Apply a function to a block as a whole, where the caller is; see `on_columns`."""
    steps = on_columns(block, label, index.count)
    try:
        elements = next(steps)
        while True:
            elements = steps.send(compute(function, elements)[0])
    except StopIteration as finished:
        results: Block[Any] = finished.value
    index.count += results.length or 0
    return results


def on_columns(
    block: Block[Any], label: str, first: int, limit: float | None = None
) -> Generator[list[Any], list[Any], Block[Any]]:
    """Say what to call a function on to apply it to a block as a whole, or, where it raises, row by row.

    Args:
        block: The elements; failures among them keep their places.
        label: The stage's label.
        first: Number of the block's first element.
        limit: Seconds that a call may take. If the call on the whole block takes longer, all its elements fail.

    Yields:
        Elements to call the function on. The results are sent back, with failures in their places.

    Returns:
        The block of results.
    """
    elements: list[Any] = []
    if block.has_columns:
        columns, count = block.columns, block.length or 0
    else:
        elements = pull(block.rows(), 1 << 30)
        good = [element for element in elements if element.__class__ is not Failure]
        count = len(good)
        try:
            columns = stack(good) if good else None
        except StructureError:  # each of them may be good by itself
            results = yield from _alone(map(_stacked, good))
            return _filled(block, elements, results, label, first)
    if not count:
        return _filled(block, elements, [], label, first)
    (result,) = yield [columns]
    if result.__class__ is Failure:
        if limit is not None and is_timed_out(result.exception, limit):
            results = [Failure(timed_out(limit)) for _ in range(count)]
        else:
            results = yield from _alone(slice_columns(columns, row, row + 1) for row in range(count))
        return _filled(block, elements, results, label, first)
    try:
        result = _checked(result, count)
    except StructureError as error:
        return _filled(block, elements, _each_failed(error, count), label, first)
    if len(elements) > count:
        return _filled(block, elements, list(iterate(result)), label, first)
    return Block(block.origin, block.offset, columns=result, length=count)


def _alone(rows: Iterable[Any]) -> Generator[list[Any], list[Any], list[Any]]:
    """Have a function called on each row by itself; some may be failures."""
    columns = list(rows)
    rest = iter((yield [each for each in columns if each.__class__ is not Failure]))
    return [each if each.__class__ is Failure else _single(next(rest)) for each in columns]


def _stacked(element: Any) -> Any:
    try:
        return stack([element])
    except StructureError as error:
        return Failure(error)


def _filled(block: Block[Any], elements: list[Any], results: list[Any], label: str, first: int) -> Block[Any]:
    """Make the block of results, the failures among the elements back in their places."""
    rest = iter(results)
    computed = [each if each.__class__ is Failure else next(rest) for each in elements] if elements else results
    for place, result in enumerate(computed):
        if result.__class__ is Failure and not (elements and elements[place] is result):
            locate(result.exception, label, first + place, block.origin, block.offset + place)
    return Block(block.origin, block.offset, computed=computed)


def _each_failed(error: StructureError, count: int) -> list[Any]:
    return [Failure(StructureError(*error.args)) for _ in range(count)]


def _single(row: Any) -> Any:
    """Give the one element of a result that was computed for a single row."""
    if row.__class__ is Failure:
        return row
    try:
        return next(iterate(_checked(row, 1)))
    except StructureError as error:
        return Failure(error)


def _checked(result: Any, count: int) -> Any:
    """Give a vectorised function's result, if it has a row for each element.

    Raises:
        StructureError: It has not.
    """
    result = normalize(result)
    found = length(result)
    if found != count:
        raise StructureError(
            f"a vectorised function must give as many rows as it gets: it got {count} and gave {found}"
        )
    return result
