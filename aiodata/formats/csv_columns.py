"""CSV records to numpy values and arrays, once the arguments are checked: the working half of `decode_csv`.

Many records are converted a column at a time. Only when that fails are they walked one by one, so that the error names
the first bad record and its first bad field, as decoding that record alone would. Columns never change once made.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from aiodata.errors import DataError
from aiodata.formats.csv_fields import TEXT, NumberColumns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from aiodata.formats.csv_fields import Column

__all__ = ["CsvColumns", "csv_dialect", "csv_fault"]

_LONGEST_SHOWN = 80
_INTEGER = r"(?a)\s*[+-]?\d+\s*"  # Python refuses those of more than 4300 digits as no integers


class CsvColumns:
    """The columns that a CSV file's records are decoded into: checked arguments, ready for use.

    Args:
        columns: The decoded columns, in order.
        width: Number of fields that a record must have: exactly, or at least (see `exact`).
        exact: Whether more fields than `width` are an error.
        field_delim: The one character between fields.
        quoting: Whether `"` quotes a field.

    Lines and fields are `str`, decoded from UTF-8 with `surrogateescape`, so that any bytes come back as they were.
    """

    __slots__ = ("_blanks", "_pick", "_scalars", "columns", "exact", "field_delim", "numbers", "quoting", "width")

    def __init__(self, columns: tuple[Column, ...], width: int, exact: bool, field_delim: str, quoting: bool) -> None:
        self.columns = columns
        self.numbers = NumberColumns(columns)
        self.width = width
        self.exact = exact
        self.field_delim = field_delim
        self.quoting = quoting
        at = [column.index for column in columns]
        self._pick: Callable[[Any], Sequence[str]] | None = None
        if at != list(range(len(at))):
            self._pick = itemgetter(*at) if len(at) > 1 else itemgetter(slice(at[0], at[0] + 1))
        self._blanks = tuple({text for column in columns for text in column.missing})
        self._scalars = [str.encode if column.dtype == TEXT else column.scalar for column in columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvColumns, (self.columns, self.width, self.exact, self.field_delim, self.quoting)

    def facts(self) -> tuple[Any, ...]:
        """Give what tells these columns from others, in plain values."""
        own = [(column.index, str(column.dtype), dict(column.missing)) for column in self.columns]
        return own, self.width, self.exact, self.field_delim, self.quoting

    def split(self, line: str, place: str = "record 0") -> list[str]:
        """Split one record's text into its fields, at least the selected ones; raise `DataError` on bad quoting."""
        if "\n" in line or "\r" in line:
            line = line.rstrip("\r\n")
        elif not (self.quoting and '"' in line):
            return line.split(self.field_delim, -1 if self.exact else self.width)
        try:
            return next(csv.reader((line,), csv_dialect(self.field_delim, self.quoting))) or [""]
        except csv.Error as error:
            raise DataError(f"{place}: {csv_fault(error)}, in {_shown(line)}") from None

    def decode_line(self, line: str, place: str = "record 0") -> tuple[Any, ...]:
        """Decode one record's text; messages begin with `place`."""
        return self._decode_row(self.split(line, place), line, place)

    def _decode_row(self, row: Sequence[str], line: str, place: str) -> tuple[Any, ...]:
        """Decode one record's fields into numpy scalars and `bytes`; `line` and `place` are for messages."""
        if len(row) != self.width and (self.exact or len(row) < self.width):
            least = "" if self.exact else "at least "
            raise DataError(f"{place}: expected {least}{self.width} fields, got {len(row)}, in {_shown(line)}")
        odd = "_" in line or not line.isascii()
        try:  # the short way; whatever is wrong or missing is found again, and said, on the long one
            fields: Any = row if self._pick is None else self._pick(row)
            for text in self._blanks:
                if text in fields:
                    pairs = zip(self.columns, fields, strict=False)
                    fields = [column.missing.get(given, given) for column, given in pairs]
                    break
            if not odd or not self._odd_numbers(fields):
                return tuple([scalar(field) for scalar, field in zip(self._scalars, fields, strict=False)])
        except (ValueError, OverflowError, TypeError):
            pass
        values = []
        for column in self.columns:
            given = row[column.index]
            field = column.missing.get(given, given)
            if field is None:
                raise DataError(f"{place}, column {column.index}: required but missing, in {_shown(line)}")
            try:
                if odd and column.dtype != TEXT and ("_" in field or not field.isascii()):
                    raise ValueError
                values.append(column.scalar(field))
            except (ValueError, OverflowError) as error:
                fault = _field_fault(field, column.dtype, error)
                raise DataError(f"{place}, column {column.index}: {fault}, in {_shown(line)}") from None
        return tuple(values)

    def _odd_numbers(self, fields: Sequence[str]) -> bool:
        """Tell whether a field that should be a number holds what `float` and `int` take but CSV does not."""
        joined = "".join([field for column, field in zip(self.columns, fields, strict=False) if column.dtype != TEXT])
        return "_" in joined or not joined.isascii()

    def decode_lines(self, lines: Sequence[str]) -> tuple[npt.NDArray[Any], ...]:
        """Decode many records' texts into one array per column."""
        with suppress(ValueError, OverflowError, csv.Error):
            return self.arrays(lines)
        rows = []
        for record, line in enumerate(lines):
            place = f"record {record}"
            rows.append(self.split(line, place))
            self._decode_row(rows[-1], line, place)
        return self._arrays(self._columns_of(rows), len(rows))

    def arrays(self, lines: Sequence[str]) -> tuple[npt.NDArray[Any], ...]:
        """Decode as `decode_lines`, but raise `ValueError`, `OverflowError` or `csv.Error`, saying nothing."""
        return self._arrays(self._split_columns(lines), len(lines))

    def _arrays(self, fields: Sequence[Sequence[str]], count: int) -> tuple[npt.NDArray[Any], ...]:
        """Convert whole columns; raise `ValueError` or `OverflowError`, saying nothing, if a field is bad."""
        return tuple([column.decode(given, count) for column, given in zip(self.columns, fields, strict=True)])

    def _columns_of(self, rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """Pick the columns out of rows; raise `ValueError` if a row has a wrong number of fields."""
        widths = set(map(len, rows))
        if widths and (min(widths) < self.width or (self.exact and max(widths) > self.width)):
            raise ValueError
        return [[row[column.index] for row in rows] for column in self.columns]

    def _split_columns(self, lines: Sequence[str]) -> list[Sequence[str]]:
        """Split many records into columns; raise `ValueError` or `csv.Error` if one does not fit."""
        if not lines:
            return [()] * len(self.columns)
        delim, count = self.field_delim, len(lines)
        between = f"{delim}\n{delim}"  # one more field between two records: it shows whether all of them are as long
        joined = between.join(lines)
        if "\r" in joined or joined.count("\n") != count - 1:
            lines = [line.rstrip("\r\n") for line in lines]
            joined = between.join(lines)
        if (self.quoting and '"' in joined) or "\r" in joined or joined.count("\n") != count - 1:
            rows = [row or [""] for row in csv.reader(lines, csv_dialect(delim, self.quoting))]
            if len(rows) != count:  # an open quote ran on into the next record
                raise ValueError
            return self._columns_of(rows)
        step = lines[0].count(delim) + 2
        if not self.exact and 2 * self.width < step:  # most of each line can be left as it is
            return self._columns_of([line.split(delim, self.width) for line in lines])
        fields = joined.split(delim)
        if len(fields) != step * count - 1 or fields[step - 1 :: step].count("\n") != count - 1:
            return self._columns_of([line.split(delim) for line in lines])
        if step - 1 < self.width or (self.exact and step - 1 > self.width):
            raise ValueError
        return [fields[column.index :: step] for column in self.columns]


@lru_cache(maxsize=64)
def csv_dialect(field_delim: str, quoting: bool) -> Any:
    """Return the `csv` module's own dialect object, which it takes without checking it again."""
    if quoting:
        return csv.reader((), delimiter=field_delim, strict=True).dialect
    return csv.reader((), delimiter=field_delim, quoting=csv.QUOTE_NONE, strict=True).dialect


def _shown(text: str) -> str:
    """Return text for a message: quoted, and cut where it is long."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "...")


def csv_fault(error: csv.Error) -> str:
    """Say in words what the `csv` module found."""
    message = str(error)
    if message.startswith("new-line"):
        return "line break outside quotes"
    if message.startswith("unexpected end"):
        return "quoted field without its closing quote"
    if "expected after" in message:
        return "quoted field that goes on after its closing quote"
    if message.startswith("field larger"):
        return f"{message}; csv.field_size_limit() can raise it"
    return message


def _field_fault(field: str, dtype: np.dtype[Any], error: Exception) -> str:
    """Say in words why a field did not become a value."""
    if dtype == TEXT:
        return f"{_shown(field)} has no UTF-8 form"
    if isinstance(error, OverflowError) or (dtype.kind != "f" and re.fullmatch(_INTEGER, field)):
        return f"{_shown(field)} is out of range for {dtype.name}"
    return f"{_shown(field)} is not a valid {dtype.name}"
