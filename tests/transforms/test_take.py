"""`take`: at most the first `count` elements, and not one read more."""

from __future__ import annotations

from typing import Any

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
    to_list,
)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 100])
@pytest.mark.parametrize("size", [0, 1, 3, 50])
def test_gives_the_first_elements(size: int, count: int) -> None:
    assert_gives(Dataset.range(size).take(count), i64(*range(min(size, count))))


@pytest.mark.parametrize("count", [-1, -2, -100])
def test_negative_count_takes_all(count: int) -> None:
    assert_gives(Dataset.range(5).take(count), i64(*range(5)))


def test_takes_nested_structures() -> None:
    assert_gives(nested(4).take(2), nested_rows(0, 1))


def test_take_of_take_is_the_smaller() -> None:
    assert_gives(Dataset.range(9).take(5).take(2), i64(0, 1))
    assert_gives(Dataset.range(9).take(2).take(5), i64(0, 1))


def test_ends_an_endless_input() -> None:
    assert_gives(Dataset.range(2).repeat().take(5), i64(0, 1, 0, 1, 0))


def test_reads_nothing_after_the_last() -> None:
    ds, seen = counted(Dataset.range(100))
    to_list(ds.take(3))
    assert seen == [0, 1, 2]


def test_zero_does_not_open_the_input() -> None:
    calls: list[int] = []

    def make() -> list[int]:
        calls.append(1)
        return [1]

    assert to_list(Dataset.from_generator(make).take(0)) == []
    assert calls == []


def test_early_stop_before_the_count() -> None:
    assert_same(first(Dataset.range(9).take(5), 2), i64(0, 1))


def test_an_error_counts_as_taken() -> None:
    assert_outcomes(failing(Dataset.range(10), 2).take(5), [*i64(0, 1), Boom(2), *i64(3, 4)])


def test_an_error_after_the_count_is_never_seen() -> None:
    assert_outcomes(failing(Dataset.range(10), 5).take(5), i64(0, 1, 2, 3, 4))


@pytest.mark.parametrize("count", [1.5, "2", None])
def test_wrong_count_is_refused_at_the_call(count: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).take(count)


def test_cardinality_is_the_smaller_number() -> None:
    unknown = Dataset.range(3).filter(lambda x: True)
    assert Dataset.range(5).take(3).cardinality() == 3
    assert Dataset.range(5).take(9).cardinality() == 5
    assert Dataset.range(5).take(-3).cardinality() == 5
    assert Dataset.range(5).repeat().take(3).cardinality() == 3
    assert Dataset.range(5).repeat().take(-1).cardinality() == aiodata.INFINITE_CARDINALITY
    assert unknown.take(2).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert unknown.take(0).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_it_can_have_a_name_and_keeps_the_spec() -> None:
    ds = nested(3).take(2, name="few")
    assert ds.plan.title == "few"
    assert ds.element_spec == nested(3).element_spec
