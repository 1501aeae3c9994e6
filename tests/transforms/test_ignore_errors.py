"""`ignore_errors`: the elements that did not fail, however the others failed."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError, TooManyErrorsError
from aiodata.transforms.ignore_errors import MOST_IN_A_ROW
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
    i64,
    nested,
    nested_rows,
    outcomes,
    outcomes_async,
    plain,
    pull_all,
    to_list,
)
from tests.transforms.blocks import PIECES, Piece, dataset_of, outcomes_of, read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def fail(x: Any) -> Any:
    raise Boom(int(x))


def bad(count: int = 10, *numbers: int) -> Dataset[Any]:
    return failing(Dataset.range(count), *(numbers or (2, 5)))


class Failing:
    """An endless iterator whose elements fail, but for every `good`-th."""

    def __init__(self, good: int = 0) -> None:
        self.good = good
        self.number = 0

    def __iter__(self) -> Failing:
        return self

    def __next__(self) -> int:
        self.number += 1
        if self.good and self.number % self.good == 0:
            return self.number
        raise Boom(self.number)


# What is left


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_without_errors_all_elements_come(count: int) -> None:
    assert_gives(Dataset.range(count).ignore_errors(), i64(*range(count)))
    assert_gives(Dataset.range(count).map(lambda x: x).ignore_errors(), i64(*range(count)))


@pytest.mark.parametrize("numbers", [(0,), (9,), (4,), (0, 1), (8, 9), (3, 4, 5), tuple(range(10)), tuple(range(9))])
def test_the_failing_elements_are_left_out(numbers: tuple[int, ...]) -> None:
    assert_gives(bad(10, *numbers).ignore_errors(), i64(*(x for x in range(10) if x not in numbers)))


def test_nested_structures_stay() -> None:
    def check(element: Any) -> Any:
        return fail(1) if element["id"] == 1 else element

    assert_gives(nested(3).map(check).ignore_errors(), nested_rows(0, 2))
    pairs = Dataset.zip(bad(4, 1), Dataset.range(4)).map(lambda x, y: Pair(x, (y,)))
    assert_gives(pairs.ignore_errors(), [Pair(np.int64(x), (np.int64(x),)) for x in (0, 2, 3)])


@given(st.lists(PIECES, max_size=5))
def test_any_blocks_with_places_and_positions(pieces: list[Any]) -> None:
    def make() -> Dataset[Any]:
        return dataset_of(pieces).ignore_errors()

    expected = [x for x in outcomes_of(pieces) if isinstance(x, int)]
    reading = read(make())
    assert reading.outcomes == expected
    assert [place() for place in reading.places] == [f"place {x}" for x in expected]
    for number, cursor in enumerate(reading.cursors):
        assert read(make(), cursor()).outcomes == expected[number:]


def test_columns_pass_untouched() -> None:
    rows = np.arange(12).reshape(6, 2)
    batches = to_list(Dataset.from_tensor_slices(rows).ignore_errors().batch(6))
    assert_same(batches, [rows])
    reading = read(Dataset.range(5).ignore_errors())
    assert reading.computed == [True] * 5


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(failing(ds, 1).ignore_errors(), 3), i64(0, 2, 3))
    assert seen == [0, 1, 2, 3]


def test_what_ends_the_input_is_raised() -> None:
    def numbers() -> Iterator[int]:
        yield from range(3)
        raise Boom(3)

    ended = Dataset.range(3).then("ending", ending).ignore_errors()
    assert_outcomes(ended, [Boom(1)])
    # An exception of a generator of the user's is an error of one element, with nothing behind it.
    assert_outcomes(Dataset.from_generator(numbers).ignore_errors(), [0, 1, 2])


def ending(run: Any, source: Any, *, start: Any) -> AsyncIterator[Any]:
    return ended(source.open(start))


async def ended(blocks: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for _ in blocks:
        raise Boom(1)
        yield


def test_cardinality_is_unknown_always() -> None:
    for ds in (Dataset.range(0), Dataset.range(3), Dataset.range(3).repeat(), Dataset.range(3).filter(bool)):
        assert ds.ignore_errors().cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_the_spec_is_that_of_the_input() -> None:
    assert nested(2).ignore_errors().plan.element_spec() == nested(2).plan.element_spec()
    assert bad().ignore_errors().plan.element_spec() is None


# Behind other stages


def test_one_of_ten_fails() -> None:
    for number in range(5):
        assert_gives(bad(10, number).ignore_errors(), i64(*(x for x in range(10) if x != number)))


def test_take_counts_a_failed_element() -> None:
    assert_gives(bad(10, 3).take(5).ignore_errors(), i64(0, 1, 2, 4))
    assert_gives(bad(10, 3).ignore_errors().take(5), i64(0, 1, 2, 4, 5))


@pytest.mark.parametrize("number", [2, 3])
def test_one_of_five_fails(number: int) -> None:
    assert_gives(bad(5, number).ignore_errors(), i64(*(x for x in range(5) if x != number)))


@pytest.mark.parametrize("number", range(5))
def test_each_pass_of_a_shuffle_gives_the_good_elements(number: int) -> None:
    good = [x for x in range(5) if x != number]
    found = plain(to_list(bad(5, number).shuffle(3, seed=1).repeat().ignore_errors().take(12)))
    assert [sorted(found[first : first + 4]) for first in (0, 4, 8)] == [good] * 3
    assert len(to_list(bad(5, number).shuffle(3).repeat().ignore_errors().take(12))) == 12


@given(
    size=st.integers(1, 12),
    buffer=st.integers(1, 14),
    numbers=st.frozensets(st.integers(0, 11), max_size=4),
    seed=st.integers(0, 3),
)
def test_what_comes_out_of_a_shuffle_does_not_depend_on_where_an_element_failed(
    size: int, buffer: int, numbers: frozenset[int], seed: int
) -> None:
    good = [x for x in range(size) if x not in numbers]
    alone = Dataset.from_tensor_slices(np.array(good, np.int64)).shuffle(buffer, seed=seed).repeat(3)
    assert_same(to_list(bad(size, *numbers, -1).shuffle(buffer, seed=seed).repeat(3).ignore_errors()), to_list(alone))


@pytest.mark.parametrize("buffer", [1, 2, 3, 4, 5, 6])
def test_every_place_in_every_buffer(buffer: int) -> None:
    for number in range(6):
        found = plain(to_list(bad(6, number).shuffle(buffer, seed=2).repeat(2).ignore_errors()))
        good = [x for x in range(6) if x != number]
        assert [sorted(found[:5]), sorted(found[5:])] == [good, good]


def test_after_a_filter() -> None:
    assert_gives(Dataset.range(6).filter(lambda x: fail(x) if x == 2 else x != 4).ignore_errors(), i64(0, 1, 3, 5))


def test_a_batch_loses_what_it_had_read() -> None:
    assert_gives(bad(7, 1).batch(3).ignore_errors(), [arr([2, 3, 4]), arr([5, 6])])
    assert_gives(bad(7, 1).ignore_errors().batch(3), [arr([0, 2, 3]), arr([4, 5, 6])])


@pytest.mark.parametrize("calls", [None, 2])
def test_after_an_interleave(calls: int | None) -> None:
    ds = bad(3, 1).interleave(lambda x: failing(Dataset.range(10 * x, 10 * x + 3), 21), 2, num_parallel_calls=calls)
    assert_gives(ds.ignore_errors(), i64(0, 20, 1, 2, 22))


def test_after_a_parallel_map_and_a_prefetch() -> None:
    ds = Dataset.range(40).map(lambda x: fail(x) if x % 5 == 1 else x, num_parallel_calls=3)
    assert_gives(ds.ignore_errors(), i64(*(x for x in range(40) if x % 5 != 1)))
    assert_gives(ds.prefetch(4).ignore_errors(), i64(*(x for x in range(40) if x % 5 != 1)))
    assert_gives(ds.ignore_errors().prefetch(4), i64(*(x for x in range(40) if x % 5 != 1)))


def test_a_source_may_fail_as_well() -> None:
    class Fewer(Failing):
        def __next__(self) -> int:
            return super().__next__() if self.number < 7 else next(iter(()))

    assert_gives(Dataset.from_generator(Fewer, args=[3]).ignore_errors(), [3, 6])


# The limit


@pytest.mark.parametrize("limit", [2, 3, np.int64(2), 0.34, np.float32(0.4), 0.999])
def test_up_to_the_limit_errors_are_left_out(limit: Any) -> None:
    assert_gives(bad(6, 2, 5).ignore_errors(limit=limit), i64(0, 1, 3, 4))


def test_beyond_the_limit_the_iteration_ends() -> None:
    ds = bad(10, 2, 5, 7).ignore_errors(limit=1)
    assert_outcomes(ds, [*i64(0, 1, 3, 4), TooManyErrorsError])
    error = outcomes(ds)[-1]
    assert str(error) == "ignore_errors(limit=1): 2 of the 6 elements read so far failed, more than may"
    assert isinstance(error, DataError)
    assert_same(error.__cause__, Boom(5))
    assert_outcomes(bad(4, 0).ignore_errors(limit=0), [TooManyErrorsError])


def test_a_share_allows_one_error_and_then_the_share() -> None:
    assert_gives(bad(3, 0).ignore_errors(limit=0.01), i64(1, 2))
    assert_outcomes(bad(30, 0, 19).ignore_errors(limit=0.1), [*i64(*range(1, 19)), *i64(*range(20, 30))])
    ds = bad(30, 0, 18).ignore_errors(limit=0.1)
    assert_outcomes(ds, [*i64(*range(1, 18)), TooManyErrorsError])
    text = "ignore_errors(limit=0.1): 2 of the 19 elements read so far failed, more than the share that may"
    assert str(outcomes(ds)[-1]) == text


def test_a_share_is_the_number_that_was_written() -> None:
    # 0.29 * 100 is less than 29 in floating point.
    assert len(to_list(bad(100, *range(71, 100)).ignore_errors(limit=0.29))) == 71
    assert len(outcomes(bad(101, *range(71, 101)).ignore_errors(limit=0.29))) == 72


@given(st.lists(st.booleans(), max_size=30), st.one_of(st.integers(0, 4), st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.9])))
def test_the_limit_is_as_described(good: list[bool], limit: float) -> None:
    expected: list[Any] = []
    errors = 0
    for number, passes in enumerate(good):
        errors += not passes
        if not passes and errors > (limit if isinstance(limit, int) else max(1, limit * (number + 1))):
            expected.append(TooManyErrorsError)
            break
        expected += i64(number) if passes else []
    numbers = [number for number, passes in enumerate(good) if not passes]
    assert_same(outcomes(bad(len(good), *numbers, -1).ignore_errors(limit=limit)), expected)


def test_columns_count_as_elements_read() -> None:
    ds = Dataset.range(8).concatenate(bad(2, 0, 1)).ignore_errors(limit=0.2)
    assert_gives(ds, i64(*range(8)))


def test_each_epoch_behind_it_counts_anew() -> None:
    assert_gives(bad(3, 1).ignore_errors(limit=1).repeat(3), i64(0, 2, 0, 2, 0, 2))
    assert_outcomes(bad(3, 1).repeat(3).ignore_errors(limit=2), [*i64(0, 2, 0, 2, 0), TooManyErrorsError])
    assert_outcomes(bad(3, 1).ignore_errors(limit=0).repeat(3), [*i64(0), TooManyErrorsError])


@pytest.mark.parametrize("limit", [2, 0.4])
def test_a_restored_iterator_ends_at_the_same_error(limit: float) -> None:
    ds = bad(20, 2, 5, 7, 8).ignore_errors(limit=limit)
    straight = outcomes(ds)
    assert_same(straight, [*i64(0, 1, 3, 4, 6), TooManyErrorsError])
    with ds.iterate() as iterator:
        for number in range(len(straight)):
            with ds.iterate(iterator.state_dict()) as restored:
                rest = pull_all(restored)
            assert_same(rest[:-1], straight[number:-1])
            assert str(rest[-1]) == str(straight[-1])
            if number < len(straight) - 1:
                next(iterator)


@pytest.mark.parametrize("limit", [-1, 0.0, 1.0, -0.5, 1.5, float("nan"), float("inf"), np.float64(2)])
def test_a_limit_out_of_range_is_refused_at_the_call(limit: Any) -> None:
    with pytest.raises(ValueError, match="ignore_errors: limit"):
        bad().ignore_errors(limit=limit)


@pytest.mark.parametrize("limit", ["3", True, [1], 1j])
def test_a_limit_that_is_no_number_is_refused_at_the_call(limit: Any) -> None:
    with pytest.raises(TypeError, match="ignore_errors: limit"):
        bad().ignore_errors(limit=limit)


# Inputs that only fail


def test_an_endless_input_that_only_fails_ends() -> None:
    failures: list[Exception] = []
    ds = Dataset.from_generator(Failing).ignore_errors(
        on_error=lambda error: failures.append(error.with_traceback(None))
    )
    (error,) = outcomes(ds)
    assert isinstance(error, TooManyErrorsError)
    assert "100000 of the 100000 elements read so far failed, the last 100000 with no element between" in str(error)
    assert len(failures) == MOST_IN_A_ROW - 1


@pytest.mark.slow
def test_an_epoch_that_only_fails_does_not_spin_for_ever() -> None:
    (error,) = outcomes(Dataset.from_tensors(0).map(fail).repeat().ignore_errors())
    assert isinstance(error, TooManyErrorsError)


def test_behind_the_errors_of_an_epoch_there_is_nothing_to_repeat() -> None:
    assert_gives(Dataset.from_tensors(0).map(fail).ignore_errors().repeat(), [])


def test_an_element_between_begins_the_row_anew() -> None:
    assert first(Dataset.from_generator(Failing, args=[60_000]).ignore_errors(), 2) == [60_000, 120_000]


def test_a_known_end_is_waited_for() -> None:
    count = MOST_IN_A_ROW + 5
    assert to_list(Dataset.range(count).map(lambda x: fail(x) if x < count - 1 else x).ignore_errors()) == [count - 1]


async def test_the_loop_goes_on_and_can_cancel_while_errors_are_dropped() -> None:
    async def read_all() -> None:
        async with Dataset.from_generator(Failing).ignore_errors().iterate() as iterator:
            async for _ in iterator:
                raise AssertionError("nothing comes")

    reading = asyncio.create_task(read_all())
    for _ in range(3):
        await asyncio.sleep(0)
        assert not reading.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_it_can_be_cancelled_inside_other_stages() -> None:
    ds = Dataset.from_generator(Failing).ignore_errors().batch(2).map(lambda x: x)
    reading = asyncio.create_task(outcomes_async(ds))
    for _ in range(3):
        await asyncio.sleep(0)
        assert not reading.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


# Reports


def test_a_warning_for_each_error_with_its_notes(caplog: pytest.LogCaptureFixture) -> None:
    ds = bad(6, 2, 5).ignore_errors(log_warning=True)
    with caplog.at_level(logging.WARNING, "aiodata"):
        assert_same(to_list(ds), i64(0, 1, 3, 4))
    assert [(record.name, record.levelname) for record in caplog.records] == [("aiodata", "WARNING")] * 2
    for record, number in zip(caplog.records, (2, 5), strict=True):
        text = record.getMessage()
        assert f"Boom: {number}\n" in text
        assert f"in map(check), element {number}" in text
    caplog.clear()
    to_list(bad().ignore_errors())
    assert caplog.records == []


def test_each_dropped_exception_is_reported() -> None:
    errors: list[Exception] = []
    ds = bad(6, 2, 5).ignore_errors(on_error=errors.append)
    assert_same(to_list(ds), i64(0, 1, 3, 4))
    assert_same(errors, [Boom(2), Boom(5)])
    assert [len(error.__notes__) for error in errors] == [1, 1]
    assert "element 5" in errors[1].__notes__[0]


def test_an_error_without_notes_gets_its_place() -> None:
    errors: list[Exception] = []
    pieces = [Piece("columns", 2), Piece("list", 3, frozenset({1}))]
    assert to_list(dataset_of(pieces).ignore_errors(on_error=errors.append)) == [0, 1, 2, 4]
    assert errors[0].__notes__ == ["in ignore_errors(on_error=list.append), element 3, from place 3"]


def test_the_error_that_is_one_too_many_is_not_reported() -> None:
    errors: list[Exception] = []
    outcomes(bad(6, 2, 5).ignore_errors(on_error=errors.append, limit=1))
    assert_same(errors, [Boom(2)])


@pytest.mark.parametrize(("raised", "expected"), [(KeyError("no"), KeyError("no")), (StopIteration(), RuntimeError)])
def test_what_on_error_raises_takes_the_elements_place(raised: Exception, expected: Any) -> None:
    def refuse(error: Exception) -> None:
        if error.args == (2,):
            raise raised

    ds = bad(7, 2, 5).ignore_errors(on_error=refuse)
    assert_same(outcomes(ds), [*i64(0, 1), expected, *i64(3, 4, 6)])
    with ds.iterate() as iterator:
        assert_same([next(iterator), next(iterator)], i64(0, 1))
        with pytest.raises(type(outcomes(ds)[2])):
            next(iterator)
        state = iterator.state_dict()
    with ds.iterate(state) as iterator:
        assert_same(list(iterator), i64(3, 4, 6))


def test_what_on_error_raises_is_marked() -> None:
    def refuse(error: Exception) -> None:
        raise KeyError(*error.args)

    error = outcomes(bad(3, 1).ignore_errors(on_error=refuse))[1]
    assert error.__notes__ == ["in ignore_errors(on_error=refuse), element 1"]


async def later(error: Exception) -> None: ...


@pytest.mark.parametrize("on_error", [3, "log", later])
def test_what_cannot_be_called_plainly_is_refused_at_the_call(on_error: Any) -> None:
    with pytest.raises(TypeError, match="ignore_errors: on_error"):
        bad().ignore_errors(on_error=on_error)


def test_the_counts_are_in_the_statistics() -> None:
    ds = Dataset.range(3).concatenate(bad(6, 2, 5)).ignore_errors(limit=4)
    with ds.iterate() as iterator:
        list(iterator)
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "ignore_errors(limit=4)"]
    assert (counters["elements"], counters["errors"]) == (7, 2)


def test_repr_and_name() -> None:
    assert bad().ignore_errors().plan.label == "ignore_errors()"
    ds = bad().ignore_errors(True, "clean", on_error=print, limit=0.5)
    assert ds.plan.label == "ignore_errors(log_warning=True, on_error=print, limit=0.5)"
    assert ds.plan.title == "clean"


def test_dropped_exceptions_are_freed_at_once() -> None:
    dropped: list[weakref.ref[Exception]] = []

    def note(error: Exception) -> None:
        dropped.append(weakref.ref(error))

    gc.collect()
    gc.disable()
    try:
        with bad(9, 2, 3, 5).ignore_errors(on_error=note).iterate() as iterator:
            list(iterator)
            assert [ref() for ref in dropped[:2]] == [None, None]
        assert [ref() for ref in dropped] == [None] * 3
    finally:
        gc.enable()
