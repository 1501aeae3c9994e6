"""A user's array-likes to columns or to one element, copied, for `from_tensor_slices` and `from_tensors`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from aiodata.columns import components, freeze, unequal
from aiodata.structure import array_of, map_structure

__all__ = ["as_columns", "as_element"]

Array: TypeAlias = "np.ndarray[Any, Any]"
# Leaves that `as_element` makes arrays of, or refuses; Python numbers, text and objects stay what they are.
_COPIED = (list, np.ndarray, set, frozenset)


def as_columns(tensors: Any) -> Any:
    """Copy a structure of array-likes into columns, for `from_tensor_slices`.

    Args:
        tensors: Arrays (n, ...), or lists of n rows: numbers, text or arrays. None components stay None.

    Returns:
        The structure with writable arrays of numpy's dtypes: a list of Python ints is int64 and of floats float64,
        where tf.data makes int32 and float32; text is an object array; `[]` is float32.

    Raises:
        TypeError: A component is a set, an iterator, or a list of dicts.
        ValueError: A component is a scalar or a ragged list, or lengths differ; names the components.

    >>> as_columns({"x": [1, 2], "y": ["a", "b"]})
    {'x': array([1, 2]), 'y': array(['a', 'b'], dtype=object)}
    """
    columns = _convert(tensors, _copy)
    found = components(columns)
    for name, leaf in found:
        if not leaf.ndim:
            raise ValueError(f"{name} is a scalar, which has no rows: {leaf.item()!r}")
    if not found:
        raise ValueError("there is no component with rows")
    for name, leaf in found:
        if len(leaf) != len(found[0][1]):
            raise ValueError(unequal((found[0][0], len(found[0][1])), (name, len(leaf))))
    return columns


def as_element(tensors: Any) -> Any:
    """Copy a structure into the one element of `from_tensors`.

    Returns:
        Tuples, named tuples and dicts stay; a list becomes one array; arrays are copied and read-only; other leaves,
        None and Python numbers among them, stay as they are.

    Raises:
        TypeError: A leaf is a set or a list of dicts.
        ValueError: A list is ragged.

    >>> as_element(([1, 2], "text", None))
    (array([1, 2]), 'text', None)
    """
    return freeze(_convert(tensors, lambda name, leaf: _copy(name, leaf) if isinstance(leaf, _COPIED) else leaf))


def _convert(tensors: Any, convert: Callable[[str, Any], Any]) -> Any:
    made = iter([convert(name, leaf) for name, leaf in components(tensors)])
    return map_structure(lambda leaf: None if leaf is None else next(made), tensors)


def _copy(name: str, leaf: Any) -> Array:
    if isinstance(leaf, (set, frozenset)):
        raise TypeError(f"{name} is a set, whose order is not defined; pass a sorted list of it")
    if isinstance(leaf, Iterator):
        raise TypeError(f"{name} is an iterator ({type(leaf).__name__}), which ends after one pass; pass a list")
    try:
        array = array_of(leaf)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if isinstance(leaf, list) and array.dtype == object and any(isinstance(part, dict) for part in array.flat):
        raise TypeError(f"{name} is a list of dicts; pass a dict of lists")
    return array
