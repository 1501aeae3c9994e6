"""How the user's functions are called: what they get, what may come back, and how their errors are marked."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Tally, resumable
from aiodata.engine.position import locate
from aiodata.structure import PLAIN, normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiodata.engine.block import Block

__all__ = ["applied", "as_error", "call", "check_callable", "check_coders", "is_coroutine_function", "name_of"]


def name_of(function: Callable[..., Any]) -> str:
    """Name a function as an error message should: its qualified name without the places it was defined in."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name).rsplit("<locals>.", maxsplit=1)[-1]


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Tell whether calling `function` gives a coroutine; looks through partials and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def check_callable(function: object, method: str, argument: str) -> None:
    """Refuse an argument that is not callable.

    Raises:
        TypeError: It names the method, the argument and what was given.
    """
    if not callable(function):
        raise TypeError(f"{method}: {argument} must be callable, not {type(function).__name__}")


def check_coders(encode_state: object, decode_state: object, method: str) -> None:
    """Refuse what are not the two functions that a user's own state is saved and restored by, nor both None.

    Raises:
        TypeError: One of them is not callable.
        ValueError: There is only one.
    """
    if (encode_state is None) != (decode_state is None):
        raise ValueError(f"{method}: encode_state and decode_state go together; give both, or none")
    if encode_state is not None:
        check_callable(encode_state, method, "encode_state")
        check_callable(decode_state, method, "decode_state")


def call(function: Callable[..., Any], element: Any) -> Any:
    """Call `function` on an element: a plain tuple is unpacked into arguments, anything else is one argument."""
    return function(*element) if element.__class__ is tuple else function(element)


def as_error(error: Exception) -> Exception:
    """Turn an exception that ends an iteration into one that does not: a mistake must not look like an end."""
    if isinstance(error, (StopIteration, StopAsyncIteration)):
        described = RuntimeError(f"the function raised {type(error).__name__}")
        described.__cause__ = error
        return described
    return error


def applied(
    function: Callable[..., Any],
    block: Block[Any],
    label: str,
    index: Tally,
) -> Iterator[Any]:
    """Apply a plain function lazily to each element of a block.

    Args:
        function: The user's function.
        block: Its rows are pulled one at a time.
        label: The stage's label, for the note that an error gets.
        index: Number of the block's first element in the stage's input; grows by the number of elements.
    """
    rows = block.rows()
    origin = block.origin
    done = 0
    all_plain = PLAIN.issuperset

    def applying() -> Iterator[Any]:
        nonlocal done
        number = done
        plain: type | None = None  # the type of the last result, if it needs nothing done
        try:
            for element in rows:
                try:
                    result = function(*element) if element.__class__ is tuple else function(element)
                    if result.__class__ is not plain:
                        if result.__class__ in PLAIN:
                            plain = result.__class__
                        elif result.__class__ is not tuple or not all_plain(map(type, result)):
                            result = normalize(result)
                except Exception as error:
                    failure = as_error(error)
                    locate(failure, label, index.count + number - done, origin, block.offset + number)
                    try:
                        raise failure
                    finally:
                        del failure  # else it and this frame, which its traceback holds, would be a cycle
                number += 1
                yield result
        except Exception:
            number += 1
            raise
        finally:
            index.count += number - done
            done = number

    return resumable(applying)
