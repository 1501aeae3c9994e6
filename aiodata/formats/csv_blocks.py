"""Blocks of whole CSV records to arrays, straight from their bytes.

numpy finds the ends of all fields at once. Text is cut out there; numbers that are plain decimals are converted
together, whatever their columns, and only the other fields of a column one by one, as one record's are. Blocks in which
a line's end is quoted, or a quote stands where it should not, are not for this way.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aiodata.formats.csv_fields import TEXT
from aiodata.formats.csv_numbers import LONGEST, MARGIN, POINT, eights, long_decimals, short_decimals

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from aiodata.formats.csv_columns import CsvColumns
    from aiodata.formats.csv_fields import Column, NumberColumns

__all__ = ["decode_block", "decode_records"]

_ASCII = [np.array(code, np.uint8) for code in range(128)]
_NEWLINE, _QUOTE = _ASCII[ord("\n")], _ASCII[ord('"')]
_HEAD = b"\0" * MARGIN + b"\n"
_MANY = 128
"""Fields from which on converting them together takes less than one by one, if they are long."""

_RUN = 8192
"""Fields that are converted together: arrays of them stay in the processor's cache, and are no news to the system."""


class _Fields(NamedTuple):
    """Where the fields of a block are.

    Args:
        padded: The text, behind a `MARGIN`; it begins with one character before the first field.
        chars: The text, as numbers.
        before: Places in the text of the character before each field, (records, fields).
        ends: Places of the character behind each, likewise.
        is_quoted: Whether some fields are quoted.
        doubled: Whether some have doubled quotes.
    """

    padded: bytes
    chars: npt.NDArray[np.uint8]
    before: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]
    is_quoted: bool
    doubled: bool

    def cut(self, at: int, rows: Any = slice(None)) -> list[bytes]:
        """Cut out the fields of a column, or those in some rows."""
        padded = self.padded
        starts = (self.before[rows, at] + (MARGIN + 1)).tolist()
        ends = (self.ends[rows, at] + MARGIN).tolist()
        fields = [padded[start:end] for start, end in zip(starts, ends, strict=True)]
        return [field.replace(b'""', b'"') for field in fields] if self.doubled else fields


def decode_records(columns: CsvColumns, records: Sequence[bytes]) -> tuple[npt.NDArray[Any], ...] | None:
    """Decode records, of which each may have an end or none, as `decode_block` does."""
    step = max(1, _RUN // columns.width)
    if len(records) <= step:
        return _decode_few(columns, records)
    pieces = []
    for begin in range(0, len(records), step):
        arrays = _decode_few(columns, records[begin : begin + step])
        if arrays is None:
            return None
        pieces.append(arrays)
    return _joined(pieces)


def _decode_few(columns: CsvColumns, records: Sequence[bytes]) -> tuple[npt.NDArray[Any], ...] | None:
    """Decode records that are one run; give None too where their fields seem too long to be converted together."""
    data = b"\n".join([*records, b""])
    most = LONGEST + 2 if len(records) >= _MANY else 10
    if len(data) > most * len(records) * columns.width and len(columns.numbers.columns) == columns.width:
        return None
    if b"\r" in data or records[0].endswith(b"\n"):
        data = b"\n".join([*[record.rstrip(b"\r\n") for record in records], b""])
        if b"\r" in data:
            return None
    arrays = decode_block(columns, data)
    return arrays if arrays is not None and len(arrays[0]) == len(records) else None  # else a record has several lines


def _joined(pieces: Sequence[Sequence[npt.NDArray[Any]]]) -> tuple[npt.NDArray[Any], ...]:
    return tuple([np.concatenate(arrays) for arrays in zip(*pieces, strict=True)])


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
    arrays = _together(columns.numbers, fields) if columns.numbers.columns else ()
    if len(arrays) == len(columns.columns):
        return arrays
    found = dict(zip(columns.numbers.columns, arrays, strict=True))
    rest = [column for column in columns.columns if column not in found]
    if not fields.is_quoted and 4 * len(rest) >= width:  # to split takes less than to cut
        delim = columns.field_delim.encode()
        every = data.replace(b"\n", delim).split(delim)
        every.pop()
        found.update({column: _decoded(column, every[column.index :: width]) for column in rest})
    else:
        found.update({column: _decoded(column, fields.cut(column.index)) for column in rest})
    return tuple([found[column] for column in columns.columns])


def _fields(columns: CsvColumns, data: bytes) -> _Fields | None:
    """Find the fields of a block in which lines end with newlines; give None as `decode_block` does."""
    padded = _HEAD + data
    chars = np.frombuffer(padded, np.uint8)[MARGIN:]
    newlines = chars == _NEWLINE
    is_end = chars == _ASCII[ord(columns.field_delim)]
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
    count = np.count_nonzero(newlines) - 1
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
    return _Fields(padded, chars, before.reshape(count, width), ends.reshape(count, width), quotes is not None, doubled)


def _are_well_placed(quotes: Any, chars: Any, is_end: Any) -> bool:
    """Tell whether all quotes enclose whole fields or are doubled within them: then every other one opens."""
    if len(quotes) % 2:
        return False
    before, after = quotes[::2] - 1, quotes[1::2] + 1
    return bool(np.all(is_end[before] | (chars[before] == _QUOTE)) and np.all(is_end[after] | (chars[after] == _QUOTE)))


def _together(numbers: NumberColumns, fields: _Fields) -> tuple[npt.NDArray[Any], ...]:
    """Convert the fields of number columns; raise as `decode_block` does."""
    words = eights(fields.padded)
    count = len(fields.ends)
    step = max(1, _RUN // len(numbers.columns))
    with numbers.errors():
        if count <= step:
            return _run(numbers, fields, words, slice(0, count))
        return _joined([_run(numbers, fields, words, slice(at, at + step)) for at in range(0, count, step)])


def _run(numbers: NumberColumns, fields: _Fields, words: Any, run: slice) -> tuple[npt.NDArray[Any], ...]:
    """Convert those in some rows."""
    before, ends = fields.before[run], fields.ends[run]
    if len(numbers.columns) < ends.shape[1]:
        before, ends = before.take(numbers.at, 1), ends.take(numbers.at, 1)
    values, flaws, places = short_decimals(fields.chars, words, before, ends)
    if numbers.has_integers:
        flaws[(places >= POINT) > numbers.are_floats] = 1
    if np.count_nonzero(flaws):
        _mend(numbers, fields.chars, words, before, ends, values, flaws)
    if numbers.has_narrow:
        flaws[(values < numbers.lows) | (values > numbers.highs)] = 1
    if numbers.dtype is None:
        arrays = [found.astype(column.dtype) for column, found in zip(numbers.columns, values.T, strict=True)]
    else:
        arrays = [found.copy() for found in values.T.astype(numbers.dtype, "C")]
    if np.count_nonzero(flaws):
        for column, array, bad in zip(numbers.columns, arrays, flaws.T, strict=True):
            (rows,) = bad.nonzero()
            if len(rows):
                array[rows] = _decoded(column, fields.cut(column.index, rows + run.start))
    return tuple(arrays)


def _mend(numbers: NumberColumns, chars: Any, words: Any, before: Any, ends: Any, values: Any, flaws: Any) -> None:
    """Convert those fields that are missing, or longer; where that is done there is no flaw any more."""
    where = flaws.nonzero()
    before, ends, column = before[where], ends[where], where[1]
    sizes = ends - before
    is_missing = sizes == 1
    if numbers.missing:
        mask, text = numbers.missing_word
        is_missing |= (sizes == len(numbers.missing) + 1) & (words[ends] & mask == text)
    is_mended = is_missing & numbers.has_defaults[column]
    found = numbers.defaults[column]
    (long,) = ((sizes > 2) & (sizes <= LONGEST + 2) & ~is_missing).nonzero()
    if len(long) >= _MANY:
        longer, plain, whole = long_decimals(chars, words, before[long], ends[long])
        own = column[long]
        whole &= (longer >= numbers.lows[own]) & (longer <= numbers.highs[own])
        is_mended[long] = np.where(numbers.are_floats[own], plain, whole)
        found[long] = longer
    values[where] = found
    flaws[where] = ~is_mended


def _decoded(column: Column, fields: list[bytes]) -> npt.NDArray[Any]:
    """Convert fields one by one."""
    missing = {text.encode(): default for text, default in column.missing.items()}  # no field is what has no UTF-8 form
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
