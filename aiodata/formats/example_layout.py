"""The quick way to read a batch of examples: many records of one wire layout at once.

Records with the same features in the same order, with values of the same sizes, have their tags, lengths and names at
the same bytes: the usual case where features have fixed sizes. The layout is learnt from one record. The others must
have the same bytes wherever there is no value, and then a feature's values in all of them are one slice of an array.
What is not written as TensorFlow and protobuf write it has no layout here, and is left to protobuf.

Source: the encoding guide of protocol buffers, and TensorFlow's `core/example/feature.proto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from aiodata.formats.example_proto import BYTES, FLOAT, INT64, Kind, object_array

__all__ = ["Layout", "Segment", "learnt"]

Array: TypeAlias = "np.ndarray[Any, Any]"

_FIRST, _SECOND = 0x0A, 0x12
"""The tags of fields 1 and 2 that have a length: what lies deeper, a name, packed values; a map's value."""

_KINDS = {0x0A: BYTES, 0x12: FLOAT, 0x1A: INT64}
"""The kind of values by the tag of a feature's field."""

_LONGEST_LENGTH = 5
_LONGEST_INTEGER = 10


@dataclass(frozen=True)
class Segment:
    """Where a feature's values are in every record.

    Args:
        kind: Their kind.
        count: How many they are.
        pieces: Where they begin and end: each of bytes, or all others together.
        begins: Where each integer begins, from the first one.
        shifts: By how much each byte of them is shifted; None where all of them are single bytes.
    """

    kind: Kind
    count: int
    pieces: list[tuple[int, int]]
    begins: Array | None = None
    shifts: Array | None = None


class Layout(NamedTuple):
    """Where everything is in records of one layout.

    Args:
        features: The features' segments, with None for one that holds nothing of any kind.
        fixed: The bytes that are the same in all records: where they begin, and the bytes, `S` (1,).
        sizes: Where integers begin and end; the bits of theirs that are the same in all records, None where each
            integer is one byte; and those bits.
    """

    features: dict[str, Segment | None]
    fixed: list[tuple[int, Array]]
    sizes: list[tuple[int, int, Array | None, Array]]

    def fits(self, rows: Array) -> bool:
        """Tell whether all records have this layout, in less time than `matching` takes to tell which have.

        Args:
            rows: uint8 (n, size), records of the one's size.
        """
        for start, wanted in self.fixed:
            if rows[:, start : start + wanted.itemsize].tobytes() != wanted.tobytes() * len(rows):
                return False
        for start, stop, mask, wanted in self.sizes:
            part = rows[:, start:stop]
            if mask is None:
                if not part.tobytes().isascii():
                    return False
            elif (part & mask).tobytes() != wanted.tobytes() * len(rows):
                return False
        return True

    def matching(self, rows: Array) -> Array:
        """Tell which records have this layout.

        Args:
            rows: uint8 (n, size), records of the one's size; contiguous.

        Returns:
            bool (n,).
        """
        count, size = rows.shape
        good = np.ones(count, bool)
        for start, wanted in self.fixed:
            # As text of a fixed width a row is compared in one step, whatever its length.
            good &= np.ndarray((count,), wanted.dtype, rows, start, (size,)) == wanted
        for start, stop, mask, wanted in self.sizes:
            bits = rows[:, start:stop] & (0x80 if mask is None else mask)
            good &= bits.view(wanted.dtype)[:, 0] == wanted
        return good

    def values(self, name: str, rows: Array, records: Sequence[bytes]) -> Array:
        """Give a feature's values in records of this layout, one record's after the other's.

        Args:
            name: The feature, which holds something.
            rows: uint8 (n, size), the records.
            records: The same as bytes.

        Returns:
            A fresh array (n * count,).
        """
        segment = self.features[name]
        assert segment is not None  # the caller has looked
        if not segment.count:
            return segment.kind.array([])
        if segment.kind is BYTES:
            cuts = [itemgetter(slice(*piece)) for piece in segment.pieces]
            if len(cuts) == 1:
                return object_array(list(map(cuts[0], records)))
            return object_array([cut(record) for record in records for cut in cuts])
        ((start, stop),) = segment.pieces
        if segment.kind is FLOAT:
            return self.raw(name, rows, np.dtype("<f4")).astype(np.float32, copy=False)
        if segment.begins is None or segment.shifts is None:
            return rows[:, start:stop].astype(np.int64).ravel()
        parts = (rows[:, start:stop] & 0x7F).astype(np.uint64) << segment.shifts
        return np.add.reduceat(parts, segment.begins, axis=1).view(np.int64).ravel()

    def raw(self, name: str, rows: Array, dtype: np.dtype[Any]) -> Array:
        """Give the bytes of a feature's values in records of this layout as numbers.

        Args:
            name: The feature, whose values lie in one piece.
            rows: As for `values`.
            dtype: The dtype of the numbers; the piece is a multiple of its size.

        Returns:
            A fresh array (n * count,) of the dtype.
        """
        segment = self.features[name]
        assert segment is not None  # the caller has looked
        ((start, stop),) = segment.pieces
        return np.array(rows[:, start:stop], order="C").reshape(-1).view(dtype)


class _OddError(Exception):
    """The record is not written as expected; protobuf shall judge it."""


def learnt(record: bytes) -> Layout | None:
    """Give the layout of a record, or None where it has none."""
    features: dict[str, Segment | None] = {}
    sizes: list[tuple[int, int, Array | None, Array]] = []
    try:
        at, end = _content(record, 0, len(record), _FIRST)
        if end != len(record):
            return None
        while at < end:
            entry, at = _content(record, at, end, _FIRST)
            name_start, name_stop = _content(record, entry, at, _FIRST)
            value, value_end = _content(record, name_stop, at, _SECOND)
            name = record[name_start:name_stop].decode()
            if value_end != at or name in features:
                return None
            features[name] = _segment(record, value, value_end, sizes) if value < value_end else None
    except (_OddError, UnicodeDecodeError):
        return None
    pieces = [piece for segment in features.values() if segment for piece in segment.pieces]
    starts = [0, *(stop for _, stop in pieces)]
    stops = [*(start for start, _ in pieces), len(record)]
    runs = [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]
    fixed = [(start, np.frombuffer(record, f"S{stop - start}", 1, start)) for start, stop in runs]
    return Layout(features, fixed, sizes)


def _segment(record: bytes, at: int, end: int, sizes: list[tuple[int, int, Array | None, Array]]) -> Segment:
    """Give where the values of a feature are, whose message is not empty."""
    kind = _KINDS.get(record[at])
    if kind is None:
        raise _OddError
    start, stop = _content(record, at, end, record[at])
    if stop != end:
        raise _OddError
    pieces: list[tuple[int, int]] = []
    while start < stop:
        pieces.append(_content(record, start, stop, _FIRST))
        start = pieces[-1][1]
    if kind is BYTES or not pieces:
        return Segment(kind, len(pieces), pieces)
    start, stop = pieces[0]
    if len(pieces) > 1 or start == stop:
        raise _OddError
    if kind is INT64:
        return _integers(record, start, stop, sizes)
    if (stop - start) % 4:
        raise _OddError
    return Segment(kind, (stop - start) // 4, pieces)


def _integers(record: bytes, start: int, stop: int, sizes: list[tuple[int, int, Array | None, Array]]) -> Segment:
    """Give where integers are: seven bits in each byte, the lowest ones first, of which one below 128 is the last."""
    data = np.frombuffer(record, np.uint8, stop - start, start)
    ends = np.flatnonzero(data < 0x80) + 1
    if not len(ends) or ends[-1] != len(data):
        raise _OddError
    lengths = np.diff(ends, prepend=0)
    mask = np.full(len(data), 0x80, np.uint8)
    tenth = ends[lengths == _LONGEST_INTEGER] - 1
    if lengths.max() > _LONGEST_INTEGER or (data[tenth] != 1).any():
        raise _OddError
    mask[tenth] = 0xFF  # only one bit of it has a place in 64
    single = len(ends) == len(data)
    sizes.append((start, stop, None if single else mask, (data & mask).view(f"S{len(data)}")))
    if single:
        return Segment(INT64, len(ends), [(start, stop)])
    begins = ends - lengths
    shifts = 7 * (np.arange(len(data)) - np.repeat(begins, lengths)).astype(np.uint64)
    return Segment(INT64, len(ends), [(start, stop)], begins, shifts)


def _content(record: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Give where the content of a field lies that begins at `at`, and ends at `end` or before it."""
    if at >= end or record[at] != tag:
        raise _OddError
    size = shift = 0
    for place in range(at + 1, min(at + 1 + _LONGEST_LENGTH, end)):
        size |= (record[place] & 0x7F) << shift
        if record[place] < 0x80:
            start = place + 1
            if start + size > end:
                raise _OddError
            return start, start + size
        shift += 7
    raise _OddError
