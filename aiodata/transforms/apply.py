"""`apply`: a function from dataset to dataset, in the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.engine.plan import plan_of
from aiodata.functions import check_callable

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["apply"]

R = TypeVar("R")


def apply(self: Dataset[Any], transformation_func: Callable[[Dataset[Any]], Dataset[R]]) -> Dataset[R]:
    """Give `transformation_func(self)`, so that own transformations fit into a chain.

    Args:
        transformation_func: Gets this dataset and gives one.

    Raises:
        TypeError: It is not callable, or does not give a dataset.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(9).apply(lambda ds: ds.take(1).repeat(2))]
    [0, 0]

    Source: `tf.data.Dataset.apply`.
    """
    check_callable(transformation_func, "apply", "transformation_func")
    dataset = transformation_func(self)
    if plan_of(dataset) is None:
        raise TypeError(f"apply: transformation_func must give a Dataset, not {type(dataset).__name__}")
    return dataset
