"""`peek_sync`: the first element, blocking until it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from aiodata.sinks.peek import learn, opened_aside

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["peek_sync"]

T = TypeVar("T")


def peek_sync(self: Dataset[T]) -> T:
    """Do as `peek`, blocking until the element is there.

    Raises:
        ValueError: The dataset is empty.
        Exception: The first element's error.

    >>> import aiodata
    >>> aiodata.Dataset.range(3).map(float).peek_sync()
    0.0
    """
    with opened_aside(self) as iterator:
        for element in iterator:
            return learn(self, element)
    raise ValueError("peek: the dataset is empty")
