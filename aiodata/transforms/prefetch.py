"""`prefetch`: read ahead of the consumer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.ahead import read_ahead
from aiodata.engine.plan import AUTOTUNE
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["prefetch"]

T = TypeVar("T")


def prefetch(self: Dataset[T], buffer_size: int | None = AUTOTUNE, name: str | None = None) -> Dataset[T]:
    """Compute up to `buffer_size` elements ahead of the consumer; the same elements in the same order.

    The last prefetch of a pipeline works in a thread with a loop of its own, so that it goes on while a training
    step holds the consumer's loop, unless coroutines of the user's run before it: those stay on the user's loop, and
    the prefetch is a task there. Other prefetches are tasks beside the pipeline. Work starts with the first element
    that is asked for.

    Args:
        buffer_size: The most elements that are computed and not yet taken; 0 does not read ahead. What comes computed
            in blocks, such as batches that `batch` cuts out of columns, is handed over a block at a time, since it
            takes up its memory in any case; then one more block is computed ahead. `AUTOTUNE`, or None, begins with 1
            and doubles, up to 1,024 and within the options' `autotune.ram_budget`, whenever the consumer finds nothing
            although the buffer had been full; it stays at 1 where they say `autotune.enabled = False`.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `buffer_size` is not an integer.
        ValueError: It is below -1.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(3).prefetch(2)]
    [0, 1, 2]

    Source: `tf.data.Dataset.prefetch`.
    """
    size = AUTOTUNE if buffer_size is None else check_integer(buffer_size, "prefetch", "buffer_size", AUTOTUNE)
    stage = partial(_prefetch, size=size, label=f"prefetch({size})")
    ahead = size != 0
    return self.then(
        "prefetch",
        stage,
        detail=str(size),
        count=lambda count: count,
        spec=same,
        resumes_by_cursor=True,
        reads_ahead=ahead,
        waits=ahead,
        title=name,
    )


def _prefetch(run: Run, source: Source, *, start: Cursor | None, size: int, label: str) -> AsyncIterator[Block[Any]]:
    return source.open(start) if size == 0 else read_ahead(run, source, start, size, label)
