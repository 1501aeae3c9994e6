"""`Dataset.zip`: elements of several datasets side by side."""

from __future__ import annotations

import builtins
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.columns import slice_columns
from aiodata.engine.block import Block, resumable
from aiodata.engine.plan import INFINITE, UNKNOWN, Plan
from aiodata.engine.position import Origin, cursor
from aiodata.structure import flatten, pack_like

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["zip"]


def zip(cls: type[Dataset[Any]], *args: Any, datasets: Any = None, name: str | None = None) -> Dataset[Any]:
    """Give elements of several datasets side by side, until the shortest ends.

    When one fails at an element, the others' elements of that row are used up.

    Args:
        *args: Datasets, or one structure (tuple, named tuple, dict) of them. A single dataset is not wrapped.
        datasets: The structure, by tf.data's older name.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: An argument is not a dataset or a structure of datasets; a list is none.
        ValueError: Nothing, or both forms, were given.

    >>> import aiodata
    >>> a, b = aiodata.Dataset.range(2), aiodata.Dataset.range(5, 9)
    >>> list(aiodata.Dataset.zip(a, b))
    [(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))]

    Source: `tf.data.Dataset.zip`.
    """
    if bool(args) == (datasets is not None):
        raise ValueError("zip: give the datasets, or one structure of them")
    structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
    leaves = flatten(structure)
    for leaf in leaves:
        if not isinstance(leaf, cls):
            raise TypeError(f"zip: takes datasets, or a tuple or dict of datasets, not {type(leaf).__name__}")
    if not leaves:
        raise ValueError("zip: the structure holds no dataset")
    stage = partial(_zip, structure=pack_like(structure, range(len(leaves))))
    spec = partial(_spec, structure)
    return cls(Plan("zip", stage, tuple(leaf.plan for leaf in leaves), count=_count, spec=spec, title=name))


def _spec(structure: Any, *specs: Any) -> Any:
    return None if None in specs else pack_like(structure, specs)


def _count(*counts: int) -> int:
    if UNKNOWN in counts:
        return UNKNOWN
    return min((count for count in counts if count != INFINITE), default=INFINITE)


def _zip(run: Run, *sources: Source, start: Any, structure: Any) -> AsyncIterator[Block[Any]]:
    cursors = start or [None] * len(sources)
    inputs = [_Input(source.open(at)) for source, at in builtins.zip(sources, cursors, strict=True)]
    return _Rows(inputs, structure).blocks()


class _Input:
    """One of the zipped inputs and the block that is being read."""

    def __init__(self, blocks: AsyncIterator[Block[Any]]) -> None:
        self.blocks = blocks
        self.block: Block[Any] | None = None
        self.rows: Iterator[Any] | None = None
        self.origin: Origin | None = None
        self.offset = 0

    @property
    def left(self) -> int:
        """Number of elements left in a block of columns; 0 for rows."""
        block = self.block
        if block is None or block.columns is None or block.length is None:
            return 0
        return block.length - (self.offset - block.offset)

    async def advance(self) -> bool:
        block = await anext(self.blocks, None)
        if block is None:
            return False
        self.block, self.rows = block, None
        self.origin, self.offset = block.origin, block.offset
        return True


class _Rows:
    """Zipped rows; a row that has begun waits for the next block of an input."""

    def __init__(self, inputs: list[_Input], structure: Any) -> None:
        self.inputs = inputs
        self.structure = structure
        self.row: list[Any] = []
        self.error: Exception | None = None
        self.marks: list[tuple[Origin, int]] = []

    async def blocks(self) -> AsyncIterator[Block[Any]]:
        inputs = self.inputs
        for each in inputs:
            if not await each.advance():
                return
        while True:
            empty = self._exhausted()
            if empty is not None:
                if not await empty.advance():
                    return
                continue
            count = 0 if self.row else min(each.left for each in inputs)
            if count:
                yield self._columns(count)
            else:
                marks = self.marks or self._marks()
                origin = Origin(partial(_position, marks), partial(_place, marks))
                yield Block(origin, rows=resumable(self._pull))

    def _exhausted(self) -> _Input | None:
        """Find the input that must advance before anything can be given."""
        for number, each in enumerate(self.inputs):
            if number < len(self.row):
                continue
            if each.block is None:
                return each
            if each.block.columns is not None and each.left == 0:
                return each
        return None

    def _marks(self) -> list[tuple[Origin, int]]:
        return [(each.origin, each.offset) for each in self.inputs if each.origin is not None]

    def _columns(self, count: int) -> Block[Any]:
        marks = self._marks()
        parts = []
        for each in self.inputs:
            assert each.block is not None
            begin = each.offset - each.block.offset
            parts.append(slice_columns(each.block.columns, begin, begin + count))
            each.offset += count
        origin = Origin(partial(_position, marks), partial(_place, marks))
        return Block(origin, columns=pack_like(self.structure, parts), length=count)

    def _pull(self) -> Iterator[Any]:
        while True:
            if not self.row:
                self.marks = self._marks()
            for each in self.inputs[len(self.row) :]:
                if each.rows is None:
                    if each.block is None:
                        return
                    begin = each.offset - each.block.offset
                    block = (
                        each.block.sliced(begin, each.block.length or 0)
                        if each.block.columns is not None
                        else each.block
                    )
                    each.rows = block.rows()
                try:
                    element = next(each.rows, self)
                except Exception as error:
                    self.error = self.error or error
                    element = None
                if element is self:
                    each.block = each.rows = None
                    return
                each.offset += 1
                self.row.append(element)
            row, self.row = self.row, []
            failure, self.error = self.error, None
            self.marks = []
            if failure is not None:
                raise failure
            yield pack_like(self.structure, row)


def _position(marks: list[tuple[Origin, int]]) -> Any:
    return [cursor(*mark) for mark in marks]


def _place(marks: list[tuple[Origin, int]], offset: int) -> str | None:
    """Give the place of the first input whose elements have one."""
    return next(filter(None, (origin.place(first + offset) for origin, first in marks)), None)
