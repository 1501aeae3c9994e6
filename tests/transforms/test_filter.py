"""`filter`: keeps, in order, the elements for which the predicate is a true bool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_keeps_what_the_predicate_accepts(count: int) -> None:
    assert_gives(Dataset.range(count).filter(lambda x: x % 3 == 0), i64(*range(0, count, 3)))


def test_may_keep_nothing_or_all() -> None:
    assert_gives(Dataset.range(5).filter(lambda x: False), [])
    assert_gives(Dataset.range(5).filter(lambda x: True), i64(*range(5)))


@pytest.mark.parametrize("true", [True, np.bool_(True), np.array(True)])
def test_bool_scalars_of_every_kind_are_taken(true: Any) -> None:
    assert_gives(Dataset.range(2).filter(lambda x: true), i64(0, 1))


@pytest.mark.parametrize("answer", [1, 0, np.int64(1), 1.0, "yes", b"", None, np.array([True]), [True]])
def test_what_is_not_a_bool_scalar_is_an_error_at_that_element(answer: Any) -> None:
    got = outcomes(Dataset.range(3).filter(lambda x: answer if x == 1 else True))
    assert_same([got[0], *got[2:]], i64(0, 2))
    assert isinstance(got[1], (TypeError, ValueError))


def test_tuple_is_unpacked_into_arguments() -> None:
    ds = Dataset.zip(Dataset.range(4), Dataset.range(3, -1, -1)).filter(lambda a, b: a > b)
    assert_gives(ds, [(*i64(2, 1),), (*i64(3, 0),)])


def test_one_tuple_is_unpacked_and_stays_one() -> None:
    ds = Dataset.from_tensor_slices((np.arange(3),)).filter(lambda x: x != 1)
    assert_gives(ds, [(*i64(0),), (*i64(2),)])


def test_named_tuple_and_dict_are_one_argument() -> None:
    pairs = Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3) * 2))
    assert_gives(pairs.filter(lambda p: p.y == 2), [Pair(*i64(1, 2))])
    assert_gives(nested(4).filter(lambda d: d["parts"][1].x), nested_rows(0, 2))


def test_error_of_the_predicate_takes_the_elements_place() -> None:
    def check(x: Any) -> bool:
        if x == 2:
            raise Boom(2)
        return bool(x % 2 == 0)

    assert_outcomes(Dataset.range(5).filter(check), [np.int64(0), Boom(2), np.int64(4)])


def test_error_of_the_input_passes_through() -> None:
    ds = failing(Dataset.range(5), 1).filter(lambda x: x % 2 == 0)
    assert_outcomes(ds, [np.int64(0), Boom(1), *i64(2, 4)])


@pytest.mark.parametrize("predicate", [None, True, "x"])
def test_what_cannot_be_called_is_refused_at_the_call(predicate: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.range(3).filter(predicate)


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(to_list(ds.filter(lambda x: x % 2 == 1).take(2)), i64(1, 3))
    assert seen == [0, 1, 2, 3]


def test_cardinality_is_unknown_even_of_an_endless_input() -> None:
    assert Dataset.range(3).filter(lambda x: True).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().filter(lambda x: True).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_the_spec_is_the_inputs_and_repr_shows_the_name() -> None:
    def odd(x: Any) -> bool:
        return bool(x % 2)

    assert nested(2).filter(lambda x: True).element_spec == nested(2).element_spec
    assert "filter(odd) 'some': int64" in repr(Dataset.range(3).filter(odd, name="some"))


def test_coroutine_functions_are_refused_at_the_call() -> None:
    async def later(x: Any) -> bool:
        return True

    with pytest.raises(TypeError, match="filter: predicate must be a plain function"):
        Dataset.range(3).filter(later)
