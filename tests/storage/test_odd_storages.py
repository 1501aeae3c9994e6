"""Whatever a storage of a user's own does, readers get bytes or an error, and all ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

import aiodata
from aiodata import Dataset, TextLineDataset
from aiodata.errors import EndedEarlyError, RemoteError
from aiodata.storage import Answer, FileInfo, Storage
from aiodata.storage.transfer.network import Lease, Limits
from tests.programs import outcomes, to_list
from tests.storage.odd_storage import URL, Odd, content, download, good, pieces
from tests.storage.remote_files import LINES, TEXT, limited, quick
from tests.storage.scripted import registered

# Odd storages


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        BaseException("base"),
        GeneratorExit(),
        StopAsyncIteration(),
        RuntimeError("x"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("where", ["open", "pieces"])
def test_whatever_a_storage_raises_reaches_the_reader(error: BaseException, where: str) -> None:
    async def opening(offset: int, length: int | None) -> Answer:
        if where == "open":
            raise error
        return Answer(FileInfo(len(TEXT)), pieces(TEXT[:10], error), offset)

    with closing(Lease()) as lease:
        with registered("odd", lambda: Odd(opening)):
            caught = raised(lambda: aiodata.read_file(URL, quick(max_attempts=2)))
            assert caught is error or isinstance(caught, (RemoteError, RuntimeError))
            assert raised(lambda: to_list(limited(TextLineDataset(URL).prefetch(1), max_attempts=2))) is not None
        with registered("odd", lambda: Odd(good)):
            assert to_list(TextLineDataset(URL)) == LINES  # the network goes on
        assert lease.network.limits.held == 0


def raised(call: Callable[[], object]) -> BaseException | None:
    """Give what a call raises, also if it is no ordinary error."""
    try:
        call()
    except BaseException as error:
        return error
    return None


def test_a_storage_that_cannot_be_made() -> None:
    def make() -> Storage:
        raise LookupError("no settings")

    with registered("odd", make), pytest.raises(LookupError, match="no settings"):
        aiodata.read_file(URL)
    with registered("odd", make):
        assert [type(each) for each in outcomes(TextLineDataset([URL, URL]))] == [LookupError, LookupError]


def test_answers_that_are_none() -> None:
    async def opening(offset: int, length: int | None) -> Any:
        return None

    with registered("odd", lambda: Odd(opening)), pytest.raises(AttributeError):
        aiodata.read_file(URL)


async def test_an_answer_may_begin_before_what_was_asked_for_and_end_behind_it() -> None:
    async def opening(offset: int, length: int | None) -> Answer:
        first = max(0, offset - 5)
        end = len(TEXT) if length is None else offset + length + 5
        return Answer(FileInfo(len(TEXT)), pieces(b"", TEXT[first : first + 3], b"", TEXT[first + 3 : end]), first)

    reading = download(Odd(opening), chunk_bytes=17, read_ahead_bytes=60)
    assert await content(reading) == TEXT
    assert await reading.range(30, 90) == TEXT[30:90]


async def test_an_answer_that_begins_behind_what_was_asked_for() -> None:
    async def opening(offset: int, length: int | None) -> Answer:
        return Answer(FileInfo(len(TEXT)), pieces(b"x"), offset + 1)

    reading = download(Odd(opening), max_attempts=2)
    with pytest.raises(RemoteError, match="the answer begins at byte 1, not 0"):
        await content(reading)
    await reading.aclose()


async def test_an_unsized_answer_in_the_middle_must_reach_the_end_that_is_known() -> None:
    async def opening(offset: int, length: int | None) -> Answer:
        storage_calls.append(offset)
        if len(storage_calls) == 2:
            return Answer(FileInfo(None, "tag"), pieces(TEXT[:150]), 0, is_range=False)
        return await good(offset, length)

    storage_calls: list[int] = []
    reading = download(Odd(opening), chunk_bytes=100, read_ahead_bytes=100)
    assert await content(reading) == TEXT
    assert storage_calls[:4] == [0, 100, 150, 200]


@pytest.mark.parametrize("where", ["open", "pieces", "aclose"])
def test_a_storage_that_swallows_being_cancelled_does_not_hold_up_the_end(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("aiodata.storage.transfer.network.CLOSE_SECONDS", 0.3)
    entered = threading.Event()
    let_go = asyncio.Event()

    async def stuck() -> None:
        entered.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    class Body:
        def __aiter__(self) -> Body:
            return self

        async def __anext__(self) -> bytes:
            if where == "pieces":
                await stuck()
            return b"line\n"

        async def aclose(self) -> None:
            if where == "aclose":
                await stuck()

    async def opening(offset: int, length: int | None) -> Answer:
        if where == "open":
            await stuck()
        return Answer(FileInfo(20_000), Body(), offset)

    async def main() -> None:
        async with Dataset.from_tensor_slices([URL]).interleave(TextLineDataset, num_parallel_calls=1).iterate() as one:
            pull = asyncio.create_task(anext(one))
            await asyncio.to_thread(entered.wait, 10) if where != "aclose" else await pull
        if not pull.done():
            with pytest.raises(EndedEarlyError):
                await pull

    with closing(Lease()) as lease:
        started = time.monotonic()
        with registered("odd", lambda: Odd(opening)):
            asyncio.run(main())
        assert time.monotonic() - started < 15

        async def end() -> None:
            let_go.set()

        lease.network.wait(end())
    assert "requests do not end although they have been cancelled" in caplog.text


async def test_pieces_that_raise_when_they_are_cancelled() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x" * 10
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("in the clean-up")

    async def opening(offset: int, length: int | None) -> Answer:
        return Answer(FileInfo(1000), body(), offset)

    limits = Limits()
    reading = download(Odd(opening), limits)
    assert await reading.take(10) == b"x" * 10
    await reading.aclose()
    assert limits.held == 0


async def test_two_ends_at_once_and_reading_after_the_end() -> None:
    limits = Limits()
    reading = download(Odd(good), limits, chunk_bytes=10)
    await reading.take(1)
    await asyncio.gather(reading.aclose(), reading.aclose(), reading.aclose())
    assert limits.held == 0
    with pytest.raises(EndedEarlyError, match="odd://host/a: the file has been closed"):
        await reading.take(1)


async def test_an_error_is_raised_again_by_who_asks_again() -> None:
    async def opening(offset: int, length: int | None) -> Answer:
        raise FileNotFoundError("none")

    reading = download(Odd(opening))
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            await reading.take(10)
    assert not reading.is_over
    await reading.aclose()


def test_the_networks_own_loop_cannot_wait_for_itself() -> None:
    async def opening(offset: int, length: int | None) -> Answer:
        return Answer(FileInfo(None), pieces(aiodata.read_file(URL)), 0)

    with registered("odd", lambda: Odd(opening)), pytest.raises(RuntimeError, match="await `aread_file` there"):
        aiodata.read_file(URL)


@pytest.mark.parametrize("how", ["fails", "hangs"])
async def test_the_end_of_an_answer_that_has_come_whole_changes_nothing(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiodata.storage.protocol.CLOSE_SECONDS", 0.01)

    class Body:
        def __init__(self, data: bytes) -> None:
            self.parts = [data]

        def __aiter__(self) -> Body:
            return self

        async def __anext__(self) -> bytes:
            if self.parts:
                return self.parts.pop()
            raise StopAsyncIteration

        async def aclose(self) -> None:
            if how == "fails":
                raise LookupError
            await asyncio.Event().wait()

    async def opening(offset: int, length: int | None) -> Answer:
        return Answer(FileInfo(len(TEXT)), Body(TEXT[offset : offset + (length or len(TEXT))]), offset)

    assert await content(download(Odd(opening), chunk_bytes=100)) == TEXT


async def test_small_pieces_of_a_server_without_ranges_are_not_waited_for_one_by_one() -> None:
    async def opening(offset: int, length: int | None) -> Answer:
        return Answer(FileInfo(None), pieces(*[bytes(100)] * 1000), 0, is_range=False)

    reading = download(Odd(opening), chunk_bytes=100, read_ahead_bytes=0)
    started = time.monotonic()
    assert await content(reading) == bytes(100_000)
    assert time.monotonic() - started < 10  # instead of 20 ms for each


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    released = threading.Event()
    yield released
    released.set()


def test_a_thread_that_hangs_does_not_hold_up_the_end(
    hanging: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up of a name cannot be interrupted, and may take half a minute."""
    monkeypatch.setattr("aiodata.storage.transfer.network.CLOSE_SECONDS", 0.2)
    entered = threading.Event()

    def wait() -> None:
        entered.set()
        hanging.wait(30)

    async def opening(offset: int, length: int | None) -> Answer:
        await asyncio.to_thread(wait)
        return await good(offset, length)

    async def main() -> None:
        async with TextLineDataset(URL).iterate() as iterator:
            pull = asyncio.create_task(anext(iterator))
            await asyncio.to_thread(entered.wait, 10)
            pull.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pull

    started = time.monotonic()
    with registered("odd", lambda: Odd(opening)):
        asyncio.run(main())
    assert time.monotonic() - started < 10
    hanging.set()
