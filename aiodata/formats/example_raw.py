"""Values of bytes that are the numbers of an array: the column of a `RawFeature`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.errors import StructureError
from aiodata.formats.example_columns import Column, example_name
from aiodata.formats.example_proto import BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiodata.formats.example_features import RawFeature
    from aiodata.formats.example_layout import Layout, Segment

__all__ = ["RawColumn"]

Array: TypeAlias = "np.ndarray[Any, Any]"


class RawColumn(Column):
    """A `RawFeature`."""

    def __init__(self, key: str, feature: RawFeature) -> None:
        self._shape = feature.shape
        self._size = int(np.prod(feature.shape, dtype=np.int64))
        self._bytes = self._size * feature.dtype.itemsize
        # Bytes of booleans are converted: one of 2 in an array of them would be no boolean.
        self._stored = np.dtype(np.uint8) if feature.dtype.kind == "b" else feature.dtype.newbyteorder("<")
        given = feature.default_value
        super().__init__(key, BYTES, key, None if given is None else np.frombuffer(given, self._stored), 1)
        self.dtype = feature.dtype

    def fault(self, count: int) -> str | None:
        """Say what is wrong with so many values, if anything is."""
        return None if count == 1 else f"{self._wish()}, but has {count} values"

    def _wish(self) -> str:
        return f"it should be one value of {self._bytes} bytes for {self.dtype} of shape {self._shape}"

    def read(self, features: Mapping[str, Any], number: int | None = None, name: str | None = None) -> Any:
        """Do as any column; the values are the numbers."""
        values = super().read(features, number, name)
        if values is self.absent:
            return values
        if len(values[0]) != self._bytes:
            fault = f"{self._wish()}, but has {len(values[0])} bytes"
            raise StructureError(f"{example_name(number, name)}feature {self.source!r}: {fault}")
        return np.frombuffer(values[0], self._stored)

    def serves(self, segment: Segment | None) -> bool:
        """Do as any column, and look at the size of the value."""
        if not super().serves(segment):
            return False
        return segment is None or segment.pieces[0][1] - segment.pieces[0][0] == self._bytes

    def laid(self, layout: Layout, rows: Array, records: Sequence[bytes]) -> tuple[Array, int]:
        """Do as any column; the values are the numbers."""
        if layout.features.get(self.source) is None:
            values, count = super().laid(layout, rows, records)
            return self.array(values), count
        return layout.raw(self.source, rows, self._stored).astype(self.dtype, copy=False), self._size

    def array(self, values: Any) -> Array:
        """Do as any column."""
        return np.array(values, self.dtype)

    def one(self, values: Any) -> Any:
        """Give an array of the shape, or a single number."""
        found = self.array(values).reshape(self._shape)
        return found if self._shape else found[()]

    def many(self, values: Array, lengths: Array) -> Any:
        """Give an array (n, *shape)."""
        return values.reshape(len(lengths), *self._shape)
