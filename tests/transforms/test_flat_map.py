"""`flat_map`: the function's datasets one after the other, each opened when it is reached."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError
from tests.programs import (
    Boom,
    assert_gives,
    assert_outcomes,
    assert_same,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    outcomes,
    to_list,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def upto(x: Any) -> Dataset[Any]:
    return Dataset.range(int(x))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_joins_the_inner_datasets(count: int) -> None:
    expected = [value for outer in range(count) for value in range(outer)]
    assert_gives(Dataset.range(count).flat_map(upto), i64(*expected))


def test_empty_inner_datasets_vanish() -> None:
    assert_gives(Dataset.range(6).flat_map(lambda x: Dataset.range(5 if x == 3 else 0)), i64(*range(5)))
    assert_gives(Dataset.range(6).flat_map(lambda x: Dataset.range(0)), [])


def test_many_empty_inner_datasets_are_no_recursion() -> None:
    assert_gives(Dataset.range(3000).flat_map(lambda x: Dataset.range(0)), [])


def test_tuple_is_unpacked_and_dict_is_one_argument() -> None:
    pairs = Dataset.zip(Dataset.range(2), Dataset.range(5, 7))
    assert_gives(pairs.flat_map(lambda a, b: Dataset.range(int(a), int(b), 3)), i64(0, 3, 1, 4))
    assert_gives(nested(2).flat_map(lambda d: Dataset.range(int(d["id"]) + 1)), i64(0, 0, 1))


def test_inner_elements_keep_their_structure() -> None:
    assert_gives(Dataset.range(2).flat_map(lambda x: nested(2)), nested_rows(0, 1, 0, 1))


def test_rows_of_arrays() -> None:
    ds = Dataset.from_tensor_slices(np.arange(6).reshape(3, 2)).flat_map(Dataset.from_tensor_slices)
    assert_gives(ds, i64(*range(6)))


def test_after_an_inner_error_that_inner_dataset_goes_on() -> None:
    ds = Dataset.range(2).flat_map(lambda x: failing(Dataset.range(3), 1))
    assert_outcomes(ds, [np.int64(0), Boom(1), *i64(2, 0), Boom(1), np.int64(2)])


def test_after_an_error_of_the_function_the_next_input_comes() -> None:
    def inner(x: Any) -> Dataset[Any]:
        if x == 1:
            raise Boom(1)
        return Dataset.range(int(x), int(x) + 2)

    assert_outcomes(Dataset.range(3).flat_map(inner), [*i64(0, 1), Boom(1), *i64(2, 3)])


def test_error_of_the_input_passes_through() -> None:
    ds = failing(Dataset.range(4), 2).flat_map(upto)
    assert_outcomes(ds, [np.int64(0), Boom(2), *i64(0, 1, 2)])


@pytest.mark.parametrize("answer", [3, None, [1, 2], np.arange(3)])
def test_function_must_give_a_dataset(answer: Any) -> None:
    got = outcomes(Dataset.range(2).flat_map(lambda x: answer if x == 0 else Dataset.range(1)))
    assert isinstance(got[0], TypeError)
    assert_same(got[1:], i64(0))


def test_what_cannot_be_called_is_refused_at_the_call() -> None:
    function: Any = 3
    with pytest.raises(TypeError):
        Dataset.range(3).flat_map(function)


def test_reads_the_inner_dataset_only_as_far_as_needed() -> None:
    opened: list[int] = []

    def inner(x: Any) -> Dataset[Any]:
        opened.append(int(x))
        return Dataset.range(2)

    ds = Dataset.range(100).flat_map(inner)
    assert opened == []
    assert_same(to_list(ds.take(3)), i64(0, 1, 0))
    assert opened == [0, 1]


def test_endless_inner_dataset_can_be_left() -> None:
    assert_same(first(Dataset.range(3).flat_map(lambda x: Dataset.range(2).repeat()), 5), i64(0, 1, 0, 1, 0))


@pytest.mark.parametrize("face", ["sync", "async"])
def test_async_generator_is_not_drained_before_the_first_output(face: str) -> None:
    made: list[int] = []

    async def images() -> AsyncIterator[Any]:
        for number in range(1000):
            made.append(number)
            yield np.full(1_000_000, number % 100, dtype=np.uint8)

    ds = Dataset.range(1).flat_map(lambda x: Dataset.from_generator(images))

    async def one() -> Any:
        async with ds.iterate() as iterator:
            return await anext(iterator)

    image = first(ds, 1)[0] if face == "sync" else asyncio.run(one())
    assert_same(image, np.zeros(1_000_000, dtype=np.uint8))
    assert len(made) <= 8


def test_cardinality_is_unknown_even_of_an_endless_input() -> None:
    assert Dataset.range(3).flat_map(upto).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().flat_map(upto).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_it_can_have_a_name() -> None:
    ds = Dataset.range(3).flat_map(Dataset.range, name="parts")
    assert ds.plan.title == "parts"
    assert ds.element_spec is None


@pytest.mark.parametrize("parallel", [None, 2])
def test_an_error_that_ends_the_input_ends_the_run(parallel: int | None) -> None:
    """It is no element's, so nothing behind may leave it out and go on."""
    empty = Dataset.range(9).filter(lambda x: False).shard(2, 1, remainder="drop")
    few = empty.interleave(lambda x: Dataset.range(2), 2, num_parallel_calls=parallel)
    for ds in (few, few.ignore_errors(), empty.flat_map(lambda x: Dataset.range(2)).ignore_errors()):
        with ds.iterate() as iterator, pytest.raises(DataError, match="this shard would be empty"):
            next(iterator)
