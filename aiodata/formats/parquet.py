"""Parquet files, read a few thousand rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.errors import CorruptRecordError
from aiodata.formats.arrow_rows import BLOCK_BYTES, BLOCK_ROWS, NUMBER_ROWS, number_bytes
from aiodata.formats.arrow_tables import Table
from aiodata.formats.parquet_footer import column_ranges, read_footer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

__all__ = ["ParquetTable"]

BUFFER_BYTES = 1 << 20
"""Bytes to read at a time of each column, so that no row group has to fit into memory."""

REMOTE_BUFFER_BYTES = 64 << 10
"""The same where the file itself reads ahead."""


class ParquetTable(Table):
    """One Parquet file; its groups are row groups."""

    group_name = "row group"

    def _begin(self, source: Any) -> object:
        from pyarrow import parquet

        self._footer = b"" if self._remote is None else read_footer(self._remote)
        self._file = parquet.ParquetFile(
            source,
            pre_buffer=False,
            buffer_size=BUFFER_BYTES if self._remote is None else REMOTE_BUFFER_BYTES,
            page_checksum_verification=True,
        )
        told = self._file.metadata
        if sum(told.row_group(number).num_rows for number in range(told.num_row_groups)) != told.num_rows:
            raise CorruptRecordError("its row groups do not have as many rows as it says", self.path)
        return told.num_row_groups, told.num_rows

    def _names(self) -> list[str]:
        """List the columns, and the fields inside them with dots, each behind what holds it."""
        schema = self._file.schema
        paths = [schema.column(number).path.split(".") for number in range(len(schema))]
        prefixes = [".".join(path[:depth]) for path in paths for depth in range(1, len(path) + 1)]
        return list(dict.fromkeys(prefixes))

    def _chosen(self, names: Sequence[str] | None) -> pa.Schema:
        self._columns = names
        schema = self._file.read_row_groups([], columns=names, use_threads=False).schema
        self._row_bytes = number_bytes(schema)
        return schema

    def _from(self, group: int) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        numbers = [number for number in self._kept() if number >= group]
        if self._remote is not None:
            self._remote.expect(column_ranges(self._footer, self._columns, numbers))
        for number in numbers:
            yield number, self._rows(number)

    def _kept(self) -> list[int]:
        """List the row groups in which rows may pass the filter, by their statistics."""
        if self.request.filter is None:
            return list(range(self._file.num_row_groups))
        from pyarrow.dataset import ParquetFileFormat

        fragment = ParquetFileFormat().make_fragment(self._source)
        return [found.id for found in fragment.subset(self.request.filter, schema=self._file.schema_arrow).row_groups]

    def _rows(self, number: int) -> Iterator[pa.RecordBatch]:
        found = self._file.metadata.row_group(number)
        # Not by the columns' own sizes: pyarrow ends the process if what it is told of a column is damaged.
        size = self._row_bytes or found.total_byte_size // max(1, found.num_rows)
        rows = max(1, min(NUMBER_ROWS if self._row_bytes else BLOCK_ROWS, BLOCK_BYTES // max(1, size)))
        missing = found.num_rows
        for batch in self._file.iter_batches(rows, row_groups=[number], columns=self._columns, use_threads=False):
            yield batch
            missing -= batch.num_rows
        if missing:
            raise CorruptRecordError(f"row group {number} does not have as many rows as it says", self.path)
