"""`Dataset.from_tensors`: one element."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.conversion import as_element
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin
from aiodata.spec import spec_of
from aiodata.structure import unshared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["from_tensors"]


def from_tensors(cls: type[Dataset[Any]], tensors: Any, name: str | None = None) -> Dataset[Any]:
    """Give one element: `tensors` itself.

    Arrays are copied, and read-only in the element. A Python list becomes an array; tuples, named tuples and dicts
    stay structures; None stays None.

    Args:
        tensors: The element.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: A set, which has no order.
        ValueError: A list whose rows have different lengths.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_tensors(([1, 2], b"x")))
    [(array([1, 2]), b'x')]

    Source: `tf.data.Dataset.from_tensors`; Python numbers follow numpy (int64, float64), not TensorFlow.
    """
    element = as_element(tensors)
    spec = spec_of(element)
    stage = partial(_one, element=element)
    return cls.of(Plan("from_tensors", stage, count=lambda: 1, spec=lambda: spec, title=name, contents=element))


async def _one(run: Run, *, start: int | None, element: Any) -> AsyncIterator[Block[Any]]:
    if start is None:
        yield Block(Origin(_begin), computed=[unshared(element)])


def _begin() -> None:
    return None
