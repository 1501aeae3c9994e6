"""Files that are there whole or not at all: written under another name and renamed when complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import sys
import warnings
import weakref
from typing import BinaryIO

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

__all__ = ["AtomicFile", "remove_abandoned", "sync_folder"]

LONGEST_NAME = 100
"""Bytes of a name that a part's name repeats; of a longer one it has a digest, as names may have 255 bytes."""


class AtomicFile:
    """A new local file, written beside its place and put there when it is complete.

    Until `commit` nothing is seen under its name, and what was there before stays. A file that is replaced leaves its
    permissions to the new one; a link is followed. Several may be written for one place at once, by several processes
    too: the last to be complete is the one that stays. A device, a pipe or a socket cannot be replaced: it is opened
    and written to.

    What is written is in a hidden file in the same folder, `.NAME.RANDOM.part`, which its writer holds a lock on while
    it lives, where the system has such locks. One that is dropped, or left at the end of the program, is discarded with
    a ResourceWarning. A process that is killed leaves its part behind; the next `AtomicFile` for the place removes it.

    Args:
        path: Where the file is to be.

    Raises:
        OSError: The folder does not exist, or cannot be written to; or the place is a folder.
    """

    file: BinaryIO
    """Where to write it."""

    def __init__(self, path: str | bytes | os.PathLike[str]) -> None:
        self.path = os.path.realpath(os.fsdecode(path))
        self._part: str | None = None
        try:
            mode = os.stat(self.path).st_mode
        except FileNotFoundError:
            mode = None
        if mode is None or stat.S_ISREG(mode):
            with contextlib.suppress(PermissionError):  # a folder may be open for writing, and not for listing
                remove_abandoned(self.path)
            self._part, self.file = _new_part(self.path)
        else:
            self.file = open(self.path, "wb")  # noqa: SIM115 - closed by `commit` and `discard`
        self._process = os.getpid()
        self._dropped = weakref.finalize(self, _drop, self.path, self._part, self.file, self._process)
        if mode is not None and self._part is not None:
            try:
                os.chmod(self._part, stat.S_IMODE(mode) & 0o777)
            except BaseException:
                self.discard()
                raise

    def commit(self) -> None:
        """Put the file in its place, with all that was written safely on the disk.

        Raises:
            OSError: It cannot be; it is discarded then.
        """
        try:
            self.file.flush()
            if self._part is not None:
                os.fsync(self.file.fileno())
                if sys.platform == "win32":
                    self.file.close()  # what is open has no other name there; elsewhere the lock is kept for so long
                os.replace(self._part, self.path)
            self.file.close()
        except BaseException:
            self.discard()
            raise
        self._dropped.detach()
        if self._part is not None:
            sync_folder(os.path.dirname(self.path))

    def abort(self) -> None:
        """Do nothing: what another thread may be doing with it ends soon. See `AtomicUpload.abort`."""

    def discard(self) -> None:
        """Remove what was written; what was in its place before stays. In a fork of the process nothing is done."""
        if self._dropped.detach():
            _remove(self._part, self.file, self._process)


def remove_abandoned(path: str | bytes | os.PathLike[str]) -> None:
    """Remove what processes that were killed have left of a file; what others are still writing is locked, and stays.

    Where there are no such locks nothing is removed.

    Args:
        path: The place of the file, as for `AtomicFile`.

    Raises:
        OSError: The folder does not exist, or cannot be read.
    """
    if sys.platform == "win32":
        return
    folder, prefix = _part_prefix(os.path.realpath(os.fsdecode(path)))
    parts = re.compile(re.escape(prefix) + r"[0-9a-f]{12}\.part")
    for name in os.listdir(folder):
        if name.startswith(prefix) and parts.fullmatch(name):
            part = os.path.join(folder, name)
            with contextlib.suppress(OSError):  # gone by now, not ours, or not a file that can be locked
                descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(part)
                finally:
                    os.close(descriptor)


def _part_prefix(path: str) -> tuple[str, str]:
    """Give the folder of a file's parts and what their names begin with."""
    folder, name = os.path.split(path)
    encoded = os.fsencode(name)
    return folder, f".{name if len(encoded) <= LONGEST_NAME else hashlib.sha256(encoded).hexdigest()}."


def _new_part(path: str) -> tuple[str, BinaryIO]:
    """Make a part for a file, and lock it."""
    folder, prefix = _part_prefix(path)
    while True:
        part = os.path.join(folder, f"{prefix}{secrets.token_hex(6)}.part")
        file = open(part, "xb")  # noqa: SIM115 - closed by `commit` and `discard`
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # some file systems have no locks, and so nothing is ever removed there
                fcntl.flock(file, fcntl.LOCK_EX)
            if not os.fstat(file.fileno()).st_nlink:
                file.close()  # somebody has taken it for abandoned before it was locked
                continue
        return part, file


def _remove(part: str | None, file: BinaryIO, process: int) -> bool:
    """Close and remove a part, unless this is a fork of the process that is writing it; tell whether it is not."""
    if os.getpid() != process:
        return False
    with contextlib.suppress(OSError):  # what is not written yet is written now, and thrown away
        file.close()
    if part is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
    return True


def _drop(path: str, part: str | None, file: BinaryIO, process: int) -> None:
    """Discard a file that was neither committed nor discarded."""
    if _remove(part, file, process):
        warnings.warn(f"{path!r} was not completed: what was written is discarded", ResourceWarning, stacklevel=2)


def sync_folder(folder: str) -> None:
    """Have the names in a folder safely on the disk, where that is possible: the file is in its place in any case."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # on Windows always, as folders cannot be opened
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # what file systems say that cannot
            raise
    finally:
        os.close(descriptor)
