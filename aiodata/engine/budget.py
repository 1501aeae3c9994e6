"""Budgets: how much memory, and how many calls, the automatic stages of a run may take together."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from aiodata.structure import flatten

if TYPE_CHECKING:
    from aiodata.engine.block import Block

__all__ = ["Budget", "Share", "available_memory", "weight"]

UNKNOWN_MEMORY = 1 << 30
LEAST_MEMORY = 64 << 20


def available_memory() -> int:
    """Give the bytes of memory that this process could still take: those of the machine, or of its container."""
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")))
    for most, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        with contextlib.suppress(OSError, ValueError):  # no container, or one that says "max"
            folder = Path("/sys/fs/cgroup")
            found.append(max(0, int((folder / most).read_text()) - int((folder / used).read_text())))
    if not found:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    return min(found, default=UNKNOWN_MEMORY)


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
        self._lock = threading.Lock()
        self.taken = 0

    @property
    def most(self) -> int:
        """The amount."""
        if self._most is None:
            self._most = max(LEAST_MEMORY, available_memory() // 4)
        return self._most

    def take(self, share: Share, count: int, size: int) -> int:
        """Change what a share holds, see `Share.fit`."""
        most = self.most
        with self._lock:
            free = most - self.taken + share.amount
            fits = max(1, min(count, free // size)) if size else count
            self.taken += fits * size - share.amount
            share.amount = fits * size
        return fits

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

    def __del__(self) -> None:
        """Give all back."""
        self._budget.give_back(self)
