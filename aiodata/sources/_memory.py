"""Columns in memory as a source: what `from_tensor_slices` and `from_list` read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.columns import length, slice_columns
from aiodata.engine.block import Block
from aiodata.engine.position import Origin
from aiodata.structure import flatten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.engine.plan import Stage
    from aiodata.engine.run import Run

__all__ = ["rows_in_memory"]

SMALLEST_BLOCK = 64
LARGEST_BLOCK = 4096
BLOCK_BYTES = 1 << 20


def rows_in_memory(columns: Any) -> Stage:
    """Give the stage whose elements are the rows of columns, as views."""
    count = length(columns)
    row_bytes = sum(leaf.nbytes // max(1, count) for leaf in flatten(columns) if isinstance(leaf, np.ndarray))
    largest = max(1, min(LARGEST_BLOCK, BLOCK_BYTES // max(1, row_bytes)))
    return partial(_slices, columns=columns, count=count, largest=largest)


async def _slices(run: Run, *, start: int | None, columns: Any, count: int, largest: int) -> AsyncIterator[Block[Any]]:
    index = start or 0
    size = min(SMALLEST_BLOCK, largest)
    while index < count:
        stop = min(count, index + size)
        rows = slice_columns(columns, index, stop)
        yield Block(Origin(partial(int, index)), columns=rows, length=stop - index, within=(columns, index))
        index = stop
        size = min(2 * size, largest)
