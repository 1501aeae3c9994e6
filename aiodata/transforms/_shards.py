"""The elements of one shard: every n-th one, with no more, with as many, or with one more than the other shards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.columns import iterate, slice_columns, take_columns
from aiodata.engine.block import Block, Tally, resumable
from aiodata.engine.position import Origin, cursor, nowhere
from aiodata.errors import DataError
from aiodata.structure import map_structure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.engine.run import Run

__all__ = ["Padded", "Whole", "check_share", "every"]

PORTION = 16
"""Elements of a group that are held at once while it is read on."""


def check_share(num_shards: object, index: object, method: str) -> tuple[int, int]:
    """Give the number of shards and that of one of them.

    Raises:
        TypeError: One of them is not an integer.
        ValueError: Not `0 <= index < num_shards`.
    """
    shards = check_integer(num_shards, method, "num_shards", 1)
    number = check_integer(index, method, "index", 0)
    if number >= shards:
        raise ValueError(f"{method}: index must be below num_shards ({shards}), not {number}")
    return shards, number


async def every(blocks: AsyncIterator[Block[Any]], shards: int, number: int, phase: int) -> AsyncIterator[Block[Any]]:
    """Give every n-th element; `phase` is the number of the next input element modulo `shards`."""
    async for block in blocks:
        first = (number - phase) % shards
        origin = block.origin.within(partial(_position, phase, block.here()), block.offset)
        origin.place = partial(_place, origin.place, first, shards)
        tally = Tally()
        yield _own(block, origin, 0, first, shards, tally)
        phase = (phase + tally.count) % shards


def _own(block: Block[Any], origin: Origin, offset: int, first: int, shards: int, tally: Tally) -> Block[Any]:
    """Give the block's elements from `first` on, one of `shards`; `tally` counts those that have been read."""
    if block.columns is None or block.length is None:
        return Block(origin, offset, rows=_picked(block.rows(), first, shards, tally))
    tally.count = block.length
    columns = _stride(block.columns, first, shards)
    return Block(origin, offset, columns=columns, length=_share(block.length, first, shards))


def _share(count: int, first: int, shards: int) -> int:
    return max(0, -((first - count) // shards))


def _stride(columns: Any, first: int, shards: int) -> Any:
    return map_structure(lambda array: None if array is None else array[first::shards], columns)


def _picked(rows: Iterator[Any], first: int, shards: int, tally: Tally) -> Iterator[Any]:
    def picking() -> Iterator[Any]:
        while True:
            wanted = (tally.count - first) % shards == 0
            try:
                element = next(rows, tally)
            except Exception:
                tally.count += 1
                if wanted:
                    raise
                continue
            if element is tally:
                return
            tally.count += 1
            if wanted:
                yield element

    return resumable(picking)


def _place(place: Callable[[int], str | None], first: int, shards: int, offset: int) -> str | None:
    return place(first + offset * shards)


def _position(head: Any, here: Callable[[], Any]) -> Any:
    return [head, here()]


def _empty(shards: int, number: int) -> DataError:
    return DataError(f"shard({shards}, {number}): the input has ended, and this shard would be empty")


def _one(chunk: Block[Any], index: int) -> Block[Any]:
    if chunk.computed is None:
        return chunk.sliced(index, index + 1)
    return Block(chunk.origin, chunk.offset + index, computed=chunk.computed[index : index + 1])


class Whole:
    """A shard's elements of the complete groups; the groups are of an element for each shard.

    An element is given when its group has been read. A position is that of the group's first element, with whether
    there have been groups before.
    """

    def __init__(self, run: Run, shards: int, number: int, given: bool) -> None:
        self.run = run
        self.shards = shards
        self.number = number
        self.given = given
        self.phase = 0
        """Elements that have been read of the group that has begun."""
        self.held: Block[Any] | None = None
        """This shard's element of that group."""
        self.begun: Callable[[], Any] | None = None
        """Gives its position."""

    async def blocks(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        """Give the elements of complete groups.

        Raises:
            DataError: There has been none.
        """
        async for block in blocks:
            await self.run.breathe()
            rest = block
            if self.begun is not None:
                begun, own = self.begun, self._complete(block)
                if own is None:
                    continue
                yield own.moved(own.origin.within(begun, own.offset))
                rest = block.remainder()
            groups = Tally()
            yield self._whole_groups(rest, groups)
            if self.phase:
                self.begun = self._position(rest.origin, rest.offset + groups.count * self.shards)
        if not self.given:
            raise _empty(self.shards, self.number)

    def _position(self, origin: Origin, offset: int) -> Callable[[], Any]:
        return partial(_position, self.given, partial(cursor, origin, offset))

    def _whole_groups(self, rest: Block[Any], groups: Tally) -> Block[Any]:
        """Give this shard's elements of the block's complete groups; begin the group that follows them."""
        origin = rest.origin.within(self._position(rest.origin, rest.offset), rest.offset)
        origin.place = partial(_place, origin.place, self.number, self.shards)
        if rest.columns is None or rest.length is None:
            return Block(origin, rows=resumable(partial(self._rows, rest, groups)))
        groups.count = rest.length // self.shards
        stop = groups.count * self.shards
        columns = _stride(slice_columns(rest.columns, 0, stop), self.number, self.shards)
        self.given = self.given or groups.count > 0
        self._complete(rest.sliced(stop, rest.length))
        return Block(origin, columns=columns, length=groups.count)

    def _rows(self, rest: Block[Any], groups: Tally) -> Iterator[Any]:
        while (own := self._complete(rest)) is not None:
            groups.count += 1
            yield from own.rows()

    def _complete(self, block: Block[Any]) -> Block[Any] | None:
        """Read on to the end of the group and give this shard's element; None if the block ended before."""
        while (chunk := block.chunk(min(self.shards - self.phase, PORTION))) is not None:
            index, count = self.number - self.phase, chunk.length or 0
            if 0 <= index < count:
                self.held = _one(chunk, index)
            self.phase += count
            if self.phase == self.shards:
                own, self.held, self.begun, self.phase = self.held, None, None, 0
                self.given = True
                return own
        return None


class Padded:
    """A shard's elements, and the last of them once more where other shards have one more.

    Positions are counted from the last element that did not fail, so that opening there reads it again.
    """

    def __init__(self, shards: int, number: int, phase: int) -> None:
        self.shards = shards
        self.number = number
        self.phase = phase
        self.base: Callable[[], Any] | None = None
        """Gives the position of this shard's last element that did not fail, or of the start."""
        self.behind = 0
        """How many of this shard's elements there have been from there on."""
        self.owned = False
        self.last: list[Any] = []
        """That element, if there has been one."""
        self.place: Callable[[int], str | None] = nowhere

    async def blocks(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        """Give the shard's elements, and the last once more if it has one less than the first shard.

        Raises:
            DataError: There has been none.
        """
        async for block in blocks:
            first = (self.number - self.phase) % self.shards
            if self.base is None:
                self.base = partial(_position, self.phase, block.here())
            origin = block.origin.within(self.base, block.offset)
            origin.place = partial(_place, origin.place, first - self.behind * self.shards, self.shards)
            tally, good = Tally(), Tally(-1)
            yield self._noted(_own(block, origin, self.behind, first, self.shards, tally), first, tally, good)
            own = _share(tally.count, first, self.shards)
            self.owned = self.owned or own > 0
            self.behind += own
            if good.count >= 0:
                offset = block.offset + good.count
                self.base = partial(_position, self.number, partial(cursor, block.origin, offset))
                self.place = partial(_place, block.origin.place, offset, 0)
                self.behind = _share(tally.count, good.count, self.shards)
            self.phase = (self.phase + tally.count) % self.shards
        if not self.owned:
            raise _empty(self.shards, self.number)
        if 0 < self.phase <= self.number:
            yield self._once_more()

    def _noted(self, own: Block[Any], first: int, tally: Tally, good: Tally) -> Block[Any]:
        """Keep the last element that does not fail, and in `good` its number in the block."""
        if own.columns is None:
            return Block(own.origin, own.offset, rows=map(partial(self._note, tally, good), own.rows()))
        if own.length:
            good.count = first + (own.length - 1) * self.shards
            last = take_columns(own.columns, np.array([own.length - 1]))
            self.last = list(iterate(last))
        return own

    def _note(self, tally: Tally, good: Tally, element: Any) -> Any:
        good.count = tally.count - 1
        # A copy, for the reader may work on the element in place.
        self.last = [map_structure(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, element)]
        return element

    def _once_more(self) -> Block[Any]:
        assert self.base is not None
        if self.last:
            return Block(Origin(self.base, self.place), self.behind, computed=self.last)
        error = DataError(
            f"shard({self.shards}, {self.number}): every element of this shard has failed, so there is none to give "
            "once more"
        )
        return Block.failed(error, Origin(self.base), self.behind)
