"""The run: everything that one iteration owns, from its tasks to its open files."""

from __future__ import annotations

import asyncio
import logging
import sys
import weakref
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiodata.engine.channel import Buffer, Channel
from aiodata.engine.interrupts import Interrupts
from aiodata.engine.job import Tasks
from aiodata.engine.plan import Plan, detachable, merged_options
from aiodata.engine.skipped import behind
from aiodata.engine.source import Source
from aiodata.engine.statistics import Statistics
from aiodata.engine.tuning import Tuner
from aiodata.engine.workers import Pools, all_of, wait_out

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence

    from aiodata.engine.block import Block, Tally
    from aiodata.engine.bridge import Bridge
    from aiodata.engine.draws import Draws
    from aiodata.engine.job import Job
    from aiodata.engine.position import Cursor
    from aiodata.options import Options

__all__ = ["Run"]

BREATH_SECONDS = 0.005
_begun: set[Run] = set()
"""Runs that have begun and not ended. Whoever drops an iterator in a reference cycle leaves it to the collector, which
must find the iterator alone: asyncio closes a generator that the collector has found in a task of its own."""
logger = logging.getLogger("aiodata")


class _Owned:
    """An async generator that a run closes, and the inputs that its stage may have opened."""

    __slots__ = ("generator", "opener", "sources")

    def __init__(self, generator: AsyncGenerator[Any, None], sources: Sequence[Source]) -> None:
        self.generator, self.sources = generator, sources
        self.opener: Source | None = None


class Run:
    """Everything that one iteration owns: tasks, channels, worker pools, generators, statistics.

    Args:
        plan: The pipeline, or the part of it that a child run is for.
        parent: The run that this one is a part of.
    """

    def __init__(self, plan: Plan, parent: Run | None = None) -> None:
        self.plan, self.parent = plan, parent
        self.interrupts: Interrupts = Interrupts(parent.interrupts if parent else None)
        self.pools = Pools(self.guard, self.interrupts)
        self.closed = self.stepped = False  # stepped: by hand, in the reader's thread, with no loop
        self.detaches = True
        """Whether the last look-ahead runs on a private loop; settled when reading begins."""
        self.inline: list[str] = parent.inline if parent else []
        """Labels of the stages whose plain functions are called where the pipeline runs."""
        self.statistics: Statistics = parent.statistics if parent else Statistics()
        self.restored: set[int] = parent.restored if parent else set()
        """Seed generators whose state has been set in this run, by identity."""
        self.options: Options = parent.options if parent else merged_options(plan)
        self.tuner: Tuner = parent.tuner if parent else Tuner(self.options.autotune)
        self.on_private_loop: bool = parent is not None and parent.on_private_loop
        self.apart = detachable(plan) if parent is None else None
        """The look-ahead that may run on a private loop."""
        self._generators: dict[int, _Owned] = {}
        self._channels: weakref.WeakSet[Channel] = weakref.WeakSet()
        self.children: list[Run] = []
        self.bridges: set[Bridge] = set()
        self._tasks = Tasks()
        self._ended: asyncio.Future[None] | None = None
        self.end: Callable[[], Coroutine[Any, Any, None]] | None = None
        """Ends the run with the pull that may be under way; set by whoever pulls."""
        self.opening: Draws | None = None
        """The account of the place at which a stage is being opened."""
        self.as_then = False
        """Whether what is being opened draws as its seed generators are, and nothing again."""
        self.root: Run = parent.root if parent else self
        self.drawn = 0  # seed pairs, in this run and its parts; kept by the root
        self._breathed = monotonic()
        self._switch_interval: float | None = None

    def open(self, plan: Plan, start: Cursor | None = None, draws: Draws | None = None) -> AsyncIterator[Block[Any]]:
        """Open the stage of `plan`, and with it those that it reads.

        This needs no event loop and draws the seeds of shuffles, so it happens when the user's iterator is made.

        Args:
            plan: The stage.
            start: Where to open it; None for the start.
            draws: The account of what is drawn there.
        """
        sources = [Source(self, source, draws) for source in plan.inputs]
        position, skip = start[:2] if start else (None, 0)
        above, self.opening = self.opening, draws
        try:
            opened = plan.stage(self, *sources, start=start if plan.resumes_by_cursor else position)
        finally:
            self.opening = above
        blocks = self.own(opened, sources)
        if plan.resumes_by_cursor or not skip:
            return blocks
        opener = Source(self, plan)  # so that the stage is closed before what it reads
        self.opened_by(opener, blocks)
        return self.own(behind(self, blocks, skip), [opener])

    def own(self, blocks: Any, sources: Sequence[Source] = ()) -> AsyncIterator[Block[Any]]:
        """Take charge of closing an async generator and what it has opened, and hold it until then.

        One that is left to the collector is closed by a task of asyncio's own, at a time nobody knows.
        """
        owned = self._generators.get(id(blocks))
        if owned is not None:  # a stage that passes its input's blocks on as they are
            owned.sources = [*owned.sources, *sources]
        else:
            self._generators[id(blocks)] = _Owned(blocks, sources)
        held: AsyncIterator[Block[Any]] = blocks
        return held

    async def release(self, blocks: AsyncIterator[Block[Any]]) -> None:
        """Close a stage and all that it reads. Whoever opens an input more than once releases it when it is done."""
        owned = self._generators.pop(id(blocks), None)
        if owned is None:
            return
        if owned.opener is not None:
            owned.opener.opened.pop(id(blocks), None)
        await owned.generator.aclose()
        for source in owned.sources:
            while source.opened:
                await self.release(source.opened.popitem()[1])

    def opened_by(self, opener: Source, blocks: AsyncIterator[Block[Any]]) -> None:
        """Note through which input a stage was opened."""
        self._generators[id(blocks)].opener = opener
        opener.opened[id(blocks)] = blocks

    # Running ahead

    def channel(self, buffer: Buffer) -> Channel:
        """Make a channel that closes with the run."""
        channel = Channel(buffer)
        self._channels.add(channel)
        return channel

    def spawn(self, body: Callable[[], Coroutine[Any, Any, None]], failed: Callable[[BaseException], object]) -> Job:
        """Run `body` as a task of this run, which is cancelled when the run ends.

        Args:
            body: What the task does.
            failed: Must hand what ends it before its time to the reader, who would wait for ever else.
        """
        self.guard()
        return self._tasks.spawn(body, failed)

    def guard(self) -> None:
        """Make sure that the run ends in order also when its loop is shut down with the iterator still open."""
        if self.stepped:
            return
        root = self
        while root.parent is not None and not root.on_private_loop:
            root = root.parent
        if not root.closed and not root.on_private_loop:
            root._tasks.guard(root.end or root.aclose)

    async def in_thread(
        self, function: Callable[..., Any], *arguments: Any, interrupt: Callable[[], None] | None = None
    ) -> Any:
        """Call a blocking function in one of the run's own threads for files; in place, in a run without a loop.

        If it is to end, `interrupt` is called, and the call waited for: nothing may close its file meanwhile.
        """
        if self.stepped:
            with self.interrupts.during(interrupt):
                return function(*arguments)
        calling = asyncio.get_running_loop().run_in_executor(self.pools.files, function, *arguments)
        await wait_out(calling, interrupt=interrupt)
        try:
            return calling.result()
        finally:
            del calling  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    async def breathe(self) -> None:
        """Let the loop run its other tasks if it has not for 5 ms."""
        if not self.stepped and monotonic() - self._breathed > BREATH_SECONDS:
            await asyncio.sleep(0)
            self._breathed = monotonic()

    async def gather(self, into: list[Any], rows: Iterator[Any], count: int, pace: Tally) -> bool:
        """Pull `count` elements of `rows` into a list, letting the loop breathe; tell whether there were enough.

        Args:
            into: Extended by the elements of `rows`. An exception leaves those before it there.
            rows: A block's rows.
            count: How many elements to pull.
            pace: Elements to pull between two looks at the clock; kept by the caller from call to call.
        """
        goal = len(into) + count
        while (missing := goal - len(into)) > 0:
            step = min(missing, pace.count)
            before, start = len(into), monotonic()
            into.extend(islice(rows, step))
            now = monotonic()
            await self.breathe()
            if len(into) - before < step:
                return False
            if now - start < 0.0005:
                pace.count = min(pace.count * 2, 4096)
            elif now - start > 0.002:
                pace.count = max(1, pace.count // 4)
        return True

    # The end

    def begin(self) -> None:
        """Note that reading begins; applies the options that are global to the process."""
        _begun.add(self)
        if self.options.switch_interval_seconds is not None:
            self._switch_interval = sys.getswitchinterval()
            sys.setswitchinterval(self.options.switch_interval_seconds)

    async def aclose(self) -> None:
        """End everything that the run owns, in order; calling it again waits for the first call.

        Cancelling the caller does not stop it half-way: the cancellation is raised when all is done.
        """
        if self.closed:
            if self._ended is not None:
                await wait_out(self._ended)
            return
        self.closed = True
        self.interrupts.stop()
        if not self.stepped:
            self._ended = asyncio.get_running_loop().create_future()
        try:
            await all_of([self._end_tasks, self._close_generators, self._end_children, self.pools.close])
        finally:
            if self._switch_interval is not None:
                sys.setswitchinterval(self._switch_interval)
            _begun.discard(self)
            self.end = None
            if self._ended is not None:
                self._ended.set_result(None)
            await self._tasks.end_guard()  # last: the guard may be waiting for this very end

    def abandon(self) -> None:
        """Let go of a run whose loop has closed, so that its threads end."""
        _begun.discard(self)
        self.pools.abandon()
        for bridge in self.bridges:
            bridge.stop()

    def close(self) -> None:
        """End a run that has no loop: one that is stepped by hand, or has not begun."""
        self.stepped = True
        try:
            self.aclose().send(None)
        except StopIteration:
            return
        raise RuntimeError("closing a pipeline without a loop had to wait for one")

    async def _end_tasks(self) -> None:
        for channel in list(self._channels):
            channel.close()
        await self._tasks.end()

    async def _close_generators(self) -> None:
        """Close generators, downstream first; a step of closing may open nothing more, so those there are now."""
        owned, self._generators = list(self._generators.values()), {}
        await all_of([partial(self._close_generator, each.generator) for each in reversed(owned)])

    async def _close_generator(self, generator: AsyncGenerator[Any, None]) -> None:
        try:
            await self._at_rest(generator)
            await generator.aclose()
        except Exception:  # in a user's clean-up; it must not stop the others
            logger.exception("an error while closing %s", getattr(generator, "__qualname__", generator))

    async def _at_rest(self, generator: Any) -> None:
        """Wait for a step of a generator that was cancelled and has still to take its last turn."""
        for _ in range(1000):
            if self.stepped or not generator.ag_running:
                return
            await asyncio.sleep(0)

    async def _end_children(self) -> None:
        for child in self.children:
            child.stepped = self.stepped
        await all_of([child.aclose for child in self.children])
