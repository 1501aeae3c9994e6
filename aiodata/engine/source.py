"""Inputs of a stage, which it opens when and as often as it needs them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aiodata.engine.draws import Draws
from aiodata.engine.plan import draws_seeds, load_seeds, needs_loop, save_seeds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run

__all__ = ["NeedsCallersLoop", "NeedsLoop", "Source"]


class NeedsLoop(BaseException):
    """A pipeline that is stepped by hand has come upon an inner dataset that needs an event loop."""


class NeedsCallersLoop(BaseException):
    """A look-ahead on a private loop has come upon an inner dataset with the user's own coroutines."""


class Source:
    """An input of a stage, which the stage opens when and as often as it needs it.

    Args:
        run: The run.
        plan: The pipeline that gives it.
        above: The account of what is drawn where the stage was opened that this is an input of.
    """

    __slots__ = ("above", "opened", "plan", "run")

    def __init__(self, run: Run, plan: Plan, above: Draws | None = None) -> None:
        self.run = run
        self.plan = plan
        self.above = above
        self.opened: dict[int, AsyncIterator[Block[Any]]] = {}
        """What has been opened through this input and not been released yet, by identity."""

    def open(self, start: Cursor | None = None) -> AsyncIterator[Block[Any]]:
        """Open the input from its start or at a cursor."""
        return self._open(self.plan, start)

    def open_inner(self, plan: Plan, start: Cursor | None = None) -> AsyncIterator[Block[Any]]:
        """Open a dataset that a user's function made from an element of this input.

        Raises:
            NeedsLoop, NeedsCallersLoop: This run cannot hold it; whoever began the run begins it anew elsewhere.
        """
        if self.run.stepped and needs_loop(plan):
            raise NeedsLoop
        if self.run.on_private_loop and any(stage.has_coroutines for stage in plan.walk()):
            raise NeedsCallersLoop
        return self._open(plan, start)

    @contextmanager
    def reading_again(self) -> Iterator[Source]:
        """Read an earlier part of the input once more, without a trace in its seed generators.

        What is opened meanwhile finds them as they were there, and afterwards they are again as they are here.

        Yields:
            The input, to be opened.
        """
        run, before = self.run, save_seeds(self.plan)
        restored, run.restored = run.restored, set()
        try:
            yield Source(run, self.plan)
        finally:
            run.restored = restored
            load_seeds(self.plan, before)

    def _open(self, plan: Plan, start: Cursor | None) -> AsyncIterator[Block[Any]]:
        blocks = self._open_told(plan, start) if draws_seeds(plan) else self.run.open(plan, start, self.above)
        self.run.opened_by(self, blocks)
        return blocks

    def _open_told(self, plan: Plan, start: Cursor | None) -> AsyncIterator[Block[Any]]:
        draws = Draws(self.run, self.above, start[2] if start is not None and len(start) > 2 else [])
        blocks = self.run.open(plan, start, draws)
        draws.settle(plan)
        opener = Source(self.run, plan)  # so that the stage is closed before what it reads
        self.run.opened_by(opener, blocks)
        return self.run.own(draws.told(blocks), [opener])
