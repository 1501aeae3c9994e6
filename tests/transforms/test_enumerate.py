"""`enumerate`: pairs of an int64 number and the element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from tests.programs import (
    Boom,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
)


@pytest.mark.parametrize("start", [0, 1, -3, 2**40])
@pytest.mark.parametrize("size", [0, 1, 5])
def test_numbers_from_start(size: int, start: int) -> None:
    expected = [(np.int64(start + at), np.int64(10 + at)) for at in range(size)]
    assert_gives(Dataset.range(10, 10 + size).enumerate(start), expected)


def test_starts_at_zero_by_default() -> None:
    assert_gives(Dataset.range(5, 7).enumerate(), [(*i64(0, 5),), (*i64(1, 6),)])


def test_tuple_elements_stay_nested() -> None:
    ds = Dataset.zip(Dataset.range(2), Dataset.range(5, 7)).enumerate()
    assert_gives(ds, [(np.int64(0), (*i64(0, 5),)), (np.int64(1), (*i64(1, 6),))])


def test_structures_are_kept() -> None:
    assert_gives(nested(2).enumerate(), [(np.int64(at), row) for at, row in enumerate(nested_rows(0, 1))])


def test_pair_is_unpacked_by_a_function() -> None:
    assert_gives(Dataset.range(5, 8).enumerate().map(lambda number, x: x - number), i64(5, 5, 5))


def test_numbering_goes_on_over_repeats_of_the_input_and_starts_over_outside() -> None:
    inside = Dataset.range(2).repeat(2).enumerate().map(lambda number, x: number)
    outside = Dataset.range(2).enumerate().repeat(2).map(lambda number, x: number)
    assert_gives(inside, i64(0, 1, 2, 3))
    assert_gives(outside, i64(0, 1, 0, 1))


def test_an_error_uses_up_its_number() -> None:
    ds = failing(Dataset.range(4), 1).enumerate()
    assert_outcomes(ds, [(*i64(0, 0),), Boom(1), (*i64(2, 2),), (*i64(3, 3),)])


def test_reads_no_further_than_needed_of_an_endless_input() -> None:
    ds, seen = counted(Dataset.range(3).repeat())
    assert_same(first(ds.enumerate(), 4)[3], (*i64(3, 0),))
    assert seen == [0, 1, 2, 0]


@pytest.mark.parametrize("start", [1.5, "2", None])
def test_wrong_start_is_refused_at_the_call(start: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).enumerate(start)


def test_cardinality_is_that_of_the_input() -> None:
    assert Dataset.range(5).enumerate().cardinality() == 5
    assert Dataset.range(5).repeat().enumerate().cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(5).filter(lambda x: True).enumerate().cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_it_can_have_a_name_and_its_spec_has_the_number() -> None:
    ds = nested(3).enumerate(name="numbered")
    assert ds.plan.title == "numbered"
    assert ds.element_spec == (Dataset.range(1).element_spec, nested(3).element_spec)
    assert nested(3).map(lambda x: x).enumerate().element_spec is None
