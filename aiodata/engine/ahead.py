"""Reading ahead: a task and a channel, or, for the last look-ahead of a pipeline, a thread with a loop of its own."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.bridge import Bridge
from aiodata.engine.channel import Buffer, fill
from aiodata.engine.handoff import HandOff
from aiodata.engine.plan import load_seeds, needs_loop, save_seeds
from aiodata.engine.position import cursor
from aiodata.engine.run import Run
from aiodata.engine.source import NeedsCallersLoop, NeedsLoop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor
    from aiodata.engine.source import Source
    from aiodata.engine.statistics import Counters

__all__ = ["read_ahead"]


def read_ahead(run: Run, source: Source, start: Cursor | None, size: int, label: str) -> AsyncIterator[Block[Any]]:
    """Read up to `size` elements of `source` ahead of the reader; the same elements with the same origins.

    The most downstream look-ahead of a pipeline runs on a private loop, so that it goes on while the reader's loop is
    held, unless the user's own coroutines lie behind it.

    Args:
        run: The run that reads.
        source: The input, which is opened at once.
        start: Where to open it.
        size: Elements; 0 or less is automatic, see `aiodata.engine.channel.Buffer`.
        label: The stage's label in the statistics.
    """
    if run.apart is None or source.plan is not run.apart.inputs[0]:
        return _beside(run, source.open(start), size, label)
    return _Apart(run, source.plan, start, size, label).blocks()


async def _beside(
    run: Run, blocks: AsyncIterator[Block[Any]], size: int, label: str
) -> AsyncGenerator[Block[Any], None]:
    counters = run.statistics.counters(label)
    channel = run.channel(_buffer(run, size, label, counters))
    job = run.spawn(partial(fill, channel, blocks, counters, whole_blocks=True), channel.end)
    try:
        while (block := await channel.get()) is not None:
            yield block
    finally:
        channel.close()
        await job.stop()


def _buffer(run: Run, size: int, label: str, counters: Counters) -> Buffer:
    return run.tuner.buffer(label, counters) if size < 1 else Buffer(size, counters)


class _Apart:
    """The look-ahead that has a thread of its own; opened at once, like every stage."""

    def __init__(self, run: Run, plan: Plan, start: Cursor | None, size: int, label: str) -> None:
        self.run = run
        self.plan = plan
        self.start = start
        self.size = size
        self.label = label
        self.seeds = save_seeds(plan)
        self.last: Callable[[], Cursor] | None = None
        """Gives the cursor behind what has been given."""
        self.child, self.opened = self._open(start)

    def _open(self, start: Cursor | None) -> tuple[Run, AsyncIterator[Block[Any]]]:
        child = Run(self.plan, parent=self.run)
        self.run.children.append(child)
        return child, child.open(self.plan, start)

    async def blocks(self) -> AsyncIterator[Block[Any]]:
        if not self.run.detaches:
            async with aclosing(self._beside_child()) as blocks:
                async for block in blocks:
                    yield block
            return
        self.child.stepped = not needs_loop(self.plan)
        while True:
            try:
                async with aclosing(self._on_thread()) as blocks:
                    async for block in blocks:
                        yield block
                return
            except NeedsLoop:
                # Found only now, in an inner dataset: go on at the same element, in a thread with a loop.
                if self.run.stepped:
                    raise  # the iterator makes a loop for everything
                self.child, self.opened = self._open(self._behind())
            except NeedsCallersLoop:
                if self.run.stepped:
                    raise NeedsLoop from None
                break
        async with aclosing(_beside(self.run, self.run.open(self.plan, self._behind()), self.size, self.label)) as rest:
            async for block in rest:
                yield block

    def _behind(self) -> Cursor | None:
        if self.last is not None:
            return self.last()
        load_seeds(self.plan, self.seeds)
        return self.start

    async def _beside_child(self) -> AsyncGenerator[Block[Any], None]:
        try:
            async with aclosing(_beside(self.child, self.opened, self.size, self.label)) as blocks:
                async for block in blocks:
                    yield block
        finally:
            await self.child.aclose()
            self.run.children.remove(self.child)

    async def _on_thread(self) -> AsyncGenerator[Block[Any], None]:
        run, child = self.run, self.child
        counters = run.statistics.counters(self.label)
        child.on_private_loop = True
        hand_off = HandOff(_buffer(run, self.size, self.label, counters), blocking=child.stepped)
        bridge = Bridge(child, partial(fill, hand_off, self.opened, counters, whole_blocks=True), hand_off)
        bridge.start()
        run.bridges.add(bridge)
        if not run.stepped:
            run.guard()
        try:
            while (found := hand_off.get() if run.stepped else await hand_off.get_async()) is not None:
                self.last = partial(cursor, found.origin, found.offset + (found.length or 0))
                yield found
        finally:
            bridge.stop()
            if run.stepped:
                bridge.join()
            else:
                await bridge.wait()
            run.bridges.discard(bridge)
            run.children.remove(child)
