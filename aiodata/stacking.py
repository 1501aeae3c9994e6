"""Elements to columns: batching structures of numpy values into arrays, quickly where rows are plain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from aiodata.agreement import Path, component_name, fail_structure, number_array, settle_dtype, shapes_of
from aiodata.errors import StructureError

__all__ = ["by_component", "stack", "stack_leaf"]

Array: TypeAlias = "np.ndarray[Any, Any]"
_Leaf: TypeAlias = Callable[[Sequence[Any], "Path"], Any]

# The dtypes that a numpy scalar's type alone decides, of those whose bytes may be copied as they lie.
_SCALARS = {np.dtype(code).type: np.dtype(code) for code in "?bBhHiIlLqQefdgFDG"}
_COPYABLE = "biufc"
_OBJECT = np.dtype(object)
_NUMBERS: dict[type, np.dtype[Any]] = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}
# Up to here joining buffers wins over np.concatenate (2 us against 8 for 32 rows of 8 floats); it holds the GIL.
_JOIN_BYTES = 1 << 20


def stack(elements: Sequence[Any]) -> Any:
    """Stack elements into columns, component by component, as numpy would batch them.

    Python ints become int64, floats float64 and bools bool; numpy scalars and arrays keep their dtype, and a Python
    number beside them takes it where its value fits. `bytes`, `str` and any other object go into object arrays.

    Args:
        elements: One or more elements of one structure; each component's shape (...) and dtype agree over the rows.

    Returns:
        The elements' structure with arrays (len(elements), ...), freshly made and writable; None stays None.

    Raises:
        ValueError: There are no elements.
        StructureError: Structure, shape or dtype differ; names the component, the row and both.

    >>> stack([{"x": 1, "y": b"a"}, {"x": 2, "y": b"b"}])
    {'x': array([1, 2]), 'y': array([b'a', b'b'], dtype=object)}
    """
    if not elements:
        raise ValueError("there are no elements to stack")
    return by_component(elements, stack_leaf, None)


def by_component(rows: Sequence[Any], leaf: _Leaf, path: Path) -> Any:
    """Turn rows of structures into a structure of what `leaf` makes of each component, in `flatten`'s order."""
    first = rows[0]
    if isinstance(first, tuple):
        kind: Any = type(first)
        if list(map(type, rows)).count(kind) != len(rows) or list(map(len, rows)).count(len(first)) != len(rows):
            fail_structure(rows, path)
        if hasattr(first, "_fields"):
            fields = zip(first._fields, zip(*rows, strict=True), strict=True)
            return kind._make([by_component(column, leaf, (path, ".%s", key)) for key, column in fields])
        return tuple([by_component(col, leaf, (path, "[%s]", i)) for i, col in enumerate(zip(*rows, strict=True))])
    if isinstance(first, dict):
        columns = zip(first, _dict_columns(rows, path), strict=True)
        return {key: by_component(column, leaf, (path, "[%r]", key)) for key, column in columns}
    return leaf(rows, path)


def _dict_columns(rows: Sequence[Any], path: Path) -> Iterable[Sequence[Any]]:
    keys = tuple(rows[0])
    if list(map(type, rows)).count(dict) != len(rows) and not all(isinstance(row, dict) for row in rows):
        fail_structure(rows, path)
    if list(map(len, rows)).count(len(keys)) != len(rows):
        fail_structure(rows, path)
    try:
        # Half the cost of a comprehension for each key.
        return (
            zip(*map(itemgetter(*keys), rows), strict=True) if len(keys) > 1 else [[r[k] for r in rows] for k in keys]
        )
    except KeyError:
        fail_structure(rows, path)


def stack_leaf(rows: Sequence[Any], path: Path) -> Array | None:
    """Stack the rows of one component, (...) each, into an array (len(rows), ...); None where all rows are None."""
    first = rows[0]
    count = len(rows)
    kind = type(first)
    if list(map(type, rows)).count(kind) != count:
        return _stack_slowly(rows, path)
    if kind is np.ndarray:
        shape, dtype = first.shape, first.dtype
        if dtype.kind in _COPYABLE and _same_shape(rows, shape) and [row.dtype for row in rows].count(dtype) == count:
            return _join(rows, shape, dtype)
        return _stack_slowly(rows, path)
    if kind in _SCALARS:
        # Cheaper than np.fromiter and np.array, which convert each int by way of a Python int.
        return np.ndarray((count,), _SCALARS[kind], bytearray().join(rows))
    if kind is int or kind is float or kind is bool:
        try:
            return np.fromiter(rows, _NUMBERS[kind], count)
        except OverflowError:
            return number_array(rows)
    if kind is bytes or kind is str:
        return np.fromiter(rows, _OBJECT, count)
    return _stack_slowly(rows, path)


def _same_shape(rows: Sequence[Array], shape: tuple[int, ...]) -> bool:
    if len(shape) == 1:  # numpy builds a tuple for each look at a shape; lengths cost half
        return [row.ndim for row in rows].count(1) == len(rows) and list(map(len, rows)).count(shape[0]) == len(rows)
    return [row.shape for row in rows].count(shape) == len(rows)


def _join(rows: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Copy rows of equal shape and plain dtype into one array."""
    if rows[0].nbytes * len(rows) <= _JOIN_BYTES:
        try:
            return np.ndarray((len(rows), *shape), dtype, bytearray().join(rows))
        except (TypeError, ValueError, BufferError):
            pass  # a row that does not lie in one piece, such as a transpose
    if not shape:
        return np.array(rows, dtype)
    joined: Array = np.concatenate(rows, dtype=dtype)  # by itself it turns >f8 into <f8
    return joined.reshape(len(rows), *shape)


def _stack_slowly(rows: Sequence[Any], path: Path) -> Array | None:
    """Stack what no fast path takes: mixed kinds, text in numpy's own types, dates, records, objects, None."""
    settled = settle_dtype(rows, path)
    if settled is None:
        return None
    values, dtype = settled
    shapes = shapes_of(values)
    for row, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise StructureError(
                f"{component_name(path)}: row {row} of the batch has shape {shape}, row 0 has shape {shapes[0]}; "
                "padded_batch pads rows to one shape"
            )
    out: Array = np.empty((len(rows), *shapes[0]), dtype)
    for row, value in enumerate(values):
        out[row] = value
    return out
