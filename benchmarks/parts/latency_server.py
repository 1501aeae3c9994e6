"""A web server that answers late: in-memory objects of one size, each first byte after a wait; run as a process.

    python benchmarks/latency_server.py OBJECTS BYTES SECONDS

Prints its port. It knows ranges and ETags, so that object stores' clients can read from it, too. It ends when its
input does.
"""

from __future__ import annotations

import asyncio
import re
import sys

RANGE = re.compile(rb"(?i)\r\nrange: *bytes=(\d+)-(\d*)")


async def main(objects: int, size: int, seconds: float) -> None:
    """Serve until standard input is closed."""
    content = [bytes([65 + number % 26]) * size for number in range(min(objects, 26))]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                number = int(head.split(b" ", 2)[1].rpartition(b"/")[2])
                await asyncio.sleep(seconds)
                body, status, extra = content[number % 26], b"200 OK", b""
                if found := RANGE.search(head):
                    begin, last = int(found[1]), min(int(found[2] or size), size - 1)
                    extra = b"Content-Range: bytes %d-%d/%d\r\n" % (begin, last, size)
                    body, status = memoryview(body)[begin : last + 1], b"206 Partial Content"
                writer.write(
                    b'HTTP/1.1 %b\r\nContent-Length: %d\r\nETag: "%d"\r\nAccept-Ranges: bytes\r\n'
                    b"Last-Modified: Sun, 29 Nov 2026 00:00:00 GMT\r\n%b\r\n" % (status, len(body), number, extra)
                )
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
