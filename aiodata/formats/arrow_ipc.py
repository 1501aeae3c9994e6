"""Arrow's own files: the file format (which Feather version 2 is) and the stream format."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from aiodata.errors import CorruptRecordError
from aiodata.formats.arrow_rows import portions
from aiodata.formats.arrow_tables import Table
from aiodata.storage.transfer.expected import forward

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

__all__ = ["ArrowTable"]

FILE_MAGIC = b"ARROW1"
FEATHER_1_MAGIC = b"FEA1"


class ArrowTable(Table):
    """One file in Arrow's file or stream format; its groups are record batches."""

    group_name = "record batch"

    def _begin(self, source: Any) -> object:
        magic = source.read(len(FILE_MAGIC))
        if magic.startswith(FEATHER_1_MAGIC):
            raise CorruptRecordError("this is Feather version 1, which is not Arrow; write it as version 2", self.path)
        self._is_stream = magic != FILE_MAGIC
        self._fields: list[int] | None = None
        self._over = False
        self._schema: pa.Schema = self._reader().schema
        return None if self._is_stream else self._reader().num_record_batches

    def _reader(self) -> Any:
        from pyarrow import ipc

        options = ipc.IpcReadOptions(use_threads=False, included_fields=self._fields)
        self._is_expected = False
        self._source.seek(0)
        return (ipc.open_stream if self._is_stream else ipc.open_file)(self._source, options=options)

    def _names(self) -> list[str]:
        return list(self._schema.names)

    def _chosen(self, names: Sequence[str] | None) -> pa.Schema:
        import pyarrow as pa

        if names is None:
            self._fields = None
            return self._schema
        # By number and in the file's order, as they are read.
        self._fields = [number for number, field in enumerate(self._schema) if field.name in names]
        return pa.schema([self._schema.field(number) for number in self._fields])

    def _from(self, group: int) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        reader = self._reader()
        if self._is_stream and self._remote is not None:
            self._remote.expect(forward(0, self._remote.size))
        if not self._is_stream:
            for number in range(group, reader.num_record_batches):
                yield number, self._rows(reader, number)
            return
        number, self._over = 0, False
        while not self._over:
            rows = self._next_rows(reader)
            if number >= group:
                yield number, rows
            else:
                deque(rows, maxlen=0)  # a stream is read from its start
            number += 1

    def _rows(self, reader: Any, number: int) -> Iterator[pa.RecordBatch]:
        batch = reader.get_batch(number)
        if self._remote is not None and self._fields is None and not self._is_expected:
            # Where record batches begin is not told, but they follow each other. Of chosen columns nothing is known.
            self._remote.expect(forward(self._remote.tell(), self._remote.size))
            self._is_expected = True
        yield from portions(batch)

    def _next_rows(self, reader: Any) -> Iterator[pa.RecordBatch]:
        self._over = True  # also if reading fails: where the next record batch begins is not known then
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        self._over = False
        yield from portions(batch)
