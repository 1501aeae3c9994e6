"""How elements are written to a saved dataset while a pipeline runs: `save` and the first pass of `snapshot`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from aiodata.checks import check_integer
from aiodata.columns import iterate, take_columns
from aiodata.engine.position import locate
from aiodata.engine.run import BREATH_SECONDS
from aiodata.engine.workers import wait_out
from aiodata.formats.element_archive import COMPRESSIONS
from aiodata.formats.element_archive_writer import CHUNK_BYTES, weight
from aiodata.functions import as_error, call, check_callable, is_coroutine_function
from aiodata.storage.saved.writer import SavedDatasetWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiodata.engine.block import Block, Tally
    from aiodata.engine.run import Run

__all__ = ["Saving", "check_compression", "check_shard_func", "portions"]

PORTION = 256
"""Elements that are computed at a time to be written."""

R = TypeVar("R")

Part: TypeAlias = "tuple[int, list[Any] | None, Any]"
"""The number of a shard, and elements, or columns."""


def check_compression(compression: Any, method: str, automatic: bool = False) -> str:
    """Give the compression of a saved dataset: "" or "GZIP".

    Raises:
        ValueError: It is none that is known; tf.data takes any text.
    """
    known = ("AUTO",) if automatic else ()
    found = "" if compression is None or compression in known or compression == "NONE" else compression
    if found not in COMPRESSIONS:
        names = ", ".join(map(repr, (*known, "GZIP", "NONE", "")))
        raise ValueError(f"{method}: compression must be None or one of {names}, not {compression!r:.80}")
    return str(found)


def check_shard_func(shard_func: Any, method: str) -> None:
    """Refuse what is no plain function; None is taken.

    Raises:
        TypeError: It is not callable, or a coroutine function.
    """
    if shard_func is None:
        return
    check_callable(shard_func, method, "shard_func")
    if is_coroutine_function(shard_func):
        raise TypeError(f"{method}: shard_func must be a plain function, not a coroutine function")


class Saving:
    """One dataset that is being saved.

    What is handed over is written by threads, a shard by one, while the pipeline computes what comes next.

    Args:
        run: The run.
        path: The folder.
        compression: "" or "GZIP".
        shard_func: Gives the number of an element's shard; None puts all into one.
        label: The stage's label, for errors.
    """

    def __init__(
        self, run: Run, path: str, compression: str, shard_func: Callable[..., Any] | None, label: str
    ) -> None:
        self._index = 0
        self._run = run
        self._where = path, compression
        self._shard_func = shard_func
        self._label = label
        self._writer: SavedDatasetWriter | None = None
        self._under_way: list[asyncio.Future[Any]] = []

    async def open(self) -> None:
        """Begin to write.

        Raises:
            OSError: There is something else, or it cannot be written to.
        """
        counters = self._run.statistics.counters(self._label)
        self._writer = SavedDatasetWriter(*self._where, self._label, self._run.options.storage, counters)
        self._under_way = [self._begun(self._writer.begin)]
        await self._all()

    async def write(self, block: Block[Any]) -> None:
        """Hand over the elements of a block that has been computed, without failures; they must not change any more.

        Raises:
            OSError: What was handed over before could not be written.
            TypeError: There was something in it that is not kept.
            Exception: What `shard_func` raises.
        """
        assert self._writer is not None
        parts: list[Part] = [(0, block.computed, block.columns)] if self._shard_func is None else self._sharded(block)
        await self._all()
        self._under_way = [self._begun(self._writer.write, *part) for part in parts]

    def _sharded(self, block: Block[Any]) -> list[Part]:
        """Part a block by the shards that its elements go to."""
        columns = block.columns if block.computed is None else None
        rows = block.computed if block.computed is not None else list(iterate(columns))
        numbers = [self._number(row, block, offset) for offset, row in enumerate(rows)]
        self._index += len(rows)
        parts: list[Part] = []
        for number in dict.fromkeys(numbers):
            index = [offset for offset, other in enumerate(numbers) if other == number]
            if len(index) == len(rows):
                return [(number, block.computed, columns)]
            if columns is None:
                parts.append((number, [rows[offset] for offset in index], None))
            else:
                parts.append((number, None, take_columns(columns, np.array(index))))
        return parts

    def _number(self, element: Any, block: Block[Any], offset: int) -> int:
        """Ask for the number of an element's shard."""
        assert self._shard_func is not None
        try:
            return check_integer(call(self._shard_func, element), "save", "what shard_func gives", 0)
        except Exception as error:
            failure = as_error(error)
            locate(failure, self._label, self._index + offset, block.origin, block.offset + offset)
            try:
                raise failure
            finally:
                del failure  # else it and this frame, which its traceback holds, would be a cycle

    async def commit(self, spec: Any, replace: bool) -> bool:
        """Complete it; tell whether it is in its place, see `SavedDatasetWriter.commit`."""
        assert self._writer is not None
        await self._all()
        self._under_way = list(map(self._begun, self._writer.finish()))
        await self._all()
        committing = self._begun(self._writer.commit, spec, replace)
        self._under_way = [committing]
        try:
            await self._all()
            return committing.result()
        finally:
            del committing  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    async def discard(self) -> None:
        """Remove what was written, if it has not been put in its place."""
        under_way, self._under_way = self._under_way, []
        if self._writer is not None:
            self._writer.abort()
        for call_ in under_way:
            await wait_out(call_)
        if self._writer is not None:
            await self._run.in_thread(self._writer.discard)

    def _begun(self, function: Callable[..., R], *arguments: Any) -> asyncio.Future[R]:
        return asyncio.get_running_loop().run_in_executor(self._run.pools.files, function, *arguments)

    async def _all(self) -> None:
        """Wait for all that is under way, and raise the first error; `discard` waits for what a cancellation leaves."""
        if self._under_way:
            await asyncio.wait(self._under_way)
        done, self._under_way = self._under_way, []
        try:
            for call_ in done:
                call_.result()
        finally:
            del done  # else an error and this frame, which its traceback holds, would be a cycle


def portions(block: Block[Any], limit: Tally) -> Iterator[Block[Any]]:
    """Compute a block's elements, some at a time and for a moment only; columns stay whole.

    Args:
        block: It is drained.
        limit: How many to compute, 1 at first; kept by the caller from call to call.
    """
    if block.columns is not None and block.length is not None:
        yield block
        return
    while (portion := block.chunk(limit.count, BREATH_SECONDS)) is not None:
        limit.count = min(2 * limit.count, PORTION, max(1, CHUNK_BYTES // max(1, weight((portion.computed or [0])[0]))))
        yield portion
