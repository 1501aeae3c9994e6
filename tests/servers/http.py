"""An HTTP server on loopback that keeps the protocol until its script says which fault comes next.

It has a thread and an event loop of its own. Its attributes may be read and set from any thread, at any time; its
methods wait, so a coroutine calls them by `asyncio.to_thread` if its own loop is to go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from tests.servers.http_answers import Answer, Digest, Handler, Plan, Request, answer_file
from tests.servers.http_connection import Connection
from tests.servers.http_faults import Fault


class HttpServer:
    """Serves on a free port of 127.0.0.1. Use it as a context manager, once.

    Keys of `files`, `streams`, `redirects` and scripts are decoded paths without a query, such as "/a b.txt".
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        """What is served; a PUT adds to it."""
        self.streams: dict[str, Handler] = {}
        """Handlers that write an answer's body, chunked, while they run."""
        self.redirects: dict[str, str] = {}
        """Where to look instead: paths of this server or whole URLs."""
        self.needs: dict[str, str] = {}
        """Headers without which the answer is 401, and 403 if they are others."""
        self.ranges = True
        self.etags = True
        self.last_modified: str | None = None
        self.chunked = False
        self.compresses = False
        self.digests: Digest | None = None
        self.latency_seconds = 0.0
        """How long the first byte of each answer takes."""
        self.requests: list[Request] = []
        """All that came, those of before a `stop` too."""
        self.open_connections = 0
        self.requests_at_once = 0
        self.most_requests_at_once = 0
        self.errors: list[Exception] = []
        """Faults of handlers, and of requests that are no HTTP; the first is raised at the end."""
        self._scripts: dict[str, deque[Sequence[Fault]]] = {}
        self._etags: dict[bytes, str] = {}
        self._released = asyncio.Event()
        self._released.set()
        self._changed = threading.Condition()
        self._connections: set[Connection] = set()
        self._accepting: set[asyncio.Task[Any]] = set()
        self._listening: socket.socket | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.SelectorEventLoop()
        self._reserved = _bound(0)  # keeps the port while the server is stopped, so that connections are refused
        self.port: int = self._reserved.getsockname()[1]
        if sys.platform != "linux":
            self._reserved.close()  # elsewhere two sockets cannot have one port
        self._thread = threading.Thread(target=self._run, name="http-server")
        self._thread.start()
        try:
            self.start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._end()
        if self.errors and error is None:
            raise self.errors[0]

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._reserved.close()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Accept connections, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    async def _start(self) -> None:
        self._listening = _bound(self.port)
        self._listening.setblocking(False)
        self._listening.listen(1024)
        self._loop.add_reader(self._listening, self._accept, self._listening)

    def _accept(self, listening: socket.socket) -> None:  # asyncio's own server loses who it is accepting when it stops
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):
            accepted, _ = listening.accept()
            task = self._loop.create_task(self._loop.connect_accepted_socket(lambda: Connection(self), accepted))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    def stop(self) -> None:
        """Do as a killed server does: all connections are reset, new ones refused."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()

    async def _stop(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None
        while self._connections or asyncio.all_tasks() != {asyncio.current_task()}:
            for connection in list(self._connections):
                connection.reset()
            await asyncio.sleep(0.001)

    def script(self, path: str, entries: Sequence[Fault | Sequence[Fault]], method: str = "") -> None:
        """Tell what is wrong with the next answers, one entry each; several faults together are one entry.

        With a `method` only requests of that kind count.
        """
        together = [(entry,) if isinstance(entry, Fault) else tuple(entry) for entry in entries]
        self._scripts[method + path] = deque(together)

    def scripted(self, path: str, method: str = "") -> int:
        """Tell how many entries of a script are left."""
        return len(self._scripts.get(method + path, ()))

    @property
    def holding(self) -> bool:
        """Whether answers wait until this is false again."""
        return not self._released.is_set()

    @holding.setter
    def holding(self, holding: bool) -> None:
        if holding:
            self._released.clear()
        else:
            self._loop.call_soon_threadsafe(self._released.set)

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> None:
        """Wait until so many requests have come, all in all."""
        self._wait(lambda: len(self.requests) >= count, f"{count} requests", timeout)

    def wait_for_requests_at_once(self, count: int, timeout: float = 10.0) -> None:
        """Wait until so many requests have no answer yet, or only a part."""
        self._wait(lambda: self.requests_at_once >= count, f"{count} requests at once", timeout)

    def wait_for_no_connections(self, timeout: float = 10.0) -> None:
        self._wait(lambda: not self.open_connections, "no connection", timeout)

    def _wait(self, is_so: Callable[[], bool], what: str, timeout: float) -> None:
        with self._changed:
            if not self._changed.wait_for(is_so, timeout):
                raise TimeoutError(
                    f"not {what} within {timeout} s: {len(self.requests)} requests have come, {self.requests_at_once} "
                    f"are not answered, {self.open_connections} connections are open"
                )

    def connected(self, connection: Connection) -> None:
        with self._changed:
            self._connections.add(connection)
            self.open_connections = len(self._connections)
            self._changed.notify_all()

    def disconnected(self, connection: Connection) -> None:
        with self._changed:
            self._connections.discard(connection)
            self.open_connections = len(self._connections)
            self._changed.notify_all()

    @contextlib.contextmanager
    def answering(self, request: Request) -> Iterator[None]:
        with self._changed:
            self.requests.append(request)
            self.requests_at_once += 1
            self.most_requests_at_once = max(self.most_requests_at_once, self.requests_at_once)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self.requests_at_once -= 1
                self._changed.notify_all()

    async def wait_for_release(self) -> None:
        await self._released.wait()
        await asyncio.sleep(self.latency_seconds)

    def answer(self, request: Request) -> Answer:
        """Take the next entry of the script, and give the good answer with the faults it has."""
        script = self._scripts.get(request.method + request.file) or self._scripts.get(request.file)
        faults = script.popleft() if script else ()
        plan = Plan(request.range, self.ranges, self.chunked, self.compresses)
        for fault in faults:
            fault.plan(plan)
        if plan.content is not None:
            self.files[request.file] = plan.content
        answer = self._good_answer(request, plan)
        for fault in faults:
            fault.spoil(answer)
        return answer

    def _good_answer(self, request: Request, plan: Plan) -> Answer:
        given = {name: request.headers.get(name.lower()) for name in self.needs}
        if None in given.values():
            return Answer(401, {"www-authenticate": "Bearer"})
        if given != self.needs:
            return Answer(403)
        if request.file in self.redirects:
            return Answer(302, {"location": self.redirects[request.file]})
        if request.file in self.streams:
            return Answer(chunked=True, handler=self.streams[request.file])
        if request.method == "PUT":
            status = 204 if request.file in self.files else 201
            self.files[request.file] = request.body
            return Answer(status, {**self._marks(request.body)})
        if request.file not in self.files:
            return Answer(404)
        if request.method not in ("GET", "HEAD"):
            return Answer(405, {"allow": "GET, HEAD, PUT"})
        content = self.files[request.file]
        answer = answer_file(content, plan, request, self._marks(content), self.digests)
        answer.chunked = plan.chunked
        return answer

    def _marks(self, content: bytes) -> dict[str, str]:
        if self.etags and content not in self._etags:
            self._etags[content] = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        marks = {"etag": self._etags[content]} if self.etags else {}
        return marks | ({"last-modified": self.last_modified} if self.last_modified else {})


def _bound(port: int) -> socket.socket:
    """Give a socket that has a port, or any free one for 0."""
    made = socket.socket(proto=socket.IPPROTO_TCP)  # told, else asyncio leaves out TCP_NODELAY
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
    except BaseException:
        made.close()
        raise
    return made
