"""Pools of worker processes, and the workers that wait for the next run of the same pipeline."""

from __future__ import annotations

import os
import threading
import weakref
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

from aiodata.engine.worker_process import Rested, Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from aiodata.engine.daemons import Daemons
    from aiodata.engine.plan import Plan

__all__ = ["Crew", "Processes"]


class Crew:
    """The idle workers of one pipeline; those that no run needs end by themselves, or with the pipeline."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._idle: list[Worker] = []
        self._pools = 0
        self._owner = os.getpid()

    @staticmethod
    def of(plan: Plan) -> Crew:
        """Give the crew of a pipeline, which ends with it; in a fork it is another one."""
        with _crews_lock:
            crew = _crews.get(plan)
            if crew is None or crew._owner != os.getpid():
                crew = _crews[plan] = Crew()
                weakref.finalize(plan, crew.end).atexit = False
            return crew

    def join(self) -> None:
        """Note that a run has use for workers, and forget those that are gone."""
        with self._lock:
            self._pools += 1
            gone = [worker for worker in self._idle if worker.process.exitcode is not None]
            self._idle = [worker for worker in self._idle if worker not in gone]
        for worker in gone:
            worker.end()

    def leave(self) -> None:
        """Note that a run has no more use for workers. When it was the last one, the idle workers rest.

        Those that have been resting since before are ended: their function is not the one that is called now.
        """
        with self._lock:
            self._pools -= 1
            if self._pools:
                return
            unused = [worker for worker in self._idle if worker.resting]
            self._idle = [worker for worker in self._idle if not worker.resting]
            for worker in self._idle:
                worker.rest()
        for worker in unused:
            worker.end()

    def take(self, made_from: tuple[Any, ...]) -> Worker | None:
        """Give an idle worker that is made from just that."""
        while True:
            with self._lock:
                worker = next((each for each in reversed(self._idle) if each.made_from == made_from), None)
                if worker is None:
                    return None
                self._idle.remove(worker)
                if worker.process.exitcode is None:
                    return worker
            worker.end()  # the system has killed it since

    def give(self, worker: Worker) -> None:
        """Keep a worker that is idle."""
        with self._lock:
            self._idle.append(worker)

    def end(self) -> None:
        """Kill the idle workers, and wait until they are gone."""
        if self._owner != os.getpid():
            return
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()
        for worker in idle:
            worker.end()


_crews: weakref.WeakKeyDictionary[Plan, Crew] = weakref.WeakKeyDictionary()
_crews_lock = threading.RLock()


def _renew_lock() -> None:
    """In a fork: whoever held the lock is not there."""
    global _crews_lock
    _crews_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Processes:
    """As many workers as there are requests at once; they are kept for the next requests, and the next run.

    Args:
        plan: The pipeline; while there is somebody who could read it again, its idle workers are kept for a while.
        limit: Seconds that each call of a request may take; None for no limit.
        make: Called in a fresh worker with `arguments`; gives the function that answers a request. That function gets
            the request and a `Record`, in which it notes each call, or None if there is no limit.
        arguments: For `make`; pickled. Workers are shared by those who want the same of them.
        threads: Wait for the workers.
    """

    def __init__(
        self,
        plan: Plan,
        limit: float | None,
        make: Callable[..., Any],
        arguments: tuple[Any, ...],
        threads: Daemons,
    ) -> None:
        self._new = (limit, make, arguments)
        self._threads = threads
        self._lock = threading.Lock()
        self._busy: set[Worker] = set()
        self._closed = False
        self._crew = Crew.of(plan)
        self._crew.join()

    def submit(self, request: Any) -> Future[Any]:
        """Have a worker answer a request. If the worker is dead afterwards, the next request gets another one.

        Returns:
            A future of the answer. It raises `Overdue` if a call took too long, `BrokenProcessPool` if the worker ended
            by itself, else what was raised in the worker, or what prevented that something was pickled.
        """
        return self._threads.submit(self._ask, request)

    def _ask(self, request: Any) -> Any:
        while True:
            worker = self._take()
            try:
                return worker.ask(request)
            except Rested:
                continue
            finally:
                with self._lock:
                    self._busy.discard(worker)
                    keep = worker.usable and not self._closed
                if keep:
                    self._crew.give(worker)
                else:
                    worker.end()

    def _take(self) -> Worker:
        worker = self._crew.take(self._new) or Worker(*self._new)
        with self._lock:
            closed = self._closed
            if not closed:
                self._busy.add(worker)
        if closed:
            worker.end()
            raise BrokenProcessPool("the pipeline has been closed")
        return worker

    def close(self) -> None:
        """Kill the workers that are busy: they are gone soon, and whoever waits for one is told. The others rest."""
        with self._lock:
            closed, self._closed = self._closed, True
            for worker in self._busy:
                worker.kill()
        if not closed:
            self._crew.leave()
