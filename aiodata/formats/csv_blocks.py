"""Blocks of whole CSV records to arrays, straight from their bytes.

numpy finds the ends of all fields at once. Text is cut out there; numbers that are plain decimals are converted
together, whatever their columns, and only the other fields of a column one by one, as one record's are. Blocks in which
a line's end is quoted, or a quote stands where it should not, are not for this way.
"""

from __future__ import annotations

import csv
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aiodata.formats.csv_fields import TEXT
from aiodata.formats.csv_numbers import LONGEST, MARGIN, NO_POINT, eights, long_decimals, short_decimals

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from aiodata.formats.csv_columns import CsvColumns
    from aiodata.formats.csv_fields import Column

__all__ = ["NumberColumns", "decode_block", "decode_records"]

_NEWLINE, _QUOTE = np.array(list(b'\n"'), np.uint8)[:, None]
_PLAIN = frozenset("0123456789.-")
_RUN = 8192
"""Fields that are converted together: arrays of them stay in the processor's cache, and are no news to the system."""


class NumberColumns:
    """Those of a file's columns that hold numbers which are converted together, as arrays (k,).

    Args:
        columns: All columns.
    """

    __slots__ = ("are_floats", "at", "columns", "has_integers", "has_narrow", "highs", "lows")

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = [column for column in columns if column.dtype != TEXT and not _is_odd(column)]
        self.at = np.array([column.index for column in self.columns], np.intp)
        self.are_floats = np.array([column.dtype.kind == "f" for column in self.columns], bool)
        self.has_integers = not self.are_floats.all()
        limits = [_limits(column) for column in self.columns]
        self.lows, self.highs = np.array(limits, np.float64).reshape(-1, 2).T
        self.has_narrow = any(low > -(10**8) or high < 10**8 for low, high in limits)


def _is_odd(column: Column) -> bool:
    """Tell whether what looks like a number may be a missing one."""
    return any(text and _PLAIN.issuperset(text) for text in column.missing)


def _limits(column: Column) -> tuple[float, float]:
    if column.dtype.kind == "f":
        return -np.inf, np.inf
    limits = np.iinfo(column.dtype)
    return limits.min, limits.max


class _Fields(NamedTuple):
    """Where the fields of a block are.

    Args:
        padded: The text, behind a `MARGIN`; it begins with one character before the first field.
        chars: The text, as numbers.
        before: Places in the text of the character before each field, (records, fields).
        ends: Places of the character behind each, likewise.
        doubled: Whether some fields have doubled quotes.
    """

    padded: bytes
    chars: npt.NDArray[np.uint8]
    before: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]
    doubled: bool

    def cut(self, at: int, rows: Any = slice(None)) -> list[bytes]:
        """Cut out the fields of a column, or those in some rows."""
        padded = self.padded
        starts = (self.before[rows, at] + (MARGIN + 1)).tolist()
        ends = (self.ends[rows, at] + MARGIN).tolist()
        fields = [padded[start:end] for start, end in zip(starts, ends, strict=True)]
        return [field.replace(b'""', b'"') for field in fields] if self.doubled else fields


def decode_records(columns: CsvColumns, records: Sequence[bytes]) -> tuple[npt.NDArray[Any], ...] | None:
    """Decode records, of which each may have an end or none, as `decode_block` does; None too if one is bad."""
    count = len(records)
    data = b"\n".join([*records, b""])
    if b"\r" in data or data.count(b"\n") != count:
        data = b"\n".join([*[record.rstrip(b"\r\n") for record in records], b""])
        if b"\r" in data or data.count(b"\n") != count:
            return None
    with suppress(ValueError, OverflowError):
        return decode_block(columns, data)
    return None


def decode_block(columns: CsvColumns, data: bytes) -> tuple[npt.NDArray[Any], ...] | None:
    r"""Decode a block of records.

    Args:
        columns: What to decode.
        data: The records, each with an end, which is `\n`, `\r\n` or `\r`.

    Returns:
        One array (n,) for each column; None where this is not the way: the records differ in their number of fields, a
        line's end is quoted, a quote is not well placed, or the delimiter is not one byte.

    Raises:
        ValueError, OverflowError: A record is bad. Which one it is, and what is wrong, is not said.
    """
    if not columns.field_delim.isascii():
        return None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    fields = _fields(columns, data)
    if fields is None:
        return None
    width = fields.ends.shape[1]
    if width < columns.width or (columns.exact and width > columns.width):
        raise ValueError
    numbers = columns.numbers
    arrays = dict(zip(numbers.columns, _together(numbers, fields), strict=True)) if numbers.columns else {}
    return tuple(
        [
            arrays[column] if column in arrays else _decoded(column, fields.cut(column.index))
            for column in columns.columns
        ]
    )


def _fields(columns: CsvColumns, data: bytes) -> _Fields | None:
    """Find the fields of a block in which lines end with newlines; give None as `decode_block` does."""
    padded = b"\0" * MARGIN + b"\n" + data
    chars = np.frombuffer(padded, np.uint8, offset=MARGIN)
    newlines = chars == _NEWLINE
    is_end = chars == np.array(ord(columns.field_delim), np.uint8)
    is_end |= newlines
    (bounds,) = is_end.nonzero()
    quotes = None
    if columns.quoting and b'"' in data:
        (quotes,) = (chars == _QUOTE).nonzero()
        if not _are_well_placed(quotes, chars, is_end):
            return None
        bounds = bounds[np.searchsorted(quotes, bounds) % 2 == 0]  # those outside quotes
        if np.any(np.diff(bounds) > csv.field_size_limit() + 1):
            return None  # that module refuses it
    count = data.count(b"\n")
    width, rest = divmod(len(bounds) - 1, count)
    if rest or np.count_nonzero(newlines[bounds[width::width]]) != count:
        return None
    before, ends = bounds[:-1], bounds[1:]
    doubled = False
    if quotes is not None:
        quoted = chars[before + 1] == _QUOTE
        before = before + quoted
        ends = ends - quoted
        doubled = len(quotes) != 2 * np.count_nonzero(quoted)
    return _Fields(padded, chars, before.reshape(count, width), ends.reshape(count, width), doubled)


def _are_well_placed(quotes: Any, chars: Any, is_end: Any) -> bool:
    """Tell whether all quotes enclose whole fields or are doubled within them: then every other one opens."""
    if len(quotes) % 2:
        return False
    before, after = quotes[::2] - 1, quotes[1::2] + 1
    return bool(np.all(is_end[before] | (chars[before] == _QUOTE)) and np.all(is_end[after] | (chars[after] == _QUOTE)))


def _together(numbers: NumberColumns, fields: _Fields) -> list[npt.NDArray[Any]]:
    """Convert the fields of number columns; raise as `decode_block` does."""
    count, width = fields.ends.shape
    words = eights(fields.padded)
    arrays = [np.empty(count, column.dtype) for column in numbers.columns]
    step = max(1, _RUN // len(arrays))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # values that mean nothing have any size
        for begin in range(0, count, step):
            rows = slice(begin, begin + step)
            before, ends = fields.before[rows], fields.ends[rows]
            if len(arrays) < width:
                before, ends = before.take(numbers.at, 1), ends.take(numbers.at, 1)
            values, flaws, places = short_decimals(fields.chars, words, before, ends)
            if numbers.has_integers:
                flaws[(places < NO_POINT) > numbers.are_floats] = 1
            if numbers.has_narrow:
                flaws[(values < numbers.lows) | (values > numbers.highs)] = 1
            for array, found in zip(arrays, values.T, strict=True):
                array[rows] = found
            if np.count_nonzero(flaws):
                for column, array, bad in zip(numbers.columns, arrays, flaws.T, strict=True):
                    (others,) = bad.nonzero()
                    if len(others):
                        _mend(column, array, others + begin, fields, words)
    return arrays


def _mend(column: Column, array: Any, rows: Any, fields: _Fields, words: Any) -> None:
    """Convert those fields of a column that are missing, longer, or not plain."""
    before, ends = fields.before[rows, column.index], fields.ends[rows, column.index]
    default = column.missing[""]
    is_left = ends - before > 1
    if default is not None and not is_left.all():
        array[rows[~is_left]] = column.scalar(default)
        rows, before, ends = rows[is_left], before[is_left], ends[is_left]
    if 2 * np.count_nonzero(ends - before > LONGEST + 2) <= len(rows):
        values: Any
        values, scales, plain = long_decimals(fields.chars, words, before, ends)
        if column.dtype.kind == "f":
            values = values / scales
        else:
            low, high = np.iinfo(column.dtype).min, np.iinfo(column.dtype).max
            values = np.where(scales < 0, -values, values)
            plain &= (abs(scales) == 1) & (values >= max(low, -(2**63))) & (values <= min(high, 2**63 - 1))
        array[rows[plain]] = values[plain]
        rows = rows[~plain]
    if len(rows):
        array[rows] = _decoded(column, fields.cut(column.index, rows))


def _decoded(column: Column, fields: list[bytes]) -> npt.NDArray[Any]:
    """Convert fields one by one."""
    missing = {_encoded(text): default for text, default in column.missing.items()}
    if column.dtype == TEXT:
        for text, default in missing.items():
            if text in fields:
                if default is None:
                    raise ValueError
                value = _encoded(default)
                fields = [value if field == text else field for field in fields]
        array = np.empty(len(fields), object)
        array[:] = fields
        return array
    if b"_" in b"".join(fields) or any(text in fields for text in missing):
        return column.decode([field.decode("utf-8", "surrogateescape") for field in fields], len(fields))
    return column.array(fields, len(fields))  # `float` and `int` take less of bytes than of text, but nothing else


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
