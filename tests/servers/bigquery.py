"""BigQuery's Storage Read API on loopback, by the client's own messages: tables in memory, and faults by script.

The server has a thread and an event loop of its own. Its attributes may be read and set from any thread; its methods
wait. Row restrictions are comparisons (`=`, `!=`, `<>`, `<`, `<=`, `>`, `>=`) of a field with an integer, a float or a
text in single quotes, and `IS NULL` and `IS NOT NULL`, joined by `AND`; others are refused.
"""

from __future__ import annotations

import asyncio
import operator
import re
import threading
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import reduce
from types import TracebackType
from typing import Any, Self

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadAsyncClient
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcAsyncIOTransport
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from pyarrow import compute

SERVICE = "google.cloud.bigquery.storage.v1.BigQueryRead"
SESSION = "create"
"""The name of the script for making sessions; those for reading are named by streams: "s0", "s1", ..."""

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CONDITION = re.compile(r"([\w.]+)\s*(?:(=|!=|<>|<=|>=|<|>)\s*('[^']*'|-?\d+(?:\.\d+)?)|(IS (?:NOT )?NULL))")


@dataclass(frozen=True)
class Fails:
    """The call ends with this status, after so many responses."""

    code: str
    after: int = 0
    message: str = "as scripted"
    retry_seconds: float | None = None
    """How long the client is asked to wait."""


@dataclass(frozen=True)
class Stalls:
    """Nothing comes after so many responses, until the client goes."""

    after: int = 0


class Fine:
    """Nothing is wrong with this call."""


class BigQueryServer:
    """Serves tables. Use it as a context manager.

    Args:
        tables: By "project.dataset.table".
        response_rows: Rows in a response.
        most_streams: The most streams of a session; each has about as many rows, before any restriction.
    """

    def __init__(self, tables: dict[str, pa.Table], response_rows: int = 5, most_streams: int = 4) -> None:
        self.tables = tables
        self.response_rows = response_rows
        self.most_streams = most_streams
        self.is_expired = False
        """Whether all sessions that there are have expired."""
        self.sessions: list[types.CreateReadSessionRequest] = []
        """All sessions that were asked for."""
        self.reads: list[tuple[str, int]] = []
        """All calls that read rows: the stream and the first row."""
        self.clients = 0
        """Clients that have been made."""
        self.reading = 0
        """Calls that are reading rows now."""
        self.sent = 0
        """Responses that have been sent."""
        self.damage: Callable[[bytes], bytes] = bytes
        """What is done to the record batches."""
        self._scripts: defaultdict[str, deque[Any]] = defaultdict(deque)
        self._streams: dict[str, pa.Table] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bigquery-server")
        self._server: Any = None
        self._port = 0

    def script(self, call: str, *faults: Fails | Stalls | Fine) -> None:
        """Say what happens to the next calls: of `SESSION`, or of a stream."""
        self._scripts[call].extend(faults)

    def client(self) -> BigQueryReadAsyncClient:
        """Make a client; to be called on the loop that will use it."""
        self.clients += 1
        # Else a client that has lost its server would wait a second before it looks again.
        options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 200)]
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{self._port}", options=options)
        return BigQueryReadAsyncClient(transport=BigQueryReadGrpcAsyncIOTransport(channel=channel))

    # Its life

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        self._wait(self._settle())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        """Begin to serve, on the same port as before."""
        self._wait(self._start())

    def stop(self) -> None:
        """Break all connections, and serve no more."""
        if self._server is not None:
            self._wait(self._server.stop(None))
            self._server = None

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _settle(self) -> None:
        """Wait until gRPC has no more to tell this loop."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        await self._loop.shutdown_asyncgens()

    async def _start(self) -> None:
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        handlers = {
            "CreateReadSession": grpc.unary_unary_rpc_method_handler(
                self._create, types.CreateReadSessionRequest.deserialize, types.ReadSession.serialize
            ),
            "ReadRows": grpc.unary_stream_rpc_method_handler(
                self._read, types.ReadRowsRequest.deserialize, types.ReadRowsResponse.serialize
            ),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self._port = server.add_insecure_port(f"127.0.0.1:{self._port}")
        await server.start()
        self._server = server

    # Its calls

    async def _create(self, request: types.CreateReadSessionRequest, context: Any) -> types.ReadSession:
        self.sessions.append(request)
        number = len(self.sessions)
        fault = self._next(SESSION)
        if isinstance(fault, Stalls):
            await asyncio.get_running_loop().create_future()
        if isinstance(fault, Fails):
            await _abort(context, fault)
        asked = request.read_session
        project, dataset, name = asked.table.split("/")[1::2]
        table = self.tables.get(f"{project}.{dataset}.{name}")
        if table is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"Not found: Table {project}:{dataset}.{name}")
        assert table is not None
        try:
            condition = restriction_of(asked.read_options.row_restriction)
            chosen = selected(table, list(asked.read_options.selected_fields))
        except (ValueError, KeyError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"request failed: {error}")
        session = f"{request.parent}/locations/us/sessions/session-{number}"
        count = min(request.max_stream_count or 1000, self.most_streams, table.num_rows)
        streams = []
        for each in range(count):
            begin, end = (table.num_rows * edge // count for edge in (each, each + 1))
            part = chosen.slice(begin, end - begin)
            if condition is not None:
                counted = table.slice(begin, end - begin).append_column("_", pa.array(range(end - begin), pa.int64()))
                part = part.take(counted.filter(condition).column("_"))
            streams.append(types.ReadStream(name=f"{session}/streams/s{each}"))
            self._streams[streams[-1].name] = part.combine_chunks()
        schema = types.ArrowSchema(serialized_schema=chosen.schema.serialize().to_pybytes())
        return types.ReadSession(name=session, arrow_schema=schema, streams=streams)

    async def _read(self, request: types.ReadRowsRequest, context: Any) -> AsyncIterator[types.ReadRowsResponse]:
        name = request.read_stream.rpartition("/")[2]
        self.reads.append((name, request.offset))
        if self.is_expired:
            message = f"there was an error operating on '{request.read_stream}': session expired at 2026-01-01T00:00:00"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, message)
        fault = self._next(name)
        self.reading += 1
        try:
            rows = self._streams[request.read_stream].slice(request.offset)
            sent = 0
            while True:
                if not isinstance(fault, Fine) and sent == fault.after:
                    if isinstance(fault, Fails):
                        await _abort(context, fault)
                    await asyncio.get_running_loop().create_future()
                if not rows.num_rows:
                    return
                batch = rows.slice(0, self.response_rows).combine_chunks().to_batches()[0]
                rows = rows.slice(batch.num_rows)
                data = types.ArrowRecordBatch(serialized_record_batch=self.damage(batch.serialize().to_pybytes()))
                yield types.ReadRowsResponse(arrow_record_batch=data, row_count=batch.num_rows)
                sent += 1
                self.sent += 1
                if sent == 1:
                    yield types.ReadRowsResponse(row_count=0)  # which may come at any time, and says nothing
        finally:
            self.reading -= 1

    def _next(self, call: str) -> Any:
        script = self._scripts[call]
        return script.popleft() if script else Fine()


async def _abort(context: Any, fault: Fails) -> None:
    code = grpc.StatusCode[fault.code]
    details: tuple[tuple[str, bytes], ...] = ()
    if fault.retry_seconds is not None:
        seconds, rest = divmod(fault.retry_seconds, 1)
        delay = duration_pb2.Duration(seconds=int(seconds), nanos=int(rest * 1e9))
        packed = any_pb2.Any()
        packed.Pack(error_details_pb2.RetryInfo(retry_delay=delay))
        status = status_pb2.Status(code=code.value[0], message=fault.message, details=[packed])
        details = (("grpc-status-details-bin", status.SerializeToString()),)
    await context.abort(code, fault.message, details)


def restriction_of(text: str) -> Any:
    """Give a row restriction as pyarrow's expression; None for none.

    Raises:
        ValueError: It is none that is understood here.
    """
    if not text:
        return None
    conditions = []
    for part in text.split(" AND "):
        found = CONDITION.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"row_restriction is not understood: {part}")
        name, comparison, literal, null = found.groups()
        field = compute.field(*name.split("."))
        if null:
            conditions.append(field.is_null() if null == "IS NULL" else field.is_valid())
        else:
            value = literal[1:-1] if literal[0] == "'" else float(literal) if "." in literal else int(literal)
            conditions.append(COMPARISONS[comparison](field, value))
    return reduce(operator.and_, conditions)


def selected(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Choose columns, and fields of structs by their full names; the order is the table's.

    Raises:
        KeyError: There is no such field.
    """
    if not names:
        return table
    arrays = {name: table.column(name).combine_chunks() for name in table.column_names}
    unknown = [name for name in names if name.partition(".")[0] not in arrays]
    if unknown:
        raise KeyError(f"no such field: {unknown[0]}")
    wanted = {name: [rest for rest in names if rest == name or rest.startswith(name + ".")] for name in arrays}
    return pa.table({name: _part(arrays[name], name, rest) for name, rest in wanted.items() if rest})


def _part(array: Any, name: str, wanted: Sequence[str]) -> Any:
    if name in wanted:
        return array
    fields = {}
    for field in array.type if pa.types.is_struct(array.type) else ():
        inner = f"{name}.{field.name}"
        rest = [each for each in wanted if each == inner or each.startswith(inner + ".")]
        if rest:
            fields[field.name] = _part(array.field(field.name), inner, rest)
    if not fields:
        raise KeyError(f"no such field: {wanted[0]}")
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=array.is_null())
