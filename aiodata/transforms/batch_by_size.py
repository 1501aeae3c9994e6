"""`batch_by_size`: as many consecutive elements as a budget holds, padded to a common shape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.engine.block import Block
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.position import Origin, cursor, locate
from aiodata.errors import DataError
from aiodata.functions import as_error, call, check_callable, is_coroutine_function, name_of
from aiodata.transforms.padded_batch import padding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["batch_by_size"]

BREATH_SECONDS = 0.005


def batch_by_size(
    self: Dataset[Any],
    max_size: int,
    size_fn: Callable[..., int],
    max_elements: int | None = None,
    name: str | None = None,
    *,
    padded_shapes: Any = None,
    padding_values: Any = None,
    drop_remainder: bool = False,
) -> Dataset[Any]:
    """Combine consecutive elements into batches under a budget, such as a number of tokens, padding counted.

    A batch of `k` elements costs `k` times the size of its largest. An element joins the batch as long as that stays
    within `max_size`; else it begins the next one. The elements are padded as `padded_batch` does. Put a `shuffle`
    before it, and behind it one that mixes the batches.

    An element that is larger than `max_size`, or whose size cannot be found, is an error in its place; the batch that
    it ended comes before the error. An error of the input loses the elements that had been read for that batch, as in
    `batch`; so do elements that do not fit each other.

    Args:
        max_size: The most that a batch may cost, at least 1.
        size_fn: A plain function that gives an element's size, an integer from 0; a plain tuple is unpacked into
            arguments. It is called once for each element.
        max_elements: The most elements in a batch, at least 1; None sets no limit, so that any number of elements of
            size 0 is one batch.
        name: A name for the stage, shown in `repr`.
        padded_shapes: As for `padded_batch`.
        padding_values: As for `padded_batch`.
        drop_remainder: Leave out a last batch that the end of the input has cut short: one that could have taken an
            element more.

    Returns:
        A dataset of structures of arrays of shape `(k, *padded shape)`, in the elements' order. Its cardinality is
        unknown unless it is infinite. A batch, and one element more, are held at a time.

    Raises:
        TypeError: An argument is of a wrong type; or, in an element's place, `size_fn` gave something else than an
            integer from 0.
        ValueError: `max_size` or `max_elements` is below 1, or a padding argument can fit no element.
        DataError: In an element's place: its size is larger than `max_size`.
        StructureError: In place of a batch: as for `padded_batch`.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(1, 5).map(lambda n: {"n": [n] * int(n)})
    >>> [x["n"].tolist() for x in ds.batch_by_size(6, lambda row: len(row["n"]))]
    [[[1, 0], [2, 2]], [[3, 3, 3]], [[4, 4, 4, 4]]]

    tf.data has no such method; the nearest is `tf.data.Dataset.bucket_by_sequence_length`.
    """
    budget = check_integer(max_size, "batch_by_size", "max_size", 1)
    check_callable(size_fn, "batch_by_size", "size_fn")
    if is_coroutine_function(size_fn):
        raise TypeError("batch_by_size: size_fn must be a plain function, not a coroutine function")
    most = None if max_elements is None else check_integer(max_elements, "batch_by_size", "max_elements", 1)
    collate, spec, padded = padding(self, "batch_by_size", None, padded_shapes, padding_values)
    label = f"batch_by_size({budget}, {name_of(size_fn)})"
    rule = _Rule(budget, size_fn, most, collate, drop_remainder, label)
    detail = f"{budget}, {name_of(size_fn)}" + ("" if most is None else f", max_elements={most}") + padded
    return self.then(
        "batch_by_size",
        partial(_batch_by_size, rule=rule),
        detail=detail + (", drop_remainder=True" if drop_remainder else ""),
        count=lambda available: INFINITE if available == INFINITE else UNKNOWN,
        spec=spec,
        title=name,
    )


@dataclass(frozen=True)
class _Rule:
    """What the batches are to be."""

    budget: int
    size_fn: Callable[..., int]
    most: int | None
    collate: Callable[[list[Any]], Any]
    drop: bool
    label: str

    def holds(self, count: int, largest: int) -> bool:
        """Tell whether a batch of so many elements is within the limits."""
        return count * largest <= self.budget and (self.most is None or count <= self.most)

    def size_of(self, element: Any) -> int:
        """Give an element's size.

        Raises:
            TypeError: It is not an integer from 0.
            DataError: It is larger than the whole budget.
        """
        found: Any = call(self.size_fn, element)
        try:
            size = -1 if isinstance(found, (bool, np.bool_)) else operator.index(found)
        except TypeError:
            size = -1
        if size < 0:
            raise TypeError(f"size_fn must give an integer from 0, not {type(found).__name__}: {found!r:.80}")
        if size > self.budget:
            raise DataError(
                f"an element of size {size} is larger than max_size={self.budget}: a larger max_size takes it, a "
                "`filter` before this stage leaves it out"
            )
        return size


def _batch_by_size(run: Run, source: Source, *, start: Cursor | None, rule: _Rule) -> AsyncIterator[Block[Any]]:
    return _Batches(run, rule).blocks(source.open(start))


class _Batches:
    """The batch that has begun."""

    def __init__(self, run: Run, rule: _Rule) -> None:
        self.run = run
        self.rule = rule
        self.elements: list[Any] = []
        self.largest = 0
        self.begun: tuple[Origin, int] | None = None
        """Where its first element came from."""
        self.offset = 0
        """Offset of the next element in its block's origin."""
        self.index = 0
        """Number of the next element."""
        self.number = 0
        """Number of the batch."""

    async def blocks(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        self.run.inline.append(self.rule.label)
        async for block in blocks:
            self.offset = block.offset
            while (complete := self._read(block.rows(), block.origin)) is not None:
                for given in complete:
                    yield given
                await self.run.breathe()
            await self.run.breathe()  # blocks may be short and many
        if self.elements and not self.rule.drop:
            yield self._finished()

    def _read(self, rows: Iterator[Any], origin: Origin) -> list[Block[Any]] | None:
        """Read until something is complete, or for as long as the loop may wait; give None at the end of the rows."""
        rule, complete = self.rule, list[Block[Any]]()
        until = monotonic() + BREATH_SECONDS
        while not complete and monotonic() < until:
            try:
                element = next(rows, self)
            except Exception as error:
                return self._lost(error, origin)
            if element is self:
                return None
            try:
                size = rule.size_of(element)
            except Exception as error:
                return self._refused(error, origin)
            if size > self.largest:
                if self.elements and not rule.holds(len(self.elements) + 1, size):
                    complete.append(self._finished())
                self.largest = size
            if not self.elements:
                self.begun = (origin, self.offset)
            self.elements.append(element)
            self._pass()
            if not rule.holds(len(self.elements) + 1, self.largest):
                complete.append(self._finished())  # no element can join it
        return complete

    def _pass(self) -> None:
        self.offset += 1
        self.index += 1

    def _lost(self, error: Exception, origin: Origin) -> list[Block[Any]]:
        """Give an error of the input, with which the batch that has begun is lost."""
        begun = self.begun or (origin, self.offset)
        self._restart()
        self._pass()
        return [Block.failed(error, _origin(*begun))]

    def _refused(self, error: Exception, origin: Origin) -> list[Block[Any]]:
        """Give the batch that has begun, and the error of an element that can be in no batch."""
        locate(error, self.rule.label, self.index, origin, self.offset)
        failed: Block[Any] = Block.failed(as_error(error), _origin(origin, self.offset))
        self._pass()
        return [self._finished(), failed] if self.elements else [failed]

    def _finished(self) -> Block[Any]:
        assert self.begun is not None
        origin = _origin(*self.begun)
        elements = self.elements
        self._restart()
        self.number += 1
        try:
            return Block(origin, computed=[self.rule.collate(elements)])
        except Exception as error:
            locate(error, self.rule.label, self.number - 1, origin, 0)
            return Block.failed(error, origin)

    def _restart(self) -> None:
        self.elements = []
        self.largest = 0
        self.begun = None


def _origin(begun: Origin, offset: int) -> Origin:
    return begun.within(partial(cursor, begun, offset), offset)
