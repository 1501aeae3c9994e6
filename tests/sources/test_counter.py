"""`counter`: an endless sum of steps, in its dtype."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.spec import TensorSpec
from tests.programs import assert_gives, assert_same, first, i64

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def test_counts_from_zero() -> None:
    assert_gives(Dataset.counter().take(3), i64(0, 1, 2))


@pytest.mark.parametrize(
    ("start", "step", "expected"),
    [
        (5, 1, [5, 6, 7]),
        (-3, 2, [-3, -1, 1]),
        (2, -3, [2, -1, -4]),
        (7, 0, [7, 7, 7]),
        (np.int8(1), np.int16(2), [1, 3, 5]),
    ],
)
def test_starts_and_steps_as_told(start: Any, step: Any, expected: list[int]) -> None:
    assert_gives(Dataset.counter(start, step).take(3), i64(*expected))


def test_arguments_have_tensorflows_names_and_order() -> None:
    ds = Dataset.counter(start=1, step=2, dtype=np.int32, name="steps").take(2)
    assert_same(first(ds, 2), [np.int32(1), np.int32(3)])
    assert_same(first(Dataset.counter(1, 2, np.int32, "steps"), 2), [np.int32(1), np.int32(3)])


def test_floats_are_added_up_in_their_dtype() -> None:
    numbers = [np.float32(0)]
    for _ in range(300):
        numbers.append(numbers[-1] + np.float32(0.1))
    assert numbers[-1] != np.float32(30)
    assert_same(first(Dataset.counter(0, 0.1, np.float32), 301), numbers)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_every_float_dtype_is_fine(dtype: Any) -> None:
    assert_same(first(Dataset.counter(0.5, -1.25, dtype), 3), [dtype(0.5), dtype(-0.75), dtype(-2)])


@given(st.sampled_from(INTEGERS), st.data())
def test_integers_go_on_from_the_other_end(dtype: Any, data: st.DataObject) -> None:
    limits = np.iinfo(dtype)
    start, step = (data.draw(st.integers(int(limits.min), int(limits.max))) for _ in range(2))
    size = int(limits.max) - int(limits.min) + 1
    expected = [dtype((start + step * i - int(limits.min)) % size + int(limits.min)) for i in range(200)]
    assert_same(first(Dataset.counter(start, step, dtype), 200), expected)


def test_floats_that_grow_too_large_are_infinite() -> None:
    ds = Dataset.counter(3e38, 3e38, np.float32)
    assert_same(first(ds, 3), [np.float32(3e38), np.float32(np.inf), np.float32(np.inf)])


@pytest.mark.parametrize("arguments", [(0, 0.1, np.float32), (120, 3, np.int8), (3e38, 3e38, np.float32), (0, 1)])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 500])
def test_resumes_exactly(arguments: Any, count: int) -> None:
    straight = first(Dataset.counter(*arguments), count + 100)
    with Dataset.counter(*arguments).iterate() as iterator:
        for _ in range(count):
            next(iterator)
        state = json.loads(json.dumps(iterator.state_dict(), allow_nan=False))
    with Dataset.counter(*arguments).iterate(state) as iterator:
        assert_same([next(iterator) for _ in range(100)], straight[count:])


def test_batches_are_cut_from_its_columns() -> None:
    batches = first(Dataset.counter().batch(100), 3)
    assert_same(batches, [np.arange(100 * i, 100 * i + 100) for i in range(3)])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.5,), "start must be an integer"),
        ((0, 1.0), "step must be an integer"),
        ((True,), "start must be an integer"),
        (("0", 1, np.float32), "start must be a number"),
        ((0, True, np.float32), "step must be a number"),
        ((0, 1, bool), "dtype"),
        ((0, 1, object), "dtype"),
        ((0, 1, np.complex64), "dtype"),
        ((0, 1, "datetime64[s]"), "dtype"),
    ],
)
def test_other_arguments_are_refused_at_the_call(arguments: Any, words: str) -> None:
    with pytest.raises(TypeError, match=rf"counter: {words}"):
        Dataset.counter(*arguments)


@pytest.mark.parametrize(
    "arguments", [(128, 1, np.int8), (0, -1, np.uint8), (2**63,), (1e39, 1, np.float32), (10**400, 1, float)]
)
def test_what_does_not_fit_the_dtype_is_refused_at_the_call(arguments: Any) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Dataset.counter(*arguments)


def test_it_is_endless_and_says_so() -> None:
    ds = Dataset.counter(3, -1, np.int16, name="down")
    assert ds.cardinality() == aiodata.INFINITE_CARDINALITY
    assert ds.element_spec == TensorSpec((), np.int16)
    assert "counter(3, -1, int16) 'down'" in repr(ds)


async def test_it_leaves_the_loop_alive_where_nothing_comes_through() -> None:
    async def read() -> None:
        async for _ in Dataset.counter().filter(lambda x: False):
            pass

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await read()
