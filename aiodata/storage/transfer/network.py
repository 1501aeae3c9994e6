"""The event loop that reads from and writes to remote storage: one for the process, in a thread of its own.

On a loop of its own a download goes on while a training step holds the caller's loop, a plain `for` needs no other loop
than that, a thread that parses a Parquet file can wait for its bytes, and all pipelines of the process share
connections and limits. It costs a hop between threads a piece, of up to a megabyte.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aiodata.engine.handoff import SIGNAL_SECONDS
from aiodata.errors import EndedEarlyError
from aiodata.storage.schemes import new_storage
from aiodata.storage.transfer.limits import Limits
from aiodata.storage.transfer.mailbox import Call, Mailbox, mailbox_of

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from aiodata.engine.interrupts import Interrupts
    from aiodata.engine.run import Run
    from aiodata.storage.protocol import Storage

__all__ = ["Lease", "Limits", "Network", "end_tasks", "lease_of", "network_of", "result_of"]

R = TypeVar("R")
CLOSE_SECONDS = 5.0
"""How long closing waits for storages that do not end what is cancelled, or do not close."""
AGAIN_SECONDS = 0.1
THREADS = 32
logger = logging.getLogger("aiodata")


def result_of(future: Future[R]) -> R:
    """Wait in this thread for what the network's loop does; Ctrl-C ends the waiting."""
    try:
        while True:
            try:
                return future.result(SIGNAL_SECONDS)
            except NotYet:
                if future.done():
                    raise
    finally:
        del future  # see `Network.wait`


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended: a storage's own code may swallow that, so not for ever."""
    left = {task for task in tasks if not task.done()}
    deadline = monotonic() + CLOSE_SECONDS
    while left and monotonic() < deadline:
        for task in left:
            task.cancel()
        left = (await asyncio.wait(left, timeout=AGAIN_SECONDS))[1]
    if left:
        logger.error("%d requests do not end although they have been cancelled; they are left to themselves", len(left))


class Network:
    """The loop, its thread, and the storages that have been used. It is made and ended by `Lease`s."""

    def __init__(self) -> None:
        self.limits = Limits()
        self._storages: dict[Any, Storage] = {}
        self._loop = asyncio.new_event_loop()
        self._mailbox = Mailbox(self._loop)
        self._process = os.getpid()
        self._is_ended = self._is_late = False
        self._threads: set[threading.Thread] = set()
        self._pool = ThreadPoolExecutor(THREADS, "aiodata-network", initializer=self._join)
        self._loop.set_default_executor(self._pool)
        self._thread = threading.Thread(target=self._run, name="aiodata-network", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._loop.close()
            raise

    @property
    def is_open(self) -> bool:
        """Whether it has not ended, and this is the process that it was made in: a fork of that has no such thread."""
        return self._process == os.getpid() and not self._loop.is_closed()

    def is_thread(self, thread: threading.Thread) -> bool:
        """Tell whether a thread is the network's: one that would wait for itself if it waited for what is asked."""
        return thread is self._thread

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
        self._check(work)
        loop = asyncio.get_running_loop()
        call = Call(work, loop.create_future(), mailbox_of(loop))
        call.answer.add_done_callback(lambda answer: self._mailbox.post(call.cancel) if answer.cancelled() else None)
        self._mailbox.post(call.begin)
        return call.answer

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Have a coroutine run on the network's loop; cancelling the future cancels it."""
        self._check(work)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, R], interrupts: Interrupts | None = None) -> R:
        """Run a coroutine on the network's loop while this thread waits; Ctrl-C ends it.

        Args:
            work: The coroutine.
            interrupts: What may end it, too.

        Raises:
            EndedEarlyError: They have.
        """
        if self.is_thread(threading.current_thread()):
            work.close()
            raise RuntimeError(
                "what runs on the network's own loop cannot wait for it; await `aread_file` there, for example"
            )
        future = self.submit(work)
        try:
            if interrupts is None:
                return result_of(future)
            with interrupts.during(future.cancel):
                return result_of(future)
        except CancelledError:
            if interrupts is None:
                raise
            raise EndedEarlyError("the pipeline was closed while a function of it waited for the network") from None
        finally:
            future.cancel()
            del future  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that closes something, and wait for it as far as this thread can.

        The cycle collector may have come to an iterator in the network's own thread. In a fork, or after the end, there
        is nothing to do.
        """
        if not self.is_open:
            work.close()
        elif self.is_thread(threading.current_thread()):
            self.submit(work)
        else:
            self.wait(work)

    def _check(self, work: Coroutine[Any, Any, Any]) -> None:
        if not self.is_open:
            work.close()
            forked = self._process != os.getpid()
            why = "before the process forked; open it anew in the child" if forked else "for what has been closed"
            raise EndedEarlyError(f"this was opened {why}")

    def _join(self) -> None:
        self._threads.add(threading.current_thread())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while not self._is_ended:
                with contextlib.suppress(KeyboardInterrupt, SystemExit):  # a storage's: whoever waits for it gets it
                    self._loop.run_forever()
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def end(self, is_late: bool = False) -> None:
        """Close all connections and end the thread, which is waited for."""
        self._is_late = is_late  # the interpreter is ending: storages that need new threads to close get none any more
        deadline = monotonic() + CLOSE_SECONDS
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._end()))
        current = threading.current_thread()
        if not self.is_thread(current):
            self._thread.join()
            for thread in self._threads - {current}:  # one may be looking up a name, which cannot be interrupted
                thread.join(max(0.0, deadline - monotonic()))

    async def _end(self) -> None:
        try:
            await end_tasks(asyncio.all_tasks() - {asyncio.current_task()})
            closing = [asyncio.create_task(each.aclose()) for each in self._storages.values()]
            closing.append(asyncio.create_task(self._loop.shutdown_asyncgens()))
            await asyncio.wait(closing, timeout=CLOSE_SECONDS)
            await end_tasks(closing)
            for closed in closing:
                if closed.done() and not closed.cancelled() and (error := closed.exception()) and not self._is_late:
                    logger.error("an error while closing connections: %r", error)
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._is_ended = True
            self._loop.stop()


class _Closes(Protocol):
    async def aclose(self) -> Any: ...


_lock = threading.RLock()  # the cycle collector may come upon a lease while another one is made
_network: Network | None = None
_leases = 0


class Lease:
    """The use of the network by a run, or by whatever else reads or writes; the last one that is closed ends it."""

    def __init__(self) -> None:
        global _network, _leases
        self._process = os.getpid()
        self._open = False
        self.opened: set[_Closes] = set()
        """What belongs to the network's loop and is closed with this, if nobody has before."""
        with _lock:
            _leases += 1  # first: the collector may close another one meanwhile, which is not the last now
            try:
                if _network is None:
                    _network = Network()
                self.network = _network
            except BaseException:
                _leases -= 1
                raise
            self._open = True

    def hold(self, thread: threading.Thread) -> bool:
        """Tell whether a thread is the network's."""
        return self.network.is_thread(thread)

    def close(self) -> None:
        """End the use; doing it again, or in a fork of the process, does nothing."""
        global _network, _leases
        with _lock:
            if not self._open or self._process != os.getpid():
                return
            self._open = False
            _leases -= 1
            is_last = _leases == 0
            if is_last:
                _network = None
        if is_last:
            self.network.end()
        elif self.opened:
            self.network.submit(_close(list(self.opened)))
        self.opened.clear()


async def _close(opened: list[_Closes]) -> None:
    """Close what a run has left whose loop is gone."""
    for each in opened:
        await each.aclose()


def lease_of(run: Run) -> Lease:
    """Give a run's lease, which ends with it."""
    return run.pools.share(Lease)


def network_of(run: Run) -> Network:
    """Give the network to a run, until that ends."""
    return lease_of(run).network


def _forget() -> None:
    """Begin anew in a fork: the thread is the parent's, and the lock may be held by another one of its threads."""
    global _network, _leases, _lock
    _network, _leases, _lock = None, 0, threading.RLock()


def _end_all() -> None:
    """Close the connections of iterators that are open when the program ends."""
    global _network
    with _lock:
        network, _network = _network, None
    if network is not None:
        network.end(is_late=True)


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
