"""Groups of elements with the same key, each reduced when it is full."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from aiodata.engine.block import Block, Failure, pull
from aiodata.engine.position import Origin, locate
from aiodata.engine.skipped import Skipped
from aiodata.errors import StateError
from aiodata.functions import as_error, call
from aiodata.transforms._groups import Group, Mark, position
from aiodata.transforms._keys import as_key, integer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["Grouping"]

SECONDS_AT_A_TIME = 0.002
ELEMENTS_AT_A_TIME = 64


class Grouping(ABC):
    """The groups that are not full, and what is being given of one that was.

    A position does not hold elements. To restore it, the input is read again from the first element in any group at
    the position's mark. Of each key the last elements before the mark are kept, as many as the mark says. From there on
    groups are filled as they were; those that became full have been given, and are dropped.

    Args:
        run: The run.
        source: The input.
        start: The position to open it at, None for the start.
        key_func: The user's function of an element, called as `map` calls its function; gives an integer.
        size_func: Gives the size of the group that begins, for its key.
        label: The stage's label, for errors.
    """

    key_argument = "key_func"
    """What the user calls `key_func`."""

    def __init__(
        self,
        run: Run,
        source: Source,
        start: Any,
        key_func: Callable[..., Any],
        size_func: Callable[[Any], Any],
        label: str,
    ) -> None:
        self.run = run
        self.source = source
        self.blocks = source.open(start and start["at"])
        self.key_func = key_func
        self.key_of: Callable[[int], int] | None = None
        """Gives the key for what `key_func` gave, if that is not the key."""
        self.size_func = size_func
        self.label = label
        run.inline.append(label)
        self.groups: dict[int, Group] = {}
        self.left: list[int] | None = None
        """At the input's end: keys of the groups that are left, the next one last."""
        self.read = 0
        """How many elements have been read."""
        self.rows: Iterator[Any] | None = None
        self.origin: Any = None
        self.ahead = 0
        """Offset in `origin` of an element, less its number."""
        self.mark: Any = None
        self.current: tuple[AsyncIterator[Block[Any]], partial[Any]] | None = None
        """The dataset that a group is reduced to, while it is read, and what gives the position in it."""
        self.resumed: tuple[int, Any] | None = None
        """The key that a restored state was at among those that are left, and where in what it was reduced to."""

    @abstractmethod
    def reduce(self, group: Group, key: int | None, inner: Any) -> Block[Any] | None:
        """Give what a group is reduced to, or set `current` to it.

        Args:
            group: The group.
            key: Its key, if the input has ended.
            inner: Where to open `current`, as its positions say; None for the start.
        """

    async def elements(self, start: Any) -> AsyncIterator[Block[Any]]:
        """Give the reduced elements from the start or from a saved position."""
        if start is not None and (block := await self._restore(start)) is not None:
            yield block
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
                block = self.advance()
                if block is not None:
                    yield block
                await self.run.breathe()

    def advance(self) -> Block[Any] | None:
        """Read on until a group is full, or take one that is left, and reduce it; give what failed in it."""
        self.move_mark()
        key = self.left.pop() if self.left else None
        try:
            group = self.fill() if key is None else self.groups.pop(key)
            if group is not None:
                inner = self.resumed[1] if self.resumed is not None and self.resumed[0] == key else None
                self.resumed = None
                return self.reduce(group, key, inner)
        except StateError:
            raise
        except Exception as error:
            return Block.failed(error, self.at(self.read - (key is None), key))
        return None

    def at(self, read: int, key: int | None = None) -> Origin:
        """Give an origin: so many elements have been read, and at the input's end, the group of `key` comes next."""
        return Origin(partial(position, self.mark, read - self.mark.number, key))

    # The input

    async def _has_more(self) -> bool:
        """Take the next block in hand, unless there is one."""
        if self.rows is not None:
            return True
        block = await anext(self.blocks, None)
        if block is None:
            return False
        self.origin, self.ahead = block.origin, block.offset - self.read
        if self.mark is None:
            self._set_mark()
        self.rows = block.rows()
        return True

    def fill(self) -> Group | None:
        """Read elements into groups until one is full; None when the block has ended, or it has taken a while."""
        assert self.rows is not None
        rows, groups, key_func, key_of = self.rows, self.groups, self.key_func, self.key_of
        number, step = self.read, 1
        deadline = monotonic() + SECONDS_AT_A_TIME
        try:
            while True:
                before = number
                for element in islice(rows, step):
                    number += 1
                    try:
                        key = key_func(*element) if element.__class__ is tuple else key_func(element)
                        if key.__class__ is not int:
                            key = integer(key, self.key_argument)
                        if key_of is not None:
                            key = key_of(key)
                        group = groups.get(key) or self._begin(key, number - 1)
                    except Exception as error:
                        number -= 1
                        self.fail(error, number, self.origin, self.ahead + number)
                    elements = group.elements
                    elements.append(element)
                    if len(elements) == group.size:
                        return groups.pop(key)
                if number - before < step:
                    self.rows = None
                    return None
                if monotonic() > deadline:
                    return None
                step = min(2 * step, ELEMENTS_AT_A_TIME)
        except Exception:
            number += 1
            raise
        finally:
            self.read = number

    def _begin(self, key: int, number: int) -> Group:
        size = integer(self.size_func(as_key(key)), "window_size_func")
        if size < 1:
            raise ValueError(f"window_size_func must give at least 1, not {size} for key {key}")
        group = self.groups[key] = Group(key, size, number, self.origin, self.ahead + number)
        return group

    def fail(self, error: Exception, number: int, origin: Origin, offset: int) -> NoReturn:
        """Raise an error of the user's, with a note of the element: its number, and its offset in an origin."""
        failure = as_error(error)
        locate(failure, self.label, number, origin, offset)
        try:
            raise failure
        finally:
            del failure, error  # else it and this frame, which its traceback holds, would be a cycle

    def _rest(self) -> list[int]:
        """List the keys of the groups at the input's end, the smallest last."""
        if self.resumed is None:
            return sorted(self.groups, reverse=True)
        if self.resumed[0] not in self.groups:
            raise StateError(f"in {self.label}: the saved state was at key {self.resumed[0]}, which is not there now")
        return sorted((key for key in self.groups if key >= self.resumed[0]), reverse=True)

    # Positions

    def move_mark(self) -> None:
        """Move the mark on to where the input is, unless that is near: it costs a look at each group."""
        if self.left is None and self.read - self.mark.number >= len(self.groups):
            self._set_mark()

    def _set_mark(self) -> None:
        self.mark = Mark(self.read, self.groups.values(), self.origin, self.ahead + self.read)

    async def _restore(self, start: Any) -> Block[Any] | None:
        """Fill the groups as they were; give the block that the state was in, if any."""
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
            return self.reduce(full, None, start["inner"])
        return None

    async def _read_again(self, count: int, take: Callable[[int, Any, int], Any]) -> Any:
        """Read elements that a saved state has behind it; give what `take` gave for the last one."""
        skipped = Skipped(count)
        taken: Any = None
        while skipped.missing and await self._has_more():
            assert self.rows is not None
            first = self.read
            found = pull(self.rows, min(skipped.missing, 256))
            self.read += len(found)
            if not found:
                self.rows = None
            for number, element in enumerate(found, first):
                taken = None
                if element.__class__ is not Failure:
                    with suppress(Exception):  # it failed then, too
                        key = integer(call(self.key_func, element), self.key_argument)
                        taken = take(key if self.key_of is None else self.key_of(key), element, number)
            skipped.note(len(found), found)
            await self.run.breathe()
        skipped.check()
        return taken

    def _add(self, key: int, element: Any, number: int) -> Group | None:
        """Put an element into its group; give the group if it is full now."""
        group = self.groups.get(key) or self._begin(key, number)
        group.elements.append(element)
        return self.groups.pop(key) if len(group.elements) == group.size else None
