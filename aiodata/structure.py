"""Nested structures: tuples, named tuples and dicts of leaves, and what Python values become as components.

A leaf is anything else: a numpy array or scalar, a Python number, `bytes`, `str`, `None` or any object. Keys of a dict
keep their order, and two dicts fit each other where their keys are the same set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

__all__ = [
    "PLAIN",
    "array_of",
    "flatten",
    "is_namedtuple",
    "map_structure",
    "normalize",
    "pack_like",
    "paths",
    "same_structure",
    "unshared",
    "unsigned_or_objects",
]

# Types that `normalize` hands back at once; a set look-up costs less than a chain of isinstance checks.
PLAIN = frozenset({np.ndarray, int, float, bool, complex, str, bytes, *np.sctypeDict.values()})


def is_namedtuple(x: Any) -> bool:
    """Tell whether `x` is an instance of a named tuple's class.

    >>> from collections import namedtuple
    >>> is_namedtuple(namedtuple("Point", "x y")(1, 2)), is_namedtuple((1, 2))
    (True, False)
    """
    return isinstance(x, tuple) and hasattr(x, "_fields")


def flatten(x: Any) -> list[Any]:
    """List the leaves of a structure from left to right, `None` included.

    >>> flatten({"a": (1, None), "b": "text"})
    [1, None, 'text']
    """
    leaves: list[Any] = []
    _collect(x, leaves)
    return leaves


def _collect(x: Any, leaves: list[Any]) -> None:
    if isinstance(x, tuple):
        for part in x:
            _collect(part, leaves)
    elif isinstance(x, dict):
        for part in x.values():
            _collect(part, leaves)
    else:
        leaves.append(x)


def pack_like(template: Any, leaves: Iterable[Any]) -> Any:
    """Build a structure like `template` from leaves in `flatten`'s order.

    Returns:
        Named tuples of the template's classes, plain tuples and plain dicts.

    Raises:
        ValueError: There are more or fewer leaves than the template has.

    >>> pack_like({"a": 0, "b": (0, 0)}, [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    given = list(leaves)
    wanted = len(flatten(template))
    if len(given) != wanted:
        raise ValueError(f"{len(given)} leaves for a structure of {wanted}")
    return _pack(template, iter(given))


def _pack(template: Any, rest: Iterator[Any]) -> Any:
    return next(rest) if not isinstance(template, (tuple, dict)) else _rebuild(template, lambda part: _pack(part, rest))


def map_structure(fn: Callable[[Any], Any], x: Any) -> Any:
    """Build a structure like `x` with `fn` applied to each leaf, `None` included.

    >>> map_structure(lambda leaf: leaf + 1, {"a": 1, "b": (2, 3)})
    {'a': 2, 'b': (3, 4)}
    """
    return _rebuild(x, lambda part: map_structure(fn, part)) if isinstance(x, (tuple, dict)) else fn(x)


def _rebuild(x: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert the direct parts of a tuple, named tuple or dict and put them together again."""
    if isinstance(x, dict):
        return {key: convert(part) for key, part in x.items()}
    # A list, because map would take a StopIteration out of `convert` for the end.
    parts = [convert(part) for part in x]
    return type(x)._make(parts) if hasattr(x, "_fields") else tuple(parts)


def unshared(x: Any) -> Any:
    """Give an element whose dicts are its own, for one that is kept or given again; the leaves are shared.

    >>> kept = {"a": 1}
    >>> given = unshared(kept)
    >>> given["a"] = 2
    >>> kept
    {'a': 1}
    """
    kind = type(x)
    if kind in PLAIN or not isinstance(x, (tuple, dict)):
        return x
    if isinstance(x, tuple) and not any(isinstance(part, (tuple, dict)) for part in x):
        return x
    return _rebuild(x, unshared)


def paths(x: Any) -> list[str]:
    """Name the leaves of a structure, in `flatten`'s order, as an error message would.

    >>> paths({"image": 0, "box": (1, 2)})
    ["['image']", "['box'][0]", "['box'][1]"]
    >>> paths(0)
    ['element']
    """
    return list(_paths(x, "")) if isinstance(x, (tuple, dict)) else ["element"]


def _paths(x: Any, prefix: str) -> Iterator[str]:
    if isinstance(x, dict):
        for key, part in x.items():
            yield from _paths(part, f"{prefix}[{key!r}]")
    elif isinstance(x, tuple):
        for i, part in enumerate(x):
            yield from _paths(part, f"{prefix}.{x._fields[i]}" if hasattr(x, "_fields") else f"{prefix}[{i}]")
    else:
        yield prefix


def same_structure(a: Any, b: Any) -> str | None:
    """Compare two structures: containers, lengths, keys, and where `None` stands; other leaves may be anything.

    Returns:
        None where they are the same, else a sentence that names the first difference.

    >>> same_structure({"a": 1, "b": 2}, {"b": "x", "a": "y"})
    >>> same_structure({"a": (1, 2)}, {"a": (1, 2, 3)})
    "['a'] is a tuple of 2 in one and a tuple of 3 in the other"
    """
    return _difference(a, b, "")


def _difference(a: Any, b: Any, path: str) -> str | None:
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{path or 'element'} has the keys {list(a)} in one and {list(b)} in the other"
        parts = [(a[key], b[key], f"{path}[{key!r}]") for key in a]
    elif isinstance(a, tuple) and isinstance(b, tuple) and type(a) is type(b) and len(a) == len(b):
        names = [f".{field}" for field in a._fields] if hasattr(a, "_fields") else [f"[{i}]" for i in range(len(a))]
        parts = [(one, other, path + name) for one, other, name in zip(a, b, names, strict=True)]
    elif isinstance(a, (dict, tuple)) or isinstance(b, (dict, tuple)) or (a is None) != (b is None):
        return f"{path or 'element'} is {_kind(a)} in one and {_kind(b)} in the other"
    else:
        return None
    return next(filter(None, (_difference(*part) for part in parts)), None)


def _kind(x: Any) -> str:
    if x is None:
        return "None"
    if isinstance(x, dict):
        return f"a dict of {len(x)}"
    if is_namedtuple(x):
        return f"a named tuple {type(x).__name__}"
    return f"a tuple of {len(x)}" if isinstance(x, tuple) else "a single value"


def normalize(x: Any) -> Any:
    """Make an element of what a user function returned, by tf.data's rules for `map`.

    A list that is the result itself becomes a tuple of components; a list inside anything becomes an array. A plain
    leaf comes back at once, the same object.

    Raises:
        TypeError: The function returned None.
        ValueError: A list inside is ragged.

    >>> normalize([1, [2, 3]])
    (1, array([2, 3]))
    >>> normalize({"a": [1, 2]})
    {'a': array([1, 2])}
    """
    if type(x) in PLAIN:
        return x
    if x is None:
        raise TypeError("the function returned None instead of an element; is a `return` missing?")
    return _component(tuple(x)) if isinstance(x, list) else _component(x)


def _component(x: Any) -> Any:
    if type(x) is tuple and all(type(part) in PLAIN for part in x):
        return x
    if isinstance(x, tuple):
        parts = [part if type(part) in PLAIN else _component(part) for part in x]
        kind: Any = type(x)
        return kind._make(parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, dict):
        return {key: part if type(part) in PLAIN else _component(part) for key, part in x.items()}
    return array_of(x) if isinstance(x, list) else x


def array_of(x: Any) -> np.ndarray[Any, Any]:
    """Copy an array-like into a new array, as numpy would, but keep text and big numbers as they are.

    Args:
        x: A list (of lists) of numbers, text or arrays, an array, or anything that numpy can convert.

    Returns:
        An array of numpy's dtype: int64, float64 or bool for Python numbers, where tf.data takes int32 and float32.
        `bytes` and `str` become object arrays, because numpy's own bytes type drops trailing zero bytes. An empty
        list is float32, as in tf.data. Integers beyond 64 bits stay Python's in an object array.

    Raises:
        ValueError: The list is ragged, or mixes text with something else.

    >>> array_of([1, 2]), array_of([b"a", b"b"]), array_of([])
    (array([1, 2]), array([b'a', b'b'], dtype=object), array([], dtype=float32))
    """
    if isinstance(x, (list, tuple)):
        return _array_of_list(list(x))
    array = np.array(x)
    return array.astype(object) if array.dtype.kind in "SUT" else array


def _array_of_list(x: list[Any]) -> np.ndarray[Any, Any]:
    probe: Any = x
    while isinstance(probe, list):
        probe = next((part for part in probe if not (isinstance(part, list) and not part)), None)
    if isinstance(probe, (str, bytes)):
        # Not by way of numpy's own text types: each row would take the room of the longest.
        array = np.array(x, dtype=object)
        strange = set(map(type, array.flat)) - {str, bytes, np.str_, np.bytes_}
        if list in strange or tuple in strange:
            raise ValueError("the list is ragged: its rows differ in length")
        if strange:
            raise ValueError(f"the list mixes text with {', '.join(sorted(kind.__name__ for kind in strange))}")
        return array
    try:
        array = np.array(x)
    except ValueError as error:
        raise ValueError(f"the list is ragged: its rows differ in length or shape ({error})") from None
    if array.dtype.kind in "SUT":
        if not all(isinstance(part, np.ndarray) for part in x):
            raise ValueError("the list mixes text with something else")
        return array.astype(object)
    if array.size == 0 and probe is None:
        return array.astype(np.float32)
    if array.dtype.kind == "f" and isinstance(probe, int) and array.size and np.abs(array).max() >= 2.0**63:
        # Beside smaller ones, numpy makes floats of integers past int64 and loses their last digits.
        exact = np.array(x, dtype=object)
        return unsigned_or_objects(exact) if all(isinstance(part, int) for part in exact.flat) else array
    return array


def unsigned_or_objects(integers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert an object array of Python integers to uint64 where all of them fit, else hand it back."""
    try:
        return integers.astype(np.uint64)
    except OverflowError:
        return integers
