"""`map`: the result takes the element's place, in order, computed only when it is pulled."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import StructureError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    counted,
    failing,
    first,
    i64,
    nested,
    outcomes,
    outcomes_async,
    to_list,
)
from tests.transforms.blocks import Piece, dataset_of


def double(x: Any) -> Any:
    return x * 2


async def double_later(x: Any) -> Any:
    await asyncio.sleep(0)
    return x * 2


PARALLEL = [None, 1, 2, 4, aiodata.AUTOTUNE]


@pytest.mark.parametrize("calls", PARALLEL)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_gives_each_result_in_order(count: int, calls: int | None) -> None:
    ds = Dataset.range(count).map(double, num_parallel_calls=calls)
    assert_gives(ds, i64(*range(0, 2 * count, 2)))


@pytest.mark.parametrize("calls", PARALLEL)
def test_async_function_gives_the_same_as_a_plain_one(calls: int | None) -> None:
    assert_gives(Dataset.range(20).map(double_later, num_parallel_calls=calls), i64(*range(0, 40, 2)))


@pytest.mark.parametrize("function", [double, double_later])
def test_not_deterministic_gives_each_result_once(function: Any) -> None:
    ds = Dataset.range(50).map(function, num_parallel_calls=3, deterministic=False)
    assert_same(sorted(to_list(ds)), i64(*range(0, 100, 2)))
    assert_same(sorted(asyncio.run(collect(ds))), i64(*range(0, 100, 2)))


def test_tuple_is_unpacked_into_arguments() -> None:
    ds = Dataset.zip(Dataset.range(3), Dataset.range(10, 13)).map(lambda a, b: b - a)
    assert_gives(ds, i64(10, 10, 10))


def test_one_tuple_is_unpacked_too() -> None:
    ds = Dataset.from_tensor_slices((np.arange(3),)).map(lambda x: x + 1)
    assert_gives(ds, i64(1, 2, 3))


def test_nested_tuple_stays_nested() -> None:
    ds = Dataset.from_tensor_slices(((np.arange(2), np.arange(2) * 10), np.arange(2) * 100))
    assert_gives(ds.map(lambda pair, c: pair[0] + pair[1] + c), i64(0, 111))
    assert_same(to_list(ds.map(lambda pair, c: type(pair).__name__)), ["tuple", "tuple"])


def test_dict_is_one_argument() -> None:
    assert_gives(Dataset.from_tensor_slices({"a": np.arange(3)}).map(lambda d: d["a"] * 5), i64(0, 5, 10))


def test_named_tuple_is_one_argument() -> None:
    ds = Dataset.from_tensor_slices(Pair(np.arange(2), np.arange(2) * 10))
    assert_gives(ds.map(lambda p: p.x + p.y), i64(0, 11))


def test_named_tuple_type_is_kept_through_map_and_batch() -> None:
    class Flight(NamedTuple):
        number: Any
        delay: Any

    ds = Dataset.range(3).map(lambda x: Flight(x, x * 10)).map(lambda f: f._replace(delay=f.delay + 1)).batch(2)
    assert_gives(ds, [Flight(arr([0, 1]), arr([1, 11])), Flight(arr([2]), arr([21]))])


def test_nested_structure_passes_through() -> None:
    ds = nested(2).map(lambda d: (d["id"], {"p": d["parts"][1]}))
    assert_gives(ds, [(np.int32(i), {"p": Pair(np.bool_(i == 0), np.int64(i))}) for i in (0, 1)])


def test_returned_list_becomes_a_tuple() -> None:
    assert_gives(Dataset.range(2).map(lambda x: [x, x + 1, x + 2]), [(*i64(0, 1, 2),), (*i64(1, 2, 3),)])


def test_returned_tuple_stays_a_tuple() -> None:
    assert_gives(Dataset.range(1).map(lambda x: (x, x + 1, x + 2)), [(*i64(0, 1, 2),)])


def test_list_within_a_list_becomes_an_array() -> None:
    assert_gives(Dataset.range(1).map(lambda x: [[x, x + 1], [x, x]]), [(arr([0, 1]), arr([0, 0]))])


def test_list_within_a_dict_becomes_an_array() -> None:
    assert_gives(Dataset.range(2).map(lambda x: {"k": [x, x + 1]}), [{"k": arr([0, 1])}, {"k": arr([1, 2])}])


def test_returned_list_is_unpacked_by_the_next_function() -> None:
    assert_gives(Dataset.range(2).map(lambda x: [x, x * 3]).map(lambda a, b: a + b), i64(0, 4))


def test_bytes_and_text_pass_unchanged() -> None:
    assert_gives(Dataset.range(1).map(lambda x: (b"a\x00", "é")), [(b"a\x00", "é")])


@pytest.mark.parametrize("calls", [None, 2])
def test_none_is_refused_and_reading_goes_on(calls: int | None) -> None:
    ds = Dataset.range(3).map(lambda x: None if x == 1 else x, num_parallel_calls=calls)
    got = outcomes(ds)
    assert_same([got[0], got[2:]], [np.int64(0), i64(2)])
    assert isinstance(got[1], (TypeError, ValueError))
    assert "None" in str(got[1])


@pytest.mark.parametrize("calls", [0, -2, -100, 1.5, "two"])
def test_wrong_parallelism_is_refused_at_the_call(calls: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).map(double, num_parallel_calls=calls)


@pytest.mark.parametrize("function", [None, 3, "f"])
def test_what_cannot_be_called_is_refused_at_the_call(function: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.range(3).map(function)


@pytest.mark.parametrize("calls", PARALLEL)
def test_error_takes_its_elements_place(calls: int | None) -> None:
    def check(x: Any) -> Any:
        if x in (1, 4):
            raise Boom(int(x))
        return x

    ds = Dataset.range(6).map(check, num_parallel_calls=calls)
    assert_outcomes(ds, [np.int64(0), Boom(1), *i64(2, 3), Boom(4), np.int64(5)])


@pytest.mark.parametrize("calls", [None, 2])
def test_error_of_an_async_function_reaches_the_consumer(calls: int | None) -> None:
    async def check(x: Any) -> Any:
        await asyncio.sleep(0)
        if x == 3:
            raise Boom(3)
        return x

    ds = Dataset.range(6).map(check, num_parallel_calls=calls)
    assert_outcomes(ds, [*i64(0, 1, 2), Boom(3), *i64(4, 5)])
    with pytest.raises(Boom):
        asyncio.run(collect(ds))


@pytest.mark.parametrize("calls", [None, 2])
def test_error_of_the_input_keeps_its_place(calls: int | None) -> None:
    ds = failing(Dataset.range(4), 2).map(double, num_parallel_calls=calls)
    assert_outcomes(ds, [*i64(0, 2), Boom(2), np.int64(6)])


def test_error_says_which_stage_and_element() -> None:
    def parse(x: Any) -> Any:
        raise Boom(7)

    error = outcomes(Dataset.range(10).skip(2).map(parse))[1]
    note = "\n".join(error.__notes__)
    assert "map(parse)" in note
    assert "element 1" in note


def test_stop_iteration_in_the_function_does_not_end_the_dataset() -> None:
    def stop(x: Any) -> Any:
        if x == 1:
            raise StopIteration
        return x

    assert_same(outcomes(Dataset.range(3).map(stop)), [np.int64(0), RuntimeError, np.int64(2)])
    assert_same(asyncio.run(outcomes_async(Dataset.range(3).map(stop))), [np.int64(0), RuntimeError, np.int64(2)])


def test_making_a_dataset_calls_nothing() -> None:
    ds, seen = counted(Dataset.range(5))
    ds.batch(2).repeat(3).shuffle(2).take(2)
    assert seen == []


def test_take_three_calls_the_function_three_times() -> None:
    ds, seen = counted(Dataset.range(1000))
    assert_same(to_list(ds.take(3)), i64(0, 1, 2))
    assert seen == [0, 1, 2]
    asyncio.run(collect(ds.take(3)))
    assert seen == [0, 1, 2] * 2


def test_leaving_early_calls_no_further() -> None:
    ds, seen = counted(Dataset.range(1000))
    assert_same(first(ds, 3), i64(0, 1, 2))
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("calls", [None, 2])
def test_cardinality_is_that_of_the_input(calls: int | None) -> None:
    assert Dataset.range(7).map(double, num_parallel_calls=calls).cardinality() == 7
    endless = Dataset.range(7).repeat().map(double, num_parallel_calls=calls)
    assert endless.cardinality() == aiodata.INFINITE_CARDINALITY


# Vectorized


def blocks_of_three() -> Dataset[Any]:
    """The numbers from 0 to 8 in blocks of three, of which 4 fails."""
    return dataset_of([Piece("columns", 3), Piece("list", 3, frozenset([1])), Piece("columns", 3)])


async def double_by_columns_later(x: Any) -> Any:
    await asyncio.sleep(0)
    return double_by_columns(x)


def double_by_columns(x: Any) -> Any:
    if (x == 7).any():
        raise Boom(7)
    if (x == 1).any():
        raise StopIteration
    return x * 2


@pytest.mark.parametrize("limit", [None, 60])
@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("function", [double_by_columns, double_by_columns_later])
def test_a_vectorized_function_that_raises_is_called_row_by_row(
    function: Any, calls: int | None, limit: float | None
) -> None:
    ds = blocks_of_three().map(function, calls, vectorized=True, timeout_seconds=limit)
    for found in (outcomes(ds), asyncio.run(outcomes_async(ds))):
        expected = [np.int64(0), RuntimeError, *i64(4, 6), Boom(4), *i64(10, 12), Boom(7), np.int64(16)]
        assert_same(found, expected)
        assert found[7].__notes__ == [f"in map({function.__name__}), element 7, from place 7"]


@pytest.mark.parametrize("calls", [None, 2])
def test_a_vectorized_function_with_too_few_rows_fails_for_each_element_of_its_block(calls: int | None) -> None:
    ds = blocks_of_three().map(lambda x: x[1:] if 4 > x[0] > 2 else x, calls, vectorized=True)
    found = outcomes(ds)
    assert_same([*found[:3], *found[6:]], i64(0, 1, 2, 6, 7, 8))
    assert_same(found[4], Boom(4))
    for element in (3, 5):
        assert isinstance(found[element], StructureError)
        assert str(found[element]).endswith("it got 2 and gave 1")
        assert found[element].__notes__[0].endswith(f", element {element}, from place {element}")


@pytest.mark.parametrize("calls", [None, 2])
def test_elements_that_do_not_fit_each_other_are_given_to_a_vectorized_function_one_by_one(calls: int | None) -> None:
    ds = Dataset.range(4).map(lambda x: np.full(x % 3, x)).map(lambda x: x + 1, calls, vectorized=True)
    assert_gives(ds, [arr([]), arr([2]), arr([3, 3]), arr([])])


def test_arguments_stand_where_tf_data_has_them() -> None:
    assert_gives(Dataset.range(2).map(abs, None, None, True, False, "named"), i64(0, 1))
    with pytest.raises(ValueError, match="synchronous does not go with num_parallel_calls"):
        Dataset.range(2).map(abs, 2, None, True)
