"""`map`: apply a function to every element."""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from aiodata.checks import check_parallelism
from aiodata.engine.block import Block, Tally
from aiodata.functions import applied, check_callable, is_coroutine_function, name_of
from aiodata.transforms._calls import Calls
from aiodata.transforms._limits import check_seconds
from aiodata.transforms._parallel_map import parallel_map
from aiodata.transforms._vectorized import vectorized_block

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["map", "mapped"]

R = TypeVar("R")
_EXECUTORS = ("thread", "process")


@overload
def map(
    self: Dataset[Any],
    map_func: Callable[..., Coroutine[Any, Any, R]],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    synchronous: bool | None = None,
    use_unbounded_threadpool: bool = False,
    name: str | None = None,
    *,
    executor: str | Executor = "thread",
    vectorized: bool = False,
    timeout_seconds: float | None = None,
) -> Dataset[R]: ...
@overload
def map(
    self: Dataset[Any],
    map_func: Callable[..., R],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    synchronous: bool | None = None,
    use_unbounded_threadpool: bool = False,
    name: str | None = None,
    *,
    executor: str | Executor = "thread",
    vectorized: bool = False,
    timeout_seconds: float | None = None,
) -> Dataset[R]: ...
def map(
    self: Dataset[Any],
    map_func: Callable[..., Any],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    synchronous: bool | None = None,
    use_unbounded_threadpool: bool = False,
    name: str | None = None,
    *,
    executor: str | Executor = "thread",
    vectorized: bool = False,
    timeout_seconds: float | None = None,
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

    With `executor="process"` the function, the elements and the results are pickled; large arrays are copied once each
    way, and arrive as memory of their own. A lambda, a closure or a function of an interactive session needs
    `cloudpickle`, see the extra `process`. A function gets a worker's time in portions of about 20 ms. The workers,
    with what the function keeps in them, serve the next epoch of the same dataset too, as long as the function is as
    it was. They end when the dataset is gone, or after 10 s without use. One that dies while it works is an error.

    With `timeout_seconds` a call that takes longer is a `TimeoutError` in its element's place. What becomes of it:

    - An `async def` is cancelled, again whenever it waits. If it has not ended a second later, reading goes on without
      it. While something else holds the loop, its time runs.
    - A thread cannot be interrupted. It is left to itself: what it gives or raises later is dropped, the next call gets
      another thread, and nothing waits for it, not even the interpreter's end. Such a function is never called where
      the pipeline runs, so without `num_parallel_calls` each call costs a hand-over to a thread and back, about 100 us.
    - A worker process is killed, and replaced. Elements of the same portion may be computed again.
    - In any other executor the call is taken back if it has not begun, or else left to itself, and goes on occupying
      the executor. It gets one element at a time, and the time that it waits for its turn counts.

    Args:
        map_func: A plain or `async def` function of an element.
        num_parallel_calls: Calls at once, at least 1; None runs one call at a time, when asked. `AUTOTUNE` begins with
            the number of cores, or with 16 for coroutines and functions that wait, and changes it while the pipeline
            runs to where most elements come, at most 64 threads or 256 coroutines and within the budgets of the
            options' `autotune`; for processes and other executors it takes the number of cores.
        deterministic: False gives results as they become ready, when calls run in parallel. None takes the options'.
        synchronous: True refuses `num_parallel_calls`; without that a map is synchronous anyway.
        use_unbounded_threadpool: Accepted as in tf.data, without effect.
        name: A name for the stage, shown in `repr`.
        executor: Where plain functions run in parallel: "thread", "process" (see above), or any
            `concurrent.futures.Executor`, which is not shut down.
        vectorized: Call `map_func` once for each block with arrays that have one more, leading axis, instead of once
            for each element. It must give arrays with the same leading axis, and mean the same row by row; where it
            raises for a block it is called row by row, to find the element that fails.
        timeout_seconds: The longest that one call may take; above 0, None for no limit. A vectorised call on a block
            that takes longer fails for all elements of the block.

    Returns:
        A dataset of the results.

    Raises:
        TypeError: `map_func` is not callable, `executor` is not one, or `timeout_seconds` is not a number.
        ValueError: `num_parallel_calls` is 0 or below -1; `executor` is an unknown name, or would not be used;
            `timeout_seconds` is not above 0, or not finite.

    >>> import aiodata
    >>> list(aiodata.Dataset.range(3).map(lambda x: x * 10))
    [np.int64(0), np.int64(10), np.int64(20)]

    Source: `tf.data.Dataset.map`; `executor`, `vectorized` and `timeout_seconds` are additions.
    """
    check_callable(map_func, "map", "map_func")
    if synchronous and num_parallel_calls is not None:
        raise ValueError(f"map: synchronous does not go with num_parallel_calls, which is {num_parallel_calls}")
    return mapped(self, map_func, num_parallel_calls, deterministic, executor, vectorized, timeout_seconds, title=name)


def mapped(
    dataset: Dataset[Any],
    function: Callable[..., Any],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    executor: str | Executor = "thread",
    vectorized: bool = False,
    timeout_seconds: float | None = None,
    *,
    name: str = "map",
    label: str | None = None,
    detail: str | None = None,
    spec: Callable[[Any], Any] = lambda _: None,
    title: str | None = None,
) -> Dataset[Any]:
    """Give a dataset of a function's results; what `map` and stages that call functions in parallel are made of.

    Args:
        dataset: The elements.
        function: As `map_func` of `map`, like the arguments that follow.
        num_parallel_calls: As for `map`.
        deterministic: As for `map`.
        executor: As for `map`.
        vectorized: As for `map`.
        timeout_seconds: As for `map`.
        name: The method's name, for `repr` and for refusing arguments.
        label: What errors and statistics call the stage; None makes it of the names of method and function.
        detail: What `repr` shows of the arguments; None takes the function's name.
        spec: Gives the spec of the results from that of the elements.
        title: The user's own name for the stage.
    """
    calls = check_parallelism(num_parallel_calls, name, "num_parallel_calls")
    limit = check_seconds(timeout_seconds, name, "timeout_seconds")
    if isinstance(executor, str) and executor not in _EXECUTORS:
        raise ValueError(f"{name}: executor must be 'thread', 'process' or an Executor, not {executor!r}")
    if not isinstance(executor, (str, Executor)):
        raise TypeError(f"{name}: executor must be 'thread', 'process' or an Executor, not {executor!r}")
    coroutine = is_coroutine_function(function)
    if executor != "thread" and (coroutine or calls is None):
        reason = "a coroutine function runs on the loop" if coroutine else "it is for num_parallel_calls"
        raise ValueError(f"{name}: executor={executor!r} would not be used: {reason}")
    detail = name_of(function) if detail is None else detail
    label = f"{name}({detail})" if label is None else label
    detail += ", vectorized=True" if vectorized else ""
    detail += ", deterministic=False" if deterministic is False and calls is not None else ""
    stage: Callable[..., AsyncIterator[Block[Any]]]
    if calls is not None:
        stage = partial(
            parallel_map,
            function=function,
            label=label,
            calls=calls,
            deterministic=deterministic,
            executor=executor,
            vectorized=vectorized,
            limit=limit,
        )
    elif coroutine or limit is not None:
        stage = partial(_one_by_one, function=function, label=label, vectorized=vectorized, limit=limit)
    else:
        stage = partial(_mapped, function=function, label=label, vectorized=vectorized)
    return dataset.then(
        name,
        stage,
        detail=detail,
        count=lambda count: count,
        spec=spec,
        resumes_by_cursor=True,
        waits=coroutine or calls is not None or limit is not None,
        has_coroutines=coroutine,
        deterministic=deterministic if calls is not None else True,
        title=title,
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


def _one_by_one(
    run: Run,
    source: Source,
    *,
    start: Cursor | None,
    function: Callable[..., Any],
    label: str,
    vectorized: bool,
    limit: float | None,
) -> AsyncIterator[Block[Any]]:
    return _call_when_asked(source.open(start), Calls(run, function, label, 1, "thread", vectorized, limit))


async def _call_when_asked(blocks: AsyncIterator[Block[Any]], calls: Calls) -> AsyncIterator[Block[Any]]:
    """Call a function beside the loop or on it, one element (or, vectorised, one block) at a time."""
    async for block in blocks:
        while (chunk := block.chunk(1 << 30 if calls.vectorized else 1)) is not None:
            yield await calls.apply(chunk)
