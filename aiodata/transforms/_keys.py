"""Keys of elements, by which `group_by_window` and `group_by_reducer` sort them into groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.block import Block, Tally, resumable
from aiodata.engine.position import locate
from aiodata.functions import as_error, check_callable, is_coroutine_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["as_key", "check_plain", "integer", "keyed"]


def check_plain(function: Any, method: str, argument: str) -> None:
    """Refuse an argument that is not a plain function.

    Raises:
        TypeError: It is not callable, or a coroutine function.
    """
    check_callable(function, method, argument)
    if is_coroutine_function(function):
        raise TypeError(f"{method}: {argument} must be a plain function; await before it, in a map")


def integer(value: Any, function: str) -> int:
    """Give the integer that a user's function gave.

    Raises:
        TypeError: It is something else than a Python or numpy integer; a bool is something else.
    """
    if value.__class__ is np.int64 or (isinstance(value, int) and not isinstance(value, bool)):
        return int(value)
    if isinstance(value, (np.integer, np.ndarray)) and value.shape == () and value.dtype.kind in "iu":
        return int(value)
    raise TypeError(f"{function} must give an integer, not {type(value).__name__}: {value!r:.80}")


def as_key(key: int) -> Any:
    """Give a key as functions get it: an int64; a Python integer where it is too large for that."""
    return np.int64(key) if -(2**63) <= key < 2**63 else key


def keyed(block: Block[Any], key_func: Callable[..., Any], label: str, read: Tally) -> Iterator[tuple[int, Any]]:
    """Iterate over a block's elements with their keys, lazily.

    Args:
        block: Its rows are pulled one at a time.
        key_func: The user's function, called as `map` calls its function.
        label: The stage's label, for the note that an error gets.
        read: Number of the block's first element in the stage's input; grows with each pull, those that fail too.
    """
    rows = block.rows()
    origin, ahead = block.origin, block.offset - read.count

    def pairing() -> Iterator[tuple[int, Any]]:
        pulled = False
        try:
            for element in rows:
                pulled = True
                read.count += 1
                try:
                    key = key_func(*element) if element.__class__ is tuple else key_func(element)
                    if key.__class__ is not int:
                        key = integer(key, "key_func")
                except Exception as error:
                    failure = as_error(error)
                    locate(failure, label, read.count - 1, origin, ahead + read.count - 1)
                    try:
                        raise failure
                    finally:
                        del failure  # else it and this frame, which its traceback holds, would be a cycle
                yield key, element
                pulled = False
        except Exception:
            read.count += not pulled
            raise

    return resumable(pairing)
