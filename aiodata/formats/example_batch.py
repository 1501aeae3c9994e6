"""A batch of serialized examples to the values of each requested feature, by layout where that is possible."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from aiodata.formats.example_columns import positions
from aiodata.formats.example_layout import learnt
from aiodata.formats.example_proto import decoded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.formats.example_columns import Column
    from aiodata.formats.example_layout import Layout
    from aiodata.formats.example_proto import Kind
    from aiodata.formats.example_request import Request

__all__ = ["gathered", "read_batch"]

Array: TypeAlias = "np.ndarray[Any, Any]"

_FEWEST_ROWS = 16
"""Learning a layout, and the steps that it takes, cost as much as parsing about so many records."""

_LONGEST_RECORD = 1 << 16
"""Longer records are not joined; there, parsing each costs little beside copying its bytes."""

_MOST_LAYOUTS = 64
"""Layouts that are remembered for a request."""


class Part(NamedTuple):
    """The values of some of a batch's examples.

    Args:
        rows: Numbers of the examples, int64 (m,).
        values: Their values, (total,).
        lengths: How many each has, int64 (m,).
    """

    rows: Array
    values: Array
    lengths: Array


def read_batch(
    records: Sequence[bytes], request: Request, names: Sequence[str] | None, message: Any
) -> list[tuple[Array, Array]]:
    """Give the values of a batch.

    Args:
        records: Serialized examples.
        request: The features to read.
        names: The examples' names, for errors.
        message: The class of the messages.

    Returns:
        For each column all values, fresh (total,), and how many each example has, int64 (n,).

    Raises:
        CorruptRecordError: A record is no example.
        StructureError: An example has not what a column wants. The first example with a fault is named.
    """
    parts: list[list[Part]] = [[] for _ in request.columns]
    rest: list[int] = []
    groups = _of_one_size(records)
    for at, numbers in enumerate(groups):
        left = _read_by_layout(records, numbers, request, parts)
        rest += left
        if len(left) >= _FEWEST_ROWS:
            # Not even so many of the same size have one layout: most likely these records never do.
            rest += chain.from_iterable(groups[at + 1 :])
            break
    if rest or not records:
        _read_one_by_one(records, sorted(rest), request.columns, parts, names, message)
    return [_merged(found, len(records), column.dtype) for column, found in zip(request.columns, parts, strict=True)]


def _of_one_size(records: Sequence[bytes]) -> list[Sequence[int]]:
    """Give the numbers of the records, those of one size together, and first those of which there are most."""
    if len(set(map(len, records))) < 2:
        return [range(len(records))]
    groups: dict[int, list[int]] = {}
    for number, size in enumerate(map(len, records)):
        groups.setdefault(size, []).append(number)
    return sorted(groups.values(), key=len, reverse=True)


def _read_by_layout(
    records: Sequence[bytes], numbers: Sequence[int], request: Request, parts: list[list[Part]]
) -> Sequence[int]:
    """Read records of one size, as far as they share layouts; give the numbers of those that are left."""
    while len(numbers) >= _FEWEST_ROWS and (size := len(records[numbers[0]])) <= _LONGEST_RECORD:
        chosen = [records[number] for number in numbers] if len(numbers) < len(records) else records
        data = np.frombuffer(b"".join(chosen), np.uint8).reshape(len(chosen), -1)
        found = _layout_of(size, chosen[0], data, request)
        if found is None:
            break
        layout, good = found
        rows = np.arange(len(records)) if chosen is records else np.array(numbers)
        if good is None:
            numbers = ()
        else:
            numbers = rows[~good].tolist()
            rows, data = rows[good], data[good]
            chosen = [records[number] for number in rows.tolist()]
        for column, part in zip(request.columns, parts, strict=True):
            values, count = column.laid(layout, data, chosen)
            part.append(Part(rows, values, np.full(len(rows), count)))
    return numbers


def _layout_of(size: int, record: bytes, data: Array, request: Request) -> tuple[Layout, Array | None] | None:
    """Give a layout that enough of the records have, and which of them do, None for all; None if there seems none."""
    known = request.layouts.get(size)
    if known is not None:
        good = _matching(known, data)
        if good is None or np.count_nonzero(good) >= _FEWEST_ROWS:
            return known, good
    layout = learnt(record)
    if layout is None or len(layout.fixed) > len(data) or not _serves(layout, request.columns):
        return None
    good = _matching(layout, data)
    if good is not None and np.count_nonzero(good) < _FEWEST_ROWS:
        return None
    if len(request.layouts) >= _MOST_LAYOUTS:
        request.layouts.clear()
    request.layouts[size] = layout
    return layout, good


def _matching(layout: Layout, data: Array) -> Array | None:
    return None if layout.fits(data) else layout.matching(data)


def _serves(layout: Layout, columns: Sequence[Column]) -> bool:
    """Tell whether examples of a layout have all that the columns want."""
    return all(column.serves(layout.features.get(column.source)) for column in columns)


def _read_one_by_one(
    records: Sequence[bytes],
    numbers: list[int],
    columns: Sequence[Column],
    parts: list[list[Part]],
    names: Sequence[str] | None,
    message: Any,
) -> None:
    found: list[list[Any]] = [[] for _ in columns]
    readers = [(column.read, values.append) for column, values in zip(columns, found, strict=True)]
    for number in numbers:
        name = None if names is None else names[number]
        features = decoded(message, records[number], number, name).features.feature
        for read, keep in readers:
            keep(read(features, number, name))
    rows = np.array(numbers)
    for column, part, values in zip(columns, parts, found, strict=True):
        part.append(Part(rows, *gathered(values, column)))


def gathered(rows: Sequence[Any], form: Kind | Column) -> tuple[Array, Array]:
    """Join the values of several messages: all of them, fresh (total,), and how many each has, int64 (n,).

    Args:
        rows: The values of each.
        form: Of what kind all of them are, or the column that has read them.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    if form.dtype.hasobject or lengths.sum() <= 8 * len(rows):
        return form.array(list(chain.from_iterable(rows))), lengths
    return np.concatenate([form.array(values) for values in rows]), lengths


def _merged(parts: list[Part], count: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Put the values of all examples in the examples' order."""
    if len(parts) == 1:  # all rows, in order
        return parts[0].values, parts[0].lengths
    lengths = np.zeros(count, np.int64)
    for part in parts:
        lengths[part.rows] = part.lengths
    starts = np.cumsum(lengths) - lengths
    values = np.empty(lengths.sum(), dtype)
    for part in parts:
        rows, places = positions(part.lengths)
        values[starts[part.rows][rows] + places] = part.values
    return values, lengths
