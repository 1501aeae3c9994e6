"""`interleave`: several datasets read in turn."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer, check_parallelism
from aiodata.engine.machine import available_cores
from aiodata.engine.plan import AUTOTUNE, INFINITE, UNKNOWN
from aiodata.functions import check_callable, name_of
from aiodata.random import seeded
from aiodata.transforms._cycle import cycle
from aiodata.transforms._parallel_cycle import parallel_cycle

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["interleave"]

R = TypeVar("R")


def interleave(
    self: Dataset[Any],
    map_func: Callable[..., Dataset[R]],
    cycle_length: int | None = None,
    block_length: int | None = None,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Dataset[R]:
    """Read `cycle_length` datasets in turn, `block_length` elements of each, made by `map_func` from the elements.

    A dataset that ends in its turn passes the turn on at once; its slot takes the next element when its turn comes
    again. With `num_parallel_calls` a task reads ahead in every open dataset, at most 1,024 elements or about 4 MiB
    each, and the order is the same; at most `cycle_length` datasets are being read at once, and up to twice as many
    have elements waiting.

    Args:
        map_func: A plain function that gives a dataset; called as `map` calls its function.
        cycle_length: Datasets in turn, at least 1; None or `AUTOTUNE` takes `num_parallel_calls`, or the number of
            cores.
        block_length: Elements of one dataset in a row, at least 1; None means 1.
        num_parallel_calls: Datasets that read at once, at least 1 and at most `cycle_length`; `AUTOTUNE` takes
            `cycle_length`, as far as the options' `autotune.cpu_budget` goes, and lets each read further ahead, up to
            64 MiB within `autotune.ram_budget`, if its reader has to wait; None reads one at a time, when asked.
        deterministic: False gives what is ready, when datasets are read in parallel. None takes the options'.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `map_func` is not callable; while iterating: it does not give a dataset.
        ValueError: An argument is out of its range.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(1, 4).interleave(lambda n: aiodata.Dataset.from_tensors(n).repeat(2), cycle_length=2)
    >>> [int(x) for x in ds]
    [1, 2, 1, 2, 3, 3]

    Source: `tf.data.Dataset.interleave`.
    """
    check_callable(map_func, "interleave", "map_func")
    calls = check_parallelism(num_parallel_calls, "interleave", "num_parallel_calls")
    length = check_parallelism(cycle_length, "interleave", "cycle_length") or AUTOTUNE
    run_length = 1 if block_length is None else check_integer(block_length, "interleave", "block_length", 1)
    if length == AUTOTUNE:
        length = calls if calls is not None and calls > 0 else available_cores()
    if calls is not None and calls > length:
        raise ValueError(f"interleave: num_parallel_calls ({calls}) must not be above cycle_length ({length})")
    label = f"interleave({name_of(map_func)})"
    detail = f"{name_of(map_func)}, cycle_length={length}, block_length={run_length}"
    stage = partial(cycle, function=seeded(map_func), label=label, length=length, block_length=run_length)
    if calls is not None:
        stage = partial(
            parallel_cycle,
            function=seeded(map_func),
            label=label,
            length=length,
            block_length=run_length,
            calls=calls,
            deterministic=deterministic,
        )
    parallel = calls is not None
    detail += ", deterministic=False" if parallel and deterministic is False else ""
    return self.then(
        "interleave",
        stage,
        detail=detail,
        count=partial(_count, parallel=parallel),
        waits=parallel,
        makes_datasets=True,
        deterministic=deterministic if parallel else True,
        title=name,
    )


def _count(available: int, parallel: bool) -> int:
    """Give the cardinality as tf.data does: endless only where it is read in parallel."""
    return INFINITE if available == INFINITE and parallel else UNKNOWN
