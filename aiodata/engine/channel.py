"""What joins a stage that runs ahead to its reader: a bounded `asyncio.Queue` of computed blocks.

`Buffer` holds the rule of how far ahead to run; `Channel` joins two tasks of one loop, and
`aiodata.engine.handoff.HandOff` two threads.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from aiodata.engine.budget import weight
from aiodata.errors import EndedEarlyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.engine.block import Block
    from aiodata.engine.budget import Share
    from aiodata.engine.statistics import Counters

__all__ = ["Buffer", "Channel", "End", "Writer", "fill"]

CHUNK_SECONDS = 0.0002
LARGEST_TUNED = 1024
LARGEST_BYTES = 64 << 20


class End:
    """What stands behind the last block: a private type, so that no user's element can be taken for it."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def open(self) -> None:
        """Raise the error, if there is one; once, and without a cycle of the error and its traceback's frames."""
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error


class Buffer:
    """How many elements may be ahead of the reader, and in what portions they go over.

    At most `capacity` elements have been computed and not yet been pulled by the reader: those that wait, and
    those of the portion that the reader has in hand.

    Args:
        capacity: That number, at least 1; 0 or less means automatic, from 1 up to 1,024: doubled whenever the reader
            finds nothing although the buffer has been full before, which is tf.data's rule for prefetching.
        counters: Statistics of the stage that reads ahead.
        most_bytes: Where given, the capacity shrinks so that elements as large as the largest seen so far fit.
        share: What an automatic buffer holds of the budget of memory: the capacity shrinks and grows within that, and
            instead of a capacity that is given, `most_bytes` is doubled.
    """

    def __init__(
        self, capacity: int, counters: Counters, most_bytes: int | None = None, share: Share | None = None
    ) -> None:
        self.counters = counters
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._share = share
        self._largest = 0
        self._was_full = False
        self._size = 0
        self.in_hand = 0
        """Elements of the portion that the reader took last; one that came computed counts as one."""
        self.size = max(1, capacity)

    @property
    def size(self) -> int:
        """The capacity now."""
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        """Change the capacity."""
        self._size = size
        self.counters.capacity = size
        self.portion = (size + 1) // 2

    def free(self, waiting: int) -> int:
        """Give how many elements to compute next when `waiting` are waiting; 0 to wait for the reader.

        Of the portion that the reader has in hand it is pulling one; the others count as being ahead.
        """
        room = self._size - waiting - max(0, self.in_hand - 1)
        least = max(1, self.portion // 2)  # not one by one, where the buffer is large
        if room < least:
            self._was_full = True
            return 0
        return min(room, self.portion)

    def give(self, portion: Block[Any]) -> None:
        """Note that the reader takes a portion."""
        self.in_hand = 1 if portion.is_whole else portion.length or 0

    def weigh(self, chunk: Block[Any]) -> None:
        """Look at the size of a chunk's elements, by its first one."""
        if self._most_bytes is not None or self._share is not None:
            self._largest = max(self._largest, weight(chunk))
            self._fit(self.size)

    def found_empty(self) -> None:
        """Count that the reader had to wait, and grow if that may help."""
        self.counters.waits += 1
        if self._was_full and (self._capacity < 1 or self._share is not None):
            self._was_full = False
            if self._most_bytes is not None:
                self._most_bytes = min(2 * self._most_bytes, LARGEST_BYTES)
            self._fit(self._capacity if self._capacity > 0 else min(2 * self.size, LARGEST_TUNED))

    def _fit(self, size: int) -> None:
        """Have the capacity that is wanted, as far as the limits of memory go."""
        if self._most_bytes is not None and self._largest:
            size = min(size, self._most_bytes // self._largest)
        if self._share is not None:
            size = self._share.fit(size, self._largest)
        if size != self.size:
            self.size = max(1, size)


class Writer(Protocol):
    """The writing side of a channel or hand-off."""

    @property
    def buffer(self) -> Buffer | None:
        """How far ahead to run."""

    async def room(self) -> int:
        """Wait until there is room; give how many elements to compute next."""

    def put(self, block: Block[Any]) -> None:
        """Add a computed block, for which there must be room."""

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes, or that the writer failed."""


async def fill(
    writer: Writer, blocks: AsyncIterator[Block[Any]], counters: Counters, whole_blocks: bool = False
) -> None:
    """Compute `blocks` ahead of the reader, a portion at a time; the body of a look-ahead's task.

    Args:
        writer: Takes the portions.
        blocks: The input.
        counters: Statistics of the stage that reads ahead.
        whole_blocks: Hand over blocks that come computed in one piece: they take up their memory in any case, and a
            hand-over costs as much as computing many elements.
    """
    async for block in blocks:
        is_whole = whole_blocks and block.is_computed
        while True:
            limit = await writer.room()
            chunk = block.chunk(1 << 60) if is_whole else block.chunk(limit, CHUNK_SECONDS)
            if chunk is None:
                break
            counters.blocks += 1
            counters.elements += chunk.length or 0
            chunk.is_whole = is_whole
            if writer.buffer is not None:
                writer.buffer.weigh(chunk)
            writer.put(chunk)
            del chunk
        del block
    writer.end()


class Channel:
    """A bounded queue of computed blocks with one writer and one reader, both tasks of one loop.

    The writer asks for room *before* it computes, so what waits is never more than the buffer says.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self._queue: asyncio.Queue[Block[Any] | End] = asyncio.Queue()
        self._waiting = 0
        self._writer: asyncio.Future[None] | None = None
        self._closed = False
        self.changed: Callable[[], object] | None = None
        """Called whenever a block or the end has been added."""

    @property
    def items(self) -> int:
        """Blocks that wait, and the end if it is there."""
        return self._queue.qsize()

    async def room(self) -> int:
        """Wait until there is room; give how many elements to compute next."""
        while not (free := self.buffer.free(self._waiting)) and not self._closed:
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self._closed:
            raise EndedEarlyError("the pipeline has been closed")
        return free

    def put(self, block: Block[Any]) -> None:
        """Add a computed block, for which there must be room."""
        if not self._closed:
            assert block.length is not None
            self._waiting += block.length
            self._queue.put_nowait(block)
            if self.changed is not None:
                self.changed()

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes, or that the writer failed."""
        if not self._closed:
            self._queue.put_nowait(End(error))
            if self.changed is not None:
                self.changed()

    async def get(self) -> Block[Any] | None:
        """Wait for the next block; None at the end.

        Raises:
            BaseException: What ended the writer.
            EndedEarlyError: The channel was closed.
        """
        if self._queue.empty() and not self._closed:
            self.buffer.in_hand = 0
            self.buffer.found_empty()
            self._wake_writer()
        item = await self._queue.get()
        if isinstance(item, End):
            self._queue.put_nowait(End(None))  # asking again after the end, or after the error, gives the end
            item.open()
            return None
        assert item.length is not None
        self._waiting -= item.length
        self.buffer.give(item)
        self._wake_writer()
        return item

    def __aiter__(self) -> Channel:
        """Give the channel itself: it is an iterator over its blocks."""
        return self

    async def __anext__(self) -> Block[Any]:
        """Wait for the next block."""
        block = await self.get()
        if block is None:
            raise StopAsyncIteration
        return block

    def close(self) -> None:
        """Drop everything that waits and wake both sides."""
        self._closed = True
        self._waiting = 0
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(End(EndedEarlyError("the pipeline was closed while it was being read")))
        self._wake_writer()

    def _wake_writer(self) -> None:
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)
