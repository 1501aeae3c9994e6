"""From the values that examples hold to what the features ask for: arrays, padded, sparse or ragged.

A `Column` is one requested feature. Whatever way the values were read, they reach it in one of two forms: those of one
example, or those of a batch, which are all values in one array (n,) and the number that each example has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.errors import StructureError
from aiodata.formats.example_features import (
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
    from collections.abc import Mapping, Sequence

    from aiodata.formats.example_layout import Layout, Segment

__all__ = [
    "Column",
    "FixedColumn",
    "PaddedColumn",
    "RaggedColumn",
    "SparseColumn",
    "example_name",
    "positions",
    "rows_of",
]

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
        self.dtype = kind.dtype
        """That of the values of a batch."""
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

    def serves(self, segment: Segment | None) -> bool:
        """Tell whether examples where the feature is this part of their layout have what the column wants."""
        if segment is None:
            return self.absent is not None
        return segment.kind is self.kind and not self.fault(segment.count)

    def laid(self, layout: Layout, rows: Array, records: Sequence[bytes]) -> tuple[Array, int]:
        """Give the values of examples of a layout that `serves`, and how many each has.

        Args:
            layout: The layout.
            rows: uint8 (n, size), the records.
            records: The same as bytes.
        """
        segment = layout.features.get(self.source)
        if segment is not None:
            return layout.values(self.source, rows, records), segment.count
        assert self.absent is not None  # `serves` has looked
        return np.tile(self.absent, len(rows)), len(self.absent)

    def array(self, values: Any) -> Array:
        """Give what `read` gave, or a list of the values of several, as a fresh array (n,)."""
        return self.kind.array(values)

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
