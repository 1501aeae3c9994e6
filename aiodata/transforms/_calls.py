"""How a map calls its function on portions of elements: on the loop, in threads, in processes, in any executor."""

from __future__ import annotations

import asyncio
from concurrent.futures import BrokenExecutor, Executor
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Failure, Tally
from aiodata.engine.job import as_failure
from aiodata.engine.position import locate
from aiodata.engine.workers import Overdue
from aiodata.functions import call, is_coroutine_function
from aiodata.structure import normalize
from aiodata.transforms._in_worker import ThreadWatch, Watch, compute, compute_portable, install, pickled
from aiodata.transforms._limits import awaited, computed_within
from aiodata.transforms._vectorized import on_columns, vectorized_block

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.daemons import Daemons
    from aiodata.engine.processes import Processes
    from aiodata.engine.run import Run
    from aiodata.engine.statistics import Counters

__all__ = ["Calls"]

THREAD_GRAIN_SECONDS = 2e-3
"""The way to a thread and back is 50 to 100 us of processor time, which is to be a few percent of the work."""

PROCESS_GRAIN_SECONDS = 20e-3
"""The way to a worker process and back is some 0.3 ms of processor time, and more when the cores are busy."""

LARGEST_GRAIN = 256


class Calls:
    """How one map calls its function on a portion of elements, and what it has learned of the cost.

    Args:
        run: The run that owns the pools.
        function: The user's function.
        label: The stage's label.
        parallelism: Portions at once.
        executor: "thread", "process" or an executor.
        vectorized: Whether the function gets a portion as a whole, as columns.
        limit: Seconds that a call may take, or None.
    """

    def __init__(
        self,
        run: Run,
        function: Callable[..., Any],
        label: str,
        parallelism: int,
        executor: str | Executor,
        vectorized: bool,
        limit: float | None,
    ) -> None:
        self.run = run
        self.function = function
        self.label = label
        self.parallelism = parallelism
        self.executor = executor
        self.vectorized = vectorized
        self.limit = limit
        self.coroutine = is_coroutine_function(function)
        self.index = Tally()
        self.seconds: float | None = None
        """What a call costs, as far as is known."""
        self._threads: Executor | None = None
        self._daemons: Daemons | None = None
        self._processes: Processes | None = None

    @property
    def counters(self) -> Counters:
        """The stage's statistics."""
        counters = self.run.statistics.counters(self.label)
        counters.parallelism = self.parallelism
        return counters

    def grain(self) -> int:
        """Give how many elements the next portion should have."""
        if self.vectorized:
            return 1 << 30
        if self.coroutine or self.seconds is None:
            return 1
        if self.limit is not None and isinstance(self.executor, Executor):
            return 1  # nobody could tell which of several calls takes too long
        goal = THREAD_GRAIN_SECONDS if self.executor == "thread" else PROCESS_GRAIN_SECONDS
        return max(1, min(LARGEST_GRAIN, int(goal / max(self.seconds, 1e-9))))

    async def perform(self, chunk: Block[Any]) -> Block[Any]:
        """Do as `apply`, and count it."""
        size = chunk.length or 0
        counters = self.counters
        counters.elements += size
        counters.blocks += 1
        counters.grain = size
        return await self.apply(chunk)

    async def apply(self, chunk: Block[Any]) -> Block[Any]:
        """Call the function on a portion; failures stand in their elements' places."""
        first = self.index.count
        self.index.count += chunk.length or 0
        if not self.vectorized:
            return await (self._on_one(chunk, first) if self.coroutine else self._on_elements(chunk, first))
        if self.executor == "thread" and not self.coroutine and self.limit is None:
            block: Block[Any] = await self._in_thread(vectorized_block, self.function, chunk, self.label, Tally(first))
            return block
        return await self._on_columns(chunk, first)

    async def _on_one(self, chunk: Block[Any], first: int) -> Block[Any]:
        """Await the coroutine function on a portion of one element."""
        (element,) = chunk.rows() if chunk.computed is None else chunk.computed
        if element.__class__ is Failure:
            return chunk
        result = await self._awaited(element)
        if result.__class__ is Failure:
            locate(result.exception, self.label, first, chunk.origin, chunk.offset)
        return Block(chunk.origin, chunk.offset, computed=[result])

    async def _on_elements(self, chunk: Block[Any], first: int) -> Block[Any]:
        computed = list(chunk.rows()) if chunk.computed is None else list(chunk.computed)
        places = [place for place, element in enumerate(computed) if element.__class__ is not Failure]
        results = await self._computed([computed[place] for place in places])
        for place, result in zip(places, results, strict=True):
            computed[place] = result
            if result.__class__ is Failure:
                locate(result.exception, self.label, first + place, chunk.origin, chunk.offset + place)
        return Block(chunk.origin, chunk.offset, computed=computed)

    async def _on_columns(self, chunk: Block[Any], first: int) -> Block[Any]:
        steps = on_columns(chunk, self.label, first, self.limit)
        try:
            elements = next(steps)
            while True:
                elements = steps.send(await self._computed(elements))
        except StopIteration as finished:
            block: Block[Any] = finished.value
            return block

    async def _computed(self, elements: list[Any]) -> list[Any]:
        """Call the function on each element; give the results, with failures in their places."""
        if self.coroutine:
            return [await self._awaited(element) for element in elements]
        if self.executor == "process" and self._processes is None:
            function = pickled(self.function, self.label)
            self._processes = self.run.pools.processes(self.run.root.plan, self.limit, install, function, self.limit)
        try:
            if self.limit is None:
                return (await self._attempt(elements))[0]
            return await computed_within(self.limit, elements, self._attempt)
        except Exception as error:
            if self.executor == "thread" or isinstance(error, BrokenExecutor) or "shutdown" in str(error):
                note = f"in {self.label}"
                if note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
                raise
            # An element or a result could not be pickled, and the executor does not say which one.
            if len(elements) == 1:
                return [Failure(error)]
        return [result for element in elements for result in await self._computed([element])]

    async def _awaited(self, element: Any) -> Any:
        try:
            if self.limit is None:
                return normalize(await call(self.function, element))
            return normalize(await awaited(self.run, self.function, element, self.limit))
        except asyncio.CancelledError as cancelled:
            if _is_cancelling():
                raise
            return Failure(as_failure(cancelled))
        except Exception as error:
            return Failure(error)

    async def _attempt(self, elements: list[Any]) -> tuple[list[Any], int | None]:
        """Give the results for elements, or those for the first ones, and the number of one that took too long."""
        overdue: int | None = None
        if isinstance(self.executor, Executor):
            results, seconds, overdue = await self._in_executor(self.executor, elements)
        elif self.executor == "process":
            results, seconds, overdue = await self._in_process(elements)
        elif self.limit is None:
            results, seconds = await self._in_thread(compute, self.function, elements)
        else:
            results, seconds, overdue = await self._in_daemon(elements, self.limit)
        cost = seconds / max(1, len(results))
        # The first calls are the dearest (they fill caches), and a thread that waits for the interpreter counts the
        # wait: so what was cheap once is believed, and a rise only slowly.
        self.seconds = cost if self.seconds is None else min(cost, 1.25 * self.seconds)
        if overdue is not None:
            self.seconds = None  # where one call hangs others may, so they go one by one again
        return results, overdue

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        if self._threads is None:
            self._threads = self.run.pools.threads(self.parallelism)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def _in_daemon(self, elements: list[Any], limit: float) -> tuple[list[Any], float, int | None]:
        if self._daemons is None:
            self._daemons = self.run.pools.daemons(limit)
        watch = ThreadWatch(limit)
        work = self._daemons.submit(compute, self.function, elements, watch)
        future = asyncio.wrap_future(work)
        try:
            while not future.done():
                await asyncio.wait({future}, timeout=watch.seconds_left())
                if not future.done() and watch.give_up():
                    self._daemons.leave(work)
                    return watch.results[: watch.call], 0.0, watch.call
            return *future.result(), None
        finally:
            watch.stop()
            future.cancel()

    async def _in_process(self, elements: list[Any]) -> tuple[list[Any], float, int | None]:
        assert self._processes is not None
        try:
            return *await asyncio.wrap_future(self._processes.submit(elements)), None
        except Overdue as overdue:
            return [], 0.0, overdue.call

    async def _in_executor(self, executor: Executor, elements: list[Any]) -> tuple[list[Any], float, int | None]:
        loop = asyncio.get_running_loop()
        if self.limit is None:
            return *await loop.run_in_executor(executor, compute_portable, self.function, elements), None
        results: list[Any] = []
        total = 0.0
        for number, element in enumerate(elements):
            watch = Watch(self.limit)
            future = loop.run_in_executor(executor, compute_portable, self.function, [element], watch)
            try:
                await asyncio.wait({future}, timeout=self.limit)
                if not future.done():
                    return results, total, number
                found, seconds = future.result()
            finally:
                future.cancel()
            results += found
            total += seconds
        return results, total, None


def _is_cancelling() -> bool:
    """Tell whether the running task is being cancelled; if not, a cancellation came out of the user's coroutine."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
