"""Local files, read through aiofiles in the run's own threads."""

from __future__ import annotations

import asyncio
import os
import stat
from io import FileIO
from typing import TYPE_CHECKING, Any

from aiofiles.threadpool import wrap

from aiodata.engine.workers import wait_out
from aiodata.storage.marks import mark_of
from aiodata.storage.size import size_of

if TYPE_CHECKING:
    from aiodata.engine.run import Run
    from aiodata.storage.marks import Mark

__all__ = ["LocalFile"]


class LocalFile:
    """One local file, read forward.

    Opening and the first read are one call in a thread, and so is closing where that read has come to the end: handing
    a call to a thread takes longer than reading a small file.

    Args:
        run: The run whose threads read it.
        path: The file.
        saved: The mark that it must have; see `mark_of`.
    """

    def __init__(self, run: Run, path: str, saved: Mark = None) -> None:
        self._run = run
        self.path = path
        self.mark = saved
        """What tells the file from another; its own as soon as it is open."""
        self._file: FileIO | None = None
        self._reader: Any = None

    def size(self) -> int | None:
        """Give its number of bytes; None for what is no regular file."""
        return size_of(self.path)

    async def open(self, size: int, offset: int = 0) -> bytes:
        """Open the file and read from a byte offset as `read` does.

        Raises:
            OSError: It cannot be opened or read.
            StateError: It is not the file that it must be.
        """
        data: bytes = await self._run.in_thread(self._begin, size, offset)
        return data

    def _begin(self, size: int, offset: int) -> bytes:
        self._file = file = FileIO(self.path)
        self.mark = mark_of(file, self.path, self.mark)
        if offset:
            file.seek(offset)
        data = file.read(size) or b""
        if data and _is_at_its_end(file, offset + len(data)):
            more = file.read(size)  # a file system may not know the size
            if more:
                return data + more
        elif data:
            return data
        self._file = None
        file.close()
        return data

    async def read(self, size: int) -> bytes:
        """Read some bytes, about `size` at most; b"" at the end."""
        if self._file is None:
            return b""
        if self._run.stepped:
            return self._file.read(size) or b""
        if self._reader is None:
            self._reader = wrap(self._file, executor=self._run.pools.files)
        reading = asyncio.ensure_future(self._reader.read(size))
        # Also when cancelled: a descriptor that is closed under a reading thread may be another file's by then.
        await wait_out(reading)
        try:
            return reading.result() or b""
        finally:
            del reading

    async def aclose(self) -> None:
        """Close the file, also while the task is being cancelled."""
        file, self._file, self._reader = self._file, None, None
        if file is not None:
            # Not a task: those are cancelled all together when asyncio.run ends, and the file would stay open.
            await self._run.in_thread(file.close)


def _is_at_its_end(file: FileIO, position: int) -> bool:
    """Tell whether a regular file ends at `position`; /proc's, which say that they are empty, do not."""
    status = os.fstat(file.fileno())
    return stat.S_ISREG(status.st_mode) and 0 < status.st_size <= position
