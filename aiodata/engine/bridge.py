"""The bridge: a part of a pipeline that runs on a private loop in a private thread.

It serves the plain `for` loop, and the look-ahead that must go on while the reader's own loop is held by a
training step.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from aiodata.engine.job import as_failure
from aiodata.engine.workers import wait_out

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiodata.engine.block import Block
    from aiodata.engine.handoff import HandOff
    from aiodata.engine.run import Run

__all__ = ["Bridge", "serve"]


async def serve(hand_off: HandOff, blocks: AsyncIterator[Block[Any]]) -> None:
    """Give the reader in the other thread one block each time it waits for one; its elements stay lazy."""
    while True:
        await hand_off.room()
        block = await anext(blocks, None)
        if block is None:
            break
        hand_off.put(block)
        del block
    hand_off.end()


def _works_for(run: Run, thread: threading.Thread) -> bool:
    return run.pools.hold(thread) or any(_works_for(child, thread) for child in run.children)


class Bridge:
    """A thread that runs `body`, then ends `run`, then ends itself; with a loop, unless the run is stepped.

    Args:
        run: The run whose stages live on that loop.
        body: Moves blocks from the run to the hand-off.
        hand_off: Where the reader waits.
    """

    def __init__(self, run: Run, body: Callable[[], Awaitable[None]], hand_off: HandOff) -> None:
        self._run = run
        self._body = body
        self._hand_off = hand_off
        self._lock = threading.Lock()
        self._stopped = False
        self._cancel: Callable[[], object] | None = None
        self._thread: threading.Thread | None = None
        self._finished: Future[None] = Future()

    def start(self) -> None:
        """Start the thread; a daemon, so that an iterator nobody closed does not keep the interpreter alive."""
        self._thread = threading.Thread(target=self._work, name="aiodata-loop", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        self._run.interrupts.own_thread()
        try:
            if self._run.stepped:
                self._step()
            else:
                with asyncio.Runner() as runner:
                    runner.run(self._main())
        except BaseException as error:  # the reader must hear of whatever ends this thread
            self._hand_off.end(as_failure(error))
        finally:
            self._finished.set_result(None)

    def _step(self) -> None:
        """Do the work with no loop: nothing in it waits but for room in the hand-off, and there the thread waits."""
        try:
            self._attend().send(None)
        except StopIteration:
            self._run.close()
            return
        raise RuntimeError("a stage that says it needs no event loop waited for one")

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._attend())
        with self._lock:
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._stopped:
                task.cancel()
        try:
            await wait_out(task)
        finally:
            with self._lock:
                self._cancel = None
            await self._run.aclose()

    async def _attend(self) -> None:
        try:
            await self._body()
        except BaseException as error:
            self._hand_off.end(as_failure(error))  # which drops it if the reader has gone

    def stop(self) -> None:
        """Ask the thread to end; callable from any thread, more than once."""
        self._hand_off.close()
        self._run.interrupts.stop()
        with self._lock:
            self._stopped = True
            if self._cancel is not None:
                self._cancel()

    def join(self) -> None:
        """Wait, blocking, until the thread has ended; does nothing in a thread that this one waits for.

        A worker of the run may be the last to hold an error, and by its traceback the iterator, which is dropped there
        then. While the interpreter is being torn down, a daemon thread stands still: it would be waited for in vain.
        """
        current = threading.current_thread()
        if self._thread is None or self._thread is current or sys.is_finalizing() or _works_for(self._run, current):
            return
        self._thread.join()

    async def wait(self) -> None:
        """Wait, letting the loop run, until the thread has ended."""
        if self._thread is not None:
            try:
                await wait_out(asyncio.wrap_future(self._finished))
            finally:
                self._thread.join()  # it has nothing left to do
