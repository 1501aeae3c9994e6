"""`Dataset.from_socket`: the records that a TCP server sends."""

from __future__ import annotations

import asyncio
import ssl as tls
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.errors import CorruptRecordError, StateError
from aiodata.functions import is_coroutine_function, name_of
from aiodata.spec import TensorSpec
from aiodata.storage.transfer.healing import Healing, idle_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.statistics import Counters
    from aiodata.formats.cuts import Cut, Splitter

__all__ = ["from_socket"]

PIECE_BYTES = 64 * 1024
_KINDS: tuple[type[OSError], ...] = (
    TimeoutError,
    BrokenPipeError,
    ConnectionAbortedError,
    ConnectionRefusedError,
    ConnectionResetError,
)


def from_socket(
    cls: type[Dataset[Any]],
    host: str,
    port: int,
    framing: str = "line",
    name: str | None = None,
    *,
    separator: bytes = b"\n",
    length_bytes: int = 4,
    byte_order: str = "big",
    max_record_bytes: int = 16 * 1024 * 1024,
    hello: bytes | Callable[[int], bytes] = b"",
    ssl: tls.SSLContext | bool | None = None,
    idle_seconds: float | None = None,
) -> Dataset[bytes]:
    r"""Give the records, as bytes, that a TCP server sends until it closes the connection.

    Each iteration has a connection of its own, which is closed at its end, on a `break` too. Records are given as they
    come. Who reads slowly slows the server down: nothing is read ahead but what a connection holds. Memory: about 200
    KiB and twice the longest record.

    What a server sends live cannot be asked for again. So a state from the middle is refused when it is loaded, and a
    lost connection ends the iteration. Where the server can go on at any record, let `hello` be a function: it gets
    the number of records that were taken, 0 at first, and gives the bytes that ask for the next one. Then a state goes
    on there, and so does the pipeline after a lost connection, one that ends in the middle of a record, or silence:
    waits and limits are `options.storage`'s, each attempt is logged and counted. That is exact only if the server
    numbers its records alike each time; a server that sends others then cannot be told from one that does not.

    Args:
        host: A name or an address.
        port: 1 to 65535.
        framing: "line": a record ends with `separator`. "length": it stands behind its length.
        name: A name for the stage, shown in `repr`.
        separator: What ends a record, at least one byte. With `\n` a `\r` before it is dropped, too.
        length_bytes: Size of a length, which does not count itself: 1, 2, 4 or 8 bytes, unsigned.
        byte_order: "big", as networks have it, or "little".
        max_record_bytes: Bytes that a record may have.
        hello: What is sent first: bytes, or a function of the number of records that were taken.
        ssl: As for `asyncio.open_connection`: True for TLS with the system's certificates, or an SSLContext.
        idle_seconds: How long the server may be silent; None for as long as it likes. Connecting, TLS included, may
            take as long as `options.storage.idle_seconds` says in any case.

    Raises:
        TypeError, ValueError: An argument is not what it must be.
        ConnectionError, TimeoutError: While iterating: the connection cannot be made or breaks, or the server is silent
            for too long. It names host, port and the number of records read, and ends the iteration.
        RemoteError: While iterating: going on has failed as often as the options allow.
        CorruptRecordError: While iterating: a record is too long, or the stream ends in the middle of one; it ends the
            iteration.
        StateError: When a state from the middle is loaded and `hello` is no function.

    >>> import aiodata
    >>> aiodata.Dataset.from_socket("sensors.local", 9000, hello=b"SUBSCRIBE *\n")
    <Dataset
    from_socket(sensors.local:9000, line, separator=b'\n'): object>

    Source: an addition; tf.data reads no sockets.
    """
    from aiodata.formats.framing import framing_of  # formats are imported where they are used

    _check(host, framing, hello, ssl, idle_seconds)
    number = check_integer(port, "from_socket", "port", 1)
    if number > 65535:
        raise ValueError(f"from_socket: port must be at most 65535, not {number}")
    is_length = framing == "length"
    splitter, detail = framing_of(
        "from_socket", is_length, separator, length_bytes, byte_order, max_record_bytes, needs_end=True
    )
    server = _Server(host, number, hello, ssl or None, idle_seconds, splitter)
    shown = [f"{host}:{number}", framing, detail, "" if isinstance(hello, bytes) else f"hello={name_of(hello)}"]
    plan = Plan(
        "from_socket",
        partial(_open, server=server),
        detail=", ".join(filter(None, shown)),
        resumes_by_cursor=True,
        waits=True,
        spec=lambda: TensorSpec((), object),
        title=name,
    )
    return cls.of(plan)


def _check(host: Any, framing: Any, hello: Any, ssl: Any, idle_seconds: Any) -> None:
    if not isinstance(host, str) or not host:
        raise TypeError(f"from_socket: host must be a name or an address, not {host!r:.80}")
    if framing not in ("line", "length"):
        raise ValueError(f"from_socket: framing must be 'line' or 'length', not {framing!r}")
    if not isinstance(hello, bytes) and (not callable(hello) or is_coroutine_function(hello)):
        raise TypeError(f"from_socket: hello must be bytes or a plain function, not {hello!r:.80}")
    if ssl is not None and not isinstance(ssl, bool | tls.SSLContext):
        raise TypeError(f"from_socket: ssl must be an SSLContext, a bool or None, not {type(ssl).__name__}")
    if idle_seconds is not None and (not isinstance(idle_seconds, int | float) or not idle_seconds > 0):
        raise ValueError(f"from_socket: idle_seconds must be above 0, or None, not {idle_seconds!r}")


class _Server:
    """What is read, and how; see `from_socket`."""

    def __init__(
        self,
        host: str,
        port: int,
        hello: bytes | Callable[[int], bytes],
        ssl: tls.SSLContext | bool | None,
        silence: float | None,
        splitter: Callable[[str, int, int], Splitter],
    ) -> None:
        self.host, self.port = host, port
        self.name = f"{host}:{port}"
        self.hello = hello
        self.ssl = ssl
        self.silence = silence
        self.splitter = splitter
        self.goes_on = not isinstance(hello, bytes)

    def ask_for(self, number: int) -> bytes:
        """Give what asks for the record with a number."""
        asking = self.hello(number) if callable(self.hello) else self.hello
        if not isinstance(asking, bytes):
            raise TypeError(f"from_socket: hello must give bytes, not {type(asking).__name__}")
        return asking


def _open(run: Run, *, start: Cursor | None, server: _Server) -> AsyncIterator[Block[Any]]:
    taken = 0 if start is None else start[0] + start[1]
    if taken and not server.goes_on:
        raise StateError(
            f"from_socket: {taken} records of {server.name} had been taken, and a live stream cannot be read again; "
            "where the server can go on at any record, pass hello= as a function"
        )
    return _records(run, server, taken)


async def _records(run: Run, server: _Server, taken: int) -> AsyncGenerator[Block[Any], None]:
    counters = run.statistics.counters("from_socket")
    options = run.options.storage
    healing = Healing(server.name, options, counters, "record")
    begun = taken
    while True:
        try:
            counters.requests += 1
            async with aclosing(_cuts(server, taken, idle_seconds(options), counters)) as cuts:
                async for cut in cuts:
                    healing.progress()
                    counters.elements += cut.length
                    counters.blocks += 1
                    where, taken = taken, taken + cut.length
                    yield Block(_origin(server, where), computed=cut.elements, clean=True)
            return
        except (OSError, CorruptRecordError) as error:
            if server.goes_on and isinstance(error, OSError):
                await healing.wait(error, taken)
                continue
            locate(error, "from_socket", taken - begun, _origin(server, taken), 0)
            raise


def _origin(server: _Server, number: int) -> Origin:
    return Origin(partial(int, number), partial(_place, server.name, number))


def _place(name: str, number: int, offset: int) -> str:
    return f"{name} record {number + offset}"


async def _cuts(server: _Server, taken: int, patience: float, counters: Counters) -> AsyncGenerator[Cut, None]:
    """Connect, and give the records from number `taken` on, as they come.

    Raises:
        ConnectionError, TimeoutError: There is no connection, or no more.
        CorruptRecordError: A record is too long, or cut short for good.
    """
    asking = server.ask_for(taken)
    splitter = server.splitter(server.name, 0, taken)
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=server.ssl, limit=PIECE_BYTES)
        if asking:
            writer.write(asking)
        while piece := await _read(reader, server.silence):
            counters.bytes_read += len(piece)
            for cut in splitter.feed(piece):
                taken += cut.length
                yield cut
        try:
            for cut in splitter.finish():
                yield cut
        except CorruptRecordError as error:
            if server.goes_on:
                raise ConnectionError(error.message) from error
            raise
    except OSError as error:
        what = "no connection" if writer is None else "the connection broke"
        raise _named(error, f"{what}, after {taken} records", "" if server.goes_on else server.name) from error
    finally:
        if writer is not None:
            writer.transport.abort()  # a TLS connection's orderly end would wait for the server
            with suppress(OSError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader, silence: float | None) -> bytes:
    try:
        async with asyncio.timeout(silence):
            return await reader.read(PIECE_BYTES)
    except TimeoutError as error:
        raise TimeoutError(f"nothing has come for {silence:g} s") from error


def _named(error: OSError, what: str, server: str) -> OSError:
    """Give an error of the same kind that says what broke, when, and where, if that is not said elsewhere."""
    kind = next((kind for kind in _KINDS if isinstance(error, kind)), ConnectionError)
    where = f"{server}: " if server else ""
    return kind(f"{where}{what}: {str(error) or type(error).__name__}")
