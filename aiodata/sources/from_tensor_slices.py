"""`Dataset.from_tensor_slices`: the rows of arrays in memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.columns import freeze, length, slice_columns
from aiodata.conversion import as_columns
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin
from aiodata.structure import flatten, paths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["from_tensor_slices"]

SMALLEST_BLOCK = 64
LARGEST_BLOCK = 4096
BLOCK_BYTES = 1 << 20


def from_tensor_slices(cls: type[Dataset[Any]], tensors: Any) -> Dataset[Any]:
    """Give one element for each row of the arrays.

    The arrays are copied when the dataset is made; the elements are read-only views.

    Args:
        tensors: A structure (tuple, named tuple, dict) of array-likes of shape `(n, ...)`. Lists of text become
            object arrays; an empty list is float32, as in tf.data.

    Raises:
        TypeError: A set, which has no order.
        ValueError: A scalar, or components whose numbers of rows differ.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_tensor_slices({"x": [1.0, 2.0]}))
    [{'x': np.float64(1.0)}, {'x': np.float64(2.0)}]

    Source: `tf.data.Dataset.from_tensor_slices`; Python numbers follow numpy (int64, float64), not TensorFlow.
    """
    columns = freeze(as_columns(tensors))
    count = length(columns)
    detail = ", ".join(
        f"{path} {leaf.dtype}{list(leaf.shape)}"
        for path, leaf in zip(paths(columns), flatten(columns), strict=True)
        if leaf is not None
    )
    row_bytes = sum(leaf.nbytes // max(1, count) for leaf in flatten(columns) if isinstance(leaf, np.ndarray))
    largest = max(1, min(LARGEST_BLOCK, BLOCK_BYTES // max(1, row_bytes)))
    stage = partial(_slices, columns=columns, count=count, largest=largest)
    return cls(Plan("from_tensor_slices", stage, detail=detail, count=lambda: count))


async def _slices(run: Run, *, start: int | None, columns: Any, count: int, largest: int) -> AsyncIterator[Block[Any]]:
    index = start or 0
    size = min(SMALLEST_BLOCK, largest)
    while index < count:
        stop = min(count, index + size)
        rows = slice_columns(columns, index, stop)
        yield Block(Origin(partial(int, index)), columns=rows, length=stop - index)
        index = stop
        size = min(2 * size, largest)
