"""`DatasetIterator`: tf.data's names for pulling, on both faces; state, endings and faces have their own tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aiodata import Dataset, DatasetIterator, Optional, TensorSpec
from aiodata.errors import DataError, OutOfRangeError
from tests.programs import Boom, arr, assert_same, failing, i64, nested, nested_rows


async def optionals(iterator: DatasetIterator[Any], asynchronous: bool, count: int) -> list[Any]:
    """Return what `count` pulls gave: an optional, or an error."""
    found: list[Any] = []
    for _ in range(count):
        try:
            if asynchronous:
                found.append(await iterator.aget_next_as_optional())
            else:
                found.append(iterator.get_next_as_optional())
        except Exception as error:
            found.append(error)
    return found


async def pulled(iterator: DatasetIterator[Any], asynchronous: bool, count: int) -> list[Any]:
    """Return what `count` pulls gave: an element, or an error."""
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append(await iterator.aget_next() if asynchronous else iterator.get_next())
        except Exception as error:
            found.append(error)
    return found


either_face = pytest.mark.parametrize("asynchronous", [False, True])


@either_face
@pytest.mark.parametrize("size", [0, 1, 2, 70])
async def test_get_next_gives_the_elements_and_then_says_that_it_is_the_end(size: int, asynchronous: bool) -> None:
    iterator = Dataset.range(size).iterate()
    found = await pulled(iterator, asynchronous, size + 3)
    assert_same(found, [*i64(*range(size)), OutOfRangeError, OutOfRangeError, OutOfRangeError])
    assert str(found[-1]) == "the dataset has no more elements"


@either_face
@pytest.mark.parametrize("size", [0, 1, 2, 70])
async def test_optionals_are_empty_from_the_end_on(size: int, asynchronous: bool) -> None:
    found = await optionals(nested(size).iterate(), asynchronous, size + 2)
    assert [optional.has_value() for optional in found] == [True] * size + [False] * 2
    assert_same([optional.get_value() for optional in found[:size]], nested_rows(*range(size)))
    assert all(optional.element_spec == nested(1).element_spec for optional in found)


@either_face
@pytest.mark.parametrize("how", [pulled, optionals])
async def test_an_error_takes_its_elements_place(how: Callable[..., Any], asynchronous: bool) -> None:
    found = await how(failing(Dataset.range(4), 1, 3).iterate(), asynchronous, 5)
    assert_same(found[1::2], [Boom(1), Boom(3)])
    assert all("map(check)" in error.__notes__[0] for error in found[1::2])
    assert [isinstance(each, Exception) for each in found[:4:2]] == [False, False]


@either_face
async def test_an_end_that_an_element_reports_is_not_taken_for_the_end(asynchronous: bool) -> None:
    ended = Dataset.range(0).iterate()

    def misuse(x: Any) -> Any:
        return ended.get_next() if x == 1 else x

    ds = Dataset.range(3).map(misuse)
    found = await pulled(ds.iterate(), asynchronous, 4)
    assert_same(found, [np.int64(0), RuntimeError("an element raised OutOfRangeError"), np.int64(2), OutOfRangeError])
    assert isinstance(found[1].__cause__, OutOfRangeError)
    found = await optionals(ds.iterate(), asynchronous, 4)
    assert isinstance(found[1], OutOfRangeError)
    assert not found[3].has_value()


async def test_mixes_with_the_other_ways_to_pull() -> None:
    with Dataset.range(5).iterate() as iterator:
        assert_same([next(iterator), iterator.get_next(), iterator.get_next_as_optional().get_value()], i64(0, 1, 2))
        assert_same(list(iterator), i64(3, 4))
        assert iterator.get_next_as_optional().has_value() is False
    async with Dataset.range(5).iterate() as iterator:
        assert_same([await anext(iterator), await iterator.aget_next()], i64(0, 1))
        assert_same((await iterator.aget_next_as_optional()).get_value(), np.int64(2))
        assert_same([element async for element in iterator], i64(3, 4))
        with pytest.raises(OutOfRangeError):
            await iterator.aget_next()


def test_states_know_what_has_been_pulled() -> None:
    ds = Dataset.range(5).map(lambda x: x + 1)
    with ds.iterate() as iterator:
        iterator.get_next()
        iterator.get_next_as_optional()
        state = iterator.state_dict()
    with ds.iterate(state) as iterator:
        assert_same(iterator.get_next(), np.int64(3))


def test_the_end_is_no_fault_of_the_data_and_no_loop_takes_it_for_its_own() -> None:
    assert issubclass(OutOfRangeError, EOFError)
    assert not issubclass(OutOfRangeError, (DataError, StopIteration, StopAsyncIteration, LookupError))


def test_knows_the_spec_of_the_elements() -> None:
    assert Dataset.range(3).batch(2).iterate().element_spec == TensorSpec((None,), np.int64)
    unknown = Dataset.range(3).map(lambda x: np.full(2, x))
    with unknown.iterate() as iterator:
        assert iterator.element_spec is None
        assert iterator.get_next_as_optional().element_spec == TensorSpec((2,), np.int64)
        assert_same(list(iterator), [arr([1, 1]), arr([2, 2])])
        assert iterator.get_next_as_optional().element_spec is None
    unknown.peek_sync()
    assert unknown.iterate().element_spec == TensorSpec((2,), np.int64)


def test_dataset_gives_such_iterators() -> None:
    ds = Dataset.range(1)
    for iterator in (iter(ds), aiter(ds), ds.iterate()):
        assert type(iterator) is DatasetIterator
        assert iter(iterator) is iterator is aiter(iterator)
    assert isinstance(ds.iterate().get_next_as_optional(), Optional)
