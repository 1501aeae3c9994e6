"""`from_generator`: what a callable's iterable yields, called anew for every pass."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset, TensorSpec
from aiodata.errors import StateError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    first,
    to_list,
)


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


async def numbers_later(count: int) -> AsyncIterator[int]:
    for number in range(count):
        await asyncio.sleep(0)
        yield number


@pytest.mark.parametrize("generator", [numbers, numbers_later, range, lambda count: [*range(count)]])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_gives_what_is_yielded(count: int, generator: Any) -> None:
    assert_gives(Dataset.from_generator(generator, args=(count,)), [*range(count)])


@pytest.mark.parametrize(
    "element",
    [(1, b"x"), {"a": arr([1, 2])}, Pair(1, (2, 3)), "text", np.zeros((0, 2)), arr([1.5], np.float16)],
    ids=repr,
)
def test_elements_pass_unchanged(element: Any) -> None:
    assert_gives(Dataset.from_generator(lambda: [element, element]), [element, element])


def test_any_object_may_be_an_element() -> None:
    thing = object()
    assert to_list(Dataset.from_generator(lambda: [thing]))[0] is thing


def test_is_called_once_for_every_pass_and_not_before_the_first_read() -> None:
    calls: list[int] = []

    def generator() -> list[int]:
        calls.append(1)
        return [1]

    ds = Dataset.from_generator(generator)
    ds.map(lambda x: x).batch(2)
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    iterator = ds.iterate()
    assert calls == []
    assert next(iterator) == 1
    iterator.close()
    assert len(calls) == 1
    to_list(ds)
    assert len(calls) == 2


def test_reads_no_further_than_needed() -> None:
    made: list[int] = []

    def generator() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    ds = Dataset.from_generator(generator)
    assert to_list(ds.take(3)) == [0, 1, 2]
    assert made == [0, 1, 2]


def test_can_be_listed_twice() -> None:
    ds = Dataset.from_generator(lambda: iter([1, 2, 3])).map(lambda x: x + 1).take(2)
    assert list(ds) == [2, 3]
    assert list(ds) == [2, 3]


def test_an_exception_is_an_error_and_then_the_end() -> None:
    def broken() -> Iterator[int]:
        yield 0
        yield 1
        raise Boom(2)

    async def broken_later() -> AsyncIterator[int]:
        yield 0
        yield 1
        raise Boom(2)

    assert_outcomes(Dataset.from_generator(broken), [0, 1, Boom(2)])
    assert_outcomes(Dataset.from_generator(broken_later), [0, 1, Boom(2)])


def test_an_exception_of_the_call_is_an_error_and_then_the_end() -> None:
    def broken() -> list[int]:
        raise Boom(0)

    assert_outcomes(Dataset.from_generator(broken), [Boom(0)])


@pytest.mark.parametrize("generator", [None, 3, [1, 2], iter(())])
def test_what_cannot_be_called_is_refused_at_the_call(generator: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.from_generator(generator)


@pytest.mark.parametrize("answer", [None, 3, object()])
def test_what_cannot_be_iterated_is_an_error_when_read(answer: Any) -> None:
    with pytest.raises(TypeError):
        to_list(Dataset.from_generator(lambda: answer))


class Source:
    """Generators, sync and async, that note when their `finally` ran."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def plain(self) -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            self.ended.set()

    async def later(self) -> AsyncIterator[int]:
        try:
            for number in range(1000):
                yield number
        finally:
            self.ended.set()


FACES = pytest.mark.parametrize("face", ["plain", "later"])


@FACES
def test_generator_is_closed_when_the_pass_ends(face: str) -> None:
    source = Source()
    assert len(to_list(Dataset.from_generator(getattr(source, face)))) == 1000
    assert source.ended.is_set()


@FACES
def test_generator_is_closed_on_leaving_with(face: str) -> None:
    source = Source()
    first(Dataset.from_generator(getattr(source, face)), 2)
    assert source.ended.is_set()


@FACES
async def test_generator_is_closed_on_leaving_async_with(face: str) -> None:
    source = Source()
    async with Dataset.from_generator(getattr(source, face)).iterate() as iterator:
        await anext(iterator)
    assert source.ended.is_set()


@FACES
def test_generator_is_closed_after_a_bare_break(face: str) -> None:
    source = Source()
    for _ in Dataset.from_generator(getattr(source, face)):
        break
    assert source.ended.wait(5)


@FACES
async def test_generator_is_closed_once_the_loop_has_turned_after_a_bare_break(face: str) -> None:
    source = Source()
    async for _ in Dataset.from_generator(getattr(source, face)):
        break
    for _ in range(100):
        await asyncio.sleep(0)
    assert source.ended.is_set()


@FACES
async def test_generator_is_closed_when_the_loop_body_raises(face: str) -> None:
    source = Source()

    async def read() -> None:
        async with Dataset.from_generator(getattr(source, face)).iterate() as iterator:
            async for number in iterator:
                raise Boom(number)

    with pytest.raises(Boom):
        await read()
    assert source.ended.is_set()


@FACES
def test_take_closes_the_generator_at_the_end(face: str) -> None:
    source = Source()
    assert_same(to_list(Dataset.from_generator(getattr(source, face)).take(2)), [0, 1])
    assert source.ended.is_set()


def test_two_iterators_have_a_generator_each() -> None:
    ds = Dataset.from_generator(numbers, args=(5,))
    with ds.iterate() as one, ds.iterate() as other:
        assert [next(one), next(one), next(other), next(one), next(other)] == [0, 1, 0, 2, 1]


async def test_sync_and_async_faces_agree() -> None:
    ds = Dataset.from_generator(numbers, args=(9,)).batch(2)
    assert_same(await collect(ds), [arr([0, 1]), arr([2, 3]), arr([4, 5]), arr([6, 7]), arr([8])])


@pytest.mark.parametrize("later", [False, True])
def test_a_generator_may_fill_the_same_array_again(later: bool) -> None:
    def refill() -> Iterator[Any]:
        buffer = np.zeros(2, np.int64)
        for x in range(3):
            buffer[:] = x
            yield {"x": buffer}

    async def refill_later() -> AsyncIterator[Any]:
        for element in refill():
            yield element

    ds = Dataset.from_generator(refill_later if later else refill).batch(3)
    for expected in (ds, ds.cache(), ds.prefetch(2)):
        assert_same(to_list(expected), [{"x": arr([[0, 0], [1, 1], [2, 2]])}])
    signature = {"x": TensorSpec((2,), np.int64)}
    declared = Dataset.from_generator(refill, output_signature=signature).shuffle(1).batch(3)
    assert_same(to_list(declared), [{"x": arr([[0, 0], [1, 1], [2, 2]])}])


# Generators that save their place


class Drawing:
    """Draws numbers; its place is a generator's state, which is JSON, or an array, which is not."""

    def __init__(self, as_array: bool, later: bool = False) -> None:
        self.place = np.zeros(1, np.int64)
        self.as_array = as_array
        if later:
            self.__class__ = DrawingLater

    def __iter__(self) -> Drawing:
        return self

    def __next__(self) -> int:
        if self.place[0] == 9:
            raise StopIteration
        self.place[0] += 1
        return int(self.place[0] ** 2)

    def state_dict(self) -> Any:
        return {"place": self.place.copy() if self.as_array else int(self.place[0])}

    def load_state_dict(self, state: Any) -> None:
        self.place[:] = state["place"]


class DrawingLater(Drawing):
    __iter__ = None  # type: ignore[assignment]

    def __aiter__(self) -> DrawingLater:
        return self

    async def __anext__(self) -> int:
        try:
            return Drawing.__next__(self)
        except StopIteration:
            raise StopAsyncIteration from None


CODERS: dict[str, Any] = {
    "encode_state": lambda state: state["place"].tolist(),
    "decode_state": lambda saved: {"place": np.array(saved)},
}


@pytest.mark.parametrize("later", [False, True])
def test_a_place_that_is_no_json_is_saved_by_the_users_own_functions(later: bool) -> None:
    ds = Dataset.from_generator(Drawing, args=[True, later], **CODERS)
    with ds.iterate() as iterator:
        for number in range(9):
            state = json.loads(json.dumps(iterator.state_dict()))
            assert list(ds.iterate(state)) == [x * x for x in range(number + 1, 10)]
            next(iterator)


@pytest.mark.parametrize("later", [False, True])
def test_a_place_that_is_no_json_is_refused_with_the_stages_name(later: bool) -> None:
    with Dataset.from_generator(Drawing, args=[True, later]).iterate() as iterator:
        next(iterator)
        message = r"hold the state of from_generator\(Drawing\): .*\['place'\] is of type ndarray.*; encode_state may"
        with pytest.raises(StateError, match=message):
            iterator.state_dict()
        assert len(list(iterator)) == 8, "and nothing else"
    with Dataset.from_generator(Drawing, args=[False, later]).iterate() as iterator:
        next(iterator)
        assert iterator.state_dict()["position"] == [[0, {"place": 0}], 1]


def test_coders_go_together() -> None:
    with pytest.raises(ValueError, match="from_generator: encode_state and decode_state go together"):
        Dataset.from_generator(Drawing, args=[True], encode_state=list)
