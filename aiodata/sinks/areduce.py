"""`areduce`: one value from all elements, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.functions import as_error, check_callable, is_coroutine_function
from aiodata.structure import normalize

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["areduce"]

S = TypeVar("S")


async def areduce(
    self: Dataset[Any], initial_state: S, reduce_func: Callable[[S, Any], Any], name: str | None = None
) -> S:
    """Combine all elements into one value, on the running loop; as `reduce`, but `reduce_func` may be `async def`.

    Args:
        initial_state: The value for no elements.
        reduce_func: Gives the next value from the value so far and an element; a tuple element is one argument.
        name: As for `reduce`.

    Returns:
        The last value.

    Raises:
        TypeError: `reduce_func` is not callable.
        Exception: An element's error, or `reduce_func`'s; it ends the reduction.

    >>> import aiodata, asyncio
    >>> int(asyncio.run(aiodata.Dataset.range(5).areduce(0, lambda total, x: total + x)))
    10
    """
    check_callable(reduce_func, "areduce", "reduce_func")
    state: Any = initial_state
    coroutine = is_coroutine_function(reduce_func)
    async with self.iterate() as iterator:
        async for element in iterator:
            try:
                result = reduce_func(state, element)
            except StopIteration as error:
                raise as_error(error) from error
            state = normalize(await result if coroutine else result)
    last: S = state
    return last
