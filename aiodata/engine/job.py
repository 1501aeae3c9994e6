"""Jobs: the tasks of a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["Job"]


class Job:
    """A task of a run."""

    def __init__(self, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._body = body
        self._scope = anyio.CancelScope()
        self._ended = asyncio.Event()

    async def work(self) -> None:
        """Do the work; what the run starts."""
        try:
            with self._scope:
                await self._body()
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        self._scope.cancel()
        await self._ended.wait()
