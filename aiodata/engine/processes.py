"""Worker processes, each of which can be killed without a trace in the others.

A worker has a pipe of its own. A thread sends it a request and waits for the answer; meanwhile it looks at the worker's
record, where the worker notes which call it is at and since when. So a call that takes too long is found even if it
holds the interpreter's lock, and it costs a call next to nothing.
"""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.util  # now, so that what it does at exit comes after what this module does then
import os
import pickle
import threading
from concurrent.futures.process import BrokenProcessPool
from math import inf
from multiprocessing.connection import wait
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiodata.engine.serving import Record, dumps, serve
from aiodata.engine.workers import Overdue

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from aiodata.engine.daemons import Daemons

__all__ = ["Processes"]

LOOK_SECONDS = 1.0
"""How often to look whether a worker is alive: what it has started may hold its pipe open when it is gone."""

DEAD_SECONDS = 5.0
"""How long to wait for a killed process; one that the system holds in a call of its own may take longer."""

_alive: set[_Worker] = set()
_exiting = False
_book = threading.Lock()
"""Held while a process is started or forgotten: `multiprocessing` looks through all its children then."""


@atexit.register
def _kill_all() -> None:
    global _exiting
    with _book:
        _exiting = True
        for worker in _alive:
            worker.kill()
        for worker in _alive:
            worker.wait()
            worker.free()


def _forget_all() -> None:
    """In a fork: the workers are those of the other process."""
    global _book
    _alive.clear()
    _book = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class _Worker:
    """A freshly started process.

    It is started anew (`spawn`), not forked: a fork of a process with threads may copy a held lock.
    """

    def __init__(self, limit: float | None, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._limit = limit
        self._owner = os.getpid()
        self.usable = True
        """Whether it can be sent another request."""
        self._record = None if limit is None else Record()
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        name = None if self._record is None else self._record.name
        self.process = context.Process(target=serve, args=(theirs, name, make, arguments), name="aiodata-worker")
        try:
            with _book:
                if _exiting:
                    raise BrokenProcessPool("the interpreter is ending")
                self.process.start()
                _alive.add(self)
        except BaseException:
            self.free()
            raise
        finally:
            theirs.close()

    def ask(self, request: Any) -> Any:
        """Send a request, wait for the answer, and give or raise it.

        Raises:
            Overdue: A call of the request took too long; the process is dead.
            BrokenProcessPool: The process has ended.
            Exception: What the worker raised; or the request or the answer cannot be pickled.
        """
        data = dumps(request)
        if self._record is not None:
            self._record.clear()
        try:
            self._connection.send_bytes(data)
            while not wait([self._connection, self.process.sentinel], self._until_next_look()):
                self._look()
            if not self._connection.poll():
                raise EOFError
            data = self._connection.recv_bytes()
        except (EOFError, OSError):
            self.usable = False
            self.wait()
            raise BrokenProcessPool(f"a worker process ended with exit code {self.process.exitcode}") from None
        succeeded, answer = pickle.loads(data)
        if not succeeded:
            try:
                raise answer
            finally:
                del answer  # else it and this frame, which its traceback holds, would be a cycle
        return answer

    def _until_next_look(self) -> float:
        if self._record is None or self._limit is None:
            return LOOK_SECONDS
        began = self._record.read()[1]
        left = self._limit if began == inf else began + self._limit - monotonic()
        return min(LOOK_SECONDS, max(0.001, left))

    def _look(self) -> None:
        if self._record is not None and self._limit is not None:
            now = monotonic()
            call, began = self._record.read()
            if now - began > self._limit:
                self.usable = False
                self.kill()
                raise Overdue(call)
        if self.process.exitcode is not None:
            raise EOFError

    def kill(self) -> None:
        """Kill the process; not in a fork of the one that started it."""
        if self._owner == os.getpid():
            self.process.kill()

    def wait(self) -> None:
        """Wait for the end of the process; its sentinel alone would not do, for what it started may hold that too."""
        deadline = monotonic() + DEAD_SECONDS
        while self.process.exitcode is None and monotonic() < deadline:
            wait([self.process.sentinel], 0.01)

    def free(self) -> None:
        """Give back what it shares with the process."""
        self._connection.close()
        record, self._record = self._record, None
        if record is not None:
            record.remove()

    def end(self) -> None:
        """Kill the process, wait until it is gone, and forget it."""
        if self._owner != os.getpid():
            return
        self.kill()
        self.wait()
        with _book:
            _alive.discard(self)
            self.free()
            if self.process.exitcode is not None and not _exiting:  # then `multiprocessing` is about to join it
                self.process.close()


class Processes:
    """As many workers as there are requests at once; they are kept for the next requests.

    Args:
        limit: Seconds that each call of a request may take; None for no limit.
        make: Called in a fresh worker with `arguments`; gives the function that answers a request. That function gets
            the request and a `Record`, in which it notes each call, or None if there is no limit.
        arguments: For `make`; pickled.
        threads: Wait for the workers.
    """

    def __init__(
        self, limit: float | None, make: Callable[..., Any], arguments: tuple[Any, ...], threads: Daemons
    ) -> None:
        self._new = (limit, make, arguments)
        self._threads = threads
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._closed = False

    def submit(self, request: Any) -> Future[Any]:
        """Have a worker answer a request. If the worker is dead afterwards, the next request gets another one.

        Returns:
            A future of the answer. It raises `Overdue` if a call took too long, `BrokenProcessPool` if the worker ended
            by itself, else what was raised in the worker, or what prevented that something was pickled.
        """
        return self._threads.submit(self._ask, request)

    def _ask(self, request: Any) -> Any:
        worker = self._take()
        try:
            return worker.ask(request)
        finally:
            with self._lock:
                self._busy.discard(worker)
                keep = worker.usable and not self._closed
                if keep:
                    self._idle.append(worker)
            if not keep:
                worker.end()

    def _take(self) -> _Worker:
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
                if worker is None:
                    break
                if worker.process.exitcode is None:
                    self._busy.add(worker)
                    return worker
            worker.end()  # the system has killed it since
        worker = _Worker(*self._new)
        with self._lock:
            closed = self._closed
            if not closed:
                self._busy.add(worker)
        if closed:
            worker.end()
            raise BrokenProcessPool("the pipeline has been closed")
        return worker

    def close(self) -> None:
        """Kill all workers. Those that were idle are gone then; a busy one soon, and whoever waits for it is told."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for worker in (*idle, *self._busy):
                worker.kill()
        for worker in idle:
            worker.end()
