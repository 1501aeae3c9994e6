"""One epoch of shuffling: which elements the window holds, and where they came from.

`ShuffleRing` decides on ids alone; a store keeps what the ids stand for. An element's *number* is the number of the
pull that gave it, from the epoch's start, so that a failed pull leaves a gap and reading again finds the same numbers.
A saved position is a snapshot of the window's numbers, taken once for every window's worth of elements, and the count
of elements given since: reading the input again from the oldest of them builds the same window.
"""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Tally, resumable
from aiodata.engine.position import Origin
from aiodata.engine.skipped import Skipped
from aiodata.shuffle_ring import ShuffleRing
from aiodata.transforms._shuffle_found import Found
from aiodata.transforms._shuffle_reads import Reads
from aiodata.transforms._shuffle_store import ColumnStore, Given, IndexStore, RowStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["Window"]

SNAPSHOT_LEAST = 4096
"""Elements given between two snapshots, at least."""

PORTION = 4096
"""Elements that are drawn at a time from what is computed; fewer at first, so that the first one comes soon."""

FIRST_PORTION = 128
PORTION_BYTES = 1 << 20
"""What a portion of columns may come to: they are copied."""

_ListIterator: type[Any] = type(iter([]))


class Window:
    """The window of one epoch.

    Args:
        run: The run.
        source: The input; opened when the first element is asked for.
        pair: The epoch's seed pair.
        seeds: The state of the dataset's seed generator, for positions.
        capacity: Elements in the window; None for all.
    """

    def __init__(self, run: Run, source: Source, pair: Any, seeds: Any, capacity: int | None) -> None:
        self.run = run
        self.source = source
        self.pair = pair
        self.capacity = capacity
        self.seeds = seeds
        self.ring = ShuffleRing(pair, capacity)
        self.store: RowStore | ColumnStore | IndexStore | None = None
        self.next = 0
        """Number of the next pull."""
        self.reads = Reads()
        self.given = Given()
        """Numbers of the elements given since the snapshot."""
        self.origin: Origin | None = None
        self.pace = Tally(1)
        self.portion = FIRST_PORTION

    def elements(self, start: Any) -> AsyncIterator[Block[Any]]:
        """Give the elements from the epoch's start, or from a saved position, whose input is opened at once.

        Then the seeds in the input stand where they stood, before anything else in the pipeline draws from them.
        """
        return self._elements(start, None if start is None else self.source.open(start["source"]))

    async def _elements(self, start: Any, opened: AsyncIterator[Block[Any]] | None) -> AsyncIterator[Block[Any]]:
        blocks = self.source.open() if opened is None else opened
        if start is not None:
            self.next, self.reads.promised = start["first"], start["read"]
            rest = await self._restore(blocks, start)
            if rest is not None:
                async with aclosing(self._through(rest)) as given:
                    async for out in given:
                        yield out
        async for block in blocks:
            async with aclosing(self._through(block)) as given:
                async for out in given:
                    yield out
        self.reads.check(self.next)
        while len(self.ring):
            self._snapshot_if_due()
            yield self._give(self.ring.drain(min(len(self.ring), self._next_portion())))
            await self.run.breathe()

    def _next_portion(self) -> int:
        portion, self.portion = self.portion, min(2 * self.portion, PORTION)
        row_bytes = 0 if self.store is None or isinstance(self.store, RowStore) else self.store.row_bytes
        return max(1, min(portion, PORTION, PORTION_BYTES // max(1, row_bytes)))

    def _origin(self) -> Origin:
        assert self.origin is not None
        return self.origin

    def _snapshot_if_due(self) -> None:
        if self.origin is not None and len(self.given) < max(SNAPSHOT_LEAST, self.capacity or 0):
            return
        ids, words = self.ring.snapshot()
        numbers = ids if self.store is None else self.store.numbers(ids)
        oldest = int(numbers.min()) if len(numbers) else self.next
        self.reads = self.reads.since(oldest)
        self.given = Given()
        columns = not isinstance(self.store, RowStore)
        saved = partial(_position, self.pair, self.seeds, numbers, words, self.next, self.reads, columns)
        self.origin = Origin(saved, partial(_place, self.given, self.reads))

    async def _restore(self, blocks: AsyncIterator[Block[Any]], start: Any) -> Block[Any] | None:
        """Read the input from the oldest element of a snapshot until its window is complete; give what is behind."""
        numbers = [start["first"] + distance for distance in start["window"]]
        skipped = Skipped(start["next"] - start["first"])
        found = Found(numbers)
        rest: Block[Any] | None = None
        while skipped.missing and (block := await anext(blocks, None)) is not None:
            self.reads.note(self.next, block)
            while skipped.missing and (chunk := block.chunk(min(skipped.missing, 256))) is not None:
                skipped.note(chunk.length or 0, found.add(chunk, self.next))
                self.next += chunk.length or 0
                await self.run.breathe()
            rest = block
        skipped.check()
        self._go_on(*found.store(start.get("columns", False)), start["words"])
        return None if rest is None else rest.remainder()

    async def _through(self, block: Block[Any]) -> AsyncGenerator[Block[Any], None]:
        """Take a block into the window, and give what comes out meanwhile."""
        body = block.columns
        computed = body is not None
        if not computed or not self._takes_columns(block):
            self._spill()
            body = block.rows()
            # A list's iterator gives what has been computed, and no errors.
            computed = block.length is not None and (computed or type(body) is _ListIterator)
        self.reads.note(self.next, block)
        self._snapshot_if_due()
        if computed:
            for given in self._in_bulk(body, block.length or 0):
                yield given
                await self.run.breathe()
            return
        rows: Iterator[Any] = body
        async with aclosing(self._fill(rows)) as failures:
            async for failed in failures:
                yield failed
        if self.ring.full:
            yield Block(self._origin(), len(self.given), rows=resumable(partial(self._exchanged, rows)))

    async def _fill(self, rows: Iterator[Any]) -> AsyncGenerator[Block[Any], None]:
        """Fill the window, letting the loop breathe; give the errors that come up, each as a block."""
        assert isinstance(self.store, RowStore)
        more = True
        while more and not self.ring.full:
            into: list[Any] = []
            missing = PORTION if self.capacity is None else min(PORTION, self.capacity - len(self.ring))
            failure: Exception | None = None
            try:
                more = await self.run.gather(into, rows, missing, self.pace)
            except Exception as error:
                failure = error
            for element in into:
                self.store.elements[self.next] = element
                self.ring.push(self.next)
                self.next += 1
            self.reads.read = self.next
            if failure is not None:
                offset = len(self.given)
                self.given.singly().append(self.next)
                self.next += 1
                yield Block.failed(failure, self._origin(), offset)

    def _exchanged(self, rows: Iterator[Any]) -> Iterator[Any]:
        """Give an element for each one that is read; the window is full at the start and whenever one is given."""
        assert isinstance(self.store, RowStore)
        elements, ring, given, reads = self.store.elements, self.ring, self.given.singly(), self.reads
        push, pop = ring.push, ring.pop
        number = self.next
        try:
            if not ring.full:  # after an error
                for element in rows:
                    elements[number] = element
                    push(number)
                    number += 1
                    break
                else:
                    return
            reads.read = number
            out = pop()
            given.append(out)
            yield elements.pop(out)
            for element in rows:
                elements[number] = element
                push(number)
                number += 1
                reads.read = number
                out = pop()
                given.append(out)
                yield elements.pop(out)
        except Exception:
            given.append(number)
            number += 1
            raise
        finally:
            self.next = number

    def _takes_columns(self, block: Block[Any]) -> bool:
        store = self.store
        if store is None:
            most = 0 if self.capacity is None else self.capacity + PORTION
            columns = ColumnStore(block.columns, most) if block.within is None else None
            store = self.store = columns or IndexStore(block, self.next)
        if isinstance(store, IndexStore) and not store.fits(block, self.next):
            ids, words = self.ring.snapshot()
            store, slots = ColumnStore.of(store.take(ids), store.numbers(ids))
            self._go_on(store, slots, words)
        return not isinstance(store, RowStore) and store.fits(block, self.next)

    def _go_on(self, store: RowStore | ColumnStore | None, ids: Any, words: int) -> None:
        """Go on with the elements of the window in another store, where they have other ids."""
        self.store = store
        self.ring = ShuffleRing(self.pair, self.capacity, window=ids, words=words)

    def _in_bulk(self, body: Any, length: int) -> Iterator[Block[Any]]:
        """Take columns, or an iterator over so many computed rows, into the window, and give what comes out.

        The window is not full at the start: for the element that filled it, one has come out.
        """
        store, ring = self.store, self.ring
        assert store is not None
        taken = 0
        room = length if self.capacity is None else self.capacity - 1 - len(ring)
        if room > 0:
            taken = min(room, length)
            ring.extend(store.add(body, 0, taken, self.next))
            self.next += taken
            self.reads.read = self.next
        while taken < length:
            self._snapshot_if_due()
            stop = min(length, taken + self._next_portion())
            ids = store.add(body, taken, stop, self.next)
            self.next += stop - taken
            self.reads.read = self.next
            taken = stop
            yield self._give(ring.advance(ids))

    def _give(self, ids: Any) -> Block[Any]:
        """Give elements that came out of the ring."""
        store, origin, offset = self.store, self._origin(), len(self.given)
        assert store is not None
        self.given.extend(store.numbers(ids))
        if not isinstance(store, RowStore):
            return Block(origin, offset, columns=store.take(ids), length=len(ids))
        return Block(origin, offset, computed=store.take(ids), clean=True)

    def _spill(self) -> None:
        """Go on with rows: the input has elements that do not fit the columns so far."""
        if isinstance(self.store, (ColumnStore, IndexStore)):
            slots, words = self.ring.snapshot()
            numbers = self.store.numbers(slots)
            store = RowStore(dict(zip(numbers.tolist(), self.store.rows(slots), strict=True)))
            self._go_on(store, numbers, words)
        elif self.store is None:
            self.store = RowStore({})


def _position(
    pair: Any, seeds: Any, numbers: Any, words: int, following: int, reads: Reads, columns: bool
) -> dict[str, Any]:
    begin = reads.first(following)
    last = reads.read - 1
    return {
        "pair": list(pair),
        "seeds": seeds,
        "window": (numbers - begin).tolist(),
        "words": words,
        "columns": columns,
        "first": begin,
        "next": following,
        "source": reads.here(),
        "read": None if last < begin else [last, reads.place(last)],
    }


def _place(given: Given, reads: Reads, offset: int) -> str | None:
    number = given.number(offset)
    return None if number is None else reads.place(number)
