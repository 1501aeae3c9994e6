"""How the rows of a BigQuery table are read: the streams of a session in turn, each by a task of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.channel import Buffer, Channel
from aiodata.engine.job import stop_all
from aiodata.engine.position import Origin, locate
from aiodata.engine.workers import all_of
from aiodata.errors import CorruptRecordError
from aiodata.formats.arrow_rows import check_schema, portions, rows_of
from aiodata.sources._bigquery_rows import Rows
from aiodata.sources._bigquery_service import Service, Session
from aiodata.sources._promises import Promise, position

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pyarrow as pa
    from google.cloud.bigquery_storage_v1 import types

    from aiodata.engine.run import Run
    from aiodata.sources._bigquery_service import Reading

__all__ = ["TURN_ROWS", "read_table"]

TURN_ROWS = 1024
"""A turn ends where a stream's row number is a multiple of that: the order is then the same whatever responses the
service makes of the rows."""


async def read_table(run: Run, *, start: Any, reading: Reading) -> AsyncIterator[Block[Any]]:
    """Give the rows of a table.

    What the service answers at last, and what is wrong with the columns, ends the run: a state from before it goes on
    at that very row.

    A position is `[where, count, None]`: the session, the streams that are being read with the next row of each, whose
    turn it is, the streams that come after them, and how many rows followed; see `Promise`.
    """
    promise = Promise(start, (None,))
    (saved,) = promise.where
    service = Service(run, reading)
    turns: _Turns | None = None
    given = 0
    run.guard()
    try:
        session = await service.session() if saved is None else Session.restored(saved["session"])
        turns = _Turns(service, session, saved)
        while (block := await turns.next()) is not None:
            promise.give(block.length or 0)
            yield block
            given += block.length or 0
        promise.check(reading.label)
    except Exception as error:
        place = reading.label if turns is None else turns.place
        locate(error, "bigquery", given, Origin(lambda: None, lambda _: place), 0)
        raise
    finally:
        await all_of([*([] if turns is None else [turns.aclose]), service.aclose])


class _Turns:
    """The streams that are being read, and whose turn it is.

    Args:
        service: The service.
        session: The session that has the streams.
        saved: What `_where` was when a state was saved; None to begin.
    """

    def __init__(self, service: Service, session: Session, saved: dict[str, Any] | None) -> None:
        self._service, self._session = service, session
        self._decoder = _Decoder(service.reading, session)
        if saved is None:
            first = service.reading.reads or len(session.streams)
            opened: list[Any] = [(stream, 0) for stream in session.streams[:first]]
            self._waiting, self._turn = session.streams[first:], 0
        else:
            opened, self._turn = saved["open"], saved["turn"]
            self._waiting = tuple(saved["waiting"])
        self._open = [self._begin(*each) for each in opened]
        service.counters.parallelism = max(service.counters.parallelism, len(opened))

    async def next(self) -> Block[Any] | None:
        """Give the next rows: those of one stream, at most to the end of its turn."""
        while self._open:
            where = (self._turn, tuple((each.name, each.row) for each in self._open), self._waiting)
            stream = self._open[self._turn]
            block = await stream.take()
            if block is not None:
                if stream.row % TURN_ROWS == 0:
                    self._turn = (self._turn + 1) % len(self._open)
                origin = Origin(
                    partial(_position, self._session, where, block.length or 0),
                    partial(_place, stream.rows.label, stream.row - (block.length or 0)),
                )
                return block.moved(origin)
            await stream.aclose()
            if self._waiting:
                self._open[self._turn] = self._begin(self._waiting[0], 0)
                self._waiting = self._waiting[1:]
                self._turn += 1
            else:
                del self._open[self._turn]
            self._turn %= max(1, len(self._open))
        return None

    @property
    def place(self) -> str:
        """The next row in words."""
        if not self._open:
            return self._service.reading.label
        stream = self._open[self._turn]
        return _place(stream.rows.label, stream.row, 0)

    async def aclose(self) -> None:
        """End all requests."""
        for stream in self._open:
            stream.channel.close()
        await stop_all([stream.job for stream in self._open])

    def _begin(self, name: str, row: int) -> _Stream:
        return _Stream(self._service, self._decoder, name, Rows(self._service, self._session, name, row))


def _position(session: Session, where: tuple[int, tuple[tuple[str, int], ...], tuple[str, ...]], count: int) -> Any:
    turn, opened, waiting = where
    saved = {
        "session": session.to_json(),
        "turn": turn,
        "open": [list(each) for each in opened],
        "waiting": list(waiting),
    }
    return position((saved,), count)


def _place(label: str, row: int, offset: int) -> str:
    return f"{label} row {row + offset}"


class _Ahead(Buffer):
    """A piece that waits, and one that the reader has in hand."""

    def free(self, waiting: int) -> int:
        """Give whether there is room for a piece."""
        return 0 if waiting else 1


class _Stream:
    """One stream, read by a task: a response, of which a piece is turned into rows ahead of the reader.

    Args:
        service: The service.
        decoder: Turns responses into rows.
        name: The stream's name in the session.
        rows: Its responses.
    """

    def __init__(self, service: Service, decoder: _Decoder, name: str, rows: Rows) -> None:
        self.name, self.rows = name, rows
        self.row = rows.row
        """The row behind those that have been taken."""
        self._service, self._decoder = service, decoder
        self.channel: Channel = service.run.channel(_Ahead(1, service.counters))
        self.job = service.run.spawn(self._fill, self.channel.end)
        self._hand: Block[Any] | None = None

    async def take(self) -> Block[Any] | None:
        """Give the next rows, at most to the end of a turn; None at the end."""
        while True:
            if self._hand is None:
                self._hand = await self.channel.get()
                if self._hand is None:
                    return None
            block = self._hand.chunk(TURN_ROWS - self.row % TURN_ROWS)
            if block is not None:
                self.row += block.length or 0
                return block
            self._hand = None

    async def aclose(self) -> None:
        """End the task."""
        self.channel.close()
        await self.job.stop()

    async def _fill(self) -> None:
        try:
            while await self._give_response():
                pass
            self.channel.end()
        finally:
            self.rows.close()

    async def _give_response(self) -> bool:
        """Read a response and give its rows; tell whether there was one."""
        run, counters = self._service.run, self._service.counters
        await self.channel.room()
        row = self.rows.row
        response = await self.rows.next()
        if response is None:
            return False
        pieces = await run.in_thread(self._decoder.pieces, response, self.rows.label)
        del response  # what it holds is held by the pieces, too
        for piece in pieces:
            await self.channel.room()
            block = await run.in_thread(self._decoder.rows, piece, self.rows.label, row)
            row += piece.num_rows
            counters.elements += piece.num_rows
            counters.blocks += 1
            counters.bytes_read += piece.nbytes
            self.channel.put(block)
        return True


class _Decoder:
    """What turns the responses of a session into rows; it blocks, and is called in threads.

    Args:
        reading: What is read.
        session: The session, which has the columns.

    Raises:
        StructureError: There is a column that cannot be read.
    """

    def __init__(self, reading: Reading, session: Session) -> None:
        import pyarrow as pa

        self._schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(session.schema))
        _, self._filled = check_schema(self._schema, reading.null_values, reading.label)
        names = self._schema.names
        # In the order that was asked for; the service keeps the table's.
        wanted = [name if name in names else name.partition(".")[0] for name in reading.columns or names]
        self._order = list(dict.fromkeys(wanted))

    def pieces(self, response: types.ReadRowsResponse, label: str) -> list[pa.RecordBatch]:
        """Give the record batch of a response in pieces.

        Raises:
            CorruptRecordError: It is damaged.
        """
        import pyarrow as pa

        data = response.arrow_record_batch.serialized_record_batch
        try:
            batch = pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)
            if batch.num_rows != response.row_count:
                raise CorruptRecordError(f"a response has {batch.num_rows} rows, not {response.row_count}", label)
            return list(portions(batch))
        except (pa.ArrowException, EOFError, OSError) as error:
            raise CorruptRecordError(f"a response cannot be read: {error}", label) from error

    def rows(self, piece: pa.RecordBatch, label: str, row: int) -> Block[Any]:
        """Give the rows of a piece, the first of which has a number in the stream."""
        columns, elements = rows_of(piece.select(self._order), self._filled, partial(_place, label, row))
        origin = Origin(lambda: None)
        if elements is None:
            return Block(origin, columns=columns, length=piece.num_rows)
        return Block(origin, computed=elements)
