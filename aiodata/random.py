"""Seeds, and the pairs that name the random streams, as tf.data makes them.

Everything random comes from streams of 32-bit words (`aiodata.philox`), each named by a seed pair.
"""

from __future__ import annotations

import operator
import os
import random
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from aiodata.philox import WordStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["PairSource", "Seeds", "get_inner_seed", "get_seed", "implicit_seeds", "seeded", "set_seed"]

_MAX31 = 2**31 - 1
_DEFAULT_GLOBAL = 87654321
_FRESH = 1 << 62
"""Set in both halves of a pair that no seed has made; the halves of the others have 31 bits, so they can be told."""

_global: tuple[int, random.Random] | None = None
_counted: ContextVar[tuple[int, Iterator[int]] | None] = ContextVar("_counted", default=None)


def set_seed(seed: int | None) -> None:
    """Set the global seed and start the implicit op seeds anew.

    Args:
        seed: Any integer, or None to go back to having no global seed.

    Raises:
        TypeError: The seed is not an integer.
    """
    global _global
    if seed is None:
        _global = None
        return
    value = int(operator.index(seed))
    _global = (value, random.Random(value))


@contextmanager
def implicit_seeds(seed: int) -> Iterator[None]:
    """Count the implicit op seeds from 0 within, beside `seed` for the global one, which is left as it is.

    tf.data does so in the functions that make datasets. A function that is called again makes the same ones then.
    """
    token = _counted.set((seed, count()))
    try:
        yield
    finally:
        _counted.reset(token)


def get_seed(op_seed: int | None) -> tuple[int, int]:
    """Combine the global seed and a node's own seed into the pair that names its stream.

    Args:
        op_seed: The node's seed, or None to take the next implicit one (without a global seed: fresh entropy).

    Returns:
        The pair (seed, seed2), neither negative.

    Raises:
        TypeError: The seed is not an integer.
    """
    own = None if op_seed is None else int(operator.index(op_seed))
    state, counted = _global, _counted.get()
    if own is None and counted is not None:
        seed, own = counted[0], next(counted[1])
    elif state is None:
        if own is None:
            return _fresh(), _fresh()
        seed = _DEFAULT_GLOBAL
    else:
        seed = state[0]
        if own is None:
            own = state[1].randint(0, _MAX31)
    pair = (seed % _MAX31, own % _MAX31)
    return pair if pair != (0, 0) else (0, _MAX31)


def seeded(function: Callable[..., Any], seed: int | None = None) -> Callable[..., Any]:
    """Give a function that makes datasets, with tf.data's seeds for the random nodes without one that it makes.

    There the function is traced once: their implicit op seeds are counted from 0, beside the global seed at that time,
    and none is taken from those of the nodes outside. Without a global seed it is handed back as it is.

    Args:
        function: The function.
        seed: What to take for the global seed; None takes the one that is set.
    """
    counted = _counted.get()
    if seed is None:
        seed = counted[0] if counted is not None else _global[0] if _global is not None else None
    return function if seed is None else partial(_counting, seed, function)


def _counting(seed: int, function: Callable[..., Any], *arguments: Any) -> Any:
    with implicit_seeds(seed):
        return function(*arguments)


def get_inner_seed(op_seed: int | None) -> tuple[int, int]:
    """Do as `get_seed` for the first random node of a function that belongs to a stage.

    In a function tf.data counts the implicit op seeds from 0, so none is taken from those of the nodes outside.
    """
    counted = _counted.get()
    seed = counted[0] if counted is not None else _global[0] if _global is not None else None
    if op_seed is not None or seed is None:
        return get_seed(op_seed)
    with implicit_seeds(seed):
        return get_seed(None)


def _fresh() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1 | _FRESH


class PairSource:
    """The source of a shuffle node's seed pairs, one for each epoch.

    Args:
        seed: First half of the node's own pair.
        seed2: Second half.
        reshuffle: Whether each draw gives a new pair; if not, every draw gives the node's own.

    Attributes:
        seeds: The node's own pair; may be set.
        drawn: Number of pairs drawn so far; may be set, to go on from there.
        reshuffle: As given.
    """

    __slots__ = ("__weakref__", "drawn", "reshuffle", "seeds")

    def __init__(self, seed: int, seed2: int, reshuffle: bool) -> None:
        self.seeds = (seed, seed2)
        self.drawn = 0
        self.reshuffle = reshuffle

    @property
    def seeded(self) -> bool:
        """Whether the node's own pair is the same in every process."""
        return self.seeds[0] < _FRESH

    def draw(self) -> tuple[int, int]:
        """Draw the next pair."""
        self.drawn += 1
        return self.pair(self.drawn)

    def pair(self, number: int) -> tuple[int, int]:
        """Give the pair that draw number `number`, from 1, gives."""
        if not self.reshuffle:
            return self.seeds
        stream = WordStream(*self.seeds, drawn=2 * number - 2)
        return stream.next_word(), stream.next_word()


class Seeds(PairSource):
    """The pair source that a dataset owns; its state is part of a saved position."""

    __slots__ = ()

    def take(self, number: int | None) -> tuple[tuple[int, int], list[int]]:
        """Draw the next pair, or one that was drawn before; give it and the state behind that draw.

        Args:
            number: The number of the draw, from 1; None for the next one.
        """
        if number is None:
            number = self.drawn + 1
        self.drawn = max(self.drawn, number)
        saved = self.save()
        saved[2] = number
        return self.pair(number), saved

    def save(self) -> list[int]:
        """Give the state as JSON."""
        return [*self.seeds, self.drawn]

    def load(self, saved: list[int]) -> None:
        """Set a saved state."""
        self.seeds = (saved[0], saved[1])
        self.drawn = saved[2]

    def restore(self, restored: set[int], saved: list[int]) -> None:
        """Set a saved state, unless a position of the same run has set one with more pairs drawn.

        A dataset that is read in several places of a pipeline has a state in each of their positions; the one that was
        drawn last knows of all draws.

        Args:
            restored: The run's set of the pair sources that have been set, by identity.
            saved: The state.
        """
        if id(self) not in restored or self.drawn < saved[2]:
            restored.add(id(self))
            self.load(saved)
