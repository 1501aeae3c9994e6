"""`interleave` with parallel readers: one task and one channel for each open dataset."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Failure
from aiodata.engine.channel import Buffer, Channel, End, fill
from aiodata.engine.job import stop_all
from aiodata.engine.position import Origin, cursor
from aiodata.engine.unordered import Log, piece_of
from aiodata.engine.workers import all_of
from aiodata.errors import StateError
from aiodata.transforms._cycle import Cycle
from aiodata.transforms._inputs import Inputs
from aiodata.transforms._reader import Reader, saved_mark

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from aiodata.engine.job import Job
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["parallel_cycle"]

AHEAD_ELEMENTS = 1024
AHEAD_BYTES = 4 << 20


def parallel_cycle(
    run: Run,
    source: Source,
    *,
    start: Any,
    function: Callable[..., Any],
    label: str,
    length: int,
    block_length: int,
    calls: int,
    deterministic: bool | None,
) -> AsyncIterator[Block[Any]]:
    """Open a stage that reads `length` datasets at once, each ahead of the reader by a task of its own."""
    inputs = Inputs(run, source, function, label, None if start is None else start["next"])
    ahead = _InputsAhead(inputs, length, calls)
    ordered = run.options.deterministic if deterministic is None else deterministic
    if ordered is False:
        return _AsReady(ahead).elements(start)
    return Cycle(ahead, length, block_length).elements(start)


class _InputsAhead:
    """Datasets that are opened and read ahead in order, at most `length` of them being read at once.

    A dataset that has been read to its end makes room for the next, even while its elements wait for their turn.
    """

    def __init__(self, inputs: Inputs, length: int, calls: int) -> None:
        self.inputs = inputs
        self.next = inputs.next
        self.counters = inputs.run.statistics.counters(inputs.label)
        self.tunes = calls < 1
        self.knob = inputs.run.tuner.knob(self.counters, calls, most=length)
        self._unfinished = asyncio.Semaphore(length)
        self._reading = asyncio.Semaphore(self.knob.value)
        self._room = asyncio.Semaphore(length)
        self._opened: asyncio.Queue[tuple[Reader | Failure | End, Any]] = asyncio.Queue()
        self._opener: Job | None = None
        self._jobs: dict[int, Job] = {}
        self.failed = False
        """Whether opening has come to an end before its time."""

    async def open_next(self) -> Reader | None:
        """Wait for the next dataset that has been opened; as `Inputs.open_next`."""
        if self._opener is None:
            self._opener = self.inputs.run.spawn(self._open_all, self._end)
        found, self.next = await self._opened.get()
        self._room.release()
        if isinstance(found, End):
            self._opened.put_nowait((End(None), self.next))
            self.failed = found.error is not None
            found.open()
            return None
        if isinstance(found, Failure):
            found.open()
        return found

    async def reopen(self, saved: Any) -> Reader:
        """Open a dataset again that was open when a state was saved, and read ahead in it."""
        await self._unfinished.acquire()
        return self._read_ahead(await self.inputs.reopen(saved))

    def shared(self) -> list[Any]:
        """Give none: which of the datasets draws next is a race, here as in tf.data."""
        return []

    async def restore_shared(self, saved: Any) -> None:
        """Do nothing, as there is nothing to restore."""

    async def _open_all(self) -> None:
        """Open one dataset after the other, as soon as fewer than `length` are unfinished; the opener's task."""
        while True:
            await self._room.acquire()
            await self._unfinished.acquire()
            try:
                reader = await self.inputs.open_next()
            except Exception as error:
                if self.inputs.failed:
                    raise
                self._unfinished.release()
                self._opened.put_nowait((Failure(error), self.inputs.next))
                continue
            if reader is None:
                self._end()
                return
            self._opened.put_nowait((self._read_ahead(reader), self.inputs.next))

    def _end(self, error: BaseException | None = None) -> None:
        self._opened.put_nowait((End(error), self.inputs.next))

    def _read_ahead(self, reader: Reader) -> Reader:
        run = self.inputs.run
        buffer = Buffer(AHEAD_ELEMENTS, self.counters, AHEAD_BYTES)
        if self.tunes:
            buffer = run.tuner.buffer(self.inputs.label, self.counters, AHEAD_ELEMENTS, AHEAD_BYTES)
        channel = run.channel(buffer)
        self._jobs[id(reader)] = run.spawn(partial(self._fill, channel, reader), channel.end)
        reader.blocks = channel
        reader.channel = channel
        return reader

    async def release(self, reader: Reader) -> None:
        """Close a dataset that has been read; its task has ended, for it has given its end."""
        await self._jobs.pop(id(reader)).stop()

    async def aclose(self) -> None:
        """End all tasks."""
        # The opener first: until it has ended it may start another one.
        await all_of([*([] if self._opener is None else [self._opener.stop]), self._stop_reading])

    async def _stop_reading(self) -> None:
        await stop_all([*self._jobs.values()])
        self._jobs.clear()

    async def _fill(self, channel: Channel, reader: Reader) -> None:
        try:
            async with aclosing(self._limited(reader.inner)) as blocks:
                await fill(channel, blocks, self.counters)
            await self.inputs.release(reader)
        finally:
            self._unfinished.release()

    async def _limited(self, blocks: AsyncIterator[Block[Any]]) -> AsyncGenerator[Block[Any], None]:
        while True:
            async with self._reading:
                block = await anext(blocks, None)
            if block is None:
                return
            yield block


class _Failed:
    """An element for which no dataset could be opened; its error waits to be given."""

    def __init__(self, outer: tuple[Origin, int], failure: Failure) -> None:
        self.outer = outer
        self.failure = failure

    def mark(self) -> Any:
        return (self.outer, None, None, ()), None, 0


class _AsReady:
    """Elements of whichever dataset has some ready."""

    def __init__(self, ahead: _InputsAhead) -> None:
        self.ahead = ahead
        self.inputs = ahead.inputs
        self.open: dict[int, Reader | _Failed] = {}
        self.given: list[Any] = []
        self.waiting: list[Any] = []
        self.next: Any = self.inputs.next
        self.over = False
        self.log = Log()
        self.opener: Job | None = None
        self.ready: asyncio.Queue[Reader | _Failed | End | None] = asyncio.Queue()

    async def elements(self, start: Any) -> AsyncIterator[Block[Any]]:
        """Give the elements from the start or from a saved position."""
        try:
            if start is not None:
                self.given, self.waiting, self.over = start["given"], start["open"], start["over"]
            while self.given:
                saved, size = self.given[0]
                block = await self._repeated(saved, size)
                self.given = self.given[1:]
                yield self._deliver(block, partial(_same, [saved, size]))
            while self.waiting:
                found = await self._reopened(self.waiting[0])
                self.waiting = self.waiting[1:]
                self._attend_to(found)
            if not self.over:
                self.opener = self.inputs.run.spawn(self._open_all, self._fail)
            while self.open or not self.over:
                ready = await self.ready.get()
                if isinstance(ready, End):
                    ready.open()
                    continue
                if isinstance(ready, _Failed):
                    del self.open[id(ready)]
                    failed: Block[Any] = Block(*ready.outer, computed=[ready.failure])
                    yield self._deliver(failed, partial(_piece, ready.mark(), 1))
                elif ready is not None:
                    part = await anext(ready.blocks, None)
                    if part is None:
                        del self.open[id(ready)]
                        await self.ahead.release(ready)
                        continue
                    mark = (ready.fixed, part.origin, part.offset)
                    ready.origin, ready.offset = part.origin, part.offset + (part.length or 0)
                    yield self._deliver(part, partial(_piece, mark, part.length or 0))
        finally:
            await all_of([*([] if self.opener is None else [self.opener.stop]), self.ahead.aclose])

    def _deliver(self, block: Block[Any], piece: Callable[[], Any]) -> Block[Any]:
        marks = tuple(reader.mark() for reader in self.open.values())
        return self.log.deliver(block, piece, partial(_left, self.given, marks, self.waiting, self.over, self.next))

    async def _repeated(self, saved: Any, size: int) -> Block[Any]:
        try:
            reader = await self.inputs.reopen(saved)
        except StateError:
            raise
        except Exception as error:
            return Block.failed(error, Origin(_nothing))
        return await piece_of(self.inputs.run, reader.blocks, size)

    async def _reopened(self, saved: Any) -> Reader | _Failed:
        try:
            return await self.ahead.reopen(saved)
        except StateError:
            raise
        except Exception as error:
            return _Failed((Origin(partial(_same, saved[0][0])), saved[0][1]), Failure(error))

    async def _open_all(self) -> None:
        """Attend to every dataset that has been opened, in order; what is attended to is part of the state."""
        while True:
            found: Reader | _Failed | None
            try:
                found = await self.ahead.open_next()
            except Exception as error:
                if self.ahead.failed:
                    raise
                origin, offset = self.ahead.next
                found = _Failed((origin, offset - 1), Failure(error))
            self.next = self.ahead.next
            if found is None:
                self.over = True
                self.ready.put_nowait(None)
                return
            self._attend_to(found)

    def _fail(self, error: BaseException) -> None:
        self.ready.put_nowait(End(error))

    def _attend_to(self, found: Reader | _Failed) -> None:
        self.open[id(found)] = found
        if isinstance(found, _Failed):
            self.ready.put_nowait(found)
            return
        channel = found.channel
        assert channel is not None
        for _ in range(channel.items):
            self.ready.put_nowait(found)
        channel.changed = partial(self.ready.put_nowait, found)


def _nothing() -> None:
    return None


def _same(value: Any) -> Any:
    return value


def _piece(mark: Any, size: int) -> Any:
    return [saved_mark(mark), size]


def _left(given: list[Any], marks: tuple[Any, ...], waiting: list[Any], over: bool, following: Any) -> dict[str, Any]:
    return {
        "given": list(given),
        "open": [saved_mark(mark) for mark in marks] + list(waiting),
        "over": over,
        "next": cursor(*following) if isinstance(following, tuple) else following,
    }
