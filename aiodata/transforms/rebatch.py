"""`rebatch`: the rows of batches in batches of another size."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.columns import concat_columns, owned, reshape_batches, slice_columns, take_columns
from aiodata.engine.block import Block
from aiodata.engine.position import Origin, cursor, locate
from aiodata.engine.skipped import Skipped
from aiodata.errors import StructureError
from aiodata.spec import TensorSpec, batched, unbatched
from aiodata.structure import map_structure
from aiodata.transforms.unbatch import rows_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

    import numpy.typing as npt

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["rebatch"]

_NOTHING = np.empty(0, np.intp)
"""Numbers of no rows."""


def rebatch(
    self: Dataset[Any],
    batch_size: int | Sequence[int] | npt.NDArray[np.integer[Any]],
    drop_remainder: bool = False,
    name: str | None = None,
) -> Dataset[Any]:
    """Cut batches into batches of another size, as `unbatch` and `batch` do together, without touching the rows.

    An error of the input loses the rows that had been read for that batch, and rows that do not fit each other lose
    their batch. The next batch comes in both cases.

    Args:
        batch_size: Rows in a batch, at least 1; or the sizes of the batches one after the other, which are cycled and
            of which some may be 0, for empty batches.
        drop_remainder: Leave out a last batch that is smaller.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of structures of arrays of shape `(batch_size, ...)`, whose cardinality is unknown. An empty batch
        has rows of the shape that `element_spec` tells, with 0 for lengths that are not known, as in tf.data; where
        it tells nothing, it has those of the rows before.

    Raises:
        TypeError: `batch_size` is not an integer, or a list or array (n,) of them.
        ValueError: `batch_size` is below 1, a size is below 0, or all are 0; or it is known already that a component
            has no rows, or that the numbers of rows differ.
        StructureError: While iterating: a component has no first axis, the numbers of rows of an element's components
            differ, or rows of a batch differ in structure, shape or dtype.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(7).batch(3)
    >>> [x.tolist() for x in ds.rebatch(2)], [x.tolist() for x in ds.rebatch([4, 1])]
    ([[0, 1], [2, 3], [4, 5], [6]], [[0, 1, 2, 3], [4], [5, 6]])

    Source: `tf.data.Dataset.rebatch`.
    """
    sizes = _checked(batch_size)
    try:
        rows, count = unbatched(self.plan.element_spec())
    except ValueError as error:
        raise ValueError(f"rebatch: {error}") from None
    whole = len(set(sizes)) == 1 and (drop_remainder or (count is not None and count % sizes[0] == 0))
    detail = f"{sizes[0] if len(sizes) == 1 else list(sizes)}"
    label = f"rebatch({detail})"
    return self.then(
        "rebatch",
        partial(_rebatch, sizes=sizes, drop=drop_remainder, empty=_empty(rows), label=label),
        detail=detail + (", drop_remainder=True" if drop_remainder else ""),
        spec=lambda known: batched(unbatched(known)[0], sizes[0] if whole else None),
        title=name,
    )


def _checked(batch_size: Any) -> tuple[int, ...]:
    given = batch_size.tolist() if isinstance(batch_size, np.ndarray) else batch_size
    if hasattr(given, "__index__"):
        return (check_integer(given, "rebatch", "batch_size", 1),)
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise TypeError(f"rebatch: batch_size must be an integer or a list of integers, not {type(given).__name__}")
    sizes = tuple(check_integer(size, "rebatch", "a size in batch_size", 0) for size in given)
    if not any(sizes):
        raise ValueError(f"rebatch: batch_size must hold a size above 0, not {list(sizes)}")
    return sizes


def _empty(rows: Any) -> Any:
    """Make the batch of no rows from the spec of a row; None where that is not known."""

    def none_of(leaf: Any) -> Any:
        return np.empty((0, *[n or 0 for n in leaf.shape or ()]), leaf.dtype) if isinstance(leaf, TensorSpec) else None

    return None if rows is None else map_structure(none_of, rows)


def _rebatch(
    run: Run, source: Source, *, start: Any, sizes: tuple[int, ...], drop: bool, empty: Any, label: str
) -> AsyncIterator[Block[Any]]:
    index, (at, behind) = start or (0, (None, 0))
    cutting = _Cutting(sizes, drop, empty, label, index, [at, behind])
    return cutting.batches(rows_of(run, source.open(at), label), behind)


class _Cutting:
    """What there is of the batch that has begun.

    Args:
        sizes: The sizes of the batches in turn.
        drop: Leave out a last batch that is smaller.
        empty: A batch of no rows, if it is known already.
        label: The stage's label, for errors.
        index: Which of the sizes the next batch has.
        start: Where its rows begin, as a cursor of the rows.
    """

    def __init__(self, sizes: tuple[int, ...], drop: bool, empty: Any, label: str, index: int, start: Cursor) -> None:
        self.sizes, self.drop, self.label, self.index, self.start = sizes, drop, label, index, start
        self.empty, self.known = empty, empty is not None
        self.parts: list[Any] = []
        self.have = 0
        self.begun: tuple[Origin, int] | None = None
        """Behind the last row before the batch. That is where its rows begin, and what an empty batch looks like."""
        self.number = 0

    async def batches(self, rows: AsyncGenerator[Block[Any], None], behind: int) -> AsyncIterator[Block[Any]]:
        """Give the batches, leaving out the first rows, which a state has behind it."""
        skipped = Skipped(behind)
        async with aclosing(rows):
            async for block in rows:
                rest, dropped = block.drop(skipped.missing, skipped)
                if block.columns is not None and not self.known:
                    self.empty = take_columns(block.columns, _NOTHING)
                if dropped or self.begun is None:
                    self.begun = (rest.origin, rest.offset)
                if skipped.missing:
                    continue
                for batch in self._cut(rest) if block.computed is None else [] if dropped else self._lost(block):
                    yield batch
        skipped.check()
        if self.have and not self.drop:
            yield self._joined()
        elif not self.have:
            for batch in self._empties():
                yield batch

    def _cut(self, block: Block[Any]) -> Iterator[Block[Any]]:
        columns, count = block.columns, block.length or 0
        taken = 0
        while True:
            yield from self._empties()
            size = self.sizes[self.index]
            if self.have + count - taken < size:
                break
            if len(self.sizes) == 1 and not self.have:
                stop = taken + (count - taken) // size * size
                origin = self._origin()
                origin.place = partial(_place, origin.place, size)
                cut = reshape_batches(owned(slice_columns(columns, taken, stop)), size)
                yield Block(origin, columns=cut, length=(stop - taken) // size)
                self.number += (stop - taken) // size
            else:
                stop = taken + size - self.have
                self.parts.append(slice_columns(columns, taken, stop))
                yield self._joined()
            taken = stop
            self.begun = (block.origin, block.offset + taken)
        if taken < count:
            self.parts.append(slice_columns(columns, taken, count))
            self.have += count - taken

    def _empties(self) -> Iterator[Block[Any]]:
        """Give the empty batches that come next."""
        while self.empty is not None and not self.sizes[self.index]:
            origin = self._origin()
            self._advance()
            yield Block(origin, computed=[take_columns(self.empty, _NOTHING)])

    def _joined(self) -> Block[Any]:
        """Give the batch that has begun."""
        origin, parts = self._origin(), self.parts
        self._advance()
        try:
            return Block(origin, computed=[owned(concat_columns(parts))])
        except StructureError as error:
            locate(error, self.label, self.number - 1, origin, 0)
            return Block.failed(error, origin)

    def _lost(self, block: Block[Any]) -> Iterator[Block[Any]]:
        """Give an error of the input, and forget the rows that had been read for the batch."""
        yield from self._empties()
        assert block.computed is not None
        failed: Block[Any] = Block.failed(block.computed[0].exception, self._origin())
        self.parts, self.have = [], 0
        self.begun = (block.origin, block.offset + 1)
        yield failed

    def _advance(self) -> None:
        self.parts, self.have = [], 0
        self.index = (self.index + 1) % len(self.sizes)
        self.number += 1

    def _origin(self) -> Origin:
        """Give the origin of the batch that comes next."""
        if self.begun is None:
            return Origin(partial(_position, self.index, partial(list, self.start)))
        origin, offset = self.begun
        return origin.within(partial(_position, self.index, partial(cursor, origin, offset)), offset)


def _position(index: int, start: Callable[[], Cursor]) -> Any:
    return [index, start()]


def _place(place: Callable[[int], str | None], size: int, offset: int) -> str | None:
    return place(offset * size)
