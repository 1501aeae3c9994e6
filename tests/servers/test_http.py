"""The HTTP server for tests keeps the protocol, and breaks it exactly as its script says."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import hashlib
import http.client
import socket
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.servers.http import HttpServer
from tests.servers.http_faults import (
    Chunked,
    CloseBefore,
    Compressed,
    CutAt,
    Fault,
    Garbage,
    Headers,
    IgnoreRange,
    Normal,
    OtherRange,
    Replace,
    ResetAt,
    ResetBefore,
    SilentAt,
    SilentBefore,
    Slowly,
    Status,
    WrongByteAt,
)

if TYPE_CHECKING:
    from tests.servers.http_answers import Request
    from tests.servers.http_connection import Body

CONTENT = bytes(range(256)) * 10
ETAG = f'"{hashlib.sha256(CONTENT).hexdigest()[:16]}"'
LONG_SECONDS = 20.0


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Wire(NamedTuple):
    """What came over a plain connection, and what ended it."""

    data: bytes
    end: str

    @property
    def body(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[2]


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as made:
        made.files["/a"] = CONTENT
        yield made


def ask(server: HttpServer, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
    """Ask with the standard library's client, by a connection of its own."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG_SECONDS)) as connection:
        return ask_by(connection, path, method, body, **headers)


def ask_by(
    connection: http.client.HTTPConnection, path: str, method: str = "GET", body: bytes | None = None, /, **headers: str
) -> Reply:
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


@contextlib.contextmanager
def asked(server: HttpServer, path: str = "/a") -> Iterator[socket.socket]:
    """Give a plain connection by which a request has been sent."""
    with socket.create_connection(("127.0.0.1", server.port), LONG_SECONDS) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        yield connection


def read_all(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def wire(server: HttpServer, path: str = "/a", silent_after: float = LONG_SECONDS, read_after: float = 0) -> Wire:
    """Read all that comes over a plain connection after one request."""
    data = b""
    with asked(server, path) as connection:
        connection.settimeout(silent_after)
        time.sleep(read_after)
        try:
            while part := connection.recv(1 << 20):
                data += part
            return Wire(data, "closed")
        except ConnectionResetError:
            return Wire(data, "reset")
        except TimeoutError:
            return Wire(data, "silent")


# What a good server does


def test_a_file(server: HttpServer) -> None:
    status, headers, body = ask(server, "/a")
    assert (status, body) == (200, CONTENT)
    assert headers == {
        "content-length": "2560",
        "etag": ETAG,
        "content-type": "application/octet-stream",
        "accept-ranges": "bytes",
    }


@pytest.mark.parametrize(
    ("asked_for", "status", "told", "body"),
    [
        ("bytes=0-0", 206, "bytes 0-0/2560", CONTENT[:1]),
        ("bytes=5-9", 206, "bytes 5-9/2560", CONTENT[5:10]),
        ("bytes=2550-", 206, "bytes 2550-2559/2560", CONTENT[2550:]),
        ("bytes=2550-9999", 206, "bytes 2550-2559/2560", CONTENT[2550:]),
        ("bytes=-5", 206, "bytes 2555-2559/2560", CONTENT[-5:]),
        ("bytes=-9999", 206, "bytes 0-2559/2560", CONTENT),
        ("bytes=2560-", 416, "bytes */2560", b""),
        ("lines=5-9", 200, None, CONTENT),
        ("bytes=-", 200, None, CONTENT),
    ],
)
def test_a_range(server: HttpServer, asked_for: str, status: int, told: str | None, body: bytes) -> None:
    answer = ask(server, "/a", range=asked_for)
    assert (answer.status, answer.headers.get("content-range"), answer.body) == (status, told, body)
    assert answer.headers["content-length"] == str(len(body))


def test_an_empty_file_has_no_range(server: HttpServer) -> None:
    server.files["/empty"] = b""
    assert ask(server, "/empty")[::2] == (200, b"")
    assert ask(server, "/empty", range="bytes=0-").headers["content-range"] == "bytes */0"


def test_a_head_has_the_length_and_no_body(server: HttpServer) -> None:
    status, headers, body = ask(server, "/a", "HEAD")
    assert (status, headers["content-length"], headers["etag"], body) == (200, "2560", ETAG, b"")
    assert ask(server, "/a", "HEAD", range="bytes=0-9").headers["content-range"] == "bytes 0-9/2560"


def test_one_connection_serves_many_requests(server: HttpServer) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        for method in ("GET", "HEAD", "GET", "PUT", "GET"):
            ask_by(connection, "/a", method, b"new" if method == "PUT" else None)
            assert server.open_connections == 1
        assert ask_by(connection, "/a").body == b"new"
    server.wait_for_no_connections()
    assert (server.requests_at_once, server.most_requests_at_once) == (0, 1)


def test_a_connection_is_closed_if_asked_for(server: HttpServer) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        assert ask_by(connection, "/a", connection="close").body == CONTENT
        server.wait_for_no_connections()


def test_conditions_on_the_version(server: HttpServer) -> None:
    server.last_modified = "Mon, 30 Nov 2026 07:00:00 GMT"
    assert ask(server, "/a").headers["last-modified"] == server.last_modified
    for same in (ETAG, server.last_modified):
        assert ask(server, "/a", range="bytes=1-2", if_range=same).status == 206
    for other in ('"other"', "W/" + ETAG, "Mon, 30 Nov 2026 06:00:00 GMT"):
        assert ask(server, "/a", range="bytes=1-2", if_range=other)[::2] == (200, CONTENT)
    assert ask(server, "/a", if_match=ETAG).status == 200
    assert ask(server, "/a", if_match="*").status == 200
    assert ask(server, "/a", if_match='"other"').status == 412
    assert ask(server, "/a", if_unmodified_since="Mon, 30 Nov 2026 06:00:00 GMT").status == 412


def test_a_put_stores_a_file(server: HttpServer) -> None:
    assert ask(server, "/new", "PUT", b"x" * 300_000).status == 201
    assert server.files["/new"] == b"x" * 300_000
    assert ask(server, "/new", "PUT", b"").status == 204
    assert ask(server, "/new")[::2] == (200, b"")


def test_what_is_not_there(server: HttpServer) -> None:
    assert ask(server, "/b").status == 404
    assert ask(server, "/a", "DELETE").status == 405


def test_paths_are_decoded_and_recorded_as_they_came(server: HttpServer) -> None:
    server.files["/a b.txt"] = b"found"
    assert ask(server, "/a%20b.txt?signed=x%2Fy", range="bytes=1-", x_extra="One").body == b"ound"
    request = server.requests[-1]
    assert (request.method, request.path, request.file) == ("GET", "/a%20b.txt?signed=x%2Fy", "/a b.txt")
    assert (request.range, request.headers["x-extra"]) == ((1, None), "One")
    assert abs(request.time - time.monotonic()) < LONG_SECONDS


def test_redirects(server: HttpServer) -> None:
    server.redirects["/b"] = "/a"
    answer = ask(server, "/b")
    assert (answer.status, answer.headers["location"], answer.body) == (302, "/a", b"")


def test_needed_headers_may_change(server: HttpServer) -> None:
    server.needs = {"Authorization": "Bearer one"}
    assert ask(server, "/a").status == 401
    assert ask(server, "/a", authorization="Bearer one").status == 200
    server.needs["Authorization"] = "Bearer two"
    assert ask(server, "/a", authorization="Bearer one").status == 403


# Other habits


def test_without_ranges(server: HttpServer) -> None:
    server.ranges = False
    status, headers, body = ask(server, "/a", range="bytes=5-9")
    assert (status, body, "accept-ranges" in headers) == (200, CONTENT, False)


def test_without_etags(server: HttpServer) -> None:
    server.etags = False
    assert "etag" not in ask(server, "/a").headers
    assert "etag" not in ask(server, "/a", "PUT", b"").headers


def test_in_chunks(server: HttpServer) -> None:
    server.chunked = True
    server.files["/long"] = CONTENT * 300
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        assert ask_by(connection, "/a", "HEAD").body == b""
        for path in ("/a", "/long"):
            _, headers, body = ask_by(connection, path)
            assert (body, headers["transfer-encoding"], "content-length" in headers) == (
                server.files[path],
                "chunked",
                False,
            )
        assert ask_by(connection, "/a", range="bytes=5-9").body == CONTENT[5:10]


def test_compressed(server: HttpServer) -> None:
    server.compresses = True
    status, headers, body = ask(server, "/a", range="bytes=5-9", accept_encoding="identity")
    assert (status, headers["content-encoding"], headers["etag"]) == (200, "gzip", "W/" + ETAG)
    assert gzip.decompress(body) == CONTENT


def test_ranges_of_what_is_compressed(server: HttpServer) -> None:
    server.script("/a", [[Compressed(ranges=True)], [Compressed(ranges=True)]])
    whole = ask(server, "/a").body
    status, headers, body = ask(server, "/a", range="bytes=5-9")
    assert (status, headers["content-range"], body) == (206, f"bytes 5-9/{len(whole)}", whole[5:10])
    assert gzip.decompress(whole) == CONTENT


def digest(data: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def test_digests(server: HttpServer) -> None:
    server.digests = "content-digest"
    assert ask(server, "/a").headers["content-digest"] == digest(CONTENT)
    assert ask(server, "/a", range="bytes=5-9").headers["content-digest"] == digest(CONTENT[5:10])
    server.digests = "repr-digest"
    assert ask(server, "/a", range="bytes=5-9").headers["repr-digest"] == digest(CONTENT)
    server.digests = "content-md5"
    assert ask(server, "/a").headers["content-md5"] == base64.b64encode(hashlib.md5(CONTENT).digest()).decode()
    assert "content-md5" not in ask(server, "/a", range="bytes=5-9").headers


def test_the_object_stores_hash(server: HttpServer) -> None:
    pytest.importorskip("google_crc32c")
    server.files["/known"], server.digests = b"123456789", "x-goog-hash"  # the check value of CRC-32C is E3069283
    expected = f"crc32c={base64.b64encode(bytes.fromhex('e3069283')).decode()},md5=JfnnlDI7RTiF9RgfG2JNCw=="
    assert ask(server, "/known", range="bytes=5-6").headers["x-goog-hash"] == expected


def test_latency(server: HttpServer) -> None:
    server.latency_seconds = 0.2
    start = time.monotonic()
    assert ask(server, "/a").status == 200
    assert time.monotonic() - start >= 0.2


# Faults


def test_a_script_is_followed_in_order_and_then_ends(server: HttpServer) -> None:
    server.files["/b"] = b"b"
    server.script("/a", [Status(503), Status(429, {"Retry-After": "1"}, b"slow down"), Normal(), Status(599)])
    assert ask(server, "/a")[::2] == (503, b"")
    assert ask(server, "/b")[::2] == (200, b"b")
    assert server.scripted("/a") == 3
    assert ask(server, "/a") == (429, {"content-length": "9", "retry-after": "1"}, b"slow down")
    assert [ask(server, "/a").status for _ in range(3)] == [200, 599, 200]
    assert (server.scripted("/a"), len(server.requests)) == (0, 6)


def test_a_script_for_one_method(server: HttpServer) -> None:
    server.script("/a", [Status(503)], method="GET")
    assert [ask(server, "/a", method).status for method in ("HEAD", "GET", "GET")] == [200, 503, 200]


def test_changed_headers(server: HttpServer) -> None:
    server.script("/a", [Headers({"ETag": '"x"', "Accept-Ranges": None}), Headers({"Content-Length": None})])
    headers = ask(server, "/a").headers
    assert (headers["etag"], "accept-ranges" in headers) == ('"x"', False)
    assert wire(server).end == "closed"


@pytest.mark.parametrize(
    ("fault", "end"), [(ResetBefore(), "reset"), (CloseBefore(), "closed"), (SilentBefore(), "silent")]
)
def test_no_answer(server: HttpServer, fault: Fault, end: str) -> None:
    server.script("/a", [fault])
    assert wire(server, silent_after=0.1) == (b"", end)
    server.wait_for_no_connections()
    assert ask(server, "/a").body == CONTENT


@pytest.mark.parametrize("at", [0, 1, 100, 2559, 2560])
@pytest.mark.parametrize(("kind", "end"), [(ResetAt, "reset"), (CutAt, "closed"), (SilentAt, "silent")])
def test_a_short_body(server: HttpServer, kind: type[ResetAt], end: str, at: int) -> None:
    server.script("/a", [kind(at)])
    got = wire(server, silent_after=0.2)
    assert (got.body, got.end) == (CONTENT[:at], end)
    assert b"Content-Length: 2560\r\n" in got.data
    server.wait_for_no_connections()


def test_a_long_body_is_cut_in_the_right_place(server: HttpServer) -> None:
    server.files["/long"] = CONTENT * 2000
    for kind in (ResetAt, CutAt):
        server.script("/long", [kind(3_000_001)])
        assert wire(server, "/long").body == (CONTENT * 2000)[:3_000_001]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what the client's system has")
def test_a_reset_waits_for_a_client_that_reads_late(server: HttpServer) -> None:
    server.files["/long"] = CONTENT * 1000
    server.script("/long", [ResetAt(1_000_001, pause_seconds=0)])
    assert wire(server, "/long", read_after=0.2).body == (CONTENT * 1000)[:1_000_001]


def test_a_body_in_chunks_without_its_last_one(server: HttpServer) -> None:
    server.script("/a", [[Chunked(), CutAt(100)], [Chunked(), CutAt(9999)], [Chunked()]])
    assert wire(server).body == b"64\r\n" + CONTENT[:100] + b"\r\n"
    assert wire(server).body == b"a00\r\n" + CONTENT + b"\r\n"
    assert ask(server, "/a").body == CONTENT


def test_a_wrong_byte(server: HttpServer) -> None:
    server.script("/a", [WrongByteAt(7)] * 3)
    assert ask(server, "/a").body == CONTENT[:7] + b"\xf8" + CONTENT[8:]
    assert ask(server, "/a", range="bytes=5-9").body == b"\x05\x06\xf8\x08\x09"
    assert ask(server, "/a", range="bytes=8-9").body == b"\x08\x09"


def test_a_digest_is_of_the_right_bytes_even_if_others_come(server: HttpServer) -> None:
    server.digests = "content-digest"
    server.script("/a", [WrongByteAt(7)])
    assert ask(server, "/a").headers["content-digest"] == digest(CONTENT)


def test_another_range(server: HttpServer) -> None:
    server.script("/a", [IgnoreRange(), OtherRange(10, 12)])
    assert ask(server, "/a", range="bytes=5-9")[::2] == (200, CONTENT)
    status, headers, body = ask(server, "/a", range="bytes=5-9")
    assert (status, headers["content-range"], body) == (206, "bytes 10-12/2560", CONTENT[10:13])


def test_a_replaced_file(server: HttpServer) -> None:
    server.script("/a", [Normal(), Replace(b"another")])
    assert ask(server, "/a", range="bytes=0-3", if_match=ETAG).body == CONTENT[:4]
    assert ask(server, "/a", range="bytes=0-3", if_match=ETAG).status == 412
    assert ask(server, "/a", range="bytes=4-", if_range=ETAG)[::2] == (200, b"another")


def test_slow_but_steady(server: HttpServer) -> None:
    server.script("/a", [[Slowly(512, 0.05)], [Slowly(512, 0.001), ResetAt(700)]])
    start = time.monotonic()
    assert ask(server, "/a").body == CONTENT
    assert time.monotonic() - start >= 0.2
    assert wire(server).body == CONTENT[:700]


def test_garbage(server: HttpServer) -> None:
    server.script("/a", [Garbage(b"SSH-2.0-x\r\n")])
    assert wire(server) == (b"SSH-2.0-x\r\n", "closed")


# Streams


async def events(write: Body, request: Request) -> None:
    write.headers["content-type"] = "text/event-stream"
    for number in range(3):
        await write(b"data: %d\n\n" % number)


def test_a_stream(server: HttpServer) -> None:
    server.streams["/events"] = events
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        for _ in range(2):
            _, headers, body = ask_by(connection, "/events")
            assert (headers["content-type"], body) == ("text/event-stream", b"data: 0\n\ndata: 1\n\ndata: 2\n\n")


def test_faults_of_a_stream(server: HttpServer) -> None:
    server.streams["/events"] = events
    server.script("/events", [Status(503), CutAt(11), [Slowly(4, 0)], ResetBefore()])
    assert ask(server, "/events").status == 503
    assert wire(server, "/events").body == b"9\r\ndata: 0\n\n\r\n2\r\nda\r\n"
    assert ask(server, "/events").body.startswith(b"data: 0\n\n")
    assert wire(server, "/events") == (b"", "reset")


def test_a_stream_ends_itself(server: HttpServer) -> None:
    async def broken(write: Body, request: Request) -> None:
        await write(b"one\n")
        await write.end("reset")

    async def refused(write: Body, request: Request) -> None:
        write.answer.status = 429

    server.streams |= {"/broken": broken, "/refused": refused}
    assert wire(server, "/broken").body == b"4\r\none\n\r\n"
    assert ask(server, "/refused")[::2] == (429, b"")


def test_a_stream_ends_when_its_client_leaves(server: HttpServer) -> None:
    left: list[str] = []

    async def endless(write: Body, request: Request) -> None:
        try:
            while True:
                await write(b"x")
                await asyncio.sleep(0.01)
        finally:
            left.append("left")

    server.streams["/endless"] = endless
    with asked(server, "/endless") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
    server.wait_for_no_connections()
    assert left == ["left"]


def test_the_fault_of_a_handler_is_not_lost() -> None:
    async def wrong(write: Body, request: Request) -> None:
        raise ZeroDivisionError("in the test")

    def use() -> None:
        with HttpServer() as server:
            server.streams["/wrong"] = wrong
            assert wire(server, "/wrong") == (b"", "closed")

    with pytest.raises(ZeroDivisionError, match="in the test"):
        use()


# Many at once, and the end


def test_held_answers(server: HttpServer) -> None:
    server.holding = True
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(asked(server)) for _ in range(64)]
        server.wait_for_requests(64)
        server.wait_for_requests_at_once(64)
        assert (server.holding, server.open_connections, server.most_requests_at_once) == (True, 64, 64)
        connections[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            connections[0].recv(1)
        server.holding = False
        connections[0].setblocking(True)
        assert all(connection.recv(15) == b"HTTP/1.1 200 OK" for connection in connections)
    server.wait_for_no_connections()
    assert server.most_requests_at_once == 64


def test_held_clients_that_leave_are_seen_at_once(server: HttpServer) -> None:
    server.holding = True
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(asked(server))
        server.wait_for_requests(8)
    server.wait_for_no_connections()
    assert server.requests_at_once == 0


def test_waiting_tells_what_there_is(server: HttpServer) -> None:
    with asked(server), pytest.raises(TimeoutError, match=r"not 2 requests within 0\.1 s: 1 requests have come"):
        server.wait_for_requests(2, timeout=0.1)


def test_a_killed_server_resets_and_refuses_and_comes_back(server: HttpServer) -> None:
    port = server.port
    held: list[Fault] = [SilentAt(10), SilentBefore(), Slowly(1, 0.01)]
    server.script("/a", held)
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", port), LONG_SECONDS))
            busy = [stack.enter_context(asked(server)) for _ in held]
            server.wait_for_requests_at_once(3)
            server.stop()
            assert server.open_connections == 0
            for connection in (idle, *busy):
                with pytest.raises(ConnectionResetError):
                    read_all(connection)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), LONG_SECONDS)
        server.stop()
        server.start()
        assert (server.port, ask(server, "/a").body) == (port, CONTENT)
        server.script("/a", held)
        server.requests.clear()


@pytest.mark.parametrize("fault", [SilentBefore(), SilentAt(10), Slowly(1, 10.0), ResetAt(5, 10.0), CutAt(5, 10.0)])
def test_leaving_ends_all(fault: Fault) -> None:
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        with HttpServer() as server:
            server.files["/a"] = CONTENT
            server.script("/a", [fault])
            stack.enter_context(asked(server))
            server.wait_for_requests_at_once(1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port), LONG_SECONDS)
    assert time.monotonic() - start < 8


async def test_an_asynchronous_client() -> None:
    aiohttp = pytest.importorskip("aiohttp")
    with HttpServer() as server:
        server.files |= {f"/{number}": CONTENT * number for number in range(1, 33)}
        server.redirects["/b"] = "/1"
        server.script("/1", [CutAt(100), ResetAt(100), ResetBefore(), ResetBefore()])
        async with aiohttp.ClientSession() as session:

            async def get(path: str) -> bytes:
                async with session.get(server.url + path) as answer:
                    return bytes(await answer.read())

            for _ in range(3):
                with pytest.raises(aiohttp.ClientError):
                    await get("/1")
            assert await get("/b") == CONTENT
            bodies = await asyncio.gather(*(get(f"/{number}") for number in range(1, 33)))
            assert [len(body) // len(CONTENT) for body in bodies] == list(range(1, 33))
        await asyncio.to_thread(server.wait_for_no_connections)
