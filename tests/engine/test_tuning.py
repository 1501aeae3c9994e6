"""AUTOTUNE: what a knob does with made-up statistics, in made-up time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from aiodata import AUTOTUNE, AutotuneOptions, Dataset
from aiodata.engine.block import Block
from aiodata.engine.budget import Budget, Share, weight
from aiodata.engine.machine import available_cores, available_memory
from aiodata.engine.position import Origin
from aiodata.engine.statistics import Counters
from aiodata.engine.tuning import FIRST_WAITING, MOST_COROUTINES, MOST_THREADS, Knob, Tuner

CORES = 4


class Machine:
    """Gives portions to a knob at the rate that its value would bring, in a time of its own."""

    def __init__(self, **options: Any) -> None:
        self.now = self.used = 0.0
        self.tuner = Tuner(AutotuneOptions(**options), lambda: self.now, lambda: self.used, CORES)

    def knob(self, label: str = "map(f)", coroutine: bool = False, **arguments: Any) -> Knob:
        return self.tuner.knob(Counters(label), AUTOTUNE, coroutine, **arguments)

    def run(
        self,
        knob: Knob,
        rate: Callable[[int], float],
        seconds: float = 20,
        cpu: Callable[[int], float] = lambda calls: 0.0,
        starved: bool = True,
        size: int = 8,
    ) -> list[int]:
        """Let time pass; give the values that the knob had at each portion."""
        end, values = self.now + seconds, []
        while self.now < end:
            knob.asked()
            taken = 1 / rate(knob.value)
            self.now += taken
            self.used += cpu(knob.value) * taken
            values.append(knob.value)
            block: Block[Any] = Block(Origin(int), columns=np.zeros((1, size), np.uint8), length=1)
            knob.given(block, starved)
        return values


def latency(seconds: float, most: float = 1e9) -> Callable[[int], float]:
    """Give the rate of calls that wait, up to what a line carries."""
    return lambda calls: min(calls / seconds, most)


def mean_rate(rate: Callable[[int], float], values: list[int]) -> float:
    """Give the rate over the later half of a run."""
    late = values[len(values) // 2 :]
    return len(late) / sum(1 / rate(value) for value in late)


@pytest.mark.parametrize("coroutine", [False, True])
def test_calls_that_wait_become_as_many_as_there_may_be(coroutine: bool) -> None:
    machine = Machine()
    knob = machine.knob(coroutine=coroutine)
    first = FIRST_WAITING if coroutine else CORES
    assert knob.value == first
    values = machine.run(knob, latency(0.05))
    assert max(values) == (MOST_COROUTINES if coroutine else MOST_THREADS)
    climbed = sorted(set(values[: values.index(max(values))]))
    assert climbed == [first * 2**step for step in range(len(climbed))]


def test_a_climb_takes_a_look_for_each_step() -> None:
    machine = Machine()
    knob = machine.knob(coroutine=True)
    values = machine.run(knob, latency(0.05), 0.26)
    assert set(values) == {16, 32, 64, 128, 256}


@pytest.mark.parametrize("knee", [3, 10, 20, 50, 200])
@pytest.mark.parametrize("coroutine", [False, True])
def test_a_line_that_carries_no_more_ends_the_climb(knee: int, coroutine: bool) -> None:
    machine = Machine()
    knob = machine.knob(coroutine=coroutine)
    rate = latency(0.05, knee / 0.05)
    values = machine.run(knob, rate, 60)
    assert mean_rate(rate, values) > 0.93 * rate(max(values))
    assert values[-1] <= 2 * max(knee, 4)


def test_calls_that_compute_stay_as_many_as_the_cores() -> None:
    machine = Machine()
    knob = machine.knob()
    values = machine.run(knob, lambda calls: min(calls, CORES) / 0.01, 60, cpu=lambda calls: float(min(calls, CORES)))
    assert max(values) == CORES
    assert np.mean(np.array(values) == CORES) > 0.98


def test_calls_that_hinder_each_other_become_fewer() -> None:
    machine = Machine()
    knob = machine.knob()
    values = machine.run(knob, lambda calls: 100 / (1 + 0.2 * calls), 60, cpu=lambda _: 1.0)
    assert values[-1] == 1
    assert np.mean(np.array(values[len(values) // 2 :]) == 1) > 0.95


def test_more_calls_are_found_when_the_work_has_changed() -> None:
    machine = Machine()
    knob = machine.knob()
    machine.run(knob, lambda calls: min(calls, CORES) / 0.01, cpu=lambda calls: float(min(calls, CORES)))
    assert knob.value == CORES
    machine.run(knob, latency(0.05), 120)
    assert knob.value >= MOST_THREADS // 2


def test_nothing_changes_while_the_reader_does_not_wait() -> None:
    machine = Machine()
    knob = machine.knob(coroutine=True)
    assert set(machine.run(knob, latency(0.05), starved=False)) == {FIRST_WAITING}


def test_a_noisy_rate_moves_nothing_far() -> None:
    machine, noise = Machine(), np.random.default_rng(1)
    knob = machine.knob()
    rate = lambda calls: min(calls, CORES) / 0.001 * float(noise.uniform(0.5, 1.5))  # noqa: E731
    values = machine.run(knob, rate, 30, cpu=lambda calls: float(min(calls, CORES)))
    assert np.mean(np.array(values) == CORES) > 0.9


@pytest.mark.parametrize("coroutine", [False, True])
@pytest.mark.parametrize("budget", [1, 2, 7])
def test_the_cpu_budget_is_never_exceeded(budget: int, coroutine: bool) -> None:
    machine = Machine(cpu_budget=budget)
    knob = machine.knob(coroutine=coroutine)
    assert max(machine.run(knob, latency(0.05))) == budget


def test_stages_share_the_cpu_budget() -> None:
    machine = Machine(cpu_budget=10, initial_parallelism=1)
    one, other = machine.knob("map(f)"), machine.knob("map(g)")
    machine.run(one, latency(0.05))
    machine.run(other, latency(0.05))
    assert one.value + other.value == 10
    readers = machine.knob("interleave(h)", most=64)
    assert readers.value == 1  # each has one in any case
    del one
    assert machine.knob("map(k)", most=64).value == 10 - other.value - 1


def test_the_ram_budget_holds_results_and_portions_under_way() -> None:
    machine = Machine(ram_budget=64_000)
    knob = machine.knob(coroutine=True)
    values = machine.run(knob, latency(0.05), size=1000)
    assert max(values[FIRST_WAITING + 1 :]) == 32
    assert machine.tuner.memory.taken == 2 * 1000 * knob.value
    del knob
    assert machine.tuner.memory.taken == 0


@pytest.mark.parametrize("budget", [0, 100])
def test_a_small_ram_budget_leaves_one_call(budget: int) -> None:
    machine = Machine(ram_budget=budget)
    knob = machine.knob(coroutine=True)
    assert machine.run(knob, latency(0.05), size=1000)[-1] == 1


def test_first_and_fewest_calls_can_be_told() -> None:
    assert Machine(initial_parallelism=3).knob().value == 3
    assert Machine(initial_parallelism=3).knob(coroutine=True).value == 3
    assert Machine(initial_parallelism=0).knob().value == CORES
    assert Machine(min_parallelism=30).knob(coroutine=True).value == 30
    assert Machine(min_parallelism=30, cpu_budget=5).knob(coroutine=True).value == 5
    machine = Machine(min_parallelism=3)
    knob = machine.knob()
    assert min(machine.run(knob, lambda calls: 100 / (1 + 0.2 * calls), cpu=lambda _: 1.0)) == 3


def test_what_an_earlier_opening_has_found_is_where_the_next_begins() -> None:
    machine, counters = Machine(), Counters("map(f)")
    knob = machine.tuner.knob(counters, AUTOTUNE, coroutine=True)
    machine.run(knob, latency(0.05))
    found = knob.value
    assert found > FIRST_WAITING
    assert machine.tuner.knob(counters, AUTOTUNE, coroutine=True).value == found


def test_frozen_choices_are_taken_whatever_the_budgets() -> None:
    frozen = [{"stage": "map(f)", "parallelism": 9, "waits": 3}, {"stage": "prefetch(-1)", "capacity": 40}]
    machine = Machine(frozen=frozen, cpu_budget=2, ram_budget=0)
    knob = machine.knob()
    assert set(machine.run(knob, latency(0.05), 2)) == {9}
    other = machine.knob("map(other)")
    assert other.value == 2
    assert machine.tuner.buffer("prefetch(-1)", Counters("p")).size == 40
    assert machine.tuner.buffer("map(f)", Counters("p")).size == 1
    assert machine.knob("interleave", most=4).value == 1
    assert Machine(frozen=[{"stage": "interleave", "parallelism": 9}]).knob("interleave", most=4).value == 4


def test_without_tuning_the_numbers_are_fixed() -> None:
    machine = Machine(enabled=False, cpu_budget=1)
    knob = machine.knob(coroutine=True)
    assert set(machine.run(knob, latency(0.05), 2)) == {FIRST_WAITING}
    assert machine.knob().value == CORES


def test_a_number_that_was_given_stays() -> None:
    machine = Machine(cpu_budget=1)
    knob = machine.tuner.knob(Counters("map(f)"), 5)
    assert set(machine.run(knob, latency(0.05), 2)) == {5}


def test_statistics_show_each_change() -> None:
    machine, counters = Machine(), Counters("map(f)")
    knob = machine.tuner.knob(counters, AUTOTUNE, coroutine=True)
    shown = []
    knob.changed = lambda: shown.append(counters.parallelism)
    values = machine.run(knob, latency(0.05), 0.5)
    assert shown == [after for before, after in pairwise([*values, knob.value]) if after != before]


# Buffers


def columns(count: int, size: int) -> Block[Any]:
    return Block(Origin(int), columns=np.zeros((count, size), np.uint8), length=count)


def fill_and_empty(buffer: Any, size: int, times: int) -> None:
    for _ in range(times):
        while free := buffer.free(buffer.size):
            buffer.weigh(columns(free, size))
        buffer.weigh(columns(1, size))
        buffer.found_empty()


def test_a_buffer_doubles_within_the_budget_of_memory() -> None:
    tuner = Machine(ram_budget=10_000).tuner
    buffer = tuner.buffer("prefetch(-1)", Counters("p"))
    fill_and_empty(buffer, 1000, 10)
    assert buffer.size == 10
    assert tuner.memory.taken == 10_000
    other = tuner.buffer("prefetch(-1)", Counters("p"))
    fill_and_empty(other, 1000, 10)
    assert other.size == 1
    del buffer
    fill_and_empty(other, 1000, 10)
    assert other.size == 10


def test_larger_elements_shrink_a_buffer() -> None:
    buffer = Machine(ram_budget=10_000).tuner.buffer("prefetch(-1)", Counters("p"))
    fill_and_empty(buffer, 10, 20)
    assert buffer.size == 1000
    buffer.weigh(columns(1, 5000))
    assert buffer.size == 2


def test_the_bytes_ahead_in_a_dataset_grow_when_its_reader_waits() -> None:
    buffer = Machine(ram_budget=1 << 40).tuner.buffer("interleave(f)", Counters("i"), 1024, 1000)
    buffer.weigh(columns(1, 300))
    assert buffer.size == 3
    fill_and_empty(buffer, 300, 3)
    assert buffer.size == 8000 // 300
    fill_and_empty(buffer, 300, 20)
    assert buffer.size == 1024


# What they stand on


def test_a_share_holds_what_fits_and_gives_it_back() -> None:
    budget = Budget(100)
    one, other = Share(budget), Share(budget)
    assert (one.fit(5, 10), one.room(10), other.room(10)) == (5, 10, 5)
    assert (other.fit(9, 10), budget.taken) == (5, 100)
    assert (one.fit(2, 10), other.fit(9, 10), budget.taken) == (2, 8, 100)
    assert other.fit(3, 0) == 3
    assert (other.fit(1, 1000), budget.taken) == (1, 1020)
    assert one.fit(5, 10) == 1
    del other
    assert (one.fit(20, 10), budget.taken) == (10, 100)


def test_the_budget_of_memory_is_a_part_of_what_there_is() -> None:
    assert 64 << 20 <= Budget(None).most <= max(64 << 20, 2 * available_memory())
    assert available_cores() >= 1


def test_weights() -> None:
    assert weight(columns(4, 10)) == 10
    assert weight(Block(Origin(int), computed=[(np.zeros(3), np.zeros(2)), 1])) == 40
    assert weight(Block(Origin(int), computed=[])) == 0
    assert weight(Block(Origin(int), computed=[b"x" * 1000])) >= 1000


def test_stages_with_equal_labels_do_not_begin_with_each_others_numbers() -> None:
    ds: Any = Dataset.range(8).map(lambda x: x, AUTOTUNE).map(lambda x: x + 1, AUTOTUNE)
    iterator = ds.iterate()
    assert [int(x) for x in iterator] == list(range(1, 9))
    stages = [entry["stage"] for entry in iterator.statistics() if entry["stage"].startswith("map")]
    assert len(stages) == 2
    assert stages[1] == f"{stages[0]} 2"


def test_heavy_elements_hold_calls_back_before_the_first_look() -> None:
    machine = Machine(ram_budget=4 << 20)
    knob = machine.knob(coroutine=True)
    assert knob.value == 16
    knob.asked()
    knob.given(Block(Origin(int), computed=[np.zeros(1 << 20, np.uint8)]), busy=True)
    assert knob.value == 2
    machine = Machine(ram_budget=4 << 20)
    knob = machine.knob()
    knob.learn_that_calls_wait(Block(Origin(int), computed=[np.zeros(1 << 20, np.uint8)]))
    assert knob.value == 2
