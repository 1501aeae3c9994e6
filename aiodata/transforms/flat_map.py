"""`flat_map`: a dataset for every element, one after the other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.functions import check_callable, name_of
from aiodata.random import seeded
from aiodata.transforms._cycle import cycle

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["flat_map"]

R = TypeVar("R")


def flat_map(self: Dataset[Any], map_func: Callable[..., Dataset[R]], name: str | None = None) -> Dataset[R]:
    """Give the elements of `map_func(element)`, a dataset, for one element after the other.

    A dataset is opened when it is reached; one is open at a time. After an error in one, that one goes on.

    Args:
        map_func: A plain function that gives a dataset; called as `map` calls its function.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `map_func` is not callable; while iterating: it does not give a dataset.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(1, 4).flat_map(lambda n: aiodata.Dataset.from_tensors(n).repeat(n))
    >>> [int(x) for x in ds]
    [1, 2, 2, 3, 3, 3]

    Source: `tf.data.Dataset.flat_map`.
    """
    check_callable(map_func, "flat_map", "map_func")
    stage = partial(cycle, function=seeded(map_func), label=f"flat_map({name_of(map_func)})", length=1, block_length=1)
    return self.then("flat_map", stage, detail=name_of(map_func), makes_datasets=True, title=name)
