"""Reading ahead: a task and a channel, or, for the last look-ahead of a pipeline, a thread with a loop of its own."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.bridge import Bridge
from aiodata.engine.channel import Buffer, fill
from aiodata.engine.handoff import HandOff
from aiodata.engine.plan import load_seeds, save_seeds
from aiodata.engine.run import Run
from aiodata.engine.source import NeedsCallersLoop, NeedsLoop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from aiodata.engine.block import Block
    from aiodata.engine.position import Cursor
    from aiodata.engine.source import Source

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
    seeds = save_seeds(source.plan)
    child = Run(source.plan, parent=run)
    run.children.append(child)
    return _apart(run, child, child.open(source.plan, start), (start, seeds), size, label)


async def _beside(
    run: Run, blocks: AsyncIterator[Block[Any]], size: int, label: str
) -> AsyncGenerator[Block[Any], None]:
    counters = run.statistics.counters(label)
    channel = run.channel(Buffer(size, counters))
    job = run.spawn(partial(fill, channel, blocks, counters), channel.end)
    try:
        while (block := await channel.get()) is not None:
            yield block
    finally:
        channel.close()
        await job.stop()


async def _apart(
    run: Run, child: Run, blocks: AsyncIterator[Block[Any]], begun: Any, size: int, label: str
) -> AsyncIterator[Block[Any]]:
    bridge: Bridge | None = None
    try:
        if not run.detaches:
            async with aclosing(_beside(child, blocks, size, label)) as beside:
                async for block in beside:
                    yield block
            return
        counters = run.statistics.counters(label)
        hand_off = HandOff(Buffer(size, counters))
        child.on_private_loop = True
        bridge = Bridge(child, partial(fill, hand_off, blocks, counters), hand_off)
        bridge.start()
        start, seeds = begun
        try:
            while (found := hand_off.get() if run.stepped else await hand_off.get_async()) is not None:
                start, seeds = found.cursor(found.length or 0), None
                yield found
        except NeedsCallersLoop:
            if run.stepped:
                raise NeedsLoop from None  # there is no loop here; the iterator makes one
            # Found only now, in an inner dataset: go on at the same element, on the loop the coroutines belong to.
            if seeds is not None:
                load_seeds(child.plan, seeds)
            async with aclosing(_beside(run, run.open(child.plan, start), size, label)) as beside:
                async for block in beside:
                    yield block
    finally:
        if bridge is None:
            await child.aclose()
        else:
            bridge.stop()
            if run.stepped:
                bridge.join()
            else:
                await bridge.wait()
        run.children.remove(child)
