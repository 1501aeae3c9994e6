"""Options that hold for a whole pipeline."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from typing import Any

__all__ = ["Options", "available_cores"]


def available_cores() -> int:
    """Give the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Options:
    """What `with_options` sets; None leaves the choice to the library.

    Args:
        deterministic: False lets parallel stages give elements in the order in which they become ready, where the
            stage itself does not say. None means True.
        cpu_budget: The most calls that an automatic parallelism (`AUTOTUNE`) may run at once, at least 1. None means
            the number of cores for plain functions and 16 for coroutines.
        switch_interval_seconds: Sets `sys.setswitchinterval` while the pipeline runs: a smaller one than Python's 0.005
            makes a loop answer sooner beside busy pure-Python threads. None leaves it alone.
    """

    deterministic: bool | None = None
    cpu_budget: int | None = None
    switch_interval_seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if self.cpu_budget is not None and self.cpu_budget < 1:
            raise ValueError(f"cpu_budget must be at least 1, not {self.cpu_budget}")
        if self.switch_interval_seconds is not None and self.switch_interval_seconds <= 0:
            raise ValueError(f"switch_interval_seconds must be positive, not {self.switch_interval_seconds}")

    def over(self, earlier: Options) -> Options:
        """Give these options with the fields that are None taken from `earlier`."""
        changes: dict[str, Any] = {
            entry.name: getattr(earlier, entry.name) for entry in fields(self) if getattr(self, entry.name) is None
        }
        return replace(self, **changes)
