"""The cycle of open datasets behind `interleave` and `flat_map`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from aiodata.engine.block import Block, Failure, resumable
from aiodata.engine.concurrent import Feed
from aiodata.engine.plan import Plan, load_seeds, save_seeds
from aiodata.engine.position import Origin, cursor, locate
from aiodata.functions import call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.engine.channel import Channel
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run, Source

__all__ = ["Cycle", "Inputs", "Reader", "cycle", "saved_mark"]


class Reader:
    """One open dataset and how far it has been read.

    Args:
        outer: Origin and offset of the element that the dataset was made from.
        blocks: The dataset's blocks.
        start: Where it was opened.
        seeds: The dataset's seed generators as they were before it was opened.
    """

    __slots__ = ("blocks", "channel", "inner", "offset", "origin", "outer", "rows", "seeds", "spot", "start")

    def __init__(
        self, outer: tuple[Origin, int], blocks: AsyncIterator[Block[Any]], start: Cursor | None, seeds: Any
    ) -> None:
        self.outer = outer
        self.blocks = blocks
        self.inner = blocks
        """The dataset's own blocks, also where `blocks` are read ahead from them."""
        self.start = start
        self.seeds = seeds
        self.channel: Channel | None = None
        """What a task reads ahead into, if one does."""
        self.origin: Origin | None = None
        self.offset = 0
        self.rows: Iterator[Any] | None = None
        self.spot: tuple[Origin | None, int] = (None, 0)

    def take_in_hand(self, block: Block[Any]) -> None:
        self.origin = block.origin
        self.offset = block.offset
        self.rows = block.rows()

    def mark(self) -> Any:
        """Give what the reader's state is made of, frozen; it does not hold elements."""
        return self.outer, (self.origin, self.offset) if self.origin is not None else self.start, self.seeds


def saved_mark(mark: Any) -> Any:
    if mark is None:
        return None
    outer, inner, seeds = mark
    return [cursor(*outer), cursor(*inner) if isinstance(inner, tuple) else inner, seeds]


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


class Inputs:
    """The datasets that a user's function makes from the elements of a source, opened in order.

    Args:
        run: The run that opens them.
        source: Gives the elements.
        function: Makes a dataset from one.
        label: The stage's label, for errors.
        start: Cursor of the first element to read.
    """

    def __init__(self, run: Run, source: Source, function: Callable[..., Any], label: str, start: Any) -> None:
        self.run = run
        self.source = source
        self.function = function
        self.label = label
        self.feed = Feed(source.open(start))
        self.next: Any = start
        """What gives the cursor of the next element: (origin, offset), or a cursor."""
        self.number = 0

    def saved_next(self) -> Any:
        return cursor(*self.next) if isinstance(self.next, tuple) else self.next

    async def open_next(self) -> Reader | None:
        """Open the next dataset; None when there are no more elements.

        Raises:
            Exception: The element itself failed, or the function; the next call goes on behind it.
        """
        chunk = await self.feed.chunk(1)
        if chunk is None:
            return None
        self.next = (chunk.origin, chunk.offset + 1)
        self.number += 1
        return self._open(chunk, None)

    def _open(self, chunk: Block[Any], start: Cursor | None, seeds: Any = None) -> Reader:
        element = next(chunk.rows()) if chunk.computed is None else chunk.computed[0]
        if element.__class__ is Failure:
            raise element.exception
        try:
            dataset = call(self.function, element)
            plan = getattr(dataset, "plan", None)
            if not isinstance(plan, Plan):
                raise TypeError(f"map_func must give a Dataset, not {type(dataset).__name__}")
        except Exception as error:
            locate(error, self.label, self.number - 1, chunk.origin, chunk.offset)
            raise
        if seeds is not None and start is None:
            load_seeds(plan, seeds)
        seeds = save_seeds(plan) or None
        return Reader((chunk.origin, chunk.offset), self.source.open_inner(plan, start), start, seeds)

    async def reopen(self, saved: Any) -> Reader:
        """Open a dataset again that was open when a state was saved."""
        outer, inner, seeds = saved
        blocks = self.source.open(outer)
        chunk = await Feed(blocks).chunk(1)
        await self.run.release(blocks)
        assert chunk is not None
        return self._open(chunk, inner, seeds)

    async def release(self, reader: Reader) -> None:
        """Close a dataset that has been read, or is not wanted any more."""
        await self.run.release(reader.inner)

    async def aclose(self) -> None:
        """End what was started for reading: nothing, here."""


class Opens(Protocol):
    """Opens datasets in order: `Inputs`, or one that reads ahead in them."""

    @property
    def next(self) -> Any:
        """What gives the cursor of the next element."""

    async def open_next(self) -> Reader | None:
        """Open the next dataset; None when there are no more."""

    async def reopen(self, saved: Any) -> Reader:
        """Open a dataset again that was open when a state was saved."""

    async def release(self, reader: Reader) -> None:
        """Close a dataset that has been read."""

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
        try:
            async for block in self._elements(start):
                yield block
        finally:
            await self.inputs.aclose()

    async def _elements(self, start: Any) -> AsyncIterator[Block[Any]]:
        if start is not None:
            self.turn, self.left, self.over = start["turn"], start["left"], start["over"]
            for number, saved in enumerate(start["slots"]):
                if saved is not None:
                    self.slots[number] = await self.inputs.reopen(saved)
        while True:
            reader = self.slots[self.turn]
            if reader is None:
                if self.over:
                    if not any(self.slots):
                        return
                    self.pass_on()
                    continue
                origin = self.snapshot()
                try:
                    reader = await self.inputs.open_next()
                except Exception as error:
                    yield Block.failed(error, origin)
                    continue
                self.slots[self.turn] = reader
                self.over = reader is None
            elif reader.rows is None:
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
                yield self.in_turn()

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
        marks = [None if reader is None else reader.mark() for reader in self.slots]
        return Origin(partial(_position, marks, self.turn, self.left, self.over, self.inputs.next))

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
            rows = reader.rows
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


def _place(log: list[tuple[Origin | None, int]], offset: int) -> str | None:
    if offset >= len(log):
        return None
    spot = log[offset]
    origin, first = spot
    return None if origin is None else origin.place(first + sum(one is spot for one in log[:offset]))


def _position(marks: list[Any], turn: int, left: int, over: bool, following: Any) -> Any:
    return {
        "slots": [saved_mark(mark) for mark in marks],
        "turn": turn,
        "left": left,
        "over": over,
        "next": cursor(*following) if isinstance(following, tuple) else following,
    }
