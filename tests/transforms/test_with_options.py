"""`with_options`: what holds for the whole pipeline, and what it changes."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest

from aiodata import AUTOTUNE, AutotuneOptions, Dataset, Options, StorageOptions
from aiodata.engine.machine import available_cores
from aiodata.engine.tuning import FIRST_WAITING
from tests.programs import Boom, assert_gives, assert_outcomes, failing, i64, nested, nested_rows, to_list


def parallelism(options: Options, coroutine: bool) -> int:
    """Return how many calls an automatic map may run at once under these options."""

    def plain(x: Any) -> Any:
        return x

    async def awaited(x: Any) -> Any:
        return x

    ds = Dataset.range(3).map(awaited if coroutine else plain, num_parallel_calls=AUTOTUNE).with_options(options)
    with ds.iterate() as iterator:
        assert len(list(iterator)) == 3
        (found,) = [entry["parallelism"] for entry in iterator.statistics() if entry["stage"].startswith("map")]
    return int(found)


@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_elements_stay_what_they_are(size: int) -> None:
    assert_gives(Dataset.range(size).with_options(Options()), i64(*range(size)))
    assert_gives(nested(size).with_options(Options(deterministic=False)), nested_rows(*range(size)))


def test_errors_keep_their_places() -> None:
    ds = failing(Dataset.range(3), 1).with_options(Options())
    assert_outcomes(ds, [*i64(0), Boom(1), *i64(2)])


def test_cardinality_and_spec_are_those_of_the_input() -> None:
    ds = Dataset.range(5).batch(2)
    with_options = ds.with_options(Options())
    assert with_options.cardinality() == 3
    assert with_options.element_spec == ds.element_spec
    assert Dataset.range(5).filter(bool).with_options(Options()).cardinality() == -2
    assert Dataset.range(5).repeat().with_options(Options()).cardinality() == -1


def test_the_options_are_copied_at_the_call() -> None:
    options = Options()
    options.autotune.cpu_budget = 1
    ds = Dataset.range(3).with_options(options)
    options.autotune.cpu_budget = 2
    options.deterministic = False
    assert ds.options() == Options(autotune=AutotuneOptions(cpu_budget=1))


def test_shows_what_is_set() -> None:
    ds = Dataset.range(3).with_options(Options(deterministic=False, autotune=AutotuneOptions(cpu_budget=2)))
    assert ds.plan.label == "with_options(deterministic=False)"  # budgets make no other pipeline
    assert Dataset.range(3).with_options(Options(), name="mine").plan.label == "with_options()"
    assert "'mine'" in repr(Dataset.range(3).with_options(Options(), name="mine"))


def test_a_state_goes_on_with_other_options_of_storage() -> None:
    patient, hasty = (Options(storage=StorageOptions(idle_seconds=seconds)) for seconds in (60, 1))
    with Dataset.range(3).with_options(patient).iterate() as iterator:
        assert next(iterator) == 0
        state = iterator.state_dict()
    other = Dataset.range(3).with_options(hasty)
    assert list(other.iterate(state)) == [1, 2]
    assert other.options() == hasty


@pytest.mark.parametrize("options", [None, {"deterministic": False}, AutotuneOptions(), Options])
def test_anything_else_is_refused(options: Any) -> None:
    with pytest.raises(TypeError, match="with_options: options must be an Options, not "):
        Dataset.range(3).with_options(options)


@pytest.mark.parametrize("coroutine", [False, True])
def test_the_budget_is_what_automatic_parallelism_takes(coroutine: bool) -> None:
    automatic = FIRST_WAITING if coroutine else available_cores()
    assert parallelism(Options(), coroutine) == automatic
    assert parallelism(Options(autotune=AutotuneOptions(cpu_budget=3)), coroutine) == 3
    assert parallelism(Options(autotune=AutotuneOptions(enabled=True, cpu_budget=3)), coroutine) == 3


@pytest.mark.parametrize("coroutine", [False, True])
def test_without_autotuning_the_default_is_taken_whatever_the_budget(coroutine: bool) -> None:
    automatic = FIRST_WAITING if coroutine else available_cores()
    assert parallelism(Options(autotune=AutotuneOptions(enabled=False, cpu_budget=3)), coroutine) == automatic


def test_without_autotuning_a_prefetch_keeps_its_size() -> None:
    def capacity(options: Options, rounds: int) -> int:
        """Return the size after so many rounds of a full buffer and then an empty one, or as soon as it has grown."""
        computed = threading.Semaphore(0)

        def slow(x: Any) -> Any:
            time.sleep(0.001)
            computed.release()
            return x

        found = 1
        with Dataset.range(5000).map(slow).prefetch(AUTOTUNE).with_options(options).iterate() as iterator:
            for _ in range(rounds):
                next(iterator)
                while computed.acquire(timeout=0.003):  # until nothing more is computed: the buffer is full
                    pass
                next(iterator)
                next(iterator)
                (entry,) = [entry for entry in iterator.statistics() if entry["stage"].startswith("prefetch")]
                found = int(entry["capacity"])
                if found > 1:
                    break
        return found

    assert capacity(Options(), 1000) > 1
    assert capacity(Options(autotune=AutotuneOptions(enabled=False)), 20) == 1


def test_results_come_as_they_are_ready_where_order_does_not_matter() -> None:
    gate = threading.Event()

    def work(x: Any) -> Any:
        if x == 0:
            assert gate.wait(10)
        return x

    ds = Dataset.range(4).map(work, num_parallel_calls=2).with_options(Options(deterministic=False))
    with ds.iterate() as iterator:
        got = [int(next(iterator)) for _ in range(2)]
        gate.set()
        got += map(int, iterator)
    assert 0 not in got[:2]
    assert sorted(got) == [0, 1, 2, 3]


def test_a_stage_that_says_so_itself_keeps_its_order() -> None:
    def work(x: Any) -> Any:
        time.sleep(0.002 if x % 2 == 0 else 0)
        return x

    ds = Dataset.range(20).map(work, num_parallel_calls=4, deterministic=True)
    assert to_list(ds.with_options(Options(deterministic=False))) == list(range(20))


def test_the_switch_interval_holds_while_the_pipeline_runs() -> None:
    before = sys.getswitchinterval()
    with Dataset.range(3).with_options(Options(switch_interval_seconds=0.001)).iterate() as iterator:
        next(iterator)
        assert sys.getswitchinterval() == pytest.approx(0.001)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_fields_without_effect_change_nothing() -> None:
    options = Options()
    options.threading.private_threadpool_size = 1
    options.experimental_optimization.map_and_batch_fusion = True
    options.experimental_slack = True
    ds = Dataset.range(10).map(lambda x: x + 1, num_parallel_calls=2).batch(3)
    assert [batch.tolist() for batch in ds.with_options(options)] == [batch.tolist() for batch in ds]
