"""`padded_batch`: consecutive elements as one, padded to a common shape."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer
from aiodata.padding import check_padding, pad_stack
from aiodata.transforms.batch import grouped

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["padded_batch"]


def padded_batch(
    self: Dataset[Any],
    batch_size: int,
    padded_shapes: Any = None,
    padding_values: Any = None,
    drop_remainder: bool = False,
) -> Dataset[Any]:
    """Combine `batch_size` consecutive elements into one, padding each component at its ends to a common shape.

    Args:
        batch_size: Elements in a batch, at least 1.
        padded_shapes: The elements' structure with a shape for each component. A dimension of None or -1, or None in
            place of a shape or of the whole, pads to the longest row of the batch.
        padding_values: The elements' structure with a value for each component; None means 0, False or the empty
            text. One value alone serves every component whose dtype it has.
        drop_remainder: Leave out a last batch that is smaller.

    Returns:
        A dataset of structures of arrays of shape `(batch_size, *padded shape)`.

    Raises:
        TypeError, ValueError: An argument can fit no element.
        StructureError: While iterating, in place of the batch: a row is longer than its padded shape, or rows differ
            in structure, rank or dtype; it names the component, the row and both shapes.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(1, 4).map(lambda n: [n] * int(n)).map(lambda *n: {"n": list(n)})
    >>> [x["n"].tolist() for x in ds.padded_batch(3)]
    [[[1, 0, 0], [2, 2, 0], [3, 3, 3]]]

    Source: `tf.data.Dataset.padded_batch`.
    """
    size = check_integer(batch_size, "padded_batch", "batch_size", 1)
    check_padding(padded_shapes, padding_values)
    collate = partial(pad_stack, padded_shapes=padded_shapes, padding_values=padding_values)
    given = [("padded_shapes", padded_shapes), ("padding_values", padding_values)]
    detail = "".join(f", {name}={value!r}" for name, value in given if value is not None)
    return grouped(self, "padded_batch", size, drop_remainder, collate, detail=detail)
