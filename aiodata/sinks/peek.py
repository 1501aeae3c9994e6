"""`peek`: the first element, to see what a pipeline gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.engine.plan import load_seeds, save_seeds
from aiodata.spec import spec_of

if TYPE_CHECKING:
    from aiodata.dataset import Dataset
    from aiodata.iterator import DatasetIterator

__all__ = ["learn", "opened_aside", "peek"]

T = TypeVar("T")


async def peek(self: Dataset[T]) -> T:
    """Give the first element and close the pipeline again; `peek_sync` is the same, blocking.

    The dataset keeps the element's spec, for `element_spec` and `repr`, unless it knew one before. Nothing is used up:
    the next iteration gives this element too, and shuffles draw the same orders as without the look. The functions
    before it are called once more, though, and a dataset that only a function knows does draw.

    Raises:
        ValueError: The dataset is empty.
        Exception: The first element's error.

    >>> import aiodata, asyncio
    >>> ds = aiodata.Dataset.range(3).map(float)
    >>> asyncio.run(ds.peek()), ds.element_spec
    (0.0, TensorSpec(shape=(), dtype=float64))
    """
    async with opened_aside(self) as iterator:
        async for element in iterator:
            return learn(self, element)
    raise ValueError("peek: the dataset is empty")


def opened_aside(dataset: Dataset[T]) -> DatasetIterator[T]:
    """Open an iterator without a trace in the dataset's seed generators."""
    before = save_seeds(dataset.plan)
    iterator = dataset.iterate()
    load_seeds(dataset.plan, before)
    return iterator


def learn(dataset: Dataset[Any], element: T) -> T:
    """Keep the spec of an element, if the dataset knows none yet; give the element back."""
    if dataset.element_spec is None:
        dataset.plan.learned.append(spec_of(element))
    return element
