"""`map` with parallel calls: coroutines on the loop, plain functions in threads, processes or any executor."""

from __future__ import annotations

from contextlib import aclosing
from itertools import chain
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Tally, pull
from aiodata.engine.concurrent import PULL_SECONDS, Feed, in_order
from aiodata.engine.unordered import as_ready
from aiodata.functions import applied, is_coroutine_function
from aiodata.transforms._calls import Calls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from concurrent.futures import Executor

    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.engine.statistics import Counters
    from aiodata.engine.tuning import Knob

__all__ = ["parallel_map"]

CHEAP_SECONDS = 50e-6
"""Below this cost of a call, sending it to a thread costs more than it can bring."""

DEAR_SECONDS = 4 * CHEAP_SECONDS
"""What a call that was cheap has to cost before the threads are tried again."""

LONG_SECONDS = 20 * CHEAP_SECONDS
"""From here on one call is enough to know that they are dear."""

PORTION_SECONDS = 1e-3
"""About how long the calls of a portion take that is computed in place."""

LARGEST_PORTION = 512
FOREVER = 1e9

WAITING = 0.5
"""A call whose thread computes for less than this share of its time waits for something else than a processor."""


def parallel_map(
    run: Run,
    source: Source,
    *,
    start: Cursor | None,
    function: Callable[..., Any],
    label: str,
    calls: int,
    deterministic: bool | None,
    executor: str | Executor,
    vectorized: bool,
    limit: float | None,
) -> AsyncIterator[Block[Any]]:
    """Open a map stage whose calls run at once; the stage of `map`."""
    coroutine = is_coroutine_function(function)
    counters = run.statistics.counters(label, getattr(function, "__code__", None))
    knob = run.tuner.knob(counters, calls, coroutine, turns=executor == "thread")
    decides = executor == "thread" and not vectorized and not coroutine and limit is None
    work = _Work(run, function, label, knob, executor, vectorized, limit, decides)
    ordered = run.options.deterministic if deterministic is None else deterministic
    if ordered is False:
        return as_ready(run, source, start, work.perform, knob, work.grain)
    feed = Feed(source.open(start))
    return _adaptive(run, feed, work) if decides else in_order(run, feed, work.perform, knob, work.grain)


class _Work(Calls):
    """Calls whose number may change, and which may turn out to be too cheap to send away.

    Args:
        knob: How many portions are computed at once.
        decides: Whether cheap calls are made where the pipeline runs.
    """

    def __init__(
        self,
        run: Run,
        function: Callable[..., Any],
        label: str,
        knob: Knob,
        executor: str | Executor,
        vectorized: bool,
        limit: float | None,
        decides: bool,
    ) -> None:
        super().__init__(run, function, label, knob.highest, executor, vectorized, limit)
        self.knob = knob
        self.decides = decides
        self.key = label, getattr(function, "__code__", None)
        self.seconds = run.tuner.seconds.get(self.key)
        self.first = _Clocked(function) if decides and self.seconds is None else None
        """What the first call is made by, if nothing is known of the function."""
        if self.first is not None:
            self.function = self.first
        self.portion = 1
        """Elements in the next portion that is computed in place."""

    @property
    def counters(self) -> Counters:
        """The stage's statistics."""
        return self.knob.counters

    @property
    def is_cheap(self) -> bool:
        """Whether a call costs less than sending it away."""
        return self.decides and self.seconds is not None and self.seconds < CHEAP_SECONDS

    def grain(self) -> int:
        """Give how many elements the next portion should have."""
        return self.portion if self.is_cheap else super().grain()

    async def perform(self, chunk: Block[Any]) -> Block[Any]:
        """Compute a portion in place if calls are cheap, or elsewhere; and count it."""
        if self.is_cheap:
            return self.in_place(chunk)
        result = await super().perform(chunk)
        first = self.first
        if first is not None and first.seconds:
            self.function, self.first = first.function, None
            if first.seconds > LONG_SECONDS and first.computing < WAITING * first.seconds:
                self.knob.learn_that_calls_wait(result)
        if self.decides and self.seconds is not None:
            self.run.tuner.seconds[self.key] = self.seconds
        return result

    def in_place(self, chunk: Block[Any], limit: float = FOREVER) -> Block[Any]:
        """Compute a portion here, and look how long that took as a whole; only its beginning if it takes too long."""
        rows = applied(self.function, chunk, self.label, Tally(self.index.count))
        start = perf_counter()
        computed = pull(rows, chunk.length or 0, limit)
        seconds = perf_counter() - start
        size = len(computed)
        self.index.count += size
        if seconds > DEAR_SECONDS * size:
            self.seconds = None  # find out anew, in threads
        elif seconds > PORTION_SECONDS:
            self.portion = max(1, int(self.portion * PORTION_SECONDS / seconds))
        elif size == self.portion:
            self.portion = min(LARGEST_PORTION, 2 * self.portion)
        counters = self.counters
        counters.elements += size
        counters.blocks += 1
        counters.grain = size
        return Block(chunk.origin, chunk.offset, computed=computed)

    def cheap_rows(self, feed: Feed, block: Block[Any]) -> Iterator[Iterator[Any]]:
        """Give the results for a block, a portion at a time and when it is asked for, as long as calls are cheap."""
        chunk: Block[Any] | None = None
        while self.is_cheap:
            if chunk is None:
                chunk = block.chunk(self.portion, PULL_SECONDS)
                if chunk is None:
                    return
            portion = self.in_place(chunk, 2 * PORTION_SECONDS)
            done = portion.length or 0
            left = (chunk.length or 0) - done
            chunk = Block(chunk.origin, chunk.offset + done, rows=chunk.rows(), length=left) if left else None
            yield portion.rows()
        feed.put_back(block)
        if chunk is not None:
            feed.put_back(chunk)


class _Clocked:
    """A function that notes how long its last call took, and how much of that its thread computed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seconds = self.computing = 0.0

    def __call__(self, *arguments: Any) -> Any:
        start, computed = perf_counter(), thread_time()
        try:
            return self.function(*arguments)
        finally:
            self.seconds, self.computing = perf_counter() - start, thread_time() - computed


async def _adaptive(run: Run, feed: Feed, work: _Work) -> AsyncIterator[Block[Any]]:
    """Find out in a thread what a call costs; then call where the pipeline runs, or send portions to threads.

    A cheap function that becomes expensive goes back to the threads.
    """
    while True:
        for _ in range(0 if work.is_cheap else 4):
            chunk = await feed.chunk(1)
            if chunk is None:
                return
            yield await work.perform(chunk)
            if work.is_cheap or (work.seconds is not None and work.seconds > LONG_SECONDS):
                break
        if not work.is_cheap:
            async with aclosing(in_order(run, feed, work.perform, work.knob, work.grain)) as results:
                async for block in results:
                    yield block
            return
        run.inline.append(work.label)
        try:
            while work.is_cheap:
                whole = await feed.block()
                if whole is None:
                    return
                yield Block(whole.origin, whole.offset, rows=chain.from_iterable(work.cheap_rows(feed, whole)))
        finally:
            run.inline.remove(work.label)
