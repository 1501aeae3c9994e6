"""Threads that nobody has to wait for.

A thread cannot be interrupted. A call that takes too long is left to itself instead, and with it its thread, which ends
when the call does; the next call gets another one. They are daemons, so they do not keep the interpreter alive either.
"""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Daemons"]

P = ParamSpec("P")
R = TypeVar("R")


class Daemons(Executor):
    """As many threads as there are calls at once; they are kept for the next calls.

    Args:
        name: What the threads are called.
        patience: Seconds that closing waits for a call that is under way.
        joined: Called in each thread, before its first call, if there is something to call.
    """

    def __init__(self, name: str, patience: float, joined: Callable[[], object] | None = None) -> None:
        self.name = name
        self.patience = patience
        self.joined = joined
        self._lock = threading.Lock()
        self._idle: list[_Daemon] = []
        self._busy: dict[Future[Any], _Daemon] = {}
        self._ending: list[_Daemon] = []
        self._closed = False

    @property
    def calls(self) -> list[Future[Any]]:
        """The calls that are under way, without those that were left to themselves."""
        with self._lock:
            return list(self._busy)

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Call a function in a thread, at once.

        Raises:
            RuntimeError: The threads have been shut down.
        """
        future: Future[R] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            daemon = self._idle.pop() if self._idle else _Daemon(self)
            if daemon.ident is None:
                daemon.start()
            self._busy[future] = daemon
        daemon.inbox.put((future, partial(fn, *args, **kwargs)))
        return future

    def leave(self, call: Future[Any]) -> None:
        """Leave a call to itself: nobody waits for it, and its thread ends with it."""
        with self._lock:
            self._busy.pop(call, None)

    def rest(self, daemon: _Daemon, call: Future[Any]) -> bool:
        """Note that a thread has finished a call; tell whether it is to wait for another one."""
        with self._lock:
            if self._busy.pop(call, None) is None:
                return False
            (self._ending if self._closed else self._idle).append(daemon)
            return not self._closed

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let all threads end.

        Args:
            wait: Wait for those whose calls have ended. The others are left to themselves.
            cancel_futures: Has no meaning here, for no call has to wait for its turn.
        """
        with self._lock:
            self._closed = True
            for daemon in self._idle:
                daemon.inbox.put(None)
            self._ending += self._idle
            self._idle.clear()
            if wait:
                self._busy.clear()
        while wait and self._ending:
            self._ending.pop().join()


class _Daemon(threading.Thread):
    def __init__(self, pool: Daemons) -> None:
        super().__init__(name=pool.name, daemon=True)
        self.inbox: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._pool = pool

    def run(self) -> None:
        if self._pool.joined is not None:
            self._pool.joined()
        while (work := self.inbox.get()) is not None:
            stays = self._carry_out(*work)
            del work
            if not stays:
                return

    def _carry_out(self, future: Future[Any], call: Callable[[], Any]) -> bool:
        if not future.set_running_or_notify_cancel():
            return self._pool.rest(self, future)
        # The thread is at rest before anybody hears of the result, so that the next call finds it.
        try:
            result = call()
        except BaseException as error:
            stays = self._pool.rest(self, future)
            future.set_exception(error)
            del future, call  # else the error and this frame, which its traceback holds, would be a cycle
        else:
            stays = self._pool.rest(self, future)
            future.set_result(result)
        return stays
