"""`group_by_window`: groups by key, reduced when they are full, the rest at the end by ascending keys."""

from __future__ import annotations

import asyncio
import enum
import gc
import json
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import StateError
from aiodata.spec import TensorSpec
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_batch,
    outcomes,
    to_list,
)
from tests.resume.saving import FACES, along, check_rest, drive, part, relay


def parity(x: Any) -> Any:
    return x % 2


def batched(key: Any, group: Dataset[Any]) -> Dataset[Any]:
    return group.batch(100)


def keep(key: Any, group: Dataset[Any]) -> Dataset[Any]:
    return group


def plain_groups(keys: list[int], sizes: dict[int, int]) -> list[list[int]]:
    """Give the groups of the numbers 0, 1, ... with these keys in the order in which they are reduced."""
    groups: dict[int, list[int]] = {}
    given: list[list[int]] = []
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
        if len(groups[key]) == sizes[key]:
            given.append(groups.pop(key))
    return given + [groups[key] for key in sorted(groups)]


KEYS = st.lists(st.integers(-2, 3), max_size=40)
SIZES = st.fixed_dictionaries({key: st.integers(1, 6) for key in range(-2, 4)})


@given(keys=KEYS, sizes=SIZES)
def test_groups_are_those_of_a_plain_loop(keys: list[int], sizes: dict[int, int]) -> None:
    ds = Dataset.range(len(keys)).group_by_window(lambda x: keys[x], batched, window_size_func=lambda key: sizes[key])
    assert_same(to_list(ds), [arr(group) for group in plain_groups(keys, sizes)])


@given(keys=KEYS, sizes=SIZES, bad=st.sets(st.integers(0, 39)), leaps=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_is_left_and_picked_up_anywhere(
    keys: list[int], sizes: dict[int, int], bad: set[int], leaps: tuple[int, int]
) -> None:
    def make() -> Dataset[Any]:
        ds = failing(Dataset.range(len(keys)), *bad).batch(3).unbatch()
        return ds.group_by_window(lambda x: keys[x], keep, window_size_func=lambda key: sizes[key])

    straight, _ = drive("sync", part(make(), "sync"))
    check_rest(f"left after {leaps}", drive("sync", relay(make, "sync", None, leaps)), straight)


def test_group_is_reduced_as_soon_as_it_is_full() -> None:
    ds, seen = counted(Dataset.range(100))
    ds = ds.group_by_window(parity, batched, 3)
    assert_same(first(ds, 1), [arr([0, 2, 4])])
    assert seen == [0, 1, 2, 3, 4]


def test_left_over_groups_come_by_ascending_keys() -> None:
    ds = Dataset.from_tensor_slices([5, -3, 0, 7, -3, 2, -10])
    assert_gives(ds.group_by_window(lambda x: x, batched, 10), [arr(x) for x in ([-10], [-3, -3], [0], [2], [5], [7])])


def test_empty_one_and_sizes_around() -> None:
    assert_gives(Dataset.range(0).group_by_window(parity, batched, 2), [])
    assert_gives(Dataset.range(1).group_by_window(parity, batched, 2), [arr([0])])
    assert_gives(Dataset.range(3).group_by_window(parity, batched, 1), [arr([0]), arr([1]), arr([2])])
    assert_gives(Dataset.range(4).group_by_window(parity, batched, 2), [arr([0, 2]), arr([1, 3])])
    assert_gives(Dataset.range(5).group_by_window(parity, batched, 2), [arr([0, 2]), arr([1, 3]), arr([4])])


@pytest.mark.parametrize("size", [np.int64(2), np.int8(2), np.array(2)])
def test_sizes_may_be_numpy_integers(size: Any) -> None:
    assert_gives(Dataset.range(3).group_by_window(lambda x: 0, batched, window_size=size), [arr([0, 1]), arr([2])])
    ds = Dataset.range(3).group_by_window(lambda x: 0, batched, window_size_func=lambda key: size)
    assert_gives(ds, [arr([0, 1]), arr([2])])


class Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize("key", [1, np.int64(1), np.int32(1), np.uint8(1), np.array(1, np.int16), Number.ONE])
def test_keys_may_be_integers_of_any_kind(key: Any) -> None:
    got: list[Any] = []

    def reduce(key: Any, group: Dataset[Any]) -> Dataset[Any]:
        got.append(key)
        return group.batch(3)

    assert_same(to_list(Dataset.range(3).group_by_window(lambda x: key, reduce, 3)), [arr([0, 1, 2])])
    assert_same(got, i64(1))


def test_large_keys() -> None:
    keys = [2**63 - 1, -(2**63), 2**64 - 1, 2**80, 2**63 - 1]
    ds = Dataset.range(5).group_by_window(lambda x: keys[x], lambda key, group: group.map(lambda x: (key, x)), 9)
    expected = [(np.int64(-(2**63)), 1), (np.int64(2**63 - 1), 0), (np.int64(2**63 - 1), 4), (2**64 - 1, 2), (2**80, 3)]
    assert_same(to_list(ds), [(key, np.int64(x)) for key, x in expected])


@pytest.mark.parametrize("key", [1.0, np.float32(1), True, np.bool_(True), "a", b"a", None, np.array([1]), (1,), [1]])
def test_what_is_no_integer_is_an_error_at_that_element(key: Any) -> None:
    got = outcomes(Dataset.range(3).group_by_window(lambda x: key if x == 1 else 0, batched, 2))
    assert isinstance(got[0], TypeError)
    assert "key_func must give an integer" in str(got[0])
    assert any("element 1" in note for note in got[0].__notes__)
    assert_same(got[1:], [arr([0, 2])])


def test_functions_get_what_map_gets() -> None:
    pairs = Dataset.zip(Dataset.range(4), Dataset.range(3, -1, -1))
    ds = pairs.group_by_window(lambda a, b: a > b, batched, 2)
    assert all(isinstance(got, TypeError) for got in outcomes(ds))
    ds = pairs.group_by_window(lambda a, b: int(a > b), batched, 2)
    assert_gives(ds, [(arr([0, 1]), arr([3, 2])), (arr([2, 3]), arr([1, 0]))])
    ds = nested(4).group_by_window(lambda element: element["id"] % 2, batched, 2)
    assert_gives(ds, [nested_batch(0, 2), nested_batch(1, 3)])
    named = Dataset.from_tensor_slices(Pair(np.arange(2), np.arange(2)))
    assert_gives(named.group_by_window(lambda pair: pair.x * 0, batched, 2), [Pair(arr([0, 1]), arr([0, 1]))])


def test_reduced_datasets_may_have_any_number_of_elements() -> None:
    ds = Dataset.range(6).group_by_window(parity, lambda key, group: group.take(key).repeat(2), 2)
    assert_gives(ds, i64(1, 1, 5, 5))
    ds = Dataset.range(6).group_by_window(parity, lambda key, group: Dataset.from_tensors(key), 2)
    assert_gives(ds, i64(0, 1, 0, 1))


def test_a_group_can_be_read_twice_and_knows_itself() -> None:
    kept: list[Dataset[Any]] = []

    def both(key: Any, group: Dataset[Any]) -> Dataset[Any]:
        kept.append(group)
        return Dataset.zip(group, group.skip(1))

    assert_same(to_list(Dataset.range(4).group_by_window(parity, both, 2)), [(*i64(0, 2),), (*i64(1, 3),)])
    assert_same([to_list(group) for group in kept], [i64(0, 2), i64(1, 3)])
    assert [len(group) for group in kept] == [2, 2]
    assert kept[0].element_spec == TensorSpec((), np.int64)


def test_arrays_in_groups_are_read_only() -> None:
    ds = Dataset.range(2).map(lambda x: np.full(3, x)).group_by_window(lambda x: 0, keep, 2)
    assert [x.flags.writeable for x in to_list(ds)] == [False, False]


def test_error_of_the_input_or_of_key_func_takes_one_place() -> None:
    def key(x: Any) -> Any:
        if x == 3:
            raise Boom(3)
        return x % 2

    ds = failing(Dataset.range(8), 1, 6).group_by_window(key, batched, 2)
    assert_outcomes(ds, [Boom(1), arr([0, 2]), Boom(3), Boom(6), arr([5, 7]), arr([4])])


def test_error_of_reduce_func_takes_the_groups_place() -> None:
    def reduce(key: Any, group: Dataset[Any]) -> Dataset[Any]:
        if key == 1:
            raise Boom(1)
        return group.batch(2)

    ds = Dataset.range(6).group_by_window(parity, reduce, 2)
    assert_outcomes(ds, [arr([0, 2]), Boom(1), arr([4]), Boom(1)])
    assert any("group_by_window(parity), element 1" in note for note in outcomes(ds)[1].__notes__)


def test_error_inside_a_reduced_dataset_takes_one_place() -> None:
    ds = Dataset.range(5).group_by_window(parity, lambda key, group: failing(group, 2, 3), 2)
    assert_outcomes(ds, [np.int64(0), Boom(2), np.int64(1), Boom(3), np.int64(4)])


@pytest.mark.parametrize("answer", [3, None, [1, 2], np.arange(3)])
def test_reduce_func_must_give_a_dataset(answer: Any) -> None:
    got = outcomes(Dataset.range(3).group_by_window(parity, lambda key, group: answer if key else group, 2))
    assert_same(got[:2], i64(0, 2))
    assert isinstance(got[2], TypeError)
    assert "reduce_func must give a Dataset" in str(got[2])


@pytest.mark.parametrize("function", ["key_func", "reduce_func", "window_size_func"])
def test_stop_iteration_does_not_end_the_stream(function: str) -> None:
    def stop(*_: Any) -> Any:
        raise StopIteration

    functions: dict[str, Any] = {"key_func": parity, "reduce_func": batched, "window_size_func": lambda key: 2}
    got = outcomes(Dataset.range(3).group_by_window(**{**functions, function: stop}))
    assert len(got) == (2 if function == "reduce_func" else 3)
    assert all(isinstance(error, RuntimeError) for error in got)


@pytest.mark.parametrize("size", [0, -1, 1.5, None, True])
def test_a_wrong_size_of_window_size_func_is_an_error_at_each_element(size: Any) -> None:
    ds = Dataset.range(5).group_by_window(parity, batched, window_size_func=lambda key: size if key else 2)
    got = outcomes(ds)
    assert [type(x) for x in got if isinstance(x, Exception)] == [ValueError if size in (0, -1) else TypeError] * 2
    assert_same([x for x in got if not isinstance(x, Exception)], [arr([0, 2]), arr([4])])


def test_exactly_one_size_is_needed() -> None:
    ds = Dataset.range(3)
    with pytest.raises(ValueError, match="window_size"):
        ds.group_by_window(parity, batched)
    with pytest.raises(ValueError, match="window_size"):
        ds.group_by_window(parity, batched, 2, lambda key: 2)


@pytest.mark.parametrize("size", [0, -1])
def test_a_constant_size_below_one_is_refused_at_the_call(size: int) -> None:
    with pytest.raises(ValueError, match=f"group_by_window: window_size must be at least 1, not {size}"):
        Dataset.range(3).group_by_window(parity, batched, size)


def test_a_constant_size_that_is_no_integer_is_refused_at_the_call() -> None:
    size: Any = 1.5
    with pytest.raises(TypeError, match="group_by_window: window_size"):
        Dataset.range(3).group_by_window(parity, batched, size)


async def later(*_: Any) -> Any:
    return 0


@pytest.mark.parametrize("argument", ["key_func", "reduce_func", "window_size_func"])
@pytest.mark.parametrize("value", [3, "x", later])
def test_what_is_no_plain_function_is_refused_at_the_call(argument: str, value: Any) -> None:
    functions: dict[str, Any] = {"key_func": parity, "reduce_func": batched, "window_size_func": lambda key: 2}
    with pytest.raises(TypeError, match=f"group_by_window: {argument}"):
        Dataset.range(3).group_by_window(**{**functions, argument: value})


def test_cardinality() -> None:
    assert Dataset.range(4).group_by_window(parity, batched, 2).cardinality() == aiodata.UNKNOWN_CARDINALITY
    endless = Dataset.range(4).repeat().group_by_window(parity, batched, 2)
    assert endless.cardinality() == aiodata.INFINITE_CARDINALITY
    assert_same(first(endless, 3), [arr([0, 2]), arr([1, 3]), arr([0, 2])])


def test_repr_tells_the_arguments() -> None:
    ds = Dataset.range(4).group_by_window(parity, batched, 2, name="mine")
    assert (ds.plan.label, ds.plan.title) == ("group_by_window(parity, batched, 2)", "mine")
    label = Dataset.range(4).group_by_window(parity, batched, window_size_func=parity).plan.label
    assert label == "group_by_window(parity, batched, window_size_func=parity)"


def test_two_iterators_at_once() -> None:
    ds = Dataset.range(6).group_by_window(parity, batched, 2)
    with ds.iterate() as one, ds.iterate() as other:
        assert_same([next(one), next(other), next(one)], [arr([0, 2]), arr([0, 2]), arr([1, 3])])


def test_coroutines_inside_run_on_the_readers_loop() -> None:
    loops: list[Any] = []

    async def note(x: Any) -> Any:
        loops.append(asyncio.get_running_loop())
        return x

    async def work() -> list[Any]:
        ds = Dataset.range(6).group_by_window(parity, lambda key, group: group.map(note), 3).prefetch(2)
        async with ds.iterate() as iterator:
            got = [x async for x in iterator]
        assert set(loops) == {asyncio.get_running_loop()}
        return got

    assert_same(asyncio.run(work()), i64(0, 2, 4, 1, 3, 5))


async def test_long_reading_lets_the_loop_breathe() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    try:
        async with Dataset.range(200_000).group_by_window(lambda x: 0, batched, 10**9).iterate() as iterator:
            await anext(iterator)
    finally:
        ticking.cancel()
    assert ticks > 5


# Resuming


def random_walk(x: Any) -> Any:
    return (x * x + 3 * x) % 17 % 5 - 1


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("repeated", [False, True])
def test_restores_behind_a_shuffle_and_before_stages_that_read_ahead(face: str, repeated: bool) -> None:
    def make() -> Dataset[Any]:
        ds = failing(Dataset.range(90), 7, 44).shuffle(9, seed=1)
        ds = ds.group_by_window(random_walk, lambda key, group: group.shuffle(4, seed=2).batch(2), 5)
        return (ds.repeat(2) if repeated else ds).prefetch(3)

    async def work() -> None:
        straight, states = await along(make(), face)
        for number, state in enumerate(states):
            check_rest(f"restored before pull {number}", await relay(make, face, state, (1,)), straight[number:])

    drive(face, work())


def test_shuffles_without_a_seed_go_on_as_they_were() -> None:
    """Datasets that a function makes have new generators each time: a state holds those of the one that is open."""
    ds = Dataset.range(20).group_by_window(
        lambda x: 0, lambda key, group: group.shuffle(20).concatenate(group.shuffle(20)), 20
    )
    with ds.iterate() as iterator:
        states = []
        got = []
        for element in iterator:
            got.append(element)
            states.append(iterator.state_dict())
    for number, state in enumerate(states):
        assert_same(list(ds.iterate(state)), got[number + 1 :])


def test_a_state_holds_no_elements_and_its_size_does_not_grow() -> None:
    element = np.zeros(10_000)

    def make() -> Dataset[Any]:
        ds = Dataset.range(3000).map(lambda x: (x, element))
        return ds.group_by_window(lambda x, row: x % 3, lambda key, group: group.map(lambda x, row: x), 50)

    with make().iterate() as iterator:
        sizes = []
        for _ in range(2000):
            next(iterator)
            sizes.append(len(json.dumps(iterator.state_dict())))
        state = iterator.state_dict()
        following = next(iterator)
    assert max(sizes) < 600
    assert_same(next(make().iterate(state)), following)


def test_restoring_reads_again_from_the_oldest_element_held() -> None:
    seen: list[int] = []

    def note(x: Any) -> Any:
        seen.append(int(x))
        return x

    ds = Dataset.range(10_000).map(note).group_by_window(lambda x: x // 10 % 2, batched, 8)
    with ds.iterate() as iterator:
        for _ in range(1000):
            next(iterator)
        at = seen[-1]
        state = iterator.state_dict()
        following = next(iterator)
    seen.clear()
    assert_same(next(ds.iterate(state)), following)
    assert at - seen[0] < 200


def test_restores_with_many_groups_held() -> None:
    ds = Dataset.range(40_000).group_by_window(lambda x: x % 20_000, keep, 2)
    with ds.iterate() as iterator:
        assert_same([next(iterator) for _ in range(6)], i64(0, 20_000, 1, 20_001, 2, 20_002))
        state = iterator.state_dict()
        following = [next(iterator) for _ in range(3)]
    with ds.iterate(state) as iterator:
        assert_same([next(iterator) for _ in range(3)], following)


@pytest.mark.parametrize("count", [3, 5])
def test_an_input_that_has_changed_is_reported(count: int) -> None:
    sizes = [20]

    def make() -> Dataset[Any]:
        ds = Dataset.from_generator(lambda: iter(range(sizes[0])))
        return ds.group_by_window(lambda x: x % 3, batched, 5)

    with make().iterate() as iterator:
        for _ in range(count):
            next(iterator)
        state = iterator.state_dict()
    sizes[0] = 2
    with pytest.raises(StateError):
        list(make().iterate(state))


def test_a_key_func_that_has_changed_is_reported() -> None:
    shift = [0]
    ds = Dataset.range(20).group_by_window(lambda x: (x + shift[0]) % 3, batched, 5)
    with ds.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    shift[0] = 5000
    with pytest.raises(StateError, match="group_by_window"):
        list(Dataset.range(20).group_by_window(lambda x: x, batched, 5).iterate(state))


@pytest.mark.parametrize("failing_function", ["key_func", "reduce_func"])
def test_an_iterator_can_be_dropped_after_an_error(failing_function: str) -> None:
    def fail(*_: Any) -> Any:
        raise Boom

    functions: dict[str, Any] = {"key_func": parity, "reduce_func": batched, failing_function: fail}

    def begin() -> weakref.ref[Any]:
        iterator = iter(Dataset.range(9).group_by_window(**functions, window_size=2))
        with suppress(Boom):
            next(iterator)
        return weakref.ref(iterator)

    gc.disable()  # what is in a reference cycle would be found by it
    try:
        assert begin()() is None
    finally:
        gc.enable()
