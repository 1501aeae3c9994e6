"""`map`: apply a function to every element."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from aiodata.checks import check_parallelism
from aiodata.engine.block import Block, Tally
from aiodata.functions import applied, check_callable, is_coroutine_function, name_of
from aiodata.transforms._parallel_map import awaited_chunk, parallel_map
from aiodata.transforms._vectorized import vectorized_block

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["map"]

R = TypeVar("R")
_EXECUTORS = ("thread", "process")


@overload
def map(
    self: Dataset[Any],
    map_func: Callable[..., Coroutine[Any, Any, R]],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    *,
    executor: str | Executor = "thread",
    vectorized: bool = False,
) -> Dataset[R]: ...
@overload
def map(
    self: Dataset[Any],
    map_func: Callable[..., R],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    *,
    executor: str | Executor = "thread",
    vectorized: bool = False,
) -> Dataset[R]: ...
def map(
    self: Dataset[Any],
    map_func: Callable[..., Any],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    *,
    executor: str | Executor = "thread",
    vectorized: bool = False,
) -> Dataset[Any]:
    """Apply `map_func` to every element.

    A plain tuple is unpacked into arguments; a named tuple or dict is one argument. A returned list becomes a tuple,
    as in tf.data. An error takes its element's place, with a note that names the stage, the element and its file and
    line; pulling again goes on with the next element.

    Without `num_parallel_calls` a function runs only when its result is asked for. With it, that many calls run at
    once, ahead of the reader: at most `2 * num_parallel_calls` portions of elements have been taken and not yet
    given. An `async def` runs on the pipeline's loop, a portion being one element. A plain function runs in threads;
    portions are sized from its measured cost, and one that is too cheap to send away (below 50 us) is called where
    the pipeline runs.

    Args:
        map_func: A plain or `async def` function of an element.
        num_parallel_calls: Calls at once, at least 1; `AUTOTUNE` takes the number of cores for plain functions and 16
            for coroutines, or the `cpu_budget` of the options; None runs one call at a time, when asked.
        deterministic: False gives results as they become ready, when calls run in parallel. None takes the options'.
        executor: Where plain functions run in parallel: "thread", "process" (fresh processes; the function and the
            elements are pickled), or any `concurrent.futures.Executor`, which is not shut down.
        vectorized: Call `map_func` once for each block with arrays that have one more, leading axis, instead of once
            for each element. It must give arrays with the same leading axis, and mean the same row by row; where it
            raises for a block it is called row by row, to find the element that fails.

    Returns:
        A dataset of the results.

    Raises:
        TypeError: `map_func` is not callable, or `executor` is not one.
        ValueError: `num_parallel_calls` is 0 or below -1; `executor` is an unknown name, or would not be used.

    >>> import aiodata
    >>> list(aiodata.Dataset.range(3).map(lambda x: x * 10))
    [np.int64(0), np.int64(10), np.int64(20)]

    Source: `tf.data.Dataset.map`; `executor` and `vectorized` are additions.
    """
    check_callable(map_func, "map", "map_func")
    calls = check_parallelism(num_parallel_calls, "map", "num_parallel_calls")
    if isinstance(executor, str) and executor not in _EXECUTORS:
        raise ValueError(f"map: executor must be 'thread', 'process' or an Executor, not {executor!r}")
    if not isinstance(executor, (str, Executor)):
        raise TypeError(f"map: executor must be 'thread', 'process' or an Executor, not {executor!r}")
    coroutine = is_coroutine_function(map_func)
    if executor != "thread" and (coroutine or calls is None):
        reason = "a coroutine function runs on the loop" if coroutine else "it is for num_parallel_calls"
        raise ValueError(f"map: executor={executor!r} would not be used: {reason}")
    detail = name_of(map_func) + (", vectorized=True" if vectorized else "")
    detail += ", deterministic=False" if deterministic is False and calls is not None else ""
    label = f"map({name_of(map_func)})"
    stage: Callable[..., AsyncIterator[Block[Any]]]
    if calls is not None:
        stage = partial(
            parallel_map,
            function=map_func,
            label=label,
            calls=calls,
            deterministic=deterministic,
            executor=executor,
            vectorized=vectorized,
        )
    elif coroutine:
        stage = partial(_awaited, function=map_func, label=label, vectorized=vectorized)
    else:
        stage = partial(_mapped, function=map_func, label=label, vectorized=vectorized)
    return self.then(
        "map",
        stage,
        detail=detail,
        count=lambda count: count,
        resumes_by_cursor=True,
        waits=coroutine or calls is not None,
        has_coroutines=coroutine,
    )


def _mapped(
    run: Run, source: Source, *, start: Cursor | None, function: Callable[..., Any], label: str, vectorized: bool
) -> AsyncIterator[Block[Any]]:
    return _map_blocks(run, source.open(start), function, label, vectorized)


async def _map_blocks(
    run: Run, blocks: AsyncIterator[Block[Any]], function: Callable[..., Any], label: str, vectorized: bool
) -> AsyncIterator[Block[Any]]:
    run.inline.append(label)
    index = Tally()
    async for block in blocks:
        if vectorized:
            yield vectorized_block(function, block, label, index)
        else:
            rows = applied(function, block, label, index)
            yield Block(block.origin, block.offset, rows=rows, length=block.length)


def _awaited(
    run: Run, source: Source, *, start: Cursor | None, function: Callable[..., Any], label: str, vectorized: bool
) -> AsyncIterator[Block[Any]]:
    return _await_elements(source.open(start), function, label, vectorized)


async def _await_elements(
    blocks: AsyncIterator[Block[Any]], function: Callable[..., Any], label: str, vectorized: bool
) -> AsyncIterator[Block[Any]]:
    """Call a coroutine function one element (or, vectorised, one block) at a time, when the reader asks."""
    index = Tally()
    async for block in blocks:
        while (chunk := block.chunk(1 << 30 if vectorized else 1)) is not None:
            yield await awaited_chunk(function, chunk, label, index.count, vectorized)
            index.count += chunk.length or 0
