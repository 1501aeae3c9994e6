"""Thread and process pools that a run owns, and that end with it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from concurrent.futures import ProcessPoolExecutor

__all__ = ["Pools", "all_of", "wait_out"]

P = ParamSpec("P")
R = TypeVar("R")

FILE_THREADS = 32
"""Threads for reading files; they are made as they are needed."""


_open: set[Executor] = set()
"""Pools in use. A pool that the cycle collector finds first loses its threads while generators still want to close
their files in them, and these would wait for ever."""


class _Threads(ThreadPoolExecutor):
    """A thread pool that knows which calls are under way."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self.calls: set[Future[Any]] = set()

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submit a call and keep it in `calls` until it has ended."""
        future = super().submit(fn, *args, **kwargs)
        self.calls.add(future)
        future.add_done_callback(self.calls.discard)
        return future


async def wait_out(waiting: asyncio.Future[Any] | asyncio.Task[Any]) -> None:
    """Wait until `waiting` is done, whatever its outcome, even while the waiting task is being cancelled.

    Raises:
        asyncio.CancelledError: Only afterwards, if the waiting task was cancelled.
    """
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError as error:
            cancelled = error
    if not waiting.cancelled():
        waiting.exception()  # mark as seen: whoever needs the outcome has it already
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled  # else it and this frame, which its traceback holds, would be a cycle


async def all_of(steps: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Take every step, one after the other, even while the task is being cancelled.

    Raises:
        asyncio.CancelledError: Only afterwards, if the task was cancelled.
    """
    cancelled: asyncio.CancelledError | None = None
    for step in steps:
        try:
            await step()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled  # else it and this frame, which its traceback holds, would be a cycle


class Pools:
    """The pools of one run: threads for files, and one pool for each parallel map.

    Args:
        used: Called when a pool is made.
    """

    def __init__(self, used: Callable[[], None]) -> None:
        self._used = used
        self._files: _Threads | None = None
        self._threads: list[_Threads] = []
        self._processes: list[ProcessPoolExecutor] = []

    @property
    def files(self) -> ThreadPoolExecutor:
        """The threads that read files; made at the first use."""
        if self._files is None:
            self._files = self._keep(_Threads(FILE_THREADS, "aiodata-files"))
        return self._files

    def threads(self, count: int) -> ThreadPoolExecutor:
        """Make a pool of `count` threads."""
        return self._keep(_Threads(count, "aiodata-map"))

    def _keep(self, pool: _Threads) -> _Threads:
        self._used()
        self._threads.append(pool)
        _open.add(pool)
        return pool

    def processes(self, count: int, initializer: Callable[..., None], *arguments: Any) -> Executor:
        """Make a pool of `count` freshly started processes.

        They are started anew (`spawn`), not forked: a fork of a process with threads may copy a held lock.
        """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        self._used()
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=initializer, initargs=arguments)
        self._processes.append(pool)
        return pool

    async def close(self) -> None:
        """Wait for the calls that are running, drop those that are not, and end all workers.

        A thread cannot be interrupted, so its running call is waited for. A process can, and is killed.
        """
        for pool in self._threads:
            pool.shutdown(wait=False, cancel_futures=True)
        try:
            calls = [
                asyncio.wrap_future(call) for pool in self._threads for call in list(pool.calls) if not call.done()
            ]
            if calls:
                await wait_out(asyncio.gather(*calls, return_exceptions=True))
        finally:
            self._end()

    def abandon(self) -> None:
        """Let the workers end by themselves: nobody is there to wait for them."""
        for pool in self._threads:
            pool.shutdown(wait=False, cancel_futures=True)
        _open.difference_update(self._threads)

    def _end(self) -> None:
        for pool in self._threads:
            pool.shutdown(wait=True)  # the threads are idle: they end within microseconds
        for processes in self._processes:
            workers = list((processes._processes or {}).values())
            processes.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.kill()
            for worker in workers:
                worker.join()
            processes.shutdown(wait=True)
        self._files = None
        _open.difference_update(self._threads)
        self._threads.clear()
        self._processes.clear()
