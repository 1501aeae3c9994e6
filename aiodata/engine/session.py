"""A session: one opening of a pipeline, where it runs, and how its blocks are fetched from there."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.bridge import Bridge, serve
from aiodata.engine.handoff import HandOff
from aiodata.engine.plan import detachable, needs_loop, save_seeds
from aiodata.engine.run import Run
from aiodata.errors import EndedEarlyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator

    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor

__all__ = ["Session"]

_closing: set[asyncio.Task[None]] = set()


class _Pull:
    """Awaits one block so that another task can end the wait without cancelling the task that waits."""

    __slots__ = ("_cancelled", "_pull", "_waits_for", "ended", "interrupted")

    def __init__(self, pull: Awaitable[Any]) -> None:
        self._pull = pull
        self._waits_for: Any = None
        self.interrupted = self._cancelled = False
        self.ended = asyncio.Event()

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._pull.__await__()
        step: Callable[[], Any] | None = partial(next, steps)
        try:
            while True:
                try:
                    assert step is not None
                    self._waits_for = step()
                except StopIteration as finished:
                    return finished.value
                if self.interrupted:
                    self._end_wait()
                try:
                    yield self._waits_for
                except BaseException as error:
                    step = partial(steps.throw, error)
                else:
                    step = partial(next, steps)
        finally:
            # An error that passes through here holds this frame by its traceback, so the frame must not hold it.
            step = self._waits_for = None

    def interrupt(self) -> None:
        """End the wait: once, so that what is cleaned up then may wait in turn."""
        self.interrupted = True
        self._end_wait()

    def _end_wait(self) -> None:
        if self._waits_for is not None and not self._cancelled:
            self._cancelled = True
            self._waits_for.cancel()


class Session:
    """One opening of a pipeline.

    It is opened when it is made, which needs no loop; where it runs is settled by the first use.

    Args:
        plan: The pipeline.
        start: Where to open it; None for the start.
    """

    def __init__(self, plan: Plan, start: Cursor | None) -> None:
        self.plan = plan
        self.start = start
        self.seeds = save_seeds(plan)
        """The seed generators as they were before this opening drew from them."""
        self.run = Run(plan)
        self.closed = self.cancelled = False
        """Whether it has been closed; whether the cancelling of a pull has ended it."""
        self.orphaned = False
        """Whether its loop was shut down while it was open."""
        self.face = ""
        """Where it runs: "async" on the reader's loop, "stepped" by hand, "thread" on a private loop, "" not yet."""
        self._blocks: AsyncIterator[Block[Any]] = self.run.open(plan, start)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bridge: Bridge | None = None
        self._hand_off: HandOff | None = None
        self._pulling: _Pull | None = None
        self._reading = threading.Lock()

    def begin(self, asynchronous: bool, with_loop: bool = False) -> None:
        """Settle where the pipeline runs.

        Args:
            asynchronous: Whether the reader awaits its elements.
            with_loop: Whether a reader that does not needs a loop for them in any case.

        Raises:
            RuntimeError: It has been settled otherwise.
        """
        self.check(asynchronous)
        if self.face:
            return
        if asynchronous:
            self.face = "async"
            self._loop = asyncio.get_running_loop()
            self.run.end = self._end_with_loop
        elif not with_loop and not needs_loop(self.plan, apart_from=detachable(self.plan)):
            self.face = "stepped"
            self.run.stepped = True
        else:
            self.face = "thread"
            self.run.detaches = False
            self._hand_off = HandOff(None)
            self._bridge = Bridge(self.run, partial(serve, self._hand_off, self._blocks), self._hand_off)
            self._bridge.start()
        self.run.begin()

    def check(self, asynchronous: bool) -> None:
        """Refuse a reader that must not read now; the one that is reading is not disturbed.

        Raises:
            RuntimeError: The session is read in the other way, or another task is waiting for a block.
            EndedEarlyError: It belongs to another event loop.
        """
        if self.face and asynchronous != (self.face == "async"):
            read = "by async for" if self.face == "async" else "by a plain for"
            raise RuntimeError(f"this iterator is being read {read}; take another one to mix them")
        if self._pulling is not None:
            raise RuntimeError("another task is waiting for the next element of this iterator")
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise EndedEarlyError("the event loop that this iterator belongs to is not the running one")

    def fetch(self) -> Block[Any] | None:
        """Give the next block, blocking; None at the end, or when the session has been closed.

        Raises:
            BaseException: What ended the run.
            RuntimeError: Another thread is waiting for a block.
        """
        if self.closed:
            return None
        if not self._reading.acquire(blocking=False):
            raise RuntimeError("another thread is waiting for the next element of this iterator")
        try:
            return self._fetch()
        finally:
            self._reading.release()

    def _fetch(self) -> Block[Any] | None:
        self.begin(asynchronous=False)
        if self._hand_off is not None:
            return self._hand_off.get()
        steps = anext(self._blocks, None).__await__()
        try:
            next(steps)
        except StopIteration as finished:
            block: Block[Any] | None = finished.value
            return block
        raise RuntimeError("a stage that says it needs no event loop waited for one")

    async def fetch_async(self) -> Block[Any] | None:
        """Give the next block; None at the end, or when the session has been closed.

        Raises:
            BaseException: What ended the run.
            EndedEarlyError: The session was closed while it was being read.
        """
        if self.closed:
            return None
        self.begin(asynchronous=True)
        self._pulling = pulling = _Pull(anext(self._blocks, None))
        try:
            block: Block[Any] | None = await pulling
            if not pulling.interrupted:
                return block
            raise asyncio.CancelledError
        except BaseException as error:
            task = asyncio.current_task()
            if pulling.interrupted and not (task is not None and task.cancelling()):
                raise EndedEarlyError("the iterator was closed while it was being read") from error
            self.cancelled = isinstance(error, asyncio.CancelledError)
            raise
        finally:
            self._pulling = None
            pulling.ended.set()

    def close(self) -> None:
        """End the run; one that lives on the reader's loop is ended by that loop a moment later."""
        self.closed = True
        if self.face == "async":
            self._close_soon()
        elif self._bridge is not None:
            self._bridge.stop()
            self._bridge.join()
        elif not self.run.closed:
            self.run.close()

    async def aclose(self) -> None:
        """End the run, wherever it lives, and wait until nothing of it is alive."""
        self.closed = True
        if self.face != "async":
            self.close()
            return
        self.run.interrupts.stop()
        if self._pulling is not None:
            self._pulling.interrupt()
            await self._pulling.ended.wait()
        await self.run.aclose()

    async def _end_with_loop(self) -> None:
        self.orphaned = not self.closed
        await self.aclose()

    def _close_soon(self) -> None:
        if self.run.closed or self._loop is None:
            return
        try:
            if _running_loop() is self._loop:
                self._loop.call_soon(_start_closing, self)
            else:
                self._loop.call_soon_threadsafe(_start_closing, self)
        except RuntimeError:  # a closed loop has cancelled and closed everything itself
            self.run.abandon()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _start_closing(session: Session) -> None:
    task = asyncio.get_running_loop().create_task(session.aclose(), name="aiodata-close")
    _closing.add(task)  # else nobody would hold it
    task.add_done_callback(_closing.discard)
