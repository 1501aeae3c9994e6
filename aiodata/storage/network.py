"""The event loop that reads from and writes to remote storage: one for the process, in a thread of its own.

On a loop of its own a download goes on while a training step holds the caller's loop, a plain `for` needs no other loop
than that, a thread that parses a Parquet file can wait for its bytes, and all pipelines of the process share
connections and limits. It costs a hop between threads a piece, of up to a megabyte.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import Counter, deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aiodata.engine.handoff import SIGNAL_SECONDS
from aiodata.storage.mailbox import Mailbox, mailbox_of
from aiodata.storage.schemes import new_storage

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from aiodata.engine.run import Run
    from aiodata.storage.protocol import Storage

__all__ = ["Lease", "Limits", "Network", "network_of"]

R = TypeVar("R")
CLOSE_SECONDS = 5.0
"""How long closing waits for storages to close their connections."""


class Limits:
    """What all transfers of the process have together; it belongs to the network's loop."""

    def __init__(self) -> None:
        self.held = 0
        """Bytes that files hold or have asked for."""
        self._busy: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def enter(self, host: str, most: int) -> None:
        """Wait until fewer than `most` requests to a host are under way, first come first served; count one more."""
        if self._busy[host] < most:
            self._busy[host] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(host, deque())
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):
                    waiting.remove(turn)
            else:
                self.leave(host)  # it was given the turn just before
            raise

    def leave(self, host: str) -> None:
        """Count one request less: the next that waits has its place."""
        waiting = self._waiting.get(host)
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._waiting.pop(host, None)
        self._busy[host] -= 1
        if not self._busy[host]:
            del self._busy[host]


class Network:
    """The loop, its thread, and the storages that have been used. It is made and ended by `Lease`s."""

    def __init__(self) -> None:
        self.limits = Limits()
        self._storages: dict[str, Storage] = {}
        self._loop = asyncio.new_event_loop()
        self._mailbox = Mailbox(self._loop)
        self._thread = threading.Thread(target=self._run, name="aiodata-network", daemon=True)
        self._thread.start()

    def storage(self, url: str) -> Storage:
        """Give the storage of a URL; to be called on the network's loop, which is what storages are made on.

        Raises:
            ValueError: Nothing is known of such URLs.
            ImportError: The optional package for them is not installed.
        """
        return new_storage(url, self._storages)

    def call(self, work: Coroutine[Any, Any, R]) -> asyncio.Future[R]:
        """Have a coroutine run on the network's loop for a caller on another one, which awaits what this gives.

        Cancelling that cancels the coroutine.
        """
        loop = asyncio.get_running_loop()
        call = _Call(work, loop.create_future(), mailbox_of(loop))
        call.answer.add_done_callback(lambda answer: self._mailbox.post(call.cancel) if answer.cancelled() else None)
        self._mailbox.post(call.begin)
        return call.answer

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Have a coroutine run on the network's loop; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the network's loop while this thread waits; Ctrl-C ends it."""
        future = self.submit(work)
        try:
            while True:
                try:
                    return future.result(SIGNAL_SECONDS)
                except NotYet:
                    if future.done():
                        raise
        finally:
            future.cancel()
            del future  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def end(self) -> None:
        """Close all connections and end the thread, which is waited for."""
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._end()))
        if threading.current_thread() is not self._thread:
            self._thread.join()

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                tasks = asyncio.all_tasks() - {asyncio.current_task()}
                for task in tasks:
                    task.cancel()
                closing = [each.aclose() for each in self._storages.values()]
                await asyncio.gather(*tasks, *closing, return_exceptions=True)
                await self._loop.shutdown_asyncgens()
                await self._loop.shutdown_default_executor()
        except TimeoutError:
            pass
        finally:
            self._loop.stop()


class _Call(Generic[R]):
    """A coroutine that the network's loop runs for another one.

    Args:
        work: The coroutine.
        answer: Gets its outcome, on the caller's loop.
        back: The mailbox of that loop.
    """

    def __init__(self, work: Coroutine[Any, Any, R], answer: asyncio.Future[R], back: Mailbox) -> None:
        self.answer = answer
        self._work = work
        self._back = back
        self._task: asyncio.Task[R] | None = None

    def begin(self) -> None:
        """Begin, on the network's loop."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(lambda task: self._back.post(self._settle, task))

    def cancel(self) -> None:
        """Cancel it, on the network's loop."""
        if self._task is not None:
            self._task.cancel()

    def _settle(self, task: asyncio.Task[R]) -> None:
        """Hand the outcome on, on the caller's loop; an error that nobody waits for any more is nobody's."""
        self._task = None
        if self.answer.done():
            if not task.cancelled():
                task.exception()
        elif task.cancelled():
            self.answer.cancel()
        elif (error := task.exception()) is not None:
            self.answer.set_exception(error)
            del error  # else it and its frames would be a cycle
        else:
            self.answer.set_result(task.result())


_lock = threading.Lock()
_network: Network | None = None
_leases = 0


class Lease:
    """The use of the network by a run, or by whatever else reads or writes; the last one that is closed ends it."""

    def __init__(self) -> None:
        global _network, _leases
        with _lock:
            if _network is None:
                _network = Network()
            self.network = _network
            _leases += 1
        self._process = os.getpid()
        self._open = True

    def close(self) -> None:
        """End the use; doing it again, or in a fork of the process, does nothing."""
        global _network, _leases
        last = False
        with _lock:
            if self._open and self._process == os.getpid():
                _leases -= 1
                last = _leases == 0
                if last:
                    _network = None
            self._open = False
        if last:
            self.network.end()


def network_of(run: Run) -> Network:
    """Give the network to a run, until that ends."""
    return run.pools.share(Lease).network


def _forget() -> None:
    """Begin anew in a fork: the thread is the parent's, and the lock may be held by another one of its threads."""
    global _network, _leases, _lock
    _network, _leases, _lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
