"""`sample_from_datasets` in every golden case that TensorFlow 2.21 printed, and resumed at every element."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError
from tests.programs import (
    Boom,
    arr,
    assert_same,
    collect,
    failing,
    first,
    global_seed,
    i64,
    outcomes,
    outcomes_async,
    plain,
    pull_all,
    to_list,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "sample.json").read_text(encoding="utf-8"))


def name_of(index: int, case: dict[str, Any]) -> str:
    """Name a case so that a failing one can be found in the file."""
    kind = "dataset" if case["weights_are_dataset"] else case["weights_dtype"]
    marks = "-stop" if case["stop_on_empty_dataset"] else ""
    return f"{index}-{len(case['sizes'])}-{kind}-s{case['seed']}-g{case['global_seed']}{marks}"


def cases(group: str, every: int = 1) -> list[Any]:
    """Return the cases of a group as parameters with readable names."""
    return [pytest.param(case, id=name_of(index, case)) for index, case in enumerate(GOLDEN[group])][::every]


def build(case: dict[str, Any]) -> Dataset[Any]:
    """Build the chain of a case."""
    parts = [Dataset.range(1000 * i, 1000 * i + size) for i, size in enumerate(case["sizes"])]
    weights = case["weights"]
    if case["weights_are_dataset"]:
        weights = Dataset.from_tensor_slices(np.array(weights, np.float32)).repeat()
    elif weights is not None and case["weights_dtype"] == "float64":
        weights = np.array(weights, np.float64)
    rerandomize = case["rerandomize_each_iteration"]
    ds = Dataset.sample_from_datasets(parts, weights, case["seed"], case["stop_on_empty_dataset"], rerandomize)
    return ds if case["repeat_after"] is None else ds.repeat(case["repeat_after"])


# The cases of edge_log show the last bit of one C library's logf, which is not rightly rounded; ours is.
@pytest.mark.parametrize("case", [*cases("cases"), *cases("edge_float32")])
def test_draws_are_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(to_list(ds)) for _ in range(case["passes"])] == case["expected"]


@pytest.mark.parametrize("case", cases("cases", every=5))
def test_async_draws_are_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(asyncio.run(collect(ds))) for _ in range(case["passes"])] == case["expected"]


# Resuming


def resumed_everywhere(make: Callable[[], Dataset[Any]]) -> None:
    """Save before every pull and go on in a fresh dataset; also from a state that a resumed iterator gave."""
    with make().iterate() as iterator:
        states, whole = [iterator.state_dict()], []
        while True:
            try:
                whole.append(next(iterator))
            except StopIteration:
                break
            except Exception as error:
                whole.append(error)
            states.append(json.loads(json.dumps(iterator.state_dict())))
    for count, state in enumerate(states):
        with make().iterate(state) as iterator:
            rest = pull_all(iterator)
            assert_same(rest, whole[count:])
        half = (len(whole) - count) // 2
        with make().iterate(state) as iterator:
            for _ in range(half):
                try:
                    next(iterator)
                except Boom:
                    continue
            state = json.loads(json.dumps(iterator.state_dict()))
        with make().iterate(state) as iterator:
            assert_same(pull_all(iterator), whole[count + half :])


def shuffled(size: int, start: int, seed: int = 3) -> Dataset[Any]:
    return Dataset.range(start, start + size).shuffle(4, seed=seed)


def shared(count: int) -> list[Dataset[Any]]:
    one = shuffled(6, 0)
    return [one, *[one.map(lambda x, i=i: x + 100 * i) for i in range(1, count)]]


def weights_rows(count: int) -> Dataset[Any]:
    return Dataset.random(seed=8).batch(3).map(lambda words: words / 2.0**32).take(count)


CHAINS: dict[str, Callable[[], Dataset[Any]]] = {
    "ranges": lambda: Dataset.sample_from_datasets([Dataset.range(90), Dataset.range(100, 260)], [0.3, 0.7], 5),
    "stop": lambda: Dataset.sample_from_datasets(
        [Dataset.range(20), Dataset.range(100, 120)], None, 5, stop_on_empty_dataset=True
    ).repeat(3),
    "shuffled": lambda: Dataset.sample_from_datasets(
        [shuffled(7, 0), shuffled(9, 100, seed=4), Dataset.range(200, 203)], [0.5, 0.3, 0.2], 1
    ).repeat(4),
    "shared": lambda: Dataset.sample_from_datasets(shared(3), [0.9, 0.09, 0.01], 2).repeat(3),
    "rerandomized": lambda: Dataset.sample_from_datasets(
        [Dataset.range(6), Dataset.range(100, 107)], seed=5, rerandomize_each_iteration=True
    ).repeat(4),
    "rarely": lambda: Dataset.sample_from_datasets([Dataset.range(30), shuffled(5, 100)], [0.99999, 0.00001], 5).repeat(
        3
    ),
    "rows": lambda: Dataset.sample_from_datasets(
        [shuffled(9, 0), Dataset.range(100, 106).batch(2).unbatch(), Dataset.range(200, 220)], weights_rows(30), 5
    ).repeat(2),
    "shuffled rows": lambda: Dataset.sample_from_datasets(
        [Dataset.range(9), shuffled(5, 100), Dataset.range(200, 220)], weights_rows(25).shuffle(10, seed=3), 5
    ).repeat(2),
    "failing": lambda: Dataset.sample_from_datasets(
        [failing(Dataset.range(9), 1, 2, 8), failing(Dataset.range(100, 105), 100, 104)], seed=5
    ),
    "looked ahead": lambda: Dataset.sample_from_datasets(
        [Dataset.range(9).prefetch(2), shuffled(5, 100).prefetch(1)], seed=5
    ).prefetch(3),
    "batched": lambda: Dataset.sample_from_datasets([shuffled(9, 0), Dataset.range(100, 108)], seed=1).batch(3),
    "nested": lambda: Dataset.sample_from_datasets(
        [Dataset.sample_from_datasets([shuffled(5, 0), Dataset.range(100, 104)], seed=1), shuffled(6, 200)], seed=3
    ).shuffle(3, seed=4),
}


@pytest.mark.parametrize("name", CHAINS)
def test_every_element_can_be_resumed_at(name: str) -> None:
    with global_seed(None):
        resumed_everywhere(CHAINS[name])


def test_resumed_without_any_seed() -> None:
    def make() -> Dataset[Any]:
        return Dataset.sample_from_datasets([Dataset.range(50), Dataset.range(100, 150)])

    with make().iterate() as iterator:
        for _ in range(20):
            next(iterator)
        state = iterator.state_dict()
        rest = list(iterator)
    with make().iterate(state) as iterator:
        assert_same(list(iterator), rest)


def test_state_of_other_weights_is_refused() -> None:
    def make(weights: Any) -> Dataset[Any]:
        return Dataset.sample_from_datasets([Dataset.range(5)] * len(weights), weights, 5)

    for ours, theirs in (([0.3, 0.7], [0.4, 0.6]), ([0.1] * 9, [0.1] * 8 + [0.2])):
        state = make(ours).iterate().state_dict()
        with pytest.raises(aiodata.errors.StateError, match="weights"):
            make(theirs).iterate(state)


# Weights


def two(weights: Any, **arguments: Any) -> Dataset[Any]:
    return Dataset.sample_from_datasets([Dataset.range(4), Dataset.range(10, 14)], weights, **{"seed": 5, **arguments})


def test_one_dataset_left_is_the_result_itself_and_takes_no_seed() -> None:
    one, other = Dataset.range(3), Dataset.range(4)
    with global_seed(7):
        assert Dataset.sample_from_datasets([one, other], [0.0, 2.0]) is other
        assert Dataset.sample_from_datasets([one]) is one
        got = plain(to_list(Dataset.range(20).shuffle(20)))
    with global_seed(7):
        assert got == plain(to_list(Dataset.range(20).shuffle(20)))


@pytest.mark.parametrize("weights", ["ab", [True, True], np.array([0.5, 0.5], np.float16), 0.5, {0.5, 0.6}])
def test_other_weights_are_refused_at_the_call(weights: Any) -> None:
    with pytest.raises(TypeError):
        two(weights)


@pytest.mark.parametrize("weights", [[np.inf, np.inf], [1e-60, 1e-60]])
def test_weights_that_come_to_nothing_are_refused_at_the_call(weights: Any) -> None:
    with pytest.raises(ValueError, match="finite"):
        two(weights)


def test_seed_is_checked_even_if_it_is_not_needed() -> None:
    with pytest.raises(TypeError):
        two([1.0, 0.0], seed=1.5)


def test_bad_rows_take_an_elements_place_and_the_next_row_goes_on() -> None:
    rows = [arr([1, 0], np.float32), arr([0, 0], np.float32), arr([0, 1, 1], np.float32), arr([1, 2]), (0.0, 1.0)]
    ds = two(Dataset.from_generator(lambda: iter(rows)))
    expected = [np.int64(0), DataError, DataError, TypeError, np.int64(10)]
    assert_same(outcomes(ds), expected)
    assert_same(asyncio.run(outcomes_async(ds)), expected)


def test_rows_that_fail_take_an_elements_place_and_a_selection() -> None:
    weights = np.random.default_rng(0).random((9, 2)).astype(np.float32)

    def row(i: Any) -> Any:
        if i in (2, 3):
            raise Boom(int(i))
        return weights[i]

    def mixed(rows: Dataset[Any]) -> Dataset[Any]:
        return Dataset.sample_from_datasets([Dataset.range(9), Dataset.range(10, 19)], rows, 5)

    got = outcomes(mixed(Dataset.range(9).map(row)))
    whole = to_list(mixed(Dataset.range(9).map(lambda i: weights[i])))
    assert [i for i, x in enumerate(got) if isinstance(x, Boom)] == [2, 3]
    sides = [x if isinstance(x, Boom) else bool(x >= 10) for x in got]
    assert sides[:2] + sides[4:] == [bool(x >= 10) for i, x in enumerate(whole) if i not in (2, 3)]


def test_a_row_is_read_only_when_its_selection_is_made() -> None:
    seen: list[int] = []

    def row(i: Any) -> Any:
        seen.append(int(i))
        return arr([1, 1], np.float32)

    first(two(Dataset.range(9).map(row)), 3)
    assert seen == [0, 1, 2]


# Laziness and time


def test_inputs_are_computed_only_when_they_are_chosen() -> None:
    seen: list[int] = []

    def note(x: Any) -> Any:
        seen.append(int(x))
        return x

    ds = Dataset.sample_from_datasets([Dataset.range(9).map(note), Dataset.range(10, 19).map(note)], seed=5)
    got = first(ds, 5)
    assert seen == plain(got)


def test_the_last_input_left_is_read_without_further_draws() -> None:
    assert_same(sorted(to_list(two([1.0, 1e-30]))), i64(0, 1, 2, 3, 10, 11, 12, 13))


@pytest.mark.parametrize("by_row", [False, True])
async def test_selections_of_ended_inputs_leave_the_loop_alive(by_row: bool) -> None:
    shares = [1.0, 1e-30, 1e-30]
    weights: Any = Dataset.from_tensors(arr(shares, np.float32)).repeat() if by_row else shares
    ds = Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(4), Dataset.range(5)], weights, 5)
    task = asyncio.create_task(collect(ds))
    for _ in range(20):
        await asyncio.sleep(0.005)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_long_runs_over_many_inputs_lose_nothing() -> None:
    ds = Dataset.sample_from_datasets([Dataset.range(1000 * i, 1000 * i + 997) for i in range(40)], seed=5)
    got = plain(to_list(ds))
    assert sorted(got) == [1000 * i + j for i in range(40) for j in range(997)]
    for i in range(0, 40, 13):
        assert [x for x in got if x // 1000 == i] == list(range(1000 * i, 1000 * i + 997))
