"""What this process may use of the machine: processor cores and memory."""

from __future__ import annotations

import contextlib
import os

__all__ = ["available_cores", "available_memory"]

UNKNOWN_MEMORY = 1 << 30
GROUP_FILES = [
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
]
"""Where Linux tells a container's limit of memory, and what it uses: its newer way and its older one."""


def available_cores() -> int:
    """Give the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int:
    """Give the bytes of memory that this process could still take: those of the machine, or of its container."""
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as lines:
        found.append(1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")))
    for most, used in GROUP_FILES:
        with contextlib.suppress(OSError, ValueError):  # no container, or one that says "max"
            found.append(max(0, _number_in(most) - _number_in(used)))
    if not found:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    return min(found, default=UNKNOWN_MEMORY)


def _number_in(file: str) -> int:
    with open(f"/sys/fs/cgroup/{file}") as content:
        return int(content.read())
