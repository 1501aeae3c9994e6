"""Queries on SQLite databases, as tf.data reads them: each column is converted to a declared type by SQLite's rules.

All of this blocks, and is called in threads, one call at a time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.columns import freeze, iterate
from aiodata.engine.block import Failure
from aiodata.errors import CorruptRecordError, StateError, StructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["OutputType", "Portion", "SqliteQuery", "output_types_of"]

PORTION_ROWS = 1000
PORTION_BYTES = 1 << 20
PORTION_SECONDS = 0.05
"""A portion ends at so many rows, bytes of text, or seconds, but has a row at least; the first ones are smaller."""

_LARGEST_STEP = 64
OutputType: TypeAlias = "np.dtype[Any] | type[bytes] | type[str]"
_TEXT: dict[Any, type[bytes] | type[str]] = {bytes: bytes, np.bytes_: bytes, str: str, np.str_: str, object: bytes}
_DAMAGED = {11, 26}
"""SQLite's codes for a file that is damaged, and for one that is no database."""


def output_types_of(output_types: Any) -> tuple[OutputType, ...]:
    """Check the declared types of the columns.

    Raises:
        TypeError: They are no tuple, or one is no type that a column can be converted to.
        ValueError: There are none.
    """
    if not isinstance(output_types, (tuple, list)):
        raise TypeError(f"output_types must be a tuple of dtypes, not {output_types!r:.80}")
    if not output_types:
        raise ValueError("output_types is empty; a row has at least one column")
    return tuple(map(_output_type, output_types))


def _output_type(given: Any) -> OutputType:
    if isinstance(given, type) and given in _TEXT:
        return _TEXT[given]
    try:
        dtype = np.dtype("V" if given is None else given)
    except TypeError:
        dtype = np.dtype("V")
    if dtype.kind in "SUO":
        return str if dtype.kind == "U" else bytes
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise TypeError(f"output_types: {given!r:.80} is neither a bool, integer or float dtype, nor bytes or str")
    return dtype


@dataclass(slots=True)
class Portion:
    """Some rows of a query's result: as columns, a tuple of arrays (length,), or as elements with `Failure`s."""

    length: int
    columns: tuple[Any, ...] | None = None
    elements: list[Any] | None = None


class SqliteQuery:
    """A query's result, read forward a portion at a time.

    Args:
        path: The database file, or a `file:` URI.
        query: The query.
        types: The type of each column.
    """

    def __init__(self, path: str, query: str, types: tuple[OutputType, ...]) -> None:
        self.path, self.query, self.types = path, query, types
        self._connection: Any = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self._names: list[str] = []
        self._row = 0
        self._limit = 1
        self._error: list[Exception] = []

    def open(self, skip: int) -> None:
        """Connect, begin the query, and leave out its first rows.

        Raises:
            OSError: There is no such file.
            CorruptRecordError: It is no SQLite database, or is damaged.
            StructureError: The result has another number of columns than there are types.
            StateError: It has no more than `skip` rows, of which some were to be left out.
            sqlite3.Error: The query cannot be run.
        """
        import sqlite3
        from pathlib import Path

        # Mode `rw` and not `ro`: what a crash has left has to be undone before reading. It creates no file.
        uri = self.path if self.path.startswith("file:") else f"{Path(self.path).absolute().as_uri()}?mode=rw"
        try:
            if self.path == ":memory:":
                self._connection = sqlite3.connect(":memory:", check_same_thread=False)
            else:
                self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        except sqlite3.OperationalError:
            os.stat(self.path)  # says so if there is no such file
            raise
        self._connection.text_factory = bytes
        try:
            self._connection.execute("PRAGMA query_only = 1")
            cursor = self._connection.execute(self.query)
            self._names = [column[0] for column in cursor.description or ()]
            if len(self._names) != len(self.types):
                raise StructureError(
                    f"{self.path}: the query has {len(self._names)} columns, but output_types has {len(self.types)}"
                )
            self._rows = iter(cursor)
            skipped = sum(1 for _ in islice(self._rows, skip))
        except sqlite3.DatabaseError as error:
            raise self._told(error) from None
        if skipped < skip:
            raise StateError(
                f"{self.path}: the query has {skipped} rows, and row {skip} was next when the state was saved"
            )
        self._row = skip

    def read(self) -> Portion | None:
        """Give the next rows; None at the end.

        Raises:
            CorruptRecordError: The file is damaged.
            sqlite3.Error: The query fails at this row.
        """
        import sqlite3

        if self._error:
            raise self._error.pop()
        rows: list[tuple[Any, ...]] = []
        size, step, deadline = 0, 1, monotonic() + PORTION_SECONDS
        try:
            while len(rows) < self._limit and size < PORTION_BYTES and (step == 1 or monotonic() < deadline):
                begun = len(rows)
                rows.extend(islice(self._rows, step))  # what comes before an error is kept
                if len(rows) < begun + step:
                    break
                size += sum(len(value) for row in rows[begun:] for value in row if type(value) is bytes)
                step = min(2 * step, _LARGEST_STEP, max(1, self._limit - len(rows)))
            self._limit = min(2 * self._limit, PORTION_ROWS)
        except sqlite3.Error as error:
            self._rows = iter(())
            if not rows:
                raise self._told(error) from None
            self._error.append(self._told(error))
        return self._portion(rows) if rows else None

    def interrupt(self) -> None:
        """Have the call that is under way in another thread fail soon."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Close the database."""
        self._rows = iter(())
        self._error.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _told(self, error: Any) -> Any:
        if getattr(error, "sqlite_errorcode", 0) & 255 in _DAMAGED:
            return CorruptRecordError(str(error), self.path)
        return error

    def _portion(self, rows: list[tuple[Any, ...]]) -> Portion:
        columns: list[Any] = []
        failures: dict[int, Failure] = {}
        for number, values in enumerate(zip(*rows, strict=True)):
            array, faults = self._column(values, self.types[number])
            columns.append(array)
            for row, fault in faults:
                name = f"column {number}, {self._names[number]!r}"
                place = f"{self.path}, row {self._row + row} of the query"
                failures.setdefault(row, Failure(StructureError(f"{place}: {name}, {fault}")))
        self._row += len(rows)
        whole = freeze(tuple(columns))
        if not failures:
            return Portion(len(rows), columns=whole)
        return Portion(len(rows), elements=[failures.get(row, own) for row, own in enumerate(iterate(whole))])

    # Conversion. What Python's type shows to need none is taken as it is; the rest SQLite itself converts.

    def _column(self, values: Sequence[Any], kind: OutputType) -> tuple[Any, list[tuple[int, str]]]:
        """Convert a column; give it with the rows that have no such value, and why."""
        if not isinstance(kind, np.dtype):
            return self._texts(values, kind)
        if kind.kind == "f":
            with np.errstate(over="ignore"):
                return np.array(self._cast(values, "REAL", {int, float}, 0.0), np.float64).astype(kind), []
        numbers = np.array(self._cast(values, "INTEGER", {int}, 0), np.int64)
        if kind.kind == "b":
            return numbers != 0, []
        limits = np.iinfo(kind)
        low, high = max(int(limits.min), -(2**63)), min(int(limits.max), 2**63 - 1)
        bad = ((numbers < low) | (numbers > high)).nonzero()[0].tolist()
        return numbers.astype(kind), [(row, f"is {numbers[row]}, which {kind} cannot hold") for row in bad]

    def _texts(self, values: Sequence[Any], kind: type) -> tuple[Any, list[tuple[int, str]]]:
        texts: list[Any] = self._cast(values, "TEXT", {bytes}, b"")
        faults = []
        if kind is str:
            for row, text in enumerate(texts):
                try:
                    texts[row] = text.decode()
                except UnicodeDecodeError as error:
                    faults.append((row, f"is no UTF-8 text: {error}"))
        array = np.empty(len(texts), object)
        array[:] = texts
        return array, faults

    def _cast(self, values: Sequence[Any], name: str, ready: set[type], null: Any) -> list[Any]:
        """Give values as one of SQLite's types; `ready` are the Python types that are taken as they are."""
        if set(map(type, values)) <= ready:
            return list(values)
        cast = f"SELECT CAST(? AS {name})"
        return [
            null
            if value is None
            else value
            if type(value) in ready
            else self._connection.execute(cast, (value,)).fetchone()[0]
            for value in values
        ]
