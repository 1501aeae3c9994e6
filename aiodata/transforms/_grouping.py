"""Groups of elements with the same key, each reduced by a dataset that a user's function makes of it."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from aiodata.engine.block import Block, Failure, Tally, pull
from aiodata.engine.plan import plan_of, save_seeds, seed_owners
from aiodata.engine.position import Origin, locate
from aiodata.engine.skipped import Skipped
from aiodata.errors import StateError
from aiodata.functions import as_error
from aiodata.transforms._groups import Group, Mark, position
from aiodata.transforms._held import frozen, held
from aiodata.transforms._keys import as_key, integer, keyed
from aiodata.transforms._made import check_made, stages_checksum, stages_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["grouping"]

SECONDS_AT_A_TIME = 0.002


def grouping(run: Run, source: Source, *, start: Any, **arguments: Any) -> AsyncIterator[Block[Any]]:
    """Open a stage that reduces groups; `arguments` are those of `Grouping`."""
    return Grouping(run, source, source.open(start and start["at"]), **arguments).elements(start)


class Grouping:
    """The groups that are not full, and the dataset that is being read.

    A position does not hold elements. To restore it, the input is read again from the first element in any group at
    the position's mark. Of each key the last elements before the mark are kept, as many as the mark says. From there on
    groups are filled as they were; those that became full have been given, and are dropped.

    Args:
        run: The run.
        source: The input.
        blocks: The input, opened.
        parent: The input, of whose class the groups are made.
        key_func: Gives the key of an element.
        reduce_func: Gives a dataset for a key and a group.
        size_func: Gives the size of the group that begins, for its key.
        label: The stage's label, for errors.
    """

    def __init__(
        self,
        run: Run,
        source: Source,
        blocks: AsyncIterator[Block[Any]],
        parent: Dataset[Any],
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        size_func: Callable[[Any], Any],
        label: str,
    ) -> None:
        self.run = run
        self.source = source
        self.blocks = blocks
        self.parent = parent
        self.key_func = key_func
        self.reduce_func = reduce_func
        self.size_func = size_func
        self.label = label
        run.inline.append(label)
        self.groups: dict[int, Group] = {}
        self.left: list[int] | None = None
        """At the input's end: keys of the groups that are left, the next one last."""
        self.read = Tally()
        """How many elements have been read."""
        self.pairs: Iterator[tuple[int, Any]] | None = None
        self.origin: Any = None
        self.ahead = 0
        """Offset in `origin` of an element, less its number."""
        self.mark: Any = None
        self.current: tuple[AsyncIterator[Block[Any]], partial[Any]] | None = None
        """The dataset that a group is reduced to, while it is read, and what gives the position in it."""
        self.resumed: tuple[int, Any] | None = None
        """The key that a restored state was at among those that are left, and where in the dataset."""

    async def elements(self, start: Any) -> AsyncIterator[Block[Any]]:
        """Give the reduced elements from the start or from a saved position."""
        if start is not None:
            await self._restore(start)
        while True:
            if self.current is not None:
                inner, place = self.current
                block = await anext(inner, None)
                if block is not None:
                    yield block.moved(block.origin.within(partial(place, block.here()), block.offset))
                else:
                    self.current = None
                    await self.run.release(inner)
            elif self.left is None and not await self._has_more():
                self.left = self._rest()
            elif self.left is not None and not self.left:
                return
            else:
                failed = self._advance()
                if failed is not None:
                    yield failed
                await self.run.breathe()

    def _advance(self) -> Block[Any] | None:
        """Read on until a group is full, or take one that is left, and open its dataset; give what failed in it."""
        key = self.left.pop() if self.left else None
        try:
            group = self._fill() if key is None else self.groups.pop(key)
            if group is not None:
                inner = self.resumed[1] if self.resumed is not None and self.resumed[0] == key else None
                self.resumed = None
                self._open(group, key, inner)
        except StateError:
            raise
        except Exception as error:
            before = self.read.count - (key is None)
            return Block.failed(error, Origin(partial(position, self.mark, before - self.mark.number, key)))
        return None

    # The input

    async def _has_more(self) -> bool:
        """Take the next block in hand, unless there is one."""
        if self.pairs is not None:
            return True
        block = await anext(self.blocks, None)
        if block is None:
            return False
        self.origin, self.ahead = block.origin, block.offset - self.read.count
        if self.mark is None:
            self._set_mark()
        self.pairs = keyed(block, self.key_func, self.label, self.read)
        return True

    def _fill(self) -> Group | None:
        """Read elements into groups until one is full; None when the block has ended, or it has taken a while."""
        assert self.pairs is not None
        if self.read.count - self.mark.number >= len(self.groups):  # a mark costs a look at each group
            self._set_mark()
        deadline = monotonic() + SECONDS_AT_A_TIME
        for key, element in self.pairs:
            full = self._add(key, element, self.read.count - 1)
            if full is not None or monotonic() > deadline:
                return full
        self.pairs = None
        return None

    def _add(self, key: int, element: Any, number: int) -> Group | None:
        """Put an element into its group; give the group if it is full now."""
        group = self.groups.get(key)
        if group is None:
            group = Group(key, self._size(key, number), number, self.origin, self.ahead + number)
            self.groups[key] = group
        group.elements.append(element)
        return self.groups.pop(key) if len(group.elements) == group.size else None

    def _size(self, key: int, number: int) -> int:
        try:
            size = integer(self.size_func(as_key(key)), "window_size_func")
            if size < 1:
                raise ValueError(f"window_size_func must give at least 1, not {size} for key {key}")
        except Exception as error:
            self._fail(error, number, self.origin, self.ahead + number)
        return size

    def _fail(self, error: Exception, number: int, origin: Origin, offset: int) -> NoReturn:
        failure = as_error(error)
        locate(failure, self.label, number, origin, offset)
        try:
            raise failure
        finally:
            del failure, error  # else it and this frame, which its traceback holds, would be a cycle

    # The datasets

    def _rest(self) -> list[int]:
        """List the keys of the groups at the input's end, the smallest last."""
        if self.resumed is None:
            return sorted(self.groups, reverse=True)
        if self.resumed[0] not in self.groups:
            raise StateError(f"in {self.label}: the saved state was at key {self.resumed[0]}, which is not there now")
        return sorted((key for key in self.groups if key >= self.resumed[0]), reverse=True)

    def _open(self, group: Group, key: int | None, inner: Any) -> None:
        """Open the dataset that a group is reduced to.

        Args:
            group: The group.
            key: Its key, if the input has ended.
            inner: Where to open it, the state of its seed generators, what tells it from others; None for the start.
        """
        count = len(group.elements)
        elements = held(self.parent, "group", frozen(group.elements), count, self.source.plan.element_spec)
        try:
            dataset = self.reduce_func(as_key(group.key), elements)
            plan = plan_of(dataset)
            if plan is None:
                raise TypeError(f"reduce_func must give a Dataset, not {type(dataset).__name__}")
        except Exception as error:
            self._fail(error, group.number, group.origin, group.offset)
        start, seeds, made = inner or (None, save_seeds(plan), stages_checksum(stages_of(plan)))
        if inner is not None:
            check_made(plan, made, self.label)
            owners = seed_owners(plan)
            for owner, state in zip(owners, seeds, strict=True):
                owner.restore(self.run.restored, state)
        place = partial(position, self.mark, self.read.count - self.mark.number, key, [seeds, made])
        self.current = self.source.open_inner(plan, start), place

    # Positions

    def _set_mark(self) -> None:
        number = self.read.count
        self.mark = Mark(number, self.groups.values(), self.origin, self.ahead + number)

    async def _restore(self, start: Any) -> None:
        recent = {key: deque[Any](maxlen=count) for key, count, _ in start["held"]}

        def keep(key: int, element: Any, number: int) -> None:
            if key in recent:
                recent[key].append((element, number, self.origin, self.ahead + number))

        await self._read_again(start["seen"], keep)
        for key, count, size in start["held"]:
            if len(recent[key]) < count:
                raise StateError(
                    f"in {self.label}: the saved state held {count} elements with key {key}, now there are fewer"
                )
            group = self.groups[key] = Group(key, size, *recent[key][0][1:])
            group.elements = [element for element, *_ in recent[key]]
        if self.groups:
            self._set_mark()
        full = await self._read_again(start["pulls"], self._add)
        if start["ended"] is not None:
            self.resumed = start["ended"], start["inner"]
        elif start["inner"] is not None:
            if full is None:
                raise StateError(f"in {self.label}: the group that the saved state was reading is not full now")
            self._open(full, None, start["inner"])

    async def _read_again(self, count: int, take: Callable[[int, Any, int], Any]) -> Any:
        """Read elements that a saved state has behind it; give what `take` gave for the last one."""
        skipped = Skipped(count)
        taken: Any = None
        while skipped.missing and await self._has_more():
            assert self.pairs is not None
            first = self.read.count
            found = pull(self.pairs, min(skipped.missing, 256))
            if not found:
                self.pairs = None
                continue
            for number, pair in enumerate(found, first):
                taken = None
                if pair.__class__ is not Failure:
                    key, element = pair
                    with suppress(Exception):  # it failed then, too
                        taken = take(key, element, number)
            skipped.note(len(found), found)
            await self.run.breathe()
        skipped.check()
        return taken
