"""Read, save and restore through either face of an iterator; what the tests in this folder share."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeVar

from tests.programs import assert_same

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from aiodata import Dataset

T = TypeVar("T")

FACES = ("sync", "async")
ALL = 1_000_000


def through_json(state: Any) -> Any:
    """Write a state as JSON and read it back, as a checkpoint file would."""
    return json.loads(json.dumps(state, allow_nan=False))


def drive(face: str, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine: on a loop for the async face, with no loop at all for the sync one."""
    if face == "async":
        return asyncio.run(work)
    try:
        work.send(None)
    except StopIteration as finished:
        return finished.value
    raise AssertionError("the sync face had to wait for a loop")


async def pull(iterator: Any, face: str, count: int = ALL) -> list[Any]:
    """Pull up to `count` times; an error stands in its place."""
    found: list[Any] = []
    while len(found) < count:
        try:
            found.append(await anext(iterator) if face == "async" else next(iterator))
        except (StopIteration, StopAsyncIteration):
            return found
        except Exception as error:
            found.append(error)
    assert count < ALL, "the stream has no end"
    return found


async def shut(iterator: Any, face: str) -> None:
    """Close the iterator."""
    if face == "async":
        await iterator.aclose()
    else:
        iterator.close()


async def part(ds: Dataset[Any], face: str, state: Any = None, count: int = ALL) -> tuple[list[Any], Any]:
    """Open the dataset, at a state if there is one, pull up to `count` times, and give that and the state then."""
    iterator = ds.iterate(state)
    try:
        found = await pull(iterator, face, count)
        return found, through_json(iterator.state_dict())
    finally:
        await shut(iterator, face)


async def along(ds: Dataset[Any], face: str, every: int = 1) -> tuple[list[Any], list[Any]]:
    """Read everything; give it with the states before each `every`-th pull and those behind the last element."""
    iterator = ds.iterate()
    found: list[Any] = []
    states: list[Any] = []
    try:
        while True:
            if len(found) % every == 0:
                states.append(through_json(iterator.state_dict()))
            more = await pull(iterator, face, 1)
            if not more:
                states.append(through_json(iterator.state_dict()))
                return found, states
            found += more
    finally:
        await shut(iterator, face)


async def relay(make: Callable[[], Dataset[Any]], face: str, state: Any, leaps: tuple[int, ...]) -> list[Any]:
    """Read on from a state in fresh datasets, each handing over to the next after a leap, the last to the end."""
    joined: list[Any] = []
    for leap in (*leaps, ALL):
        found, state = await part(make(), face, state, leap)
        joined += found
    return joined


def check_rest(what: str, actual: list[Any], expected: list[Any]) -> None:
    """Compare exactly, saying first what was compared."""
    __tracebackhide__ = True
    try:
        assert_same(actual, expected)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from None
