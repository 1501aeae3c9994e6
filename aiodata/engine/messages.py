"""What two processes hand each other: pickles, with large arrays beside them, through a pipe and a file in memory.

A pipe takes some 200 KB at a time, so that what is larger makes both processes wait for each other again and again.
Such a message is written to memory that both share, and only its sizes go through the pipe. The two sides take turns,
so one piece of memory serves both ways. It is a file without a name, which vanishes with the processes that hold it,
however they end.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import tempfile
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["Exchange", "memory_file", "pack", "unpack"]

SHARED_BYTES = 64 * 1024
"""From this size on a message goes through the shared memory."""

APART_BYTES = 16 * 1024
"""From this size on the contents of an array are not copied into the pickle."""

KEPT_BYTES = 64 * 1024 * 1024
"""How large the shared memory may stay when its message has been read."""

STEP_BYTES = 1024 * 1024
"""The shared memory grows by whole steps."""


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
    """One end of a pipe, and the memory that belongs to the pipe.

    Args:
        connection: The end of the pipe.
        file: The descriptor of the shared memory; None where processes cannot hand over descriptors: all goes through
            the pipe.
    """

    def __init__(self, connection: Connection[Any, Any], file: int | None) -> None:
        self.connection = connection
        self._file = file
        self._memory: np.ndarray[Any, Any] | None = None
        """The shared memory as it is mapped here; not longer than the file, or reading it would end the process."""

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
        total = sum(sizes)
        is_shared = total >= SHARED_BYTES and self._is_written(parts, total)
        self.connection.send_bytes(pickle.dumps((sizes, None if is_shared else b"".join(parts))))
        if is_shared and total > KEPT_BYTES:
            self._memory = None  # the other side gives it back when it has read it

    def send_rest(self) -> None:
        """Tell the other side that nobody needs it now, and give back the shared memory.

        Raises:
            OSError: The other side is gone.
        """
        self._give_back()
        self.connection.send_bytes(b"")

    def receive(self) -> list[Any] | None:
        """Wait for a message, and give its parts as memory of their own; None if nobody needs this side now.

        Raises:
            EOFError, OSError: The other side is gone.
        """
        message = self.connection.recv_bytes()
        if not message:
            self._memory = None
            return None
        sizes, contents = pickle.loads(message)
        total = sum(sizes)
        source = self._mapped(total) if contents is None else np.frombuffer(contents, np.uint8)
        parts = []
        at = 0
        for size in sizes:
            parts.append(source[at : at + size].copy())
            at += size
        if contents is None and total > KEPT_BYTES:
            self._give_back()
        return parts

    def _is_written(self, parts: list[memoryview], total: int) -> bool:
        if self._file is None:
            return False
        try:
            memory = self._mapped(total, grow=True)
        except OSError:  # no room
            return False
        at = 0
        for part in parts:
            memory[at : at + part.nbytes] = np.frombuffer(part, np.uint8)
            at += part.nbytes
        return True

    def _mapped(self, size: int, grow: bool = False) -> np.ndarray[Any, Any]:
        """Give the shared memory, of at least so many bytes."""
        assert self._file is not None
        if self._memory is None or self._memory.size < size:
            size = -(-size // STEP_BYTES) * STEP_BYTES
            if grow:
                _allocate(self._file, size)
            self._memory = np.frombuffer(mmap.mmap(self._file, size), np.uint8)
        return self._memory

    def _give_back(self) -> None:
        self._memory = None
        if self._file is not None:
            os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Close the end of the pipe, and let go of the memory."""
        self.connection.close()
        self._memory = None
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def _arrived(connection: Connection[Any, Any], file: Any) -> Exchange:
    return Exchange(connection, file.detach())


def _allocate(file: int, size: int) -> None:
    """Make a file so long; where it can be done, so that a lack of room is an error now, not a signal later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)


def memory_file() -> int | None:
    """Make a file without a name; give its descriptor. None where a process cannot hand it to another."""
    if os.name != "posix":
        return None
    if hasattr(os, "memfd_create"):
        return os.memfd_create("aiodata", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
