"""How many requests are under way at once, and how many bytes in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

import aiodata
from aiodata import Dataset, FixedLengthRecordDataset, TextLineDataset
from aiodata.storage.transfer.network import Lease, Limits
from tests.programs import to_list
from tests.servers.http import HttpServer
from tests.storage.remote_files import LINES, TEXT, limited

pytest.importorskip("aiohttp")
SETTLED_SECONDS = 0.2


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        for number in range(64):
            started.files[f"/{number}"] = TEXT
        yield started
        started.wait_for_no_connections()


def many(server: HttpServer, count: int = 64, **limits: Any) -> Dataset[bytes]:
    urls = Dataset.from_tensor_slices([f"{server.url}/{number}" for number in range(count)])
    return limited(urls.interleave(TextLineDataset, count, num_parallel_calls=count), **limits)


async def settled(server: HttpServer) -> int:
    """Wait until no more requests come, and give their number."""
    count = -1
    while count != len(server.requests):
        count = len(server.requests)
        await asyncio.sleep(SETTLED_SECONDS)
    return count


async def test_as_many_requests_are_under_way_as_there_are_readers(server: HttpServer) -> None:
    server.holding = True
    async with many(server).iterate() as iterator:
        pull = asyncio.create_task(anext(iterator))
        await asyncio.to_thread(server.wait_for_requests_at_once, 64)
        server.holding = False
        elements = [await pull] + [element async for element in iterator]
    assert elements == [line for line in LINES for _ in range(64)]
    assert len(server.requests) == 64


async def test_so_are_those_of_mapped_reads(server: HttpServer) -> None:
    server.holding = True
    urls = Dataset.from_tensor_slices([f"{server.url}/{number}" for number in range(64)])
    async with urls.map(aiodata.aread_file, num_parallel_calls=64).iterate() as iterator:
        pull = asyncio.create_task(anext(iterator))
        await asyncio.to_thread(server.wait_for_requests_at_once, 64)
        server.holding = False
        assert [await pull] + [element async for element in iterator] == [TEXT] * 64


@pytest.mark.parametrize("ranges", [True, False])
async def test_a_host_has_no_more_requests_than_it_may_by_all_pipelines_together(
    ranges: bool, server: HttpServer
) -> None:
    server.ranges = ranges
    server.holding = True
    with ThreadPoolExecutor(2) as pool:
        reading = [pool.submit(to_list, many(server, 20, requests_per_host=5)) for _ in range(2)]
        await asyncio.to_thread(server.wait_for_requests_at_once, 5)
        assert await settled(server) == 5
        server.holding = False
        for future in reading:
            assert await asyncio.wrap_future(future) == [line for line in LINES for _ in range(20)]


async def test_waiting_for_a_turn_is_no_silence(server: HttpServer) -> None:
    server.holding = True
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(to_list, many(server, 3, requests_per_host=1, idle_seconds=1.0))
        for count in (1, 2, 3):
            await asyncio.to_thread(server.wait_for_requests, count)
            await asyncio.sleep(0.6)
            server.holding = False
            await asyncio.to_thread(server.wait_for_requests, min(count + 1, 3))
            server.holding = count < 2
        assert await asyncio.wrap_future(reading) == [line for line in LINES for _ in range(3)]
    assert len(server.requests) == 3


def test_one_request_at_a_time_is_enough_for_many_readers_of_many_chunks(server: HttpServer) -> None:
    for ranges in (True, False):
        server.ranges = ranges
        ds = many(server, 8, requests_per_host=1, chunk_bytes=100, read_ahead_bytes=100, memory_bytes=0)
        assert to_list(ds) == [line for line in LINES for _ in range(8)]


class Watched(Limits):
    """Remembers the most bytes that were held."""

    most = 0

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "held":
            assert value >= 0
            super().__setattr__("most", max(self.most, value))


@pytest.fixture
def limits() -> Iterator[Watched]:
    """Give what the network counts while the test runs; there is nothing left of it at the end."""
    with closing(Lease()) as lease:
        lease.network.limits = watched = Watched()
        yield watched
        assert watched.held == 0
        assert vars(watched)["_busy"] == {}
        assert vars(watched)["_waiting"] == {}


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize(("memory", "most"), [(100_000, 100_000), (0, 8 * 1000), (None, 8 * 16_000)])
def test_memory_stays_below_what_is_set(
    memory: int | None, most: int, ranges: bool, server: HttpServer, limits: Watched
) -> None:
    server.ranges = ranges
    for number in range(8):
        server.files[f"/{number}"] = bytes([number]) * 200_000
    urls = Dataset.from_tensor_slices([f"{server.url}/{number}" for number in range(8)])
    ds = urls.interleave(lambda url: FixedLengthRecordDataset(url, 1000), 8, num_parallel_calls=8)
    ds = limited(ds, chunk_bytes=1000, read_ahead_bytes=16_000, memory_bytes=memory)
    assert len(to_list(ds)) == 1600
    pieces = 0 if ranges else 8 * 600_000  # a piece of a client's is as large as its buffer
    assert 1000 <= limits.most <= most + pieces
    assert limits.held == 0


@pytest.mark.parametrize("ranges", [True, False])
async def test_a_reader_that_stops_stops_the_requests(ranges: bool, server: HttpServer, limits: Watched) -> None:
    server.ranges = ranges
    server.files["/0"] = bytes(20_000_000)
    ds = limited(FixedLengthRecordDataset(server.url + "/0", 1000), chunk_bytes=10_000, read_ahead_bytes=50_000)
    async with ds.iterate() as iterator:
        for _ in range(2000):
            await anext(iterator)
        count = await settled(server)
        assert limits.held <= (50_000 if ranges else 1_200_000)
        if ranges:
            last = max((request.range or (0, 0))[1] or 0 for request in server.requests)
            assert last <= 3_500_000  # what was pulled, a piece of it in the reader's hand, and what is read ahead
        assert len(server.requests) == count
        assert sum(stage.get("bytes_read", 0) for stage in iterator.statistics()) <= 4_000_000


def test_what_is_left_after_errors_is_not_counted(server: HttpServer, limits: Watched) -> None:
    from tests.servers.http_faults import CutAt, Status

    server.script("/0", [CutAt(100), *[Status(500)] * 9])
    server.script("/1", [Status(403)])
    ds = many(server, 3, chunk_bytes=300, max_attempts=2).ignore_errors()
    assert len(to_list(ds)) > len(LINES)
    assert limits.held == 0


async def test_places_are_given_in_turn() -> None:
    limits, order = Limits(), []

    async def request(name: int, most: int) -> None:
        await limits.enter("host", most)
        order.append(name)
        await asyncio.sleep(0)
        limits.leave("host")

    await limits.enter("host", 1)
    tasks = []
    for name, most in enumerate([1, 5, 2, 1, 9]):
        tasks.append(asyncio.create_task(request(name, most)))
        await asyncio.sleep(0)
    assert order == []
    limits.leave("host")
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]
    assert (vars(limits)["_busy"], vars(limits)["_waiting"]) == ({}, {})


async def test_a_small_limit_holds_beside_a_large_one() -> None:
    limits = Limits()
    for _ in range(3):
        await limits.enter("host", 3)
    small = asyncio.create_task(limits.enter("host", 1))
    await asyncio.sleep(0)
    large = asyncio.create_task(limits.enter("host", 9))
    await asyncio.sleep(0)
    limits.leave("host")
    limits.leave("host")
    await asyncio.sleep(0)
    assert not small.done()
    assert not large.done()
    limits.leave("host")
    await small
    await large
    limits.leave("host")
    limits.leave("host")
    assert vars(limits)["_busy"] == {}


@pytest.mark.parametrize("moment", ["before", "with", "after"])
async def test_who_leaves_the_queue_does_not_hold_it_up(moment: str) -> None:
    limits = Limits()
    await limits.enter("host", 2)
    first, second = (asyncio.create_task(limits.enter("host", most)) for most in (1, 2))
    await asyncio.sleep(0)
    if moment == "before":  # the first one's place is not free, the second one's is
        first.cancel()
        await second
    elif moment == "with":
        limits.leave("host")
        first.cancel()
        await second
    else:
        limits.leave("host")
        await first
        first.cancel()
        await second
        limits.leave("host")
    with pytest.raises(asyncio.CancelledError) if moment != "after" else closing(_Open()):
        await first
    for _ in range(2 if moment == "before" else 1):
        limits.leave("host")
    assert (vars(limits)["_busy"], vars(limits)["_waiting"]) == ({}, {})


class _Open:
    def close(self) -> None: ...


def test_leases_are_opened_and_closed_by_many_threads_at_once() -> None:
    start = threading.Barrier(8)

    async def one() -> int:
        return 1

    def use() -> int:
        start.wait()
        count = 0
        for _ in range(100):
            with closing(Lease()) as lease:
                count += lease.network.wait(one())
        return count

    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        assert sum(future.result() for future in [pool.submit(use) for _ in range(8)]) == 800
    assert time.monotonic() - started < 30
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("aiodata-network")]
