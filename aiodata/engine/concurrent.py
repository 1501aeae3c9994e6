"""Work on several portions of a stream at once, by tasks of the run, and give the results in order.

A `Crew` has as many tasks as a knob says, whenever it says so; the results do not depend on it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiodata.engine.channel import End
from aiodata.engine.job import stop_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from aiodata.engine.block import Block
    from aiodata.engine.job import Job
    from aiodata.engine.run import Run
    from aiodata.engine.tuning import Knob

__all__ = ["Crew", "Feed", "PULL_SECONDS", "WHOLE", "in_order"]

WHOLE = 1 << 30
"""The limit of a portion that is to be all that comes together, such as a block of columns."""

PULL_SECONDS = 0.0005
"""How long to gather elements for a portion: their stage may be slower than what is done with them."""

FOREVER = 1e9


class Feed:
    """Portions of computed elements off the front of a stream of blocks."""

    def __init__(self, blocks: AsyncIterator[Block[Any]]) -> None:
        self._blocks = blocks
        self._begun: list[Block[Any]] = []
        """What the next elements are taken from, the last one first."""

    async def chunk(self, limit: int) -> Block[Any] | None:
        """Compute and take up to `limit` elements, as many as there is time for; None at the end."""
        seconds = PULL_SECONDS if 1 < limit < WHOLE else FOREVER
        while True:
            while self._begun:
                chunk = self._begun[-1].chunk(limit, seconds)
                if chunk is not None:
                    return chunk
                self._begun.pop()
            block = await anext(self._blocks, None)
            if block is None:
                return None
            self._begun.append(block)

    async def block(self) -> Block[Any] | None:
        """Take a block as it is, or what is left of one; None at the end."""
        return self._begun.pop().remainder() if self._begun else await anext(self._blocks, None)

    def put_back(self, block: Block[Any]) -> None:
        """Have the next elements taken from `block`."""
        self._begun.append(block)


class _Room(asyncio.Semaphore):
    """A semaphore whose number can be changed."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._size, self._owed = size, 0

    def resize(self, size: int) -> None:
        """Change how many may have acquired it; where these are more than that, the next releases are kept."""
        self._owed += self._size - size
        self._size = size
        while self._owed < 0:
            self._owed += 1
            super().release()

    def release(self) -> None:
        """Let one more acquire it."""
        if self._owed:
            self._owed -= 1
        else:
            super().release()


class Crew:
    """Tasks of a run that take the same step again and again, as many of them as a knob says.

    Args:
        run: The run that owns the tasks.
        step: Does the work on one portion; False if there is none any more.
        failed: Gets what ends a task before its time.
        knob: How many tasks there are.
    """

    def __init__(
        self, run: Run, step: Callable[[], Awaitable[bool]], failed: Callable[[BaseException], object], knob: Knob
    ) -> None:
        self._run, self._step, self._failed, self._knob = run, step, failed, knob
        self._jobs: dict[Job, None] = {}
        self._active = 0
        self.room = _Room(2 * knob.value)
        """Acquired for each portion that is taken, and released when it is given."""

    def start(self) -> None:
        """Start the tasks."""
        self._knob.changed = self._resize
        self._resize()

    async def stop(self) -> None:
        """End the tasks."""
        self._knob.changed = None
        try:
            await stop_all(list(self._jobs))
        finally:
            del self._step, self._failed  # they hold what holds this, and with it the results

    def _resize(self) -> None:
        self.room.resize(2 * self._knob.value)
        while self._active < self._knob.value:
            self._active += 1
            job = self._run.spawn(self._work, self._failed)
            self._jobs[job] = None
            job.when_ended(self._left)

    def _left(self, job: Job) -> None:
        self._jobs.pop(job, None)

    async def _work(self) -> None:
        try:
            while self._active <= self._knob.value and await self._step():
                pass
        finally:
            self._active -= 1


class _Ticket:
    """A portion that is being worked on, in its place in the order."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done: asyncio.Future[Block[Any]] = asyncio.get_running_loop().create_future()


async def in_order(
    run: Run,
    feed: Feed,
    perform: Callable[[Block[Any]], Awaitable[Block[Any]]],
    knob: Knob,
    grain: Callable[[], int],
) -> AsyncGenerator[Block[Any], None]:
    """Perform work on portions of `feed` at once and give the results in the feed's order.

    As many portions are worked on as the knob says, and at most twice as many have been taken and not yet given.

    Args:
        run: The run that owns the tasks.
        feed: Where the portions come from.
        perform: Gives the results for one portion; element errors are `Failure`s in it, what it raises ends the run.
        knob: How many tasks there are; it is told how long each portion was waited for.
        grain: Gives how many elements the next portion may have.
    """
    taking = _Taking(run, feed, perform, knob, grain)
    taking.crew.start()
    try:
        while True:
            knob.asked()
            taking.most = len(taking.working)
            ticket = await taking.tickets.get()
            if isinstance(ticket, End):
                ticket.open()
                return
            block = await ticket.done
            taking.crew.room.release()
            knob.given(block, taking.most >= knob.value)
            yield block
            del block, ticket
    finally:
        await taking.crew.stop()


class _Taking:
    """What the tasks share: one at a time takes the next portion, which settles the order."""

    def __init__(
        self,
        run: Run,
        feed: Feed,
        perform: Callable[[Block[Any]], Awaitable[Block[Any]]],
        knob: Knob,
        grain: Callable[[], int],
    ) -> None:
        self.feed, self.perform, self.grain = feed, perform, grain
        self.tickets: asyncio.Queue[_Ticket | End] = asyncio.Queue()
        self.lock = asyncio.Lock()
        self.over = False
        self.working: set[_Ticket] = set()
        self.most = 0
        """The most that have been worked on since the reader last asked."""
        self.crew = Crew(run, self.step, self.fail, knob)

    def fail(self, error: BaseException) -> None:
        """Hand what ended a task to the reader, in the place of the first portion that can't come any more."""
        self.over = True
        for ticket in self.working:
            if not ticket.done.done():
                ticket.done.set_exception(error)
                ticket.done.exception()  # nobody may be left to look at it
        self.working.clear()
        self.tickets.put_nowait(End(error))

    async def take(self) -> tuple[Block[Any], _Ticket] | None:
        await self.crew.room.acquire()
        async with self.lock:
            chunk = None if self.over else await self.feed.chunk(self.grain())
            if chunk is None:
                self.crew.room.release()
                if not self.over:
                    self.over = True
                    self.tickets.put_nowait(End(None))
                return None
            ticket = _Ticket()
            self.working.add(ticket)
            self.most = max(self.most, len(self.working))
            self.tickets.put_nowait(ticket)
            return chunk, ticket

    async def step(self) -> bool:
        """Take a portion and work on it; tell whether there was one."""
        taken = await self.take()
        if taken is None:
            return False
        chunk, ticket = taken
        result = await self.perform(chunk)
        self.working.discard(ticket)
        if not ticket.done.done():  # cancelled, if its reader has gone
            ticket.done.set_result(result)
        return True
