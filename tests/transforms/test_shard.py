"""`shard`: every `num_shards`-th element, from number `index` on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError
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
    outcomes,
    plain,
    to_list,
)
from tests.transforms.blocks import PIECES, check, dataset_of, outcomes_of, read


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 6, 7, 8])
def test_gives_every_nth_element(size: int, shards: int) -> None:
    for index in range(shards):
        assert_gives(Dataset.range(size).shard(shards, index), i64(*range(index, size, shards)))


def test_shards_together_are_the_input() -> None:
    ds = Dataset.range(10).map(lambda x: x)
    assert sorted(x for index in range(4) for x in plain(to_list(ds.shard(4, index)))) == [*range(10)]


def test_shards_nested_structures() -> None:
    assert_gives(nested(5).shard(2, 1), nested_rows(1, 3))


def test_shard_of_shard() -> None:
    assert_gives(Dataset.range(12).shard(2, 1).shard(3, 1), i64(3, 9))


def test_endless_input_can_be_left() -> None:
    assert_same(first(Dataset.range(3).repeat().shard(2, 0), 4), i64(0, 2, 1, 0))


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(ds.shard(3, 1), 2), i64(1, 4))
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("shards", "index"), [(0, 0), (-1, 0), (2, 2), (2, 3), (2, -1), (1.5, 0), (2, 0.5), (None, 0), (2, None)]
)
def test_wrong_numbers_are_refused_at_the_call(shards: Any, index: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).shard(shards, index)


@pytest.mark.parametrize("bad", [3, 4, 5])
def test_an_error_keeps_its_number_and_comes_in_its_own_shard_only(bad: int) -> None:
    for index in range(3):
        expected = [Boom(number) if number == bad else np.int64(number) for number in range(index, 10, 3)]
        assert_outcomes(failing(Dataset.range(10), bad).shard(3, index), expected)


def test_cardinality_is_the_share() -> None:
    assert [Dataset.range(10).shard(4, index).cardinality() for index in range(4)] == [3, 3, 2, 2]
    assert Dataset.range(0).shard(4, 0).cardinality() == 0
    assert Dataset.range(3).repeat().shard(2, 0).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(3).filter(lambda x: True).shard(2, 0).cardinality() == aiodata.UNKNOWN_CARDINALITY


# The remainder


def share(values: list[Any], shards: int, index: int, remainder: str) -> list[Any]:
    """Say what a shard gives, plainly."""
    whole = len(values) // shards
    own = values[index::shards]
    if remainder == "drop":
        return own[:whole]
    if remainder == "pad" and own and len(values) % shards and len(own) == whole:
        good = [value for value in own if not isinstance(value, Exception)]
        return [*own, good[-1] if good else DataError]
    return own


def test_keep_is_the_default() -> None:
    assert_gives(Dataset.range(5).shard(3, 1, remainder="keep"), i64(1, 4))
    assert Dataset.range(5).shard(3, 1, remainder="keep").plan.label == "shard(3, 1)"


@pytest.mark.parametrize("rowed", [False, True])
@pytest.mark.parametrize("remainder", ["drop", "pad"])
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [7, 8, 9, 13, 14, 15, 200])
def test_every_shard_gets_the_same_number(size: int, shards: int, remainder: Any, rowed: bool) -> None:
    ds = Dataset.range(size).map(lambda x: x) if rowed else Dataset.range(size)
    for index in range(shards):
        assert_gives(ds.shard(shards, index, remainder=remainder), share(i64(*range(size)), shards, index, remainder))


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_four_shards_of_ten_have_equally_many_batches(remainder: Any) -> None:
    shards = [plain(to_list(Dataset.range(10).shard(4, index, remainder=remainder).batch(2))) for index in range(4)]
    if remainder == "drop":
        assert shards == [[[0, 4]], [[1, 5]], [[2, 6]], [[3, 7]]]
    else:
        assert shards == [[[0, 4], [8]], [[1, 5], [9]], [[2, 6], [6]], [[3, 7], [7]]]


@pytest.mark.parametrize("remainder", ["drop", "pad"])
@given(pieces=st.lists(PIECES, max_size=6), shards=st.integers(1, 12), data=st.data())
def test_any_blocks_with_places_and_positions(pieces: list[Any], remainder: Any, shards: int, data: Any) -> None:
    index = data.draw(st.integers(0, shards - 1))
    values = outcomes_of(pieces)
    expected = share([x if isinstance(x, int) else Boom(x) for x in values], shards, index, remainder)
    if not expected:
        with pytest.raises(DataError, match="empty"):
            read(dataset_of(pieces).shard(shards, index, remainder=remainder))
        return
    if expected[-1] is DataError:
        with pytest.raises(DataError, match="every element of this shard has failed"):
            read(dataset_of(pieces).shard(shards, index, remainder=remainder))
        return
    named = [x if isinstance(x, int) else x.args[0] for x in expected]
    check(lambda: dataset_of(pieces).shard(shards, index, remainder=remainder), named)


@given(size=st.integers(1, 40), shards=st.integers(1, 6), bad=st.frozensets(st.integers(0, 39), max_size=6))
def test_counts_are_equal_whatever_fails(size: int, shards: int, bad: frozenset[int]) -> None:
    ds = failing(Dataset.range(size), *bad)
    dropped = [outcomes(ds.shard(shards, index, remainder="drop")) for index in range(shards) if size >= shards]
    assert {len(found) for found in dropped} <= {size // shards}
    padded = [outcomes(ds.shard(shards, index, remainder="pad")) for index in range(min(shards, size))]
    assert {len(found) for found in padded} == {-(-size // shards)}
    seen = [{repr(x) for x in found if not isinstance(x, DataError)} for found in padded]
    assert sum(map(len, seen)) == len(set().union(*seen)), "an element is in two shards"


def test_drop_reads_a_round_before_it_gives_its_element() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(ds.shard(3, 1, remainder="drop"), 2), i64(1, 4))
    assert seen == [0, 1, 2, 3, 4, 5]


def test_pad_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(ds.shard(3, 1, remainder="pad"), 2), i64(1, 4))
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_columns_stay_columns(remainder: Any) -> None:
    reading = read(Dataset.range(200).shard(3, 1, remainder=remainder))
    assert reading.outcomes == share([*range(200)], 3, 1, remainder)
    assert all(reading.computed)
    with nested(20).shard(3, 2, remainder=remainder).iterate() as iterator:
        assert_same(list(iterator), share(nested_rows(*range(20)), 3, 2, remainder))


@pytest.mark.parametrize("rowed", [False, True])
def test_the_padded_element_is_as_it_came(rowed: bool) -> None:
    rows = np.arange(6).reshape(3, 2)
    ds = Dataset.from_tensor_slices(rows)
    found = to_list((ds.map(lambda x: x.copy()) if rowed else ds).shard(2, 1, remainder="pad").map(spoil))
    assert_same(found, [rows[1] + 100, rows[1] + 100])
    assert_same(rows, np.arange(6).reshape(3, 2))


def spoil(x: Any) -> Any:
    if x.flags.writeable:
        x += 100
        return x
    return x + 100


def test_the_padded_element_is_the_last_that_did_not_fail() -> None:
    assert_outcomes(failing(Dataset.range(5), 3).shard(2, 1, remainder="pad"), [np.int64(1), Boom(3), np.int64(1)])
    assert_outcomes(failing(Dataset.range(3), 1).shard(2, 1, remainder="pad"), [Boom(1), DataError])


def test_a_failed_element_counts_in_the_last_round() -> None:
    assert_outcomes(failing(Dataset.range(4), 3).shard(2, 0, remainder="drop"), i64(0, 2))
    assert_outcomes(failing(Dataset.range(5), 2, 4).shard(2, 0, remainder="drop"), [np.int64(0), Boom(2)])
    assert_outcomes(failing(Dataset.range(5), 4).shard(2, 0, remainder="drop"), i64(0, 2))
    assert_outcomes(failing(Dataset.range(3), 2).shard(2, 1, remainder="pad"), i64(1, 1))


@pytest.mark.parametrize(
    ("size", "index", "remainder", "known"), [(0, 0, "drop", 0), (3, 1, "drop", 3), (0, 0, "pad", 0), (3, 3, "pad", 3)]
)
def test_an_empty_shard_is_an_error(size: int, index: int, remainder: Any, known: int) -> None:
    with pytest.raises(ValueError, match=rf"shard {index} of num_shards=4 would be empty: .* cardinality is {known}"):
        Dataset.range(size).shard(4, index, remainder=remainder)
    unknown = Dataset.range(size).filter(lambda x: True).shard(4, index, remainder=remainder)
    with pytest.raises(DataError, match=rf"shard\(4, {index}\): .* would be empty"):
        to_list(unknown)
    with pytest.raises(DataError, match="would be empty"):
        to_list(unknown.repeat())
    assert_gives(Dataset.range(size).shard(4, 3), [])


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_a_restored_end_is_no_empty_shard(remainder: Any) -> None:
    ds = Dataset.range(11).filter(lambda x: True).shard(4, 1, remainder=remainder)
    with ds.iterate() as iterator:
        list(iterator)
        state = iterator.state_dict()
    with ds.iterate(state) as iterator:
        assert list(iterator) == []


@pytest.mark.parametrize("remainder", ["", "Drop", None, 1, True])
def test_an_unknown_remainder_is_refused_at_the_call(remainder: Any) -> None:
    with pytest.raises(ValueError, match="shard: remainder must be 'keep', 'drop' or 'pad'"):
        Dataset.range(9).shard(2, 0, remainder=remainder)


def test_cardinality_with_a_remainder() -> None:
    assert [Dataset.range(10).shard(4, index, remainder="drop").cardinality() for index in range(4)] == [2] * 4
    assert [Dataset.range(10).shard(4, index, remainder="pad").cardinality() for index in range(4)] == [3] * 4
    assert Dataset.range(8).shard(4, 3, remainder="pad").cardinality() == 2
    endless, unknown = Dataset.range(3).repeat(), Dataset.range(3).filter(lambda x: True)
    for remainder in ("drop", "pad"):
        assert endless.shard(2, 0, remainder=remainder).cardinality() == aiodata.INFINITE_CARDINALITY
        assert unknown.shard(2, 0, remainder=remainder).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_endless_input_with_a_remainder_can_be_left() -> None:
    for remainder in ("drop", "pad"):
        assert_same(first(Dataset.range(3).repeat().shard(2, 0, remainder=remainder), 4), i64(0, 2, 1, 0))


def test_spec_repr_and_name() -> None:
    ds = nested(9).shard(2, 1, "mine", remainder="pad")
    assert ds.plan.element_spec() == nested(9).plan.element_spec()
    assert ds.plan.label == "shard(2, 1, remainder='pad')"
    assert ds.plan.title == "mine"
