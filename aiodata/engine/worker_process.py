"""A worker process, which can be killed without a trace in the others.

A worker has a pipe of its own. A thread sends it a request and waits for the answer; meanwhile it looks at the worker's
record, where the worker notes which call it is at and since when. So a call that takes too long is found even if it
holds the interpreter's lock, and it costs a call next to nothing.
"""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.util  # now, so that what it does at exit comes after what this module does then
import os
import threading
from concurrent.futures.process import BrokenProcessPool
from math import inf
from multiprocessing.connection import wait
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiodata.engine.messages import Exchange, memory_file, pack, unpack
from aiodata.engine.serving import Record, serve
from aiodata.engine.workers import Overdue

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Rested", "Worker"]

LOOK_SECONDS = 1.0
"""How often to look whether a worker is alive: what it has started may hold its pipe open when it is gone."""

DEAD_SECONDS = 5.0
"""How long to wait for a killed process; one that the system holds in a call of its own may take longer."""

_alive: set[Worker] = set()
_exiting = False
_book = threading.RLock()
"""Held while a process is started or forgotten: `multiprocessing` looks through all its children then. The cycle
collector may want to end some workers meanwhile, in the same thread."""


@atexit.register
def _kill_all() -> None:
    global _exiting
    with _book:
        _exiting = True
        workers = list(_alive)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()
            worker.free()


def _forget_all() -> None:
    """In a fork: the workers are those of the other process."""
    global _book
    _alive.clear()
    _book = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class Rested(Exception):
    """A worker that was resting has ended, as it was to; it has not seen the request."""


class Worker:
    """A freshly started process.

    It is started anew (`spawn`), not forked: a fork of a process with threads may copy a held lock.

    Args:
        limit: Seconds that each call of a request may take; None for no limit.
        make: As for `Processes`.
        arguments: For `make`.
    """

    def __init__(self, limit: float | None, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.made_from = (limit, make, arguments)
        self.owner = os.getpid()
        self.usable = True
        """Whether it can be sent another request."""
        self._limit = limit
        self.resting = False
        """Whether it ends by itself unless it is asked something soon."""
        self._record = None if limit is None else Record()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        file = memory_file()
        self._exchange = Exchange(ours, file)
        name = None if self._record is None else self._record.name
        arguments = (Exchange(theirs, file), name, make, arguments)
        self.process = context.Process(target=serve, args=arguments, name="aiodata-worker")
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
            Rested: The process has ended before it saw the request, since nobody needed it for long.
            BrokenProcessPool: The process has ended.
            Exception: What the worker raised; or the request or the answer cannot be pickled.
        """
        parts = pack(request)
        if self._record is not None:
            self._record.clear()
        try:
            self._exchange.send(parts)
            answers = self._exchange.connection
            while not (ready := wait([answers, self.process.sentinel], self._until_next_look())):
                self._look()
            if answers not in ready and not answers.poll():  # it may have answered and ended since
                raise EOFError
            found = self._exchange.receive()
        except (EOFError, OSError):
            self.usable = False
            self.wait()
            if self.resting and self.process.exitcode == 0:
                raise Rested from None
            raise BrokenProcessPool(f"a worker process ended with exit code {self.process.exitcode}") from None
        assert found is not None
        self.resting = False
        succeeded, answer = unpack(found)
        if not succeeded:
            try:
                raise answer
            finally:
                del answer  # else it and this frame, which its traceback holds, would be a cycle
        return answer

    def rest(self) -> None:
        """Have the process end by itself unless it is asked something soon."""
        try:
            self._exchange.send_rest()
        except OSError:
            self.usable = False
        self.resting = True

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
        if self.owner == os.getpid():
            self.process.kill()

    def wait(self) -> None:
        """Wait for the end of the process; its sentinel alone would not do, for what it started may hold that too."""
        deadline = monotonic() + DEAD_SECONDS
        while self.process.exitcode is None and monotonic() < deadline:
            wait([self.process.sentinel], 0.01)

    def free(self) -> None:
        """Give back what it shares with the process."""
        self._exchange.close()
        record, self._record = self._record, None
        if record is not None:
            record.remove()

    def end(self) -> None:
        """Kill the process, wait until it is gone, and forget it."""
        if self.owner != os.getpid():
            return
        self.kill()
        self.wait()
        with _book:
            _alive.discard(self)
            self.free()
            if self.process.exitcode is not None and not _exiting:  # then `multiprocessing` is about to join it
                self.process.close()
