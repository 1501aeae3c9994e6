"""From the values that examples hold to what the features ask for: arrays, padded, sparse or ragged.

A `Column` is one requested feature. Whatever way the values were read, they reach it in one of two forms: those of one
example, or those of a batch, which are all values in one array (n,) and the number that each example has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from aiodata.errors import StructureError
from aiodata.formats.example_features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    flat_default,
    kind_of,
)
from aiodata.formats.example_proto import Kind, held
from aiodata.sparse import SparseTensor

if TYPE_CHECKING:
    from aiodata.formats.example_layout import Layout

__all__ = ["Column", "Request", "checked", "column_of", "compiled", "example_name", "positions", "rows_of"]

Array: TypeAlias = "np.ndarray[Any, Any]"


class Column(ABC):
    """One requested feature.

    Args:
        key: The feature's name in the result.
        kind: What it holds.
        source: Its name in the examples.
        absent: The values of an example without the feature; None where that is an error.
        exact: The number of values that is right without looking further; None: any but 0.
    """

    def __init__(self, key: str, kind: Kind, source: str, absent: Array | None, exact: int | None = None) -> None:
        self.key = key
        self.kind = kind
        self.source = source
        self.absent = absent
        self._exact = exact
        self._values_of = kind.values_of

    def fault(self, count: int) -> str | None:
        """Say what is wrong with so many values, if anything is."""
        return None

    def read(self, features: Mapping[str, Any], number: int | None = None, name: str | None = None) -> Any:
        """Give an example's values, as a message has them or as an array.

        Args:
            features: The message's map.
            number: The example's number in its batch, for errors.
            name: The example's name, for errors.

        Raises:
            StructureError: They are missing, of another kind, or of another number.
        """
        # Not `get`, and no `[]` first: the one takes longer and the other adds what it does not find.
        found = features[self.source] if self.source in features else None  # noqa: SIM401
        if found is not None:
            values = self._values_of(found)
            if values and (self._exact is None or len(values) == self._exact):
                return values
        return self._judged(found, number, name)

    def _judged(self, feature: Any, number: int | None, name: str | None) -> Any:
        """Do as `read` where there are no values, or there may be something wrong with them."""
        values = None if feature is None else held(feature, self.kind)
        if values is None:
            if self.absent is not None:
                return self.absent
            fault: str | None = f"it is required ({self.kind.name}), but the example does not have it"
        elif isinstance(values, Kind):
            fault = f"it should hold {self.kind.name}, but holds {values.name}"
        else:
            fault = self.fault(len(values))
        if fault:
            raise StructureError(f"{example_name(number, name)}feature {self.source!r}: {fault}")
        return values

    @abstractmethod
    def one(self, values: Any) -> Any:
        """Give the component of a single example."""

    @abstractmethod
    def many(self, values: Array, lengths: Array) -> Any:
        """Give the component of a batch."""


def example_name(number: int | None, name: str | None) -> str:
    """Begin an error's text with the example that it is about."""
    shown = [] if number is None else [f"example {number}"]
    shown += [] if name is None else [repr(name)]
    return " ".join(shown) + ", " if shown else ""


class FixedColumn(Column):
    """A `FixedLenFeature`."""

    def __init__(self, key: str, feature: FixedLenFeature) -> None:
        kind = kind_of(feature.dtype, key)
        given = feature.default_value
        self._shape = feature.shape
        self._size = int(np.prod(feature.shape, dtype=np.int64))
        absent = None if given is None else flat_default(given, kind, key)
        super().__init__(key, kind, key, absent, self._size)

    def fault(self, count: int) -> str | None:
        """Say what is wrong with so many values, if anything is."""
        if count == self._size:
            return None
        return f"it should have {self._size} values for shape {self._shape}, but has {count}"

    def one(self, values: Any) -> Any:
        """Give an array of the shape, or a single value."""
        if self._shape:
            return self.kind.array(values).reshape(self._shape)
        return values[0] if self.kind.dtype.hasobject else self.kind.dtype.type(values[0])

    def many(self, values: Array, lengths: Array) -> Any:
        """Give an array (n, *shape)."""
        return values.reshape(len(lengths), *self._shape)


class PaddedColumn(Column):
    """A `FixedLenSequenceFeature`."""

    def __init__(self, key: str, feature: FixedLenSequenceFeature) -> None:
        kind = kind_of(feature.dtype, key)
        self._shape = feature.shape
        self.size = int(np.prod(feature.shape, dtype=np.int64))
        absent = kind.array([]) if feature.allow_missing else None
        super().__init__(key, kind, key, absent, None if self.size == 1 else self.size)
        given = feature.default_value
        empty = b"" if kind.dtype.hasobject else 0
        self._fill = empty if given is None else flat_default(given, kind, key)[0]

    def fault(self, count: int) -> str | None:
        """Say what is wrong with so many values, if anything is."""
        return f"{count} values are no whole number of steps of shape {self._shape}" if count % self.size else None

    def one(self, values: Any) -> Any:
        """Give an array (steps, *shape)."""
        return self.kind.array(values).reshape(-1, *self._shape)

    def many(self, values: Array, lengths: Array) -> Any:
        """Give an array (n, most steps, *shape)."""
        width = int(lengths.max(initial=0))
        if width * len(lengths) == len(values):
            flat = values
        else:
            flat = np.full((len(lengths), width), self._fill, self.kind.dtype)
            flat[positions(lengths)] = values
        return flat.reshape(len(lengths), width // self.size, *self._shape)


class SparseColumn(Column):
    """A `VarLenFeature`."""

    def __init__(self, key: str, feature: VarLenFeature) -> None:
        kind = kind_of(feature.dtype, key)
        super().__init__(key, kind, key, kind.array([]))

    def one(self, values: Any) -> Any:
        """Give a sparse array of one axis."""
        count = len(values)
        return SparseTensor(np.arange(count)[:, None], self.kind.array(values), np.array([count]))

    def many(self, values: Array, lengths: Array) -> Any:
        """Give a sparse array (n, most values)."""
        places = np.stack(positions(lengths), axis=1)
        return SparseTensor(places, values, np.array([len(lengths), lengths.max(initial=0)]))


class RaggedColumn(Column):
    """A `RaggedFeature`."""

    def __init__(self, key: str, feature: RaggedFeature) -> None:
        kind = kind_of(feature.dtype, key)
        super().__init__(key, kind, feature.value_key or key, kind.array([]))

    def one(self, values: Any) -> Any:
        """Give an array of the values."""
        return self.kind.array(values)

    def many(self, values: Array, lengths: Array) -> Any:
        """Give an object array (n,) of arrays."""
        return rows_of(values, lengths)


def rows_of(values: Array, lengths: Array) -> Array:
    """Cut an array into an object array of so long ones."""
    out = np.empty(len(lengths), object)
    stops = np.cumsum(lengths).tolist()
    for row, (length, stop) in enumerate(zip(lengths.tolist(), stops, strict=True)):
        out[row] = values[stop - length : stop]
    return out


def positions(lengths: Array) -> tuple[Array, Array]:
    """Give the row of each value, and its place in the row, of rows of these lengths."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


class Request(NamedTuple):
    """What is wanted of examples, and what was learnt on the way.

    Args:
        columns: The columns.
        layouts: The layout that records of a size had last, by their size.
    """

    columns: list[Column]
    layouts: dict[int, Layout]


_recent: tuple[tuple[Any, ...], ...] = ()  # what `compiled` was given last and what it gave; replaced, never changed
_MOST_RECENT = 4


def compiled(features: Any, method: str) -> Request:
    """Check features and make columns of them, once for the same ones: a map parses by them for every element.

    Raises:
        TypeError: They are no dict of names and features.
        ValueError: There are none, or one that needs `allow_missing` has not got it.
    """
    global _recent
    names, given = (list(features), list(features.values())) if isinstance(features, Mapping) else ([], [])
    for kept_names, kept, request in _recent:
        if len(kept) == len(given) and all(map(is_, given, kept)) and names == kept_names:
            found: Request = request
            return found
    columns = [column_of(*item) for item in checked(features, Feature, f"{method}: features").items()]
    if not columns:
        raise ValueError(f"{method}: there are no features to read")
    for name, feature in features.items():
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(f"{method}: feature {name!r}: FixedLenSequenceFeature needs allow_missing=True")
    found = Request(columns, {})
    _recent = ((names, given, found), *_recent[: _MOST_RECENT - 1])
    return found


def checked(features: Any, allowed: Any, owner: str) -> dict[str, Feature]:
    """Check a dict of names and features.

    Args:
        features: What was given.
        allowed: The classes of features that may be in it.
        owner: The method and its argument, for errors.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(features, Mapping):
        raise TypeError(f"{owner} must be a dict of names and features, not {type(features).__name__}")
    for name, feature in features.items():
        if not isinstance(name, str):
            raise TypeError(f"{owner}: a feature's name must be a str, not {name!r}")
        if not isinstance(feature, allowed):
            raise TypeError(f"{owner}: there can be no such feature as {name!r} is: {feature!r:.200}")
    # Made anew, because what `_replace` gives has not been checked.
    return {name: type(feature)(*feature) for name, feature in features.items()}


def column_of(name: str, feature: Feature) -> Column:
    """Make the column of a feature."""
    if isinstance(feature, FixedLenFeature):
        return FixedColumn(name, feature)
    if isinstance(feature, FixedLenSequenceFeature):
        return PaddedColumn(name, feature)
    return SparseColumn(name, feature) if isinstance(feature, VarLenFeature) else RaggedColumn(name, feature)
