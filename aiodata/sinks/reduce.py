"""`reduce`: one value from all elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.functions import as_error, check_callable, is_coroutine_function
from aiodata.structure import normalize

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["reduce"]

S = TypeVar("S")


def reduce(self: Dataset[Any], initial_state: S, reduce_func: Callable[[S, Any], Any], name: str | None = None) -> S:
    """Combine all elements into one value, blocking until it is there; `areduce` is the same to be awaited.

    Args:
        initial_state: The value for no elements.
        reduce_func: Gives the next value from the value so far and an element; a tuple element is one argument.
        name: Accepted as in tf.data; there is no stage that it could name.

    Returns:
        The last value.

    Raises:
        TypeError: `reduce_func` is not a plain function.
        Exception: An element's error, or `reduce_func`'s; it ends the reduction.

    >>> import aiodata
    >>> int(aiodata.Dataset.range(5).reduce(0, lambda total, x: total + x))
    10

    Source: `tf.data.Dataset.reduce`.
    """
    check_callable(reduce_func, "reduce", "reduce_func")
    if is_coroutine_function(reduce_func):
        raise TypeError("reduce: reduce_func must be a plain function; await areduce() for a coroutine")
    state: Any = initial_state
    with self.iterate() as iterator:
        for element in iterator:
            try:
                state = normalize(reduce_func(state, element))
            except StopIteration as error:
                raise as_error(error) from error
    last: S = state
    return last
