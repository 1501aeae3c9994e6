"""Datasets that a user's function makes from the elements of an input: what `interleave` and `flat_map` read."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Failure
from aiodata.engine.concurrent import Feed
from aiodata.engine.draws import as_then
from aiodata.engine.plan import plan_of, save_seeds, seed_owners
from aiodata.engine.position import locate
from aiodata.errors import StateError
from aiodata.functions import as_error, call
from aiodata.transforms._made import check_made, stages_of
from aiodata.transforms._reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor, Origin
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["Inputs", "Owners"]


class Owners:
    """The seed generators of a dataset that was opened; they are not kept alive by it.

    A dataset that the function has by a closure lives on when it has been read, and what it has drawn decides what it
    gives when it is opened again; so this is a part of the state. One that was made for one element goes with it.
    """

    __slots__ = ("outer", "references", "saved")

    def __init__(self, owners: list[Any]) -> None:
        self.references = [weakref.ref(owner) for owner in owners]
        self.outer: tuple[Origin, int]
        """Where the last element is from which the dataset was made."""
        self.saved: list[Any] | None = None
        """Their states when the dataset had last been read to its end; while it is read, its own position has them."""

    def alive(self) -> list[Any]:
        """Give the generators, or none if one of them is gone."""
        found = [reference() for reference in self.references]
        return [] if None in found else found


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
        self.failed = False
        """Whether the source has ended by an error of its own, which ends the run."""
        self.owners: list[Owners] = []
        self.reopened: list[tuple[Cursor, Plan]] = []
        """The datasets that were opened again from a saved state, with the cursors of their elements."""

    async def open_next(self) -> Reader | None:
        """Open the next dataset; None when there are no more elements.

        Raises:
            Exception: The element itself failed, or the function; the next call goes on behind it, unless `failed`.
        """
        self.failed = True
        chunk = await self.feed.chunk(1)
        self.failed = False
        await self.run.breathe()  # empty datasets, one after the other, would hold the loop
        if chunk is None:
            return None
        self.next = (chunk.origin, chunk.offset + 1)
        self.number += 1
        return self._open(chunk, self._made(chunk))

    def _open(self, chunk: Block[Any], plan: Plan, start: Cursor | None = None, seeds: Any = None) -> Reader:
        unread = seeds is not None and start is None
        with as_then(self.run, plan, seeds) if unread else nullcontext():
            seeds = save_seeds(plan) or None
            inner = self.source.open_inner(plan, start)
        outer = (chunk.origin, chunk.offset)
        reader = Reader(outer, inner, start, seeds, stages_of(plan))
        if seeds is not None:
            reader.owners = self._note(plan, outer)
        return reader

    def _note(self, plan: Plan, outer: tuple[Origin, int]) -> Owners:
        owners = seed_owners(plan)
        self.owners = [each for each in self.owners if each.alive()]
        known = next((each for each in self.owners if each.alive() == owners), None)
        if known is None:
            known = Owners(owners)
            self.owners.append(known)
        known.outer = outer
        return known

    def _made(self, chunk: Block[Any]) -> Plan:
        """Call the function on an element; give the plan of the dataset."""
        element = next(chunk.rows()) if chunk.computed is None else chunk.computed[0]
        if element.__class__ is Failure:
            raise element.exception
        try:
            dataset = call(self.function, element)
            plan = plan_of(dataset)
            if plan is None:
                raise TypeError(f"map_func must give a Dataset, not {type(dataset).__name__}")
        except Exception as error:
            failure = as_error(error)
            locate(failure, self.label, self.number - 1, chunk.origin, chunk.offset)
            try:
                raise failure
            finally:
                del failure  # else it and this frame, which its traceback holds, would be a cycle
        return plan

    async def reopen(self, saved: Any) -> Reader:
        """Open a dataset again that was open when a state was saved."""
        outer, inner, seeds, stages = saved
        chunk = await self._read_again(outer)
        plan = self._made(chunk)
        check_made(plan, stages, self.label)
        self.reopened.append((outer, plan))
        return self._open(chunk, plan, inner, seeds)

    def shared(self) -> list[tuple[tuple[Origin, int], list[Any]]]:
        """Give the states of all seed generators that have been used and may be used again, and where they belong."""
        return [(each.outer, each.saved) for each in self.owners if each.saved is not None and each.alive()]

    async def restore_shared(self, saved: Any) -> None:
        """Set seed generators to what `shared` gave, when all datasets that were open have been opened again."""
        for outer, states in saved:
            plan = next((plan for cursor, plan in self.reopened if cursor == outer), None)
            if plan is None:
                chunk = await self._read_again(outer)
                plan = self._made(chunk)
                self._note(plan, (chunk.origin, chunk.offset))
            owners = seed_owners(plan)
            next(each for each in self.owners if each.alive() == owners).saved = states
            for owner, state in zip(owners, states, strict=True):
                owner.restore(self.run.restored, state)
        self.reopened.clear()

    async def _read_again(self, outer: Cursor) -> Block[Any]:
        """Give an element that was read before, as a block."""
        with self.source.reading_again() as again:
            blocks = again.open(outer)
            chunk = await Feed(blocks).chunk(1)
            await self.run.release(blocks)
        if chunk is None:
            raise StateError(f"in {self.label}: an element that the saved state was reading is not there any more")
        return chunk

    async def release(self, reader: Reader) -> None:
        """Close a dataset that has been read."""
        if reader.owners is not None and (owners := reader.owners.alive()):
            reader.owners.saved = [owner.save() for owner in owners]
        await self.run.release(reader.inner)

    async def aclose(self) -> None:
        """End what was started for reading: nothing, here."""
