"""Local files, read through aiofiles in the run's own threads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiofiles

from aiodata.engine.workers import wait_out

if TYPE_CHECKING:
    from aiodata.engine.run import Run

__all__ = ["LocalFile"]


class LocalFile:
    """One open local file, read forward.

    Args:
        run: The run whose threads read it.
        path: The file.
    """

    def __init__(self, run: Run, path: str) -> None:
        self._run = run
        self.path = path
        self._file: Any = None

    async def open(self, offset: int = 0) -> None:
        """Open the file at a byte offset.

        Raises:
            OSError: It cannot be opened.
        """
        opening = asyncio.ensure_future(self._open(offset))
        try:
            await wait_out(opening)
        finally:
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                self._file = opening.result()
        if self._file is None:
            opening.result()  # raises what went wrong

    async def _open(self, offset: int) -> Any:
        file = await aiofiles.open(self.path, "rb", buffering=0, executor=self._run.pools.files)
        if offset:
            await file.seek(offset)
        return file

    async def read(self, size: int) -> bytes:
        """Read up to `size` bytes; b"" at the end."""
        found: bytes = await self._file.read(size)
        return found

    async def aclose(self) -> None:
        """Close the file, also while the task is being cancelled."""
        file, self._file = self._file, None
        if file is not None:
            await wait_out(asyncio.ensure_future(file.close()))
