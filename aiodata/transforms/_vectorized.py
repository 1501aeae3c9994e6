"""Calling a user's function once for a whole block, with the meaning of calling it for each element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.collate import stack
from aiodata.columns import iterate, length, slice_columns
from aiodata.engine.block import Block, Failure, Tally, pull
from aiodata.engine.position import locate
from aiodata.errors import StructureError
from aiodata.functions import call
from aiodata.structure import normalize

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked", "columns_of", "merged", "vectorized_block"]


def columns_of(block: Block[Any]) -> tuple[Any, int, dict[int, Failure]]:
    """Give the block's elements as columns, their number, and the failures among its elements by their offset."""
    if block.has_columns:
        return block.columns, block.length or 0, {}
    elements = pull(block.rows(), 1 << 30)
    failures = {offset: element for offset, element in enumerate(elements) if element.__class__ is Failure}
    good = [element for element in elements if element.__class__ is not Failure] if failures else elements
    return (stack(good) if good else None), len(good), failures


def merged(block: Block[Any], columns: Any, count: int, failures: dict[int, Failure]) -> Block[Any]:
    """Make the block of results, each failure back in its element's place."""
    if not failures:
        return Block(block.origin, block.offset, columns=columns, length=count)
    rest = iterate(columns) if count else iter(())
    computed = [failures[offset] if offset in failures else next(rest) for offset in range(count + len(failures))]
    return Block(block.origin, block.offset, computed=computed)


def vectorized_block(function: Callable[..., Any], block: Block[Any], label: str, index: Tally) -> Block[Any]:
    """Apply a function to a block as a whole; where that fails, row by row, so that only the bad rows fail."""
    first = index.count
    try:
        columns, count, failures = columns_of(block)
    except StructureError as error:
        locate(error, label, first, block.origin, block.offset)
        return Block.failed(error, block.origin, block.offset)
    index.count += count + len(failures)
    if not count:
        return merged(block, None, 0, failures) if failures else Block(block.origin, block.offset, computed=[])
    try:
        return merged(block, checked(call(function, columns), count), count, failures)
    except StructureError as error:
        locate(error, label, first, block.origin, block.offset)
        return Block.failed(error, block.origin, block.offset)
    except Exception:
        places = [place for place in range(count + len(failures)) if place not in failures]
        computed: list[Any] = [failures.get(place) for place in range(count + len(failures))]
        for row, place in enumerate(places):
            try:
                result = checked(call(function, slice_columns(columns, row, row + 1)), 1)
                computed[place] = next(iterate(result))
            except Exception as error:
                locate(error, label, first + place, block.origin, block.offset + place)
                computed[place] = Failure(error)
        return Block(block.origin, block.offset, computed=computed)


def checked(result: Any, count: int) -> Any:
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
