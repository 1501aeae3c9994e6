"""`skip`: everything but the first `count` elements."""

from __future__ import annotations

from itertools import islice
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
    pull_all,
)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 100])
@pytest.mark.parametrize("size", [0, 1, 3, 50])
def test_leaves_out_the_first_elements(size: int, count: int) -> None:
    assert_gives(Dataset.range(size).skip(count), i64(*range(count, size)))


@pytest.mark.parametrize("count", [-1, -2, -100])
def test_negative_count_skips_all_even_of_an_endless_input(count: int) -> None:
    assert_gives(Dataset.range(5).skip(count), [])
    assert_gives(Dataset.range(5).repeat().skip(count), [])


def test_skips_nested_structures() -> None:
    assert_gives(nested(4).skip(3), nested_rows(3))


def test_skip_of_skip_is_the_sum() -> None:
    assert_gives(Dataset.range(9).skip(2).skip(5), i64(7, 8))


def test_take_and_skip_share_out_the_input() -> None:
    ds = Dataset.range(9)
    assert_gives(ds.take(4).concatenate(ds.skip(4)), i64(*range(9)))


def test_endless_input_goes_on_behind_the_skipped_part() -> None:
    assert_same(first(Dataset.range(3).repeat().skip(4), 4), i64(1, 2, 0, 1))


def test_reads_the_skipped_part_and_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(ds.skip(3), 2), i64(3, 4))
    assert seen == [0, 1, 2, 3, 4]


def test_errors_in_the_skipped_part_surface_and_count() -> None:
    assert_outcomes(failing(Dataset.range(6), 1).skip(3), [Boom(1), *i64(3, 4, 5)])
    assert_outcomes(failing(Dataset.range(6), 0, 2, 4).skip(3), [Boom(0), Boom(2), *i64(3), Boom(4), *i64(5)])
    assert_gives(failing(Dataset.range(600), 1, 300).skip(599).ignore_errors(), i64(599))


def test_an_error_behind_the_skipped_part_keeps_its_place() -> None:
    assert_outcomes(failing(Dataset.range(6), 4).skip(3), [*i64(3), Boom(4), *i64(5)])


@pytest.mark.parametrize("count", [1.5, "2", None])
def test_wrong_count_is_refused_at_the_call(count: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).skip(count)


def test_cardinality_is_what_is_left() -> None:
    endless = Dataset.range(5).repeat()
    assert Dataset.range(5).skip(3).cardinality() == 2
    assert Dataset.range(5).skip(9).cardinality() == 0
    assert Dataset.range(5).skip(-1).cardinality() == 0
    assert endless.skip(3).cardinality() == aiodata.INFINITE_CARDINALITY
    assert endless.skip(-1).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(3).filter(lambda x: True).skip(1).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_it_can_have_a_name_and_keeps_the_spec() -> None:
    ds = nested(3).skip(2, name="rest")
    assert ds.plan.title == "rest"
    assert ds.element_spec == nested(3).element_spec


def test_goes_on_exactly_behind_an_error_in_a_later_epoch() -> None:
    def make() -> Dataset[Any]:
        return failing(Dataset.range(4), 0, 2).shuffle(4, seed=1).skip(2).repeat(4)

    with make().iterate() as iterator:
        straight = pull_all(iterator)
    with make().iterate() as iterator:
        for at in range(len(straight)):
            with make().iterate(iterator.state_dict()) as restored:
                assert_same(pull_all(restored), straight[at:])
            pull_all(islice(iterator, 1))
