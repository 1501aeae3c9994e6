"""`Dataset.from_generator`: what a callable iterates over."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.block import Block, Failure, Tally, counted, pull, resumable
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.engine.skipped import Skipped
from aiodata.engine.source import NeedsCallersLoop, NeedsLoop
from aiodata.functions import check_coders, name_of
from aiodata.sources._signature import conform, signature_of
from aiodata.spec import spec_text
from aiodata.structure import PLAIN, map_structure, normalize
from aiodata.values import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["from_generator"]

LARGEST_BLOCK = 256
_NOWHERE = Origin(lambda: None)
_SCALARS = PLAIN - {np.ndarray}


def from_generator(
    cls: type[Dataset[Any]],
    generator: Callable[..., Any],
    output_types: Any = None,
    output_shapes: Any = None,
    args: Sequence[Any] | None = None,
    output_signature: Any = None,
    name: str | None = None,
    *,
    encode_state: Callable[[Any], Any] | None = None,
    decode_state: Callable[[Any], Any] | None = None,
) -> Dataset[Any]:
    """Give what `generator(*args)` iterates over.

    It is called anew for each iteration, at the first element that is asked for. What it gives may be iterated by
    `for` or by `async for`; it is closed when the iteration ends. An exception ends it.

    Without a signature elements are taken as they are, but arrays are copied, for many generators fill the same one
    again (read-only ones are not); a list becomes a tuple. With one, numbers and array-likes
    become arrays and numpy scalars of the declared dtypes, and `element_spec` is known. An element that does not fit
    is an error in its place, and the next one comes. A list is an array then, not a structure.

    Restoring a state calls the generator again and skips the elements that had been taken, unless what it gives has
    `state_dict()` and `load_state_dict(state)` itself. Then `state_dict` is called before each element, must give an
    object of its own each time, and what it gives is a part of every saved state.

    Args:
        generator: A callable that gives an iterable or async iterable, such as a generator function.
        output_types: A structure of dtypes, instead of `output_signature`.
        output_shapes: The structure of `output_types`, with a shape for each component; None means any.
        args: Arguments for `generator`.
        output_signature: A structure of `TensorSpec`s. `object` takes `bytes`, `str` and other objects unchanged.
        name: A name for the stage, shown in `repr`.
        encode_state: Turns what `state_dict` gave into a JSON value when a state is saved; None where it is one.
        decode_state: Turns it back, for `load_state_dict`. Both are given or none.

    Raises:
        TypeError: `generator` is not callable, or the signature is none. A generator *object* can be read only once,
            so it is refused.
        ValueError: `output_shapes` has another structure than `output_types`; or there is only one of `encode_state`
            and `decode_state`.
        StructureError: While iterating, in place of the element: it has another structure or shape than declared, or
            a value that the dtype cannot hold: a float for an integer, text for a number, an integer out of range.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_generator(lambda n: range(n), args=[3]))
    [0, 1, 2]
    >>> list(aiodata.Dataset.from_generator(lambda: [1, True], output_types="int8"))
    [np.int8(1), np.int8(1)]

    Source: `tf.data.Dataset.from_generator`, which needs a signature, and wraps integers that are out of range.
    """
    if isinstance(generator, (Generator, AsyncGenerator)):
        raise TypeError(
            "from_generator: got a generator object, which can be read only once; "
            "pass the function that makes it, and its arguments as args="
        )
    if not callable(generator):
        raise TypeError(f"from_generator: generator must be callable, not {type(generator).__name__}")
    check_coders(encode_state, decode_state, "from_generator")
    spec = signature_of(output_types, output_shapes, output_signature)
    coroutine = inspect.isasyncgenfunction(generator)
    stage = partial(
        _generate,
        generator=generator,
        arguments=() if args is None else tuple(args),
        convert=_element if spec is None else partial(conform, spec=spec),
        encode_state=encode_state,
        decode_state=decode_state,
    )
    detail = name_of(generator) + ("" if spec is None else f", {spec_text(spec)}")
    plan = Plan(
        "from_generator",
        stage,
        detail=detail,
        waits=coroutine,
        has_coroutines=coroutine,
        spec=lambda: spec,
        title=name,
        contents=None if args is None else tuple(args),
    )
    return cls.of(plan)


async def _generate(
    run: Run,
    *,
    start: Any,
    generator: Callable[..., Any],
    arguments: tuple[Any, ...],
    convert: Callable[[Any], Any],
    encode_state: Callable[[Any], Any] | None,
    decode_state: Callable[[Any], Any] | None,
) -> AsyncIterator[Block[Any]]:
    taken, inner = start or (0, None)
    label = f"from_generator({name_of(generator)})"
    iterable = generator(*arguments)
    if inner is not None:
        iterable.load_state_dict(inner if decode_state is None else decode_state(inner))
    origin = partial(_origin, iterable, encode_state, label)
    if isinstance(iterable, AsyncIterable):
        if run.stepped:
            await _close(iterable)
            raise NeedsLoop
        if run.on_private_loop:
            await _close(iterable)
            raise NeedsCallersLoop
        blocks = _await_each(run, iterable, taken, inner is None, label, convert, origin)
    elif isinstance(iterable, Iterable):
        blocks = _pull_each(iterable, taken, inner is None, label, convert, origin)
    else:
        raise TypeError(f"from_generator: {name_of(generator)} gave {type(iterable).__name__}, which is not iterable")
    try:
        async for block in blocks:
            yield block
    finally:
        await _close(blocks)


def _origin(iterable: Any, encode_state: Callable[[Any], Any] | None, label: str, taken: int) -> Origin:
    if hasattr(iterable, "state_dict") and hasattr(iterable, "load_state_dict"):
        state = iterable.state_dict()
        return Origin(lambda: [taken, as_json(state, encode_state, f"the state of {label}")])
    return Origin(partial(_position, taken))


def _position(taken: int) -> Any:
    return [taken, None]


async def _pull_each(
    iterable: Iterable[Any],
    taken: int,
    skip: bool,
    label: str,
    convert: Callable[[Any], Any],
    origin_of: Callable[[int], Origin],
) -> AsyncIterator[Block[Any]]:
    iterator = iter(iterable)
    try:
        if skip:
            skipped = Skipped(taken)
            if found := pull(iterator, taken):
                skipped.note(len(found), found)
            skipped.check()
        stateful = hasattr(iterable, "state_dict")
        size = 1
        while True:
            tally = Tally()
            origin = origin_of(taken)
            yield Block(origin, rows=counted(_elements(iterator, label, taken, convert), tally, size))
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


def _own(element: Any) -> Any:
    """Copy the arrays of an element that the generator could still change: many fill the same one again."""
    return map_structure(_copy_of, element) if element.__class__ not in _SCALARS else element


def _copy_of(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) and leaf.flags.writeable else leaf


def _elements(iterator: Iterator[Any], label: str, taken: int, convert: Callable[[Any], Any]) -> Iterator[Any]:
    done = 0
    plain = _SCALARS if convert is _element else ()

    def taking() -> Iterator[Any]:
        nonlocal done
        try:
            for value in iterator:
                element = value if value.__class__ in plain else _own(convert(value))
                done += 1
                yield element
        except Exception as error:
            done += 1
            locate(error, label, taken + done - 1, _NOWHERE, 0)
            raise

    return resumable(taking)


async def _await_each(
    run: Run,
    iterable: AsyncIterable[Any],
    taken: int,
    skip: bool,
    label: str,
    convert: Callable[[Any], Any],
    origin_of: Callable[[int], Origin],
) -> AsyncIterator[Block[Any]]:
    iterator = aiter(iterable)
    try:
        if skip:
            await _skip(iterator, taken)
        while True:
            origin = origin_of(taken)
            given = False
            try:
                element = await anext(iterator)
                given = True
                block: Block[Any] = Block(origin, computed=[_own(convert(element))])
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
            skipped.note(1, [Failure(error)])
    skipped.check()


async def _close(iterator: Any) -> None:
    """Close a generator, sync or async; other iterators have nothing to close."""
    if hasattr(iterator, "aclose"):
        await iterator.aclose()
    elif hasattr(iterator, "close") and inspect.isgenerator(iterator):
        iterator.close()
