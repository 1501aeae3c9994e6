"""What two processes hand each other: pickles, with large arrays beside them, through a pipe and a file in memory.

A pipe takes some 200 KB at a time, so that what is larger makes both processes wait for each other again and again.
Such a message is written to a file that has no name and lies in memory, and only its sizes go through the pipe. The two
sides take turns, so one file serves both ways. It vanishes with the processes that hold it, however they end, and a
file system that is full is an error of writing, not a signal, as it would be in memory that is mapped.
"""

from __future__ import annotations

import io
import os
import pickle
import tempfile
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Exchange", "memory_file", "pack", "unpack"]

FILE_BYTES = 64 * 1024
"""From this size on a message goes through the file."""

APART_BYTES = 16 * 1024
"""From this size on the contents of an array are not copied into the pickle."""

KEPT_BYTES = 64 * 1024 * 1024
"""What the file may hold on to when its message has been read."""


class _Pickler(ForkingPickler):
    """Pickles also what only `multiprocessing` can pickle, and leaves the contents of large arrays out."""

    def __init__(self, file: io.BytesIO, buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, 5, True, buffers.append)
        self.dispatch_table.setdefault(np.ndarray, _reduced)  # whoever has registered something else wants that


def _reduced(array: np.ndarray[Any, Any]) -> Any:
    """Take an array apart. As ever when arrays are pickled, what comes of it can be written to."""
    if array.nbytes < APART_BYTES or array.dtype.hasobject:
        return array.__reduce_ex__(4)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous or not array.flags.f_contiguous else "F"
    if not (array.flags.forc and array.flags.writeable):
        array = array.copy(order)
    contents = array.reshape(-1, order=order).view(np.uint8)
    return _assembled, (pickle.PickleBuffer(contents.data), array.dtype, array.shape, order)


def _assembled(
    contents: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: Literal["C", "F"]
) -> np.ndarray[Any, Any]:
    return np.frombuffer(contents, np.uint8).view(dtype).reshape(shape, order=order)


def pack(value: Any) -> list[memoryview]:
    """Pickle a value as a list of buffers: the pickle, and the contents of what is large."""
    file = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    _Pickler(file, buffers).dump(value)
    return [memoryview(file.getvalue()), *(buffer.raw() for buffer in buffers)]


def unpack(parts: list[Any]) -> Any:
    """Give the value again; its arrays own their memory, or share it with nothing else."""
    return pickle.loads(parts[0], buffers=parts[1:])


class Exchange:
    """One end of a pipe, and the file that belongs to the pipe.

    Args:
        connection: The end of the pipe.
        file: The descriptor of the file; None where processes cannot hand over descriptors: all goes through the pipe.
    """

    def __init__(self, connection: Connection[Any, Any], file: int | None) -> None:
        self.connection = connection
        self._file = file

    def __reduce__(self) -> Any:
        """Go to a process that is being started."""
        if self._file is None:
            return Exchange, (self.connection, None)
        from multiprocessing.reduction import DupFd

        return _arrived, (self.connection, DupFd(self._file))

    def send(self, parts: list[memoryview]) -> None:
        """Send a message, when the last one has been received.

        Raises:
            OSError: The other side is gone.
        """
        sizes = [part.nbytes for part in parts]
        through_file = sum(sizes) >= FILE_BYTES and self._is_written(parts)
        self.connection.send_bytes(pickle.dumps((sizes, None if through_file else b"".join(parts))))

    def send_rest(self) -> None:
        """Tell the other side that nobody needs it now, and give back what the file holds.

        Raises:
            OSError: The other side is gone.
        """
        self._shrink()
        self.connection.send_bytes(b"")

    def receive(self) -> list[Any] | None:
        """Wait for a message, and give its parts as memory of their own; None if nobody needs this side now.

        Raises:
            EOFError, OSError: The other side is gone.
        """
        message = self.connection.recv_bytes()
        if not message:
            return None
        sizes, contents = pickle.loads(message)
        parts = [np.empty(size, np.uint8) for size in sizes]
        at = 0
        for part in parts:
            if contents is not None:
                part[:] = np.frombuffer(contents, np.uint8, part.size, at)
            else:
                self._read(part.data, at)
            at += part.size
        if contents is None and at > KEPT_BYTES:
            self._shrink()
        return parts

    def _is_written(self, parts: list[memoryview]) -> bool:
        if self._file is None:
            return False
        at = 0
        try:
            for part in parts:
                left = part.cast("B")
                while left.nbytes:
                    written = os.pwrite(self._file, left, at)
                    at, left = at + written, left[written:]
        except OSError:  # no room
            self._shrink()
            return False
        return True

    def _read(self, left: memoryview, at: int) -> None:
        assert self._file is not None
        while left.nbytes:
            count = os.preadv(self._file, [left], at)
            if not count:
                raise EOFError
            at, left = at + count, left[count:]

    def _shrink(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Close the end of the pipe, and the file."""
        self.connection.close()
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def _arrived(connection: Connection[Any, Any], file: Any) -> Exchange:
    return Exchange(connection, file.detach())


def memory_file() -> int | None:
    """Make a file without a name; give its descriptor. None where a process cannot hand it to another."""
    if not hasattr(os, "preadv"):
        return None
    if hasattr(os, "memfd_create"):
        return os.memfd_create("aiodata", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
