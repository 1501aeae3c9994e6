"""One remote file, read in requests for ranges of bytes, some of them ahead; all of it on the network's loop."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from aiodata.errors import EndedEarlyError, RemoteError
from aiodata.storage.masking import masked
from aiodata.storage.protocol import close_pieces
from aiodata.storage.transfer.asking import Silence, ask, turn
from aiodata.storage.transfer.chunk import Chunk, receive
from aiodata.storage.transfer.healing import Trouble
from aiodata.storage.transfer.network import end_tasks

if TYPE_CHECKING:
    from aiodata.engine.statistics import Counters
    from aiodata.options import StorageOptions
    from aiodata.storage.protocol import Answer, FileInfo, Storage
    from aiodata.storage.transfer.network import Limits

__all__ = ["Download"]

CHUNK_BYTES = 2 * 1024 * 1024
READ_AHEAD_BYTES = 8 * 1024 * 1024
MEMORY_BYTES = 256 * 1024 * 1024
LINGER_SECONDS = 0.02
"""How long to wait for more when the first bytes are there: a hop between threads costs as much as many kilobytes."""
LINGERS = 8
"""How often to wait so, at most: again only if an eighth of what is wanted has come meanwhile."""


class Download:
    """A remote file. One task takes its bytes forward; single ranges may be asked for beside that.

    Args:
        storage: What reads it.
        url: The file.
        options: The limits.
        counters: Where requests and retries are counted.
        limits: What all transfers share.
    """

    def __init__(self, storage: Storage, url: str, options: StorageOptions, counters: Counters, limits: Limits) -> None:
        self.info: FileInfo | None = None
        """What the first answer told."""
        self.has_ranges = True
        """Whether the server knows ranges, as far as it has answered."""
        self._storage = storage
        self._url = url
        self._options = options
        self._counters = counters
        self._limits = limits
        self._step = options.chunk_bytes or CHUNK_BYTES
        self._most_ahead = READ_AHEAD_BYTES if options.read_ahead_bytes is None else options.read_ahead_bytes
        self._ahead = self._step
        """How many bytes may be asked for and not taken."""
        self._next = 0
        """The first byte that has not been asked for."""
        self._chunks: deque[Chunk] = deque()
        self._news = asyncio.Event()
        self._wanted = 1
        """How many bytes a chunk must have for news of it."""
        self._is_closed = False

    async def begin(self, offset: int, most: int) -> bytes:
        """Go to a byte, and take from there."""
        self._next = offset
        return await self.take(most)

    @property
    def is_over(self) -> bool:
        """Whether all has been taken, and no request is under way."""
        return not self._chunks and self.info is not None

    async def take(self, most: int) -> bytes:
        """Take the next bytes, about `most`, or what there is a moment after the first; b"" at the end of the file.

        Raises:
            OSError: They cannot be read.
        """
        return b"".join(await self._take(min(most, self._step), lingers=True))  # more may never be there at once

    async def rest(self) -> bytes:
        """Take all bytes that are left, each chunk when all of it has come.

        Raises:
            OSError: They cannot be read.
        """
        parts: list[bytes] = []
        while more := await self._take(self._step):
            parts += more
        return b"".join(parts)

    async def _take(self, most: int, lingers: bool = False) -> list[bytes]:
        """Take the next bytes, about `most` or what is left of a chunk; or what there is a moment after the first."""
        has_waited = False
        while True:
            if self._is_closed:
                raise EndedEarlyError(f"{masked(self._url)}: the file has been closed")
            self._ask()
            if not self._chunks:
                return []
            head = self._chunks[0]
            if head.parts and (has_waited or head.size >= most or head.task is None or head.task.done()):
                parts = head.take(most)
                self._count(head)
                self._drop_head()
                self._ask()
                return parts
            if self._drop_head():
                continue
            if head.error is not None:
                try:
                    raise head.error
                finally:
                    del head
            has_waited = await self._wait(head, 1 if lingers and not head.parts else most, lingers)

    def _drop_head(self) -> bool:
        """Drop the first chunk if all of it has been taken; tell whether it has."""
        head = self._chunks[0]
        if head.parts or not head.is_complete:
            return False
        self._chunks.popleft()
        self._count(head, 0)
        self._ahead = min(self._ahead * 2, max(self._step, self._most_ahead))
        return True

    async def _wait(self, head: Chunk, most: int, lingers: bool) -> bool:
        """Wait until the first chunk has `most` bytes, or has ended; tell whether those that are there should do."""
        self._wanted = most
        self._news.clear()
        if most == 1 or not lingers:
            await self._news.wait()
            return False
        loop, size = asyncio.get_running_loop(), head.size
        due = loop.time() + LINGER_SECONDS
        timer = loop.call_at(due, self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()
        return loop.time() >= due and head.size - size < most // LINGERS

    async def range(self, begin: int, end: int) -> bytes:
        """Read some bytes beside the others; fewer at the end of the file.

        Raises:
            OSError: They cannot be read.
        """
        chunk = Chunk(begin, end, is_apart=True)
        self._count(chunk, end - begin)
        try:
            if begin < end:
                await self._fill(chunk)
            return b"".join(chunk.parts)
        finally:
            self._count(chunk, 0)

    async def aclose(self) -> None:
        """End all requests."""
        self._is_closed = True
        chunks = list(self._chunks)
        self._chunks.clear()
        try:
            await end_tasks(chunk.task for chunk in chunks if chunk.task is not None)
        finally:
            for chunk in chunks:
                self._count(chunk, 0)
                chunk.parts.clear()
                chunk.error = chunk.task = None  # else they and their frames, which refer to all of this, are cycles

    def _ask(self) -> None:
        """Ask for what may be asked for now: one chunk in any case, and more as far as the limits go."""
        while not self._chunks or self.info is not None:
            size = None if self.info is None else self.info.size
            end = self._next + self._step if size is None else min(self._next + self._step, size)
            if self.info is not None and (size is None or not self.has_ranges or self._next >= size):
                return
            length = end - self._next
            if self._chunks and (self._asked + length > self._ahead or self._limits.held + length > self._memory):
                return
            chunk = Chunk(self._next, end)
            self._next = end
            self._chunks.append(chunk)
            self._count(chunk, length)
            chunk.task = asyncio.get_running_loop().create_task(self._fetch(chunk))

    @property
    def _asked(self) -> int:
        return sum((chunk.end or chunk.at) - chunk.taken for chunk in self._chunks)

    @property
    def _memory(self) -> int:
        return MEMORY_BYTES if self._options.memory_bytes is None else self._options.memory_bytes

    def _count(self, chunk: Chunk, size: int | None = None) -> None:
        """Set what the limits count for a chunk: what is asked for, or has come and is not taken."""
        if size is None:
            size = chunk.size if chunk.end is None else chunk.end - chunk.taken
        self._limits.held += size - chunk.counted
        chunk.counted = size

    async def _fetch(self, chunk: Chunk) -> None:
        try:
            await self._fill(chunk)
            chunk.is_complete = True
        except BaseException as error:
            chunk.error = error
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._news.set()

    async def _fill(self, chunk: Chunk) -> None:
        """Get all bytes of a chunk, asking again from the last one that came where that may help."""
        request = partial(self._request, chunk)
        await ask(self._storage, self._url, request, self._options, self._counters, lambda: chunk.at)

    async def _request(self, chunk: Chunk) -> None:
        """Ask for what is missing of a chunk, in several requests if the server gives less than it is asked for.

        Raises:
            OSError, Trouble: One failed, or brought less than it had said.
        """
        with Silence(self._options) as silence:
            while await self._request_once(chunk, silence):
                pass

    async def _request_once(self, chunk: Chunk, silence: Silence) -> bool:
        """Make one request; tell whether it has brought all that its answer was of, and that was less than wanted."""
        length = None if chunk.end is None else chunk.end - chunk.at
        if length == 0:
            return False  # what came last was all of it
        async with turn(self._limits, self._storage, self._url, self._options, self._counters) as asking:
            answer = await silence.wait(self._storage.open(self._url, chunk.at, length), "an answer")
            begin = chunk.at
            try:
                self._learn(chunk, answer)
                if chunk.end is None:
                    asking.leave()  # its reader sets the pace, who may wait for other requests to the host
                give = partial(self._give, chunk, answer.is_range)
                await receive(chunk, answer, silence, masked(self._url), give, partial(self._room, chunk))
            finally:
                await close_pieces(answer)
        size = self.info.size if answer.info.size is None and self.info is not None else answer.info.size
        if size is not None and chunk.at < (size if chunk.end is None else min(size, chunk.end)):
            if begin < chunk.at == answer.stop:
                return True
            raise Trouble("the answer ended before it was complete")
        return False

    def _learn(self, chunk: Chunk, answer: Answer) -> None:
        """Compare an answer with those before, and let the first one say how the file can be read."""
        info = answer.info
        if self.info is None:
            self.info = info
            if not answer.is_range:
                self.has_ranges = False
                if not chunk.is_apart and (info.size is None or info.size - chunk.at > self._step):
                    chunk.end = None
        elif self.info.tag and not info.tag and (answer.is_range or info.size is not None) and info.size != chunk.at:
            raise Trouble("the server does not say any more whether this is the same file")
        elif (info.tag and self.info.tag and info.tag != self.info.tag) or (
            None not in (info.size, self.info.size) and info.size != self.info.size
        ):
            raise RemoteError("the file has been replaced while it was being read", masked(self._url), chunk.at)
        if chunk.end is not None and info.size is not None and chunk.end > info.size:
            chunk.end = max(info.size, chunk.at)
            self._count(chunk)
        if answer.offset > chunk.at:
            raise Trouble(f"the answer begins at byte {answer.offset}, not {chunk.at}")

    def _give(self, chunk: Chunk, is_range: bool, part: bytes) -> None:
        chunk.add(part, is_range)
        if chunk.end is None:
            self._count(chunk)  # as much of any other is counted from the start
        if chunk.size >= self._wanted:
            self._news.set()

    async def _room(self, chunk: Chunk) -> None:
        while self._is_full(chunk):
            chunk.room.clear()
            await chunk.room.wait()

    def _is_full(self, chunk: Chunk) -> bool:
        """Tell whether an answer that is read at its reader's pace has to wait for that; a chunk of it is allowed."""
        return chunk.size > self._step and (chunk.size > self._most_ahead or self._limits.held > self._memory)
