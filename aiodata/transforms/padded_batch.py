"""`padded_batch`: consecutive elements as one, padded to a common shape."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.padding import aligned, check_padding, pad_stack
from aiodata.spec import TensorSpec, batched, spec_text
from aiodata.structure import flatten, pack_like
from aiodata.transforms.batch import grouped

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["padded_batch", "padding"]


def padded_batch(
    self: Dataset[Any],
    batch_size: int,
    padded_shapes: Any = None,
    padding_values: Any = None,
    drop_remainder: bool = False,
    name: str | None = None,
) -> Dataset[Any]:
    """Combine `batch_size` consecutive elements into one, padding each component at its ends to a common shape.

    Args:
        batch_size: Elements in a batch, at least 1.
        padded_shapes: The elements' structure with a shape for each component. A dimension of None or -1, or None in
            place of a shape or of the whole, pads to the longest row of the batch.
        padding_values: The elements' structure with a value for each component; None means 0, False or the empty
            text. One value alone serves every component whose dtype it has.
        drop_remainder: Leave out a last batch that is smaller.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of structures of arrays of shape `(batch_size, *padded shape)`.

    Raises:
        TypeError, ValueError: An argument can fit no element, or does not fit the elements as far as they are known.
        StructureError: While iterating, in place of the batch: a row is longer than its padded shape, or rows differ
            in structure, rank or dtype; it names the component, the row and both shapes.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(1, 4).map(lambda n: [n] * int(n)).map(lambda *n: {"n": list(n)})
    >>> [x["n"].tolist() for x in ds.padded_batch(3)]
    [[[1, 0, 0], [2, 2, 0], [3, 3, 3]]]

    Source: `tf.data.Dataset.padded_batch`.
    """
    size = check_integer(batch_size, "padded_batch", "batch_size", 1)
    length = size if drop_remainder else None
    collate, spec, detail = padding(self, "padded_batch", length, padded_shapes, padding_values)
    return grouped(self, "padded_batch", size, drop_remainder, collate, detail=detail, spec=spec, title=name)


def padding(
    dataset: Dataset[Any], method: str, size: int | None, padded_shapes: Any, padding_values: Any
) -> tuple[Callable[[list[Any]], Any], Callable[[Any], Any], str]:
    """Check the padding arguments of a stage that makes padded batches.

    Args:
        dataset: The elements.
        method: The public method, for messages.
        size: Elements in each batch; None if they differ.
        padded_shapes: As for `padded_batch`.
        padding_values: As for `padded_batch`.

    Returns:
        What makes a batch of a list of elements, what gives the spec of the batches from that of the elements, and
        the arguments for `repr`.

    Raises:
        TypeError, ValueError: As for `padded_batch`.
    """
    check_padding(padded_shapes, padding_values)
    spec = partial(_spec, padded_shapes=padded_shapes, size=size, method=method)
    known = dataset.plan.element_spec()
    spec(known)
    if known is not None and isinstance(padding_values, (tuple, list, dict)):
        aligned(known, padding_values, f"{method}: padding_values")
    collate = partial(pad_stack, padded_shapes=padded_shapes, padding_values=padding_values)
    given = [("padded_shapes", padded_shapes), ("padding_values", padding_values)]
    return collate, spec, "".join(f", {name}={value!r}" for name, value in given if value is not None)


def _spec(elements: Any, padded_shapes: Any, size: int | None, method: str) -> Any:
    batches = batched(elements, size)
    if batches is None or padded_shapes is None:
        return batches
    shapes = aligned(elements, padded_shapes, f"{method}: padded_shapes")
    pairs = zip(flatten(elements), shapes, strict=True)
    return pack_like(elements, [_padded(leaf, shape, size, method) for leaf, shape in pairs])


def _padded(leaf: Any, given: Any, size: int | None, method: str) -> Any:
    """Give the spec of a component of batches whose rows are padded to a shape."""
    if not isinstance(leaf, TensorSpec) or (given is None and leaf.shape is None):
        return leaf
    given = leaf.shape if given is None else given
    fits = isinstance(given, (tuple, list, np.ndarray)) and all(
        axis is None or isinstance(axis, (int, np.integer)) for axis in given
    )
    if not fits or (leaf.shape is not None and len(given) != len(leaf.shape)):
        raise ValueError(f"{method}: padded_shapes says {given!r} for rows of {spec_text(leaf)}")
    return TensorSpec((size, *(None if axis is None or axis == -1 else int(axis) for axis in given)), leaf.dtype)
