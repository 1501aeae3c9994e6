"""`Dataset.from_generator`: what a callable iterates over."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Failure, Skipped, Tally, counted, pull, resumable
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.engine.source import NeedsCallersLoop, NeedsLoop
from aiodata.functions import name_of
from aiodata.structure import PLAIN, normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["from_generator"]

LARGEST_BLOCK = 256
_NOWHERE = Origin(lambda: None)


def from_generator(cls: type[Dataset[Any]], generator: Callable[..., Any], *, args: Sequence[Any] = ()) -> Dataset[Any]:
    """Give what `generator(*args)` iterates over.

    It is called anew for each iteration, at the first element that is asked for. What it gives may be iterated by
    `for` or by `async for`; it is closed when the iteration ends. Elements are taken as they are; a list becomes a
    tuple. An exception ends it.

    Restoring a state calls it again and skips the elements that had been taken, unless what it gives has
    `state_dict()` and `load_state_dict(state)` itself.

    Args:
        generator: A callable that gives an iterable or async iterable, such as a generator function.
        args: Arguments for it.

    Raises:
        TypeError: `generator` is not callable. A generator *object* can be read only once, so it is refused.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_generator(lambda n: range(n), args=[3]))
    [0, 1, 2]

    Source: `tf.data.Dataset.from_generator`; no signature is needed, and values are not converted to one.
    """
    if isinstance(generator, (Generator, AsyncGenerator)):
        raise TypeError(
            "from_generator: got a generator object, which can be read only once; "
            "pass the function that makes it, and its arguments as args="
        )
    if not callable(generator):
        raise TypeError(f"from_generator: generator must be callable, not {type(generator).__name__}")
    coroutine = inspect.isasyncgenfunction(generator)
    stage = partial(_generate, generator=generator, arguments=tuple(args))
    plan = Plan("from_generator", stage, detail=name_of(generator), waits=coroutine, has_coroutines=coroutine)
    return cls(plan)


async def _generate(
    run: Run, *, start: Any, generator: Callable[..., Any], arguments: tuple[Any, ...]
) -> AsyncIterator[Block[Any]]:
    taken, inner = start or (0, None)
    label = f"from_generator({name_of(generator)})"
    iterable = generator(*arguments)
    if inner is not None:
        iterable.load_state_dict(inner)
    if isinstance(iterable, AsyncIterable):
        if run.stepped:
            await _close(iterable)
            raise NeedsLoop
        if run.on_private_loop:
            await _close(iterable)
            raise NeedsCallersLoop
        blocks = _await_each(run, iterable, taken, inner is None, label)
    elif isinstance(iterable, Iterable):
        blocks = _pull_each(iterable, taken, inner is None, label)
    else:
        raise TypeError(f"from_generator: {name_of(generator)} gave {type(iterable).__name__}, which is not iterable")
    try:
        async for block in blocks:
            yield block
    finally:
        await _close(blocks)


def _origin(iterable: Any, taken: int) -> Origin:
    if hasattr(iterable, "state_dict") and hasattr(iterable, "load_state_dict"):
        state = iterable.state_dict()
        return Origin(lambda: [taken, state])
    return Origin(partial(_position, taken))


def _position(taken: int) -> Any:
    return [taken, None]


async def _pull_each(iterable: Iterable[Any], taken: int, skip: bool, label: str) -> AsyncIterator[Block[Any]]:
    iterator = iter(iterable)
    try:
        if skip:
            skipped = Skipped(taken)
            if found := pull(iterator, taken):
                skipped.note(len(found), found[-1])
            skipped.check()
        stateful = hasattr(iterable, "state_dict")
        size = 1
        while True:
            tally = Tally()
            origin = _origin(iterable, taken)
            yield Block(origin, rows=counted(_elements(iterator, label, taken), tally, size))
            taken += tally.count
            if tally.count < size:
                return
            size = 1 if stateful else min(2 * size, LARGEST_BLOCK)
    finally:
        await _close(iterator)


def _element(value: Any) -> Any:
    if value is None:
        raise TypeError("the generator gave None instead of an element")
    return normalize(value)


def _elements(iterator: Iterator[Any], label: str, taken: int) -> Iterator[Any]:
    done = 0

    def taking() -> Iterator[Any]:
        nonlocal done
        try:
            for value in iterator:
                element = value if value.__class__ in PLAIN else _element(value)
                done += 1
                yield element
        except Exception as error:
            done += 1
            locate(error, label, taken + done - 1, _NOWHERE, 0)
            raise

    return resumable(taking)


async def _await_each(
    run: Run, iterable: AsyncIterable[Any], taken: int, skip: bool, label: str
) -> AsyncIterator[Block[Any]]:
    iterator = aiter(iterable)
    try:
        if skip:
            await _skip(iterator, taken)
        while True:
            origin = _origin(iterable, taken)
            given = False
            try:
                element = await anext(iterator)
                given = True
                block: Block[Any] = Block(origin, computed=[_element(element)])
            except StopAsyncIteration:
                return
            except Exception as error:
                locate(error, label, taken, origin, 0)
                block = Block.failed(error, origin)
            yield block
            taken += 1
            if not given and inspect.isasyncgen(iterator):
                return
            await run.breathe()
    finally:
        await _close(iterator)


async def _skip(iterator: AsyncIterator[Any], count: int) -> None:
    skipped = Skipped(count)
    while skipped.missing:
        try:
            await anext(iterator)
            skipped.note(1)
        except StopAsyncIteration:
            break
        except Exception as error:  # it may have been given before; the iterator may go on behind it
            skipped.note(1, Failure(error))
    skipped.check()


async def _close(iterator: Any) -> None:
    """Close a generator, sync or async; other iterators have nothing to close."""
    if hasattr(iterator, "aclose"):
        await iterator.aclose()
    elif hasattr(iterator, "close") and inspect.isgenerator(iterator):
        iterator.close()
