"""Jobs: the tasks of a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["Job", "as_failure"]


class Job:
    """A task of a run, whose errors go to whoever reads its results.

    Args:
        body: What it does.
        failed: Gets what ends it before its time, if that is not the run or `stop`.
    """

    def __init__(
        self, body: Callable[[], Coroutine[Any, Any, None]], failed: Callable[[BaseException], object]
    ) -> None:
        self._body: Callable[[], Coroutine[Any, Any, None]] | None = body
        self._failed: Callable[[BaseException], object] | None = failed
        self._scope = anyio.CancelScope()
        self.dismissed = False
        """Whether the run has ended it."""
        self.ended = asyncio.Event()
        """Set when the task has ended, or can never begin."""

    async def work(self) -> None:
        """Do the work; what the run starts."""
        assert self._body is not None
        try:
            with self._scope:
                await self._body()
        except BaseException as error:
            # An exception keeps its frames alive and they keep their variables; a reader that is still referred to
            # from here would make that a cycle.
            failed, self._failed, self._body = self._failed, None, None
            if failed is not None and not (isinstance(error, asyncio.CancelledError) and self.dismissed):
                failed(as_failure(error))
            del failed
            # Not raised again: asyncio stops its loop for KeyboardInterrupt and SystemExit out of a task, and keeps
            # the frames of a cancelled one in a cycle. The reader raises it, in its own task.
        finally:
            self._failed = self._body = None
            self.ended.set()

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        self._scope.cancel()
        await self.ended.wait()


def as_failure(error: BaseException) -> Any:
    """Turn a cancellation that is not the run's own into an error: a reader must not take it for its own."""
    if isinstance(error, asyncio.CancelledError):
        failure = RuntimeError("a task or future that the pipeline waited for was cancelled")
        failure.__cause__ = error
        return failure
    return error
