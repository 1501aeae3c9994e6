"""HTTP requests of a pipeline: its session, its headers, and what the faults mean that may come."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any

from aiodata.storage.kinds.http_client import fault_of, new_session, send
from aiodata.storage.kinds.http_headers import check_status
from aiodata.storage.transfer.healing import Trouble, idle_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    import aiohttp

    from aiodata.engine.run import Run

__all__ = ["Asking", "Client", "client_of"]

BUFFER_BYTES = 64 * 1024
"""A connection holds up to twice as many bytes, and some in the system's own buffers, before its server has to wait."""


class Asking:
    """How all URLs of a source are asked for.

    Args:
        method: Such as "GET".
        body: What is sent.
        headers: A mapping, or a function that gives one; it may be a coroutine function.
        most: Bytes that a response, line, record or event may have.
    """

    def __init__(
        self, method: str, body: bytes | None, headers: Mapping[str, str] | Callable[[], Any] | None, most: int
    ) -> None:
        self.method, self.body, self.headers, self.most = method, body, headers, most


class Client:
    """What the requests of one run for one source share.

    Args:
        run: The run, which closes the connections at its end.
        asking: How it asks.
    """

    def __init__(self, run: Run, asking: Asking) -> None:
        self.asking = asking
        self.idle_seconds = idle_seconds(run.options.storage)
        self.counters = run.statistics.counters("from_http")
        self._headers: Mapping[str, str] | None = None
        self._asked = 0
        """How often the headers have been asked for."""
        self._lock = asyncio.Lock()
        self.session = new_session("from_http", read_bufsize=BUFFER_BYTES)

    async def open(self, url: str, headers: Mapping[str, str], also: int | None = None) -> aiohttp.ClientResponse:
        """Send a request, and once more with new headers if it is refused; give the answer, to be closed.

        Args:
            url: What to ask for.
            headers: Headers beside those that the user gives, which win.
            also: A status that is taken for an answer, beside those from 200 to 299.

        Raises:
            Trouble: It may be otherwise next time.
            OSError: It will not.
        """
        given, asked = await self._all_headers(0)
        try:
            return await self._request(url, {**headers, **given}, given, also)
        except PermissionError:
            if not callable(self.asking.headers):
                raise
        given, _ = await self._all_headers(asked)
        self.counters.retries += 1
        return await self._request(url, {**headers, **given}, given, also)

    async def _request(
        self, url: str, headers: Mapping[str, str], given: Mapping[str, str], also: int | None
    ) -> aiohttp.ClientResponse:
        self.counters.requests += 1
        try:
            async with asyncio.timeout(self.idle_seconds):
                response = await send(self.session, self.asking.method, url, headers, given, self.asking.body)
        except Exception as error:
            fault = self._fault_of(error, url, "an answer")
        else:
            return self._checked(response, url, also)
        try:
            raise fault
        finally:
            del fault  # else it and this frame, which its traceback holds, would be a cycle

    def _fault_of(self, error: Exception, url: str, what: str) -> Exception:
        """Give what to raise outside of the handler: aiohttp's own error has the URL and the headers."""
        if isinstance(error, TimeoutError):
            return Trouble(f"there was silence for {self.idle_seconds:g} s instead of {what}")
        return fault_of(error.with_traceback(None), url)

    def _checked(self, response: aiohttp.ClientResponse, url: str, also: int | None) -> aiohttp.ClientResponse:
        try:
            if not 200 <= response.status < 300 and response.status != also:
                check_status(response.status, response.headers, response.reason, url)
        except BaseException:
            response.close()
            raise
        return response

    async def piece(self, response: aiohttp.ClientResponse, url: str) -> bytes:
        """Give the next bytes of an answer's body, uncompressed; b"" at its end.

        Raises:
            Trouble: They did not come.
        """
        try:
            async with asyncio.timeout(self.idle_seconds):
                return await response.content.readany()
        except Exception as error:
            fault = self._fault_of(error, url, "a further byte")
        try:
            raise fault
        finally:
            del fault  # as in `_request`

    async def _all_headers(self, known: int) -> tuple[Mapping[str, str], int]:
        """Give the user's headers, and how often they have been asked for.

        Args:
            known: Those of this number, or before, are of no use any more.
        """
        async with self._lock:
            if self._headers is None or self._asked <= known:
                found: Any = self.asking.headers() if callable(self.asking.headers) else self.asking.headers
                found = await found if hasattr(found, "__await__") else found
                self._headers = {str(name): str(value) for name, value in (found or {}).items()}
                self._asked += 1
            return self._headers, self._asked


_clients: weakref.WeakKeyDictionary[Run, dict[Asking, Client]] = weakref.WeakKeyDictionary()


async def client_of(run: Run, asking: Asking) -> Client:
    """Give the client of a run for a source; the run closes it."""
    clients = _clients.setdefault(run, {})
    if asking not in clients:
        clients[asking] = client = Client(run, asking)
        closing: Any = _closing(client)
        run.own(closing)
        await anext(closing)
    return clients[asking]


async def _closing(client: Client) -> AsyncGenerator[None, None]:
    """Close a client's connections when this is closed."""
    try:
        yield
    finally:
        await client.session.close()
