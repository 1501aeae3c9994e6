"""`shuffle`: a random order within a window, tf.data's own, bit for bit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.draws import draw, restore_seeds
from aiodata.engine.plan import UNKNOWN
from aiodata.random import Seeds, get_seed
from aiodata.spec import same
from aiodata.transforms._shuffle_window import Window

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["shuffle"]

T = TypeVar("T")


def shuffle(
    self: Dataset[T],
    buffer_size: int,
    seed: int | None = None,
    reshuffle_each_iteration: bool | None = True,
    name: str | None = None,
) -> Dataset[T]:
    """Give the elements in random order: each the next time from a window of `buffer_size` elements.

    The order is tf.data's for the same seeds, bit for bit, in any process. The window is filled before the first
    element comes, and topped up by one for each further one, so `buffer_size` elements are held; a window that is not
    smaller than the dataset gives a uniform order. A saved state holds where the window's elements came from, not the
    elements: some 10 bytes each. Restoring it reads the input again from the oldest of them.

    Each pass has another order, so `take(n)` and `skip(n)` behind a shuffle do not part a dataset: what one of them
    gave in the first pass the other gives in the second. `split` parts it.

    Args:
        buffer_size: Elements in the window, at least 1, or `UNKNOWN_CARDINALITY` (-2) for the whole input.
        seed: With it, or with `set_seed`, the order is the same in every process.
        reshuffle_each_iteration: Take another order in every iteration and every epoch of a later `repeat`. Without
            it all have one order.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `buffer_size` or `seed` is not an integer.
        ValueError: `buffer_size` is 0, -1 or below -2.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(6).shuffle(3, seed=42)]
    [0, 3, 4, 2, 5, 1]

    Source: `tf.data.Dataset.shuffle`.
    """
    size = check_integer(buffer_size, "shuffle", "buffer_size", UNKNOWN)
    if size in (0, -1):
        raise ValueError(f"shuffle: buffer_size must be at least 1, or UNKNOWN_CARDINALITY (-2), not {size}")
    reshuffle = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
    seeds = Seeds(*get_seed(seed), reshuffle=reshuffle)
    detail = f"{size}" + ("" if seed is None else f", seed={seed}")
    detail += "" if reshuffle else ", reshuffle_each_iteration=False"
    stage = partial(_shuffle, seeds=seeds, size=None if size == UNKNOWN else size)
    return self.then("shuffle", stage, detail=detail, count=lambda count: count, spec=same, seeds=seeds, title=name)


def _shuffle(run: Run, source: Source, *, start: Any, seeds: Seeds, size: int | None) -> AsyncIterator[Block[Any]]:
    if start is None:
        window = Window(run, source, *draw(run, seeds), size)
    else:
        window = Window(run, source, tuple(start["pair"]), start["seeds"], size)
        restore_seeds(run, seeds, start["seeds"])
    return window.elements(start)
