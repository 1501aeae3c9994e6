"""Budgets: how much memory, and how many calls, the automatic stages of a run may take together."""

from __future__ import annotations

import threading
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from aiodata.engine.machine import available_memory
from aiodata.structure import flatten

if TYPE_CHECKING:
    from aiodata.engine.block import Block

__all__ = ["Budget", "Share", "UNLIMITED", "weight"]

UNLIMITED = 1 << 60
LEAST_MEMORY = 64 << 20


def weight(block: Block[Any]) -> int:
    """Give the bytes of one element of a computed block: of its first one, or of the average row of columns."""
    if block.columns is not None:
        return sum(getattr(leaf, "nbytes", 0) for leaf in flatten(block.columns)) // (block.length or 1)
    leaves = flatten(block.computed[0]) if block.computed else []
    return sum(leaf.nbytes if hasattr(leaf, "nbytes") else getsizeof(leaf) for leaf in leaves)


class Budget:
    """How much of something may be taken at once; callable from any thread.

    Args:
        most: The amount; None takes a quarter of the memory that is available when it is first asked for, and 64 MiB
            at least.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._lock = threading.RLock()  # the collector may drop a share of this thread's meanwhile
        self.taken = 0

    @property
    def most(self) -> int:
        """The amount."""
        if self._most is None:
            self._most = max(LEAST_MEMORY, available_memory() // 4)
        return self._most

    def take(self, share: Share, count: int, size: int) -> int:
        """Change what a share holds, see `Share.fit`."""
        with self._lock:
            fits = max(1, min(count, self._room(share, size)))
            self.taken += fits * size - share.amount
            share.amount = fits * size
        return fits

    def room(self, share: Share, size: int) -> int:
        """Give how much a share could hold, see `Share.room`."""
        with self._lock:
            return max(1, self._room(share, size))

    def _room(self, share: Share, size: int) -> int:
        return (self.most - self.taken + share.amount) // size if size else UNLIMITED

    def give_back(self, share: Share) -> None:
        """Take back all that a share holds."""
        with self._lock:
            self.taken -= share.amount
            share.amount = 0


class Share:
    """What one stage holds of a budget; it goes back when the share is dropped."""

    __slots__ = ("_budget", "amount")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.amount = 0

    def fit(self, count: int, size: int = 1) -> int:
        """Hold room for `count` things of `size` instead of what was held; give how many have room, at least one."""
        return self._budget.take(self, count, size)

    def room(self, size: int = 1) -> int:
        """Give how many things of `size` the share could hold now, at least one."""
        return self._budget.room(self, size)

    def __del__(self) -> None:
        """Give all back."""
        self._budget.give_back(self)
