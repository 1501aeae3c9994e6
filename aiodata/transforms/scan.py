"""`scan`: apply a function that carries a state from element to element."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.columns import freeze
from aiodata.conversion import as_element
from aiodata.engine.block import Block, resumable
from aiodata.engine.position import locate
from aiodata.errors import StateError, StructureError
from aiodata.functions import as_error, check_callable, check_coders, is_coroutine_function, name_of
from aiodata.spec import TensorSpec, generalized, spec_of, spec_text
from aiodata.structure import PLAIN, normalize, unshared
from aiodata.values import as_json, decode, encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["scan"]

_DTYPES = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(float), complex: np.dtype(complex)}
_FROZEN = PLAIN - {np.ndarray}
"""Types of what nothing can change."""


def scan(
    self: Dataset[Any],
    initial_state: Any,
    scan_func: Callable[[Any, Any], Any],
    name: str | None = None,
    *,
    encode_state: Callable[[Any], Any] | None = None,
    decode_state: Callable[[Any], Any] | None = None,
) -> Dataset[Any]:
    """Apply a function to every element and to a state, which it hands on to the next element.

    Every iteration, and every epoch of a later `repeat`, begins with `initial_state`. A step that fails takes its
    element's place and leaves the state as it was. Arrays of the state are marked read-only, also one that is at the
    same time the output or the element, so that nothing changes a state that has been handed on.

    A saved state holds the scan's own one exactly, and is as large: numbers, text, None, numpy scalars and arrays (as
    4 bytes for 3), and structures of them. With other objects in it, only asking for a saved state is an error, unless
    `encode_state` and `decode_state` are given. Then the state may also be an object that `scan_func` changes in place.

    Args:
        initial_state: The state for the first element. Arrays are copied, a list becomes an array.
        scan_func: A plain function `(state, element) -> (next state, output)`; a tuple element is one argument. The
            next state must have the structure and dtypes of the initial one (a Python int goes with int64, a float
            with float64); shapes may change. A list in the place of a state or an output becomes an array.
        name: A name for the stage, shown in `repr`.
        encode_state: Turns a state into a JSON value. It is called for each block of elements, some hundred of them or
            fewer, whether or not a state is saved.
        decode_state: Makes a new state of what `encode_state` gave. Both are given or none.

    Returns:
        A dataset of the outputs, as many as there are elements.

    Raises:
        TypeError: `scan_func` is not a plain function (at the call), or does not give a pair (while iterating).
        ValueError: There is only one of `encode_state` and `decode_state`.
        StateError: `encode_state` fails at the initial state, or gives no JSON value.
        StructureError: While iterating, in place of the element: the next state has another structure or dtype.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(1, 5).scan(0, lambda total, x: (total + x, total + x))]
    [1, 3, 6, 10]

    Source: `tf.data.Dataset.scan`; Python numbers follow numpy (int64, float64), not TensorFlow.
    """
    check_callable(scan_func, "scan", "scan_func")
    if is_coroutine_function(scan_func):
        raise TypeError("scan: scan_func must be a plain function, not a coroutine function")
    check_coders(encode_state, decode_state, "scan")
    initial = as_element(initial_state)
    label = f"scan({name_of(scan_func)})"
    coder: _Values | _Coder = _Values(initial, label)
    if encode_state is not None and decode_state is not None:
        coder = _Coder(initial, label, encode_state, decode_state)
    plain = isinstance(initial, (tuple, dict, np.ndarray))
    detail = f"{spec_text(spec_of(initial)) if plain else _shown(initial)}, {name_of(scan_func)}"
    stage = partial(_scan, coder=coder, spec=spec_of(initial), function=scan_func, label=label)
    return self.then("scan", stage, detail=detail, count=lambda count: count, title=name, contents=coder.contents)


def _shown(state: Any) -> str:
    """Show a state without its place in memory, which is another one each time."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(state))[:40]


class _Values:
    """How a state of plain values is saved: it is kept as it is, for what has been handed on does not change."""

    def __init__(self, initial: Any, label: str) -> None:
        self.initial = self.contents = initial
        self.owner = f"the state of {label}"

    def first(self) -> Any:
        return self.initial

    def kept(self, state: Any) -> Callable[[], Any]:
        """Give what gives the state as JSON later on."""
        return partial(encode, state, self.owner)

    def restored(self, saved: Any) -> Any:
        return freeze(decode(saved, like=self.initial))


class _Coder:
    """How a state is saved by the user's own functions: at once, as the object may be changed later."""

    def __init__(
        self, initial: Any, label: str, encode_state: Callable[[Any], Any], decode_state: Callable[[Any], Any]
    ) -> None:
        self.encode_state = encode_state
        self.restored = decode_state
        self.owner = f"the state of {label}"
        self.contents = as_json(initial, encode_state, self.owner)

    def first(self) -> Any:
        return self.restored(self.contents)

    def kept(self, state: Any) -> Callable[[], Any]:
        """Give what gives the state as JSON later on; a failure is raised then."""
        try:
            saved = as_json(state, self.encode_state, self.owner)
        except StateError as error:
            return partial(_refuse, str(error))
        return lambda: saved


def _refuse(message: str) -> Any:
    raise StateError(message)


def _scan(
    run: Run,
    source: Source,
    *,
    start: Any,
    coder: _Values | _Coder,
    spec: Any,
    function: Callable[[Any, Any], Any],
    label: str,
) -> AsyncIterator[Block[Any]]:
    saved, cursor = start or (None, None)
    state = coder.first() if start is None else coder.restored(saved)
    run.inline.append(label)
    return _Scan(spec, state, coder, function, label).blocks(source.open(cursor))


class _Scan:
    """The state between two elements."""

    def __init__(
        self, spec: Any, state: Any, coder: _Values | _Coder, function: Callable[[Any, Any], Any], label: str
    ) -> None:
        self.spec = spec
        self.state = state
        self.coder = coder
        self.function = function
        self.label = label
        self.number = 0

    async def blocks(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        async for block in blocks:
            position = partial(_position, self.coder.kept(self.state), block.here())
            origin = block.origin.within(position, block.offset)
            yield Block(origin, rows=self._outputs(block), length=block.length)

    def _outputs(self, block: Block[Any]) -> Iterator[Any]:
        rows, function = block.rows(), self.function
        origin, offset = block.origin, block.offset
        done = 0

        def stepping() -> Iterator[Any]:
            nonlocal done
            number = done
            try:
                for element in rows:
                    try:
                        self.state, output = self._settled(function(unshared(self.state), element))
                    except Exception as error:
                        failure = as_error(error)
                        locate(failure, self.label, self.number + number - done, origin, offset + number)
                        try:
                            raise failure
                        finally:
                            del failure  # else it and this frame, which its traceback holds, would be a cycle
                    number += 1
                    yield output
            except Exception:
                number += 1
                raise
            finally:
                self.number += number - done
                done = number

        return resumable(stepping)

    def _settled(self, result: Any) -> tuple[Any, Any]:
        """Check what the function gave; give the next state and the output."""
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(f"scan_func must give a pair (state, output), not {type(result).__name__}: {result!r:.80}")
        if result[1] is None:
            raise TypeError("scan_func gave None as the output")
        state, output = normalize(tuple(result))
        if state is not self.state:
            if not _is_like(self.spec, state):
                try:
                    generalized(self.spec, spec_of(state))
                except TypeError as error:
                    raise StructureError(f"scan_func must give a state like the initial one: {error}") from None
            if state.__class__ not in _FROZEN:
                freeze(state)
        return state, output


def _is_like(spec: Any, state: Any) -> bool:
    """Tell quickly whether a state has the structure and dtypes of a spec; False where it takes a closer look."""
    if spec.__class__ is TensorSpec:
        kind = state.__class__
        dtype = state.dtype if kind is np.ndarray or issubclass(kind, np.generic) else _DTYPES.get(kind)
        return dtype is not None and bool(dtype == spec.dtype)
    if spec.__class__ is not state.__class__ or len(spec) != len(state):
        return False
    if isinstance(spec, dict):
        return spec.keys() == state.keys() and all(_is_like(part, state[key]) for key, part in spec.items())
    return isinstance(spec, tuple) and all(map(_is_like, spec, state))


def _position(state: Callable[[], Any], cursor: Callable[[], Any]) -> Any:
    return [state(), cursor()]
