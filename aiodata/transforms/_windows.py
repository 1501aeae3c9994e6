"""The elements that a `window` holds, and the windows that are made of them."""

from __future__ import annotations

import copy
from bisect import bisect_right
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from aiodata.agreement import fail_structure
from aiodata.columns import concat_columns, freeze, iterate, length, slice_columns
from aiodata.engine.block import Block, Failure, Tally, pull
from aiodata.engine.position import Origin, cursor, locate
from aiodata.spec import row_spec
from aiodata.stacking import by_component
from aiodata.transforms._held import frozen, held

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from aiodata.agreement import Path
    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Plan
    from aiodata.engine.run import Run

__all__ = ["Windows"]


class Windows:
    """What a window stage holds between blocks: the elements from the next window's first one on, as rows or columns.

    Elements are known by their number, counted from where the stage was opened.

    Args:
        run: The run.
        plan: The input's, for the spec of its elements.
        parent: The input, of whose class the windows are made.
        span: Distance from a window's first element to that behind its last, in the input.
        shift: Distance from window to window.
        stride: Distance from element to element.
        drop: Leave out windows that are cut short by the end.
        label: The stage's label, for errors.
    """

    def __init__(
        self, run: Run, plan: Plan, parent: Dataset[Any], span: int, shift: int, stride: int, drop: bool, label: str
    ) -> None:
        self.run = run
        self.plan = plan
        self.parent = parent
        self.span = span
        self.shift = shift
        self.stride = stride
        self.drop = drop
        self.label = label
        self.rows: list[Any] = []
        """The elements, with `Failure`s in the place of those that failed; or else"""
        self.pieces: list[Any] = []
        """columns, one after the other."""
        self.begin = 0
        """Number of the next window's first element."""
        self.read = 0
        """Number of the next element to read."""
        self.reads: list[tuple[int, Origin, int]] = []
        """The blocks that the elements came from: number of the first element, and where it is from."""
        self.number = 0
        self.pace = Tally(1)

    async def windows(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        """Give the windows of the input's elements; a position is the cursor of a window's first element."""
        try:
            async for block in blocks:
                self.reads.append((self.read, block.origin, block.offset))
                if self._takes(block):
                    if self._take(block):
                        yield self._cut((self.read - self.begin - self.span) // self.shift + 1)
                    continue
                self._spill()
                rows = block.rows()
                while await self._fill(rows):
                    yield self._whole()
            if self.drop:
                return
            if self.pieces:
                yield self._cut(-(-(self.read - self.begin) // self.shift))
            while self.rows:
                yield self._whole()
        finally:
            self.rows.clear()  # a kept exception refers to the frames that refer to it

    def _origin(self, windows: int) -> Origin:
        """Give the origin of the next so many windows; forget the blocks before the first of them."""
        del self.reads[: bisect_right(self.reads, self.begin, key=itemgetter(0)) - 1]
        first, origin, offset = self.reads[0]
        place = partial(_place, self.reads[: None if windows > 1 else 1], self.begin, self.shift)
        return Origin(partial(cursor, origin, offset + self.begin - first), place)

    def _held(self, elements: Any, count: int, path: Path) -> Dataset[Any]:
        return held(self.parent, "window", elements, count, partial(_component_spec, self.plan, path))

    # Rows

    async def _fill(self, rows: Iterator[Any]) -> bool:
        """Read on until the next window is whole; tell whether it is, else the block has ended."""
        while self.read < self.begin:
            skipped = len(pull(rows, min(self.begin - self.read, 256)))
            self.read += skipped
            await self.run.breathe()
            if not skipped:
                return False
        more = True
        while more and (missing := self.span - len(self.rows)) > 0:
            try:
                more = await self.run.gather(self.rows, rows, missing, self.pace)
            except Exception as error:
                self.rows.append(Failure(error))
            frozen(self.rows[self.read - self.begin :])
            self.read = self.begin + len(self.rows)
        return more

    def _whole(self) -> Block[Any]:
        """Give the next window, of rows."""
        origin = self._origin(1)
        elements = self.rows[: self.span : self.stride]
        block: Block[Any]
        if Failure in map(type, elements):
            number = next(number for number, element in enumerate(elements) if element.__class__ is Failure)
            error = elements[number].exception
            block = Block.failed(error if number * self.stride < self.shift else _twin(error), origin)
        else:
            try:
                block = Block(origin, computed=[by_component(elements, self._of_rows, None)], clean=True)
            except ValueError as error:
                locate(error, self.label, self.number, origin, 0)
                block = Block.failed(error, origin)
        del self.rows[: self.shift]
        self.begin += self.shift
        self.number += 1
        return block

    def _of_rows(self, rows: Sequence[Any], path: Path) -> Dataset[Any]:
        if any(issubclass(kind, (tuple, dict)) for kind in set(map(type, rows))):
            fail_structure(rows, path)
        return self._held(list(rows), len(rows), path)

    # Columns

    def _takes(self, block: Block[Any]) -> bool:
        """Tell whether a block is columns that go with what is held."""
        if block.columns is None or self.rows:
            return False
        return not self.pieces or row_spec(self.pieces[0]) == row_spec(block.columns)

    def _take(self, block: Block[Any]) -> bool:
        """Hold on to columns; tell whether the next window is whole."""
        count = block.length or 0
        skipped = min(count, max(0, self.begin - self.read))
        self.read += count
        if skipped < count:
            self.pieces.append(slice_columns(block.columns, skipped, count))
        return self.read - self.begin >= self.span

    def _cut(self, windows: int) -> Block[Any]:
        """Give the next so many windows, of columns, without touching single elements."""
        origin = self._origin(windows)
        whole = concat_columns(self.pieces)
        starts = range(0, windows * self.shift, self.shift)
        count = length(whole)
        self.pieces = [slice_columns(whole, starts.stop, count)] if starts.stop < count else []
        self.begin += starts.stop
        self.number += windows
        return Block(origin, rows=map(partial(self._of_columns, whole, count), starts), length=windows)

    def _of_columns(self, whole: Any, count: int, start: int) -> Any:
        chosen = range(start, min(start + self.span, count), self.stride)

        def component(rows: Sequence[Any], path: Path) -> Dataset[Any]:
            (array,) = rows
            elements = [None] * len(chosen) if array is None else freeze(array[start : chosen.stop : self.stride])
            return self._held(elements, len(chosen), path)

        return by_component([whole], component, None)

    def _spill(self) -> None:
        """Go on with rows."""
        for piece in self.pieces:
            self.rows += frozen(list(iterate(piece)))
        self.pieces.clear()


def _place(reads: list[tuple[int, Origin, int]], begin: int, shift: int, offset: int) -> str | None:
    number = begin + offset * shift
    first, origin, start = reads[bisect_right(reads, number, key=itemgetter(0)) - 1]
    return origin.place(start + number - first)


def _component_spec(plan: Plan, path: Path) -> Any:
    spec = plan.element_spec()
    return None if spec is None else _part(spec, path)


def _part(spec: Any, path: Path) -> Any:
    if path is None:
        return spec
    above, _, key = path
    whole = _part(spec, above)
    return getattr(whole, key) if hasattr(whole, "_fields") else whole[key]


def _twin(error: Exception) -> Exception:
    """Copy an exception that later windows raise again.

    One that has been raised refers to its reader's frame, and that to the iterator, which holds this stage: the
    iterator could not be dropped.
    """
    try:
        twin = copy.copy(error)
        same = str(twin) == str(error)
    except Exception:
        same = False
    if not same:  # its constructor takes something else than the arguments that it hands on
        twin = type(error).__new__(type(error), *error.args)
        twin.__dict__.update(error.__dict__)
    if hasattr(error, "__notes__"):
        twin.__notes__ = [*error.__notes__]
    twin.__cause__, twin.__context__, twin.__suppress_context__ = (
        error.__cause__,
        error.__context__,
        error.__suppress_context__,
    )
    return twin.with_traceback(error.__traceback__)
