"""Jobs: the tasks of a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio

from aiodata.engine.workers import all_of, wait_out

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

__all__ = ["Job", "Tasks", "as_failure", "stop_all"]


class Job:
    """A task of a run, whose errors go to whoever reads its results.

    It is cancelled through anyio's cancel scope, which cancels it again whenever it waits: a user's coroutine that
    swallows a cancellation does not keep the run alive.

    Args:
        body: What it does.
        failed: Gets what ends it before its time, if that is not the run.
    """

    def __init__(
        self, body: Callable[[], Coroutine[Any, Any, None]], failed: Callable[[BaseException], object]
    ) -> None:
        self._body: Callable[[], Coroutine[Any, Any, None]] | None = body
        self._failed: Callable[[BaseException], object] | None = failed
        self._scope = anyio.CancelScope()
        self._task = asyncio.get_running_loop().create_task(self._work(), name="aiodata")

    async def _work(self) -> None:
        assert self._body is not None
        try:
            with self._scope:
                await self._body()
        except BaseException as error:
            # Not raised again: asyncio stops its loop for KeyboardInterrupt and SystemExit out of a task. The reader
            # raises it, in its own task. An exception keeps its frames alive and they keep their variables; a reader
            # that is still referred to from here would make that a cycle.
            failed, self._failed, self._body = self._failed, None, None
            if failed is not None and not (isinstance(error, asyncio.CancelledError) and self._scope.cancel_called):
                failed(as_failure(error))
            del failed
        finally:
            self._failed = self._body = None

    def when_ended(self, call: Callable[[Job], object]) -> None:
        """Call `call` with this job once its task has ended, however that came about."""
        self._task.add_done_callback(lambda _: call(self))

    def cancel(self) -> None:
        """Cancel the task, if it has not ended."""
        self._scope.cancel()

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        self.cancel()
        await wait_out(self._task)


async def stop_all(jobs: Sequence[Job]) -> None:
    """Cancel several jobs and wait until all have ended."""
    for job in jobs:
        job.cancel()
    await all_of([job.stop for job in jobs])


class Tasks:
    """The tasks of a run."""

    def __init__(self) -> None:
        self._jobs: dict[Job, None] = {}
        """They, in the order in which they were started, which is that in which they are cancelled."""
        self._guard: asyncio.Task[None] | None = None

    def spawn(self, body: Callable[[], Coroutine[Any, Any, None]], failed: Callable[[BaseException], object]) -> Job:
        """Start a job, see `Job`."""
        job = Job(body, failed)
        self._jobs[job] = None  # asyncio itself holds tasks weakly
        job.when_ended(self._drop)
        return job

    def _drop(self, job: Job) -> None:
        self._jobs.pop(job, None)

    def guard(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have `end` called when the loop is shut down.

        `asyncio.run` cancels all tasks first, and then closes all async generators at once, which those that wait for
        each other do not survive. So the guard, a task, waits for being cancelled.
        """
        if self._guard is None:
            self._guard = asyncio.get_running_loop().create_task(self._watch(end), name="aiodata")

    async def _watch(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if self._guard is not None:  # not dismissed
                await end()
            raise

    async def end(self) -> None:
        """Cancel all jobs and wait until they have ended, those too that others have started meanwhile."""
        ended: set[Job] = set()
        while jobs := [job for job in self._jobs if job not in ended]:
            await stop_all(jobs)
            ended.update(jobs)

    async def end_guard(self) -> None:
        """Dismiss the guard; the last step of ending a run."""
        guard, self._guard = self._guard, None
        if guard is not None and guard is not asyncio.current_task():
            guard.cancel()
            await wait_out(guard)


def as_failure(error: BaseException) -> Any:
    """Turn a cancellation that is not the run's own into an error: a reader must not take it for its own."""
    if isinstance(error, asyncio.CancelledError):
        failure = RuntimeError("a task or future that the pipeline waited for was cancelled")
        failure.__cause__ = error
        return failure
    return error
