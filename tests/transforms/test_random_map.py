"""`random_map`: every call gets a generator that depends on the seed, the epoch and the element's number only."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.philox import WordStream
from tests.programs import (
    Boom,
    Pair,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    failing,
    first,
    global_seed,
    i64,
    nested,
    outcomes,
    plain,
    repeated,
    to_list,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def raw(x: Any, rng: np.random.Generator) -> Any:
    return rng.bit_generator.random_raw()


def numbered(x: Any, rng: np.random.Generator) -> Any:
    return x, rng.integers(1 << 40)


async def numbered_later(x: Any, rng: np.random.Generator) -> Any:
    await asyncio.sleep(0)
    return numbered(x, rng)


def numbered_but_two(x: Any, rng: np.random.Generator) -> Any:
    if x == 2:
        raise Boom(2)
    return numbered(x, rng)


def pair_of(seed: int, epoch: int) -> list[int]:
    stream = WordStream(87654321, seed, drawn=2 * epoch)
    return [stream.next_word(), stream.next_word()]


def expected(seed: int, epoch: int, count: int) -> list[Any]:
    """Follow the documented rule, with numpy alone."""
    found = []
    for number in range(count):
        philox = np.random.Philox(key=pair_of(seed, epoch), counter=[0, 0, 0, number])
        found.append((np.int64(number), np.random.Generator(philox).integers(1 << 40)))
    return found


GOLDEN = [
    [18444612281824707853, 13009873757578356774, 12391865288159300618],
    [11103605978891998362, 10558466115544328230, 2076804736827778478],
]


def passes(ds: Dataset[Any], count: int) -> list[Any]:
    return [to_list(ds) for _ in range(count)]


# What the generators give


def test_the_numbers_are_these() -> None:
    ds = Dataset.range(3).random_map(raw, seed=1)
    assert passes(ds, 2) == GOLDEN


def test_the_numbers_follow_the_documented_rule() -> None:
    ds = Dataset.range(70).random_map(numbered, seed=9)
    assert_same(passes(ds, 3), [expected(9, epoch, 70) for epoch in range(3)])


@given(count=st.integers(0, 40), seed=st.integers(0, 2**31 - 2), calls=st.sampled_from([None, 1, 3]))
@settings(max_examples=20, deadline=None)
def test_any_size_and_seed_follows_the_rule(count: int, seed: int, calls: int | None) -> None:
    ds = Dataset.range(count).random_map(numbered, seed, calls)
    assert_same(to_list(ds), expected(seed, 0, count))


@pytest.mark.parametrize(
    "make",
    [
        lambda ds: ds.random_map(numbered, 5, num_parallel_calls=3),
        lambda ds: ds.random_map(numbered_later, 5),
        lambda ds: ds.random_map(numbered_later, 5, num_parallel_calls=4),
        lambda ds: ds.batch(7).unbatch().random_map(numbered, 5),
        lambda ds: ds.map(lambda x: x).random_map(numbered, 5),
        lambda ds: ds.map(lambda x: x).filter(lambda x: True).random_map(numbered, 5).prefetch(3),
    ],
    ids=["threads", "coroutine", "coroutines", "other blocks", "rows", "prefetched"],
)
def test_nothing_but_seed_epoch_and_number_matters(make: Callable[[Dataset[Any]], Dataset[Any]]) -> None:
    ds = make(Dataset.range(100))
    assert_same(to_list(ds), expected(5, 0, 100))
    assert_same(asyncio.run(collect(ds)), expected(5, 1, 100))


def test_an_order_that_is_not_kept_changes_no_element() -> None:
    ds = Dataset.range(40).random_map(numbered_later, 5, num_parallel_calls=4, deterministic=False)
    assert_same(sorted(to_list(ds)), expected(5, 0, 40))


def test_an_executor_of_the_users_is_taken() -> None:
    with ThreadPoolExecutor(2) as pool:
        ds = Dataset.range(9).random_map(numbered, 5, 2, executor=pool)
        assert_same(to_list(ds), expected(5, 0, 9))


def test_worker_processes_repeat_no_draw() -> None:
    ds = Dataset.range(20).random_map(numbered, 5, num_parallel_calls=4, executor="process").repeat(2)
    found = to_list(ds)
    assert_same(found, expected(5, 0, 20) + expected(5, 1, 20))
    assert len({int(drawn) for _, drawn in found}) == 40


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_another_process_gives_the_same(hash_seed: str) -> None:
    code = (
        "import aiodata; ds = aiodata.Dataset.range(3).random_map(lambda x, rng: rng.bit_generator.random_raw(), 1);"
        "print([list(ds), list(ds)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == GOLDEN


# Epochs


def test_two_passes_are_two_epochs_and_so_are_those_of_repeat() -> None:
    def make() -> Dataset[Any]:
        return Dataset.range(5).random_map(numbered, seed=3)

    one, two = passes(make(), 2)
    assert one != two
    assert_same(to_list(make().repeat(2)), one + two)
    assert_same(to_list(make().repeat(2)), expected(3, 0, 5) + expected(3, 1, 5))


def test_endless_repetition_never_repeats_a_draw() -> None:
    found = first(Dataset.range(3).random_map(numbered, seed=3).repeat(), 3000)
    assert len({int(drawn) for _, drawn in found}) == 3000


def test_iterators_take_epochs_as_they_are_made() -> None:
    ds = Dataset.range(4).random_map(numbered, seed=3)
    with ds.iterate() as one, ds.iterate() as other:
        assert_same(list(other), expected(3, 1, 4))
        assert_same(list(one), expected(3, 0, 4))


def test_describing_takes_no_epoch() -> None:
    ds = Dataset.range(4).random_map(numbered, seed=3)
    assert len(ds) == 4
    assert "random_map" in repr(ds)
    ds.repeat(2).batch(2)
    assert_same(to_list(ds), expected(3, 0, 4))


def test_behind_a_shuffle_both_change_with_the_epoch() -> None:
    def make() -> Dataset[Any]:
        return Dataset.range(10).shuffle(10, seed=1).random_map(numbered, seed=3)

    orders = repeated(lambda: Dataset.range(10).shuffle(10, seed=1), 2)
    found = passes(make(), 2)
    for epoch in range(2):
        assert plain([x for x, _ in found[epoch]]) == orders[epoch]
        assert_same([drawn for _, drawn in found[epoch]], [drawn for _, drawn in expected(3, epoch, 10)])
    assert_same(to_list(make().repeat(2)), found[0] + found[1])


# Seeds


def test_without_a_seed_datasets_differ() -> None:
    one, other = (Dataset.range(20).random_map(numbered) for _ in range(2))
    assert to_list(one) != to_list(other)


def test_the_global_seed_gives_implicit_seeds_in_building_order() -> None:
    found = []
    for _ in range(2):
        with global_seed(7):
            one, other = (Dataset.range(5).random_map(numbered) for _ in range(2))
        found.append((passes(one, 2), passes(other, 2)))
    assert_same(found[0], found[1])
    assert found[0][0] != found[0][1]


def test_the_global_seed_changes_what_a_seed_gives() -> None:
    with global_seed(7):
        ds = Dataset.range(5).random_map(numbered, seed=3)
    assert to_list(ds) != expected(3, 0, 5)


def test_seeds_differ() -> None:
    assert to_list(Dataset.range(5).random_map(raw, seed=0)) != to_list(Dataset.range(5).random_map(raw, seed=1))


# Elements


@pytest.mark.parametrize("count", [0, 1])
def test_few_elements(count: int) -> None:
    assert_gives(Dataset.range(count).random_map(lambda x, rng: x, seed=1), i64(*range(count)))


def test_the_generator_comes_behind_the_elements_own_arguments() -> None:
    pairs = Dataset.zip(Dataset.range(3), Dataset.range(10, 13))
    assert_gives(pairs.random_map(lambda a, b, rng: (b, isinstance(rng, np.random.Generator))), [
        (x, True) for x in i64(10, 11, 12)
    ])  # fmt: skip
    one = Dataset.from_tensor_slices((np.arange(2),))
    assert_gives(one.random_map(lambda x, rng: x), i64(0, 1))


def test_a_named_tuple_and_a_dict_are_one_argument() -> None:
    assert_gives(Dataset.from_tensor_slices(Pair(np.arange(2), np.arange(2))).random_map(lambda p, rng: p.y), i64(0, 1))
    assert_gives(nested(2).random_map(lambda d, rng: d["parts"][1].y), i64(0, 1))


def test_generators_are_not_shared() -> None:
    one, other = to_list(Dataset.range(2).random_map(lambda x, rng: {"rng": rng}, seed=5))
    assert one["rng"] is not other["rng"]
    assert [int(each["rng"].integers(1 << 40)) for each in (one, other)] == [int(d) for _, d in expected(5, 0, 2)]


def test_spawning_is_refused() -> None:
    with pytest.raises(TypeError, match="spawning"):
        to_list(Dataset.range(1).random_map(lambda x, rng: rng.spawn(1)))


# Errors


@pytest.mark.parametrize("calls", [None, 2])
def test_an_error_takes_its_elements_place_and_number(calls: int | None) -> None:
    of_input = failing(Dataset.range(5), 1).random_map(numbered, 3, calls)
    of_function = Dataset.range(5).random_map(numbered_but_two, 3, calls)
    for ds, bad in ((of_input, 1), (of_function, 2)):
        for epoch in range(2):
            found = expected(3, epoch, 5)
            found[bad] = Boom(bad)
            assert_same(outcomes(ds), found)


@pytest.mark.parametrize("calls", [None, 2])
def test_an_error_is_noted_with_stage_and_element(calls: int | None) -> None:
    error = outcomes(Dataset.range(4).random_map(numbered_but_two, 3, calls))[2]
    assert error.__notes__ == ["in random_map(numbered_but_two), element 2"]


def test_an_error_in_a_process_is_noted_too() -> None:
    error = outcomes(Dataset.range(3).random_map(numbered_but_two, 3, 2, executor="process"))[2]
    assert isinstance(error, Boom)
    assert any(note.startswith("in random_map(numbered_but_two), element 2") for note in error.__notes__)


def test_an_end_of_iteration_in_the_function_is_no_end() -> None:
    def stop(x: Any, rng: Any) -> Any:
        if x == 1:
            raise StopIteration
        return x

    assert_outcomes(Dataset.range(3).random_map(stop), [*i64(0), RuntimeError, *i64(2)])


# The description


def test_it_is_one_stage() -> None:
    ds = Dataset.range(3).random_map(numbered, seed=4, num_parallel_calls=2)
    assert len(ds.plan.walk()) == 2
    assert ds.plan.label == "random_map(numbered, seed=4)"
    assert Dataset.range(3).random_map(numbered).plan.label == "random_map(numbered)"
    assert Dataset.range(3).random_map(numbered, name="crop").plan.title == "crop"


def test_cardinality_is_the_inputs() -> None:
    assert len(Dataset.range(3).random_map(numbered)) == 3
    assert Dataset.range(3).repeat().random_map(numbered).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(3).filter(bool).random_map(numbered).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).random_map(numbered).element_spec is None


def test_bad_arguments_are_refused_at_the_call() -> None:
    ds = Dataset.range(3)
    with pytest.raises(TypeError, match="random_map: map_func must be callable, not int"):
        ds.random_map(3)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        ds.random_map(numbered, seed=1.5)  # type: ignore[call-overload]
    for calls in (0, -2):
        with pytest.raises(ValueError, match="random_map: num_parallel_calls"):
            ds.random_map(numbered, num_parallel_calls=calls)
    with pytest.raises(ValueError, match="random_map: executor"):
        ds.random_map(numbered, num_parallel_calls=2, executor="cloud")
    with pytest.raises(ValueError, match="random_map: executor='process' would not be used"):
        ds.random_map(numbered, executor="process")


def test_generators_can_be_copied_and_pickled() -> None:
    (rng,) = to_list(Dataset.range(1).random_map(lambda x, rng: {"rng": rng}, seed=5))
    copies = [copy.deepcopy(rng["rng"]), pickle.loads(pickle.dumps(rng["rng"])), rng["rng"]]
    assert [int(each.integers(1 << 40)) for each in copies] == [int(expected(5, 0, 1)[0][1])] * 3
