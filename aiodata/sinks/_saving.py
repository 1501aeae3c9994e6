"""What `save` and `asave` share: a stage that writes all elements of its input, and gives none."""

from __future__ import annotations

import os
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Failure, Tally
from aiodata.engine.plan import INFINITE
from aiodata.engine.position import Origin
from aiodata.storage.masking import masked
from aiodata.storage.schemes import local_path
from aiodata.transforms._saving import Saving, check_compression, check_shard_func, portions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["saving"]

SIGN_SECONDS = 0.05
"""How often an empty block is given: a thread that waits for one all the time may not notice a Ctrl-C."""


def saving(
    dataset: Dataset[Any],
    path: str | bytes | os.PathLike[str],
    compression: str | None,
    shard_func: Callable[..., Any] | None,
    method: str,
) -> Dataset[Any]:
    """Give the dataset that saves when it is iterated over, and has no elements.

    Raises:
        TypeError, ValueError: An argument is wrong, or the dataset is endless.
    """
    folder = local_path(os.fsdecode(path))
    if not folder:
        raise ValueError(f"{method}: path must not be empty")
    stage = partial(_save, path=folder, compression=check_compression(compression, method), shard_func=shard_func)
    check_shard_func(shard_func, method)
    if dataset.plan.cardinality() == INFINITE:
        raise ValueError(f"{method}: the dataset is endless; put take(n) before")
    return dataset.then(method, stage, detail=repr(masked(folder)), count=lambda _: 0, waits=True)


def _save(run: Run, source: Source, *, start: Any, path: str, **how: Any) -> AsyncIterator[Block[Any]]:
    saving = Saving(run, path, label=f"save({masked(path)!r})", **how)
    return _saved(run, source.open(), saving, source.plan.element_spec())


async def _saved(run: Run, blocks: AsyncIterator[Block[Any]], saving: Saving, spec: Any) -> AsyncIterator[Block[Any]]:
    limit, shown = Tally(1), monotonic()
    try:
        await saving.open()
        async for block in blocks:
            for portion in portions(block, limit):
                for element in portion.computed or ():
                    if element.__class__ is Failure:
                        element.open()
                await saving.write(portion)
                await run.breathe()
                if monotonic() - shown > SIGN_SECONDS:
                    yield Block(Origin(_nothing), rows=iter(()), length=0)
                    shown = monotonic()
        await saving.commit(spec, replace=True)
    finally:
        await saving.discard()


def _nothing() -> None:
    """Give no position: a save begins anew."""
