"""Elements to arrays: any elements written down in numpy arrays and a little JSON, exactly.

A chunk is columnar: its structure is kept once, as a layout, and the values of each component lie together in arrays.
They come back with their types, dtypes, shapes and bits. Nothing is pickled; what would need that is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias
from urllib.parse import quote

import numpy as np

from aiodata.agreement import Path, component_name
from aiodata.columns import length
from aiodata.engine.plan import plan_of
from aiodata.formats.element_layouts import Leaf
from aiodata.spec import NoneTensorSpec, TensorSpec, generalized, spec_of
from aiodata.stacking import stack_leaf
from aiodata.structure import PLAIN, flatten, map_structure
from aiodata.values import is_plain_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LARGEST_CHUNK", "encode_columns", "encode_rows"]

Array: TypeAlias = "np.ndarray[Any, Any]"
_NUMBERS: dict[Any, Any] = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
_TEXT: dict[Any, str] = {bytes: "bytes", str: "str", np.bytes_: "numpy bytes", np.str_: "numpy str"}
_ALIKE = PLAIN - {np.ndarray, np.datetime64, np.timedelta64, np.void}
"""Types of leaves that say all about what values have in common."""
_LARGE = 1 << 63
LARGEST_CHUNK = 4096
"""The most elements that are written together, and the most arrays without content, so that no number in a damaged file
asks for much memory by itself."""


def encode_rows(rows: Sequence[Any], owner: str) -> tuple[Any, dict[str, Array]]:
    """Write elements down.

    Args:
        rows: From 1 to `LARGEST_CHUNK` elements; their structures need not agree.
        owner: What keeps them, for errors.

    Returns:
        The layout, and the arrays by their names in it.

    Raises:
        TypeError: A component is of a type that is not kept; names it.

    >>> layout, arrays = encode_rows([{"x": 1, "y": b"a"}, {"x": 2, "y": b""}], "the file")
    >>> layout["x"].kind, arrays["x"], arrays["y.lengths"]
    ('int', array([1, 2]), array([1, 0]))
    """
    encoder = _Encoder(owner)
    return encoder.rows(rows, None), encoder.arrays


def encode_columns(columns: Any, owner: str) -> tuple[Any, dict[str, Array]]:
    """Write the rows of columns down as `encode_rows` does; only text and objects are looked at one by one."""
    encoder = _Encoder(owner)
    return encoder.columns(columns, None, length(columns)), encoder.arrays


class _Encoder:
    """Gathers the arrays of one chunk."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.arrays: dict[str, Array] = {}

    def columns(self, columns: Any, path: Path, count: int) -> Any:
        if isinstance(columns, (tuple, dict)) and columns:
            parts = columns.values() if isinstance(columns, dict) else columns
            steps = zip(_steps(columns), parts, strict=True)
            return _like(columns, [self.columns(part, (path, *step), count) for step, part in steps])
        if not isinstance(columns, np.ndarray):
            return self._nothing(columns, path, count)
        if columns.dtype == object or (columns.dtype.kind in "SU" and columns.ndim == 1):
            return self.rows(list(columns), path)
        self._check_dtype(columns, path)
        spec = TensorSpec(columns.shape[1:], columns.dtype)
        return Leaf("scalar" if columns.ndim == 1 else "array", (self._add(path, "", columns),), spec=spec)

    def rows(self, rows: Sequence[Any], path: Path) -> Any:
        """Write the values of a component down, which may be structures and differ in everything."""
        if not rows:
            return self._nothing(None, path, 0)
        first = rows[0]
        if type(first) not in _ALIKE or list(map(type, rows)).count(type(first)) != len(rows):
            signatures = list(map(_signature, rows))
            if len(distinct := dict.fromkeys(signatures)) > 1:
                return self._mixed(rows, signatures, {signature: n for n, signature in enumerate(distinct)}, path)
        if isinstance(first, tuple) and first:
            steps = zip(_steps(first), zip(*rows, strict=True), strict=True)
            return _like(first, [self.rows(column, (path, *step)) for step, column in steps])
        if isinstance(first, dict) and first:
            return {key: self.rows([row[key] for row in rows], (path, "[%r]", key)) for key in first}
        return self._leaf(rows, path)

    def _mixed(self, rows: Sequence[Any], signatures: list[Any], numbers: dict[Any, int], path: Path) -> Leaf:
        kinds = np.array([numbers[signature] for signature in signatures], np.min_scalar_type(len(numbers)))
        inner = [
            self.rows([rows[row] for row in np.flatnonzero(kinds == number).tolist()], (path, "%.0s", number))
            for number in range(len(numbers))
        ]
        return Leaf("mixed", (self._add(path, "kinds", kinds),), tuple(inner), _common(inner))

    def _leaf(self, rows: Sequence[Any], path: Path) -> Leaf:
        first = rows[0]
        kind: Any = type(first)
        if first is None or isinstance(first, (tuple, dict)):
            return self._nothing(first, path, len(rows))
        if kind in _TEXT:
            text = [row.encode("utf-8", "surrogatepass") for row in rows] if isinstance(first, str) else rows
            return self._text(_TEXT[kind], text, path, spec_of(first))
        if kind is int and any(not -_LARGE <= row < _LARGE for row in rows):
            return self._text("large int", [hex(row).encode() for row in rows], path, TensorSpec((), object))
        if kind in _NUMBERS:
            array = np.fromiter(rows, _NUMBERS[kind], len(rows))
            return Leaf(kind.__name__, (self._add(path, "", array),), spec=spec_of(first))
        if kind is np.ndarray and first.dtype == object:
            return self._objects(rows, path)
        if kind is not np.ndarray and not isinstance(first, np.generic):
            self._refuse(first, path)
        self._check_dtype(first, path)
        if kind is np.ndarray:
            return self._arrays(rows, path)
        values: Any = stack_leaf(rows, None) if first.dtype.kind in "biufc" else np.array(list(rows), first.dtype)
        return Leaf("scalar", (self._add(path, "", values),), spec=spec_of(first))

    def _nothing(self, x: Any, path: Path, count: int) -> Leaf:
        """Write down None, or an empty structure: a byte each, so that their number costs something in a file."""
        array = self._add(path, "rows", np.zeros(count, np.uint8))
        return Leaf("none", (array,), spec=NoneTensorSpec()) if x is None else Leaf("empty", (array,), (x,), x)

    def _text(self, kind: str, text: Sequence[bytes], path: Path, spec: Any) -> Leaf:
        data = np.frombuffer(b"".join(text), np.uint8)
        lengths = np.fromiter(map(len, text), np.int64, len(text))
        return Leaf(kind, (self._add(path, "", data), self._add(path, "lengths", lengths)), spec=spec)

    def _arrays(self, rows: Sequence[Array], path: Path) -> Leaf:
        first = rows[0]
        data = np.concatenate([row.ravel() for row in rows], dtype=first.dtype)
        shapes = np.array([row.shape for row in rows], np.int64).reshape(len(rows), first.ndim)
        spec = TensorSpec(_common_shape(shapes), first.dtype)
        if (shapes == shapes[0]).all() and (data.size or len(rows) <= LARGEST_CHUNK):
            return Leaf("array", (self._add(path, "", data.reshape(len(rows), *first.shape)),), spec=spec)
        return Leaf("ragged", (self._add(path, "", data), self._add(path, "shapes", shapes)), spec=spec)

    def _objects(self, rows: Sequence[Array], path: Path) -> Leaf:
        if not rows[0].ndim:
            inner = self.rows([row[()] for row in rows], (path, ".%s", "items"))
            return Leaf("object", (), (inner,), TensorSpec((), object))
        shapes = np.array([row.shape for row in rows], np.int64).reshape(len(rows), rows[0].ndim)
        items = [item for row in rows for item in row.ravel().tolist()]
        spec = TensorSpec(_common_shape(shapes), object)
        return Leaf("objects", (self._add(path, "shapes", shapes),), (self.rows(items, (path, ".%s", "items")),), spec)

    def _add(self, path: Path, role: str, array: Any) -> str:
        """Keep an array under a name that tells its component."""
        name, step = "", path
        while step is not None:
            step, _, key = step
            name = quote(str(key), safe="").replace(".", "%2E") + (f".{name}" if name else "")
        name = (name or "element")[-200:] + (f".{role}" if role else "")
        while name in self.arrays:  # of the keys 1 and "1", say
            name += "-"
        self.arrays[name] = array
        return name

    def _check_dtype(self, value: Any, path: Path) -> None:
        dtype = value.dtype
        if is_plain_dtype(dtype) and dtype.itemsize:
            return
        known = dtype.kind == "V" and dtype.itemsize and not dtype.hasobject
        descr: Any = np.lib.format.dtype_to_descr(dtype) if known else ""
        if not descr or len(repr(descr)) > 8000 or np.lib.format.descr_to_dtype(descr) != dtype:
            self._refuse(value, path)

    def _refuse(self, value: Any, path: Path) -> NoReturn:
        kind = "dataset" if plan_of(value) is not None else type(value).__name__
        dtype = f" of dtype {value.dtype}" if isinstance(value, (np.ndarray, np.generic)) else ""
        raise TypeError(
            f"{component_name(path)} is a {kind}{dtype}, which {self.owner} cannot hold; it holds Python and numpy "
            "numbers, text, None, and arrays, tuples and dicts of them"
        )


def _signature(value: Any) -> Any:
    """Give what values must have in common to lie in the same arrays."""
    kind = type(value)
    if kind is np.ndarray:
        return kind, value.dtype, value.ndim
    if isinstance(value, tuple):
        return kind, len(value)
    if isinstance(value, dict):
        return dict, *[(type(key), key) for key in value]
    return (kind, value.dtype) if isinstance(value, np.generic) and kind not in _TEXT else kind


def _steps(x: Any) -> list[tuple[str, Any]]:
    """Give how a path goes on to each part of a structure."""
    if isinstance(x, dict):
        return [("[%r]", key) for key in x]
    return [(".%s", name) for name in x._fields] if hasattr(x, "_fields") else [("[%s]", i) for i in range(len(x))]


def _like(x: Any, parts: list[Any]) -> Any:
    if isinstance(x, dict):
        return dict(zip(x, parts, strict=True))
    kind: Any = type(x)
    return kind._make(parts) if hasattr(x, "_fields") else tuple(parts)


def _common(layouts: Sequence[Any]) -> Any:
    """Give the spec that holds for values of all layouts; None where there is none."""
    specs = [map_structure(lambda leaf: leaf.spec, layout) for layout in layouts]
    try:
        found = specs[0]
        for spec in specs[1:]:
            found = None if None in flatten(spec) or None in flatten(found) else generalized(found, spec)
    except TypeError:
        return None
    return found


def _common_shape(shapes: Array) -> list[int | None]:
    return [int(axis[0]) if (axis == axis[0]).all() else None for axis in shapes.T]
