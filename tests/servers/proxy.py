"""A TCP proxy on loopback in front of an HTTP server, which breaks connections as a script says."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

__all__ = ["Break", "Proxy", "Say"]

BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class Break:
    """The connection ends, or holds, after so many bytes of the answer, its head included."""

    at: int = 0
    how: Literal["reset", "close", "hold"] = "reset"


@dataclass(frozen=True)
class Say:
    """This answer comes, and the server never sees the request."""

    status: str
    body: str = ""
    headers: str = ""


class Good:
    """Nothing is wrong."""


Fault = Break | Say | Good


class Proxy:
    """Use it as a context manager. It has a thread of its own; its attributes may be read from any.

    Args:
        port: Where the server listens, on loopback.
    """

    def __init__(self, port: int) -> None:
        self.requests: list[str] = []
        """The heads of all requests that came."""
        self.connections = 0
        self.open_connections = 0
        self.sent_bytes = 0
        """What clients got."""
        self.holding = False
        """Whether requests, from now on, get no answer."""
        self.latency_seconds = 0.0
        self.judge: Callable[[str], Fault | None] = lambda head: None
        """What is wrong with a request, by its head, for which no script has an entry."""
        self._server_port = port
        self._scripts: dict[str, deque[Fault]] = {}
        self._changed = threading.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._listening: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Accept connections, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    async def _start(self) -> None:
        self._listening = await asyncio.start_server(self._accepted, "127.0.0.1", self.port, backlog=1024)

    def stop(self) -> None:
        """Reset all connections, and refuse new ones."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()

    async def _stop(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for writer in list(self._writers):
            _reset(writer)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(list(self._tasks))

    def script(self, faults: Sequence[Fault], method: str = "GET") -> None:
        """Tell what happens to the next requests of a kind, one entry each."""
        self._scripts[method] = deque(faults)

    def wait(self, is_so: Callable[[], bool], timeout: float = 10.0) -> None:
        """Wait until something is so, which is looked at when anything changes here."""
        with self._changed:
            if not self._changed.wait_for(is_so, timeout):
                raise TimeoutError(f"{self.open_connections} connections, {len(self.requests)} requests")

    def ranges(self, key: str) -> list[str]:
        """Give the ranges that the requests for a key asked for; "" for all of it."""
        heads = [head for head in self.requests if head.partition(" HTTP")[0].endswith(key) and head.startswith("GET ")]
        found = [[line for line in head.lower().split("\r\n") if line.startswith("range:")] for head in heads]
        return [lines[0].removeprefix("range: bytes=") if lines else "" for lines in found]

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        with self._changed:
            yield
            self._changed.notify_all()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        with self._change():
            self.connections += 1
            self.open_connections += 1
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)
            self._writers.discard(writer)
            with self._change():
                self.open_connections -= 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fault: Fault = Good()
        got = 0
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._server_port)

        async def answers() -> None:
            nonlocal got
            while data := await server_reader.read(BLOCK_BYTES):
                await asyncio.sleep(self.latency_seconds if not got else 0)
                if isinstance(fault, Break) and got + len(data) >= fault.at:
                    writer.write(data[: max(0, fault.at - got)])
                    await writer.drain()
                    if fault.how == "hold":
                        await asyncio.Event().wait()
                    await asyncio.sleep(0.05)  # the client reads what came before the end
                    _reset(writer) if fault.how == "reset" else writer.close()
                    return
                got += len(data)
                self.sent_bytes += len(data)
                writer.write(data)
                await writer.drain()
            writer.close()

        pump = asyncio.ensure_future(answers())
        try:
            while data := await reader.read(BLOCK_BYTES):
                method = data.partition(b" ")[0].decode("latin-1")
                if method in ("GET", "PUT", "HEAD", "POST", "DELETE"):
                    head = data.partition(b"\r\n\r\n")[0].decode("latin-1")
                    script = self._scripts.get(method)
                    fault, got = (script.popleft() if script else self.judge(head) or Good()), 0
                    if self.holding:
                        fault = Break(how="hold")
                    with self._change():
                        self.requests.append(head)
                if isinstance(fault, Say):
                    answer = f"HTTP/1.1 {fault.status}\r\ncontent-length: {len(fault.body)}\r\n{fault.headers}\r\n"
                    writer.write((answer + fault.body).encode())
                    continue
                server_writer.write(data)
                await server_writer.drain()
        finally:
            pump.cancel()
            await asyncio.wait([pump])
            server_writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Have a connection end with a reset."""
    made = writer.get_extra_info("socket")
    if made is not None and made.fileno() >= 0:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
