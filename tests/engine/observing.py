"""Pipelines whose elements can be followed, and a look at what an iteration has left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, ClassVar

from aiodata import Dataset, TextLineDataset

FLIGHTS = Path(__file__).parents[2] / "examples" / "data" / "flights"
KINDS = ["threads", "coroutines"]
FILES = 5
LINES = 40
BUSY = 5  # how much longer everything may take on a busy machine


class Line:
    """An element that can be weakly referred to; it knows all its kind that are alive."""

    alive: ClassVar[weakref.WeakSet[Line]] = weakref.WeakSet()

    def __init__(self, text: bytes) -> None:
        self.text = text
        Line.alive.add(self)


def write_files(folder: Path, count: int = FILES, lines: int = LINES) -> None:
    for number in range(count):
        text = "".join(f"file {number} line {line}\n" for line in range(1, lines + 1))
        (folder / f"{number:04}.txt").write_text(text)


def slow(line: Line) -> Line:
    time.sleep(0.001)  # dear enough to go to a thread
    return Line(line.text)


async def slow_coroutine(line: Line) -> Line:
    await asyncio.sleep(0.001)
    return Line(line.text)


def pipeline(folder: Path, kind: str, function: Callable[..., Any] | None = None, repeats: int = 1) -> Dataset[Any]:
    """Read files in parallel, shuffle, map in parallel and prefetch twice."""
    chosen: Any = function or (slow if kind == "threads" else slow_coroutine)
    files = Dataset.list_files(str(folder / "*.txt"), shuffle=False).repeat(repeats)
    lines = files.interleave(lambda path: TextLineDataset(path), cycle_length=3, num_parallel_calls=3)
    shuffled = lines.map(Line).shuffle(20, seed=7)
    return shuffled.map(chosen, num_parallel_calls=3).prefetch(4).map(lambda line: line).prefetch(2)


def endless(folder: Path, kind: str) -> Dataset[Any]:
    return pipeline(folder, kind, repeats=-1)


def descriptors() -> dict[int, str]:
    tracker: Any = getattr(resource_tracker, "_resource_tracker")  # noqa: B009 - lives as long as the interpreter
    found: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        if int(name) == tracker._fd:
            continue
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


class Watch:
    """What lived at the start, and what lives now beyond it."""

    def __init__(self, child_processes: Callable[[], dict[int, str]]) -> None:
        self._child_processes = child_processes
        self._threads = set(threading.enumerate())
        self._descriptors = descriptors()
        self._children = child_processes()
        self._tasks = self._all_tasks()

    @staticmethod
    def _all_tasks() -> set[Any]:
        try:
            return set(asyncio.all_tasks())
        except RuntimeError:
            return set()

    def left(self) -> list[str]:
        """Name what has been left behind, without calling the cycle collector."""
        return [
            *(f"thread {thread.name}" for thread in set(threading.enumerate()) - self._threads),
            *(f"descriptor {path}" for number, path in descriptors().items() if self._descriptors.get(number) != path),
            *(f"process {pid} {what}" for pid, what in self._child_processes().items() if pid not in self._children),
            *(f"task {task}" for task in self._all_tasks() - self._tasks),
            *(f"element {line.text!r}" for line in Line.alive),
        ]

    async def nothing_left(self, seconds: float) -> None:
        """Check that nothing is left, if not now, then after the loop has turned for at most some seconds."""
        __tracebackhide__ = True
        for _ in range(int(BUSY * seconds * 100)):
            if not self.left():
                return
            await asyncio.sleep(0.01)
        if left := self.left():
            raise AssertionError("left behind: " + ", ".join(left[:20]))

    def nothing_left_soon(self, seconds: float) -> None:
        """Do the same where there is no loop."""
        __tracebackhide__ = True
        deadline = time.monotonic() + BUSY * seconds
        while self.left() and time.monotonic() < deadline:
            time.sleep(0.01)
        if left := self.left():
            raise AssertionError("left behind: " + ", ".join(left[:20]))


def numbers() -> Iterator[int]:
    """Count for ever."""
    number = 0
    while True:
        yield number
        number += 1
