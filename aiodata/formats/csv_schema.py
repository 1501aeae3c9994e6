"""What CSV files tell of their columns: names from headers, dtypes from the first rows. Files are read at once."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aiodata.errors import CorruptRecordError, DataError
from aiodata.formats.compression import check_text
from aiodata.formats.csv import compile_columns
from aiodata.formats.csv_columns import csv_dialect, csv_fault
from aiodata.storage.blocking import open_file
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiodata.options import StorageOptions

__all__ = ["CsvForm", "common_header", "infer_defaults"]

_NUMBERS = compile_columns([np.int32, np.int64, np.float32, np.float64]).columns
_TEXT = len(_NUMBERS)


class CsvForm(NamedTuple):
    """How the files are written.

    Args:
        field_delim: The one character between fields.
        quoting: Whether `"` quotes a field.
        compression: "" or "GZIP".
        encoding: Encoding of the text.
        storage: How remote ones are read; None as everywhere.
    """

    field_delim: str
    quoting: bool
    compression: str
    encoding: str
    storage: StorageOptions | None = None


def common_header(paths: Sequence[str], form: CsvForm) -> list[str]:
    """Read the names of columns that all files begin with.

    Raises:
        OSError: A file cannot be read.
        DataError: A file has no header, or its is not the first file's; it names the file and the difference.
    """
    first: list[str] = []
    for number, path in enumerate(paths):
        names = next((row for _, row in _rows(path, form)), None)
        if names is None:
            raise DataError(f"{masked(path)}: the file is empty, but should begin with a header")
        if number == 0:
            first = names
        elif len(names) != len(first):
            other = f"that of {masked(paths[0])} has {len(first)}"
            raise DataError(f"{masked(path)}: the header has {len(names)} columns, {other}")
        elif names != first:
            at = next(at for at, name in enumerate(names) if name != first[at])
            other = f"{first[at]!r} in {masked(paths[0])}"
            raise DataError(f"{masked(path)}: column {at} is named {names[at]!r}, but {other}")
    return first


def infer_defaults(
    paths: Sequence[str],
    width: int,
    selected: Sequence[int] | None,
    header: bool,
    na_value: str,
    count: int | None,
    ignore_errors: bool,
    form: CsvForm,
) -> list[Any]:
    """Find out the types of columns, and give their defaults: 0 of the type, or `b""`.

    Args:
        paths: The files.
        width: Number of columns in them.
        selected: Indexes of the columns that matter; None for all.
        header: Whether the files have headers.
        na_value: Text of a missing field, beside the empty one.
        count: Number of rows to look at; None for all.
        ignore_errors: Leave out bad rows.
        form: How the files are written.

    Raises:
        OSError: A file cannot be read.
        DataError: A row has a wrong number of fields, or bad quoting, or compressed data is damaged.
    """
    columns = range(width) if selected is None else selected
    kinds = [-1] * len(columns)
    for row in islice(_good_rows(paths, width, header, ignore_errors, form), count):
        for position, at in enumerate(columns):
            if row[at] and row[at] != na_value:
                kinds[position] = _kind(row[at], max(kinds[position], 0))
    return [b"" if kind in (-1, _TEXT) else _NUMBERS[kind].dtype.type(0) for kind in kinds]


def _good_rows(
    paths: Sequence[str], width: int, header: bool, ignore_errors: bool, form: CsvForm
) -> Iterator[list[str]]:
    for path in paths:
        for line, row in islice(_rows(path, form, ignore_errors), 1 if header else 0, None):
            if len(row) == width:
                yield row
            elif not ignore_errors:
                raise DataError(f"{masked(path)} line {line}: expected {width} fields, got {len(row)}")


def _kind(field: str, least: int) -> int:
    """Give the first kind of numbers, from `least` on, that a field is one of; else that of text."""
    for kind in range(least, _TEXT):
        column = _NUMBERS[kind]
        try:
            (value,) = column.decode([field], 1)
        except (ValueError, OverflowError):
            continue
        if value < np.inf:
            return kind
    return _TEXT


def _rows(path: str, form: CsvForm, ignore_errors: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Give the rows of a file with the lines that they begin at."""
    try:
        file = _opened(path, form)
    except CorruptRecordError:
        if not ignore_errors:
            raise
        return
    with file:
        rows = csv.reader(file, csv_dialect(form.field_delim, form.quoting))
        line = 1
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                if not ignore_errors:
                    raise DataError(f"{masked(path)} line {line}: {csv_fault(error)}") from None
                row = []
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                if not ignore_errors:
                    message = f"the GZIP data is damaged or cut short: {error}"
                    raise CorruptRecordError(message, masked(path)) from error
                row = None
            if row is None:
                return
            yield line, row or [""]
            line = rows.line_num + 1


def _opened(path: str, form: CsvForm) -> IO[str]:
    encoding = "utf-8-sig" if form.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else form.encoding
    file = open_file(path, form.storage)
    try:
        content: Any = _Unzipped(fileobj=file) if form.compression else file
        if not form.compression:
            check_text(content.peek(), masked(path))
        return io.TextIOWrapper(content, encoding, "surrogateescape", newline="")
    except BaseException:
        file.close()
        raise


class _Unzipped(gzip.GzipFile):
    """Compressed content that closes its file."""

    def close(self) -> None:
        file: Any = self.fileobj
        try:
            super().close()
        finally:
            if file is not None:
                file.close()
