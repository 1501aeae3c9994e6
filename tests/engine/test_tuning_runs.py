"""AUTOTUNE and grains in real pipelines: what changes while they run, and what does not."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata import AUTOTUNE, AutotuneOptions, Dataset, Options
from aiodata.engine.block import Block
from aiodata.engine.concurrent import Feed, in_order
from aiodata.engine.statistics import Counters
from aiodata.engine.tuning import FIRST_WAITING, Knob
from tests.programs import failing, to_list


def entry(iterator: Any, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in iterator.statistics() if entry["stage"].startswith(stage))
    return found


def restless(ds: Dataset[Any], seed: int, state: Any = None) -> Any:
    """Open an iterator whose knobs begin at 1 and see time in leaps: they look often, and see rates without sense."""
    leaps, now = random.Random(seed), 0.0

    def clock() -> float:
        nonlocal now
        now += leaps.choice([0.001, 0.3, 0.5, 2.0])
        return now

    iterator: Any = ds.with_options(Options(autotune=AutotuneOptions(initial_parallelism=1))).iterate(state)
    tuner = iterator._session.run.tuner
    tuner.clock, tuner.cpu, tuner.cores = clock, lambda: 0.0, 1
    return iterator


# The crew


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def gated(knob: Knob, gates: dict[int, asyncio.Event], started: list[int]) -> Dataset[Any]:
    """Give a dataset whose elements are worked on until their gates are opened, as many at once as the knob says."""

    async def perform(chunk: Block[Any]) -> Block[Any]:
        (number,) = chunk.rows()
        started.append(int(number))
        await gates[int(number)].wait()
        return Block(chunk.origin, chunk.offset, computed=[int(number)])

    def stage(run: Any, source: Any, *, start: Any) -> Any:
        return in_order(run, Feed(source.open(start)), perform, knob, lambda: 1)

    return Dataset.range(40).then("gated", stage, resumes_by_cursor=True, waits=True)


async def test_a_knob_adds_and_ends_tasks_while_they_run() -> None:
    knob, started = Knob(1, Counters("gated")), list[int]()
    gates = {number: asyncio.Event() for number in range(40)}
    async with gated(knob, gates, started).iterate() as iterator:
        pull = asyncio.ensure_future(anext(iterator))
        await turns()
        assert started == [0]
        knob.value = 4
        await turns()
        assert started == [0, 1, 2, 3]
        knob.value = 2
        for number in (1, 2):
            gates[number].set()
        await turns()
        assert started == [0, 1, 2, 3]  # two tasks have ended; the others are busy
        for number in range(40):
            gates[number].set()
        assert [await pull] + [element async for element in iterator] == list(range(40))
    assert started == list(range(40))


async def test_a_smaller_number_holds_fewer_results_back() -> None:
    knob, started = Knob(8, Counters("gated")), list[int]()
    gates = {number: asyncio.Event() for number in range(40)}
    for gate in gates.values():
        gate.set()
    async with gated(knob, gates, started).iterate() as iterator:
        assert await anext(iterator) == 0
        await turns()
        assert len(started) == 1 + 16
        knob.value = 2
        for number in range(1, 14):
            assert await anext(iterator) == number
            await turns()
        assert len(started) == 14 + 4


async def test_a_crew_ends_with_its_iterator_however_large_it_has_become() -> None:
    knob, started = Knob(1, Counters("gated")), list[int]()
    gates = {number: asyncio.Event() for number in range(40)}
    iterator = gated(knob, gates, started).iterate()
    pull = asyncio.ensure_future(anext(iterator))
    await turns()
    knob.value = 9
    await turns()
    assert len(started) == 9
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull
    await iterator.aclose()
    assert knob.changed is None


# What comes out


def doubled(x: Any) -> int:
    return 2 * int(x)


def slowly(x: Any) -> int:
    time.sleep(0.0002)
    return doubled(x)


async def awaited(x: Any) -> int:
    for _ in range(int(x) * 7 % 20):
        await asyncio.sleep(0)
    return doubled(x)


PIPELINES: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "cheap": lambda ds: ds.map(doubled, AUTOTUNE),
    "threads": lambda ds: ds.map(slowly, AUTOTUNE),
    "coroutines": lambda ds: ds.map(awaited, AUTOTUNE),
    "chain": lambda ds: ds.map(awaited, AUTOTUNE).prefetch().map(slowly, AUTOTUNE).batch(3, num_parallel_calls=-1),
    "interleave": lambda ds: ds.interleave(lambda n: Dataset.range(n, n + 3).map(awaited, AUTOTUNE), 3, 2, AUTOTUNE),
    "shuffle": lambda ds: ds.map(awaited, AUTOTUNE).shuffle(7, seed=1).prefetch(),
}


def outcomes(iterator: Any, most: int = 1 << 30) -> list[Any]:
    found: list[Any] = []
    while len(found) < most:
        try:
            found.append(str(next(iterator)))
        except StopIteration:
            break
        except Exception as error:
            found.append(repr(error))
    return found


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PIPELINES)), st.integers(0, 1 << 30), st.integers(0, 60), st.integers(0, 60))
def test_whatever_the_knobs_do_elements_and_states_are_the_same(name: str, seed: int, count: int, at: int) -> None:
    source = failing(Dataset.range(count), count // 2)
    ds = PIPELINES[name](source)
    fixed = PIPELINES[name](source).with_options(Options(autotune=AutotuneOptions(cpu_budget=1)))
    with fixed.iterate() as iterator:
        expected = outcomes(iterator)
    with restless(ds, seed) as iterator:
        begun = outcomes(iterator, at)
        state = iterator.state_dict()
        assert begun + outcomes(iterator) == expected
    with restless(ds, seed + 1, state) as iterator:
        assert outcomes(iterator) == expected[at:]


@pytest.mark.parametrize("function", [slowly, awaited])
def test_nothing_is_lost_or_repeated_where_the_order_is_free(function: Any) -> None:
    ds = Dataset.range(200).map(function, AUTOTUNE, deterministic=False)
    for seed in range(5):
        with restless(ds, seed) as iterator:
            begun = [next(iterator) for _ in range(60)]
            state = iterator.state_dict()
            rest = list(iterator)
        assert sorted(begun + rest) == list(range(0, 400, 2))
        with restless(ds, seed, state) as iterator:
            assert sorted(begun + list(iterator)) == list(range(0, 400, 2))


def test_knobs_move_while_a_pipeline_runs_and_statistics_show_it() -> None:
    ds = Dataset.range(2000).map(awaited, AUTOTUNE)
    with restless(ds, 3) as iterator:
        shown = {entry(iterator, "map")["parallelism"] for _ in iterator}
    assert len(shown) > 1


@pytest.mark.parametrize("budget", [1, 3, None])
def test_the_cpu_budget_limits_the_readers_of_an_interleave_not_its_order(budget: int | None) -> None:
    now = most = 0

    def rows(number: Any) -> Dataset[Any]:
        async def read() -> AsyncIterator[int]:
            nonlocal now, most
            for row in range(5):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1
                yield 10 * int(number) + row

        return Dataset.from_generator(read)

    plain = to_list(Dataset.range(9).interleave(rows, cycle_length=4))
    ds = Dataset.range(9).interleave(rows, cycle_length=4, num_parallel_calls=AUTOTUNE)
    most = 0
    with ds.with_options(Options(autotune=AutotuneOptions(cpu_budget=budget))).iterate() as iterator:
        assert [next(iterator), *iterator] == plain
        assert entry(iterator, "interleave")["parallelism"] == (budget or 4)
    assert 1 <= most <= (budget or 4)


# Freezing


def test_what_was_found_can_be_frozen() -> None:
    ds = Dataset.range(300).map(awaited, AUTOTUNE).prefetch()
    options = Options(autotune=AutotuneOptions(initial_parallelism=1))
    with restless(ds, 5) as iterator:
        for _ in range(250):
            next(iterator)
        state, found = iterator.state_dict(), iterator.statistics()
    assert entry(iterator, "map")["parallelism"] != FIRST_WAITING
    options.autotune.frozen = found
    frozen = ds.with_options(options)
    with frozen.iterate() as iterator:
        assert next(iterator) == 0
        for stage in ("map", "prefetch"):
            (before,) = [entry for entry in found if entry["stage"].startswith(stage)]
            after = entry(iterator, stage)
            assert {key: after.get(key) for key in ("parallelism", "capacity")} == {
                key: before.get(key) for key in ("parallelism", "capacity")
            }
        assert list(iterator) == [2 * number for number in range(1, 300)]
    assert list(frozen.iterate(state)) == [2 * number for number in range(250, 300)]


def test_a_state_goes_on_with_other_choices() -> None:
    ds = Dataset.range(9).map(awaited, AUTOTUNE)
    one, other = (Options(autotune=AutotuneOptions(frozen=[{"stage": "x", "parallelism": n}])) for n in (1, 2))
    with ds.with_options(one).iterate() as iterator:
        assert next(iterator) == 0
        state = iterator.state_dict()
    assert list(ds.with_options(other).iterate(state)) == [2 * number for number in range(1, 9)]


# Grains


def threads_of(ds: Callable[[Callable[[Any], Any]], Dataset[Any]], body: Callable[[int], Any]) -> list[str]:
    """Give the name of the thread in which each element was computed, in the order of the elements."""
    names: dict[int, str] = {}

    def work(number: Any) -> int:
        body(int(number))
        names[int(number)] = threading.current_thread().name
        return int(number)

    assert sorted(to_list(ds(work))) == sorted(names)
    return [names[number] for number in sorted(names)]


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("calls", [1, 5, AUTOTUNE])
def test_a_cheap_function_is_called_where_the_pipeline_runs(calls: int, deterministic: bool) -> None:
    names = threads_of(lambda work: Dataset.range(5000).map(work, calls, deterministic), lambda _: None)
    away = [number for number, name in enumerate(names) if name.startswith("aiodata-map")]
    assert 1 <= len(away) <= 200  # while it was found out, and wherever the machine stood still
    assert away[0] == 0


def test_a_cheap_function_that_becomes_dear_goes_back_to_the_threads() -> None:
    def body(number: int) -> None:
        if number >= 1000:
            time.sleep(0.002)

    names = threads_of(lambda work: Dataset.range(1300).map(work, 2), body)
    assert not all(name.startswith("aiodata-map") for name in names[500:1000])
    assert all(name.startswith("aiodata-map") for name in names[1100:])


def test_what_a_function_costs_is_remembered_when_it_is_opened_again() -> None:
    names = threads_of(
        lambda work: Dataset.range(50).interleave(lambda n: Dataset.range(10 * n, 10 * n + 10).map(work, 2), 1),
        lambda _: None,
    )
    assert sum(name.startswith("aiodata-map") for name in names) < 250


@pytest.mark.parametrize("calls", [2, 4, 8])
def test_a_dear_function_runs_as_often_at_once_as_it_may(calls: int) -> None:
    barrier = threading.Barrier(calls, timeout=30)

    def work(number: Any) -> int:
        if number > 0:  # the first call is made alone, to find out what it costs
            barrier.wait()
        time.sleep(0.01)
        return int(number)

    count = 3 * calls + 1
    assert to_list(Dataset.range(count).map(work, calls)) == list(range(count))


def test_calls_in_threads_that_wait_begin_with_more_than_there_are_cores() -> None:
    barrier = threading.Barrier(FIRST_WAITING, timeout=30)

    def work(number: Any) -> int:
        if number > 0:
            barrier.wait()
        time.sleep(0.01)
        return int(number)

    count = FIRST_WAITING + 1
    assert to_list(Dataset.range(count).map(work, AUTOTUNE)) == list(range(count))


def test_errors_of_cheap_calls_have_their_places() -> None:
    def work(number: Any) -> int:
        if number in (3, 700):
            raise ValueError(f"bad {number}")
        return int(number)

    def same(number: Any) -> int:
        return int(number)

    with Dataset.range(1000).map(same, 3).map(work, 3).iterate() as iterator:
        found: dict[int, BaseException] = {}
        for number in range(1000):
            try:
                assert next(iterator) == number
            except ValueError as error:
                found[number] = error
    assert sorted(found) == [3, 700]
    assert all(f"element {number}" in "".join(error.__notes__) for number, error in found.items())
