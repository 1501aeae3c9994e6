"""Nothing hangs: whatever fails becomes an error where the elements are read, and leaving still works."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import EndedEarlyError
from tests.engine.observing import Watch, numbers, write_files
from tests.programs import Boom, pull_all, pull_all_async

FACES = ["sync", "async"]


def read(ds: Dataset[Any], face: str, limit: int = 1000) -> list[Any]:
    """Give what every pull gives, errors in their places, within a time limit."""
    if face == "sync":
        with ds.iterate() as iterator:
            return pull_all(iterator, limit)

    async def main() -> list[Any]:
        async with asyncio.timeout(30), ds.iterate() as iterator:
            return await pull_all_async(iterator, limit)

    return asyncio.run(main())


# Sources that fail


async def failing_source() -> AsyncIterator[int]:
    for number in range(3):
        yield number
    raise Boom(3)


def failing_plain_source() -> Iterator[int]:
    yield from range(3)
    raise Boom(3)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("buffers", [(), (1,), (2, 3), (64,)])
@pytest.mark.parametrize("source", [failing_source, failing_plain_source])
def test_a_source_that_fails_behind_prefetches_is_an_error(
    source: Callable[[], Any], buffers: tuple[int, ...], face: str
) -> None:
    ds = Dataset.from_generator(source)
    for buffer in buffers:
        ds = ds.prefetch(buffer)
    got = read(ds, face)
    assert got[:3] == [0, 1, 2]
    assert [type(item) for item in got[3:]] == [Boom]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize("buffer", [0, 1, 16])
def test_a_file_that_vanishes_is_an_error(buffer: int, parallel: int | None, face: str, tmp_path: Path) -> None:
    write_files(tmp_path, count=4, lines=5)

    def lines(path: bytes) -> Dataset[bytes]:
        if path.endswith(b"0002.txt"):
            os.unlink(path)
        return TextLineDataset(path)

    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    got = read(files.interleave(lines, cycle_length=2, num_parallel_calls=parallel).prefetch(buffer), face)
    assert sum(isinstance(item, FileNotFoundError) for item in got) == 1
    assert all(isinstance(item, (bytes, FileNotFoundError)) for item in got)


@pytest.mark.parametrize("face", FACES)
def test_an_error_in_a_sources_clean_up_masks_nothing(face: str, caplog: pytest.LogCaptureFixture) -> None:
    async def source() -> AsyncIterator[int]:
        try:
            for number in numbers():
                yield number
        finally:
            raise Boom(9)

    ds = Dataset.from_generator(source).prefetch(2)

    async def main() -> None:
        async with asyncio.timeout(30), ds.iterate() as iterator:
            async for _ in iterator:
                raise KeyError("from the body")

    def plain() -> None:
        with ds.iterate() as iterator:
            for _ in iterator:
                raise KeyError("from the body")

    with pytest.raises(KeyError, match="from the body"):
        plain() if face == "sync" else asyncio.run(main())
    assert any("Boom" in (record.exc_text or "") for record in caplog.records)


# Parallel calls that fail


async def test_an_error_in_one_call_leaves_the_others_to_be_cancelled() -> None:
    cancelled: list[int] = []
    running = asyncio.Event()

    async def work(number: int) -> int:
        if number == 3:
            await running.wait()
            raise Boom(3)
        if number > 3:
            running.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(number)
                raise
        return number

    iterator = Dataset.from_generator(numbers).map(work, num_parallel_calls=2).iterate()
    async with asyncio.timeout(30):
        assert [await anext(iterator) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(Boom):
            await anext(iterator)
        await iterator.aclose()
    assert cancelled
    assert min(cancelled) == 4


async def cancels_itself(number: int) -> int:
    if number == 2:
        raise asyncio.CancelledError
    return number


async def awaits_what_was_cancelled(number: int) -> int:
    if number == 2:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future
    return number


async def cancels_its_own_task(number: int) -> int:
    if number == 2:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)
    return number


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("buffer", [0, 2])
@pytest.mark.parametrize("parallel", [None, 1, 3])
@pytest.mark.parametrize("function", [cancels_itself, awaits_what_was_cancelled])
def test_a_cancellation_of_the_functions_own_is_an_error(
    function: Callable[..., Any], parallel: int | None, buffer: int, face: str
) -> None:
    ds = Dataset.from_generator(lambda: range(5)).map(function, num_parallel_calls=parallel).prefetch(buffer)
    got = read(ds, face)
    errors = [item for item in got if isinstance(item, Exception)]
    assert len(errors) == 1
    assert not isinstance(errors[0], (asyncio.CancelledError, TimeoutError))
    assert got[:2] == [0, 1]


@pytest.mark.parametrize("face", FACES)
def test_a_call_that_cancels_its_own_task_is_an_error(face: str) -> None:
    got = read(Dataset.from_generator(lambda: range(5)).map(cancels_its_own_task, num_parallel_calls=2), face)
    assert got[:2] == [0, 1]
    assert sum(isinstance(item, Exception) for item in got) == 1


# Exceptions that mean something to Python


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("buffer", [0, 2])
@pytest.mark.parametrize("way", ["sequential", "threads", "coroutine", "sequential coroutine", "filter", "flat_map"])
@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
def test_an_exception_that_ends_iterations_does_not_end_the_dataset(
    kind: type[BaseException], way: str, buffer: int, face: str
) -> None:
    def refuse(number: int) -> int:
        if way == "threads":
            time.sleep(0.001)
        if number == 2:
            raise kind
        return number

    async def refuse_later(number: int) -> int:
        return refuse(number)

    ds = Dataset.from_generator(lambda: range(5))
    if way == "filter":
        ds = ds.filter(lambda number: refuse(number) >= 0)
    elif way == "flat_map":
        ds = ds.flat_map(lambda number: Dataset.from_tensors(refuse(number)))
    elif "coroutine" in way:
        ds = ds.map(refuse_later, num_parallel_calls=2 if way == "coroutine" else None)
    else:
        ds = ds.map(refuse, num_parallel_calls=2 if way == "threads" else None)
    got = read(ds.prefetch(buffer), face)
    assert [item for item in got if not isinstance(item, Exception)] == [0, 1, 3, 4]
    assert isinstance(got[2], (kind, RuntimeError))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("buffer", [0, 2])
@pytest.mark.parametrize("way", ["sequential", "threads", "coroutine", "sequential coroutine"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_within_a_function_arrives_and_leaves_nothing(
    kind: type[BaseException], way: str, buffer: int, face: str, child_processes: Callable[[], dict[int, str]]
) -> None:
    def interrupt(number: int) -> int:
        if way == "threads":
            time.sleep(0.001)
        if number == 2:
            raise kind
        return number

    async def interrupt_later(number: int) -> int:
        return interrupt(number)

    ds = Dataset.from_generator(numbers)
    if "coroutine" in way:
        ds = ds.map(interrupt_later, num_parallel_calls=2 if way == "coroutine" else None)
    else:
        ds = ds.map(interrupt, num_parallel_calls=2 if way == "threads" else None)
    watch = Watch(child_processes)
    with pytest.raises(kind):
        read(ds.prefetch(buffer), face)
    watch.nothing_left_soon(seconds=2)


def test_a_worker_that_closes_its_own_run_does_not_wait_for_itself() -> None:
    """As one does that is the last to hold an error, and by its traceback the iterator."""
    held: list[Any] = []

    def close(x: Any) -> Any:
        held.pop().close()
        return x

    iterator = Dataset.range(5).map(close, num_parallel_calls=1).iterate()
    held.append(iterator)
    with pytest.raises(EndedEarlyError, match="closed while it was being read"):
        next(iterator)
    iterator.close()
