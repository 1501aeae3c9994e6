"""The hand-off: a channel whose writer runs on a private loop in another thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from aiodata.engine.channel import Buffer, End
from aiodata.errors import EndedEarlyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.block import Block

__all__ = ["HandOff"]

SIGNAL_SECONDS = 0.5
"""How long Ctrl-C is not noticed at worst: a signal that comes just before a lock waits does not end the waiting."""


class HandOff:
    """A bounded queue of blocks from a loop in one thread to a reader in another.

    Args:
        buffer: How far ahead the writer may run. None means not at all: it computes a block only once the reader
            waits for one, and the block's lazy elements are then computed by the reader.
        blocking: The writer has a thread but no loop: `room` then blocks instead of waiting.
    """

    def __init__(self, buffer: Buffer | None, blocking: bool = False) -> None:
        self.buffer = buffer
        self._blocking = blocking
        self._lock = threading.Lock()
        self._items: deque[Block[Any] | End] = deque()
        self._waiting = 0
        self._writer: Callable[[], None] | None = None
        self._reader: Callable[[], None] | None = None
        self._closed = False
        self._process = os.getpid()

    def _free(self) -> int:
        if self._closed:
            return 1
        if self.buffer is None:
            return 1 if self._reader is not None and not self._items else 0
        return self.buffer.free(self._waiting)

    async def room(self) -> int:
        """Wait until there is room; give how many elements to compute next."""
        while True:
            with self._lock:
                if free := self._free():
                    break
                if self._blocking:
                    gate = threading.Lock()
                    gate.acquire()
                    self._writer = gate.release
                else:
                    loop = asyncio.get_running_loop()
                    future = loop.create_future()
                    self._writer = _waker(loop, future)
            if self._blocking:
                gate.acquire()
            else:
                await future
        if self._closed:
            raise EndedEarlyError("the pipeline has been closed")
        return free

    def put(self, block: Block[Any]) -> None:
        """Add a block, for which there must be room."""
        self._add(block, block.length or 0)

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes, or that the writer failed."""
        self._add(End(error), 0)

    def _add(self, item: Block[Any] | End, size: int) -> None:
        with self._lock:
            if self._closed:
                return
            self._items.append(item)
            self._waiting += size
            reader, self._reader = self._reader, None
        if reader is not None:
            reader()

    def _take(self, wake_reader: Callable[[], None]) -> Block[Any] | End | None:
        """Take what is ready, or leave `wake_reader` to be called when something is."""
        if self._process != os.getpid():
            raise EndedEarlyError("this iterator was opened before the process forked; open a new one in the child")
        writer = None
        try:
            with self._lock:
                if self._closed:
                    raise EndedEarlyError("the pipeline was closed while it was being read")
                item = self._items[0] if self._items else None
                if isinstance(item, End):
                    self._items[0] = End(None)  # asking again after the end, or after the error, gives the end
                elif item is not None:
                    self._items.popleft()
                    self._waiting -= item.length or 0
                    if self.buffer is not None:
                        self.buffer.give(item)
                else:
                    self._reader = wake_reader
                    if self.buffer is not None:
                        self.buffer.in_hand = 0
                        self.buffer.found_empty()
                if self._writer is not None and self._free():
                    writer, self._writer = self._writer, None
        finally:
            if writer is not None:
                writer()
        return item

    def get(self) -> Block[Any] | None:
        """Wait, blocking this thread, for the next block; None at the end.

        Raises:
            BaseException: What ended the writer.
            EndedEarlyError: The hand-off was closed, or belongs to another process.
        """
        while True:
            gate = threading.Lock()
            gate.acquire()
            item = self._take(gate.release)
            if item is not None:
                return _opened(item)
            while not gate.acquire(timeout=SIGNAL_SECONDS):
                pass

    async def get_async(self) -> Block[Any] | None:
        """Wait, letting this thread's loop run, for the next block; None at the end; raises as `get`."""
        loop = asyncio.get_running_loop()
        while True:
            future = loop.create_future()
            item = self._take(_waker(loop, future))
            if item is not None:
                return _opened(item)
            await future

    def close(self) -> None:
        """Drop everything that waits and wake both sides; callable from any thread."""
        with self._lock:
            self._closed = True
            self._items.clear()
            self._waiting = 0
            wakers = (self._reader, self._writer)
            self._reader = self._writer = None
        for waker in wakers:
            if waker is not None:
                waker()


def _opened(item: Block[Any] | End) -> Block[Any] | None:
    if isinstance(item, End):
        item.open()
        return None
    return item


def _waker(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> Callable[[], None]:
    """Make a callable that ends the wait for `future` from any thread, also after its loop has closed."""

    def finish() -> None:
        if not future.done():
            future.set_result(None)

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # a closed loop has nobody waiting on it
            loop.call_soon_threadsafe(finish)

    return wake
