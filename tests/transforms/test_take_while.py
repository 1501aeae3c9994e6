"""`take_while`: the elements before the first that the predicate refuses; the end is final."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from tests.programs import (
    Boom,
    Pair,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    i64,
    nested,
    nested_rows,
    outcomes,
    to_list,
)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_gives_what_comes_before_the_first_refused(count: int) -> None:
    assert_gives(Dataset.range(count).take_while(lambda x: x < 2), i64(*range(min(count, 2))))


def test_may_take_nothing_or_all() -> None:
    assert_gives(Dataset.range(5).take_while(lambda x: False), [])
    assert_gives(Dataset.range(5).take_while(lambda x: True), i64(*range(5)))


def test_what_would_be_accepted_later_does_not_come() -> None:
    assert_gives(Dataset.range(9).take_while(lambda x: x % 4 < 2), i64(0, 1))


@given(st.lists(st.booleans(), max_size=200), st.integers(1, 70))
def test_is_pythons_takewhile(accepted: list[bool], size: int) -> None:
    end = accepted.index(False) if False in accepted else len(accepted)
    ds = Dataset.range(len(accepted)).batch(size).unbatch().take_while(lambda x: accepted[x])
    assert_same(to_list(ds), i64(*range(end)))


@pytest.mark.parametrize("true", [True, np.bool_(True), np.array(True)])
def test_bool_scalars_of_every_kind_are_taken(true: Any) -> None:
    assert_gives(Dataset.range(2).take_while(lambda x: true), i64(0, 1))


@pytest.mark.parametrize("answer", [1, 0, np.int64(1), "yes", None, np.array([True])])
def test_what_is_not_a_bool_scalar_is_an_error_at_that_element(answer: Any) -> None:
    got = outcomes(Dataset.range(3).take_while(lambda x: answer if x == 1 else True))
    assert_same([got[0], *got[2:]], i64(0, 2))
    assert isinstance(got[1], TypeError)
    assert got[1].__notes__[0].startswith("in take_while(<lambda>), element 1")


def test_tuple_is_unpacked_and_named_tuple_and_dict_are_one_argument() -> None:
    ds = Dataset.zip(Dataset.range(4), Dataset.range(4)).take_while(lambda a, b: a + b < 3)
    assert_gives(ds, [(*i64(0, 0),), (*i64(1, 1),)])
    assert_gives(Dataset.from_tensor_slices((np.arange(3),)).take_while(lambda x: x != 1), [(*i64(0),)])
    pairs = Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3)))
    assert_gives(pairs.take_while(lambda p: p.x < 1), [Pair(*i64(0, 0))])
    assert_gives(nested(4).take_while(lambda d: d["id"] < 2), nested_rows(0, 1))


def test_error_of_the_predicate_takes_the_elements_place_and_it_goes_on() -> None:
    def check(x: Any) -> bool:
        if x in (1, 5):
            raise Boom(int(x))
        return bool(x < 4)

    assert_outcomes(Dataset.range(9).take_while(check), [np.int64(0), Boom(1), *i64(2, 3)])


def test_error_of_the_input_passes_through() -> None:
    ds = failing(Dataset.range(9), 1, 5).take_while(lambda x: x < 4)
    assert_outcomes(ds, [np.int64(0), Boom(1), *i64(2, 3)])


def test_stop_iteration_of_the_predicate_is_an_error() -> None:
    def stop(x: Any) -> bool:
        raise StopIteration

    assert_outcomes(Dataset.range(2).take_while(stop), [RuntimeError, RuntimeError])


@pytest.mark.parametrize("state_behind", [2, 3])
def test_the_end_is_final(state_behind: int) -> None:
    accepted = 3

    def below(x: Any) -> bool:
        return bool(x < accepted)

    ds = Dataset.range(9).take_while(below)
    with ds.iterate() as iterator:
        elements = [next(iterator) for _ in range(state_behind)]
        state = iterator.state_dict()
        rest = list(iterator)
        assert_same(elements + rest, i64(0, 1, 2))
        accepted = 9
        assert list(iterator) == []
        accepted = 3
        state = state if state_behind < 3 else iterator.state_dict()
    with ds.iterate(state) as iterator:
        assert_same(list(iterator), rest)
        assert list(iterator) == []


@pytest.mark.parametrize("predicate", [None, True, "x"])
def test_what_is_not_a_plain_function_is_refused_at_the_call(predicate: Any) -> None:
    async def later(x: Any) -> bool:
        return True

    for refused in (predicate, later):
        with pytest.raises(TypeError, match="take_while: predicate must be"):
            Dataset.range(3).take_while(refused)


def test_reads_one_element_past_the_end_and_ends_an_endless_input() -> None:
    ds, seen = counted(Dataset.range(100).repeat())
    assert_same(to_list(ds.take_while(lambda x: x < 3)), i64(0, 1, 2))
    assert seen == [0, 1, 2, 3]
    ds, seen = counted(Dataset.range(100))
    assert_same(to_list(ds.take_while(lambda x: x < 50).take(2)), i64(0, 1))
    assert seen == [0, 1]


def test_a_later_repeat_begins_anew() -> None:
    assert_gives(Dataset.range(5).take_while(lambda x: x < 2).repeat(2), i64(0, 1, 0, 1))


def test_cardinality_is_unknown_and_the_spec_is_the_inputs() -> None:
    assert Dataset.range(3).take_while(lambda x: True).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().take_while(lambda x: True).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert nested(2).take_while(lambda x: True).element_spec == nested(2).element_spec


def test_repr_shows_the_function_and_the_name() -> None:
    def small(x: Any) -> bool:
        return bool(x < 3)

    assert "take_while(small) 'first': int64" in repr(Dataset.range(3).take_while(small, name="first"))
