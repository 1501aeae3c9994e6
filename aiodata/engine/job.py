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
        self.ended = asyncio.Event()
        """Set when the task has ended, or can never begin."""

    async def work(self) -> None:
        """Do the work; what the run starts."""
        try:
            with self._scope:
                await self._body()
        finally:
            self.ended.set()

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        self._scope.cancel()
        await self.ended.wait()
