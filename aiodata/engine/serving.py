"""What a worker process does: it answers requests, and notes in its record what it is at."""

from __future__ import annotations

import struct
from concurrent.futures.process import BrokenProcessPool
from math import inf
from multiprocessing.shared_memory import SharedMemory
from typing import TYPE_CHECKING, Any

from aiodata.engine.messages import pack, unpack
from aiodata.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.messages import Exchange

__all__ = ["Record", "serve"]

REST_SECONDS = 10.0
"""How long a worker waits for the next run, such as the next epoch."""


class Record:
    """What a worker is at, in memory that it shares with the process that watches it.

    Args:
        name: Of the memory, to use what exists; None makes it.
    """

    _layout = struct.Struct("dd")

    def __init__(self, name: str | None = None) -> None:
        self._memory = SharedMemory(name, create=name is None, size=self._layout.size)
        self._view: Any = self._memory.buf
        self.name = self._memory.name

    def note(self, call: int, began: float) -> None:
        """Write the number of a call and when it began, by the monotonic clock of the system."""
        self._layout.pack_into(self._view, 0, began, call)

    def clear(self) -> None:
        """Write that no call is under way."""
        self.note(0, inf)

    def read(self) -> tuple[int, float]:
        """Read the number of the call under way and when it began; infinity if there is none."""
        while True:
            began, call = self._layout.unpack_from(self._view, 0)
            if (began, call) == self._layout.unpack_from(self._view, 0):  # not in the middle of a note
                return int(call), began

    def remove(self) -> None:
        """Give the memory back; the worker has ended."""
        self._memory.close()
        self._memory.unlink()


def serve(exchange: Exchange, name: str | None, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Answer requests until the other side is gone, or has none for long; the main function of a worker."""
    record = None if name is None else Record(name)
    answer: Callable[..., Any] | None = None
    while True:
        try:
            request = _next_request(exchange)
        except (EOFError, OSError, KeyboardInterrupt):
            return
        if request is None:
            return
        try:
            answer = answer or _made(make, arguments)
            found = answer(unpack(request), record)
            if record is not None:
                record.clear()
            parts = pack((True, found))
            del found
        except BaseException as error:
            parts = _failure(error)
        try:
            exchange.send(parts)
        except OSError:
            return
        del request, parts


def _next_request(exchange: Exchange) -> list[Any] | None:
    request = exchange.receive()
    while request is None:
        if not exchange.connection.poll(REST_SECONDS):
            return None
        request = exchange.receive()
    return request


def _made(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
    try:
        made: Callable[..., Any] = make(*arguments)
    except Exception as error:
        raise BrokenProcessPool(f"a worker process could not begin: {type(error).__name__}: {error}") from error
    return made


def _failure(error: BaseException) -> list[memoryview]:
    """Pickle an exception, or one that describes it."""
    try:
        parts = pack((False, error))
        unpack(parts)
    except Exception:
        return pack((False, WorkerError(f"{type(error).__name__}: {error}")))
    return parts
