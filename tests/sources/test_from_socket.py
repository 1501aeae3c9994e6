"""`Dataset.from_socket`: framing, limits, closing, broken connections, states, going on, TLS."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, Options, StorageOptions
from aiodata.errors import CorruptRecordError, RemoteError, StateError
from aiodata.formats.framing import framing_of
from aiodata.spec import TensorSpec
from tests.programs import assert_gives, assert_same, collect, to_list

CERTIFICATE = Path(__file__).parents[1] / "servers" / "loopback.pem"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
WORDS = [b"one", b"", b"three", b"4" * 5000]
QUICK = Options(storage=StorageOptions(first_wait_seconds=0.001, max_wait_seconds=0.01, max_attempts=3, idle_seconds=5))


class Server:
    """A TCP server on a loop and thread of its own, so that the sync face can be tried as well."""

    def __init__(self, handler: Handler, context: ssl.SSLContext | None) -> None:
        self.handler = handler
        self.asked: list[bytes] = []
        self.connections = 0
        self.port = 0
        self._context = context
        self._ready = threading.Event()
        self._closed = threading.Semaphore(0)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        self._ready.wait()

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.handler(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._closed.release()
            writer.close()

    def wait_closed(self) -> None:
        """Wait until the handler of a connection has ended."""
        assert self._closed.acquire(timeout=10)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def dataset(self, *arguments: Any, **options: Any) -> Dataset[bytes]:
        return Dataset.from_socket("127.0.0.1", self.port, *arguments, **options)


@contextmanager
def serving(handler: Handler, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(handler, context)
    try:
        yield server
    finally:
        server.end()


def sending(data: bytes, piece: int = 1 << 20) -> Handler:
    """Make a handler that sends bytes, some at a time, and closes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for begin in range(0, len(data), piece):
            writer.write(data[begin : begin + piece])
            await writer.drain()

    return handle


def numbered(count: int, breaks: list[Any]) -> Handler:
    """Make a handler that is asked for a number, and sends lines from there on; and breaks off as the list says.

    A number: after so many lines. "mid": in the middle of the next line. "reset": by a reset.
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = int(await reader.readline())
        how = breaks.pop(0) if breaks else count
        last = min(count, first + how) if isinstance(how, int) else first + 2
        writer.write(b"".join(b"line %d\n" % number for number in range(first, last)))
        if how == "mid":
            writer.write(b"line")
        await writer.drain()
        if how == "reset":
            await asyncio.sleep(0.05)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    return handle


def ask(number: int) -> bytes:
    return b"%d\n" % number


LINES = [b"line %d" % number for number in range(10)]


# Framing


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"--", b"\0"])
def test_lines_are_cut_at_the_separator(end: bytes, piece: int) -> None:
    with serving(sending(b"".join(word + end for word in WORDS), max(piece, 1 if piece > 9 else 997))) as server:
        separator = {} if end.endswith(b"\n") else {"separator": end}
        assert_gives(server.dataset(**separator), WORDS)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_records_stand_behind_their_length(size: int, order: Any) -> None:
    words = [word[:255] for word in WORDS]
    data = b"".join(len(word).to_bytes(size, order) + word for word in words)
    with serving(sending(data, 3)) as server:
        assert_gives(server.dataset("length", length_bytes=size, byte_order=order), words)


@pytest.mark.parametrize("framing", ["line", "length"])
def test_a_stream_may_be_empty(framing: str) -> None:
    with serving(sending(b"")) as server:
        assert_gives(server.dataset(framing), [])


words = st.lists(st.binary(max_size=12).map(lambda word: word.replace(b";", b",").replace(b"-", b"+")), max_size=30)


@given(words, st.lists(st.integers(1, 9), min_size=1), st.sampled_from([b";", b"--", b"-;-"]), st.booleans())
def test_pieces_of_any_size_are_cut_alike(
    expected: list[bytes], sizes: list[int], separator: bytes, is_length: bool
) -> None:
    make, _ = framing_of("test", is_length, separator, 2, "big", 12, True)
    data = b"".join(len(w).to_bytes(2, "big") + w if is_length else w + separator for w in expected)
    splitter, found, taken = make("s", 0, 0), list[Any](), 0
    for size in sizes * (len(data) + 1):
        if not data:
            break
        for cut in splitter.feed(data[:size]):
            found += cut.elements or []
            taken += cut.size
        data = data[size:]
    found += [element for cut in splitter.finish() for element in cut.elements or []]
    assert found == expected
    assert taken == sum(len(w) + (2 if is_length else len(separator)) for w in expected)


@pytest.mark.parametrize("separator", [b";", b"-;-"])
@pytest.mark.parametrize("piece", [1, 2, 5, 100])
def test_the_longest_record_has_the_length_that_is_allowed(separator: bytes, piece: int) -> None:
    make, _ = framing_of("test", False, separator, 4, "big", 6, True)

    def cut(data: bytes) -> list[bytes]:
        found: list[bytes] = []
        splitter = make("s", 0, 0)
        for begin in range(0, len(data), piece):
            for each in splitter.feed(data[begin : begin + piece]):
                found += each.elements or []
        assert list(splitter.finish()) == []
        return found

    assert cut(separator.join([b"a", b"123456", b"b", b""])) == [b"a", b"123456", b"b"]
    for last in (b"1234567" + separator + b"b", b"12345678901"):
        message = f"record 1, byte {1 + len(separator)}: .* longer than 6 bytes, which max_record_bytes allows"
        with pytest.raises(CorruptRecordError, match=message):
            cut(b"a" + separator + last)


def test_a_record_that_says_it_is_too_long_is_not_waited_for() -> None:
    with serving(sending(b"\0\1a\xff\xff")) as server:
        ds = server.dataset("length", length_bytes=2, max_record_bytes=100)
        with pytest.raises(
            CorruptRecordError, match=r"record 1, byte 3: .* 65535 bytes, and max_record_bytes allows 100"
        ):
            to_list(ds)
        with ds.iterate() as iterator:
            assert next(iterator) == b"a"
            with pytest.raises(CorruptRecordError):
                next(iterator)
            assert list(iterator) == []


@pytest.mark.parametrize(
    ("framing", "data", "message"),
    [
        ("line", b"a\nb", r"record 1, byte 2: the stream ended in the middle of a record: 1 bytes came, and no b'\\n'"),
        ("length", b"\0\0\0\1a\0\0", "record 1, byte 5: .* 2 bytes into its length"),
        ("length", b"\0\0\0\5abc", "record 0, byte 0: .* 7 bytes into it and its length of 9 bytes"),
    ],
)
def test_a_stream_that_ends_in_a_record_is_an_error(framing: str, data: bytes, message: str) -> None:
    with serving(sending(data)) as server, pytest.raises(CorruptRecordError, match=message) as caught:
        to_list(server.dataset(framing).ignore_errors())
    assert any("in from_socket, element" in note for note in caught.value.__notes__)


# What is sent, and closing


async def test_hello_is_sent_first() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline() * 2)

    with serving(echo) as server:
        assert await collect(server.dataset(hello=b"please\n")) == [b"please", b"please"]


async def test_records_are_given_as_they_come() -> None:
    go_on = threading.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"a\nb\n")
        await asyncio.to_thread(go_on.wait)
        writer.write(b"c\n")

    with serving(handle) as server:
        async with server.dataset().iterate() as iterator:
            assert [await anext(iterator), await anext(iterator)] == [b"a", b"b"]
            go_on.set()
            assert await anext(iterator) == b"c"


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"a\n" * 10)
    await reader.read()


async def test_a_break_closes_the_connection() -> None:
    with serving(endless) as server:
        async for record in server.dataset():
            assert record == b"a"
            break
        gc.collect()
        await asyncio.to_thread(server.wait_closed)


def test_a_break_out_of_a_plain_loop_closes_the_connection() -> None:
    with serving(endless) as server:
        for record in server.dataset():
            assert record == b"a"
            break
        server.wait_closed()


async def test_cancelling_a_wait_closes_the_connection() -> None:
    with serving(endless) as server:
        task = asyncio.create_task(collect(server.dataset()))
        while not server.connections:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.wait_closed)


async def test_many_connections_end_at_once() -> None:
    with serving(endless) as server:
        ds = Dataset.range(64).interleave(lambda _: server.dataset(), cycle_length=64, num_parallel_calls=64)
        async with ds.iterate() as iterator:
            assert [await anext(iterator) for _ in range(64)] == [b"a"] * 64
        for _ in range(server.connections):
            await asyncio.to_thread(server.wait_closed)


async def test_a_slow_reader_slows_the_server_down() -> None:
    sent = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)
        writer.transport.set_write_buffer_limits(high=0)
        while True:
            writer.write(b"x" * 999 + b"\n")
            await writer.drain()
            sent += 1000

    with serving(handle) as server:
        async with server.dataset().iterate() as iterator:
            await anext(iterator)
            before = -1
            while before != sent:  # the kernel's own buffers take some MiB
                before = sent
                await asyncio.sleep(0.1)
            assert sent < 32 << 20


def test_prefetch_reads_ahead() -> None:
    with serving(sending(b"".join(word + b"\n" for word in LINES))) as server:
        ds = server.dataset().map(bytes.decode).batch(3).prefetch(2)
        assert [list(batch) for batch in ds] == [
            [f"line {n}" for n in range(first, min(first + 3, 10))] for first in range(0, 10, 3)
        ]


# Trouble


def test_a_refused_connection_names_the_server() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        ds = Dataset.from_socket("127.0.0.1", port)
        with pytest.raises(ConnectionRefusedError, match=rf"127\.0\.0\.1:{port}: no connection, after 0 records: "):
            to_list(ds)
        with pytest.raises(ConnectionRefusedError):
            asyncio.run(collect(ds.ignore_errors()))


def test_an_unknown_host_is_an_oserror() -> None:
    with pytest.raises(ConnectionError, match=r"nowhere\.invalid:9: no connection, after 0 records"):
        to_list(Dataset.from_socket("nowhere.invalid", 9))


def test_a_reset_says_how_many_records_were_read() -> None:
    with serving(numbered(10, ["reset"])) as server, server.dataset(hello=b"0\n").iterate() as iterator:
        assert [next(iterator), next(iterator)] == LINES[:2]
        with pytest.raises(ConnectionResetError, match="the connection broke, after 2 records: ") as caught:
            next(iterator)
        assert caught.value.__notes__ == [f"in from_socket, element 2, from 127.0.0.1:{server.port} record 2"]
        assert list(iterator) == []


def test_silence_may_be_limited() -> None:
    with serving(endless) as server, server.dataset(idle_seconds=0.05).iterate() as iterator:
        assert [next(iterator) for _ in range(10)] == [b"a"] * 10
        with pytest.raises(TimeoutError, match=r"broke, after 10 records: nothing has come for 0\.05 s"):
            next(iterator)


async def test_a_server_that_does_not_answer_a_tls_greeting_is_given_up() -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with serving(listen) as server:
        options = Options(storage=StorageOptions(idle_seconds=0.05))
        with pytest.raises(TimeoutError, match="no connection, after 0 records"):
            await collect(server.dataset(ssl=True).with_options(options))


# Going on


def test_a_server_that_can_go_on_is_asked_to(caplog: pytest.LogCaptureFixture) -> None:
    with serving(numbered(10, [0, "mid", "reset", "mid", "reset"])) as server:
        ds = server.dataset(hello=ask).with_options(QUICK)
        assert to_list(ds) == []  # an orderly end is the end
        with caplog.at_level(logging.WARNING, "aiodata"), ds.iterate() as iterator:
            assert list(iterator) == LINES
            (counters,) = (each for each in iterator.statistics() if each["stage"] == "from_socket")
        assert (counters["requests"], counters["retries"], counters["elements"]) == (5, 4, 10)
        assert len(caplog.messages) == 4
        assert "the connection broke, after 2 records: the stream ended in the middle of a record" in caplog.text


def test_the_limit_of_attempts_is_kept() -> None:
    with serving(numbered(10, [0, *["mid"] * 2])) as server:
        assert to_list(server.dataset(hello=ask)) == []
        server.handler = sending(b"lin")
        with pytest.raises(RemoteError, match=rf"127\.0\.0\.1:{server.port}, record 0: .*\(tried 3 times\)"):
            to_list(server.dataset(hello=ask).with_options(QUICK))


# States


def test_a_state_from_the_start_is_loaded() -> None:
    with serving(sending(b"a\nb\n")) as server:
        ds = server.dataset()
        with ds.iterate() as iterator:
            state = iterator.state_dict()
        with ds.iterate(json.loads(json.dumps(state))) as iterator:
            assert list(iterator) == [b"a", b"b"]


@pytest.mark.parametrize("taken", [1, 2, 3, 4])
def test_a_state_from_the_middle_is_refused(taken: int) -> None:
    with serving(sending(b"a\nb\nc\nd\n")) as server:
        ds = server.dataset().map(bytes.decode)
        with ds.iterate() as iterator:
            for _ in range(taken):
                next(iterator)
            state = iterator.state_dict()
        connections = server.connections
        with pytest.raises(StateError, match=f"{taken} records of .* had been taken, and a live stream cannot be read"):
            ds.iterate(state)
        assert server.connections == connections


@pytest.mark.parametrize("taken", range(11))
def test_a_state_goes_on_where_the_server_can(taken: int) -> None:
    with serving(numbered(10, [])) as server:
        ds = server.dataset(hello=ask).map(bytes.decode).prefetch(3)
        with ds.iterate() as iterator:
            before = [next(iterator) for _ in range(taken)]
            state = json.loads(json.dumps(iterator.state_dict()))
        with ds.iterate(state) as iterator:
            assert [*before, *iterator] == [line.decode() for line in LINES]
        with ds.iterate(state) as iterator:
            assert_same(list(iterator), [line.decode() for line in LINES[taken:]])


# TLS


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Give a server's and a client's, of a certificate for 127.0.0.1 that is good for a hundred years."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(CERTIFICATE)
    return server, ssl.create_default_context(cafile=CERTIFICATE)


async def test_records_come_through_tls() -> None:
    ours, theirs = contexts()
    with serving(sending(b"a\nb\n"), ours) as server:
        assert await collect(server.dataset(ssl=theirs)) == [b"a", b"b"]
        with pytest.raises(ConnectionError, match=r"no connection, after 0 records: .*certificate verify failed"):
            await collect(server.dataset(ssl=True))


# Arguments


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((b"host", 1), {}, TypeError, "host must be a name or an address, not b'host'"),
        (("", 1), {}, TypeError, "host must be a name or an address, not ''"),
        (("host", "1"), {}, TypeError, "port must be an integer, not str"),
        (("host", 0), {}, ValueError, "port must be at least 1, not 0"),
        (("host", 65536), {}, ValueError, "port must be at most 65535, not 65536"),
        (("host", 1, "lines"), {}, ValueError, "framing must be 'line' or 'length', not 'lines'"),
        (("host", 1), {"separator": "x"}, TypeError, "separator must be bytes, not str"),
        (("host", 1), {"separator": b""}, ValueError, "separator must not be empty"),
        (("host", 1, "length"), {"length_bytes": 3}, ValueError, "length_bytes must be 1, 2, 4 or 8, not 3"),
        (("host", 1, "length"), {"byte_order": "<"}, ValueError, "byte_order must be 'big' or 'little', not '<'"),
        (("host", 1), {"max_record_bytes": 0}, ValueError, "max_record_bytes must be at least 1, not 0"),
        (("host", 1), {"hello": "x"}, TypeError, "hello must be bytes or a plain function, not 'x'"),
        (("host", 1), {"hello": asyncio.sleep}, TypeError, "hello must be bytes or a plain function, not <function"),
        (("host", 1), {"ssl": 1}, TypeError, "ssl must be an SSLContext, a bool or None, not int"),
        (("host", 1), {"idle_seconds": 0}, ValueError, "idle_seconds must be above 0, or None, not 0"),
    ],
)
def test_wrong_arguments(arguments: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^from_socket: {message}"):
        Dataset.from_socket(*arguments, **options)


def test_hello_must_give_bytes() -> None:
    with serving(sending(b"")) as server, pytest.raises(TypeError, match="hello must give bytes, not int"):
        to_list(server.dataset(hello=lambda number: number))


def test_what_is_known() -> None:
    ds = Dataset.from_socket("host", 7, name="feed", hello=b"secret")
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.element_spec == TensorSpec((), object)
    assert repr(ds) == "<Dataset\nfrom_socket(host:7, line, separator=b'\\n') 'feed': object>"
    other = Dataset.from_socket("host", 7, "length", hello=ask)
    assert repr(other) == "<Dataset\nfrom_socket(host:7, length, length_bytes=4, byte_order='big', hello=ask): object>"


@settings(max_examples=10)
@given(words)
def test_any_words_come_back(expected: list[bytes]) -> None:
    with serving(sending(b"".join(word + b";" for word in expected), 5)) as server:
        assert to_list(server.dataset(separator=b";")) == expected
