"""`map` with parallel calls: coroutines on the loop, plain functions in threads, processes or any executor."""

from __future__ import annotations

from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.concurrent import Feed, in_order
from aiodata.engine.plan import AUTOTUNE
from aiodata.engine.unordered import as_ready
from aiodata.functions import applied, is_coroutine_function
from aiodata.options import available_cores
from aiodata.transforms._calls import Calls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from concurrent.futures import Executor

    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["parallel_map"]

CHEAP_SECONDS = 50e-6
"""Below this cost of a call, sending it to a thread costs more than it can bring."""

AUTOMATIC_COROUTINES = 16


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
    work = Calls(run, function, label, _parallelism(run, calls, coroutine), executor, vectorized, limit)
    ordered = run.options.deterministic if deterministic is None else deterministic
    if ordered is False:
        return as_ready(run, source, start, work.perform, work.parallelism, work.grain)
    feed = Feed(source.open(start))
    if executor == "thread" and not vectorized and not coroutine and limit is None:
        return _adaptive(run, feed, work)
    return in_order(run, feed, work.perform, work.parallelism, work.grain)


async def _adaptive(run: Run, feed: Feed, work: Calls) -> AsyncIterator[Block[Any]]:
    """Find out in a thread what a call costs; then call where the pipeline runs, or send portions to threads.

    A cheap function that becomes expensive goes back to the threads.
    """
    while True:
        for _ in range(4):
            chunk = await feed.chunk(1)
            if chunk is None:
                return
            yield await work.perform(chunk)
            if work.seconds is not None and work.seconds > 20 * CHEAP_SECONDS:
                break
        if work.seconds is None or work.seconds >= CHEAP_SECONDS:
            async with aclosing(in_order(run, feed, work.perform, work.parallelism, work.grain)) as results:
                async for block in results:
                    yield block
            return
        run.inline.append(work.label)
        async with aclosing(feed.rest()) as rest:
            async for block in rest:
                timed = _Timed(work.function)
                rows = applied(timed, block, work.label, work.index)
                work.counters.blocks += 1
                yield Block(block.origin, block.offset, rows=rows, length=block.length)
                if timed.seconds > 20 * CHEAP_SECONDS:
                    break
            else:
                return
        run.inline.remove(work.label)
        work.seconds = None


class _Timed:
    """A function whose first call in a block is timed; later calls cost what the function itself costs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.seconds = 0.0

    def __call__(self, *arguments: Any) -> Any:
        start = perf_counter()
        try:
            return self._function(*arguments)
        finally:
            self.seconds = max(self.seconds, perf_counter() - start)


def _parallelism(run: Run, calls: int, coroutine: bool) -> int:
    if calls != AUTOTUNE:
        return calls
    automatic = AUTOMATIC_COROUTINES if coroutine else available_cores()
    autotune = run.options.autotune
    return automatic if autotune.enabled is False else autotune.cpu_budget or automatic
