"""Where a pipeline runs: on the caller's loop, in a thread, within a running loop, after a fork, in several tasks."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import EndedEarlyError
from tests.engine.observing import FLIGHTS, numbers, pipeline

MARCH = str(FLIGHTS / "flights-03.csv")


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


# A plain `for` within a running loop


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
async def test_a_plain_loop_works_within_a_running_loop(kind: str, folder: Path) -> None:
    texts = [line.text for line in pipeline(folder, kind)]
    assert len(set(texts)) == len(texts) == 200
    assert texts == [line.text async for line in pipeline(folder, kind)]


async def test_plain_and_async_loops_over_files_give_the_file() -> None:
    lines = Path(MARCH).read_bytes().splitlines()
    assert list(TextLineDataset(MARCH)) == lines
    assert [line async for line in TextLineDataset(MARCH)] == lines


def test_an_inner_dataset_of_files_works_in_a_pipeline_that_needed_no_loop() -> None:
    # Only when the function is called does it show that an event loop is needed.
    lines = Path(MARCH).read_bytes().splitlines()
    ds = Dataset.from_generator(lambda: [5, 10]).flat_map(lambda count: TextLineDataset(MARCH).take(count))
    assert list(ds) == lines[:5] + lines[:10]
    mixed = Dataset.range(4).flat_map(
        lambda number: Dataset.range(number) if number % 2 else TextLineDataset(MARCH).take(1)
    )
    assert list(mixed) == [lines[0], 0, lines[0], 0, 1, 2]


# Several tasks, several faces


@pytest.mark.parametrize("used", ["sync", "async"])
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_an_iterator_that_one_face_uses_refuses_the_other_and_goes_on(used: str, kind: str) -> None:
    # What is left of the block in hand may still be given, but no further block is fetched.
    ds: Dataset[Any] = TextLineDataset(MARCH) if kind == "file" else Dataset.range(10_000)
    expected = list(ds)
    iterator = ds.iterate()
    got = [next(iterator) if used == "sync" else await anext(iterator)]
    refused = ""
    try:
        while not refused:
            try:
                got.append(await anext(iterator) if used == "sync" else next(iterator))
            except RuntimeError as error:
                refused = str(error)
        assert "is being read" in refused
        got += list(iterator) if used == "sync" else [element async for element in iterator]
        assert got == expected
    finally:
        await iterator.aclose()


async def test_two_tasks_that_pull_at_once_are_refused() -> None:
    gate = asyncio.Event()

    async def work(number: int) -> int:
        await gate.wait()
        return number

    async with Dataset.range(3).map(work).iterate() as iterator:
        first = asyncio.create_task(anext(iterator))
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await anext(iterator)
        gate.set()
        assert await first == 0
        assert [element async for element in iterator] == [1, 2]


async def test_made_in_one_task_stepped_in_others_closed_in_a_third(folder: Path) -> None:
    async def make() -> Any:
        return await pipeline(folder, "coroutines").iterate().__aenter__()

    async def step(iterator: Any) -> bytes:
        async with asyncio.timeout(30):
            return (await anext(iterator)).text

    async def close(iterator: Any) -> None:
        await iterator.__aexit__(None, None, None)

    iterator = await asyncio.create_task(make())
    texts = {await asyncio.create_task(step(iterator)) for _ in range(20)}
    assert len(texts) == 20
    await asyncio.create_task(close(iterator))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0.005)


async def test_a_break_inside_a_timeout_cancels_nothing_later(folder: Path) -> None:
    async with asyncio.timeout(1):
        async for _ in pipeline(folder, "coroutines"):
            break
    await asyncio.sleep(1.1)


async def test_each_element_may_have_a_timeout_of_its_own(folder: Path) -> None:
    count = 0
    async with pipeline(folder, "threads").iterate() as iterator:
        with contextlib.suppress(StopAsyncIteration):
            while True:
                async with asyncio.timeout(30):
                    await anext(iterator)
                count += 1
    assert count == 200


async def test_an_iterator_that_is_closed_before_its_first_pull_does_not_look_like_the_end() -> None:
    never = asyncio.Event()

    async def source() -> AsyncIterator[int]:
        await never.wait()
        yield 0

    iterator = Dataset.from_generator(source).prefetch(2).iterate()
    reader = asyncio.create_task(anext(iterator))
    await asyncio.sleep(0)  # the reader is waiting in `anext` now
    await iterator.aclose()
    with pytest.raises(EndedEarlyError):
        await reader


# The caller's loop and context


@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize("buffers", [(0,), (2,), (2, 3)])
async def test_coroutines_run_on_the_callers_loop_in_its_context(
    buffers: tuple[int, ...], parallel: int | None
) -> None:
    name = contextvars.ContextVar("name", default="nobody")
    name.set("the caller")
    seen: set[tuple[Any, str, int]] = set()

    async def work(number: int) -> int:
        seen.add((asyncio.get_running_loop(), name.get(), threading.get_ident()))
        return number

    ds = Dataset.range(20).map(work, num_parallel_calls=parallel)
    for buffer in buffers:
        ds = ds.prefetch(buffer)
    assert [element async for element in ds] == list(range(20))
    assert seen == {(asyncio.get_running_loop(), "the caller", threading.get_ident())}


@pytest.mark.parametrize("sort", ["map", "source"])
@pytest.mark.parametrize("reads", [2, 5])
async def test_coroutines_in_inner_datasets_behind_a_prefetch_run_on_the_callers_loop(sort: str, reads: int) -> None:
    loops: set[Any] = set()

    async def work(number: int) -> int:
        loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return int(number)

    def inner(number: int) -> Dataset[Any]:
        def plain() -> Iterator[int]:
            yield from (10 * number, 10 * number + 1)

        async def source() -> Any:
            for value in plain():
                yield await work(value)

        if number < 3:  # at first there is nothing that must not run elsewhere
            return Dataset.from_generator(plain)
        return Dataset.from_generator(source) if sort == "source" else Dataset.from_generator(plain).map(work)

    calls: list[int] = []

    def note(number: Any) -> Any:
        calls.append(int(number))
        return int(number)

    ds = Dataset.range(8).map(note).shuffle(1).flat_map(inner).prefetch(reads).map(lambda value: value)
    assert [value async for value in ds] == [10 * number + offset for number in range(8) for offset in (0, 1)]
    assert loops == {asyncio.get_running_loop()}
    assert set(calls) == set(range(8))


async def test_a_prefetch_goes_on_while_its_reader_holds_the_loop() -> None:
    third = threading.Event()

    def source() -> Iterator[int]:
        for number in numbers():
            if number == 3:
                third.set()
            yield number

    async with Dataset.from_generator(source).map(lambda number: number).prefetch(4).iterate() as iterator:
        assert await anext(iterator) == 0
        assert third.wait(5)  # blocks the loop as a training step would
        assert [await anext(iterator) for _ in range(3)] == [1, 2, 3]


async def test_a_call_that_holds_the_loop_is_reported_once_by_name(caplog: pytest.LogCaptureFixture) -> None:
    def dawdle(number: int) -> int:
        time.sleep(0.12)
        return number

    assert [int(number) async for number in Dataset.range(4).map(dawdle)] == [0, 1, 2, 3]
    warnings = [record.getMessage() for record in caplog.records if record.name == "aiodata"]
    assert len(warnings) == 1
    assert "map(dawdle)" in warnings[0]
    caplog.clear()
    assert [int(number) async for number in Dataset.range(2).map(dawdle).prefetch(2)] == [0, 1]
    assert not [record for record in caplog.records if record.name == "aiodata"]
