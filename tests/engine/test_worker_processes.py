"""A worker process that is killed, or never comes back, ends with an error and leaves no process.

Idle workers wait a while for the next epoch, as long as their dataset is there: tests of what is left let go of it,
and have the run that held it collected.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset
from aiodata.errors import WorkerError
from tests.engine.observing import Watch
from tests.engine.working import NeedsKeyword, full_disk, stuck
from tests.programs import Boom, failing, outcomes, outcomes_async, pull_all
from tests.transforms.blocks import Piece, dataset_of

pytestmark = pytest.mark.timeout(80)  # a process takes a while to start where many do
FACES = ["sync", "async"]
LIMIT = 0.9


# Worker processes


async def named_process(path: Path) -> int:
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.005)
    return int(path.read_text())


async def test_a_killed_worker_is_an_error_soon(tmp_path: Path, child_processes: Callable[[], dict[int, str]]) -> None:
    watch = Watch(child_processes)
    path = tmp_path / "pid"
    ds = Dataset.from_tensors(os.fsencode(path)).map(stuck, num_parallel_calls=1, executor="process")
    iterator = ds.prefetch(1).iterate()
    reader = asyncio.create_task(anext(iterator))
    os.kill(await named_process(path), signal.SIGKILL)
    done, _ = await asyncio.wait({reader}, timeout=10)
    assert done
    with pytest.raises((BrokenExecutor, RuntimeError)) as caught:
        await reader
    assert any("in map(stuck)" in note for note in caught.value.__notes__)
    await asyncio.wait_for(iterator.aclose(), 10)
    del reader, done
    await watch.nothing_left(seconds=1)


@pytest.mark.parametrize("face", FACES)
def test_closing_ends_a_worker_that_never_comes_back(
    face: str, tmp_path: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    path = tmp_path / "pid"
    ds = Dataset.from_tensors(os.fsencode(path)).map(stuck, num_parallel_calls=1, executor="process")

    async def main() -> float:
        iterator = ds.iterate()
        reader = asyncio.create_task(anext(iterator))
        await named_process(path)
        start = time.monotonic()
        await iterator.aclose()
        with contextlib.suppress(RuntimeError):
            await reader
        return time.monotonic() - start

    if face == "async":
        assert asyncio.run(main()) < 15
    else:
        iterator = ds.iterate()
        reader = threading.Thread(target=lambda: pull_all(iterator))
        reader.start()
        asyncio.run(named_process(path))
        start = time.monotonic()
        iterator.close()
        reader.join(30)
        assert not reader.is_alive()
        assert time.monotonic() - start < 15
    watch.nothing_left_soon(seconds=1)


# The limit of a call


def hang_at(x: Any) -> Any:
    """Sleep for ever, ignoring polite signals, for element 5."""
    if x == 5:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    return x


def hang_at_first_three(x: Any) -> Any:
    if x < 3:
        time.sleep(600)
    return x


def hang_at_700_and_refuse_701(x: Any) -> Any:
    if x == 700:
        time.sleep(600)
    if x == 701:
        raise Boom(701)
    return x


def hold_the_interpreter(x: Any) -> Any:
    """For element 1, do what lets no other thread of its process run."""
    if x == 1:
        re.match(r"(a+)+$", "a" * 60 + "b")
    return x


class SlowToLoad:
    """A function that takes longer to load in a process than a call may take there."""

    def __call__(self, x: Any) -> Any:
        return x

    def __reduce__(self) -> Any:
        return load_slowly, ()


def load_slowly() -> SlowToLoad:
    time.sleep(2 * LIMIT)
    return SlowToLoad()


def hang_or_die(x: Any) -> Any:
    if x == 1:
        time.sleep(600)
    if x == 2:
        time.sleep(LIMIT / 2)
        os._exit(3)
    return x


def hang_with_a_child_that_holds_the_pipe(x: Any) -> Any:
    if x == 1:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        time.sleep(600)
    return x


def column_hanging_at_five(x: Any) -> Any:
    if (x == 5).any():
        time.sleep(600)
    return x * 2


def column_refusing_two(x: Any) -> Any:
    if (x == 2).any():
        raise NeedsKeyword(disk="sda")
    return x * 2


def assert_hung(error: object, function: str, element: int) -> None:
    __tracebackhide__ = True
    assert type(error) is TimeoutError, repr(error)
    assert str(error) == f"the call took longer than timeout_seconds={LIMIT}"
    assert error.__notes__ == [f"in map({function}), element {element}"]


def read(ds: Dataset[Any], face: str) -> list[Any]:
    return outcomes(ds) if face == "sync" else asyncio.run(outcomes_async(ds))


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("buffer", [0, 2])
def test_a_process_that_hangs_is_replaced(
    buffer: int, face: str, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    ds = Dataset.range(9).map(hang_at, 2, executor="process", timeout_seconds=LIMIT)
    found = read(ds.prefetch(buffer) if buffer else ds, face)
    assert_hung(found[5], "hang_at", 5)
    assert [x for x in found if not isinstance(x, Exception)] == [0, 1, 2, 3, 4, 6, 7, 8]
    del ds, found
    gc.collect()
    watch.nothing_left_soon(seconds=1)


def test_processes_in_no_order() -> None:
    found = outcomes(Dataset.range(9).map(hang_at, 2, False, executor="process", timeout_seconds=LIMIT))
    (error,) = [x for x in found if isinstance(x, Exception)]
    assert_hung(error, "hang_at", 5)
    assert sorted(x for x in found if x is not error) == [0, 1, 2, 3, 4, 6, 7, 8]


def test_all_processes_hanging_at_once_are_replaced() -> None:
    found = outcomes(Dataset.range(9).map(hang_at_first_three, 3, executor="process", timeout_seconds=LIMIT))
    for element in range(3):
        assert_hung(found[element], "hang_at_first_three", element)
    assert found[3:] == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("calls", [1, 2])
def test_within_a_portion_of_many_elements_the_one_that_hangs_is_named(calls: int) -> None:
    ds = Dataset.range(900).map(hang_at_700_and_refuse_701, calls, executor="process", timeout_seconds=LIMIT)
    with ds.iterate() as iterator:
        found = pull_all(iterator)
        (counters,) = [each for each in iterator.statistics() if each["stage"].startswith("map")]
    assert counters["blocks"] < 400
    assert_hung(found[700], "hang_at_700_and_refuse_701", 700)
    assert type(found[701]) is Boom
    assert found[701].__notes__[-1] == "in map(hang_at_700_and_refuse_701), element 701"
    assert found[:700] + found[702:] == [*range(700), *range(702, 900)]


def test_a_call_that_lets_no_other_thread_run() -> None:
    found = outcomes(Dataset.range(3).map(hold_the_interpreter, 1, executor="process", timeout_seconds=LIMIT))
    assert_hung(found[1], "hold_the_interpreter", 1)
    assert [found[0], found[2]] == [0, 2]


def test_starting_a_process_does_not_count() -> None:
    found = outcomes(Dataset.range(2).map(SlowToLoad(), 2, executor="process", timeout_seconds=LIMIT))
    assert found == [0, 1]


@pytest.mark.parametrize("face", FACES)
def test_closing_after_the_limit_leaves_no_process(face: str, child_processes: Callable[[], dict[int, str]]) -> None:
    watch = Watch(child_processes)
    ds = Dataset.range(3).map(hang_at_first_three, 3, executor="process", timeout_seconds=LIMIT)

    async def main() -> float:
        iterator = ds.iterate()
        with pytest.raises(TimeoutError):
            await anext(iterator)
        start = time.monotonic()
        await iterator.aclose()
        return time.monotonic() - start

    if face == "async":
        assert asyncio.run(main()) < 15
    else:
        iterator = ds.iterate()
        with pytest.raises(TimeoutError):
            next(iterator)
        start = time.monotonic()
        iterator.close()
        assert time.monotonic() - start < 15
    watch.nothing_left_soon(seconds=1)


def test_a_worker_that_dies_while_another_hangs_ends_the_run(child_processes: Callable[[], dict[int, str]]) -> None:
    watch = Watch(child_processes)
    ds = Dataset.range(9).map(hang_or_die, 3, executor="process", timeout_seconds=LIMIT)
    with ds.iterate() as iterator:
        found = pull_all(iterator)  # whether element 0 comes depends on which process has started first
    assert isinstance(found[-1], BrokenExecutor)
    assert str(found[-1]) == "a worker process ended with exit code 3"
    assert found[-1].__notes__ == ["in map(hang_or_die)"]
    assert all(x == 0 or isinstance(x, Exception) for x in found)
    del ds, iterator, found
    gc.collect()
    watch.nothing_left_soon(seconds=1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_pipe_that_a_grandchild_holds_open_hangs_nothing() -> None:
    ds = Dataset.range(2).map(hang_with_a_child_that_holds_the_pipe, 1, executor="process", timeout_seconds=LIMIT)
    with ds.iterate() as iterator:
        assert next(iterator) == 0
        start = time.monotonic()
        (error,) = pull_all(iterator)
    assert time.monotonic() - start < 20
    assert_hung(error, "hang_with_a_child_that_holds_the_pipe", 1)


def test_a_vectorized_call_in_a_process() -> None:
    blocks = dataset_of([Piece("columns", 4), Piece("list", 3, frozenset([0])), Piece("columns", 2)])
    found = outcomes(blocks.map(column_hanging_at_five, 2, executor="process", vectorized=True, timeout_seconds=LIMIT))
    assert found[:4] + found[7:] == [0, 2, 4, 6, 14, 16]
    assert type(found[4]) is Boom
    for element in (5, 6):
        assert type(found[element]) is TimeoutError
        assert found[element].__notes__ == [f"in map(column_hanging_at_five), element {element}, from place {element}"]


@pytest.mark.parametrize("limit", [None, 60])
def test_a_vectorized_call_that_raises_in_a_process_is_made_row_by_row(limit: float | None) -> None:
    ds = failing(Dataset.range(5), 4).map(
        column_refusing_two, 2, executor="process", vectorized=True, timeout_seconds=limit
    )
    found = outcomes(ds)
    assert [found[at] for at in (0, 1, 3)] == [0, 2, 6]
    assert isinstance(found[2], WorkerError)
    assert found[2].__notes__[-1] == "in map(column_refusing_two), element 2"
    assert type(found[4]) is Boom


SCRIPT = """
import time
from aiodata import Dataset

def wait(x):
    if x == 1:
        time.sleep(600)
    return int(x)

if __name__ == "__main__":
    iterator = Dataset.range(3).map(wait, 2, executor="process"{limit}).iterate()
    print(next(iterator))
"""


@pytest.mark.parametrize("limit", ["", ", timeout_seconds=60"])
def test_no_process_holds_up_the_interpreters_end(limit: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.format(limit=limit))
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


# What a worker cannot do


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs to wait for a process without reaping it")
async def test_a_worker_that_dies_between_two_requests_is_replaced() -> None:
    dead = asyncio.Event()

    async def source() -> AsyncIterator[int]:
        yield 0
        await dead.wait()
        yield 1

    async with Dataset.from_generator(source).map(process_id, 1, executor="process").iterate() as iterator:
        first = await anext(iterator)
        os.kill(first, signal.SIGKILL)
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        dead.set()
        second = await anext(iterator)
    assert len({os.getpid(), first, second}) == 3


def process_id(x: Any) -> Any:
    return os.getpid()


class Unwelcome:
    """A function that arrives nowhere."""

    def __reduce__(self) -> Any:
        return refuse_to_arrive, ()

    def __call__(self, x: Any) -> Any:
        return x


def refuse_to_arrive() -> None:
    raise Boom("not here")


def test_a_function_that_a_worker_cannot_load_ends_the_run() -> None:
    with Dataset.range(6).map(Unwelcome(), 2, executor="process").iterate() as iterator:
        found = pull_all(iterator)
    (error,) = found
    assert isinstance(error, BrokenExecutor)
    assert str(error) == "a worker process could not begin: Boom: not here"
    assert error.__notes__ == ["in map(Unwelcome)"]


def test_an_input_that_failed_is_not_sent() -> None:
    ds = Dataset.range(3).map(full_disk).map(abs, 2, executor="process")
    found = outcomes(ds)
    assert [found[0], found[2]] == [0, 2]
    assert type(found[1]) is NeedsKeyword
    assert found[1].__notes__ == ["in map(full_disk), element 1"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_within_a_worker_arrives(
    kind: type[BaseException], child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    with pytest.raises(kind):
        outcomes(Dataset.range(3).map(Interrupt(kind), 2, executor="process"))
    gc.collect()  # the traceback's frames hold the dataset
    watch.nothing_left_soon(seconds=2)


class Interrupt:
    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def __call__(self, x: Any) -> Any:
        raise self.kind


def test_a_loop_that_is_closed_under_an_open_iterator_leaves_no_process(
    child_processes: Callable[[], dict[int, str]],
) -> None:
    watch = Watch(child_processes)
    loop = asyncio.new_event_loop()
    iterator = Dataset.range(900).map(abs, 2, executor="process").iterate()
    assert loop.run_until_complete(anext(iterator)) == 0
    loop.run_until_complete(cancel_everything())
    loop.close()
    iterator.close()
    del iterator
    gc.collect()
    watch.nothing_left_soon(seconds=2)


async def cancel_everything() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
