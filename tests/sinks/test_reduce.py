"""`reduce` and `areduce`: fold all elements into one state."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import Boom, Pair, arr, assert_same, counted, failing, i64, nested


def add(state: Any, x: Any) -> Any:
    return state + x


async def check(ds: Dataset[Any], initial: Any, function: Any, expected: Any) -> None:
    """Check both faces, in a running loop."""
    assert_same(ds.reduce(initial, function), expected)
    assert_same(await ds.areduce(initial, function), expected)


@pytest.mark.parametrize("size", [1, 2, 10])
async def test_sums_all_elements(size: int) -> None:
    await check(Dataset.range(size), np.int64(0), add, np.int64(sum(range(size))))


def test_works_without_a_loop() -> None:
    assert_same(Dataset.range(4).reduce(np.int64(0), add), np.int64(6))


async def test_empty_input_gives_the_initial_state() -> None:
    await check(Dataset.range(0), np.int64(7), add, np.int64(7))
    state = {"a": arr([1]), "b": Pair(*i64(1, 2))}
    await check(Dataset.range(0), state, add, state)


async def test_elements_come_in_order() -> None:
    await check(Dataset.range(5), np.int64(0), lambda state, x: state * 10 + x, np.int64(1234))


async def test_a_tuple_element_is_one_argument() -> None:
    ds = Dataset.zip(Dataset.range(3), Dataset.range(10, 13))
    await check(ds, np.int64(0), lambda state, pair: state + pair[0] * pair[1], np.int64(35))


async def test_a_tuple_state_is_one_argument() -> None:
    await check(Dataset.range(4), (*i64(0, 0),), count_and_sum, (*i64(4, 6),))


def count_and_sum(state: Any, x: Any) -> Any:
    return state[0] + 1, state[1] + x


async def test_structures_are_one_argument() -> None:
    await check(nested(3), np.int64(0), lambda state, d: state + d["parts"][1].y, np.int64(3))


async def test_an_error_fails_the_whole_reduction() -> None:
    ds = failing(Dataset.range(4), 2)
    with pytest.raises(Boom, match="2"):
        ds.reduce(np.int64(0), add)
    with pytest.raises(Boom, match="2"):
        await ds.areduce(np.int64(0), add)


async def test_an_error_of_the_function_arrives_as_itself_and_stops_reading() -> None:
    def broken(state: Any, x: Any) -> Any:
        if x == 1:
            raise Boom(1)
        return state

    ds, seen = counted(Dataset.range(100))
    with pytest.raises(Boom, match="1"):
        ds.reduce(0, broken)
    with pytest.raises(Boom, match="1"):
        await ds.areduce(0, broken)
    assert seen == [0, 1] * 2


async def test_each_reduction_reads_the_dataset_once() -> None:
    ds, seen = counted(Dataset.range(3))
    ds.reduce(np.int64(0), add)
    await ds.areduce(np.int64(0), add)
    assert seen == [0, 1, 2] * 2


async def test_what_cannot_be_called_is_refused() -> None:
    function: Any = 3
    with pytest.raises(TypeError):
        Dataset.range(3).reduce(0, function)
    with pytest.raises(TypeError):
        await Dataset.range(3).areduce(0, function)


def test_a_function_that_ends_an_iteration_is_an_error() -> None:
    def end(state: Any, x: Any) -> Any:
        raise StopIteration(int(x))

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        Dataset.range(3).reduce(0, end)
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(Dataset.range(3).areduce(0, end))
