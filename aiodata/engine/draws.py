"""What is drawn of the seed generators while elements are read, so that reading them again draws the same.

A dataset that is open in several places of a pipeline draws seed pairs for all of them, in the order in which they come
to need them. A saved position may lie before elements that were read already, with draws among them: those are a part
of the cursor. Reading on from there makes them again, and everybody else draws what comes after them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aiodata.engine.plan import load_seeds, seed_owners

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.run import Run

__all__ = ["Draws", "as_then", "draw"]


class _Draw:
    """A draw, and the one after it: those since an element are what hangs together from there.

    Args:
        nth: Which one of the run's it is.
        owner: The place of the seed generator in the pipeline; for one that a function made, what names its stream.
        number: The number of the pair that was drawn.
    """

    __slots__ = ("next", "nth", "number", "owner")

    def __init__(self, nth: int, owner: Any, number: int) -> None:
        self.nth = nth
        self.owner = owner
        self.number = number
        self.next: _Draw | None = None

    def since(self) -> list[Any]:
        """Give the draws after this one as JSON: runs `[nth, owner, number, count, steps]` of equal steps."""
        runs: list[list[Any]] = []
        draw = self.next
        while draw is not None:
            last = runs[-1] if runs else None
            if last is not None and draw.owner == last[1]:
                done = last[3] - 1
                step = [draw.nth - last[0] - done * last[4][0], draw.number - last[2] - done * last[4][1]]
                if not done or step == last[4]:
                    last[3:] = [last[3] + 1, step]
                    draw = draw.next
                    continue
            runs.append([draw.nth, draw.owner, draw.number, 1, [0, 0]])
            draw = draw.next
        return runs


class Draws:
    """The account of what is drawn behind an input of a stage since it was opened.

    Args:
        run: The run.
        above: The account of where the stage itself was opened, which has these draws too.
    """

    def __init__(self, run: Run, above: Draws | None) -> None:
        self.last = _Draw(0, None, 0)
        """The last draw."""
        self.above = above
        self._run = run
        self._again: list[list[Any]] = []
        """What is to be drawn again: which one of the run's it was, whose, and its number."""

    def draw_again(self, plan: Plan, saved: list[Any]) -> None:
        """Have drawn again what `since` gave, when the input has been opened: opening drew what was drawn before.

        Its seed generators are set behind that, so that nobody else draws it.
        """
        self._again = [
            [nth + step * later, owner, number + step * higher]
            for nth, owner, number, count, (later, higher) in saved
            for step in range(count)
        ]
        for seeds in seed_owners(plan) if self._again else ():
            owner = _name(self._run, seeds)
            numbers = [draw[2] for draw in self._again if draw[1] == owner]
            if numbers:
                seeds.drawn = max(seeds.drawn, *numbers)

    def next_again(self, owner: Any) -> list[Any] | None:
        """Give the next draw of an owner that is to be made again, if there is one."""
        return next((draw for draw in self._again if draw[1] == owner), None)

    def made_again(self, nth: int) -> None:
        """Note that a draw has been made again."""
        self._again = [draw for draw in self._again if draw[0] != nth]

    def note(self, nth: int, owner: Any, number: int) -> None:
        """Note a draw."""
        self.last.next = self.last = _Draw(nth, owner, number)

    async def told(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        """Tell each block's origin what had been drawn when it was given."""
        async for block in blocks:
            if block.origin.drawn is None:
                block.origin.drawn = self.last
            yield block


def draw(run: Run, seeds: Any) -> tuple[tuple[int, int], list[int]]:
    """Draw a pair for the stage that is being opened; give it and the generator's state behind it.

    It is the next one, or where a part of an input is read again, the one that was drawn for it then.
    """
    accounts: list[Draws] = []
    account = run.opening
    while account is not None:
        accounts.append(account)
        account = account.above
    owner = _name(run, seeds)
    again = None
    if not run.as_then:
        again = next(filter(None, (each.next_again(owner) for each in accounts)), None)
    pair, saved = seeds.take(None if again is None else again[2])
    run.root.drawn += 1
    for each in accounts:
        if again is not None:
            each.made_again(again[0])
        each.note(run.root.drawn, owner, saved[2])
    return pair, saved


@contextmanager
def as_then(run: Run, plan: Plan, seeds: list[Any]) -> Iterator[None]:
    """Open a pipeline from its start with its seed generators as they were then: these draws are made once more."""
    load_seeds(plan, seeds)
    before, run.as_then = run.as_then, True
    try:
        yield
    finally:
        run.as_then = before


def _name(run: Run, seeds: Any) -> Any:
    """Give the place of a seed generator in the whole pipeline; of one that a function made, the pair of its stream."""
    place = next((place for place, owner in enumerate(seed_owners(run.root.plan)) if owner is seeds), None)
    return list(getattr(seeds, "seeds", ())) if place is None else place
