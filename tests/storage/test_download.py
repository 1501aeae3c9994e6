"""One file in many requests: the same bytes whatever its size, the limits and the trouble, and whatever storages do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aiodata
from aiodata.errors import RemoteError
from aiodata.storage import Answer, FileInfo, Trouble
from aiodata.storage.transfer.network import Limits
from tests.storage.odd_storage import Odd, content, download, pieces
from tests.storage.remote_files import quick
from tests.virtual_time import VirtualLoop

# Any size, any limits, any trouble


class Script:
    """A server of bytes with trouble, by numbers: how it answers each request."""

    def __init__(self, data: bytes, steps: list[tuple[str, int]], has_ranges: bool, has_size: bool) -> None:
        self.data, self.steps, self.has_ranges, self.has_size = data, list(steps), has_ranges, has_size

    async def __call__(self, offset: int, length: int | None) -> Answer:
        await asyncio.sleep(0)
        kind, number = self.steps.pop(0) if self.steps else ("good", 3)
        if kind == "refuse":
            raise Trouble("busy")
        first = offset if self.has_ranges and kind != "ignore" else 0
        end = len(self.data) if length is None or first != offset or not self.has_ranges else offset + length
        body = self.data[first:end]
        info = FileInfo(len(self.data) if self.has_size or self.has_ranges else None, "tag")
        cut = len(body) * number // 10 if kind in ("cut", "break") else len(body)
        size = max(1, number)
        parts: list[bytes | BaseException] = [body[at : min(at + size, cut)] for at in range(0, cut, size)]
        if kind == "break" or (kind == "cut" and not self.has_size and not self.has_ranges):
            parts.append(ConnectionResetError("reset"))
        return Answer(info, pieces(b"", *parts), first, self.has_ranges and kind != "ignore")


@settings(max_examples=100, deadline=None)
@given(
    size=st.integers(0, 120),
    chunk=st.integers(1, 50),
    ahead=st.integers(0, 100),
    memory=st.integers(0, 100),
    offset=st.integers(0, 130),
    steps=st.lists(
        st.tuples(st.sampled_from(["good", "refuse", "cut", "break", "ignore"]), st.integers(0, 9)), max_size=12
    ),
    has_ranges=st.booleans(),
    has_size=st.booleans(),
)
def test_any_file_is_read_by_any_steps(
    size: int,
    chunk: int,
    ahead: int,
    memory: int,
    offset: int,
    steps: list[tuple[str, int]],
    has_ranges: bool,
    has_size: bool,
) -> None:
    data = bytes(range(size))

    async def main() -> None:
        limits = Limits()
        options = {"chunk_bytes": chunk, "read_ahead_bytes": ahead, "memory_bytes": memory, "max_attempts": 100}
        waits = {"first_wait_seconds": 0, "max_wait_seconds": 0}
        reading = download(Odd(Script(data, steps, has_ranges, has_size)), limits, **options, **waits)
        try:
            got = await reading.begin(offset, 7)
            got += await content(reading)
            assert got == data[offset:]
            assert reading.is_over
        finally:
            await reading.aclose()
        assert limits.held == 0
        assert (vars(limits)["_busy"], vars(limits)["_waiting"]) == ({}, {})
        whole = download(Odd(Script(data, steps, has_ranges, has_size)), limits, **options, **waits)
        assert await whole.rest() == data
        await whole.aclose()
        assert limits.held == 0
        begin, end = sorted((offset, chunk * 2))
        apart = download(Odd(Script(data, steps, has_ranges, has_size)), limits, **options, **waits)
        assert await apart.range(begin, end) == data[begin:end]
        assert limits.held == 0

    asyncio.run(main())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_file_is_read_from_a_real_server(data: st.DataObject) -> None:
    pytest.importorskip("aiohttp")
    from tests.servers import http_faults as faults
    from tests.servers.http import HttpServer

    size = data.draw(st.integers(0, 3000))
    place = st.integers(0, size)
    fault = st.one_of(
        st.sampled_from([faults.Normal(), faults.ResetBefore(), faults.CloseBefore(), faults.IgnoreRange()]),
        st.sampled_from([faults.Chunked(), faults.Compressed(), faults.Garbage(), faults.Status(503)]),
        st.builds(faults.CutAt, place, st.just(0.0)),
        st.builds(faults.ResetAt, place, st.just(0.0)),
        st.builds(faults.WrongByteAt, place),
    )
    with HttpServer() as server:
        server.files["/a"] = bytes(index % 251 for index in range(size))
        server.ranges = data.draw(st.booleans())
        server.digests = "content-digest"
        server.script("/a", data.draw(st.lists(fault, max_size=8)))
        options = quick(
            chunk_bytes=data.draw(st.integers(300, 4000)),
            read_ahead_bytes=data.draw(st.integers(0, 5000)),
            max_attempts=20,
        )
        try:
            assert aiodata.read_file(server.url + "/a", options) == server.files["/a"]
        except RemoteError as error:
            # No other error: damage that has been given, or that makes another file of what comes again.
            allowed = ("what came has been read by now", "the file has been replaced")
            assert any(text in str(error) for text in allowed)  # noqa: PT017
        server.wait_for_no_connections()


async def test_read_ahead_grows_to_its_limit() -> None:
    gate = asyncio.Event()

    async def opening(offset: int, length: int | None) -> Answer:
        if offset:
            await gate.wait()
        return Answer(FileInfo(1000), pieces(bytes(length or 0)), offset)

    storage = Odd(opening)
    reading = download(storage, chunk_bytes=10, read_ahead_bytes=40)
    assert await reading.take(10) == bytes(10)
    await asyncio.sleep(0)
    assert [offset for offset, _ in storage.opened] == [0, 10, 20]
    gate.set()
    assert await content(reading) == bytes(990)
    assert len(storage.opened) == 100
    await reading.aclose()


# How much is taken at once


def take_first(every: float, size: int, total: int = 800) -> tuple[int, float]:
    """Take 800 bytes of a file that comes at some pace; give how many they were, and how long that took."""

    async def paced() -> AsyncIterator[bytes]:
        for at in range(0, total, size):
            yield bytes(min(size, total - at))
            await asyncio.sleep(every)

    async def opening(offset: int, length: int | None) -> Answer:
        return Answer(FileInfo(total), paced(), offset)

    async def main() -> tuple[int, float]:
        reading = download(Odd(opening))
        begun = asyncio.get_running_loop().time()
        got = await reading.take(800)
        seconds = asyncio.get_running_loop().time() - begun
        await reading.aclose()
        return len(got), seconds

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def test_what_comes_fast_is_taken_together() -> None:
    size, seconds = take_first(0.015, 160)
    assert size == 800
    assert 0.05 < seconds < 0.2


def test_what_comes_slowly_is_not_waited_for_long() -> None:
    size, seconds = take_first(0.015, 10)
    assert size in (10, 20)
    assert seconds < 0.1


async def test_a_whole_file_is_not_given_in_parts() -> None:
    gate = asyncio.Event()

    async def halves() -> AsyncIterator[bytes]:
        yield b"one "
        await gate.wait()
        yield b"two"

    async def opening(offset: int, length: int | None) -> Answer:
        return Answer(FileInfo(7), halves(), offset)

    reading = download(Odd(opening))
    task = asyncio.create_task(reading.rest())
    done, _ = await asyncio.wait([task], timeout=0.1)
    assert not done
    gate.set()
    assert await task == b"one two"
    await reading.aclose()
