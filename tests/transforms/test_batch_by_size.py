"""`batch_by_size`: as many consecutive elements as a budget holds, padding counted."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError, StructureError
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
    nested,
    nested_batch,
    objects,
    outcomes,
    plain,
    to_list,
)


def rows(*lengths: int) -> Dataset[Any]:
    """Rows of these lengths, filled with the number of the row, from 0."""
    return Dataset.from_generator(lambda: [np.full(length, number) for number, length in enumerate(lengths)])


def numbers(*values: Any) -> Dataset[Any]:
    """Numbers that are their own size."""
    return Dataset.from_generator(lambda: values)


def itself(x: Any) -> Any:
    return x


def zero(x: Any) -> int:
    return 0


def test_batches_are_as_large_as_the_budget_allows() -> None:
    expected = [arr([[0, 0, 0], [1, 0, 0]]), arr([[2, 2, 2, 2]]), arr([[3, 3], [4, 4], [5, 0]])]
    assert_gives(rows(3, 1, 4, 2, 2, 1).batch_by_size(6, len), expected)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_sizes_around_the_budget(count: int) -> None:
    expected = [arr([[x] * 2 for x in range(first, min(first + 2, count))]) for first in range(0, count, 2)]
    assert_gives(rows(*[2] * count).batch_by_size(5, len), expected)
    assert_gives(rows(*[2] * count).batch_by_size(4, len), expected)


def test_a_row_as_long_as_the_budget_is_a_batch_of_its_own() -> None:
    assert_gives(numbers(1, 4, 1, 1).batch_by_size(4, itself), [arr([1]), arr([4]), arr([1, 1])])


def test_at_most_max_elements() -> None:
    assert_gives(numbers(1, 1, 1, 1, 1).batch_by_size(100, itself, 2), [arr([1, 1]), arr([1, 1]), arr([1])])
    assert_gives(numbers(1, 1, 3, 1).batch_by_size(4, itself, max_elements=3), [arr([1, 1]), arr([3]), arr([1])])
    assert_gives(numbers(1, 1).batch_by_size(4, itself, max_elements=1), [arr([1]), arr([1])])


def test_elements_of_no_size_fill_up_to_max_elements() -> None:
    assert_gives(Dataset.range(5).batch_by_size(1, zero), [arr([0, 1, 2, 3, 4])])
    assert_gives(Dataset.range(5).batch_by_size(1, zero, 3), [arr([0, 1, 2]), arr([3, 4])])


def test_a_row_longer_than_the_budget_is_an_error_in_its_place() -> None:
    ds = numbers(1, 1, 5, 2, 2, 1).batch_by_size(4, itself)
    assert_outcomes(ds, [arr([1, 1]), DataError, arr([2, 2]), arr([1])])
    error = outcomes(ds)[1]
    for word in ("size 5", "max_size=4", "larger max_size", "`filter`"):
        assert word in str(error)
    assert error.__notes__ == ["in batch_by_size(4, itself), element 2"]
    assert_outcomes(numbers(5).batch_by_size(4, itself), [DataError])
    assert_outcomes(numbers(5, 6, 1).batch_by_size(4, itself), [DataError, DataError, arr([1])])


def test_an_error_of_the_input_loses_what_was_read_for_that_batch() -> None:
    ds = failing(Dataset.range(1, 7), 3)
    assert_outcomes(ds.batch_by_size(20, itself), [Boom(3), arr([4, 5, 6])])
    assert_outcomes(ds.batch_by_size(4, itself), [arr([1, 2]), Boom(3), arr([4]), DataError, DataError])
    assert_outcomes(ds.batch_by_size(20, itself, 2), [arr([1, 2]), Boom(3), arr([4, 5]), arr([6])])


def test_an_error_of_size_fn_comes_behind_the_batch_begun() -> None:
    def measure(x: Any) -> int:
        if x == 2:
            raise Boom(2)
        return 1

    assert_outcomes(Dataset.range(5).batch_by_size(3, measure), [arr([0, 1]), Boom(2), arr([3, 4])])

    def stop(x: Any) -> int:
        return next(iter(())) if x == 1 else 1

    assert_outcomes(Dataset.range(3).batch_by_size(3, stop), [arr([0]), RuntimeError, arr([2])])


@pytest.mark.parametrize("size", [1, np.int32(1), np.uint8(1), np.array(1)])
def test_integers_of_every_kind_are_sizes(size: Any) -> None:
    assert_gives(Dataset.range(4).batch_by_size(2, lambda x: size), [arr([0, 1]), arr([2, 3])])


@pytest.mark.parametrize(
    "size", [True, np.bool_(True), 1.0, np.float64(1), "1", None, np.array([1, 2]), -1, np.int8(-1)]
)
def test_what_is_no_size_is_an_error_at_that_element(size: Any) -> None:
    ds = Dataset.range(4).batch_by_size(2, lambda x: size if x == 1 else 1)
    assert_outcomes(ds, [arr([0]), TypeError, arr([2, 3])])
    assert "size_fn must give an integer from 0" in str(outcomes(ds)[1])


def test_tuples_are_unpacked_and_other_structures_are_not() -> None:
    pairs = Dataset.zip(Dataset.range(3), Dataset.range(10, 13))
    assert_gives(pairs.batch_by_size(24, lambda a, b: b), [(arr([0, 1]), arr([10, 11])), (arr([2]), arr([12]))])
    named = pairs.map(Pair)
    assert_gives(named.batch_by_size(24, lambda p: p.y), [Pair(arr([0, 1]), arr([10, 11])), Pair(arr([2]), arr([12]))])
    assert_gives(nested(3).batch_by_size(2, lambda x: len(x["parts"][0])), [nested_batch(i) for i in range(3)])


def test_size_fn_is_called_once_for_each_element() -> None:
    seen: list[int] = []

    def measure(x: Any) -> int:
        seen.append(int(x))
        return 2

    to_list(Dataset.range(7).batch_by_size(5, measure))
    assert seen == [*range(7)]


def test_pads_as_padded_batch_does() -> None:
    ds = Dataset.zip(rows(2, 1), Dataset.from_generator(lambda: [objects(b"a"), objects(b"b", b"c")]))
    batches = ds.batch_by_size(9, lambda n, _: len(n), padded_shapes=([3], None), padding_values=(-1, "!"))
    words = np.array([[b"a", b"!"], [b"b", b"c"]], object)
    assert_gives(batches, [(arr([[0, 0, -1], [1, -1, -1]]), words)])
    longer = rows(1, 3, 1).batch_by_size(3, len, padded_shapes=[2])
    assert_outcomes(longer, [arr([[0, 0]]), StructureError, arr([[2, 0]])])
    assert "in batch_by_size(3, len), element 1" in outcomes(longer)[1].__notes__


def test_elements_that_do_not_fit_lose_their_batch() -> None:
    ds = Dataset.from_generator(lambda: [np.ones(1), 1, np.ones(1), np.ones(1)]).batch_by_size(2, lambda x: 1)
    assert_outcomes(ds, [StructureError, np.ones((2, 1))])


def test_drop_remainder_leaves_out_what_the_end_cut_short() -> None:
    def found(*sizes: int, **options: Any) -> list[Any]:
        return plain(to_list(numbers(*sizes).batch_by_size(4, itself, drop_remainder=True, **options)))

    assert found() == []
    assert found(1, 1, 1) == []
    assert found(1, 1, 1, 1) == [[1, 1, 1, 1]]
    assert found(2, 2, 2) == [[2, 2]]
    assert found(3, 3) == [[3], [3]]
    assert found(1, 1, 1, max_elements=2) == [[1, 1]]


class Row(NamedTuple):
    number: int
    size: int


def reference(sizes: list[int], budget: int, most: int | None) -> list[Any]:
    """Say plainly what comes: lists of numbers, and `DataError` for what is too large."""
    found: list[Any] = []
    batch: list[Row] = []
    for row in map(Row, range(len(sizes)), sizes):
        if row.size > budget or (
            batch and (len(batch) == most or (len(batch) + 1) * max(row.size, *(one.size for one in batch)) > budget)
        ):
            found += [[one.number for one in batch]] if batch else []
            batch = []
        if row.size > budget:
            found.append(DataError)
        else:
            batch.append(row)
    return found + ([[one.number for one in batch]] if batch else [])


@given(
    sizes=st.lists(st.integers(0, 13), max_size=40),
    budget=st.integers(1, 12),
    most=st.one_of(st.none(), st.integers(1, 5)),
    columns=st.booleans(),
)
def test_batches_are_those_of_a_plain_reference(sizes: list[int], budget: int, most: int | None, columns: bool) -> None:
    pairs = Dataset.from_tensor_slices((np.arange(len(sizes)), np.array(sizes, np.int64)))
    if not columns:
        pairs = pairs.map(lambda number, size: (number, size))
    got = outcomes(pairs.batch_by_size(budget, lambda number, size: size, most))
    expected = reference(sizes, budget, most)
    assert [DataError if isinstance(one, DataError) else plain(one[0]) for one in got] == expected
    numbers_seen = [number for one in got if not isinstance(one, Exception) for number in plain(one[0])]
    assert numbers_seen == [number for number, size in enumerate(sizes) if size <= budget]
    for one, follower in pairwise([*got, None]):
        if isinstance(one, Exception):
            continue
        cost = len(one[1]) * max(plain(one[1]))
        assert cost <= budget
        assert most is None or len(one[1]) <= most
        if isinstance(follower, tuple):
            grown = [*plain(one[1]), plain(follower[1])[0]]
            assert len(grown) * max(grown) > budget or len(one[1]) == most, "the next element would have fitted"


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(ds.batch_by_size(6, lambda x: 2), 2), [arr([0, 1, 2]), arr([3, 4, 5])])
    assert seen == [*range(6)]
    seen.clear()
    assert_same(first(ds.batch_by_size(7, lambda x: 2 if x < 2 else 3), 1), [arr([0, 1])])
    assert seen == [0, 1, 2]


def test_batches_do_not_share_memory_with_the_input() -> None:
    data = np.arange(6).reshape(3, 2)
    (batch,) = to_list(Dataset.from_tensor_slices(data).batch_by_size(6, len))
    batch += 100
    assert_same(data, np.arange(6).reshape(3, 2))


def test_endless_input_can_be_left() -> None:
    ds = Dataset.range(2).repeat().batch_by_size(3, lambda x: 1)
    assert_same(first(ds, 2), [arr([0, 1, 0]), arr([1, 0, 1])])


async def test_the_loop_goes_on_and_can_cancel_while_a_batch_is_gathered() -> None:
    async def read_all() -> None:
        async with Dataset.range(1).repeat().batch_by_size(1, zero).iterate() as iterator:
            await anext(iterator)

    reading = asyncio.create_task(read_all())
    for _ in range(3):
        await asyncio.sleep(0)
        assert not reading.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


@pytest.mark.parametrize("size", [0, -1])
def test_numbers_below_one_are_refused_at_the_call(size: int) -> None:
    with pytest.raises(ValueError, match=f"batch_by_size: max_size .* not {size}"):
        numbers(1).batch_by_size(size, itself)
    with pytest.raises(ValueError, match=f"batch_by_size: max_elements .* not {size}"):
        numbers(1).batch_by_size(1, itself, size)


async def later(x: Any) -> int:
    return 1


def test_wrong_types_are_refused_at_the_call() -> None:
    for size in (1.5, "3", None, True):
        with pytest.raises(TypeError, match="batch_by_size: max_size"):
            numbers(1).batch_by_size(size, itself)  # type: ignore[arg-type]
    for most in (1.5, "3", True):
        with pytest.raises(TypeError, match="batch_by_size: max_elements"):
            numbers(1).batch_by_size(1, itself, most)  # type: ignore[arg-type]
    for function in (None, 3, later):
        with pytest.raises(TypeError, match="batch_by_size: size_fn"):
            numbers(1).batch_by_size(1, function)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="padded_shapes"):
        numbers(1).batch_by_size(1, itself, padded_shapes="x")
    with pytest.raises(ValueError, match="batch_by_size: padded_shapes"):
        nested(1).batch_by_size(1, itself, padded_shapes=[None])


def test_cardinality_is_unknown_unless_infinite() -> None:
    assert Dataset.range(3).batch_by_size(1, itself).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().batch_by_size(1, itself).cardinality() == aiodata.INFINITE_CARDINALITY


def test_spec_is_that_of_padded_batches() -> None:
    ds = nested(3).batch_by_size(9, itself)
    assert ds.plan.element_spec() == nested(3).padded_batch(2).plan.element_spec()
    assert Dataset.range(3).batch_by_size(9, itself).plan.element_spec() == TensorSpec((None,), np.int64)
    assert numbers(1).batch_by_size(9, itself).plan.element_spec() is None


def test_repr_and_name() -> None:
    assert numbers(1).batch_by_size(9, itself).plan.label == "batch_by_size(9, itself)"
    ds = rows(1).batch_by_size(9, len, 4, "tokens", padded_shapes=[None], padding_values=1, drop_remainder=True)
    label = "batch_by_size(9, len, max_elements=4, padded_shapes=[None], padding_values=1, drop_remainder=True)"
    assert ds.plan.label == label
    assert ds.plan.title == "tokens"


def test_a_restored_iterator_goes_on_behind_each_batch() -> None:
    ds = numbers(1, 1, 5, 2, 2, 1).batch_by_size(4, itself)
    with ds.iterate() as iterator:
        assert_same(next(iterator), arr([1, 1]))
        state = iterator.state_dict()
    with ds.iterate(state) as iterator:
        with pytest.raises(DataError):
            next(iterator)
        assert_same(list(iterator), [arr([2, 2]), arr([1])])
