"""`ragged_batch`: consecutive elements as one, rows of unequal length kept as they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.agreement import Path, component_name, settle_dtype, shapes_of
from aiodata.checks import check_integer
from aiodata.errors import StructureError
from aiodata.spec import TensorSpec, batched
from aiodata.stacking import by_component, stack_leaf
from aiodata.structure import flatten
from aiodata.transforms.batch import grouped

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from aiodata.dataset import Dataset

__all__ = ["ragged_batch"]


def ragged_batch(
    self: Dataset[Any],
    batch_size: int,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike = np.int64,
    name: str | None = None,
) -> Dataset[Any]:
    """Combine `batch_size` consecutive elements into one; arrays need not have one shape.

    A component of single values is stacked, as `batch` does. So is one of arrays whose shape the dataset's
    `element_spec` tells in full. Any other component of arrays becomes a one-dimensional object array of the
    elements' own arrays, whatever their lengths are. `unbatch` gives the elements back.

    Args:
        batch_size: Elements in a batch, at least 1.
        drop_remainder: Leave out a last batch that is smaller.
        row_splits_dtype: int32 or int64. It is accepted for tf.data's sake and has no effect: there are no row splits.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of structures of arrays, of shape `(batch_size, ...)` or, of arrays, `(batch_size,)`.

    Raises:
        TypeError: `batch_size` is not an integer, or `row_splits_dtype` no dtype.
        ValueError: `batch_size` is below 1, or `row_splits_dtype` another dtype.
        StructureError: While iterating, in place of the batch: elements differ in structure, dtype or number of axes;
            it names the component, the row and what differs.

    >>> import aiodata
    >>> rows = aiodata.Dataset.range(1, 4).map(lambda n: {"n": [n] * int(n)})
    >>> next(iter(rows.ragged_batch(3)))
    {'n': array([array([1]), array([2, 2]), array([3, 3, 3])], dtype=object)}

    Source: `tf.data.Dataset.ragged_batch`, whose ragged components are `tf.RaggedTensor`s.
    """
    size = check_integer(batch_size, "ragged_batch", "batch_size", 1)
    if np.dtype(row_splits_dtype) not in (np.int32, np.int64):
        raise ValueError(f"ragged_batch: row_splits_dtype must be int32 or int64, not {np.dtype(row_splits_dtype)}")
    spec = self.plan.element_spec()
    stacked = spec is not None and all(map(_has_one_shape, flatten(spec)))
    return grouped(
        self,
        "ragged_batch",
        size,
        drop_remainder,
        partial(_ragged_stack, spec=spec),
        # What is known of an object array does not tell that its rows are arrays.
        spec=partial(batched, size=size if drop_remainder else None) if stacked else lambda _: None,
        title=name,
    )


def _has_one_shape(leaf: Any) -> bool:
    return not isinstance(leaf, TensorSpec) or (leaf.shape is not None and None not in leaf.shape)


def _ragged_stack(elements: Sequence[Any], spec: Any) -> Any:
    return by_component(elements, partial(_ragged_leaf, spec=spec), None)


def _ragged_leaf(rows: Sequence[Any], path: Path, spec: Any) -> Any:
    settled = settle_dtype(rows, path)
    if settled is None:
        return None
    values = settled[0]
    shapes = shapes_of(values)
    for row, shape in enumerate(shapes):
        if len(shape) != len(shapes[0]):
            raise StructureError(
                f"{component_name(path)}: row {row} of the batch has shape {shape}, row 0 has shape {shapes[0]}: "
                "the numbers of axes differ"
            )
    known = _at(spec, path)
    if not shapes[0] or (isinstance(known, TensorSpec) and _has_one_shape(known)):
        return stack_leaf(values, path)
    ragged = np.empty(len(values), object)
    for row, value in enumerate(values):
        ragged[row] = value
    return ragged


def _at(spec: Any, path: Path) -> Any:
    """Find a component of a spec; None where it has none."""
    if path is None:
        return spec
    parent, _, key = path
    whole = _at(spec, parent)
    if isinstance(whole, dict):
        return whole.get(key)
    if isinstance(whole, tuple):
        return getattr(whole, key, None) if isinstance(key, str) else (*whole, *[None] * (key + 1))[key]
    return None
