"""The Storage Read API of BigQuery: its client, sessions, and how requests are repeated where that may help."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode, b64encode
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import compress, decompress

from aiodata.engine.workers import wait_out
from aiodata.errors import RemoteError, StateError
from aiodata.storage.transfer.healing import Healing, Trouble

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Mapping

    from aiodata.engine.run import Run

__all__ = ["Attempts", "Reading", "Service", "Session"]

SESSION_SECONDS = 600.0
"""How long making a session may take: a large table with a restriction takes minutes."""

SETTLE_SECONDS = 1.0
"""How long closing waits at most for gRPC to take note of what was cancelled; it takes less than a millisecond."""

CUT_SECONDS = 0.05
"""How long it waits where nothing tells."""

RETRIED = {"ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNKNOWN"}
"""What may not happen again. INTERNAL and UNKNOWN are what a stream that was reset looks like; nothing is cancelled
from here where that is an error."""

EXPIRED = {"FAILED_PRECONDITION", "NOT_FOUND"}
"""What reading from a session that there is no more gives."""

logger = logging.getLogger("aiodata")


@dataclass(frozen=True)
class Reading:
    """What is read, and how.

    Args:
        label: The table in short, for errors.
        table: Its name for the service, as all names below.
        parent: The project that pays.
        streams: The most streams that the session may have.
        columns: Names of the columns; None for all.
        restriction: Which rows, in words of SQL; "" for all.
        snapshot: When the table was as it is read; None for now.
        null_values: What stands for nulls, by the component's name.
        reads: Streams to read at once; None for all.
        client: Gives a client; None for one with the standard credentials.
    """

    label: str
    table: str
    parent: str
    streams: int = 1
    columns: tuple[str, ...] | None = None
    restriction: str = ""
    snapshot: dt.datetime | None = None
    null_values: Mapping[str, Any] = field(default_factory=dict)
    reads: int | None = None
    client: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Session:
    """What the service has made of a table to be read: the same rows in the same order, for some hours.

    Args:
        name: Its name.
        schema: The columns, as Arrow writes them.
        streams: Names of its streams, without that of the session.
        is_restored: Whether it is that of a saved state.
    """

    name: str
    schema: bytes
    streams: tuple[str, ...]
    is_restored: bool = False

    def to_json(self) -> list[str]:
        """Give its name and schema for a state."""
        return [self.name, b64encode(compress(self.schema)).decode()]

    @classmethod
    def restored(cls, saved: list[str]) -> Session:
        """Give the session of a state."""
        name, schema = saved
        return cls(name, decompress(b64decode(schema)), (), is_restored=True)

    def full_name(self, stream: str) -> str:
        """Give a stream's name for the service."""
        return stream if "/" in stream else f"{self.name}/streams/{stream}"


class Service:
    """The service as one stage of a run uses it.

    Args:
        run: The run.
        reading: What is read.
    """

    def __init__(self, run: Run, reading: Reading) -> None:
        self.run = run
        self.reading = reading
        self.counters = run.statistics.counters("bigquery")
        self._client: Any = None
        self._opening = asyncio.Lock()
        self._made: list[Any] = []
        self._calls: set[asyncio.Task[Any]] = set()
        self._was_cut = False
        """Whether a request was cancelled of whose end nothing tells."""

    async def client(self) -> Any:
        """Give the client that all requests share; made when it is first needed."""
        async with self._opening:
            if self._client is None:
                self._client = await self._new_client()
                self._made.append(self._client)
            return self._client

    async def _new_client(self) -> Any:
        from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadAsyncClient

        if self.reading.client is None:
            # In a thread: it reads files, and may ask the machine that it runs on.
            return BigQueryReadAsyncClient(credentials=await self.run.in_thread(_standard_credentials))
        client = self.reading.client()
        if not isinstance(client, BigQueryReadAsyncClient):
            raise TypeError(f"BigQueryDataset: client must give a BigQueryReadAsyncClient, not {type(client).__name__}")
        return client

    def renew(self, client: Any) -> None:
        """Have the next request use another client than this one, which is closed with the others."""
        if self._client is client:
            self._client = None

    async def session(self) -> Session:
        """Make a session.

        Raises:
            RemoteError: It cannot be made.
        """
        from google.api_core.exceptions import GoogleAPICallError
        from google.cloud.bigquery_storage_v1 import types

        reading = self.reading
        options = types.ReadSession.TableReadOptions(
            selected_fields=reading.columns or (), row_restriction=reading.restriction
        )
        wanted = types.ReadSession(table=reading.table, data_format=types.DataFormat.ARROW, read_options=options)
        if reading.snapshot is not None:
            wanted.table_modifiers.snapshot_time = reading.snapshot
        request = types.CreateReadSessionRequest(
            parent=reading.parent, read_session=wanted, max_stream_count=reading.streams
        )
        silence = self.run.options.storage.idle_seconds
        attempts = Attempts(self, reading.label)
        while True:
            client = await self.client()
            self.counters.requests += 1
            try:
                made = await client.create_read_session(
                    request, retry=None, timeout=SESSION_SECONDS if silence is None else silence
                )
            except GoogleAPICallError as error:
                await attempts.after(error, client)
            except asyncio.CancelledError:
                self._was_cut = True
                raise
            else:
                names = tuple(stream.name.removeprefix(f"{made.name}/streams/") for stream in made.streams)
                return Session(made.name, made.arrow_schema.serialized_schema, names)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Begin a call, whose end `aclose` waits for.

        A call that is cancelled ends a moment later for gRPC, which tells the loop. If that has been closed by then, it
        is an error in any other loop of the process that uses gRPC, with which all share one queue of events. gRPC
        gives nothing to wait for but a task of its own, which ends last; for a session's request it has not even that.
        """
        before = asyncio.all_tasks()
        try:
            yield
        finally:
            for task in asyncio.all_tasks() - before:
                if "_handle_status_once_received" in getattr(task.get_coro(), "__qualname__", ""):
                    self._calls.add(task)
                    task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        self._was_cut |= task.cancelled()  # by a loop that is being shut down

    async def aclose(self) -> None:
        """Close all connections, even while the task is being cancelled."""
        await wait_out(asyncio.get_running_loop().create_task(self._close()))

    async def _close(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls, timeout=SETTLE_SECONDS)
        if self._was_cut:
            await asyncio.sleep(CUT_SECONDS)
        while self._made:
            await self._made.pop().transport.close()


class Attempts:
    """The attempts at one thing that the service is asked for.

    Args:
        service: The service.
        label: What it is, for errors.
        expires: Whether that is of a session of a saved state.
    """

    def __init__(self, service: Service, label: str, expires: bool = False) -> None:
        self._service = service
        self._label = label
        self._expires = expires
        self._healing = Healing(label, service.run.options.storage, service.counters, "row")
        self._renewed = False

    def progress(self) -> None:
        """Note that something has come."""
        self._healing.progress()
        self._renewed = False

    async def after(self, error: Any, client: Any, row: int | None = None) -> None:
        """Wait until a request that has failed may be repeated.

        Args:
            error: What the client has raised, or a `Trouble`.
            client: The client that has made the request.
            row: The first row that is missing.

        Raises:
            RemoteError: It has failed for good.
            StateError: The session has expired.
        """
        if isinstance(error, Trouble):
            await self._healing.wait(error, row)
            return
        code = "" if error.grpc_status_code is None else error.grpc_status_code.name
        cause = f"{code}: {error.message}"
        if code in RETRIED:
            await self._healing.wait(Trouble(cause, _wanted_wait(error)), row)
        elif code == "UNAUTHENTICATED" and not self._renewed:
            self._renewed = True
            self._service.renew(client)
            self._service.counters.retries += 1
            where = "" if row is None else f", row {row}"
            logger.warning("%s%s: %s; attempt 2 of 2 follows with new credentials", self._label, where, cause)
        elif self._expires and code in EXPIRED:
            raise StateError(
                f"{self._label}: the session of the saved state has expired, some hours after it was made: {cause}"
            ) from error
        else:
            raise RemoteError(cause, self._label, row, 1 + self._renewed, "row") from error


def _standard_credentials() -> Any:
    import google.auth
    from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcAsyncIOTransport

    credentials, _ = google.auth.default(scopes=BigQueryReadGrpcAsyncIOTransport.AUTH_SCOPES)
    return credentials


def _wanted_wait(error: Any) -> float | None:
    """Give how long the service asks to wait, if it says so."""
    waits = [detail.retry_delay for detail in error.details if hasattr(detail, "retry_delay")]
    return waits[0].seconds + waits[0].nanos / 1e9 if waits else None
