"""`bucket_by_sequence_length`: batches of elements of similar length."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.engine.block import Block, resumable
from aiodata.errors import DataError
from aiodata.functions import name_of
from aiodata.padding import aligned, pad_stack
from aiodata.spec import TensorSpec, batched
from aiodata.stacking import stack
from aiodata.structure import flatten, map_structure, pack_like
from aiodata.transforms._grouping import Grouping
from aiodata.transforms._keys import check_plain
from aiodata.transforms.group_by_window import count
from aiodata.transforms.padded_batch import padding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import numpy.typing as npt

    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Plan
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.transforms._groups import Group

__all__ = ["bucket_by_sequence_length"]

METHOD = "bucket_by_sequence_length"


def bucket_by_sequence_length(
    self: Dataset[Any],
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int] | npt.NDArray[np.integer[Any]],
    bucket_batch_sizes: Sequence[int] | npt.NDArray[np.integer[Any]],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
    name: str | None = None,
) -> Dataset[Any]:
    """Batch elements of similar length together, each component padded to a common shape, so that less is padding.

    With boundaries 3 and 5 there are buckets for the lengths below 3, for 3 and 4, and from 5 on. A batch is given
    as soon as its bucket is full; what is left at the end follows, the shortest first. At most
    `sum(bucket_batch_sizes)` elements are held. A saved state holds none of them: see `group_by_window`.

    Args:
        element_length_func: A plain function of an element that gives its length, an integer scalar; called as `map`
            calls its function.
        bucket_boundaries: Integers in ascending order; a length that is equal to one belongs to the bucket above it.
        bucket_batch_sizes: Elements in a batch of each bucket, at least 1; one more than there are boundaries.
        padded_shapes: As for `padded_batch`.
        padding_values: As for `padded_batch`.
        pad_to_bucket_boundary: Pad to the longest length of the bucket, its boundary less 1, instead of the longest of
            the batch: all axes that `padded_shapes`, or else the element spec, does not give a length. A batch of the
            last bucket, which has no boundary, is an error then.
        no_padding: Batch elements of equal shape as `batch` does.
        drop_remainder: Leave out the batches at the end that are smaller.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of structures of arrays of shape `(batch size, *padded shape)`.

    Raises:
        TypeError: `element_length_func` is not a plain function, boundaries or sizes are not integers; while
            iterating: it gives no integer.
        ValueError: The number of sizes is not that of the boundaries and 1, a size is below 1, or `padded_shapes` or
            `padding_values` can fit no element.
        DataError: While iterating, in place of the batch: what `padded_batch` raises, or with
            `pad_to_bucket_boundary` an element is as long as the last boundary.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(1, 7).map(lambda n: [n] * int(n)).map(lambda *n: {"n": list(n)})
    >>> for batch in ds.bucket_by_sequence_length(lambda x: len(x["n"]), [3, 5], [2, 2, 2]):
    ...     print(batch["n"].tolist())
    [[1, 0], [2, 2]]
    [[3, 3, 3, 0], [4, 4, 4, 4]]
    [[5, 5, 5, 5, 5, 0], [6, 6, 6, 6, 6, 6]]

    Source: `tf.data.Dataset.bucket_by_sequence_length`.
    """
    check_plain(element_length_func, METHOD, "element_length_func")
    boundaries = _integers(bucket_boundaries, "bucket_boundaries")
    sizes = _integers(bucket_batch_sizes, "bucket_batch_sizes", 1)
    if len(sizes) != len(boundaries) + 1:
        raise ValueError(
            f"{METHOD}: there must be one more of bucket_batch_sizes ({len(sizes)}) than of bucket_boundaries "
            f"({len(boundaries)})"
        )
    collate, spec, padded = padding(self, METHOD, None, padded_shapes, padding_values)
    if no_padding:
        collate, spec, padded = stack, partial(batched, size=None), ""
    collates: list[Callable[[list[Any]], Any] | None] = [collate] * len(sizes)
    if pad_to_bucket_boundary and not no_padding:
        fill = partial(_pad_to, self.plan, padded_shapes, padding_values)
        collates = [*(partial(fill, boundary - 1) for boundary in boundaries), None]
    drop = bool(drop_remainder)
    flags = {"pad_to_bucket_boundary": pad_to_bucket_boundary, "no_padding": no_padding, "drop_remainder": drop}
    length = name_of(element_length_func)
    detail = ", ".join([length, str(boundaries), str(sizes)]) + padded
    detail += "".join(f", {flag}=True" for flag, value in flags.items() if value)
    stage = partial(
        _batches,
        key_func=element_length_func,
        size_func=sizes.__getitem__,
        label=f"{METHOD}({length})",
        boundaries=boundaries,
        collates=collates,
        drop=drop,
    )
    return self.then(METHOD, stage, detail=detail, count=count, spec=spec, title=name)


def _integers(values: Any, argument: str, least: int | None = None) -> list[int]:
    if not isinstance(values, (Sequence, np.ndarray)) or isinstance(values, (str, bytes)):
        raise TypeError(f"{METHOD}: {argument} must be a list of integers, not {type(values).__name__}")
    return [check_integer(value, METHOD, f"each of {argument}", least) for value in values]


def _batches(run: Run, source: Source, *, start: Any, **arguments: Any) -> AsyncIterator[Block[Any]]:
    return _Buckets(run, source, start, **arguments).elements(start)


class _Buckets(Grouping):
    """Groups of elements of similar length, which become a batch each.

    Args:
        boundaries: Of the lengths.
        collates: What makes a batch of a list of elements, for each bucket; None if nothing can.
        drop: Leave out batches that are not full.
        arguments: Those of `Grouping`.
    """

    key_argument = "element_length_func"

    def __init__(
        self,
        *arguments: Any,
        boundaries: list[int],
        collates: list[Callable[[list[Any]], Any] | None],
        drop: bool,
        **rest: Any,
    ) -> None:
        super().__init__(*arguments, **rest)
        self.key_of = _bucket_of(boundaries)
        self.collates = collates
        self.drop = drop

    def advance(self) -> Block[Any] | None:
        """Give the batches that the block in hand makes full, lazily, or one that is left."""
        if self.left is not None:
            return super().advance()
        self.move_mark()
        return Block(self.at(self.read), rows=resumable(self._full))

    def _full(self) -> Iterator[Any]:
        while (group := self.fill()) is not None:
            yield self._batch(group)

    def reduce(self, group: Group, key: int | None, inner: Any) -> Block[Any] | None:
        """Give the batch of a bucket; None if it is to be left out."""
        if self.drop and len(group.elements) < group.size and self.collates[group.key] is not None:
            return None
        origin = self.at(self.read - (key is None), key)
        return Block(origin, computed=[self._batch(group)], clean=True)

    def _batch(self, group: Group) -> Any:
        try:
            collate = self.collates[group.key]
            if collate is None:
                raise DataError("pad_to_bucket_boundary=True needs lengths below the last of bucket_boundaries")
            return collate(group.elements)
        except Exception as error:
            self.fail(error, group.number, group.origin, group.offset)


def _bucket_of(boundaries: list[int]) -> Callable[[int], int]:
    """Give what gives the number of the first bucket that a length falls into: there is one in any order of them."""
    if boundaries == sorted(boundaries):
        return partial(bisect_right, boundaries)
    buckets = list(pairwise([-math.inf, *boundaries, math.inf]))
    return lambda length: next(bucket for bucket, (low, high) in enumerate(buckets) if low <= length < high)


def _pad_to(plan: Plan, shapes: Any, values: Any, length: int, elements: list[Any]) -> Any:
    """Pad to `length` each axis to which neither `shapes` nor the element spec gives one."""
    if shapes is None:
        shapes = map_structure(lambda leaf: leaf.shape if isinstance(leaf, TensorSpec) else None, plan.element_spec())
    first = elements[0]
    pairs = zip(flatten(first), aligned(first, shapes, "padded_shapes"), strict=True)
    given = [[None] * np.ndim(leaf) if shape is None else shape for leaf, shape in pairs]
    filled = [[length if axis is None or axis == -1 else axis for axis in shape] for shape in given]
    return pad_stack(elements, pack_like(first, filled), values)
