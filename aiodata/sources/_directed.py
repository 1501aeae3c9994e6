"""Elements of several open inputs, each from the input that a selector chooses."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, resumable
from aiodata.engine.draws import as_then, restore_seeds
from aiodata.engine.plan import save_seeds, seed_owners
from aiodata.engine.position import Origin, cursor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import numpy as np
    import numpy.typing as npt

    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.sources._row_choices import RowChoices
    from aiodata.sources._selection import FixedChoices

__all__ = ["Directed", "Input"]

NO_INPUT = -1
"""Stands in a block's log for an error of the selector itself."""


class Input:
    """One of the inputs, opened at once, and how far it has been read.

    Its *mark* says from where it can be opened again. It is frozen, does not hold elements, and is one of: origin and
    offset of the next element; `{"at": cursor}` after a restore; `{"unread": seeds}` before the first block, with the
    state that the input's seed generators had when it was opened; `{"ended": seeds}`, with the state at its end.

    Args:
        run: The run.
        source: The input.
        saved: The mark, as JSON; None to open it from the start.
    """

    __slots__ = ("blocks", "ended", "offset", "origin", "plan", "rows", "saved")

    def __init__(self, run: Run, source: Source, saved: dict[str, Any] | None) -> None:
        self.plan = source.plan
        self.saved = {"unread": save_seeds(source.plan)} if saved is None else saved
        self.origin: Origin | None = None
        self.offset = 0
        self.rows: Iterator[Any] | None = None
        self.ended = False
        self.blocks: AsyncIterator[Block[Any]] | None = None
        if saved is None:
            self.blocks = source.open()
        elif "at" in saved:
            self.blocks = source.open(saved["at"])
        elif "unread" in saved:
            self.blocks = _open_as_then(run, source, saved["unread"])
        else:
            self.ended = True
            for owner, state in zip(seed_owners(source.plan), saved["ended"], strict=True):
                restore_seeds(run, owner, state)

    async def advance(self) -> bool:
        """Take the next block in hand; tell whether there is one."""
        block = None if self.blocks is None else await anext(self.blocks, None)
        if block is None:
            self.ended = True
            self.blocks = self.origin = None
            self.saved = {"ended": save_seeds(self.plan)}
            return False
        self.origin, self.offset = block.origin, block.offset
        self.rows = block.rows()
        return True

    def here(self) -> Any:
        """Give the mark."""
        return self.saved if self.origin is None else (self.origin, self.offset)


def _open_as_then(run: Run, source: Source, saved: list[Any]) -> AsyncIterator[Block[Any]]:
    """Open an input from its start with the seed generators as they were then, so that it draws the same pairs."""
    owners = seed_owners(source.plan)
    ahead = [owner.save() if id(owner) in run.restored else None for owner in owners]
    with as_then(run, source.plan, saved):
        blocks = source.open()
    for owner, state in zip(owners, ahead, strict=True):
        run.restored.add(id(owner))
        if state is not None:
            owner.restore(run.restored, state)
    return blocks


class Directed:
    """Reads from the input that each selection chooses.

    Args:
        run: The run.
        inputs: The inputs.
        live: Which of them have not ended; kept up here.
        choices: The selector.
        head: What a position begins with: the selector's seeds.
        stop: End as soon as a chosen input turns out to have ended.
    """

    def __init__(
        self,
        run: Run,
        inputs: list[Input],
        live: npt.NDArray[np.bool_],
        choices: FixedChoices | RowChoices,
        head: dict[str, Any],
        stop: bool,
    ) -> None:
        self.run = run
        self.inputs = inputs
        self.live = live
        self.choices = choices
        self.head = head
        self.stop = stop
        self.left = sum(live.tolist())
        """How many have not ended."""
        self.at = 0
        """Number of the pick that comes next."""
        self.marks = [each.here() for each in inputs]

    async def elements(self) -> AsyncIterator[Block[Any]]:
        """Give the chosen elements; a block ends where an input has to be waited for."""
        choices = self.choices
        while self.left:
            if choices.fixed and self.left == 1:
                async for block in self._last(int(self.live.argmax())):
                    yield block
                return
            if self.at >= len(choices.picks):
                await self.run.breathe()
                choices.load(self.live)
                self.at = 0
                rows = choices.rows
                if rows is None:
                    continue
                if rows.rows is None and not await rows.advance():
                    return
            elif not await self._ready(choices.picks[self.at]):
                if self.stop:
                    return
                continue
            log = array("l")
            yield Block(self._origin(log), rows=resumable(partial(self._pull, log)))
            for chosen in set(log) - {NO_INPUT}:
                self.marks[chosen] = self.inputs[chosen].here()

    async def _ready(self, chosen: int) -> bool:
        """Take a block of an input in hand, unless there is one; tell whether it has not ended."""
        each = self.inputs[chosen]
        if each.rows is not None:
            return True
        more = await each.advance()
        self.marks[chosen] = each.here()
        if not more:
            self.live[chosen] = False
            self.left -= 1
            self.at = self.choices.drop(chosen, self.at)
        return more

    def _pull(self, log: array[int]) -> Iterator[Any]:
        """Give elements as the selections say, until an input needs its next block."""
        choices, inputs, end = self.choices, self.inputs, self
        picks, at = choices.picks, self.at
        chosen = NO_INPUT
        try:
            while at < len(picks) or choices.more():
                chosen = picks[at]
                each = inputs[chosen]
                if each.rows is None:
                    return
                element = next(each.rows, end)
                if element is end:
                    each.rows = None
                    return
                each.offset += 1
                at += 1
                log.append(chosen)
                chosen = NO_INPUT
                yield element
        except Exception:
            log.append(chosen)
            if chosen != NO_INPUT:
                inputs[chosen].offset += 1
                at += 1
            raise
        finally:
            self.at = at

    async def _last(self, chosen: int) -> AsyncIterator[Block[Any]]:
        """Give the blocks of the only input that is left; further selections would not change anything."""
        each = self.inputs[chosen]
        assert each.blocks is not None
        if each.rows is not None:
            log = array("l")
            yield Block(self._origin(log), rows=resumable(partial(self._pull_last, each, chosen, log)))
        async for block in each.blocks:
            self.marks[chosen] = (block.origin, block.offset)
            yield block.moved(block.origin.within(self._origin(array("l")).position, block.offset))

    def _pull_last(self, each: Input, chosen: int, log: array[int]) -> Iterator[Any]:
        rows: Iterator[Any] = iter(()) if each.rows is None else each.rows
        try:
            for element in rows:
                log.append(chosen)
                yield element
        except Exception:
            log.append(chosen)
            raise

    def _origin(self, log: array[int]) -> Origin:
        """Give the origin of what comes next; `log` gets the number of the input that each element is from."""
        marks = tuple(self.marks)
        saved = partial(_position, self.head, self.choices.mark(self.at), marks)
        return Origin(saved, partial(_place, log, marks))


def _saved(mark: Any) -> Any:
    return {"at": cursor(*mark)} if isinstance(mark, tuple) else mark


def _position(head: dict[str, Any], choices: dict[str, Any], marks: tuple[Any, ...]) -> dict[str, Any]:
    selections = {name: _saved(mark) for name, mark in choices.items()}
    return {**head, **selections, "inputs": [_saved(mark) for mark in marks]}


def _place(log: array[int], marks: tuple[Any, ...], offset: int) -> str | None:
    if offset >= len(log) or log[offset] == NO_INPUT or not isinstance(marks[log[offset]], tuple):
        return None
    origin, first = marks[log[offset]]
    place: str | None = origin.place(first + log[:offset].count(log[offset]))
    return place
