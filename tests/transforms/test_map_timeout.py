"""`map` with `timeout_seconds`: a call that takes too long is an error in its element's place, and reading goes on."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from tests.engine.observing import Watch
from tests.programs import Boom, assert_same, i64, outcomes, outcomes_async, pull_all
from tests.transforms.blocks import Piece, dataset_of
from tests.virtual_time import VirtualLoop

FACES = ["sync", "async"]
LIMIT = 0.6
SOME_HOURS = 10_000.0


class Hanging:
    """A function that waits, for some elements, until it is released."""

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.released = threading.Event()
        self.calls: list[int] = []
        self.threads: list[threading.Thread] = []

    def __call__(self, x: Any) -> Any:
        self.calls.append(int(x))
        if int(x) in self.bad:
            self.threads.append(threading.current_thread())
            self.released.wait()
        return x

    @property
    def alive(self) -> list[threading.Thread]:
        return [thread for thread in self.threads if thread.is_alive()]


@pytest.fixture
def hanging() -> Iterator[Callable[..., Hanging]]:
    """Return what makes hanging functions; they are released, and their threads have ended, when the test has."""
    made: list[Hanging] = []

    def make(*bad: int) -> Hanging:
        made.append(Hanging(*bad))
        return made[-1]

    yield make
    for function in made:
        function.released.set()
        for thread in function.threads:
            thread.join(30)
            assert not thread.is_alive()


def read(ds: Dataset[Any], face: str) -> list[Any]:
    return outcomes(ds) if face == "sync" else asyncio.run(outcomes_async(ds))


def assert_timed_out(error: Any, element: int, limit: float = LIMIT, stage: str = "map(", place: str = "") -> None:
    __tracebackhide__ = True
    assert type(error) is TimeoutError, repr(error)
    assert str(error) == f"the call took longer than timeout_seconds={limit:g}"
    (note,) = error.__notes__
    assert note.startswith(f"in {stage}")
    assert note.endswith(f", element {element}" + (f", from {place}" if place else ""))


def assert_only_timed_out(found: list[Any], count: int, *bad: int, limit: float = LIMIT) -> None:
    """Check that the numbers below `count` came, in order, with an error in the place of each that is in `bad`."""
    __tracebackhide__ = True
    assert len(found) == count
    for element in bad:
        assert_timed_out(found[element], element, limit)
    assert_same([x for at, x in enumerate(found) if at not in bad], i64(*(x for x in range(count) if x not in bad)))


# Arguments


@pytest.mark.parametrize("limit", [True, np.True_, "1", b"1", [1.0], 1j, np.array([1.0])])
def test_what_is_no_number_is_refused_at_the_call(limit: Any) -> None:
    with pytest.raises(TypeError, match="map: timeout_seconds must be a number of seconds, not"):
        Dataset.range(3).map(abs, timeout_seconds=limit)


@pytest.mark.parametrize("limit", [0, -1, 0.0, -0.5, float("nan"), float("inf"), -float("inf"), np.nan, 10**400])
def test_what_is_no_limit_is_refused_at_the_call(limit: Any) -> None:
    with pytest.raises(ValueError, match="map: timeout_seconds must be a positive, finite number of seconds, not"):
        Dataset.range(3).map(abs, timeout_seconds=limit)


@pytest.mark.parametrize("limit", [None, 60, 60.5, np.float32(60), np.int64(60), Fraction(601, 10), 1e12])
@pytest.mark.parametrize("calls", [None, 2])
def test_any_positive_number_is_a_limit(calls: int | None, limit: Any) -> None:
    assert_same(outcomes(Dataset.range(3).map(abs, calls, timeout_seconds=limit)), i64(0, 1, 2))


def test_the_limit_is_no_part_of_the_pipelines_identity() -> None:
    def make(limit: float | None) -> Dataset[Any]:
        return Dataset.range(5).map(abs, timeout_seconds=limit)

    assert repr(make(None)) == repr(make(3)) == repr(make(4))
    with make(60).iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    for limit in (None, 70):
        with make(limit).iterate(state) as iterator:
            assert_same(list(iterator), i64(1, 2, 3, 4))


# Within the limit


async def later(x: Any) -> Any:
    await asyncio.sleep(0)
    return x


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("deterministic", [None, False])
@pytest.mark.parametrize("calls", [None, 1, 3, aiodata.AUTOTUNE])
@pytest.mark.parametrize("function", [abs, later])
def test_in_time_nothing_changes(function: Any, calls: int | None, deterministic: bool | None, face: str) -> None:
    ds = Dataset.range(300).map(function, calls, deterministic, timeout_seconds=60)
    assert_same(sorted(read(ds, face)), i64(*range(300)))


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("coroutine", [False, True])
def test_errors_in_time_stay_what_they_are(coroutine: bool, calls: int | None, face: str) -> None:
    def check(x: Any) -> Any:
        if x == 2:
            raise TimeoutError("my own")
        if x == 4:
            raise StopIteration
        return [x]

    async def check_later(x: Any) -> Any:
        return check(x)

    found = read(Dataset.range(6).map(check_later if coroutine else check, calls, timeout_seconds=60), face)
    assert_same(found[2], TimeoutError("my own"))
    assert isinstance(found[4], RuntimeError)
    assert found[2].__notes__ == [f"in map({'check_later' if coroutine else 'check'}), element 2"]
    assert_same([x for x in found if isinstance(x, tuple)], [(x,) for x in i64(0, 1, 3, 5)])


def test_without_parallel_calls_it_is_called_when_asked_and_never_where_the_pipeline_runs() -> None:
    seen: list[int] = []
    threads: set[threading.Thread] = set()

    def note(x: Any) -> Any:
        seen.append(int(x))
        threads.add(threading.current_thread())
        return x

    ds = Dataset.range(100).map(note, timeout_seconds=60)
    assert_same(outcomes(ds.take(3)), i64(0, 1, 2))
    assert seen == [0, 1, 2]
    (thread,) = threads
    assert thread.name == "aiodata-map"
    assert thread.daemon


def test_threads_are_used_again() -> None:
    threads: set[int] = set()

    def note(x: Any) -> Any:
        threads.add(threading.get_ident())
        return x

    assert len(outcomes(Dataset.range(900).map(note, 3, timeout_seconds=60))) == 900
    assert len(threads) <= 3


# Coroutines


@pytest.mark.parametrize("deterministic", [None, False])
@pytest.mark.parametrize("calls", [None, 1, 3])
def test_a_coroutine_that_waits_for_ever(calls: int | None, deterministic: bool | None) -> None:
    cancelled: list[int] = []

    async def wait(x: Any) -> Any:
        try:
            await (asyncio.Event().wait() if x == 5 else asyncio.sleep(SOME_HOURS / 2))
        except asyncio.CancelledError:
            cancelled.append(int(x))
            raise
        return x

    ds = Dataset.range(12).map(wait, calls, deterministic, timeout_seconds=SOME_HOURS)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        found = runner.run(outcomes_async(ds))
        assert len(asyncio.all_tasks(runner.get_loop())) == 0
    assert cancelled == [5]
    if deterministic is False:
        (error,) = [x for x in found if isinstance(x, TimeoutError)]
        assert_timed_out(error, 5, SOME_HOURS)
        assert_same(sorted(x for x in found if x is not error), i64(*range(5), *range(6, 12)))
    else:
        assert_only_timed_out(found, 12, 5, limit=SOME_HOURS)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("buffer", [0, 2])
@pytest.mark.parametrize("calls", [None, 3])
def test_a_coroutine_on_either_face(calls: int | None, buffer: int, face: str) -> None:
    async def wait(x: Any) -> Any:
        if x in (0, 5, 6):
            await asyncio.Event().wait()
        return x

    ds = Dataset.range(9).map(wait, calls, timeout_seconds=LIMIT)
    assert_only_timed_out(read(ds.prefetch(buffer) if buffer else ds, face), 9, 0, 5, 6)


def test_all_coroutines_hanging_at_once_do_not_lower_the_parallelism() -> None:
    together = 0

    async def wait(x: Any) -> Any:
        nonlocal together
        if x < 3:
            await asyncio.Event().wait()
        together += 1
        while together < 3:  # until three are under way
            await asyncio.sleep(1)
        return x

    ds = Dataset.range(6).map(wait, 3, timeout_seconds=SOME_HOURS)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert_only_timed_out(runner.run(outcomes_async(ds)), 6, 0, 1, 2, limit=SOME_HOURS)


async def test_a_coroutine_that_swallows_its_cancellation_is_cancelled_again() -> None:
    swallowed: list[str] = []

    async def stubborn(x: Any) -> Any:
        if x == 1:
            for _ in range(5):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    swallowed.append("")
            raise Boom(1)
        return x

    start = time.monotonic()
    found = await outcomes_async(Dataset.range(3).map(stubborn, 2, timeout_seconds=LIMIT))
    assert_only_timed_out(found, 3, 1)
    assert len(swallowed) == 5
    assert time.monotonic() - start < 15


async def test_a_coroutine_that_cannot_be_cancelled_is_left_behind() -> None:
    released = False
    tasks: list[asyncio.Task[Any]] = []

    async def stubborn(x: Any) -> Any:
        if x == 1:
            task = asyncio.current_task()
            assert task is not None
            tasks.append(task)
            while not released:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)
            raise Boom(1)
        return x

    async with asyncio.timeout(30):
        found = await outcomes_async(Dataset.range(3).map(stubborn, timeout_seconds=LIMIT))
        assert_only_timed_out(found, 3, 1)
        (task,) = tasks
        assert not task.done()  # the iterator is closed all the same
        released = True
        await asyncio.wait({task})


async def test_closing_cancels_a_coroutine_within_its_limit() -> None:
    begun = asyncio.Event()
    ended: list[int] = []

    async def wait(x: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(int(x))

    iterator = Dataset.range(9).map(wait, 2, timeout_seconds=SOME_HOURS).iterate()
    reader = asyncio.create_task(anext(iterator))
    async with asyncio.timeout(30):
        await begun.wait()
        await iterator.aclose()
        with pytest.raises(RuntimeError):
            await reader
    assert ended
    assert ended == sorted(range(len(ended)))


async def test_a_coroutine_that_cancels_its_own_task_is_an_error() -> None:
    async def cancel(x: Any) -> Any:
        if x == 1:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)
        return x

    for calls in (None, 2):
        found = await outcomes_async(Dataset.range(3).map(cancel, calls, timeout_seconds=60))
        assert_same(found, [np.int64(0), RuntimeError, np.int64(2)])
        assert found[1].__notes__ == ["in map(cancel), element 1"]


# Threads


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("buffer", [0, 2])
@pytest.mark.parametrize("calls", [None, 1, 3])
def test_a_thread_that_waits_for_ever(
    calls: int | None, buffer: int, face: str, hanging: Callable[..., Hanging]
) -> None:
    function = hanging(5)
    ds = Dataset.range(12).map(function, calls, timeout_seconds=LIMIT)
    assert_only_timed_out(read(ds.prefetch(buffer) if buffer else ds, face), 12, 5)
    assert sorted(function.calls) == list(range(12))
    assert len(function.alive) == 1  # the iterator is closed; nobody waited for it


@pytest.mark.parametrize("face", FACES)
def test_threads_in_no_order(face: str, hanging: Callable[..., Hanging]) -> None:
    function = hanging(2, 5)
    found = read(Dataset.range(12).map(function, 3, False, timeout_seconds=LIMIT), face)
    errors = [x for x in found if isinstance(x, TimeoutError)]
    for error, element in zip(sorted(errors, key=lambda error: error.__notes__), (2, 5), strict=True):
        assert_timed_out(error, element)
    assert_same(sorted(x for x in found if not isinstance(x, Exception)), i64(0, 1, 3, 4, *range(6, 12)))


@pytest.mark.parametrize("face", FACES)
def test_all_threads_hanging_at_once_do_not_lower_the_parallelism(face: str, hanging: Callable[..., Hanging]) -> None:
    wait = hanging(0, 1, 2)
    together = threading.Barrier(3)

    def function(x: Any) -> Any:
        if x >= 3:
            together.wait(10)  # until three are under way
        return wait(x)

    ds = Dataset.range(6).map(function, 3, timeout_seconds=0.5)
    assert_only_timed_out(read(ds, face), 6, 0, 1, 2, limit=0.5)
    assert len(wait.alive) == 3


@pytest.mark.parametrize("calls", [1, 2])
def test_within_a_portion_of_many_elements_the_one_that_hangs_is_named(
    calls: int, hanging: Callable[..., Hanging]
) -> None:
    wait = hanging(1000, 1001, 1003, 2400)

    def function(x: Any) -> Any:
        if x == 1002:
            wait.calls.append(1002)
            raise Boom(1002)
        return wait(x)

    ds = Dataset.range(2500).map(function, calls, timeout_seconds=LIMIT)
    with ds.iterate() as iterator:
        found = pull_all(iterator, limit=3000)
        counters = {each["stage"]: each for each in iterator.statistics()}["map(function)"]
    assert counters["blocks"] < 500
    assert_same(found[1002], Boom(1002))
    assert found[1002].__notes__ == ["in map(function), element 1002"]
    found[1002] = np.int64(1002)
    assert_only_timed_out(found, 2500, 1000, 1001, 1003, 2400)
    assert sorted(wait.calls) == list(range(2500))  # none was computed twice


def test_what_comes_after_the_limit_is_dropped(
    hanging: Callable[..., Hanging], caplog: pytest.LogCaptureFixture
) -> None:
    wait = hanging(1, 3)

    def function(x: Any) -> Any:
        wait(x)
        if x == 1:
            raise Boom(1)
        return x

    with Dataset.range(6).map(function, 2, timeout_seconds=LIMIT).iterate() as iterator:
        found = [next(iterator)]
        with pytest.raises(TimeoutError):
            next(iterator)
        wait.released.set()
        for thread in wait.threads:
            thread.join(30)
        found += [x for x in pull_all(iterator) if not isinstance(x, TimeoutError)]
    assert 2 in found
    assert_same(found, i64(*(int(x) for x in found)))
    assert caplog.records == []


@pytest.mark.parametrize("face", FACES)
def test_a_call_that_ends_after_its_limit_is_late_even_if_nobody_looked(face: str) -> None:
    # The loop is held all the while, so no timer can run.
    def function(x: Any) -> Any:
        if x == 1:
            time.sleep(0.8)
        return x

    async def main() -> list[Any]:
        async with Dataset.range(3).map(function, 2, timeout_seconds=LIMIT).iterate() as iterator:
            found = [await anext(iterator)]
            time.sleep(1.8)
            with pytest.raises(TimeoutError) as caught:
                await anext(iterator)
            assert_timed_out(caught.value, 1)
            return [*found, await anext(iterator)]

    if face == "async":
        assert_same(asyncio.run(main()), i64(0, 2))
    else:
        assert_only_timed_out(outcomes(Dataset.range(3).map(function, timeout_seconds=LIMIT)), 3, 1)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("coroutine", [False, True])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_within_a_function_arrives(
    kind: type[BaseException], coroutine: bool, calls: int | None, face: str, child_processes: Callable[[], Any]
) -> None:
    def interrupt(x: Any) -> Any:
        if x == 1:
            raise kind
        return x

    async def interrupt_later(x: Any) -> Any:
        return interrupt(x)

    watch = Watch(child_processes)
    with pytest.raises(kind):
        read(Dataset.range(3).map(interrupt_later if coroutine else interrupt, calls, timeout_seconds=60), face)
    watch.nothing_left_soon(seconds=2)


@pytest.mark.parametrize("face", FACES)
def test_closing_waits_for_a_call_within_its_limit_but_not_longer(face: str, hanging: Callable[..., Hanging]) -> None:
    wait = hanging(1)
    ds = Dataset.range(3).map(wait, 2, timeout_seconds=0.5)

    async def main() -> None:
        async with ds.iterate() as iterator:
            await anext(iterator)
            while not wait.threads:
                await asyncio.sleep(0.001)

    start = time.monotonic()
    if face == "async":
        asyncio.run(main())
    else:
        with ds.iterate() as iterator:
            next(iterator)
            while not wait.threads:
                time.sleep(0.001)
    assert time.monotonic() - start < 15
    assert len(wait.alive) == 1


def test_element_numbers_and_places_after_a_resume(tmp_path: Path, hanging: Callable[..., Hanging]) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"{number}\n" for number in range(8)))
    wait = hanging(5)
    for calls in (None, 2):
        ds = aiodata.TextLineDataset(path).map(lambda line: wait(int(line)), calls, timeout_seconds=LIMIT)
        with ds.iterate() as iterator:
            assert [next(iterator) for _ in range(3)] == [0, 1, 2]
            state = iterator.state_dict()
        with ds.iterate(state) as iterator:
            assert [next(iterator) for _ in range(2)] == [3, 4]
            before = iterator.state_dict()
            with pytest.raises(TimeoutError) as caught:
                next(iterator)
            assert_timed_out(caught.value, 2, place=f"{path} line 6")
            behind = iterator.state_dict()
        with ds.iterate(before) as iterator:
            first, *rest = pull_all(iterator)
            assert_timed_out(first, 0, place=f"{path} line 6")
            assert rest == [6, 7]
        with ds.iterate(behind) as iterator:  # it was an element
            assert pull_all(iterator) == [6, 7]


# Custom executors


@pytest.mark.parametrize("face", FACES)
def test_a_custom_executor(face: str, hanging: Callable[..., Hanging]) -> None:
    wait = hanging(2, 5)
    with ThreadPoolExecutor(4) as executor:
        ds = Dataset.range(8).map(wait, 2, executor=executor, timeout_seconds=LIMIT)
        assert_only_timed_out(read(ds, face), 8, 2, 5)
        assert executor.submit(abs, -3).result(5) == 3
        wait.released.set()


def test_a_call_that_a_custom_executor_has_not_begun_is_taken_back(hanging: Callable[..., Hanging]) -> None:
    wait = hanging(0)
    with ThreadPoolExecutor(1) as executor:
        ds = Dataset.range(3).map(wait, 1, executor=executor, timeout_seconds=LIMIT)
        found = outcomes(ds)
        wait.released.set()
    assert [type(error) for error in found] == [TimeoutError] * 3
    assert wait.calls == [0]


# Vectorized


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("way", ["one by one", "parallel", "executor", "coroutine"])
def test_a_vectorized_call_fails_for_all_its_elements(way: str, face: str, hanging: Callable[..., Hanging]) -> None:
    wait = hanging(5)

    def function(x: Any) -> Any:
        wait(5 if (x == 6).any() else 0)
        return x * 2

    async def coroutine(x: Any) -> Any:
        if (x == 6).any():
            await asyncio.Event().wait()
        return x * 2

    blocks = dataset_of([Piece("columns", 4), Piece("list", 3, frozenset([1])), Piece("columns", 2)])
    with ThreadPoolExecutor(2) as executor:
        ds = blocks.map(
            coroutine if way == "coroutine" else function,
            None if way == "one by one" else 2,
            executor=executor if way == "executor" else "thread",
            vectorized=True,
            timeout_seconds=LIMIT,
        )
        found = read(ds, face)
        wait.released.set()
    assert len(found) == 9
    assert_same([*found[:4], *found[7:]], i64(0, 2, 4, 6, 14, 16))
    assert isinstance(found[5], Boom)
    for element in (4, 6):
        assert_timed_out(found[element], element, place=f"place {element}")


def test_row_by_row_each_row_has_the_limit(hanging: Callable[..., Hanging]) -> None:
    wait = hanging(2)

    def function(x: Any) -> Any:
        if len(x) > 1 or x[0] == 3:
            raise Boom(0)
        return wait(x[0]) * np.ones(1, np.int64)

    found = outcomes(Dataset.range(5).map(function, 2, vectorized=True, timeout_seconds=LIMIT))
    assert_same([found[at] for at in (0, 1, 4)], i64(0, 1, 4))
    assert_timed_out(found[2], 2)
    assert_same(found[3], Boom(0))


# Processes, and the end of the interpreter: see `tests/engine/test_worker_processes.py` too


def run_script(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)


SCRIPT = """
import asyncio, threading
from aiodata import Dataset

def wait(x):
    if x == 5:
        threading.Event().wait()
    return int(x)

ds = Dataset.range(8).map(wait, {calls}, timeout_seconds=0.6){more}
iterator = ds.iterate()

async def main():
    found = []
    while True:
        try:
            found.append(await anext(iterator))
        except StopAsyncIteration:
            return found
        except TimeoutError as error:
            found.append(error.__notes__[0])

def plain():
    found = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except TimeoutError as error:
            found.append(error.__notes__[0])

print({read})
"""


@pytest.mark.parametrize("read_by", ["plain()", "asyncio.run(main())", "next(iterator)"])
@pytest.mark.parametrize("more", ["", ".prefetch(2)"])
@pytest.mark.parametrize("calls", ["None", "2"])
def test_no_thread_holds_up_the_interpreters_end(calls: str, more: str, read_by: str) -> None:
    done = run_script(SCRIPT.format(calls=calls, more=more, read=read_by))
    assert done.stderr == ""
    assert done.returncode == 0
    whole = "[0, 1, 2, 3, 4, 'in map(wait), element 5', 6, 7]"
    assert done.stdout.strip() == ("0" if read_by == "next(iterator)" else whole)


@pytest.mark.parametrize("face", FACES)
def test_nothing_is_left_when_the_calls_have_ended(
    face: str, hanging: Callable[..., Hanging], child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    function = hanging(0, 3)
    read(Dataset.range(5).map(function, 2, timeout_seconds=LIMIT), face)
    assert len(function.alive) == 2
    function.released.set()
    watch.nothing_left_soon(seconds=2)
