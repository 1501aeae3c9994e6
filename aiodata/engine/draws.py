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

__all__ = ["Draws", "as_then", "draw", "restore_seeds"]


class _Draw:
    """A draw, and the one after it: those since an element are what hangs together from there.

    Args:
        nth: Which one of the run's it is.
        owner: The place of the seed generator in the pipeline; for one that a function made, what names its stream.
        number: The number of the pair that was drawn; those of one generator only grow.
    """

    __slots__ = ("next", "nth", "number", "opening", "owner")

    def __init__(self, nth: int, owner: Any, number: int) -> None:
        self.nth = nth
        self.owner = owner
        self.number = number
        self.next: _Draw | None = None
        self.opening: list[_Draw] = []
        """If it is the last one before an input's first element: all that were made for that."""

    def since(self) -> list[Any]:
        """Give the draws after this one as JSON: runs `[nth, owner, number, count, steps]` of equal steps.

        Behind an opening these are those of the opening too: a position that is the input's start makes them again.
        """
        runs: list[list[Any]] = []
        for draw in self.opening:
            _append(runs, draw)
        later = self.next
        while later is not None:
            _append(runs, later)
            later = later.next
        return runs


def _append(runs: list[list[Any]], draw: _Draw) -> None:
    last = runs[-1] if runs else None
    if last is not None and draw.owner == last[1]:
        done = last[3] - 1
        steps = [draw.nth - last[0] - done * last[4][0], draw.number - last[2] - done * last[4][1]]
        if not done or steps == last[4]:
            last[3:] = [last[3] + 1, steps]
            return
    runs.append([draw.nth, draw.owner, draw.number, 1, [0, 0]])


class Draws:
    """The account of what is drawn behind an input of a stage since it was opened.

    Args:
        run: The run.
        above: The account of where the stage itself was opened, which has these draws too.
        again: What `since` gave, to be drawn again.
    """

    def __init__(self, run: Run, above: Draws | None, again: list[Any]) -> None:
        self.above = above
        self._run = run
        self._last = _Draw(0, None, 0)
        self._opening: list[_Draw] | None = []
        """What has been drawn, as long as no element has been given."""
        self._known: dict[str, int] = {}
        """The number of each generator's last pair, whether drawn here or saved in a position."""
        self._again = [
            (nth + step * later, owner, number + step * higher)
            for nth, owner, number, count, (later, higher) in again
            for step in range(count)
        ]
        """What is to be drawn again: which one of the run's it was, whose, and its number."""

    def settle(self, plan: Plan) -> None:
        """Set a pipeline's seed generators behind what is drawn again, so that nobody else draws it."""
        for seeds in seed_owners(plan) if self._again else ():
            owner = _name(self._run, seeds)
            numbers = [draw[2] for draw in self._again if draw[1] == owner]
            if numbers:
                seeds.drawn = max(seeds.drawn, *numbers)

    def next_again(self, owner: Any) -> tuple[int, Any, int] | None:
        """Give the next draw of an owner that is to be made again, if there is one."""
        known = self._known.get(str(owner), 0)
        return next((draw for draw in self._again if draw[1] == owner and draw[2] > known), None)

    def know(self, owner: Any, number: int) -> None:
        """Note the number of a pair that a generator has drawn."""
        self._known[str(owner)] = max(number, self._known.get(str(owner), 0))

    def note(self, nth: int, owner: Any, number: int, again: int | None) -> None:
        """Note a draw, and which one it was when it is made again."""
        self._again = [draw for draw in self._again if draw[0] != again]
        self.know(owner, number)
        draw = _Draw(nth, owner, number)
        self._last.next = self._last = draw
        if self._opening is not None:
            self._opening.append(draw)

    async def told(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        """Tell each block's origin what had been drawn when it was given."""
        async for block in blocks:
            if self._opening is not None:
                self._last.opening, self._opening = self._opening, None
            if block.origin.drawn is None:
                block.origin.drawn = self._last
            yield block


def draw(run: Run, seeds: Any) -> tuple[tuple[int, int], list[int]]:
    """Draw a pair for the stage that is being opened; give it and the generator's state behind it.

    It is the next one, or where a part of an input is read again, the one that was drawn for it then.
    """
    owner = _name(run, seeds)
    accounts = list(_accounts(run))
    again = None
    if not run.as_then:
        again = next(filter(None, (account.next_again(owner) for account in accounts)), None)
    pair, saved = seeds.take(None if again is None else again[2])
    run.root.drawn += 1
    for account in accounts:
        account.note(run.root.drawn, owner, saved[2], again and again[0])
    return pair, saved


def restore_seeds(run: Run, seeds: Any, saved: Any) -> None:
    """Set a seed generator to a state in the position at which a stage is opened: it has drawn so much by then."""
    seeds.restore(run.restored, saved)
    if hasattr(seeds, "drawn"):  # what else stands among the generators does not draw
        for account in _accounts(run):
            account.know(_name(run, seeds), saved[2])


@contextmanager
def as_then(run: Run, plan: Plan, seeds: list[Any]) -> Iterator[None]:
    """Open a pipeline from its start with its seed generators as they were then: these draws are made once more."""
    load_seeds(plan, seeds)
    before, run.as_then = run.as_then, True
    try:
        yield
    finally:
        run.as_then = before


def _accounts(run: Run) -> Iterator[Draws]:
    """Give the accounts of where a stage is being opened, the nearest one first."""
    account = run.opening
    while account is not None:
        yield account
        account = account.above


def _name(run: Run, seeds: Any) -> Any:
    """Give the place of a seed generator in the whole pipeline; of one that a function made, the pair of its stream."""
    place = next((place for place, owner in enumerate(seed_owners(run.root.plan)) if owner is seeds), None)
    return list(getattr(seeds, "seeds", ())) if place is None else place
