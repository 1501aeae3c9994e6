"""What a worker process does: it answers requests, and notes in its record what it is at."""

from __future__ import annotations

import io
import pickle
import struct
from concurrent.futures.process import BrokenProcessPool
from math import inf
from multiprocessing.reduction import ForkingPickler
from multiprocessing.shared_memory import SharedMemory
from typing import TYPE_CHECKING, Any

from aiodata.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

__all__ = ["Record", "dumps", "serve"]


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


def dumps(value: Any) -> bytes:
    """Pickle what goes to another process, also what only `multiprocessing` can pickle."""
    buffer = io.BytesIO()
    ForkingPickler(buffer).dump(value)
    return buffer.getvalue()


def serve(connection: Connection, name: str | None, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Answer requests until the other side is gone; the main function of a worker."""
    record = None if name is None else Record(name)
    answer: Callable[..., Any] | None = None
    while True:
        try:
            data = connection.recv_bytes()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            answer = answer or _made(make, arguments)
            found = answer(pickle.loads(data), record)
            if record is not None:
                record.clear()
            data = dumps((True, found))
            del found
        except BaseException as error:
            data = _failure(error)
        try:
            connection.send_bytes(data)
        except OSError:
            return


def _made(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
    try:
        made: Callable[..., Any] = make(*arguments)
    except Exception as error:
        raise BrokenProcessPool(f"a worker process could not begin: {type(error).__name__}: {error}") from error
    return made


def _failure(error: BaseException) -> bytes:
    """Pickle an exception, or one that describes it."""
    try:
        data = dumps((False, error))
        pickle.loads(data)
    except Exception:
        return dumps((False, WorkerError(f"{type(error).__name__}: {error}")))
    return data
