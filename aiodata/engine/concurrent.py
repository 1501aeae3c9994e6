"""Work on several portions of a stream at once, by tasks of the run, and give the results in order."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.channel import End
from aiodata.engine.job import stop_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from aiodata.engine.block import Block
    from aiodata.engine.run import Run

__all__ = ["Feed", "in_order"]


class Feed:
    """Portions of computed elements off the front of a stream of blocks."""

    def __init__(self, blocks: AsyncIterator[Block[Any]]) -> None:
        self._blocks = blocks
        self._block: Block[Any] | None = None

    async def chunk(self, limit: int) -> Block[Any] | None:
        """Compute and take up to `limit` elements; None at the end."""
        while True:
            if self._block is not None:
                chunk = self._block.chunk(limit)
                if chunk is not None:
                    return chunk
            self._block = await anext(self._blocks, None)
            if self._block is None:
                return None

    async def rest(self) -> AsyncGenerator[Block[Any], None]:
        """Give what is left, block by block and lazily."""
        if self._block is not None:
            while (chunk := self._block.chunk(256)) is not None:
                yield chunk
            self._block = None
        async for block in self._blocks:
            yield block


class _Ticket:
    """A portion that is being worked on, in its place in the order."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done: asyncio.Future[Block[Any]] = asyncio.get_running_loop().create_future()


async def in_order(
    run: Run,
    feed: Feed,
    perform: Callable[[Block[Any]], Awaitable[Block[Any]]],
    parallelism: int,
    grain: Callable[[], int],
) -> AsyncGenerator[Block[Any], None]:
    """Perform work on portions of `feed` at once and give the results in the feed's order.

    At most `parallelism` portions are worked on, and at most twice as many have been taken and not yet given.

    Args:
        run: The run that owns the tasks.
        feed: Where the portions come from.
        perform: Gives the results for one portion; element errors are `Failure`s in it, what it raises ends the run.
        parallelism: Tasks at once, at least 1.
        grain: Gives how many elements the next portion may have.
    """
    taking = _Taking(feed, parallelism)
    jobs = [run.spawn(partial(_work, taking, perform, grain), taking.fail) for _ in range(parallelism)]
    try:
        while True:
            ticket = await taking.tickets.get()
            if isinstance(ticket, End):
                ticket.open()
                return
            block = await ticket.done
            taking.room.release()
            yield block
            del block, ticket
    finally:
        await stop_all(jobs)


class _Taking:
    """What the workers share: one at a time takes the next portion, which settles the order."""

    def __init__(self, feed: Feed, parallelism: int) -> None:
        self.feed = feed
        self.tickets: asyncio.Queue[_Ticket | End] = asyncio.Queue()
        self.room = asyncio.Semaphore(2 * parallelism)
        self.lock = asyncio.Lock()
        self.over = False
        self.working: set[_Ticket] = set()

    def fail(self, error: BaseException) -> None:
        """Hand what ended a worker to the reader, in the place of the first portion that can't come any more."""
        self.over = True
        for ticket in self.working:
            if not ticket.done.done():
                ticket.done.set_exception(error)
                ticket.done.exception()  # nobody may be left to look at it
        self.working.clear()
        self.tickets.put_nowait(End(error))

    async def take(self, limit: Callable[[], int]) -> tuple[Block[Any], _Ticket] | None:
        await self.room.acquire()
        async with self.lock:
            chunk = None if self.over else await self.feed.chunk(limit())
            if chunk is None:
                self.room.release()
                if not self.over:
                    self.over = True
                    self.tickets.put_nowait(End(None))
                return None
            ticket = _Ticket()
            self.working.add(ticket)
            self.tickets.put_nowait(ticket)
            return chunk, ticket


async def _work(
    taking: _Taking, perform: Callable[[Block[Any]], Awaitable[Block[Any]]], grain: Callable[[], int]
) -> None:
    while (taken := await taking.take(grain)) is not None:
        chunk, ticket = taken
        result = await perform(chunk)
        taking.working.discard(ticket)
        if not ticket.done.done():  # cancelled, if its reader has gone
            ticket.done.set_result(result)
        del chunk, ticket, taken, result
