"""Columns: a structure of arrays with one common leading axis, of which each row is an element.

A component that is None stands for None in every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat, starmap
from typing import Any, NoReturn, TypeAlias

import numpy as np

from aiodata.errors import StructureError
from aiodata.structure import flatten, map_structure, pack_like, paths, same_structure

__all__ = [
    "components",
    "concat_columns",
    "freeze",
    "iterate",
    "length",
    "merge_batches",
    "owned",
    "reshape_batches",
    "slice_columns",
    "take_columns",
    "unequal",
]

Array: TypeAlias = "np.ndarray[Any, Any]"


def length(columns: Any) -> int:
    """Count the rows of columns.

    Raises:
        StructureError: Leading axes disagree, a component has none, or all components are None.

    >>> length({"x": np.zeros((3, 2)), "y": np.zeros(3)})
    3
    """
    if type(columns) is np.ndarray and columns.ndim:
        return len(columns)
    leaves = [leaf for leaf in flatten(columns) if leaf is not None]
    if leaves and all(isinstance(leaf, np.ndarray) and leaf.ndim for leaf in leaves):
        rows = len(leaves[0])
        if list(map(len, leaves)).count(rows) == len(leaves):
            return rows
    _fail_length(columns)


def _fail_length(columns: Any) -> NoReturn:
    found: list[tuple[str, int]] = []
    for name, leaf in components(columns):
        if not isinstance(leaf, np.ndarray) or not leaf.ndim:
            raise StructureError(f"{name} has no rows: it is a single value of type {type(leaf).__name__}")
        found.append((name, len(leaf)))
        if found[-1][1] != found[0][1]:
            raise StructureError(unequal(found[0], found[-1]))
    raise StructureError("there is no component with rows to count")


def unequal(one: tuple[str, int], other: tuple[str, int]) -> str:
    """Say that two components, each a name and its number of rows, differ."""
    return f"{one[0]} has {one[1]} rows, {other[0]} has {other[1]}"


def components(columns: Any) -> list[tuple[str, Any]]:
    """Pair the leaves that are not None with their names for messages."""
    names = [path if path == "element" else f"component {path}" for path in paths(columns)]
    return [(name, leaf) for name, leaf in zip(names, flatten(columns), strict=True) if leaf is not None]


def slice_columns(columns: Any, start: int, stop: int) -> Any:
    """Take the rows from `start` up to `stop`, as views.

    >>> slice_columns({"x": np.arange(5)}, 1, 3)
    {'x': array([1, 2])}
    """
    rows = slice(start, stop)
    return columns[rows] if type(columns) is np.ndarray else _map_arrays(lambda array: array[rows], columns)


def take_columns(columns: Any, index_array: Any) -> Any:
    """Copy the rows at `index_array`, integers (n,), in that order.

    Raises:
        IndexError: An index lies outside the columns.

    >>> take_columns({"x": np.arange(5) * 10}, np.array([3, 0]))
    {'x': array([30,  0])}
    """
    # Twice as fast as indexing for small rows, never slower for large ones.
    return _map_arrays(lambda array: array.take(index_array, axis=0), columns)


def concat_columns(list_of_columns: Sequence[Any]) -> Any:
    """Join columns one after the other; one alone is handed back as it is.

    Raises:
        ValueError: There is nothing to join.
        StructureError: Structures, row shapes or dtypes differ; numpy would promote dtypes silently.

    >>> concat_columns([{"x": np.array([1])}, {"x": np.array([2, 3])}])
    {'x': array([1, 2, 3])}
    """
    if not list_of_columns:
        raise ValueError("there are no columns to join")
    first = list_of_columns[0]
    if len(list_of_columns) == 1:
        return first
    for number, other in enumerate(list_of_columns):
        if difference := same_structure(first, other):
            raise StructureError(f"block {number} does not fit block 0: {difference}")
    # Rebuilt in the first one's key order, which the others may not share.
    blocks = [flatten(first), *(_leaves_like(first, other) for other in list_of_columns[1:])]
    return pack_like(first, map(_concat, zip(*blocks, strict=True), paths(first)))


def _leaves_like(template: Any, columns: Any) -> list[Any]:
    if isinstance(template, dict):
        return [leaf for key, part in template.items() for leaf in _leaves_like(part, columns[key])]
    if isinstance(template, tuple):
        return [leaf for part, other in zip(template, columns, strict=True) for leaf in _leaves_like(part, other)]
    return [columns]


def _concat(parts: Sequence[Any], path: str) -> Array | None:
    first = parts[0]
    if first is None:
        return None
    for number, part in enumerate(parts):
        if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
            raise StructureError(
                f"component {path}: rows of block {number} have shape {part.shape[1:]} and dtype {part.dtype}, "
                f"of block 0 shape {first.shape[1:]} and dtype {first.dtype}"
            )
    joined: Array = np.concatenate(parts, dtype=first.dtype)  # by itself it turns >f8 into <f8
    return joined


def reshape_batches(columns: Any, size: int) -> Any:
    """Cut (k * size, ...) arrays into k batches, (k, size, ...), without copying where numpy can.

    Raises:
        ValueError: `size` is below 1 or does not divide the number of rows.

    >>> reshape_batches(np.arange(4), 2)
    array([[0, 1],
           [2, 3]])
    """
    rows = length(columns)
    if size < 1 or rows % size:
        raise ValueError(f"{rows} rows do not divide into batches of {size}")
    return _map_arrays(lambda array: array.reshape(rows // size, size, *array.shape[1:]), columns)


def merge_batches(columns: Any) -> Any:
    """Undo `reshape_batches`: (k, size, ...) arrays become (k * size, ...).

    Raises:
        StructureError: Components disagree in k or size, or have fewer than two axes.

    >>> merge_batches(np.zeros((3, 2, 0))).shape
    (6, 0)
    """
    length(columns)
    sizes: list[tuple[str, int]] = []
    for name, leaf in components(columns):
        if leaf.ndim < 2:
            raise StructureError(f"{name} has shape {leaf.shape}: its rows are single values, not batches")
        sizes.append((name, leaf.shape[1]))
        if sizes[-1][1] != sizes[0][1]:
            raise StructureError(f"{unequal(sizes[0], sizes[-1])} in each batch")
    # Sizes are spelled out, because -1 cannot be worked out for rows of length 0.
    return _map_arrays(lambda array: array.reshape(array.shape[0] * array.shape[1], *array.shape[2:]), columns)


def iterate(columns: Any) -> Iterator[Any]:
    """Iterate over the rows of columns, lazily and without a Python step for each array, tuple or named tuple.

    Returns:
        An iterator of elements: numpy scalars from (n,) arrays, else views (...) into the columns; what an object
        array (n,) holds; None from a None component.

    Raises:
        StructureError: At the call: components disagree in their number of rows.

    >>> next(iterate({"x": np.array([1.5]), "y": (np.array([b"a"], object), None)}))
    {'x': np.float64(1.5), 'y': (b'a', None)}
    """
    rows = length(columns)
    return _elements(columns) if isinstance(columns, np.ndarray) else _rows(columns, rows)


def _elements(column: Array) -> Iterator[Any]:
    # A list's iterator takes a third of the time of an array's.
    return iter(column.tolist() if column.dtype == object and column.ndim == 1 else column)


def _rows(columns: Any, rows: int) -> Iterator[Any]:
    if columns is None:
        return repeat(None, rows)
    if not isinstance(columns, (dict, tuple)):
        return _elements(columns)
    if not columns:  # zip of nothing would end at once
        return (
            map(tuple.__new__, repeat(type(columns), rows), repeat(()))
            if isinstance(columns, tuple)
            else _dicts((), repeat((), rows))
        )
    values = columns.values() if isinstance(columns, dict) else columns
    parts = zip(*[_rows(part, rows) for part in values], strict=True)
    if isinstance(columns, dict):
        return _dicts(tuple(columns), parts)
    if hasattr(columns, "_fields"):
        # What _make does, without its Python frame.
        return map(tuple.__new__, repeat(type(columns)), parts)
    return parts


def _dicts(keys: tuple[Any, ...], parts: Iterator[tuple[Any, ...]]) -> Iterator[dict[Any, Any]]:
    # A dict display costs half of dict(zip(...)), so the commonest sizes are written out.
    if len(keys) == 1:
        (a,) = keys
        return starmap(lambda x: {a: x}, parts)
    if len(keys) == 2:
        a, b = keys
        return starmap(lambda x, y: {a: x, b: y}, parts)
    if len(keys) == 3:
        a, b, c = keys
        return starmap(lambda x, y, z: {a: x, b: y, c: z}, parts)
    return map(dict, map(zip, repeat(keys), parts))


def freeze(columns: Any) -> Any:
    """Mark all arrays of a structure read-only, in place, and return it; views made before stay writable.

    >>> freeze(np.zeros(2)).flags.writeable
    False
    """
    for leaf in flatten(columns):
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False
    return columns


def owned(columns: Any) -> Any:
    """Copy the read-only arrays of columns, for others share them; writable ones are handed on as they are.

    >>> owned(freeze(np.zeros(2))).flags.writeable
    True
    """
    return _map_arrays(lambda array: array if array.flags.writeable else array.copy(), columns)


def _map_arrays(fn: Callable[[Array], Array], columns: Any) -> Any:
    return map_structure(lambda leaf: None if leaf is None else fn(leaf), columns)
