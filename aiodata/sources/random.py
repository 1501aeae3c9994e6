"""`Dataset.random`: endless random words."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.block import Block
from aiodata.engine.draws import draw, restore_seeds
from aiodata.engine.plan import INFINITE, Plan
from aiodata.engine.position import Origin
from aiodata.philox import WordStream
from aiodata.random import Seeds, get_seed
from aiodata.spec import TensorSpec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["random"]

_SPEC = TensorSpec((), np.int64)
SMALLEST_BLOCK = 64
LARGEST_BLOCK = 4096


def random(
    cls: type[Dataset[Any]],
    seed: int | None = None,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset[np.int64]:
    """Give random numbers from 0 to 2**32 - 1 for ever, as `np.int64` scalars.

    The numbers are tf.data's for the same seeds, in any process. Without a seed here and a global one they are
    different for every dataset.

    Args:
        seed: Any integer. With it, or with `set_seed`, the numbers are the same in every process.
        rerandomize_each_iteration: Give other numbers in every iteration. Without it all iterations give the same.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: The seed is not an integer.

    >>> import aiodata
    >>> list(aiodata.Dataset.random(seed=5).take(2))
    [np.int64(3568415791), np.int64(2798973839)]

    Source: `tf.data.Dataset.random`.
    """
    own = None if seed is None else operator.index(seed)
    seeds = Seeds(*get_seed(own), reshuffle=bool(rerandomize_each_iteration))
    parts = [] if own is None else [f"seed={own}"]
    if seeds.reshuffle:
        parts.append("rerandomize_each_iteration=True")
    stage = partial(_random, seeds=seeds)
    detail = ", ".join(parts)
    return cls.of(
        Plan("random", stage, detail=detail, count=lambda: INFINITE, spec=lambda: _SPEC, seeds=seeds, title=name)
    )


def _random(run: Run, *, start: Any, seeds: Seeds) -> AsyncIterator[Block[Any]]:
    if start is None:
        (pair, saved), word = draw(run, seeds), 0
    else:
        pair, saved, word = tuple(start["pair"]), start["seeds"], start["word"]
        restore_seeds(run, seeds, saved)
    return _words(run, pair, saved, word)


async def _words(run: Run, pair: tuple[int, int], saved: list[int], word: int) -> AsyncIterator[Block[Any]]:
    stream = WordStream(*pair, drawn=word)
    size = SMALLEST_BLOCK
    while True:
        origin = Origin(partial(_position, pair, saved, word))
        yield Block(origin, columns=stream.take(size).astype(np.int64), length=size)
        word += size
        size = min(2 * size, LARGEST_BLOCK)
        await run.breathe()  # a stage that lets nothing through would hold the loop for ever


def _position(pair: tuple[int, int], saved: list[int], word: int) -> dict[str, Any]:
    return {"pair": list(pair), "seeds": saved, "word": word}
