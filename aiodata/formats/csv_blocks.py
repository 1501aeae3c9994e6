"""Blocks of whole CSV records to arrays, straight from their bytes.

numpy finds the ends of all fields at once. Text is cut out there; numbers that are plain decimals are converted a whole
column at a time, and only the other fields of a column one by one, as `decode_csv` does. Blocks in which a line's end
is quoted, or a quote stands where it should not, are not for this way.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.formats.csv_fields import TEXT
from aiodata.formats.csv_numbers import LARGEST, LONGEST, MARGIN, eights, floats, integers

if TYPE_CHECKING:
    import numpy.typing as npt

    from aiodata.formats.csv_columns import CsvColumns
    from aiodata.formats.csv_fields import Column

__all__ = ["decode_block"]

_NEWLINE, _MINUS, _QUOTE = b'\n-"'
_PLAIN = frozenset("0123456789.-")


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
    padded = b"\0" * MARGIN + data
    chars = np.frombuffer(padded, np.uint8)
    newlines = chars == _NEWLINE
    is_end = (chars == ord(columns.field_delim)) | newlines
    ends = np.flatnonzero(is_end)
    count = np.count_nonzero(newlines)
    starts = None
    doubled = False
    if columns.quoting and b'"' in data:
        is_end[MARGIN - 1] = True
        quotes = np.flatnonzero(chars == _QUOTE)
        if not _are_well_placed(quotes, chars, is_end):
            return None
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]  # those outside quotes
        starts = np.concatenate(([MARGIN], ends[:-1] + 1))
        if np.any(ends - starts > csv.field_size_limit()):
            return None  # that module refuses it
    width, rest = divmod(len(ends), count)
    if rest or not newlines[ends[width - 1 :: width]].all():
        return None
    if starts is not None:
        quoted = chars[starts] == _QUOTE
        starts += quoted
        ends -= quoted
        doubled = len(quotes) != 2 * np.count_nonzero(quoted)
    if width < columns.width or (columns.exact and width > columns.width):
        raise ValueError
    words = eights(padded)
    arrays = []
    for column in columns.columns:
        at = column.index
        if starts is not None:
            begins = starts[at::width].copy()
        elif at:
            begins = ends[at - 1 :: width] + 1
        else:
            begins = np.concatenate(([MARGIN], ends[width - 1 : -1 : width] + 1))
        arrays.append(_array(column, padded, chars, words, begins, ends[at::width].copy(), doubled))
    return tuple(arrays)


def _are_well_placed(quotes: Any, chars: Any, is_end: Any) -> bool:
    """Tell whether all quotes enclose whole fields or are doubled within them: then every other one opens."""
    if len(quotes) % 2:
        return False
    before, after = quotes[::2] - 1, quotes[1::2] + 1
    return bool(np.all(is_end[before] | (chars[before] == _QUOTE)) and np.all(is_end[after] | (chars[after] == _QUOTE)))


def _array(
    column: Column, padded: bytes, chars: Any, words: Any, starts: Any, ends: Any, doubled: bool
) -> npt.NDArray[Any]:
    """Convert one column's fields, which lie from `starts` to `ends`; raise as `decode_block` does."""
    if column.dtype == TEXT or any(text and _PLAIN.issuperset(text) for text in column.missing):
        return _decoded(column, padded, starts, ends, doubled)
    lengths = ends - starts
    negative = chars[starts] == _MINUS
    if 2 * np.count_nonzero(lengths > LONGEST + negative) > len(lengths):
        return _decoded(column, padded, starts, ends, doubled)
    found: Any
    if column.dtype.kind == "f":
        found, plain = floats(words, negative, ends, lengths)
    else:
        found, plain = integers(words, negative, ends, lengths)
        limits = np.iinfo(column.dtype)
        plain &= (found >= max(limits.min, -LARGEST)) & (found <= min(limits.max, LARGEST))
    with np.errstate(over="ignore", under="ignore"):
        values: npt.NDArray[Any] = found.astype(column.dtype, copy=False)
    if not plain.all():
        default = column.missing[""]
        if default is not None:
            empty = lengths == 0
            values[empty] = column.scalar(default)
            plain |= empty
        others = np.flatnonzero(~plain)
        values[others] = _decoded(column, padded, starts[others], ends[others], doubled)
    return values


def _decoded(column: Column, padded: bytes, starts: Any, ends: Any, doubled: bool) -> npt.NDArray[Any]:
    """Convert fields one by one; `doubled` tells that some have doubled quotes."""
    fields = [padded[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    if doubled:
        fields = [field.replace(b'""', b'"') for field in fields]
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
