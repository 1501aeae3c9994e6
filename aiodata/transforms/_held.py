"""Datasets of elements that a stage holds in memory: the windows of `window`, the groups of `group_by_window`."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.columns import freeze, slice_columns
from aiodata.engine.block import Block
from aiodata.engine.position import Origin
from aiodata.spec import generalized, row_spec, spec_of
from aiodata.structure import PLAIN, unshared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["frozen", "held"]

LARGEST_BLOCK = 4096
_ARRAYS = {np.ndarray}
_SCALARS = PLAIN - _ARRAYS


def frozen(elements: list[Any]) -> list[Any]:
    """Mark all arrays in elements read-only, in place, for they are given more than once."""
    kinds = set(map(type, elements))
    if kinds == _ARRAYS:
        for array in elements:
            array.setflags(write=False)
    elif not kinds <= _SCALARS:
        for element in elements:
            freeze(element)
    return elements


def held(parent: Dataset[Any], name: str, elements: Any, count: int, known: Callable[[], Any]) -> Dataset[Any]:
    """Give a dataset of elements in memory. It can be read any number of times, also after its stage has ended.

    Args:
        parent: The dataset that the stage reads; what is made has its class, and is not of its elements.
        name: What `repr` calls it.
        elements: A list, or columns. They are not copied, so nobody may change them: see `frozen`.
        count: How many there are, at least one.
        known: Gives the spec of the elements, or None for what the elements themselves tell.
    """
    stage = partial(_held, elements=elements, count=count)
    spec = partial(_spec, elements, known)
    return parent.then(name, stage, inputs=(), detail=str(count), count=lambda: count, spec=spec)


async def _held(run: Run, *, start: int | None, elements: Any, count: int) -> AsyncIterator[Block[Any]]:
    for begin in range(start or 0, count, LARGEST_BLOCK):
        stop = min(count, begin + LARGEST_BLOCK)
        origin = Origin(partial(int, begin))
        if isinstance(elements, list):
            yield Block(origin, computed=list(map(unshared, elements[begin:stop])), clean=True)
        else:
            yield Block(origin, columns=slice_columns(elements, begin, stop), length=stop - begin)


def _spec(elements: Any, known: Callable[[], Any]) -> Any:
    spec = known()
    if spec is not None:
        return spec
    if not isinstance(elements, list):
        return row_spec(elements)
    try:
        return reduce(generalized, map(spec_of, elements))
    except TypeError:  # they differ in structure or dtype
        return None
