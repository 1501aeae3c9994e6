"""`Dataset.from_list`: elements that are there already."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.columns import freeze
from aiodata.conversion import as_element
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin
from aiodata.sources._memory import rows_in_memory
from aiodata.spec import NoneTensorSpec, TensorSpec, generalized, spec_of, spec_text
from aiodata.stacking import stack
from aiodata.structure import flatten, map_structure, unshared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Stage
    from aiodata.engine.run import Run

__all__ = ["from_list"]

T = TypeVar("T")
PORTION = 256
"""Elements in a block."""


def from_list(cls: type[Dataset[Any]], elements: list[T], name: str | None = None) -> Dataset[T]:
    """Give the elements of a list.

    They are copied when the dataset is made. An element may be a structure; a list as an element, or in one, is an
    array. Unlike in `from_tensor_slices`, the shapes of the elements' arrays may differ.

    Args:
        elements: A list of elements of one structure and of the same dtypes.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of the elements. Python numbers become numpy scalars, arrays are read-only.

    Raises:
        TypeError: `elements` is not a list, or an element differs from the first in structure or dtype; says where.
        ValueError: The list is empty, or an element is or holds a ragged list.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_list([(1, "a"), (2, "b")]))
    [(np.int64(1), 'a'), (np.int64(2), 'b')]

    Source: `tf.data.experimental.from_list`; Python numbers follow numpy (int64, float64), not TensorFlow.
    """
    if not isinstance(elements, list):
        raise TypeError(f"from_list: elements must be a list, not {type(elements).__name__}")
    if not elements:
        raise ValueError("from_list: elements is empty; Dataset.range(0) is an empty dataset")
    copies = [map_structure(_scalar, as_element(element)) for element in elements]
    spec = spec_of(copies[0])
    for number, copy in enumerate(copies):
        try:
            spec = generalized(spec, spec_of(copy))
        except TypeError as error:
            raise TypeError(f"from_list: element {number} does not fit those before: {error}") from None
    detail = f"{len(copies)} x {spec_text(spec)}"
    return cls.of(
        Plan(
            "from_list",
            _stage(copies, spec),
            detail=detail,
            count=lambda: len(copies),
            spec=lambda: spec,
            title=name,
            contents=copies,
        )
    )


def _scalar(leaf: Any) -> Any:
    """Make a numpy scalar of a Python number that fits one."""
    return np.asarray(leaf)[()] if type(leaf) in (bool, int, float, complex) else leaf


def _has_one_shape(leaf: Any) -> bool:
    return isinstance(leaf, TensorSpec) and leaf.shape is not None and None not in leaf.shape


def _stage(copies: list[Any], spec: Any) -> Stage:
    """Give the elements as columns, where all have one shape, else one by one."""
    leaves = [leaf for leaf in flatten(spec) if not isinstance(leaf, NoneTensorSpec)]
    if leaves and all(map(_has_one_shape, leaves)):
        return rows_in_memory(freeze(stack(copies)))
    # Elements with dicts are given as copies, so that nobody's change to a dict is seen by others.
    return partial(_each, elements=copies, copied=_has_dict(copies[0]))


def _has_dict(element: Any) -> bool:
    return isinstance(element, dict) or (isinstance(element, tuple) and any(map(_has_dict, element)))


async def _each(run: Run, *, start: int | None, elements: list[Any], copied: bool) -> AsyncIterator[Block[Any]]:
    for index in range(start or 0, len(elements), PORTION):
        portion = elements[index : index + PORTION]
        yield Block(
            Origin(partial(int, index)), computed=list(map(unshared, portion)) if copied else portion, clean=True
        )
