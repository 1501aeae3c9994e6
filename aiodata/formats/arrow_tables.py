"""What Parquet and Arrow files have in common: groups of rows, of which columns are chosen and rows are filtered.

All of this blocks, and is called in threads.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from aiodata.errors import CorruptRecordError, StateError, StructureError
from aiodata.formats.arrow_rows import check_schema, rows_of
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from aiodata.storage.transfer.seekable import SeekableFile

__all__ = ["Piece", "Request", "Table"]


@dataclass(frozen=True)
class Request:
    """What is asked of every file.

    Args:
        columns: Names of the columns to read; None for all.
        filter: A pyarrow expression over the columns; None for all rows.
        null_values: What stands for nulls, by the component's name.
        filter_text: The filter in words.
    """

    columns: tuple[str, ...] | None = None
    filter: Any = None
    null_values: dict[str, Any] = field(default_factory=dict)
    filter_text: str = ""

    def __str__(self) -> str:
        """Write what is not the default, in short."""
        shown = [
            f"columns={list(self.columns)}" if self.columns else "",
            f"filter={self.filter_text}" if self.filter is not None else "",
            f"null_values={self.null_values}" if self.null_values else "",
        ]
        return ", ".join(part for part in shown if part)


@dataclass(slots=True)
class Piece:
    """Some rows of a group.

    Args:
        group: Number of the group.
        row: Number in the group of the first row that was looked at.
        length: Number of rows, of those that are left by the filter.
        columns: The rows as columns, or
        elements: as a list, in which `Failure`s stand for rows that cannot be.
        numbers: The rows' numbers counted from `row`, where the filter has left some out.
    """

    group: int
    row: int
    length: int
    columns: Any = None
    elements: list[Any] | None = None
    numbers: Sequence[int] | None = None


class Table(ABC):
    """One file, read forward a piece at a time.

    Args:
        path: The file, a path or a URL.
        request: What is asked of it.
    """

    group_name = "group"

    def __init__(self, path: str, request: Request) -> None:
        self.url = path
        self.path = masked(path)
        """Its name, for errors."""
        self.request = request
        self.types: dict[str, str] = {}
        """What the columns are, by name."""
        self.mark: int | None = None
        """Differs if the file does, in its types or its number of rows; None until it is open."""
        self.group = self.row = 0
        """Where the next piece begins."""
        self._source: Any = None
        self._remote: SeekableFile | None = None
        self._groups: Iterator[tuple[int, Iterator[pa.RecordBatch]]] = iter(())
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._skip = 0
        self._order: list[str] = []
        self._filled: dict[str, Any] = {}

    def open(self, file: SeekableFile | None = None) -> None:
        """Open the file and check that it has what is asked of it.

        Args:
            file: The file if it is a remote one, which is closed with this.

        Raises:
            OSError: It cannot be opened.
            CorruptRecordError: It is no such file, or is damaged.
            StructureError: It lacks a column, or has one that cannot be read.
        """
        import pyarrow as pa

        if file is None:
            open(self.url, "rb").close()  # says what is wrong with a path as all readers do
        else:
            self._remote = file
            self._source = pa.PythonFile(file, "r")
        with self._damage(None):
            if file is None:
                self._source = pa.OSFile(os.fsencode(self.url))
            known = self._begin(self._source)
            names = self._names()
            wanted = self.request.columns
            if absent := [name for name in wanted or () if name not in names]:
                raise self._misfit(f"there is no column {absent[0]!r}; the columns are {', '.join(map(repr, names))}")
            schema = self._chosen(wanted)
            self.types, self._filled = check_schema(schema, self.request.null_values, self.path)
            extra = self._filtered_only(schema)
            self._chosen(None if wanted is None else [*wanted, *extra])
            # In the order that was asked for, or else that of the file.
            roots = [name if name in schema.names else name.partition(".")[0] for name in wanted or schema.names]
            self._order = list(dict.fromkeys(roots))
        self.mark = crc32(f"{known} {self.types}".encode())

    def seek(self, group: int, row: int) -> None:
        """Go to a row of a group, both counted before any filter."""
        self._groups, self._batches = self._from(group), None
        self.group, self.row, self._skip = group, row, row

    def read(self) -> Piece | None:
        """Give the next rows, which may be none where a filter leaves none; None at the end of the file.

        Raises:
            CorruptRecordError: The group is damaged. The next call goes on behind it, if that is possible.
        """
        while True:
            try:
                with self._damage(None if self._batches is None else f"{self.group_name} {self.group}"):
                    if self._batches is None:
                        if (found := next(self._groups, None)) is None:
                            return None
                        (self.group, self._batches), self.row = found, 0
                        continue
                    batch = next(self._batches, None)
                    if batch is not None and batch.num_rows > self._skip:
                        return self._piece(batch)
            except BaseException:
                self._batches, self._skip = None, 0
                raise
            if batch is not None:
                self.row += batch.num_rows
                self._skip -= batch.num_rows
            elif self._skip > 0:
                raise StateError(f"{self.path}: {self.group_name} {self.group} has lost rows since the state was saved")
            else:
                self._batches = None

    def close(self) -> None:
        """Close the file."""
        self._groups, self._batches = iter(()), None
        source, self._source = self._source, None
        if source is not None:
            source.close()

    # What the formats differ in

    @abstractmethod
    def _begin(self, source: Any) -> object:
        """Read what describes the file; give what shows that it is the same later on."""

    @abstractmethod
    def _names(self) -> Sequence[str]:
        """List the names that may be asked for."""

    @abstractmethod
    def _chosen(self, names: Sequence[str] | None) -> pa.Schema:
        """Choose what will be read, and give its schema."""

    @abstractmethod
    def _from(self, group: int) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        """Give the numbers of the groups from one on, and their rows."""

    # What is asked of the columns and rows

    def _filtered_only(self, schema: pa.Schema) -> list[str]:
        """Name the columns that the filter needs beside those that are asked for."""
        if self.request.filter is None or (error := self._misses(schema)) is None:
            return []
        needed: list[str] = []
        if (chosen := self.request.columns) is not None:
            text = str(self.request.filter)
            needed = [name for name in self._chosen(None).names if name not in schema.names and name in text]
            error = self._misses(self._chosen([*chosen, *needed]))
        if error is not None:
            raise self._misfit(f"the filter {self.request.filter_text:.200} does not fit: {error}")
        for name in list(needed):  # a short name stands in many a text by accident
            fewer = [other for other in needed if other != name]
            needed = fewer if self._misses(self._chosen([*(chosen or ()), *fewer])) is None else needed
        return needed

    def _misses(self, schema: pa.Schema) -> str | None:
        """Say why the filter cannot be applied to rows of a schema; None if it can."""
        import pyarrow as pa

        try:
            schema.empty_table().filter(self.request.filter)
        except (pa.ArrowException, TypeError) as error:
            return str(error).partition("\n")[0]
        return None

    def _piece(self, batch: pa.RecordBatch) -> Piece:
        import pyarrow as pa

        begin, batch = self.row + self._skip, batch.slice(self._skip)
        end, numbers = begin + batch.num_rows, None
        if self.request.filter is not None:
            last = len(batch.schema)
            unused = max(batch.schema.names, key=len) + "_"
            counted = batch.append_column(unused, pa.array(np.arange(batch.num_rows)))
            left = pa.Table.from_batches([counted]).filter(self.request.filter).combine_chunks().to_batches()
            batch = left[0] if left else counted.slice(0, 0)
            numbers = batch.column(last).to_numpy()
        place = partial(self._place, begin, numbers)
        columns, elements = rows_of(batch.select(self._order), self._filled, place)
        self.row, self._skip = end, 0
        return Piece(self.group, begin, batch.num_rows, columns, elements, numbers)

    # Errors

    def _place(self, begin: int, numbers: Sequence[int] | None, row: int) -> str:
        number = begin + (row if numbers is None else int(numbers[row]))
        return f"{self.path}: {self.group_name} {self.group}, row {number}"

    def _misfit(self, message: str) -> StructureError:
        return StructureError(f"{self.path}: {message}")

    @contextmanager
    def _damage(self, where: str | None) -> Iterator[None]:
        """Turn what pyarrow raises at damaged data into an error that names the file."""
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
            if self._remote is not None:
                self._remote.raise_failure()
            if isinstance(error, OSError) and error.errno is not None:  # the system's own
                raise
            raise CorruptRecordError(_told(where, error), self.path) from error


def _told(where: str | None, error: Exception) -> str:
    return f"{where or 'the file'} is damaged, or cannot be read: {error}"
