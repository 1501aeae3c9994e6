"""`interleave`: slots are visited in turn; a slot takes its next input only when it is visited again."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.transforms import _cycle, _turns
from tests.programs import (
    Boom,
    arr,
    assert_gives,
    assert_same,
    collect,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    outcomes,
    outcomes_async,
    to_list,
)
from tests.transforms.blocks import PIECES, Piece, check, dataset_of, outcomes_of, read

LENGTHS = [[], [3], [0], [2, 0, 3], [1, 4, 2, 0, 0, 3, 5, 1], [6, 1, 1, 1, 6], [0, 0, 0, 2], [5, 5, 5, 5, 5]]


def serial(lengths: list[int], cycle: int, block: int) -> list[int]:
    """Say the order in plain Python: value 100 * input + index."""
    inputs = [[100 * number + index for index in range(length)] for number, length in enumerate(lengths)]
    slots: list[list[int] | None] = [None] * cycle
    out: list[int] = []
    slot = given = 0
    while inputs or any(one is not None for one in slots):
        if slots[slot] is None and inputs:
            slots[slot] = inputs.pop(0)
        inner = slots[slot]
        if inner:
            out.append(inner.pop(0))
            given += 1
        elif inner is not None:
            slots[slot] = None
        if (not inner and slots[slot] is None) or given == block:
            slot, given = (slot + 1) % cycle, 0
    return out


def inner_of(lengths: list[int]) -> Any:
    return lambda x: Dataset.range(100 * int(x), 100 * int(x) + lengths[int(x)])


@pytest.mark.parametrize("calls", [None, 1, "cycle", aiodata.AUTOTUNE])
@pytest.mark.parametrize("cycle", [1, 2, 3, 5])
@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_order_is_the_serial_one(lengths: list[int], block: int, cycle: int, calls: Any) -> None:
    calls = cycle if calls == "cycle" else calls
    ds = Dataset.range(len(lengths)).interleave(inner_of(lengths), cycle, block, num_parallel_calls=calls)
    expected = i64(*serial(lengths, cycle, block))
    assert_same(to_list(ds), expected)
    assert_same(asyncio.run(collect(ds)), expected)


@pytest.mark.parametrize("calls", [None, 2])
def test_blocks_of_four_from_two_slots(calls: int | None) -> None:
    ds = Dataset.range(1, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(6), 2, 4, num_parallel_calls=calls)
    expected = [1] * 4 + [2] * 4 + [1] * 2 + [2] * 2 + [3] * 4 + [4] * 4 + [3] * 2 + [4] * 2 + [5] * 6
    assert_gives(ds, i64(*expected))


@pytest.mark.parametrize("calls", [None, 2])
def test_slot_that_ends_in_mid_block_moves_on_and_refills_when_visited_again(calls: int | None) -> None:
    ds = Dataset.range(3).interleave(inner_of([1, 4, 2]), 2, 2, num_parallel_calls=calls)
    assert_gives(ds, i64(0, 100, 101, 200, 201, 102, 103))


def test_block_length_is_one_by_default() -> None:
    ds = Dataset.range(2).interleave(inner_of([3, 3]), cycle_length=2)
    assert_gives(ds, i64(0, 100, 1, 101, 2, 102))


@pytest.mark.parametrize("cycle", [None, aiodata.AUTOTUNE])
def test_chosen_cycle_length_gives_each_element_once(cycle: int | None) -> None:
    ds = Dataset.range(4).interleave(inner_of([3, 0, 2, 1]), cycle_length=cycle)
    assert_same(sorted(to_list(ds)), i64(0, 1, 2, 200, 201, 300))


def test_not_deterministic_gives_each_element_once() -> None:
    ds = Dataset.range(4).interleave(inner_of([3, 0, 2, 1]), 2, 1, num_parallel_calls=2, deterministic=False)
    assert_same(sorted(to_list(ds)), i64(0, 1, 2, 200, 201, 300))
    assert_same(sorted(asyncio.run(collect(ds))), i64(0, 1, 2, 200, 201, 300))


def test_arguments_unpack_and_inner_structure_is_kept() -> None:
    pairs = Dataset.zip(Dataset.range(2), Dataset.range(5, 7))
    ds = pairs.interleave(lambda a, b: Dataset.from_tensors(np.array([a, b])), cycle_length=2)
    assert_gives(ds, [arr([0, 5]), arr([1, 6])])
    assert_gives(Dataset.range(2).interleave(lambda x: nested(2), cycle_length=2), nested_rows(0, 0, 1, 1))


@pytest.mark.parametrize(
    "arguments",
    [
        {"cycle_length": 0},
        {"cycle_length": -2},
        {"cycle_length": 2, "block_length": 0},
        {"cycle_length": 2, "block_length": -1},
        {"cycle_length": 2, "num_parallel_calls": 0},
        {"cycle_length": 2, "num_parallel_calls": -2},
        {"cycle_length": 2, "num_parallel_calls": 3},
        {"cycle_length": 1.5},
    ],
    ids=str,
)
def test_wrong_numbers_are_refused_at_the_call(arguments: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).interleave(lambda x: Dataset.range(2), **arguments)


def test_what_cannot_be_called_is_refused_at_the_call() -> None:
    function: Any = "f"
    with pytest.raises(TypeError):
        Dataset.range(3).interleave(function, cycle_length=2)


@pytest.mark.parametrize("calls", [None, 2])
def test_inner_error_comes_in_its_place_and_nothing_else_is_lost(calls: int | None) -> None:
    ds = Dataset.range(2).interleave(
        lambda x: failing(Dataset.range(10 * int(x), 10 * int(x) + 3), 1), cycle_length=2, num_parallel_calls=calls
    )
    for got in (outcomes(ds), asyncio.run(outcomes_async(ds))):
        assert_same(got[:3], [*i64(0, 10), Boom(1)])
        assert_same(sorted(got[3:]), i64(2, 11, 12))


@pytest.mark.parametrize("calls", [None, 2])
def test_error_of_the_function_or_the_input_loses_only_that_input(calls: int | None) -> None:
    def inner(x: Any) -> Dataset[Any]:
        if x == 1:
            raise Boom(1)
        return Dataset.range(10 * int(x), 10 * int(x) + 2)

    by_function = Dataset.range(3).interleave(inner, cycle_length=2, num_parallel_calls=calls)
    by_input = failing(Dataset.range(3), 1).interleave(inner, cycle_length=2, num_parallel_calls=calls)
    for ds in (by_function, by_input):
        got = outcomes(ds)
        assert_same([item for item in got if isinstance(item, Exception)], [Boom(1)])
        assert_same(sorted(item for item in got if not isinstance(item, Exception)), i64(0, 1, 20, 21))


def test_sequential_form_opens_no_more_than_cycle_length_inputs() -> None:
    opened: list[int] = []

    def inner(x: Any) -> Dataset[Any]:
        opened.append(int(x))
        return Dataset.range(3)

    ds = Dataset.range(9).interleave(inner, cycle_length=2)
    assert opened == []
    first(ds, 6)
    assert opened == [0, 1]


@pytest.mark.parametrize("calls", [None, 2])
def test_endless_inputs_can_be_left(calls: int | None) -> None:
    ds = (
        Dataset.range(2)
        .repeat()
        .interleave(lambda x: Dataset.from_tensors(x).repeat(), cycle_length=2, num_parallel_calls=calls)
    )
    assert_same(first(ds, 5), i64(0, 1, 0, 1, 0))


def test_cardinality_is_unknown_but_infinite_for_parallel_endless() -> None:
    finite, endless = Dataset.range(2), Dataset.range(2).repeat()
    assert finite.interleave(inner_of([1, 1]), 2).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert endless.interleave(inner_of([1, 1]), 2).cardinality() == aiodata.UNKNOWN_CARDINALITY
    parallel = endless.interleave(inner_of([1, 1]), 2, num_parallel_calls=2)
    assert parallel.cardinality() == aiodata.INFINITE_CARDINALITY


# Elements in bulk


@settings(max_examples=50, deadline=None)
@given(
    inner=st.lists(st.lists(PIECES, max_size=4), max_size=5),
    cycle=st.integers(2, 4),
    block=st.sampled_from([1, 1, 2, 3, 7, 10**9]),
    portion=st.sampled_from([1, 5, 4096]),
)
def test_any_blocks_give_the_serial_order_places_and_positions(
    inner: list[list[Piece]], cycle: int, block: int, portion: int
) -> None:
    def make() -> Dataset[Any]:
        numbers = Dataset.range(len(inner))
        return numbers.interleave(lambda n: dataset_of(inner[int(n)], 100 * int(n)), cycle, block)

    expected = [outcomes_of(pieces, 100 * number) for number, pieces in enumerate(inner)]
    order = [expected[value // 100][value % 100] for value in serial([len(one) for one in expected], cycle, block)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_turns, "PORTION", portion)
        check(make, order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cycle.Cycle, "in_bulk", lambda self: None)
        check(make, order)


def test_what_is_computed_stays_in_lists() -> None:
    def inner(n: Any) -> Dataset[Any]:
        return dataset_of([Piece("list", 5), Piece("list", 6 + int(n))], 100 * int(n))

    reading = read(Dataset.range(3).interleave(inner, cycle_length=2, block_length=2))
    assert all(reading.computed)
    assert len(reading.outcomes) == 36


@pytest.mark.parametrize("block", [1, 2, 100])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_sequential_form_computes_no_more_than_is_asked_for(count: int, block: int) -> None:
    seen: list[list[Any]] = []

    def inner(x: Any) -> Dataset[Any]:
        ds, values = counted(Dataset.range(90))
        seen.append(values)
        return ds

    first(Dataset.range(4).interleave(inner, cycle_length=3, block_length=block), count)
    assert sum(map(len, seen)) == count


def test_it_can_have_a_name_and_says_whether_it_keeps_its_order() -> None:
    ds = Dataset.range(3)
    assert ds.interleave(Dataset.range, 2, name="mixed").plan.title == "mixed"
    assert ds.interleave(Dataset.range, 2).element_spec is None
    for told in (None, True, False):
        assert ds.interleave(Dataset.range, 2, num_parallel_calls=2, deterministic=told).plan.deterministic is told
        assert ds.interleave(Dataset.range, 2, deterministic=told).plan.deterministic is True
