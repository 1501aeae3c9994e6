"""One chunk of a remote file: bytes that are asked for together, and how they are taken in from an answer."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING
from zlib import crc32

from aiodata.errors import RemoteError
from aiodata.storage.transfer.healing import Trouble

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiodata.storage.protocol import Answer
    from aiodata.storage.transfer.asking import Silence

__all__ = ["Chunk", "receive"]


class Chunk:
    """Bytes of the file that are asked for in one request, and again from `at` on if that fails.

    Args:
        begin: The first byte.
        end: The byte behind the last one; None for the end of the file.
        is_apart: Whether it is not one of those that are read forward.
    """

    def __init__(self, begin: int, end: int | None, is_apart: bool = False) -> None:
        self.begin = self.at = begin
        self.end = end
        self.is_apart = is_apart
        self.parts: deque[bytes] = deque()
        """What has come and not been taken."""
        self.size = 0
        """How many bytes those are."""
        self.taken = begin
        """The first byte that has not been taken."""
        self.counted = 0
        """Bytes that the limits count for it."""
        self.checksum: int | None = 0
        """The CRC-32 of what has come, as long as it has come from answers with all of the file."""
        self.is_complete = False
        self.error: BaseException | None = None
        self.room = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def add(self, part: bytes, is_range: bool) -> None:
        """Take in what comes next.

        Args:
            part: The bytes.
            is_range: Whether they are of an answer with a range.
        """
        self.parts.append(part)
        self.size += len(part)
        self.at += len(part)
        self.checksum = None if is_range or self.checksum is None else crc32(part, self.checksum)

    def take(self, most: int) -> list[bytes]:
        """Take what is there, about `most` bytes of it."""
        taken = [self.parts.popleft()]
        size = len(taken[0])
        while self.parts and size + len(self.parts[0]) <= most:
            size += len(self.parts[0])
            taken.append(self.parts.popleft())
        self.size -= size
        self.taken += size
        self.room.set()
        return taken


async def receive(
    chunk: Chunk,
    answer: Answer,
    silence: Silence,
    url: str,
    give: Callable[[bytes], None],
    room: Callable[[], Awaitable[None]],
) -> None:
    """Take in the bytes of an answer that are missing of a chunk.

    Where a check is known, what is to be held in memory anyway is given when that has passed. What comes again from a
    server that does not know ranges has to be what came before.

    Args:
        chunk: The chunk.
        answer: The answer.
        silence: Ends the waiting for them.
        url: The file, without secrets, for errors.
        give: Gets the bytes, and adds them to the chunk.
        room: Waits for room for more, where the chunk's reader sets the pace.

    Raises:
        Trouble: They are damaged, or others than are wanted.
        RemoteError: They are damaged and some have been given; or the file has been replaced.
    """
    begin, at, again = answer.offset, chunk.at, 0
    compares = chunk.checksum is not None and begin <= chunk.begin < at
    held: list[bytes] | None = [] if answer.check is not None and chunk.end is not None else None
    pieces = aiter(answer.pieces)
    while (piece := await silence.wait(anext(pieces, None), "a further byte")) is not None:
        if answer.check is not None:
            answer.check(piece)
        end = begin + len(piece)
        if compares and begin < chunk.at:
            again = crc32(piece[max(0, chunk.begin - begin) : max(0, chunk.at - begin)], again)
            if end >= chunk.at:
                compares = False
                if again != chunk.checksum:
                    raise RemoteError("the file has been replaced while it was being read", url, chunk.at)
        stop = end if chunk.end is None else min(end, chunk.end)
        if stop > at:
            part = piece if begin == at and stop == end else piece[at - begin : stop - begin]
            at = stop
            if held is None:
                give(part)
                if chunk.end is None:
                    await room()
            else:
                held.append(part)
        begin = end
        if at == chunk.end and held is None:
            return  # what may follow is not for this chunk
    _check_end(chunk, answer, url)
    for part in held or ():
        give(part)


def _check_end(chunk: Chunk, answer: Answer, url: str) -> None:
    if answer.check is None:
        return
    try:
        answer.check(b"")
    except Trouble as error:
        if chunk.at == chunk.begin or chunk.end is not None:
            raise
        raise RemoteError(f"{error}, and what came has been read by now", url, chunk.begin) from None
