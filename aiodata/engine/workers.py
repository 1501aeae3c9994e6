"""Thread and process pools that a run owns, and that end with it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from aiodata.engine.daemons import Daemons

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aiodata.engine.interrupts import Interrupts
    from aiodata.engine.plan import Plan
    from aiodata.engine.processes import Processes

__all__ = ["Overdue", "Pools", "all_of", "wait_out"]

P = ParamSpec("P")
R = TypeVar("R")
Pool = TypeVar("Pool", bound="_Threads | Daemons")


class _Closes(Protocol):
    def close(self) -> None: ...
    def hold(self, thread: threading.Thread) -> bool: ...


Shared = TypeVar("Shared", bound=_Closes)

FILE_THREADS = 32
"""Threads for reading files; they are made as they are needed."""

KILLED_SECONDS = 10.0
"""How long closing waits for the threads that wait for a killed process: longer than these wait themselves."""

_open: set[Executor] = set()
"""Pools in use. A pool that the cycle collector finds first loses its threads while generators still want to close
their files in them, and these would wait for ever."""


def _join(members: set[threading.Thread], interrupts: Interrupts) -> None:
    members.add(threading.current_thread())
    interrupts.own_thread()


class _Threads(ThreadPoolExecutor):
    """A thread pool that knows which calls are under way."""

    patience: float | None = None

    def __init__(self, threads: int, name: str, interrupts: Interrupts) -> None:
        self.members = set[threading.Thread]()
        """Its threads; each joins before its first call, which may ask."""
        super().__init__(threads, name, initializer=_join, initargs=(self.members, interrupts))
        self._calls: set[Future[Any]] = set()

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submit a call and keep it in `calls` until it has ended."""
        future = super().submit(fn, *args, **kwargs)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    @property
    def calls(self) -> list[Future[Any]]:
        """The calls that are under way."""
        return [call for call in list(self._calls) if not call.done()]


async def wait_out(
    waiting: asyncio.Future[Any] | asyncio.Task[Any],
    seconds: float | None = None,
    interrupt: Callable[[], None] | None = None,
) -> None:
    """Wait until `waiting` is done, whatever its outcome, even while the waiting task is being cancelled.

    Args:
        waiting: What to wait for.
        seconds: Wait no longer than that.
        interrupt: Called when the waiting task is cancelled.

    Raises:
        asyncio.CancelledError: Only afterwards, if the waiting task was cancelled.
    """
    loop = asyncio.get_running_loop()
    deadline = None if seconds is None else loop.time() + seconds
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done() and (deadline is None or loop.time() < deadline):
        try:
            # anyio cancels again in every turn of the loop, as long as it takes: the loop would do nothing else.
            with nullcontext() if cancelled is None else _shield():
                await asyncio.wait({waiting}, timeout=None if deadline is None else deadline - loop.time())
        except asyncio.CancelledError as error:
            cancelled = error
            if interrupt is not None:
                interrupt()
    if waiting.done() and not waiting.cancelled():
        waiting.exception()  # mark as seen: whoever needs the outcome has it already
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled  # else it and this frame, which its traceback holds, would be a cycle


def _shield() -> AbstractContextManager[Any]:
    from anyio import CancelScope  # takes a while to import

    return CancelScope(shield=True)


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


class Overdue(Exception):
    """A call in a worker process took longer than its limit, so the process was killed.

    Args:
        call: Number of the call within the request.
    """

    def __init__(self, call: int) -> None:
        self.call = call
        super().__init__(call)


class Pools:
    """The pools of one run: threads for files, one pool for each parallel map, and what else ends with it.

    Args:
        used: Called when a pool is made.
        interrupts: What wakes a call in a thread that can be woken.
    """

    def __init__(self, used: Callable[[], None], interrupts: Interrupts) -> None:
        self._used = used
        self._interrupts = interrupts
        self._files: _Threads | None = None
        self._threads: list[_Threads | Daemons] = []
        self._processes: list[Processes] = []
        self._shared: dict[Callable[[], Any], Any] = {}

    def share(self, make: Callable[[], Shared]) -> Shared:
        """Give what all of the run uses together: made at the first use, and closed when the run ends."""
        if make not in self._shared:
            self._used()
            self._shared[make] = make()
        shared: Shared = self._shared[make]
        return shared

    @property
    def files(self) -> ThreadPoolExecutor:
        """The threads that read files; made at the first use."""
        if self._files is None:
            self._files = self._keep(_Threads(FILE_THREADS, "aiodata-files", self._interrupts))
        return self._files

    def threads(self, count: int) -> ThreadPoolExecutor:
        """Make a pool of `count` threads."""
        return self._keep(_Threads(count, "aiodata-map", self._interrupts))

    def daemons(self, patience: float) -> Daemons:
        """Make a pool of threads that nobody has to wait for, when closing no longer than `patience` seconds."""
        return self._keep(Daemons("aiodata-map", patience, self._interrupts.own_thread))

    def _keep(self, pool: Pool) -> Pool:
        self._used()
        self._threads.append(pool)
        _open.add(pool)
        return pool

    def processes(self, plan: Plan, limit: float | None, make: Callable[..., Any], *arguments: Any) -> Processes:
        """Make a pool of worker processes, see `Processes`."""
        from aiodata.engine.processes import Processes  # takes a while to import

        pool = Processes(plan, limit, make, arguments, self.daemons(KILLED_SECONDS))
        self._processes.append(pool)
        return pool

    async def close(self) -> None:
        """Wait for the calls that are running, drop those that are not, and end all workers.

        A thread can be interrupted only where it waits for the network. Its running call is waited for; if calls have a
        limit, not longer than that. A process is killed.
        """
        self._shut()
        try:
            finished = [_finished(pool.calls, pool.patience) for pool in self._threads if pool.calls]
            if finished:
                await wait_out(asyncio.gather(*finished, return_exceptions=True))
        finally:
            for pool in self._threads:
                pool.shutdown(wait=True)  # the threads are idle: they end within microseconds
            self._close_shared()
            _open.difference_update(self._threads)
            self._files = None
            self._threads.clear()
            self._processes.clear()

    def abandon(self) -> None:
        """Let the workers end by themselves: nobody is there to wait for them."""
        self._interrupts.stop()
        self._shut()
        self._close_shared()
        _open.difference_update(self._threads)

    def _close_shared(self) -> None:
        while self._shared:
            self._shared.popitem()[1].close()

    def hold(self, thread: threading.Thread) -> bool:
        """Tell whether a thread is one of these pools', or of what is shared."""
        shared = any(each.hold(thread) for each in self._shared.values())
        return shared or any(thread in pool.members for pool in self._threads if isinstance(pool, _Threads))

    def _shut(self) -> None:
        for processes in self._processes:
            processes.close()
        for pool in self._threads:
            pool.shutdown(wait=False, cancel_futures=True)


async def _finished(calls: Iterable[Future[Any]], seconds: float | None) -> None:
    """Wait until all calls have ended, or so many seconds."""
    waiting = [asyncio.wrap_future(call) for call in calls]
    done, left = await asyncio.wait(waiting, timeout=seconds)
    for call in left:
        call.cancel()
    for call in done:
        if not call.cancelled():
            call.exception()  # mark as seen
