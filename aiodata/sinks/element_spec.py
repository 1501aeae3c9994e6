"""`element_spec`: dtypes and shapes of the elements, where they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["element_spec"]


def element_spec(self: Dataset[Any]) -> Any:
    """Give the structure of an element, with a `TensorSpec` for each component; None where it is not known.

    Sources that hold or declare their data know it, stages that move elements keep it, and `batch` and its relatives
    add an axis. What a user's function gives is not known before it has run: `await ds.peek()` runs the pipeline as
    far as its first element, after which this dataset, and those made from it, show that element's spec. It is what was
    seen, and need not hold for the others, so no cardinality or check is derived from it.

    >>> import aiodata
    >>> aiodata.Dataset.range(10).batch(4).element_spec
    TensorSpec(shape=(None,), dtype=int64)
    >>> aiodata.Dataset.range(10).map(float).element_spec

    Source: `tf.data.Dataset.element_spec`.
    """
    return self.plan.element_spec(seen=True)
