"""`map` with parallel calls: coroutines on the loop, plain functions in threads, processes or any executor."""

from __future__ import annotations

import asyncio
from concurrent.futures import BrokenExecutor, Executor
from contextlib import aclosing
from time import perf_counter
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Failure, Tally
from aiodata.engine.concurrent import Feed, in_order
from aiodata.engine.job import as_failure
from aiodata.engine.plan import AUTOTUNE
from aiodata.engine.position import locate
from aiodata.engine.unordered import as_ready
from aiodata.functions import applied, call, is_coroutine_function
from aiodata.options import available_cores
from aiodata.structure import normalize
from aiodata.transforms._in_worker import compute, compute_installed, compute_portable, install, pickled
from aiodata.transforms._vectorized import checked, columns_of, merged, vectorized_block

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.engine.statistics import Counters

__all__ = ["awaited_chunk", "parallel_map"]

CHEAP_SECONDS = 50e-6
"""Below this cost of a call, sending it to a thread costs more than it can bring."""

THREAD_GRAIN_SECONDS = 500e-6
PROCESS_GRAIN_SECONDS = 2e-3
LARGEST_GRAIN = 256
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
) -> AsyncIterator[Block[Any]]:
    """Open a map stage whose calls run at once; the stage of `map`."""
    work = _Work(run, function, label, calls, executor, vectorized)
    ordered = run.options.deterministic if deterministic is None else deterministic
    if ordered is False:
        return as_ready(run, source, start, work.perform, work.parallelism, work.grain)
    feed = Feed(source.open(start))
    if executor == "thread" and not vectorized and not work.coroutine:
        return _adaptive(run, feed, work)
    return in_order(run, feed, work.perform, work.parallelism, work.grain)


class _Work:
    """How one parallel map calls its function on a portion of elements, and what it has learned of the cost."""

    def __init__(
        self, run: Run, function: Callable[..., Any], label: str, calls: int, executor: str | Executor, vectorized: bool
    ) -> None:
        self.run = run
        self.function = function
        self.label = label
        self.coroutine = is_coroutine_function(function)
        self.vectorized = vectorized
        self.executor = executor
        self.parallelism = _parallelism(run, calls, self.coroutine)
        self.index = Tally()
        self.seconds: float | None = None
        self._pool: Executor | None = executor if isinstance(executor, Executor) else None
        self._installed = False

    @property
    def counters(self) -> Counters:
        counters = self.run.statistics.counters(self.label)
        counters.parallelism = self.parallelism
        return counters

    def grain(self) -> int:
        """Give how many elements the next portion should have."""
        if self.vectorized:
            return 1 << 30
        if self.coroutine or self.seconds is None:
            return 1
        goal = THREAD_GRAIN_SECONDS if self.executor == "thread" else PROCESS_GRAIN_SECONDS
        return max(1, min(LARGEST_GRAIN, int(goal / max(self.seconds, 1e-9))))

    async def perform(self, chunk: Block[Any]) -> Block[Any]:
        """Call the function on a portion."""
        first = self.index.count
        size = chunk.length or 0
        self.index.count += size
        counters = self.counters
        counters.elements += size
        counters.blocks += 1
        counters.grain = size
        if self.coroutine:
            return await awaited_chunk(self.function, chunk, self.label, first, self.vectorized)
        if self.vectorized:
            tally = Tally(first)
            block: Block[Any] = await self._submit(vectorized_block, self.function, chunk, self.label, tally)
            return block
        return await self.call_in_pool(chunk, first)

    async def call_in_pool(self, chunk: Block[Any], first: int) -> Block[Any]:
        """Call a plain function in the pool on each element of a portion."""
        elements = _elements(chunk)
        try:
            return await self._call(chunk, elements, first)
        except BrokenExecutor:
            raise
        except Exception as error:
            if self.executor == "thread" or "shutdown" in str(error):
                error.add_note(f"in {self.label}")
                raise
            # An element or a result could not be pickled, and the executor does not say which one.
            if len(elements) == 1:
                locate(error, self.label, first, chunk.origin, chunk.offset)
                return Block.failed(error, chunk.origin, chunk.offset)
        singly = [Block[Any](chunk.origin, chunk.offset + at, computed=[one]) for at, one in enumerate(elements)]
        results = [await self.call_in_pool(one, first + at) for at, one in enumerate(singly)]
        return Block(chunk.origin, chunk.offset, computed=[one for block in results for one in block.computed or ()])

    async def _call(self, chunk: Block[Any], elements: list[Any], first: int) -> Block[Any]:
        if self.executor == "thread":
            results, seconds = await self._submit(compute, self.function, elements)
        elif self.executor == "process":
            results, seconds = await self._submit(compute_installed, elements)
        else:
            results, seconds = await self._submit(compute_portable, self.function, elements)
        cost = seconds / max(1, len(elements))
        # The first calls are the dearest (they fill caches), and a thread that waits for the interpreter counts the
        # wait: so what was cheap once is believed, and a rise only slowly.
        self.seconds = cost if self.seconds is None else min(cost, 1.25 * self.seconds)
        for offset, result in enumerate(results):
            if result.__class__ is Failure and elements[offset].__class__ is not Failure:
                locate(result.exception, self.label, first + offset, chunk.origin, chunk.offset + offset)
        return Block(chunk.origin, chunk.offset, computed=results)

    async def _submit(self, work: Callable[..., Any], *arguments: Any) -> Any:
        pool = self._pool
        if pool is None:
            if self.executor == "process":
                pool = self.run.pools.processes(self.parallelism, install, pickled(self.function, self.label))
            else:
                pool = self.run.pools.threads(self.parallelism)
            self._pool = pool
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
        except BrokenExecutor as error:
            note = f"in {self.label}: a worker process ended while it was working"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise


async def awaited_chunk(
    function: Callable[..., Any], chunk: Block[Any], label: str, first: int, vectorized: bool
) -> Block[Any]:
    """Await a coroutine function on one element, or, vectorised, on the columns of a portion."""
    if vectorized:
        return await _awaited_columns(function, chunk, label, first)
    (element,) = _elements(chunk)
    if element.__class__ is Failure:
        return chunk
    try:
        result = normalize(await call(function, element))
    except asyncio.CancelledError as cancelled:
        if _is_cancelling():
            raise
        failure = as_failure(cancelled)
        locate(failure, label, first, chunk.origin, chunk.offset)
        result = Failure(failure)
    except Exception as error:
        locate(error, label, first, chunk.origin, chunk.offset)
        result = Failure(error)
    return Block(chunk.origin, chunk.offset, computed=[result])


def _is_cancelling() -> bool:
    """Tell whether the running task is being cancelled; if not, a cancellation came out of the user's coroutine."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _awaited_columns(function: Callable[..., Any], chunk: Block[Any], label: str, first: int) -> Block[Any]:
    columns, count, failures = columns_of(chunk)
    if not count:
        return merged(chunk, None, 0, failures) if failures else Block(chunk.origin, chunk.offset, computed=[])
    try:
        return merged(chunk, checked(await call(function, columns), count), count, failures)
    except Exception as error:
        locate(error, label, first, chunk.origin, chunk.offset)
        return Block(chunk.origin, chunk.offset, computed=[Failure(error) for _ in range(count + len(failures))])


async def _adaptive(run: Run, feed: Feed, work: _Work) -> AsyncIterator[Block[Any]]:
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
    return run.options.cpu_budget or automatic


def _elements(chunk: Block[Any]) -> list[Any]:
    return list(chunk.rows()) if chunk.computed is None else chunk.computed
