"""`cache`: the first complete pass is kept in memory, and later passes read only that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import StateError
from tests.programs import (
    Boom,
    arr,
    assert_gives,
    assert_same,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    objects,
    outcomes,
    to_list,
)


@pytest.mark.parametrize("size", [0, 1, 2, 50])
def test_gives_the_input_in_every_pass(size: int) -> None:
    assert_gives(Dataset.range(size).cache(), i64(*range(size)))


def test_structures_and_dtypes_are_kept() -> None:
    ds = nested(3).cache()
    assert_same(to_list(ds), nested_rows(0, 1, 2))
    assert_same(to_list(ds), nested_rows(0, 1, 2))


@pytest.mark.parametrize(
    "element",
    [b"a\x00", "é", objects(b"x", b"y\x00"), np.zeros((0, 2), np.float16), np.float32("nan"), arr([[True]], bool)],
    ids=repr,
)
def test_values_of_every_kind_are_kept(element: Any) -> None:
    ds = Dataset.from_generator(lambda: [element, element]).cache()
    assert_same(to_list(ds), [element, element])
    assert_same(to_list(ds), [element, element])


def test_a_complete_pass_is_the_last_that_reads_the_input() -> None:
    ds, seen = counted(Dataset.range(4).filter(lambda x: True))
    cached = ds.cache()
    for _ in range(3):
        assert_same(to_list(cached), i64(0, 1, 2, 3))
    assert seen == [0, 1, 2, 3]


def test_is_complete_when_the_known_number_was_read() -> None:
    ds, seen = counted(Dataset.range(4))
    cached = ds.cache()
    assert_same(first(cached, 4), i64(0, 1, 2, 3))
    assert_same(to_list(cached), i64(0, 1, 2, 3))
    assert seen == [0, 1, 2, 3]


def test_a_partial_pass_keeps_nothing() -> None:
    ds, seen = counted(Dataset.range(4))
    cached = ds.cache()
    assert_same(first(cached, 3), i64(0, 1, 2))
    assert_same(to_list(cached), i64(0, 1, 2, 3))
    assert seen == [0, 1, 2, 0, 1, 2, 3]


@pytest.mark.parametrize("in_rows", [False, True])
def test_passes_are_shuffled_anew_until_one_was_complete(in_rows: bool) -> None:
    ds = Dataset.range(5)
    cached = (ds.map(lambda x: x) if in_rows else ds).shuffle(5, seed=1).cache()
    assert_same(first(cached, 2), i64(0, 4))
    assert_same(to_list(cached.take(4)), i64(3, 1, 0, 4))
    assert_same(to_list(cached.take(5)), i64(0, 1, 3, 4, 2))
    assert_same(to_list(cached), i64(0, 1, 3, 4, 2))


def test_take_behind_a_cache_repeats_rightly() -> None:
    assert_same(to_list(Dataset.range(5).cache().take(2).repeat(2)), i64(0, 1, 0, 1))


def test_repeat_behind_a_cache_reads_the_input_once() -> None:
    ds, seen = counted(Dataset.range(3))
    assert_same(to_list(ds.cache().repeat(3)), i64(*[0, 1, 2] * 3))
    assert seen == [0, 1, 2]


def test_all_derived_datasets_share_it() -> None:
    ds, seen = counted(Dataset.range(3))
    cached = ds.cache()
    to_list(cached.map(lambda x: x))
    assert_same(to_list(cached.batch(2)), [arr([0, 1]), arr([2])])
    assert seen == [0, 1, 2]


def test_two_cache_nodes_do_not_share() -> None:
    ds, seen = counted(Dataset.range(2))
    to_list(ds.cache())
    to_list(ds.cache())
    assert seen == [0, 1, 0, 1]


def test_errors_are_not_kept_but_the_elements_around_them_are() -> None:
    cached = failing(Dataset.range(4), 2).cache()
    assert_same(outcomes(cached), [*i64(0, 1), Boom(2), np.int64(3)])
    assert_same(outcomes(cached), i64(0, 1, 3))


def test_two_iterators_at_once_both_give_everything() -> None:
    cached = Dataset.range(4).map(lambda x: x).cache()
    with cached.iterate() as one, cached.iterate() as other:
        assert_same([(left, next(other)) for left in one], [*zip(i64(0, 1, 2, 3), i64(0, 1, 2, 3), strict=True)])
    assert_same(to_list(cached), i64(0, 1, 2, 3))


def test_in_place_steps_behind_the_cache_do_not_change_it() -> None:
    def double(x: Any) -> Any:
        x *= 2
        return x

    cached = Dataset.range(4).batch(2).cache()
    for _ in range(3):
        got = outcomes(cached.map(double))
        assert same_or_refused(got)
    assert_same(to_list(cached), [arr([0, 1]), arr([2, 3])])


def same_or_refused(got: list[Any]) -> bool:
    """Say whether each pass doubled once, or numpy refused to write."""
    if all(isinstance(item, ValueError) for item in got):
        return len(got) == 2
    return [item.tolist() for item in got] == [[0, 2], [4, 6]]


def test_cardinality_is_that_of_the_input() -> None:
    assert Dataset.range(5).cache().cardinality() == 5
    assert Dataset.range(5).repeat().cache().cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(5).filter(lambda x: True).cache().cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_no_position_is_asked_for_unless_a_state_is() -> None:
    """A scan whose state cannot be saved is an error when a state is asked for, and only then."""
    ds = Dataset.range(3).scan(object(), lambda state, x: (state, x)).cache()
    with ds.iterate() as iterator:
        assert next(iterator) == 0
        with pytest.raises(StateError, match="scan"):
            iterator.state_dict()


@pytest.mark.parametrize("rows", [False, True])
def test_a_later_step_that_changes_dicts_does_not_change_cached_ones(rows: bool) -> None:
    def spoil(element: Any) -> Any:
        element["x"] = element["x"] * 100
        element["in"][0]["y"] = -1
        return element

    columns = Dataset.from_tensor_slices({"x": np.arange(3), "in": ({"y": np.arange(3)},)})
    ds = (columns.map(lambda element: element) if rows else columns).cache().map(spoil)
    expected = [{"x": np.int64(100 * n), "in": ({"y": -1},)} for n in range(3)]
    for _ in range(3):
        assert_same(to_list(ds), expected)
