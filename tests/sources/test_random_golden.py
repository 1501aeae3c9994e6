"""`random` in every golden case that TensorFlow 2.21 printed, and resumed at every element."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset
from tests.programs import assert_same, collect, first, global_seed, plain, to_list

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "random.json").read_text(encoding="utf-8"))


def name_of(index: int, case: dict[str, Any]) -> str:
    """Name a case so that a failing one can be found in the file."""
    marks = "-rerandomize" if case["rerandomize_each_iteration"] else ""
    return f"{index}-s{case['seed']}-g{case['global_seed']}-repeat{case['repeat_after']}{marks}"


CASES = [pytest.param(case, id=name_of(index, case)) for index, case in enumerate(GOLDEN["cases"])]


def build(case: dict[str, Any]) -> Dataset[Any]:
    """Build the chain of a case."""
    ds: Dataset[Any] = Dataset.random(case["seed"], case["rerandomize_each_iteration"]).take(case["take"])
    return ds if case["repeat_after"] is None else ds.repeat(case["repeat_after"])


@pytest.mark.parametrize("case", CASES)
def test_values_are_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(to_list(ds)) for _ in range(case["passes"])] == case["expected"]


@pytest.mark.parametrize("case", CASES[::7])
def test_async_values_are_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(asyncio.run(collect(ds))) for _ in range(case["passes"])] == case["expected"]


def resumed_everywhere(make: Callable[[], Dataset[Any]]) -> None:
    """Save at every element and go on in a fresh dataset, also when that has drawn seeds of its own before."""
    with make().iterate() as iterator:
        states = [json.dumps(iterator.state_dict())]
        whole = []
        for element in iterator:
            whole.append(element)
            states.append(json.dumps(iterator.state_dict()))
    for count, state in enumerate(states):
        fresh = make()
        first(fresh, 1)
        with fresh.iterate(json.loads(state)) as iterator:
            assert_same(list(iterator), whole[count:])


@pytest.mark.parametrize("seed", [5, None])
@pytest.mark.parametrize("rerandomize", [False, True])
@pytest.mark.parametrize("steps", [lambda ds: ds.take(150), lambda ds: ds.take(7).repeat(5), lambda ds: ds.take(0)])
def test_every_element_can_be_resumed_at(seed: int | None, rerandomize: bool, steps: Any) -> None:
    resumed_everywhere(lambda: steps(Dataset.random(seed, rerandomize)))


def test_resumed_far_away_with_a_small_state() -> None:
    ds = Dataset.random(seed=5)
    with ds.iterate() as iterator:
        for _ in range(20_000):
            next(iterator)
        state = json.dumps(iterator.state_dict())
        expected = [next(iterator) for _ in range(5000)]
    assert len(state) < 500
    with Dataset.random(seed=5).iterate(json.loads(state)) as iterator:
        assert_same([next(iterator) for _ in range(5000)], expected)


def test_passes_after_a_resumed_one_draw_the_next_seeds() -> None:
    def make() -> Dataset[Any]:
        return Dataset.random(seed=5, rerandomize_each_iteration=True).take(4)

    one = make()
    first(one, 2)
    with one.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
        rest = list(iterator)
    other = make()
    with other.iterate(state) as iterator:
        assert_same(list(iterator), rest)
    assert_same(to_list(other), to_list(one))


async def test_a_stage_that_lets_nothing_through_leaves_the_loop_alive() -> None:
    task = asyncio.create_task(collect(Dataset.random(seed=1).filter(lambda x: False)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
