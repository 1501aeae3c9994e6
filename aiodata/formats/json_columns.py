"""What `JsonLinesDataset` takes out of JSON objects: keys, with their dtypes, shapes and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.spec import TensorSpec
from aiodata.structure import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["JsonColumns"]

_TYPES: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}
"""The types of Python's `json` that make a value of each kind of dtype."""


class JsonColumns:
    """The keys to take out of objects, in order.

    Args:
        columns: A dtype or a `TensorSpec` for each key, or a tuple of one and a default.
        method: The public method, for errors.

    Raises:
        TypeError: `columns` is no mapping of text, or something in it is no dtype.
        ValueError: There are no columns, or a default does not fit its dtype and shape.
    """

    def __init__(self, columns: Any, method: str) -> None:
        if not isinstance(columns, Mapping) or not all(isinstance(key, str) for key in columns):
            raise TypeError(f"{method}: columns must be a dict of a dtype for each key, not {columns!r:.80}")
        if not columns:
            raise ValueError(f"{method}: columns is empty; None takes objects as they are")
        self._columns = [_Column(key, given, method) for key, given in columns.items()]
        self.spec = {column.key: TensorSpec(column.shape, column.dtype) for column in self._columns}
        self.are_arrays = all(None not in column.shape for column in self._columns)
        """Whether all rows have the same shapes, so that many of them are arrays."""

    @property
    def detail(self) -> str:
        """The columns in short."""
        return ", ".join(column.detail for column in self._columns)

    def arrays(self, values: Sequence[Any]) -> dict[str, Any]:
        """Give an array (n, ...) for each key from n objects.

        Raises:
            TypeError, ValueError, OverflowError: Something is wrong with one of them; `row` says what.
        """
        if set(map(type, values)) - {dict}:
            raise TypeError
        return {column.key: column.array(list(map(column.pick, values))) for column in self._columns}

    def rows(self, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Give what `row` gives for each of many objects, quicker.

        Raises:
            TypeError, ValueError, OverflowError: Something is wrong with one of them; `row` says what.
        """
        if set(map(type, values)) - {dict}:
            raise TypeError
        keys = [column.key for column in self._columns]
        parts = [column.each(list(map(column.pick, values))) for column in self._columns]
        return [dict(zip(keys, row, strict=True)) for row in zip(*parts, strict=True)]

    def row(self, value: Any) -> dict[str, Any]:
        """Give a numpy scalar, an array or text for each key of one object.

        Raises:
            ValueError: It is no object, or lacks a key, or a value does not fit; says which.
        """
        if type(value) is not dict:
            raise ValueError(f"the value is {_kind(value)}, not an object")
        return {column.key: column.one(value) for column in self._columns}


class _Column:
    """One key."""

    def __init__(self, key: str, given: Any, method: str) -> None:
        self.key = key
        kind, *defaults = given if isinstance(given, tuple) and len(given) == 2 else (given,)
        if isinstance(kind, TensorSpec):
            if kind.shape is None:
                raise ValueError(f"{method}: columns[{key!r}] must say how many axes there are, not {kind}")
            self.dtype, self.shape = kind.dtype, kind.shape
        else:
            try:
                self.dtype = np.dtype(kind)
            except TypeError as error:
                raise TypeError(f"{method}: columns[{key!r}] must be a dtype or a TensorSpec: {error}") from None
            self.shape = ()
        shown = str(kind) if isinstance(kind, TensorSpec) else self.dtype.name
        self.detail = f"{key!r}: ({shown}, {defaults[0]!r})" if defaults else f"{key!r}: {shown}"
        self.encodes = self.dtype.kind == "S"
        self.types = {str} if self.dtype.kind in "SUT" else _TYPES.get(self.dtype.kind)
        self.name = "text" if self.types == {str} else str(self.dtype)
        if self.types is None and self.dtype != object:
            raise TypeError(f"{method}: columns[{key!r}] must be a dtype of numbers, bool, str, bytes or object")
        if self.types == {str}:
            self.dtype = np.dtype(object)
        self.numbers = self.types if self.dtype != object else None
        self.has_default = bool(defaults)
        if defaults:
            self.default = _plain(defaults[0])
            try:
                self.one({key: self.default})
            except ValueError as error:
                raise ValueError(f"{method}: the default of columns[{key!r}] does not fit: {error}") from None

    def pick(self, value: dict[str, Any]) -> Any:
        """Take the key's value out of an object; the default stands for null, too."""
        found = value.get(self.key) if self.has_default else value[self.key]
        return self.default if found is None and self.has_default else found

    def array(self, values: list[Any]) -> Any:
        """Give n values as an array (n, ...)."""
        if self.types is None and not self.shape:
            found = np.empty(len(values), object)
            for number, value in enumerate(values):
                found[number] = normalize((value,))[0]
            return found
        objects = np.array(values, dtype=object)
        flat = objects.ravel().tolist()
        if objects.ndim != 1 + len(self.shape) or not self._fits(objects.shape[1:]):
            raise ValueError(f"it has the shape {list(objects.shape[1:])}, not {list(self.shape)}")
        if self.types is not None and not set(map(type, flat)) <= self.types:
            raise ValueError(f"it is no {self.name}")
        if self.encodes:
            objects.ravel()[:] = [text.encode() for text in flat]
        if self.dtype == object:
            return objects
        return _numbers(flat, self.dtype).reshape(objects.shape)

    def each(self, values: list[Any]) -> Iterable[Any]:
        """Give n values one by one, as the rows of an array where they are of one shape."""
        return map(self.alone, values) if None in self.shape else self.array(values)

    def alone(self, value: Any) -> Any:
        """Give one value as a numpy scalar, an array or text."""
        if type(value) is list and self.shape == (None,) and self.numbers and set(map(type, value)) <= self.numbers:
            return _numbers(value, self.dtype)  # the shortest way for what is commonest
        return self.array([value])[0]

    def _fits(self, shape: tuple[int, ...]) -> bool:
        return all(wanted in (None, there) for there, wanted in zip(shape, self.shape, strict=True))

    def one(self, value: dict[str, Any]) -> Any:
        try:
            return self.alone(self.pick(value))
        except KeyError:
            raise ValueError(f"the key {self.key!r} is missing") from None
        except (ValueError, OverflowError, TypeError) as error:
            shown = repr(value.get(self.key))
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            raise ValueError(f"the key {self.key!r} does not fit: {error}: {shown}") from None


def _numbers(values: list[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore"):  # what is too large for a small float is infinite, as too large a text is
        return np.array(values, dtype)


def _plain(default: Any) -> Any:
    """Give a default as `json` would."""
    if isinstance(default, bytes):
        return default.decode()
    return default.tolist() if isinstance(default, (np.ndarray, np.generic)) else default


def _kind(value: Any) -> str:
    names = {list: "a list", str: "text", type(None): "null", bool: "a boolean"}
    return names.get(type(value), "a number")
