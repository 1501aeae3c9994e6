"""What runs ahead stays within the bounds that are written down: calls, elements, open inputs, bytes, descriptors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aiodata
from aiodata import AutotuneOptions, Dataset, Options, TextLineDataset
from tests.engine.observing import descriptors, numbers, write_files
from tests.programs import pull_all


class Gauge:
    """Counts how many of something are under way, and the most there ever were; callable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = 0
        self.most = 0
        self.started = 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.started += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


async def settled(count: Callable[[], int]) -> int:
    """Let the loop turn until a count has stood still for 20 turns; give it."""
    last, same = count(), 0
    while same < 20:
        await asyncio.sleep(0)
        same = same + 1 if count() == last else 0
        last = count()
    return last


async def test_async_calls_stay_within_their_number_over_2000_elements() -> None:
    calls = 4
    gauge = Gauge()

    async def work(number: int) -> int:
        with gauge:
            await asyncio.sleep(0)
        return number

    ahead: list[int] = []
    async with Dataset.from_generator(numbers).map(work, num_parallel_calls=calls).iterate() as iterator:
        for taken in range(1, 2001):
            assert await anext(iterator) == taken - 1
            if taken % 10 == 0:  # a slow consumer: everything that may run ahead does
                ahead.append(await settled(lambda: gauge.started) - taken)
    assert gauge.most == calls
    assert max(ahead) <= 2 * calls
    assert max(ahead[100:]) <= max(ahead[:100])


@pytest.mark.parametrize("face", ["sync", "async"])
def test_thread_calls_stay_within_their_number(face: str) -> None:
    gauge = Gauge()

    def work(number: int) -> int:
        with gauge:
            time.sleep(0.001)
        return number

    ds = Dataset.range(200).map(work, num_parallel_calls=3)

    async def main() -> int:
        return len([element async for element in ds])

    assert (sum(1 for _ in ds) if face == "sync" else asyncio.run(main())) == 200
    assert 2 <= gauge.most <= 3


@pytest.mark.parametrize("coroutines", [False, True])
@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("buffer", [1, 2, 3, 8])
def test_prefetch_computes_no_more_than_its_buffer_ahead(buffer: int, face: str, coroutines: bool) -> None:
    # With coroutines before it the prefetch is a task on the reader's loop, else a thread.
    computed: list[int] = []

    def plain(number: int) -> int:
        computed.append(number)
        return number

    async def awaited(number: int) -> int:
        return plain(number)

    ds = Dataset.from_generator(numbers).map(awaited if coroutines else plain).prefetch(buffer)
    ahead: list[int] = []

    async def main() -> None:
        async with ds.iterate() as iterator:
            for taken in range(1, 120):
                await anext(iterator)
                ahead.append(len(computed) - taken)
                if taken % 10 == 0:
                    await asyncio.sleep(0.003)  # time to run ahead further than allowed
                    ahead.append(len(computed) - taken)

    if face == "async":
        asyncio.run(main())
    else:
        with ds.iterate() as iterator:
            for taken in range(1, 120):
                next(iterator)
                ahead.append(len(computed) - taken)
                if taken % 10 == 0:
                    time.sleep(0.003)
                    ahead.append(len(computed) - taken)
    assert max(ahead) <= buffer


@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_full_prefetch_holds_its_whole_buffer(face: str) -> None:
    full = threading.Event()

    def source() -> Iterator[int]:
        for number in numbers():
            if number == 8:  # number 0 has been taken
                full.set()
            yield number

    ds = Dataset.from_generator(source).prefetch(8)

    async def main() -> bool:
        async with ds.iterate() as iterator:
            await anext(iterator)
            return full.wait(5)

    if face == "async":
        assert asyncio.run(main())
    else:
        with ds.iterate() as iterator:
            next(iterator)
            assert full.wait(5)


@pytest.mark.parametrize("parallel", [None, 1, 2])
def test_interleave_never_opens_more_inputs_than_its_cycle(parallel: int | None) -> None:
    gauge = Gauge()

    def lines(number: int) -> Dataset[Any]:
        async def read() -> AsyncIterator[int]:
            with gauge:
                for line in range(20):
                    await asyncio.sleep(0)
                    yield 100 * number + line

        return Dataset.from_generator(read)

    ds = Dataset.from_generator(lambda: range(9)).interleave(lines, cycle_length=2, num_parallel_calls=parallel)
    got = list(ds)
    assert sorted(got) == [100 * number + line for number in range(9) for line in range(20)]
    assert gauge.most == 2
    assert gauge.started == 9


def test_interleave_of_real_files_never_has_more_open_than_its_cycle(tmp_path: Path) -> None:
    write_files(tmp_path, count=9, lines=3000)
    most = 0
    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    ds = files.interleave(lambda path: TextLineDataset(path, buffer_size=512), cycle_length=2, num_parallel_calls=2)
    for number, _ in enumerate(ds):
        if number % 50 == 0:
            most = max(most, sum(path.startswith(str(tmp_path)) for path in descriptors().values()))
    assert 1 <= most <= 2


@pytest.mark.parametrize("coroutine", [False, True])
def test_the_cpu_budget_limits_automatic_parallelism_and_shows(coroutine: bool) -> None:
    gauge = Gauge()

    def work(number: int) -> int:
        with gauge:
            time.sleep(0.001)
        return number

    async def work_later(number: int) -> int:
        with gauge:
            await asyncio.sleep(0.001)
        return number

    ds = Dataset.range(60).map(work_later if coroutine else work, num_parallel_calls=aiodata.AUTOTUNE)
    with ds.with_options(Options(autotune=AutotuneOptions(cpu_budget=1))).iterate() as iterator:
        assert len(pull_all(iterator)) == 60
        shown = {entry["stage"]: entry for entry in iterator.statistics()}
    assert gauge.most == 1
    assert shown["map(work_later)" if coroutine else "map(work)"]["parallelism"] == 1


def test_automatic_values_are_shown_per_stage() -> None:
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        return number

    ds = Dataset.range(200).map(work, num_parallel_calls=aiodata.AUTOTUNE).prefetch(aiodata.AUTOTUNE)
    with ds.iterate() as iterator:
        next(iterator)
        shown = {entry["stage"]: entry for entry in iterator.statistics()}
    assert shown["map(work)"]["parallelism"] > 1
    assert any(entry.get("capacity", 0) >= 1 for stage, entry in shown.items() if stage.startswith("prefetch"))


@pytest.mark.parametrize("coroutine", [False, True])
@pytest.mark.parametrize("face", ["sync", "async"])
def test_take_three_behind_a_lazy_map_runs_it_three_times(face: str, coroutine: bool) -> None:
    seen: list[int] = []

    def note(number: int) -> int:
        seen.append(number)
        return number

    async def note_later(number: int) -> int:
        return note(number)

    ds = Dataset.range(100).map(note_later if coroutine else note).take(3)

    async def main() -> list[Any]:
        return [element async for element in ds]

    assert (list(ds) if face == "sync" else asyncio.run(main())) == [0, 1, 2]
    assert seen == [0, 1, 2]
