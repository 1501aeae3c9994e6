"""Arrays to elements: what `element_encoding` wrote down, given back as columns where it can be, else as elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from aiodata.columns import iterate
from aiodata.structure import flatten, map_structure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiodata.formats.element_layouts import Leaf

__all__ = ["Chunk", "decode_chunk"]

Array: TypeAlias = "np.ndarray[Any, Any]"
_NUMBERS = {"bool": np.bool_, "int": np.int64, "float": np.float64, "complex": np.complex128}
_TEXT: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "str": lambda data: data.decode("utf-8", "surrogatepass"),
    "numpy bytes": np.bytes_,
    "numpy str": lambda data: np.str_(data.decode("utf-8", "surrogatepass")),
    "large int": lambda data: int(data, 16),
}


class Chunk(NamedTuple):
    """Some consecutive elements.

    Args:
        length: Their number.
        columns: A structure of writable arrays with one leading axis of `length`, or
        elements: the elements, where they are no rows of columns.
    """

    length: int
    columns: Any
    elements: list[Any] | None


def decode_chunk(layout: Any, count: int, array: Callable[[str], Array]) -> Chunk:
    """Give elements back.

    Args:
        layout: The layout that they were written in.
        count: Their number.
        array: Gives the array of a name; it becomes part of the elements.

    Raises:
        LookupError, TypeError, ValueError, OverflowError: The arrays are not those of the layout.
    """
    decoder = _Decoder(array)
    columns = decoder.columns(layout, count)
    if decoder.columnar and any(isinstance(leaf, np.ndarray) for leaf in flatten(columns)):
        return Chunk(count, columns, None)
    return Chunk(count, None, _rows(columns, count))


def _rows(columns: Any, count: int) -> list[Any]:
    if any(isinstance(leaf, np.ndarray) for leaf in flatten(columns)):
        return list(iterate(columns))
    return [map_structure(lambda leaf: leaf, columns) for _ in range(count)]  # None, and empty structures


def _held(values: Sequence[Any]) -> Array:
    """Put values into an object array (n,), whatever they are."""
    return np.fromiter(values, object, len(values))


class _Decoder:
    """Reads the arrays of one chunk."""

    def __init__(self, array: Callable[[str], Array]) -> None:
        self._array = array
        self.columnar = True
        """Whether the columns have been found fit for those who want columns, not only for iterating over them."""

    def columns(self, layout: Any, count: int) -> Any:
        """Give the structure of each component's values, an array (count, ...), or None, or an empty structure."""
        return map_structure(lambda leaf: self._column(leaf, count), layout)

    def _items(self, layout: Any, count: int) -> Array:
        return _held(_rows(self.columns(layout, count), count))

    def _column(self, leaf: Leaf, count: int) -> Any:
        if leaf.kind == "object":
            self.columnar = False
            items = self._items(leaf.inner[0], count)
            return _held([items[row : row + 1].reshape(()).copy() for row in range(count)])
        arrays = [self._array(name) for name in leaf.arrays]
        if len(arrays[-1]) != count:
            raise ValueError(f"there are {len(arrays[-1])} values where {count} are expected")
        kind, first = leaf.kind, arrays[0]
        if kind in ("none", "empty"):
            return leaf.inner[0] if kind == "empty" else None
        if kind in ("scalar", "array"):
            return self._plain(kind, first)
        if kind in _TEXT:
            self.columnar &= kind != "large int"
            data, ends = first.tobytes(), _ends(arrays[1], first)
            return _held([_TEXT[kind](data[i:j]) for i, j in zip([0, *ends], ends, strict=False)])
        if kind == "objects":
            return self._objects(leaf, arrays[0])
        self.columnar = False
        if kind in _NUMBERS:
            if first.dtype != _NUMBERS[kind] or first.ndim != 1:
                raise ValueError(f"a Python {kind} cannot be of dtype {first.dtype}")
            return _held(first.tolist())
        if kind == "ragged":
            return _held([part.copy() for part in _cut(first, arrays[1])])
        if kind == "mixed":
            return self._mixed(leaf, first, count)
        raise ValueError(f"the kind {kind!r} of values is not known")

    def _plain(self, kind: str, array: Array) -> Array:
        """Give numpy scalars, or arrays of one shape; as objects where iterating over the array would not give them."""
        if kind == "scalar" and array.ndim != 1:
            raise ValueError(f"scalars cannot lie in an array of shape {array.shape}")
        if kind == "array" and array.ndim == 1:
            self.columnar = False
            return _held([array[row : row + 1].reshape(()).copy() for row in range(len(array))])
        return array

    def _objects(self, leaf: Leaf, shapes: Array) -> Array:
        sizes = _sizes(shapes)
        items = self._items(leaf.inner[0], sum(sizes))
        if len(shapes) and shapes.shape[1] and (shapes == shapes[0]).all():
            return items.reshape(len(shapes), *shapes[0])
        self.columnar = False
        return _held([part.copy() for part in _cut(items, shapes)])

    def _mixed(self, leaf: Leaf, kinds: Array, count: int) -> Array:
        found = np.empty(count, object)
        if not (kinds < len(leaf.inner)).all():
            raise ValueError("there are values of no kind")
        for number, inner in enumerate(leaf.inner):
            rows = np.flatnonzero(kinds == number)
            found[rows] = self._items(inner, len(rows))
        return found


def _sizes(shapes: Array) -> list[int]:
    """Count the items of arrays of shapes, int64 (n, rank)."""
    if shapes.dtype != np.int64 or shapes.ndim != 2 or (shapes < 0).any():
        raise ValueError("these are no shapes of arrays")
    sizes: list[int] = shapes.astype(object).prod(axis=1).tolist()  # of Python's integers, which do not overflow
    return sizes


def _ends(lengths: Array, data: Array) -> list[int]:
    if lengths.dtype != np.int64 or lengths.ndim != 1 or (lengths < 0).any() or sum(lengths.tolist()) != data.nbytes:
        raise ValueError(f"the lengths of texts do not add up to the {data.nbytes} bytes that there are")
    ends: list[int] = lengths.cumsum().tolist()
    return ends


def _cut(flat: Array, shapes: Array) -> list[Array]:
    """Cut one array (k,) into arrays of shapes, as views."""
    sizes = _sizes(shapes)
    if flat.ndim != 1 or sum(sizes) != len(flat):
        raise ValueError(f"the shapes of arrays do not add up to the {len(flat)} values that there are")
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        flat[start : start + size].reshape(shape)
        for start, size, shape in zip(starts, sizes, shapes.tolist(), strict=False)
    ]
