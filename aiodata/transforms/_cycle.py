"""The cycle of open datasets behind `interleave` and `flat_map`."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice, repeat
from itertools import cycle as endlessly
from typing import TYPE_CHECKING, Any, Protocol

from aiodata.engine.block import Block, resumable
from aiodata.engine.position import Origin, cursor
from aiodata.transforms._inputs import Inputs
from aiodata.transforms._reader import saved_mark
from aiodata.transforms._turns import alike, merged, scheduled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.transforms._reader import Reader

__all__ = ["Cycle", "cycle"]

FEW = 8
"""How many of the next slots are looked at for one that is empty."""

_ListIterator: type[Any] = type(iter([]))


def cycle(
    run: Run,
    source: Source,
    *,
    start: Any,
    function: Callable[..., Any],
    label: str,
    length: int,
    block_length: int,
) -> AsyncIterator[Block[Any]]:
    """Open a stage that reads `length` datasets in turn, each made by `function` from an element of `source`."""
    inputs = Inputs(run, source, function, label, None if start is None else start["next"])
    return Cycle(inputs, length, block_length).elements(start)


class Opens(Protocol):
    """Opens datasets in order: `Inputs`, or one that reads ahead in them."""

    failed: bool

    @property
    def next(self) -> Any:
        """What gives the cursor of the next element."""

    async def open_next(self) -> Reader | None:
        """Open the next dataset; None when there are no more."""

    async def reopen(self, saved: Any) -> Reader:
        """Open a dataset again that was open when a state was saved."""

    async def release(self, reader: Reader) -> None:
        """Close a dataset that has been read."""

    def shared(self) -> list[Any]:
        """Give the seed generators that have been used and may be used again, as they are."""

    async def restore_shared(self, saved: Any) -> None:
        """Set seed generators to what `shared` gave."""

    async def aclose(self) -> None:
        """End what was started for reading."""


class Cycle:
    """The slots of a cycle, whose turn it is, and how much is left of the turn."""

    def __init__(self, inputs: Opens, length: int, block_length: int) -> None:
        self.inputs = inputs
        self.block_length = block_length
        self.slots: list[Reader | None] = [None] * length
        self.turn = 0
        self.left = block_length
        self.over = False

    async def elements(self, start: Any) -> AsyncIterator[Block[Any]]:
        """Give the elements from the start or from a saved position."""
        try:
            if start is not None:
                self.turn, self.left, self.over = start["turn"], start["left"], start["over"]
                for number, saved in enumerate(start["slots"]):
                    if saved is not None:
                        self.slots[number] = await self.inputs.reopen(saved)
                await self.inputs.restore_shared(start["shared"])
            while True:
                reader = self.slots[self.turn]
                if reader is None:
                    if self.over:
                        if not any(self.slots):
                            return
                        self.pass_on()
                        continue
                    failed: list[Block[Any]] = []
                    before = self.inputs.next, self.inputs.shared()
                    try:
                        self.slots[self.turn] = reader = await self.inputs.open_next()
                        self.over = reader is None
                    except Exception as error:
                        if self.inputs.failed:
                            raise
                        failed.append(Block.failed(error, self.origin_of(self.marks(), *before)))
                    if failed:  # behind the handler, which would hold the error, and it this frame
                        yield failed.pop()
                elif reader.is_empty:
                    block = await anext(reader.blocks, None)
                    if block is None:
                        self.slots[self.turn] = None
                        self.pass_on()
                        await self.inputs.release(reader)
                    elif len(self.slots) == 1:
                        yield self.passed(reader, block)
                    else:
                        reader.take_in_hand(block)
                else:
                    yield self.in_bulk() or self.in_turn()
        finally:
            await self.inputs.aclose()

    def pass_on(self) -> None:
        """End a turn."""
        self.turn = (self.turn + 1) % len(self.slots)
        self.left = self.block_length

    def passed(self, reader: Reader, block: Block[Any]) -> Block[Any]:
        """Give the only reader's block as it is, with this stage's position."""
        reader.origin, reader.offset = block.origin, block.offset
        origin = block.origin.within(self.snapshot().position, block.offset)
        return block.moved(origin)

    def snapshot(self) -> Origin:
        """Give the origin of the next element."""
        return self.origin_of(self.marks(), self.inputs.next, self.inputs.shared())

    def marks(self) -> list[Any]:
        """Give the readers' marks, made inline: there may be thousands of readers, of which a block takes little."""
        return [None if each is None else (each.fixed, each.origin, each.offset) for each in self.slots]

    def origin_of(self, marks: list[Any], following: Any, shared: list[Any]) -> Origin:
        """Give the origin of the next element, with the readers' marks and what the inputs say."""
        return Origin(partial(_position, marks, self.turn, self.left, self.over, following, shared))

    def in_bulk(self) -> Block[Any] | None:
        """Give what `in_turn` would, where it is known how many elements each reader has in hand; else give None."""
        size, begun = self.block_length, self.block_length - self.left
        slots = self.slots
        numbers = self.turns()
        readers = [slots[number] for number in numbers]
        schedule = scheduled(readers, size, begun)
        if schedule is None:
            return None
        until, taken = schedule
        marks = self.marks()
        origin = self.origin_of(marks, self.inputs.next, self.inputs.shared())
        origin.place = partial(_place_in_bulk, [marks[number] for number in numbers], size, begun)
        columns = _columns(readers, taken, size, begun)
        if columns is None:
            block = self._in_rows(readers, taken, origin, until - begun)
        else:
            block = Block(origin, columns=columns, length=until - begun)
        self.turn = numbers[until // size % len(numbers)]
        self.left = size - until % size
        return block

    def turns(self) -> list[int]:
        """Give the numbers of the slots in turn, from the present one on.

        Where one of the next few has to be opened, reading ends there, and those behind it need no look: else opening
        all of n slots, one element after the other, would take n times n steps.
        """
        turn, slots = self.turn, self.slots
        if self.over:
            return [number for number in (*range(turn, len(slots)), *range(turn)) if slots[number] is not None]
        near = range(turn, min(turn + FEW, len(slots)))
        empty = next((number for number in near if slots[number] is None), None)
        return [*range(turn, len(slots)), *range(turn)] if empty is None else [*range(turn, empty + 1)]

    def _in_rows(
        self, readers: Sequence[Reader | None], taken: Sequence[int], origin: Origin, length: int
    ) -> Block[Any]:
        """Give `length` elements of readers that take turns, the first of which has `left` elements left."""
        size = self.block_length
        rows: list[Any] = [
            None if reader is None else reader.by_row() if count else reader.rows
            for reader, count in zip(readers, taken, strict=True)
        ]
        turns = chain.from_iterable(map(repeat, rows[1:] + rows[:1], repeat(size)))
        elements = map(next, islice(chain(repeat(rows[0], self.left), endlessly(turns)), length))
        computed = all(type(own) is _ListIterator for own, count in zip(rows, taken, strict=True) if count)
        block: Block[Any] = (
            # A list's iterator gives what has been computed, and no errors.
            Block(origin, computed=list(elements), clean=True)
            if computed
            else Block(origin, rows=elements, length=length)
        )
        for reader, count in zip(readers, taken, strict=True):
            if reader is not None and count:
                reader.offset += count
                if computed and reader.offset == reader.stop:
                    reader.rows = None
        return block

    def in_turn(self) -> Block[Any]:
        """Give elements from the readers in turn, until one needs its next block."""
        log: list[tuple[Origin | None, int]] = []
        for reader in self.slots:
            if reader is not None:
                reader.spot = (reader.origin, reader.offset)
        origin = self.snapshot()
        origin.place = partial(_place, log)
        return Block(origin, rows=resumable(partial(self._in_turn, log)))

    def _in_turn(self, log: list[tuple[Origin | None, int]]) -> Iterator[Any]:
        slots = self.slots
        end = self
        while True:
            reader = slots[self.turn]
            if reader is None:
                if not self.over or not any(slots):
                    return
                self.pass_on()
                continue
            rows = reader.by_row()
            if rows is None:
                return
            try:
                element = next(rows, end)
            except Exception:
                self._count(reader, log)
                raise
            if element is end:
                reader.rows = None
                return
            log.append(reader.spot)
            reader.offset += 1
            self.left -= 1
            if not self.left:
                self.pass_on()
            yield element

    def _count(self, reader: Reader, log: list[tuple[Origin | None, int]]) -> None:
        log.append(reader.spot)
        reader.offset += 1
        self.left -= 1
        if not self.left:
            self.pass_on()


def _columns(readers: Sequence[Reader | None], taken: Sequence[int], size: int, begun: int) -> Any:
    """Take the columns that readers have in hand, merged; None, with nothing taken, if they have rows or do not fit."""
    giving = [reader for reader, count in zip(readers, taken, strict=True) if count and reader is not None]
    first = giving[0].columns
    if first is None or not all(each.columns is not None and alike(first, each.columns) for each in giving):
        return None
    parts = [
        None if reader is None or not count else reader.take_columns(count)
        for reader, count in zip(readers, taken, strict=True)
    ]
    return merged(parts, taken, size, begun)


def _place_in_bulk(marks: Sequence[Any], size: int, begun: int, offset: int) -> str | None:
    rounds, rest = divmod(offset + begun, len(marks) * size)
    number, part = divmod(rest, size)
    mark = marks[number]
    if mark is None or mark[1] is None:
        return None
    _, origin, first = mark
    place: str | None = origin.place(first + rounds * size + part - (0 if number else begun))
    return place


def _place(log: list[tuple[Origin | None, int]], offset: int) -> str | None:
    if offset >= len(log):
        return None
    spot = log[offset]
    origin, first = spot
    return None if origin is None else origin.place(first + sum(one is spot for one in log[:offset]))


def _position(marks: list[Any], turn: int, left: int, over: bool, following: Any, shared: list[Any]) -> Any:
    return {
        "slots": [saved_mark(mark) for mark in marks],
        "turn": turn,
        "left": left,
        "over": over,
        "next": cursor(*following) if isinstance(following, tuple) else following,
        "shared": [[cursor(*outer), seeds] for outer, seeds in shared],
    }
