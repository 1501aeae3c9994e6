"""Elements that a restored run reads again and does not give."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from aiodata.engine.block import Failure
from aiodata.errors import StateError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from aiodata.engine.block import Block
    from aiodata.engine.run import Run

__all__ = ["Skipped", "behind"]


class Skipped:
    """Elements that a saved state has behind it, and that are read again to be skipped.

    That they fail is no matter: they may have failed then. But that there are fewer means that the input has changed,
    or cannot be read now; to go on as if it had ended would lose the rest in silence.

    Args:
        count: Number of elements to skip.
    """

    def __init__(self, count: int) -> None:
        self.count = self.missing = count
        self.failure: Failure | None = None
        """The last element that was skipped, if it failed."""

    def note(self, count: int, found: Sequence[Any] = ()) -> None:
        """Count elements and let go of them; where they were computed, there may be `Failure`s among them."""
        self.missing -= count
        if self.failure is not None:
            self.failure.drop()
            self.failure = None
        if Failure in map(type, found):
            if self.missing > 0 and found[-1].__class__ is Failure:
                self.failure = found[-1]
            for each in found:
                if each.__class__ is Failure and each is not self.failure:
                    each.drop()

    def check(self) -> None:
        """Make sure that there were enough; called at the input's end.

        Raises:
            Exception: What the last element failed with, if it did.
            StateError: There were fewer.
        """
        if self.missing > 0:
            if self.failure is not None:
                raise self.failure.exception
            raise StateError(
                f"the input ended after {self.count - self.missing} of the {self.count} elements that the saved state "
                "has behind it: it is not what it was"
            )


async def behind(run: Run, blocks: AsyncIterator[Block[Any]], skip: int) -> AsyncIterator[Block[Any]]:
    """Give the blocks without their first `skip` elements, those that failed included; close them at the end.

    Raises:
        Exception: There are fewer: what the last of them failed with, or a `StateError`.
    """
    skipped = Skipped(skip)
    async with aclosing(cast("AsyncGenerator[Block[Any], None]", blocks)):
        async for block in blocks:
            rest = block
            while skipped.missing:
                rest, dropped = rest.drop(min(skipped.missing, 256), skipped)
                await run.breathe()
                if not dropped:
                    break
            else:
                yield rest
    skipped.check()
