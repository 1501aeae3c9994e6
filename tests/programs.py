"""Small pieces that the tests of sources, transforms and sinks share."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import aiodata
from aiodata import Dataset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


class Boom(Exception):
    """What a failing element raises; its argument is the element, as a plain int."""


class Pair(NamedTuple):
    """A named tuple, which functions get as one argument."""

    x: Any
    y: Any


def i64(*values: int) -> list[Any]:
    """Return the values as `np.int64` scalars, as `range` gives them."""
    return [np.int64(value) for value in values]


def arr(values: Any, dtype: Any = np.int64) -> np.ndarray[Any, Any]:
    """Return an array with its dtype written down (int64 if left out)."""
    return np.array(values, dtype=dtype)


def objects(*values: Any) -> np.ndarray[Any, Any]:
    """Return a one-dimensional object array, as batches of `bytes` and `str` are."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def to_list(ds: Dataset[Any]) -> list[Any]:
    """Read the whole dataset through the sync face."""
    with ds.iterate() as iterator:
        return list(iterator)


async def collect(ds: Dataset[Any]) -> list[Any]:
    """Read the whole dataset through the async face."""
    async with ds.iterate() as iterator:
        return [element async for element in iterator]


def first(ds: Dataset[Any], count: int) -> list[Any]:
    """Read `count` elements and leave."""
    with ds.iterate() as iterator:
        return list(islice(iterator, count))


def pull_all(iterator: Iterator[Any], limit: int = 1000) -> list[Any]:
    """Pull to the end, going on after errors; an error is recorded in its place."""
    results: list[Any] = []
    while len(results) < limit:
        try:
            results.append(next(iterator))
        except StopIteration:
            return results
        except Exception as error:
            results.append(error)
    raise AssertionError(f"no end after {limit} pulls, the last ones were {results[-3:]!r}")


async def pull_all_async(iterator: AsyncIterator[Any], limit: int = 1000) -> list[Any]:
    """Do as `pull_all`, through the async face."""
    results: list[Any] = []
    while len(results) < limit:
        try:
            results.append(await anext(iterator))
        except StopAsyncIteration:
            return results
        except Exception as error:
            results.append(error)
    raise AssertionError(f"no end after {limit} pulls, the last ones were {results[-3:]!r}")


def outcomes(ds: Dataset[Any]) -> list[Any]:
    """Return what every pull gave, elements and errors, through the sync face."""
    with ds.iterate() as iterator:
        return pull_all(iterator)


async def outcomes_async(ds: Dataset[Any]) -> list[Any]:
    """Return what every pull gave, elements and errors, through the async face."""
    async with ds.iterate() as iterator:
        return await pull_all_async(iterator)


def same(actual: Any, expected: Any) -> bool:
    """Compare structures exactly: types, dtypes, shapes and values; NaN equals NaN.

    An exception instance in `expected` stands for one of that type and arguments, an exception class for any of its
    instances.
    """
    if isinstance(expected, type) and issubclass(expected, BaseException):
        return isinstance(actual, expected)
    if isinstance(expected, BaseException):
        return type(actual) is type(expected) and actual.args == expected.args
    if type(actual) is not type(expected):
        return False
    if isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(same(actual[key], expected[key]) for key in expected)
    if isinstance(expected, (list, tuple)):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(expected, np.ndarray):
        if actual.dtype != expected.dtype or actual.shape != expected.shape:
            return False
        if expected.dtype == object:
            return all(map(same, actual.ravel().tolist(), expected.ravel().tolist()))
        return np.array_equal(actual, expected, equal_nan=expected.dtype.kind in "fc")
    if isinstance(expected, (float, complex, np.inexact)) and expected != expected:
        return bool(actual != actual)
    return bool(actual == expected)


def assert_same(actual: Any, expected: Any) -> None:
    """Fail, showing both, unless `same`."""
    __tracebackhide__ = True
    assert same(actual, expected), f"\ngot      {actual!r}\nexpected {expected!r}"


def assert_gives(ds: Dataset[Any], expected: list[Any]) -> None:
    """Check every way to read: sync, again, async, two iterators in step, and an early stop."""
    __tracebackhide__ = True
    assert_same(to_list(ds), expected)
    assert_same(to_list(ds), expected)
    assert_same(asyncio.run(collect(ds)), expected)
    with ds.iterate() as one, ds.iterate() as other:
        in_step = [(left, next(other)) for left in one]
    assert_same(in_step, list(zip(expected, expected, strict=True)))
    half = len(expected) // 2
    assert_same(first(ds, half), expected[:half])


def assert_outcomes(ds: Dataset[Any], expected: list[Any]) -> None:
    """Check what every pull gives, errors in their places, on both faces."""
    __tracebackhide__ = True
    assert_same(outcomes(ds), expected)
    assert_same(asyncio.run(outcomes_async(ds)), expected)


def failing(ds: Dataset[Any], *bad: int) -> Dataset[Any]:
    """Raise `Boom(x)` in the place of each element `x` that is in `bad`."""

    def check(x: Any) -> Any:
        if int(x) in bad:
            raise Boom(int(x))
        return x

    return ds.map(check)


def counted(ds: Dataset[Any]) -> tuple[Dataset[Any], list[Any]]:
    """Return the dataset and a list that gets each element which is really computed."""
    seen: list[Any] = []

    def note(x: Any) -> Any:
        seen.append(int(x))
        return x

    return ds.map(note), seen


def nested(count: int) -> Dataset[Any]:
    """Return `count` elements that nest a dict, a tuple and a named tuple."""
    ids = np.arange(count, dtype=np.int32)
    rows = np.arange(count * 2, dtype=np.float32).reshape(count, 2)
    return Dataset.from_tensor_slices({"id": ids, "parts": (rows, Pair(ids % 2 == 0, ids.astype(np.int64)))})


def nested_rows(*ids: int) -> list[Any]:
    """Return the elements of `nested` with these numbers, in this order."""
    return [
        {
            "id": np.int32(i),
            "parts": (arr([2 * i, 2 * i + 1], np.float32), Pair(np.bool_(i % 2 == 0), np.int64(i))),
        }
        for i in ids
    ]


def nested_batch(*ids: int) -> Any:
    """Return the batch of the elements of `nested` with these numbers."""
    rows = arr([[2 * i, 2 * i + 1] for i in ids], np.float32).reshape(len(ids), 2)
    return {"id": arr(ids, np.int32), "parts": (rows, Pair(arr([i % 2 == 0 for i in ids], bool), arr(ids)))}


def plain(value: Any) -> Any:
    """Turn an element into what JSON would hold: lists and Python numbers."""
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def repeated(make: Callable[[], Dataset[Any]], passes: int) -> list[Any]:
    """Return `passes` passes over one dataset object, in plain lists."""
    ds = make()
    return [plain(to_list(ds)) for _ in range(passes)]


@contextmanager
def global_seed(seed: int | None) -> Iterator[None]:
    """Set the global seed for a while; `None` means that none is set."""
    aiodata.set_seed(seed)
    try:
        yield
    finally:
        aiodata.set_seed(None)
