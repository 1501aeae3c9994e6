"""`Dataset.zip`: elements of several datasets side by side."""

from __future__ import annotations

import builtins
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from aiodata.columns import slice_columns
from aiodata.engine.block import Block, Failure, resumable
from aiodata.engine.plan import INFINITE, UNKNOWN, Plan, plan_of
from aiodata.engine.position import Origin, cursor
from aiodata.structure import is_namedtuple, map_structure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

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
    leaves: list[Any] = []
    numbers = _numbered(structure, leaves)
    for leaf in leaves:
        if plan_of(leaf) is None:
            raise TypeError(f"zip: takes datasets, or a tuple or dict of datasets, not {type(leaf).__name__}")
    if not leaves:
        raise ValueError("zip: the structure holds no dataset")
    stage = partial(_zip, structure=numbers)
    spec = partial(_spec, numbers)
    return cls.of(
        Plan("zip", stage, tuple(leaf.plan for leaf in leaves), count=_count, spec=spec, title=name, contents=numbers)
    )


def _numbered(structure: Any, leaves: list[Any]) -> Any:
    """List the leaves in the order in which tf.data opens them, keys sorted; give the structure of their numbers."""
    if isinstance(structure, dict):
        try:
            keys = sorted(structure)
        except TypeError:  # of different kinds, which tf.data refuses
            keys = list(structure)
        numbers = {key: _numbered(structure[key], leaves) for key in keys}
        return {key: numbers[key] for key in structure}
    if isinstance(structure, tuple):
        parts = [_numbered(part, leaves) for part in structure]
        kind: Any = type(structure)
        return kind._make(parts) if is_namedtuple(structure) else tuple(parts)
    leaves.append(structure)
    return len(leaves) - 1


def _spec(numbers: Any, *specs: Any) -> Any:
    return None if None in specs else map_structure(specs.__getitem__, numbers)


def _count(*counts: int) -> int:
    if UNKNOWN in counts:
        return UNKNOWN
    return min((count for count in counts if count != INFINITE), default=INFINITE)


def _zip(run: Run, *sources: Source, start: Any, structure: Any) -> AsyncIterator[Block[Any]]:
    cursors = start or [None] * len(sources)
    inputs = [_Input(source.open(at), at) for source, at in builtins.zip(sources, cursors, strict=True)]
    return _Rows(inputs, structure).blocks()


class _Input:
    """One of the zipped inputs and the block that is being read."""

    def __init__(self, blocks: AsyncIterator[Block[Any]], start: Any) -> None:
        self.blocks = blocks
        self.start = start
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

    def begin(self) -> Iterator[Any] | None:
        """Give the rows of the block in hand, from the next element on; None if there is no block."""
        block = self.block
        if block is not None:
            if block.columns is not None:
                block = block.sliced(self.offset - block.offset, block.length or 0)
            self.rows = block.rows()
        return self.rows

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
        self.pack = _packing(structure, len(inputs))
        self.row: list[Any] = []
        self.error: Exception | None = None

    async def blocks(self) -> AsyncIterator[Block[Any]]:
        inputs = self.inputs
        while True:
            empty = self._exhausted()
            if empty is not None:
                if not await empty.advance():
                    origin = self._origin()
                    await self._read_before(empty)
                    if self.error is not None:
                        error, self.error = self.error, None
                        yield Block.failed(error, origin)
                    return
                continue
            count = 0 if self.row else min(each.left for each in inputs)
            if count:
                yield self._columns(count)
            else:
                yield Block(self._origin(), rows=resumable(self._pull))

    async def _read_before(self, ended: _Input) -> None:
        """Read the rest of the last row, up to the input that has ended: an error there comes before the end."""
        for each in self.inputs[len(self.row) : self.inputs.index(ended)]:
            if self.error is not None:
                return
            try:
                while next(each.rows or each.begin() or iter(()), self) is self:
                    if not await each.advance():
                        return
            except Exception as error:
                self.error = error

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

    def _origin(self) -> Origin:
        """Tell where the next row comes from; its first elements may have been read already."""
        marks = []
        for number, each in enumerate(self.inputs):
            offset = each.offset - (number < len(self.row))
            marks.append(each.start if each.origin is None else (each.origin, offset))
        return Origin(partial(_position, marks), partial(_place, marks))

    def _columns(self, count: int) -> Block[Any]:
        origin = self._origin()
        parts = []
        for each in self.inputs:
            assert each.block is not None
            begin = each.offset - each.block.offset
            parts.append(slice_columns(each.block.columns, begin, begin + count))
            each.offset += count
            each.rows = None  # rows that were begun in this block stand before these
        return Block(origin, columns=map_structure(parts.__getitem__, self.structure), length=count)

    def _pull(self) -> Iterator[Any]:
        inputs, pack, end = self.inputs, self.pack, self
        while True:
            row = self.row
            for each in inputs[len(row) :] if row else inputs:
                rows = each.rows or each.begin()
                if rows is None:
                    return
                try:
                    element = next(rows, end)
                except Exception as error:
                    self.error = self.error or error
                    element = None
                if element is end:
                    each.block = each.rows = None
                    return
                each.offset += 1
                row.append(element)
            self.row = []
            if self.error is not None:
                failure, self.error = Failure(self.error), None
                failure.open()
            yield pack(row)


def _packing(structure: Any, width: int) -> Callable[[list[Any]], Any]:
    """Give what makes an element of a row of `width` components, from a structure of their numbers."""
    if isinstance(structure, dict):
        named = {key: _packing(part, width) for key, part in structure.items()}
        return lambda row: {key: part(row) for key, part in named.items()}
    if isinstance(structure, tuple):
        make: Callable[[Any], Any] = getattr(structure, "_make", tuple)
        if tuple(structure) == tuple(builtins.range(width)):
            return make
        parts = [_packing(part, width) for part in structure]
        return lambda row: make([part(row) for part in parts])
    return itemgetter(structure)


def _position(marks: list[Any]) -> Any:
    return [cursor(*mark) if isinstance(mark, tuple) else mark for mark in marks]


def _place(marks: list[Any], offset: int) -> str | None:
    """Give the place of the first input whose elements have one."""
    places = (mark[0].place(mark[1] + offset) for mark in marks if isinstance(mark, tuple))
    return next(filter(None, places), None)
