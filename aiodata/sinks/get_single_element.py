"""`get_single_element`: the element of a dataset that has just one."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["get_single_element"]

T = TypeVar("T")


def get_single_element(self: Dataset[T], name: str | None = None) -> T:
    """Give the only element, blocking until it is there; `aget_single_element` is the same to be awaited.

    Args:
        name: Accepted as in tf.data; there is no stage that it could name.

    Raises:
        ValueError: There is none, or more than one.

    >>> import aiodata
    >>> int(aiodata.Dataset.range(7, 8).get_single_element())
    7

    Source: `tf.data.Dataset.get_single_element`.
    """
    with self.iterate() as iterator:
        found = list(islice(iterator, 2))
    return only(found)


def only(found: list[T]) -> T:
    """Give the only item of a list of the first two elements.

    Raises:
        ValueError: There is none, or there are two.
    """
    if len(found) != 1:
        raise ValueError(f"the dataset has {'no element' if not found else 'more than one element'}, not just one")
    return found[0]
