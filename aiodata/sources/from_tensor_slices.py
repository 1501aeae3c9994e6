"""`Dataset.from_tensor_slices`: the rows of arrays in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.columns import freeze, length
from aiodata.conversion import as_columns
from aiodata.engine.plan import Plan
from aiodata.sources._memory import rows_in_memory
from aiodata.spec import row_spec
from aiodata.structure import flatten, paths

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["from_tensor_slices"]


def from_tensor_slices(cls: type[Dataset[Any]], tensors: Any, name: str | None = None) -> Dataset[Any]:
    """Give one element for each row of the arrays.

    The arrays are copied when the dataset is made; the elements are read-only views.

    Args:
        tensors: A structure (tuple, named tuple, dict) of array-likes of shape `(n, ...)`. Lists of text become
            object arrays; an empty list is float32, as in tf.data.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: A set, which has no order.
        ValueError: A scalar, or components whose numbers of rows differ.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_tensor_slices({"x": [1.0, 2.0]}))
    [{'x': np.float64(1.0)}, {'x': np.float64(2.0)}]

    Source: `tf.data.Dataset.from_tensor_slices`; Python numbers follow numpy (int64, float64), not TensorFlow.
    """
    columns = freeze(as_columns(tensors))
    count = length(columns)
    detail = ", ".join(
        f"{path} {leaf.dtype}{list(leaf.shape)}"
        for path, leaf in zip(paths(columns), flatten(columns), strict=True)
        if leaf is not None
    )
    stage, spec = rows_in_memory(columns), row_spec(columns)
    return cls.of(
        Plan(
            "from_tensor_slices",
            stage,
            detail=detail,
            count=lambda: count,
            spec=lambda: spec,
            title=name,
            contents=columns,
        )
    )
