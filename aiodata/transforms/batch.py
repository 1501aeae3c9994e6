"""`batch`: consecutive elements as one, with a new leading axis."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer, check_parallelism
from aiodata.collate import stack
from aiodata.columns import concat_columns, iterate, owned, reshape_batches, slice_columns
from aiodata.engine.block import Block, Tally, resumable
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.position import Origin, cursor, locate
from aiodata.errors import StructureError
from aiodata.functions import name_of
from aiodata.spec import batched, same
from aiodata.transforms.map import mapped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["batch"]

T = TypeVar("T")


def batch(
    self: Dataset[Any],
    batch_size: int,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Dataset[Any]:
    """Combine `batch_size` consecutive elements into one, stacked along a new leading axis.

    Structures are kept; each component is stacked by itself. Numbers and arrays keep their dtype, `bytes`, `str` and
    other objects go into object arrays. An error of the input loses the elements that had been read for that batch;
    elements that do not fit each other lose their batch. The next batch comes in both cases.

    Memory: of rows that come as columns, several batches are cut out of one array, about a MiB, which lives as long as
    one of them; `copy` what you keep for long.

    Args:
        batch_size: Elements in a batch, at least 1.
        drop_remainder: Leave out a last batch that is smaller.
        num_parallel_calls: Stack so many batches at once, in threads, as `map` does; None stacks when asked.
        deterministic: As for `map`.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of structures of arrays of shape `(batch_size, ...)`.

    Raises:
        TypeError: `batch_size` is not an integer.
        ValueError: `batch_size` is below 1, or `num_parallel_calls` 0 or below -1.
        StructureError: While iterating: elements of a batch differ in structure, shape or dtype; it names the
            component, the row and what differs.

    >>> import aiodata
    >>> [x.tolist() for x in aiodata.Dataset.range(5).batch(2)]
    [[0, 1], [2, 3], [4]]

    Source: `tf.data.Dataset.batch`.
    """
    size = check_integer(batch_size, "batch", "batch_size", 1)
    calls = check_parallelism(num_parallel_calls, "batch", "num_parallel_calls")
    return grouped(self, "batch", size, drop_remainder, stack, calls, deterministic, title=name)


def grouped(
    dataset: Dataset[Any],
    name: str,
    size: int,
    drop_remainder: bool,
    collate: Callable[[list[Any]], Any],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    detail: str = "",
    spec: Callable[[Any], Any] | None = None,
    title: str | None = None,
) -> Dataset[Any]:
    """Give a dataset of groups of `size` elements, collated; what `batch` and its relatives are made of."""
    detail = f"{size}{', drop_remainder=True' if drop_remainder else ''}{detail}"
    count = partial(_count, size=size, drop=drop_remainder)
    stage = partial(_group, size=size, drop=drop_remainder, collate=collate, label=f"{name}({size})")
    rows = size if drop_remainder else None
    spec = spec or partial(batched, size=rows)
    if num_parallel_calls is None:
        return dataset.then(name, stage, detail=detail, count=count, spec=spec, rows=rows, title=title)
    groups = dataset.then(name, partial(stage, collate=_Group), detail=detail, count=count, spec=spec, title=title)
    collated = partial(_collate_group, collate)
    batches = mapped(
        groups,
        collated,
        num_parallel_calls,
        deterministic,
        label=f"{name}({size})",
        detail=name_of(collate),
        spec=same,
    )
    return dataset.of(replace(batches.plan, rows=rows))


class _Group:
    """The elements of a batch that is to be stacked elsewhere; a type of its own, so that `map` passes it whole."""

    __slots__ = ("elements",)

    def __init__(self, elements: list[Any]) -> None:
        self.elements = elements


def _collate_group(collate: Callable[[list[Any]], Any], group: _Group) -> Any:
    return collate(group.elements)


def _count(available: int, size: int, drop: bool) -> int:
    if available in (INFINITE, UNKNOWN):
        return available
    return available // size if drop else -(-available // size)


def _group(
    run: Run,
    source: Source,
    *,
    start: Cursor | None,
    size: int,
    drop: bool,
    collate: Callable[[list[Any]], Any],
    label: str,
) -> AsyncIterator[Block[Any]]:
    return _Grouping(run, size, drop, collate, label).groups(source.open(start))


class _Grouping:
    """What a batch stage holds between blocks: the beginning of a batch, as elements or as columns."""

    def __init__(self, run: Run, size: int, drop: bool, collate: Callable[[list[Any]], Any], label: str) -> None:
        self.run = run
        self.size = size
        self.drop = drop
        self.collate = collate
        self.label = label
        self.carry: list[Any] = []
        self.columns: list[Any] = []
        self.carried = 0
        self.begun: tuple[Origin, int] | None = None
        """Where the first element of the begun batch came from."""
        self.number = 0
        self.pace = Tally(1)

    async def groups(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        async for block in blocks:
            if block.columns is not None and self.collate is stack and not self.carry:
                for whole in self._from_columns(block):
                    yield whole
                continue
            self._spill()
            rows = block.rows()
            taken = Tally()
            # The first batch is gathered here, where the loop can breathe; the others when the reader pulls them.
            first = await self._gather(block, rows, taken)
            if first is not None:
                yield first
                yield self._lazily(block, rows, taken)
        if self.drop:
            return
        if self.carried:
            assert self.begun is not None
            yield self._joined(self._origin_of(*self.begun))
        elif self.carry:
            yield self._finished()

    def _origin(self, block: Block[Any], taken: int) -> Origin:
        return self._origin_of(*(self.begun or (block.origin, block.offset + taken)))

    @staticmethod
    def _origin_of(origin: Origin, offset: int) -> Origin:
        return origin.within(partial(cursor, origin, offset), offset)

    async def _gather(self, block: Block[Any], rows: Iterator[Any], taken: Tally) -> Block[Any] | None:
        """Gather the rest of the batch that has begun; give it, or what failed in it, or None if the block ended."""
        origin = self._origin(block, 0)
        before = len(self.carry)
        try:
            complete = await self.run.gather(self.carry, rows, self.size - before, self.pace)
        except Exception as error:
            taken.count += len(self.carry) - before + 1
            self._restart()
            return Block.failed(error, origin)
        taken.count += len(self.carry) - before
        if complete:
            self.begun = None
            return self._finished(origin)
        if self.carry and self.begun is None:
            self.begun = (block.origin, block.offset)
        return None

    def _lazily(self, block: Block[Any], rows: Iterator[Any], taken: Tally) -> Block[Any]:
        """Give the block's further batches lazily; what is left of it begins the next batch."""
        begin = taken.count
        origin = Origin(partial(cursor, block.origin, block.offset + begin))
        origin.place = partial(_place, block.origin.place, block.offset + begin, self.size)

        def batches() -> Iterator[Any]:
            size, carry = self.size, self.carry
            while True:
                try:
                    carry.extend(islice(rows, size))
                except Exception:
                    taken.count += len(carry) + 1
                    self._restart()
                    raise
                if len(carry) < size:
                    break
                taken.count += size
                yield self._collated(origin, 0)
                carry = self.carry
            if carry:
                self.begun = (block.origin, block.offset + taken.count)

        return Block(origin, rows=resumable(batches))

    def _collated(self, origin: Origin, offset: int) -> Any:
        elements, self.carry = self.carry, []
        self.number += 1
        try:
            return self.collate(elements)
        except Exception as error:
            locate(error, self.label, self.number - 1, origin, offset)
            raise

    def _finished(self, origin: Origin | None = None) -> Block[Any]:
        if origin is None:
            assert self.begun is not None
            origin = self._origin_of(*self.begun)
        try:
            return Block(origin, computed=[self._collated(origin, 0)])
        except Exception as error:
            return Block.failed(error, origin)

    def _restart(self) -> None:
        self.carry = []
        self.begun = None

    def _from_columns(self, block: Block[Any]) -> Iterator[Block[Any]]:
        """Cut batches out of columns, without touching single elements."""
        columns, count = block.columns, block.length or 0
        taken = 0
        if self.carried:
            origin = self._origin(block, 0)
            taken = min(count, self.size - self.carried)
            self.columns.append(slice_columns(columns, 0, taken))
            self.carried += taken
            if self.carried < self.size:
                return
            yield self._joined(origin)
        batches = (count - taken) // self.size
        stop = taken + batches * self.size
        if batches:
            origin = Origin(partial(cursor, block.origin, block.offset + taken))
            origin.place = partial(_place, block.origin.place, block.offset + taken, self.size)
            cut = reshape_batches(owned(slice_columns(columns, taken, stop)), self.size)
            self.number += batches
            yield Block(origin, columns=cut, length=batches)
        if stop < count:
            self.columns = [slice_columns(columns, stop, count)]
            self.carried = count - stop
            self.begun = (block.origin, block.offset + stop)

    def _joined(self, origin: Origin) -> Block[Any]:
        """Give the batch that parts of several blocks make."""
        try:
            whole = owned(concat_columns(self.columns))
        except StructureError:  # blocks that do not fit each other: one element at a time, to name the one that differs
            self._spill()
            self.begun = None
            return self._finished(origin)
        size, self.columns, self.carried, self.begun = self.carried, [], 0, None
        self.number += 1
        return Block(origin, columns=reshape_batches(whole, size), length=1)

    def _spill(self) -> None:
        """Turn a batch that was begun as columns into elements, for it goes on with rows."""
        if self.carried:
            self.carry = [row for part in self.columns for row in iterate(part)]
            self.columns, self.carried = [], 0


def _place(place: Callable[[int], str | None], first: int, size: int, offset: int) -> str | None:
    return place(first + offset * size)
