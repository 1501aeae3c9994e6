"""`concatenate`: one dataset behind the other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.engine.plan import INFINITE, UNKNOWN, plan_of
from aiodata.spec import generalized

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["concatenate"]

T = TypeVar("T")


def concatenate(self: Dataset[T], dataset: Dataset[T], name: str | None = None) -> Dataset[T]:
    """Give this dataset's elements, then those of `dataset`, which is opened when it is reached.

    Concatenating thousands of datasets one by one makes one flat stage.

    Args:
        dataset: The dataset that follows.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: It is not a dataset, or the elements are known to differ in structure or dtype. Shapes may differ.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(2).concatenate(aiodata.Dataset.range(5, 7))]
    [0, 1, 5, 6]

    Source: `tf.data.Dataset.concatenate`.
    """
    following = plan_of(dataset)
    if following is None:
        raise TypeError(f"concatenate: dataset must be a Dataset, not {type(dataset).__name__}")
    own, others = (plan.inputs if plan.name == "concatenate" else (plan,) for plan in (self.plan, following))
    try:
        spec = generalized(self.plan.element_spec(), following.element_spec())
    except TypeError as error:
        raise TypeError(f"concatenate: the datasets do not fit each other: {error}") from None
    # The spec is settled here, else each further call would ask all parts again.
    return self.then(
        "concatenate",
        _concatenate,
        inputs=[*own, *others],
        count=_count,
        known=spec,
        title=name,
    )


def _count(*counts: int) -> int:
    if INFINITE in counts:
        return INFINITE
    return UNKNOWN if UNKNOWN in counts else sum(counts)


def _concatenate(run: Run, *sources: Source, start: Any) -> AsyncIterator[Block[Any]]:
    part, cursor, seeds = start or (0, None, None)
    if seeds is not None:
        others = [stage.seeds for stage in _others(sources, part) if stage.seeds is not None]
        for owner, saved in zip(others, seeds, strict=True):
            owner.restore(run.restored, saved)
    return _parts(run, sources, part, sources[part].open(cursor))


def _others(sources: tuple[Source, ...], part: int) -> list[Plan]:
    """List the stages of all parts but one."""
    return [stage for number, source in enumerate(sources) if number != part for stage in source.plan.walk()]


async def _parts(
    run: Run, sources: tuple[Source, ...], part: int, blocks: AsyncIterator[Block[Any]]
) -> AsyncIterator[Block[Any]]:
    seeded = any(stage.seeds is not None for source in sources for stage in source.plan.walk())
    while True:
        # Shuffles in the other parts are not open: where their seeds stand belongs to the position.
        seeds = [s.seeds.save() for s in _others(sources, part) if s.seeds is not None] if seeded else None
        async for block in blocks:
            yield block.moved(block.origin.within(partial(_position, part, block.here(), seeds), block.offset))
        await run.release(blocks)
        part += 1
        if part == len(sources):
            return
        blocks = sources[part].open()


def _position(part: int, cursor: Callable[[], Cursor], seeds: Any) -> Any:
    return [part, cursor(), seeds]
