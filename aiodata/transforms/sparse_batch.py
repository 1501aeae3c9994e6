"""`sparse_batch`: consecutive arrays of unequal shapes as one sparse array."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.agreement import settle_dtype, shapes_of
from aiodata.checks import check_integer
from aiodata.errors import StructureError
from aiodata.sparse import SparseTensor
from aiodata.spec import TensorSpec, spec_text
from aiodata.stacking import stack_leaf
from aiodata.structure import flatten
from aiodata.transforms.batch import grouped
from aiodata.transforms.map import mapped

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["SparseTensor", "sparse_batch"]


def sparse_batch(
    self: Dataset[Any], batch_size: int, row_shape: Sequence[int | None] | int, name: str | None = None
) -> Dataset[SparseTensor]:
    """Combine `batch_size` consecutive arrays into one sparse array, in which each is a row.

    All values of the elements are there, also those that are 0. An element that does not fit `row_shape` is an error
    in its place, which loses the elements that had been read for that batch.

    Args:
        batch_size: Elements in a batch, at least 1; the last batch may have fewer.
        row_shape: The shape that the rows have in `dense_shape`. None for an axis takes the longest of the batch.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of `SparseTensor`s with `dense_shape` `(batch_size, *row_shape)`; text is in an object array.

    Raises:
        TypeError: `batch_size` or an axis is not an integer, or elements are known to have several components.
        ValueError: `batch_size` is below 1, or an axis below 0.
        StructureError: While iterating: an element has another number of axes or is longer than `row_shape`, or has
            several components; or the dtypes of a batch differ.

    >>> import aiodata
    >>> rows = aiodata.Dataset.from_list([[5], [6, 7]])
    >>> next(iter(rows.sparse_batch(2, [3])))._asdict()
    {'indices': array([[0, 0],
           [1, 0],
           [1, 1]]), 'values': array([5, 6, 7]), 'dense_shape': array([2, 3])}

    Source: `tf.data.Dataset.sparse_batch`.
    """
    size = check_integer(batch_size, "sparse_batch", "batch_size", 1)
    shape = _checked(row_shape)
    spec = self.plan.element_spec()
    if spec is not None and not isinstance(spec, TensorSpec):
        raise TypeError(f"sparse_batch: elements must be single arrays, not {spec_text(spec)}")
    detail = f"{list(shape)}"
    rows = mapped(self, partial(_fitting, row_shape=shape), name="sparse_batch", detail=f"row_shape={detail}")
    batches = SparseTensor(
        TensorSpec((None, 1 + len(shape)), np.int64),
        TensorSpec((None,), np.int64 if spec is None else spec.dtype),
        TensorSpec((1 + len(shape),), np.int64),
    )
    return grouped(
        rows,
        "sparse_batch",
        size,
        False,
        partial(_sparse_stack, row_shape=shape),
        detail=f", {detail}",
        spec=lambda _: None if spec is None else batches,
        title=name,
    )


def _checked(row_shape: Any) -> tuple[int | None, ...]:
    given = row_shape.tolist() if isinstance(row_shape, np.ndarray) else row_shape
    axes = (given,) if hasattr(given, "__index__") else given
    if not isinstance(axes, Sequence) or isinstance(axes, (str, bytes)):
        raise TypeError(f"sparse_batch: row_shape must be a list of integers and None, not {row_shape!r:.80}")
    return tuple(
        None if axis is None else check_integer(axis, "sparse_batch", "an axis of row_shape", 0) for axis in axes
    )


def _fitting(*parts: Any, row_shape: tuple[int | None, ...]) -> Any:
    """Give an element back that fits the shape of a row."""
    if len(parts) != 1 or isinstance(parts[0], (tuple, dict)):
        raise StructureError(f"sparse_batch takes single arrays, not elements of {len(flatten(parts))} components")
    shape = shapes_of(parts)[0]
    if len(shape) != len(row_shape):
        raise StructureError(f"the element has shape {shape}, which has not the axes of row_shape {list(row_shape)}")
    if any(most is not None and length > most for length, most in zip(shape, row_shape, strict=True)):
        raise StructureError(f"the element has shape {shape}, longer than row_shape {list(row_shape)}")
    return parts[0]


def _sparse_stack(elements: Sequence[Any], row_shape: tuple[int | None, ...]) -> SparseTensor:
    settled = settle_dtype(elements, None)
    if settled is None:
        raise StructureError("the elements are None, which has no values")
    values, dtype = settled
    shapes = shapes_of(values)
    longest = map(max, zip(*shapes, strict=True))
    dense = [most if axis is None else axis for most, axis in zip(longest, row_shape, strict=True)]
    places = [np.argwhere(np.ones(shape, bool)) for shape in shapes]
    numbers = np.repeat(np.arange(len(values)), list(map(len, places)))
    return SparseTensor(
        np.column_stack([numbers, np.concatenate(places)]),
        np.concatenate([value.ravel() for value in values], dtype=dtype) if row_shape else stack_leaf(values, None),
        np.array([len(values), *dense], np.int64),
    )
