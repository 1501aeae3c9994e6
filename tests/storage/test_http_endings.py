"""However an iteration over URLs ends, its requests end at once, and nothing of it is left."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import EndedEarlyError, RemoteError
from aiodata.storage.transfer import network as networks
from aiodata.storage.transfer.network import Lease
from tests.programs import outcomes
from tests.servers.http import HttpServer
from tests.servers.http_faults import Slowly
from tests.storage.remote_files import LINES, TEXT, limited, lines_of

pytest.importorskip("aiohttp")
AT_ONCE_SECONDS = 10.0
COUNT = 64


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        for number in range(COUNT):
            started.files[f"/{number}"] = TEXT
        yield started
        started.wait_for_no_connections(AT_ONCE_SECONDS)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def many(server: HttpServer) -> Dataset[bytes]:
    urls = Dataset.from_tensor_slices([f"{server.url}/{number}" for number in range(COUNT)])
    return limited(urls.interleave(TextLineDataset, COUNT, num_parallel_calls=COUNT))


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + AT_ONCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Left(Exception):
    """Ends a loop."""


class Holder:
    """Has the server hold all answers."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        server.holding = True

    def wait(self) -> None:
        self.server.wait_for_requests_at_once(COUNT)

    def check(self) -> None:
        """Make sure that all connections are closed, although nothing was answered."""
        self.server.wait_for_no_connections(AT_ONCE_SECONDS)
        assert self.server.holding
        assert len(self.server.requests) == COUNT
        assert networks._network is None


async def read_nothing(iterator: Any) -> None:
    async for _ in iterator:
        raise AssertionError


@pytest.mark.parametrize("how", ["aclose", "cancel", "timeout"])
@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.usefixtures("no_collector")
async def test_what_ends_an_async_loop_ends_the_requests(how: str, prefetch: bool, server: HttpServer) -> None:
    holder = Holder(server)
    iterator = (many(server).prefetch(2) if prefetch else many(server)).iterate()
    pulling = asyncio.create_task(read_nothing(iterator))
    await asyncio.to_thread(holder.wait)
    if how == "aclose":
        await iterator.aclose()
        with pytest.raises(EndedEarlyError):
            await pulling
    elif how == "timeout":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pulling, 0.01)
    else:
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling
    del iterator, pulling
    await asyncio.to_thread(holder.check)


@pytest.mark.parametrize("how", ["break", "exception", "drop"])
@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.usefixtures("no_collector")
def test_what_ends_a_loop_in_the_middle_ends_the_requests(how: str, asynchronous: bool, server: HttpServer) -> None:
    for number in range(COUNT):
        server.script(f"/{number}", [Slowly(10, 0.5 if number else 0.0)])

    def leave(line: bytes) -> None:
        assert line == LINES[0]
        server.wait_for_requests_at_once(COUNT - 1)
        if how == "exception":
            raise Left

    async def read_async() -> None:
        iterator = many(server).iterate()
        async for line in iterator:
            await asyncio.to_thread(leave, line)
            break
        if how != "drop":
            await iterator.aclose()
        del iterator
        await asyncio.to_thread(server.wait_for_no_connections, AT_ONCE_SECONDS)

    def read() -> None:
        for line in many(server):
            leave(line)
            break

    with suppress(Left):
        asyncio.run(read_async()) if asynchronous else read()
    server.wait_for_no_connections(AT_ONCE_SECONDS)
    assert networks._network is None


def test_iterators_that_are_open_when_a_loop_ends(server: HttpServer) -> None:
    holder = Holder(server)
    kept: list[Any] = []

    async def main() -> None:
        kept.append(many(server).iterate())
        kept.append(asyncio.create_task(anext(kept[0])))
        await asyncio.to_thread(holder.wait)

    asyncio.run(main())
    holder.check()


def test_iterators_that_are_open_when_a_loop_is_closed_by_hand(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while another pipeline keeps the network: nothing is left in its memory, and no request."""
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)  # it complains of tasks that were left
    server.script("/0", [Slowly(1, 0.02)])
    with closing(Lease()) as other:
        loop = asyncio.new_event_loop()
        iterator = lines_of(server.url + "/0").iterate()
        loop.run_until_complete(iterator.__anext__())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        del iterator
        gc.collect()
        server.wait_for_no_connections(AT_ONCE_SECONDS)
        wait_until(lambda: other.network.limits.held == 0)


def test_an_iterator_in_a_cycle_that_is_collected_in_the_networks_own_thread(server: HttpServer) -> None:
    server.script("/0", [Slowly(10, 0.02)])
    server.script("/1", [Slowly(10, 0.02)] * 2)

    class Cycle:
        def __init__(self, ds: Dataset[Any]) -> None:
            self.me = self
            self.iterator = ds.iterate()
            next(self.iterator)

    async def collect() -> None:
        gc.collect()

    with closing(Lease()) as lease:
        gc.disable()
        try:
            Cycle(lines_of(server.url + "/0"))
            Cycle(lines_of(server.url + "/1").prefetch(3))
            Cycle(
                limited(
                    Dataset.from_tensor_slices([server.url + "/1"]).interleave(TextLineDataset, num_parallel_calls=1)
                )
            )
            lease.network.submit(collect()).result(20)
        finally:
            gc.enable()
        server.wait_for_no_connections(AT_ONCE_SECONDS)
        wait_until(lambda: lease.network.limits.held == 0)


def test_errors_that_are_kept_do_not_hold_what_came(server: HttpServer) -> None:
    from tests.servers.http_faults import CutAt, Status

    big = b"x" * 700_000 + b"\n"
    server.files["/0"] = big * 3
    server.digests = "content-digest"
    server.script("/0", [CutAt(1_500_000)] * 2 + [Status(404)])
    got = outcomes(lines_of(server.url + "/0", max_attempts=2))
    assert isinstance(got[-1], RemoteError)
    held, seen = [got[-1]], set()
    size = 0
    while held:
        one: Any = held.pop()
        if id(one) in seen or isinstance(one, (type, Dataset)) or type(one).__name__ == "module":
            continue
        if isinstance(one, dict) and "__spec__" in one:  # a module's globals: all tests lie behind them
            continue
        seen.add(id(one))
        if isinstance(one, (bytes, bytearray)) and len(one) > 10_000:  # not what modules have, which may be many
            size += len(one)
        if len(seen) < 20_000:
            held += [each for each in gc.get_referents(one) if not isinstance(each, HttpServer)]
    assert size < 500_000


# A server that goes, and comes back


def test_a_server_that_comes_back_is_read_on(server: HttpServer) -> None:
    server.files["/0"] = b"".join(b"%d\n" % number for number in range(2000))
    ds = lines_of(server.url + "/0", chunk_bytes=1000, read_ahead_bytes=1000, max_attempts=1000)
    got = []
    for number, line in enumerate(ds):
        got.append(line)
        if number == 700:
            server.stop()
            threading.Timer(0.3, server.start).start()
    assert got == server.files["/0"].split()


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_server_that_stays_away_is_an_error_in_time(asynchronous: bool, server: HttpServer) -> None:
    server.files["/0"] = b"".join(b"%d\n" % number for number in range(2000))
    limits = {"chunk_bytes": 1000, "read_ahead_bytes": 1000, "max_attempts": 1000, "give_up_seconds": 0.3}
    iterator = lines_of(server.url + "/0", **limits).iterate()
    got: list[bytes] = []

    async def read() -> None:
        async for line in iterator:
            got.append(line)
            if len(got) == 700:
                await asyncio.to_thread(server.stop)

    def read_sync() -> None:
        for line in iterator:
            got.append(line)
            if len(got) == 700:
                server.stop()

    started = time.monotonic()
    with pytest.raises(RemoteError, match=r"/0, byte \d+: ClientConnectorError: Cannot connect to host") as caught:
        asyncio.run(read()) if asynchronous else read_sync()
    assert time.monotonic() - started < 20
    assert caught.value.attempts > 1
    assert got == server.files["/0"].split()[: len(got)]
    assert len(got) >= 700
    iterator.close()
    server.start()
