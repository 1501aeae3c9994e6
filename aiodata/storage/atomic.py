"""Files that are there whole or not at all: written under another name and renamed when complete."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import BinaryIO

__all__ = ["AtomicFile"]


class AtomicFile:
    """A new local file, written beside its place and put there when it is complete.

    Until `commit` nothing is seen under its name, and what was there before stays. What is left behind by a process
    that was killed has a name that begins with a dot and ends with `.part`.

    Args:
        path: Where the file is to be.

    Raises:
        OSError: The folder does not exist, or cannot be written to.
    """

    def __init__(self, path: str | bytes | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fsdecode(path))
        folder, name = os.path.split(self.path)
        self._part = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.part")
        self.file: BinaryIO = open(self._part, "xb")  # noqa: SIM115 - closed by `commit` and `discard`

    def commit(self) -> None:
        """Put the file in its place, with all that was written safely on the disk.

        Raises:
            OSError: It cannot be; it is discarded then.
        """
        try:
            with self.file:
                self.file.flush()
                os.fsync(self.file.fileno())
            os.replace(self._part, self.path)
        except BaseException:
            self.discard()
            raise
        folder = os.open(os.path.dirname(self.path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def discard(self) -> None:
        """Remove what was written; what was in its place before stays."""
        self.file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._part)
