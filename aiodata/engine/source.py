"""Inputs of a stage, which it opens when and as often as it needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.engine.plan import needs_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
    """An input of a stage, which the stage opens when and as often as it needs it."""

    __slots__ = ("opened", "plan", "run")

    def __init__(self, run: Run, plan: Plan) -> None:
        self.run = run
        self.plan = plan
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

    def _open(self, plan: Plan, start: Cursor | None) -> AsyncIterator[Block[Any]]:
        blocks = self.run.open(plan, start)
        self.run.opened_by(self, blocks)
        return blocks
