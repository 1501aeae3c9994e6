"""The calls of `random_map`, each with a generator of its own; they are made wherever `map` makes its calls.

A module of its own, for `numpy.random` should be imported only where it is used.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator, Philox
from numpy.random.bit_generator import ISeedSequence

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["awaited", "called"]


def called(function: Callable[..., Any], pair: tuple[int, int], number: int, element: Any) -> Any:
    """Call a function on an element, as `map` does, with the generator of its number."""
    rng = Generator(Philox(_key(pair), counter=[0, 0, 0, number]))
    return function(*element, rng) if element.__class__ is tuple else function(element, rng)


async def awaited(function: Callable[..., Any], pair: tuple[int, int], number: int, element: Any) -> Any:
    """Do as `called` with a coroutine function."""
    return await called(function, pair, number, element)


class _Key(ISeedSequence):
    """Hands a key to `Philox` as it is: a quarter of what `Philox(key=...)` takes, which asks for entropy first."""

    def __init__(self, pair: tuple[int, int]) -> None:
        self.key = np.array(pair, np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Give the two words of 64 bits that are asked for."""
        return self.key


@lru_cache(64)
def _key(pair: tuple[int, int]) -> Any:
    return _Key(pair)
