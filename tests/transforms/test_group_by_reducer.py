"""`group_by_reducer`: one value for each key at the input's end, by ascending keys."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import StateError
from aiodata.transforms.group_by_reducer import Reducer
from tests.programs import (
    Boom,
    Pair,
    assert_gives,
    assert_outcomes,
    assert_same,
    failing,
    first,
    i64,
    nested,
    outcomes,
    to_list,
)
from tests.resume.saving import FACES, along, check_rest, drive, part

ADD = Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)
MEAN = Reducer(lambda key: (0, 0), lambda state, x: (state[0] + x, state[1] + 1), lambda total, count: total / count)


def parity(x: Any) -> Any:
    return x % 2


@given(keys=st.lists(st.integers(-3, 3), max_size=40))
def test_values_are_those_of_a_plain_loop(keys: list[int]) -> None:
    sums = {key: sum(number for number, own in enumerate(keys) if own == key) for key in sorted(set(keys))}
    assert_same(to_list(Dataset.range(len(keys)).group_by_reducer(lambda x: keys[x], ADD)), i64(*sums.values()))


def test_empty_and_one() -> None:
    assert_gives(Dataset.range(0).group_by_reducer(parity, ADD), [])
    assert_gives(Dataset.range(3).filter(lambda x: False).group_by_reducer(parity, ADD), [])
    assert_gives(Dataset.range(7, 8).group_by_reducer(parity, ADD), i64(7))


def test_a_state_that_is_a_tuple_is_unpacked_for_finalize_func_only() -> None:
    assert_gives(Dataset.range(6).group_by_reducer(parity, MEAN), [np.float64(2.0), np.float64(3.0)])


def test_functions_get_the_key_and_a_tuple_as_one_argument() -> None:
    got: list[Any] = []

    def begin(key: Any) -> Any:
        got.append(key)
        return {"key": key, "sum": 0}

    def step(state: Any, element: Any) -> Any:
        number, other = element
        return {**state, "sum": state["sum"] + number * other}

    ds = Dataset.zip(Dataset.range(3), Dataset.range(5, 8))
    ds = ds.group_by_reducer(lambda a, b: -int(a == 0), Reducer(begin, step, lambda state: state))
    assert_same(to_list(ds), [{"key": np.int64(-1), "sum": np.int64(0)}, {"key": np.int64(0), "sum": np.int64(20)}])
    assert_same(got, i64(-1, 0))


def test_results_are_elements_as_those_of_map() -> None:
    ds = nested(3).group_by_reducer(
        lambda element: 0,
        Reducer(lambda key: [0, 1], lambda state, x: [state[0] + x["id"], 1], lambda a, b: [a, Pair(b, 2)]),
    )
    assert_gives(ds, [(np.int32(3), Pair(1, 2))])
    got = outcomes(Dataset.range(2).group_by_reducer(parity, Reducer(lambda key: 0, lambda s, x: s, lambda s: None)))
    assert [type(error) for error in got] == [TypeError, TypeError]


def test_error_of_the_input_or_the_key_takes_one_place_before_the_values() -> None:
    def key(x: Any) -> Any:
        if x == 4:
            raise Boom(4)
        return 0.5 if x == 5 else x % 2

    got = outcomes(failing(Dataset.range(8), 1).group_by_reducer(key, ADD))
    assert_same(got, [Boom(1), Boom(4), TypeError, *i64(0 + 2 + 6, 3 + 7)])
    assert any("group_by_reducer(" in note and "element 5" in note for note in got[2].__notes__)


def test_a_failed_step_leaves_the_state_as_it_was() -> None:
    def begin(key: Any) -> Any:
        if key == 2:
            raise Boom(2)
        return np.int64(100)

    def step(total: Any, x: Any) -> Any:
        if x in (1, 6):
            raise Boom(int(x))
        return total + x

    ds = Dataset.range(8).group_by_reducer(lambda x: x % 3, Reducer(begin, step, lambda total: total))
    assert_outcomes(ds, [Boom(1), Boom(2), Boom(2), Boom(6), *i64(100 + 3, 100 + 4 + 7)])


def test_a_key_whose_only_step_failed_has_its_first_state() -> None:
    def step(total: Any, x: Any) -> Any:
        raise Boom(int(x))

    ds = Dataset.range(1).group_by_reducer(parity, Reducer(lambda key: np.int64(9), step, lambda total: total))
    assert_outcomes(ds, [Boom(0), np.int64(9)])


def test_error_of_finalize_func_takes_its_values_place() -> None:
    def end(total: Any) -> Any:
        if total == 1 + 4:
            raise StopIteration
        return total

    ds = Dataset.range(6).group_by_reducer(lambda x: x % 3, Reducer(ADD.init_func, ADD.reduce_func, end))
    got = outcomes(ds)
    assert_same(got, [np.int64(3), RuntimeError, np.int64(7)])


def test_values_are_made_when_they_are_asked_for() -> None:
    ended: list[int] = []

    def end(total: Any) -> Any:
        ended.append(int(total))
        return total

    ds = Dataset.range(6).group_by_reducer(lambda x: x % 3, Reducer(ADD.init_func, ADD.reduce_func, end))
    assert_same(first(ds, 1), i64(3))
    assert ended == [3]


@pytest.mark.parametrize("function", [3, None, asyncio.sleep])
def test_what_is_no_plain_function_is_refused_at_the_call(function: Any) -> None:
    with pytest.raises(TypeError, match="group_by_reducer: key_func"):
        Dataset.range(3).group_by_reducer(function, ADD)
    with pytest.raises(TypeError, match="Reducer: reduce_func"):
        Reducer(parity, function, parity)


def test_what_is_no_reducer_is_refused_at_the_call() -> None:
    reducer: Any = parity
    with pytest.raises(TypeError, match="group_by_reducer: reducer must be a Reducer, not function"):
        Dataset.range(3).group_by_reducer(parity, reducer)


def test_a_reducer_has_its_functions() -> None:
    reducer = Reducer(abs, max, min)
    assert (reducer.init_func, reducer.reduce_func, reducer.finalize_func) == (abs, max, min)
    with pytest.raises(AttributeError):
        setattr(reducer, "init_func", parity)  # noqa: B010


def test_cardinality_and_repr() -> None:
    ds = Dataset.range(3).group_by_reducer(parity, ADD, name="mine")
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    label = "group_by_reducer(parity, <lambda>, <lambda>, <lambda>)"
    assert (ds.plan.label, ds.plan.title) == (label, "mine")


@pytest.mark.parametrize("face", FACES)
def test_restores_at_every_element_behind_a_shuffle(face: str) -> None:
    def make() -> Dataset[Any]:
        ds = failing(Dataset.range(30), 4, 19).shuffle(6, seed=1)
        last = Reducer(lambda key: key, lambda state, x: x, lambda x: x)
        return ds.group_by_reducer(lambda x: x % 4 - 2, last).repeat(2)

    async def work() -> None:
        straight, states = await along(make(), face)
        assert len(straight) == 12
        for number, state in enumerate(states):
            found, _ = await part(make(), face, state)
            check_rest(f"restored before pull {number}", found, straight[number:])

    drive(face, work())


def test_an_input_that_has_changed_is_reported() -> None:
    def make(count: int) -> Dataset[Any]:
        return Dataset.from_generator(lambda: iter(range(count))).group_by_reducer(lambda x: x % 3, ADD)

    with make(20).iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    with pytest.raises(StateError):
        list(make(10).iterate(state))


async def test_reducing_lets_the_loop_breathe() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    try:
        async with Dataset.range(100_000).group_by_reducer(parity, ADD).iterate() as iterator:
            await anext(iterator)
    finally:
        ticking.cancel()
    assert ticks > 5
