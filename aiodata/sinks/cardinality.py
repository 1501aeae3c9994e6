"""`cardinality`: the number of elements, where it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["cardinality"]


def cardinality(self: Dataset[Any], name: str | None = None) -> int:
    """Give the number of elements, `INFINITE_CARDINALITY` (-1) or `UNKNOWN_CARDINALITY` (-2).

    Nothing is run. `len()` gives the same where it is a number.

    Args:
        name: Accepted as in tf.data; there is no stage that it could name.

    >>> import aiodata
    >>> aiodata.Dataset.range(10).batch(3).cardinality()
    4

    Source: `tf.data.Dataset.cardinality`.
    """
    return self.plan.cardinality()
