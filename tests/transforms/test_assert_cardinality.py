"""`assert_cardinality`: the elements as they are, and an error where there are too few or too many."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import CardinalityError, DataError
from tests.programs import (
    Boom,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    i64,
    nested,
    nested_rows,
    outcomes,
    pull_all,
    to_list,
)


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("expected", [0, 1, 3, 64, 65, 70, 71, 200])
@pytest.mark.parametrize("count", [0, 1, 3, 64, 65, 70])
def test_gives_the_elements_and_an_error_where_the_number_differs(count: int, expected: int, columns: bool) -> None:
    ds = Dataset.range(count)
    ds = (ds if columns else ds.map(lambda x: x)).assert_cardinality(expected)
    assert len(ds) == expected
    if count == expected:
        assert_gives(ds, i64(*range(count)))
        return
    assert_outcomes(ds, [*i64(*range(min(count, expected))), CardinalityError])
    last = outcomes(ds)[-1]
    assert (last.expected, last.found, last.more) == (expected, min(count, expected + 1), count > expected)


def test_messages_name_both_numbers() -> None:
    assert str(outcomes(Dataset.range(3).assert_cardinality(5))[-1]) == "5 elements were expected, but there are only 3"
    assert (
        str(outcomes(Dataset.range(9).assert_cardinality(2))[-1])
        == "2 elements were expected, but there are at least 3"
    )
    endless = Dataset.range(3).assert_cardinality(aiodata.INFINITE_CARDINALITY)
    assert str(outcomes(endless)[-1]) == "the dataset was expected to be endless, but there are only 3"
    assert outcomes(Dataset.range(9).assert_cardinality(2))[-1].__notes__ == ["in assert_cardinality(2), element 2"]


def test_the_error_is_a_data_error_and_crosses_processes() -> None:
    original = CardinalityError(5, 3, False)
    copy = pickle.loads(pickle.dumps(original))
    assert isinstance(copy, DataError)
    assert (str(copy), vars(copy)) == (str(original), vars(original))


def test_infinite_cardinality() -> None:
    ds = Dataset.range(3).map(lambda x: x).assert_cardinality(aiodata.INFINITE_CARDINALITY)
    assert ds.cardinality() == aiodata.INFINITE_CARDINALITY
    assert_outcomes(ds, [*i64(0, 1, 2), CardinalityError])
    assert_gives(Dataset.range(2).repeat().assert_cardinality(-1).take(5), i64(0, 1, 0, 1, 0))


@given(st.integers(0, 20), st.integers(0, 20), st.frozensets(st.integers(0, 19)))
def test_elements_that_fail_do_not_count_as_in_tf_data(count: int, expected: int, bad: frozenset[int]) -> None:
    wanted: list[Any] = []
    good = 0
    for number in range(count):
        if number in bad:
            wanted.append(Boom(number))
        elif good == expected:
            break
        else:
            good += 1
            wanted += i64(number)
    if good < expected or sum(number not in bad for number in range(count)) > expected:
        wanted.append(CardinalityError)
    assert_same(outcomes(failing(Dataset.range(count), *bad).assert_cardinality(expected)), wanted)


def test_nothing_comes_behind_the_error_also_from_a_state() -> None:
    for ds in (Dataset.range(5).assert_cardinality(2), failing(Dataset.range(3), 1).assert_cardinality(9)):
        with ds.iterate() as iterator:
            got = pull_all(iterator)
            assert isinstance(got[-1], CardinalityError)
            assert list(iterator) == []
            state = iterator.state_dict()
        with ds.iterate(state) as iterator:
            assert list(iterator) == []


def test_structures_pass_unchanged() -> None:
    assert_gives(nested(5).assert_cardinality(5), nested_rows(*range(5)))
    assert nested(5).assert_cardinality(5).element_spec == nested(5).element_spec


def test_a_later_repeat_counts_anew() -> None:
    assert_gives(Dataset.range(2).assert_cardinality(2).repeat(2), i64(0, 1, 0, 1))
    assert Dataset.range(2).filter(lambda x: True).assert_cardinality(2).repeat(3).cardinality() == 6


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(to_list(ds.assert_cardinality(2).take(2)), i64(0, 1))
    assert seen == [0, 1]
    seen.clear()
    outcomes(ds.assert_cardinality(2))
    assert seen == [0, 1, 2]


@pytest.mark.parametrize(("number", "kind"), [(-2, ValueError), (-9, ValueError), (1.5, TypeError), (None, TypeError)])
def test_what_is_no_cardinality_is_refused_at_the_call(number: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="assert_cardinality: expected_cardinality must be"):
        Dataset.range(3).assert_cardinality(number)


def test_repr_shows_the_number_and_the_name() -> None:
    assert "assert_cardinality(3) 'all': int64" in repr(Dataset.range(3).assert_cardinality(3, name="all"))
    assert "assert_cardinality(INFINITE_CARDINALITY)" in repr(Dataset.range(3).assert_cardinality(-1))
