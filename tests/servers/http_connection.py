"""One connection of the HTTP server for tests, and how an answer is sent over it."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from http.client import responses
from typing import TYPE_CHECKING

from tests.servers.http_answers import Answer, How, Request

if TYPE_CHECKING:
    from tests.servers.http import HttpServer


class Connection(asyncio.StreamReaderProtocol):
    """Answers one request after the other; a client that leaves ends at once what was being answered."""

    def __init__(self, server: HttpServer) -> None:
        super().__init__(asyncio.StreamReader(), self._begin)
        self.server = server

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.socket: socket.socket = writer.get_extra_info("socket")
        writer.transport.set_write_buffer_limits(high=0)  # so that `drain` waits for all that was written
        self.serving = asyncio.get_running_loop().create_task(self._serve())
        self.server.connected(self)

    def eof_received(self) -> bool | None:
        self.serving.cancel()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self.serving.cancel()
        super().connection_lost(None)  # nobody asks for the error: what was being answered is over
        self.server.disconnected(self)

    def reset(self) -> None:
        """Forget what is not sent yet, and let the client's next read or write fail."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def _serve(self) -> None:
        try:
            while await self._answer_one():
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone, or an answer has ended as it had to
        except Exception as error:
            self.server.errors.append(error)
        finally:
            self.writer.transport.abort()

    async def _answer_one(self) -> bool:
        """Read a request and answer it; tell whether the connection can have another one."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        request = Request.parse(head)
        if "transfer-encoding" in request.headers:
            raise NotImplementedError("a request whose body comes in chunks")
        if length := int(request.headers.get("content-length", 0)):
            request = Request.parse(head, await self.reader.readexactly(length))
        with self.server.answering(request):
            answer = self.server.answer(request)
            await self.server.wait_for_release()
            body = Body(self, request, answer)
            if answer.ending_at < 0 and answer.ending:
                await body.end(answer.ending)
            elif answer.instead is not None:
                self.writer.write(answer.instead)
                await self.writer.drain()
                await body.end("close")
            elif answer.handler is not None and request.method != "HEAD":
                await answer.handler(body, request)
            else:
                await body(answer.body)
            await body.finish()
        told = answer.chunked or answer.headers.get("content-length", "") is not None  # where the body ends
        return told and "close" not in (request.headers.get("connection"), answer.headers.get("connection"))

    async def send(self, data: bytes | memoryview) -> None:
        """Send it, and wait until the system has taken it."""
        self.writer.write(data)
        await self.writer.drain()

    async def wait_until_received(self) -> None:
        """Wait until all that was sent is with the client's system, where a reset leaves it."""
        if sys.platform == "linux":
            import fcntl
            import termios

            while any(fcntl.ioctl(self.socket.fileno(), termios.TIOCOUTQ, bytes(4))):
                await asyncio.sleep(0.001)


class Body:
    """Sends an answer. A handler calls it with each part of the body; before, it may set `answer.status` and `headers`.

    The faults that are scripted come from here, also those of a body that a handler writes.
    """

    def __init__(self, connection: Connection, request: Request, answer: Answer) -> None:
        self.answer = answer
        self._connection = connection
        self._only_head = request.method == "HEAD" or answer.status in (204, 304)
        self._begun = False
        self._sent = 0

    @property
    def headers(self) -> dict[str, str | None]:
        return self.answer.headers

    async def __call__(self, data: bytes) -> None:
        """Send a part of the body, or what is left of it until the ending that is scripted."""
        await self._begin()
        answer = self.answer
        if self._only_head:
            return
        left = answer.ending_at - self._sent if answer.ending else len(data) + 1
        rest = memoryview(data)[:left]
        for at in range(0, len(rest), answer.piece_bytes):
            piece = rest[at : at + answer.piece_bytes]
            await self._connection.send(b"%x\r\n%b\r\n" % (len(piece), bytes(piece)) if answer.chunked else piece)
            await asyncio.sleep(answer.piece_seconds)
        self._sent += len(rest)
        if answer.ending and self._sent >= answer.ending_at:
            await self.end(answer.ending, answer.pause_seconds)

    async def finish(self) -> None:
        """End the answer as it should, unless another ending is scripted."""
        await self._begin()
        if self.answer.ending:
            await self.end(self.answer.ending, self.answer.pause_seconds)
        if self.answer.chunked and not self._only_head:
            await self._connection.send(b"0\r\n\r\n")

    async def end(self, how: How, pause_seconds: float = 0.0) -> None:
        """End the connection, or say nothing more as long as it is open. It never returns."""
        if how == "silence":
            await asyncio.get_running_loop().create_future()
        await self._connection.wait_until_received()
        await asyncio.sleep(pause_seconds)
        if how == "reset":
            self._connection.reset()
        raise ConnectionAbortedError("as scripted")

    async def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        answer = self.answer
        headers: dict[str, str | None] = {}
        if answer.chunked:
            headers["transfer-encoding"] = "chunked"
        elif answer.status not in (204, 304):
            headers["content-length"] = str(len(answer.body))
        headers |= answer.headers
        lines = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unknown')}"]
        lines += [f"{name.title()}: {value}" for name, value in headers.items() if value is not None]
        await self._connection.send("\r\n".join([*lines, "", ""]).encode("latin-1"))
