"""Results in the order in which they become ready, with states that lose nothing and repeat nothing.

The order is not known before it happens, so it is written down: each delivery holds the piece of input that it was
made from, what was unfinished then, and a reference to the next delivery. A position is the list of deliveries from its
own on, and what the last of them left. Opening there repeats that order first, then goes on freely; so a stage
behind, such as a shuffle, can read its input again too. Deliveries that no position can name any more are freed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, pull
from aiodata.engine.channel import End
from aiodata.engine.concurrent import Crew, Feed
from aiodata.engine.position import Origin, cursor
from aiodata.engine.skipped import Skipped, behind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.engine.tuning import Knob

__all__ = ["Log", "as_ready", "piece_of"]


class _Delivery:
    __slots__ = ("following", "left", "piece")

    def __init__(self, piece: Callable[[], Any], left: Callable[[], Any]) -> None:
        self.piece = piece
        self.left = left
        self.following: _Delivery | None = None

    def position(self) -> dict[str, Any]:
        pieces = [self.piece()]
        last = self
        while last.following is not None:
            last = last.following
            pieces.append(last.piece())
        left = last.left()
        return {"given": pieces + left.pop("given"), **left}


class Log:
    """The order of deliveries so far; it holds only the last one, positions hold those that they need."""

    def __init__(self) -> None:
        self._last: _Delivery | None = None

    def deliver(self, block: Block[Any], piece: Callable[[], Any], left: Callable[[], Any]) -> Block[Any]:
        """Note a delivery, and give its block with a position.

        Args:
            block: The elements.
            piece: Gives what they were made from, as JSON.
            left: Gives what was unfinished after it, as JSON: a dictionary with the pieces that are still to be
                repeated under "given". Like `piece` it must not look at anything that changes.
        """
        delivery = _Delivery(piece, left)
        if self._last is not None:
            self._last.following = delivery
        self._last = delivery
        return block.moved(block.origin.within(delivery.position, block.offset))


async def piece_of(run: Run, blocks: AsyncIterator[Block[Any]], size: int) -> Block[Any]:
    """Read `size` elements as one computed block, and release `blocks`."""
    computed: list[Any] = []
    first: tuple[Origin, int] | None = None
    async for block in blocks:
        first = first or (block.origin, block.offset)
        computed += pull(block.rows(), size - len(computed))
        if len(computed) == size:
            break
    await run.release(blocks)
    if len(computed) < size:
        skipped = Skipped(size)
        skipped.note(len(computed), computed)
        skipped.check()
    assert first is not None
    return Block(*first, computed=computed)


def as_ready(
    run: Run,
    source: Source,
    start: Cursor | None,
    perform: Callable[[Block[Any]], Awaitable[Block[Any]]],
    knob: Knob,
    grain: Callable[[], int],
) -> AsyncIterator[Block[Any]]:
    """Perform work on portions of `source` at once and give the results as they become ready.

    As many portions are worked on as the knob says, and at most twice as many have been taken and not yet given.

    Args:
        run: The run that owns the tasks.
        source: The input.
        start: A cursor of this stage.
        perform: Gives the results for one portion.
        knob: How many tasks there are; it is told how long each portion was waited for.
        grain: Gives how many elements the next portion may have.
    """
    position, skip = start[:2] if start else (None, 0)
    blocks = _Unordered(run, source, position, perform, knob, grain).blocks()
    return behind(run, blocks, skip) if skip else blocks


class _Unordered:
    """Portions that are being worked on, in no order."""

    def __init__(
        self,
        run: Run,
        source: Source,
        position: dict[str, Any] | None,
        perform: Callable[[Block[Any]], Awaitable[Block[Any]]],
        knob: Knob,
        grain: Callable[[], int],
    ) -> None:
        saved = position or {"given": [], "open": [], "next": None}
        self.run = run
        self.source = source
        self.perform = perform
        self.knob = knob
        self.grain = grain
        self.given: list[Any] = saved["given"]
        self.pending: list[Any] = saved["open"]
        self.next: Any = saved["next"]
        self.feed = Feed(source.open(self.next))
        self.open: dict[int, tuple[Origin, int, int]] = {}
        self.number = 0
        self.over = False
        self.lock = asyncio.Lock()
        self.crew = Crew(run, self._step, self._end, knob)
        self.most = 0
        """The most that have been worked on since the reader last asked."""
        self.ready: asyncio.Queue[tuple[int, Block[Any]] | End] = asyncio.Queue()
        self.log = Log()

    async def blocks(self) -> AsyncIterator[Block[Any]]:
        while self.given:
            at, size = self.given[0]
            chunk = await self._read_again(at, size)
            block = await self.perform(chunk)
            self.given = self.given[1:]
            yield self._deliver((chunk.origin, chunk.offset, size), block)
        self.crew.start()
        try:
            while True:
                self.knob.asked()
                self.most = self._working
                found = await self.ready.get()
                if isinstance(found, End):
                    found.open()
                    return
                number, result = found
                self.crew.room.release()
                self.knob.given(result, self.most >= self.knob.value)
                yield self._deliver(self.open.pop(number), result)
                del found, result
        finally:
            await self.crew.stop()

    def _deliver(self, piece: tuple[Origin, int, int], block: Block[Any]) -> Block[Any]:
        left = partial(_left, self.given, tuple(self.open.values()), tuple(self.pending), self.next)
        return self.log.deliver(block, partial(_saved_piece, piece), left)

    async def _take(self) -> tuple[int, Block[Any]] | None:
        await self.crew.room.acquire()
        async with self.lock:
            chunk: Block[Any] | None = None
            if self.pending:
                at, size = self.pending[0]
                chunk = await self._read_again(at, size)
                self.pending = self.pending[1:]
            elif not self.over:
                chunk = await self.feed.chunk(self.grain())
                if chunk is not None:
                    self.next = (chunk.origin, chunk.offset + (chunk.length or 0))
            if chunk is None:
                self.crew.room.release()
                if not self.over:
                    self.over = True
                    self._end_if_done()
                return None
            self.number += 1
            self.open[self.number] = (chunk.origin, chunk.offset, chunk.length or 0)
            self.most = max(self.most, self._working)
            return self.number, chunk

    async def _read_again(self, at: Cursor, size: int) -> Block[Any]:
        with self.source.reading_again() as again:
            return await piece_of(self.run, again.open(at), size)

    @property
    def _working(self) -> int:
        return len(self.open) - self.ready.qsize()

    async def _step(self) -> bool:
        taken = await self._take()
        if taken is not None:
            number, chunk = taken
            self.ready.put_nowait((number, await self.perform(chunk)))
        self._end_if_done()
        return taken is not None

    def _end(self, error: BaseException | None = None) -> None:
        self.ready.put_nowait(End(error))

    def _end_if_done(self) -> None:
        """Put the end behind the last result: when nothing more can be taken and all that was has become ready."""
        if self.over and not self.pending and len(self.open) == self.ready.qsize():
            self._end()


def _saved_piece(piece: tuple[Origin, int, int]) -> Any:
    origin, offset, size = piece
    return [cursor(origin, offset), size]


def _left(given: list[Any], unfinished: tuple[Any, ...], pending: tuple[Any, ...], following: Any) -> dict[str, Any]:
    return {
        "given": list(given),
        "open": [_saved_piece(piece) for piece in unfinished] + list(pending),
        "next": cursor(*following) if isinstance(following, tuple) else following,
    }
