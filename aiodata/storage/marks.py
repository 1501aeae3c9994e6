"""Marks of files: how one that a state was saved in is told from another, without reading it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Protocol, TypeAlias
from zlib import crc32

from aiodata.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Mark", "mark_at", "mark_of"]

HEAD_BYTES = 4096
Mark: TypeAlias = "Sequence[int] | None"
"""A file's size in bytes, and the CRC-32 of its first ones; None for what is no regular file, or is empty."""


class _File(Protocol):
    def fileno(self) -> int: ...
    def read(self, size: int, /) -> bytes | None: ...
    def seek(self, offset: int, /) -> int: ...


def mark_of(file: _File, path: str, saved: Mark = None) -> Mark:
    """Give the mark of a file that has just been opened, and compare it with a saved one.

    A copy has the same mark, and so has, as far as it was there, a file that has grown: what a log has got since lies
    behind every position in it.

    Args:
        file: The file, at its beginning, and left there.
        path: Its name, for errors.
        saved: The mark that it had when a state was saved.

    Raises:
        StateError: The file has become shorter, or begins with other bytes.
    """
    status = os.fstat(file.fileno())
    # /proc's files say that they are empty.
    size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    head = b""
    if size:
        head = file.read(HEAD_BYTES) or b""
        file.seek(0)
    if saved is not None:
        length, checksum = saved
        if size < length:
            raise StateError(f"{path}: the file has {size} bytes, but had {length} when the state was saved")
        if crc32(head[:length]) != checksum:
            raise StateError(f"{path}: the file begins with other bytes than when the state was saved; it is another")
    return (size, crc32(head[:size])) if size else None


def mark_at(path: str, saved: Mark = None) -> Mark:
    """Give the mark of the file at a path, as `mark_of` does.

    Raises:
        OSError: It cannot be read.
        StateError: As for `mark_of`.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return None  # a pipe would wait for its writer, and could not be read again
    with open(path, "rb", buffering=0) as file:
        return mark_of(file, path, saved)
