"""Where a pipeline runs: on the caller's loop, in a thread, within a running loop, after a fork, in several tasks."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import EndedEarlyError
from tests.engine.observing import FLIGHTS, numbers, pipeline, write_files
from tests.programs import collect, to_list

pytestmark = pytest.mark.timeout(30)
MARCH = str(FLIGHTS / "flights-03.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path)
    return tmp_path


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
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


# Fork


def in_child(work: Callable[[], Any]) -> Any:
    """Run `work` in a forked child; give its result, or what it raised in words. The child must end in time."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        result: Any = "nothing"
        try:
            result = work()
        except BaseException as error:
            result = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        finally:
            os.write(writing, pickle.dumps(result))
            os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + 10
    try:
        while time.monotonic() < deadline:
            if os.waitpid(pid, os.WNOHANG)[0]:
                with open(reading, "rb", closefd=False) as pipe:
                    return pickle.loads(pipe.read())
            time.sleep(0.005)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        raise AssertionError("the child did not end")
    finally:
        os.close(reading)


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_forked_child_reads_after_its_parent_has(kind: str, folder: Path) -> None:
    ds = pipeline(folder, kind)
    parent = [line.text for line in ds]
    assert in_child(lambda: [line.text for line in pipeline(folder, kind)]) == parent
    assert sorted(in_child(lambda: [line.text for line in ds])) == sorted(parent)


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_forked_child_reads_while_its_parent_is_reading(kind: str, folder: Path) -> None:
    with pipeline(folder, kind).iterate() as iterator:
        parent = [next(iterator).text for _ in range(3)]
        child = in_child(lambda: [line.text for line in pipeline(folder, kind)])
        parent += [line.text for line in iterator]
    assert child == parent


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_forked_child_may_use_the_async_face(kind: str, folder: Path) -> None:
    with pipeline(folder, kind).iterate() as iterator:
        next(iterator)
        assert len(in_child(lambda: [line.text for line in asyncio.run(collect(pipeline(folder, kind)))])) == 200


def test_an_iterator_of_the_parent_ends_early_in_the_child(folder: Path) -> None:
    with pipeline(folder, "threads").iterate() as iterator:
        next(iterator)

        def read() -> str:
            with contextlib.suppress(StopIteration):
                for _ in range(1000):
                    next(iterator)
            return "read to the end"

        assert in_child(read).startswith("EndedEarlyError")
        assert sum(1 for _ in iterator) == 199


@pytest.mark.parametrize("end", ["close", "drop"])
def test_ending_the_parents_iterator_in_the_child_does_not_hang(end: str, folder: Path) -> None:
    held = [pipeline(folder, "threads").iterate()]
    next(held[0])

    def work() -> str:
        if end == "close":
            held[0].close()
        held.clear()
        return "ended"

    assert in_child(work) == "ended"
    assert sum(1 for _ in held.pop()) == 199


# Several tasks, several faces


async def test_one_iterator_has_one_face() -> None:
    iterator = TextLineDataset(MARCH).iterate()
    await anext(iterator)
    with pytest.raises(RuntimeError, match="async for"):
        next(iterator)
    await anext(iterator)
    await iterator.aclose()
    other = TextLineDataset(MARCH).iterate()
    next(other)
    with pytest.raises(RuntimeError, match="plain for"):
        await anext(other)
        await anext(other)
    await other.aclose()


@pytest.mark.parametrize("used", ["sync", "async"])
async def test_a_used_iterator_refuses_the_other_face_at_once(used: str) -> None:
    with contextlib.ExitStack() as stack:
        iterator = Dataset.range(10).iterate()
        stack.callback(iterator.close)
        assert (next(iterator) if used == "sync" else await anext(iterator)) == 0
        with pytest.raises(RuntimeError):
            if used == "sync":
                await anext(iterator)
            else:
                next(iterator)


async def test_two_tasks_that_pull_at_once_are_refused() -> None:
    gate = asyncio.Event()

    async def work(number: int) -> int:
        await gate.wait()
        return number

    async with Dataset.range(3).map(work).iterate() as iterator:
        first = asyncio.create_task(anext(iterator))  # type: ignore[arg-type]
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
        async with asyncio.timeout(5):
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
    async with asyncio.timeout(0.3):
        async for _ in pipeline(folder, "coroutines"):
            break
    await asyncio.sleep(0.4)


async def test_each_element_may_have_a_timeout_of_its_own(folder: Path) -> None:
    count = 0
    async with pipeline(folder, "threads").iterate() as iterator:
        with contextlib.suppress(StopAsyncIteration):
            while True:
                async with asyncio.timeout(5):
                    await anext(iterator)
                count += 1
    assert count == 200


async def test_an_iterator_that_is_closed_before_its_first_pull_does_not_look_like_the_end() -> None:
    iterator = Dataset.range(10).prefetch(2).iterate()
    reader = asyncio.create_task(anext(iterator))  # type: ignore[arg-type]
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


# Speed and breath


async def test_the_loop_breathes_while_files_are_opened_and_a_shuffle_is_filled(tmp_path: Path) -> None:
    write_files(tmp_path, count=200, lines=100)
    gaps: list[float] = []
    over = False

    async def heartbeat() -> None:
        last = time.monotonic()
        while not over:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            gaps.append(now - last - 0.01)
            last = now

    beating = asyncio.create_task(heartbeat())
    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    lines = files.interleave(lambda path: TextLineDataset(path), cycle_length=16, num_parallel_calls=16)
    async with lines.map(lambda line: line.split()).shuffle(10_000, seed=1).iterate() as iterator:
        count = 0
        async for _ in iterator:
            count += 1
    over = True
    await beating
    assert count == 20_000
    assert max(gaps) < 0.1


def test_lines_come_about_as_fast_as_from_open(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes((b"x" * 99 + b"\n") * 10_000)

    def builtin() -> float:
        start = time.perf_counter()
        with path.open("rb") as file:
            assert sum(1 for _ in file) == 10_000
        return time.perf_counter() - start

    def ours() -> float:
        start = time.perf_counter()
        assert sum(1 for _ in TextLineDataset(str(path))) == 10_000
        return time.perf_counter() - start

    async def ours_async() -> float:
        start = time.perf_counter()
        count = 0
        async for _ in TextLineDataset(str(path)):
            count += 1
        assert count == 10_000
        return time.perf_counter() - start

    plain = min(builtin() for _ in range(5))
    allowed = 20 * plain + 0.02  # one thread hop a line would be 400,000 us
    assert min(ours() for _ in range(5)) < allowed
    assert min(asyncio.run(ours_async()) for _ in range(5)) < allowed


KILLED = """
import os, sys
from pathlib import Path
from tests.engine.observing import pipeline

count = 0
for line in pipeline(Path(sys.argv[1]), "threads"):
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
print(count)
"""


def test_runs_after_a_killed_one_work(folder: Path) -> None:
    def run(kill_at: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(folder), str(kill_at)]
        return subprocess.run(command, capture_output=True, text=True, timeout=15, cwd=Path(__file__).parents[2])

    assert run(kill_at=20).returncode == -9
    for _ in range(2):
        done = run(kill_at=-1)
        assert (done.returncode, done.stdout, done.stderr) == (0, "200\n", "")


def test_sync_and_async_faces_agree_in_a_thread_of_the_users(folder: Path) -> None:
    found: list[Any] = []

    def work() -> None:
        found.append([line.text for line in to_list(pipeline(folder, "threads"))])
        found.append([line.text for line in asyncio.run(collect(pipeline(folder, "coroutines")))])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(15)
    assert not thread.is_alive()
    assert found[0] == found[1]
    assert len(found[0]) == 200
