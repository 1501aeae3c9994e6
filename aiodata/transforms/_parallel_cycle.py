"""`interleave` with parallel readers: one task and one channel for each open dataset."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.channel import Buffer, Channel, End, fill
from aiodata.transforms._cycle import Inputs, Reader, _Cycle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.engine.block import Block
    from aiodata.engine.run import Run, Source

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
    """Open a stage that reads `length` datasets in turn, each read ahead by a task of its own."""
    inputs = Inputs(run, source, function, label, None if start is None else start["next"])
    ahead = _InputsAhead(inputs, length, calls)
    return _Cycle(ahead, length, block_length).elements(start)


class _InputsAhead(Inputs):
    """Datasets that are opened and read ahead in order, at most `length` of them being read at once.

    A dataset that has been read to its end makes room for the next, even while its elements wait for their turn.
    """

    def __init__(self, inputs: Inputs, length: int, calls: int) -> None:
        self.inputs = inputs
        self.length = length
        self.next = inputs.next
        self.counters = inputs.run.statistics.counters(inputs.label)
        self.counters.parallelism = calls
        self._unfinished = asyncio.Semaphore(length)
        self._reading = asyncio.Semaphore(calls)
        self._opened: asyncio.Queue[tuple[Reader | Exception | None | End, Any]] = asyncio.Queue(length)
        self._begun = False

    async def open_next(self) -> Reader | None:
        if not self._begun:
            self._begun = True
            self.inputs.run.spawn(self._open_all)
        reader, self.next = await self._opened.get()
        if isinstance(reader, End):
            assert reader.error is not None
            raise _Fatal(reader.error)
        if isinstance(reader, Exception):
            raise reader
        return reader

    async def reopen(self, saved: Any) -> Reader:
        await self._unfinished.acquire()
        return self._read_ahead(await self.inputs.reopen(saved))

    async def _open_all(self) -> None:
        """Open one dataset after the other, as soon as fewer than `length` are unfinished; the opener's task."""
        inputs = self.inputs
        while True:
            await self._unfinished.acquire()
            found: Reader | Exception | None | End
            try:
                reader = await inputs.open_next()
                found = None if reader is None else self._read_ahead(reader)
            except Exception as error:
                self._unfinished.release()
                found = error
            await self._opened.put((found, inputs.next))
            if found is None:
                return

    def _read_ahead(self, reader: Reader) -> Reader:
        run = self.inputs.run
        channel = run.channel(Buffer(AHEAD_ELEMENTS, self.counters, AHEAD_BYTES))
        run.spawn(partial(self._fill, channel, reader.blocks))
        reader.blocks = _read(channel)
        return reader

    async def _fill(self, channel: Channel, blocks: AsyncIterator[Block[Any]]) -> None:
        try:
            await fill(channel, self._limited(blocks), self.counters)
        finally:
            self._unfinished.release()

    async def _limited(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        while True:
            async with self._reading:
                block = await anext(blocks, None)
            if block is None:
                return
            yield block


async def _read(channel: Channel) -> AsyncIterator[Block[Any]]:
    while (block := await channel.get()) is not None:
        yield block
