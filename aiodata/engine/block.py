"""Blocks: runs of consecutive elements that travel together between stages.

A block has one of two bodies. *Rows* are a one-pass lazy iterator: nothing is computed until an element is pulled.
Pulling may raise, and pulling again goes on with the next element. *Columns* are a structure of arrays with one
common leading axis, whose slices are the elements. Stages that never look at single elements keep columns.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from aiodata.columns import iterate, slice_columns
from aiodata.engine.position import Cursor, Origin, cursor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from aiodata.engine.skipped import Skipped

__all__ = ["Block", "Failure", "Tally", "counted", "no_blocks", "pull", "recorded", "resumable"]

T = TypeVar("T")


class Failure:
    """An exception that stands in the place of an element in a list of computed elements; it is raised once."""

    __slots__ = ("exception",)

    def __init__(self, exception: Exception) -> None:
        self.exception: Any = exception

    def open(self) -> NoReturn:
        """Raise the exception, without a cycle of it and its traceback's frames."""
        error, self.exception = self.exception, None
        try:
            raise error
        finally:
            del error

    def drop(self) -> None:
        """Forget the exception, which nobody will see.

        Its traceback holds frames, and those, from Python 3.12 on, the frames that called them, with all that is in
        them: it would be a cycle with the list that the failure is in.
        """
        self.exception = None


class Tally:
    """A count that a lazy iterator keeps for the stage that made it."""

    __slots__ = ("count",)

    def __init__(self, count: int = 0) -> None:
        self.count = count


def resumable(generate: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Iterate over `generate()`, and after an exception go on with a fresh `generate()`.

    A generator ends at its first exception; a block's rows must not. `generate` reads from an iterator that it
    shares with its successors, so that a fresh one goes on behind the element that failed.
    `itertools.chain` moves on to the next generator by itself, at no cost for each element.
    """
    return chain.from_iterable(_attempts(generate))


def _attempts(generate: Callable[[], Iterator[T]]) -> Iterator[Iterator[T]]:
    complete = False

    def attempt() -> Iterator[T]:
        nonlocal complete
        yield from generate()
        complete = True

    while not complete:
        yield attempt()


def recorded(elements: Iterable[T | Failure]) -> Iterator[T]:
    """Iterate over computed elements, raising the failures among them."""
    rest: Iterator[Any] = iter(elements)

    def raising() -> Iterator[T]:
        for element in rest:
            if element.__class__ is Failure:
                element.open()
            yield element

    return resumable(raising)


def counted(rows: Iterator[T], tally: Tally, limit: int = -1) -> Iterator[T]:
    """Iterate over `rows`, at most `limit` of them, and add the number of pulls to `tally` when done or failed.

    A pull that raises counts; with a limit, the element behind the last one is not pulled.
    """
    done = 0

    def counting() -> Iterator[T]:
        nonlocal done
        number = done
        if number == limit:
            return
        try:
            for element in rows:
                number += 1
                yield element
                if number == limit:
                    return
        except Exception:
            number += 1
            raise
        finally:
            tally.count += number - done
            done = number

    return resumable(counting)


class Block(Generic[T]):
    """A run of consecutive elements.

    Args:
        origin: Where the run comes from.
        offset: Offset of the block's first element in `origin`.
        rows: One-pass iterator over the elements, or
        columns: a structure of arrays with one leading axis of `length`.
        length: Number of elements (pulls), where it is known; always known for columns.
        computed: The elements as a list in which `Failure`s stand for errors, instead of `rows`.
        clean: There are no failures in `computed`; saves looking for them.
        within: Larger columns that stay as they are, and at which of their rows `columns` begins, where these are a
            part of them: who rearranges elements may then do it by their numbers, and copy each of them once.
    """

    __slots__ = ("_rows", "_taken", "columns", "computed", "is_whole", "length", "offset", "origin", "within")

    def __init__(
        self,
        origin: Origin,
        offset: int = 0,
        *,
        rows: Iterator[T] | None = None,
        columns: Any = None,
        length: int | None = None,
        computed: list[Any] | None = None,
        clean: bool = False,
        within: tuple[Any, int] | None = None,
    ) -> None:
        self.origin = origin
        self.offset = offset
        self.columns = columns
        self.length = length
        self.computed = computed
        self.within = within
        self._rows = rows
        self._taken = 0
        self.is_whole = False
        """Whether it was handed over as it came, computed, by a stage that reads ahead."""
        if computed is not None:
            self.length = len(computed)
            self._rows = iter(computed) if clean or Failure not in map(type, computed) else recorded(computed)

    @classmethod
    def failed(cls, error: Exception, origin: Origin, offset: int = 0) -> Block[T]:
        """Make a block in which `error` takes the place of one element."""
        return cls(origin, offset, computed=[Failure(error)])

    @property
    def has_columns(self) -> bool:
        """Whether the body is columns."""
        return self._rows is None

    @property
    def is_computed(self) -> bool:
        """Whether all of its elements are in memory."""
        return self._rows is None or self.computed is not None

    def rows(self) -> Iterator[T]:
        """Give the one-pass iterator over the elements; each call gives the same one."""
        if self._rows is None:
            self._rows = iterate(self.columns)
            self.columns = None
        return self._rows

    def cursor(self, index: int = 0) -> Cursor:
        """Give the cursor of the block's element number `index`."""
        return cursor(self.origin, self.offset + index)

    def here(self) -> Callable[[], Cursor]:
        """Give what gives the cursor of the first element later on; it does not hold the elements."""
        return partial(cursor, self.origin, self.offset)

    def moved(self, origin: Origin) -> Block[T]:
        """Give the same elements with an origin that begins at this block's first element."""
        block: Block[T] = Block.__new__(Block)
        block.origin = origin
        block.offset = 0
        block.columns = self.columns
        block.length = self.length
        block.computed = self.computed
        block.within = self.within
        block._rows = self._rows
        block._taken = 0
        block.is_whole = False
        return block

    def sliced(self, start: int, stop: int) -> Block[T]:
        """Give the columns block of the elements from `start` to `stop`."""
        columns = slice_columns(self.columns, start, stop)
        within = None if self.within is None else (self.within[0], self.within[1] + start)
        return Block(self.origin, self.offset + start, columns=columns, length=stop - start, within=within)

    def chunk(self, limit: int, seconds: float = 1e9) -> Block[T] | None:
        """Take up to `limit` elements off the front and compute them now; None when the block is drained.

        Args:
            limit: The most elements to take, at least 1.
            seconds: Stop early when computing has taken as long; at least one element is taken.
        """
        taken = self._taken
        if self._rows is None:
            assert self.length is not None
            if taken >= self.length:
                return None
            stop = min(self.length, taken + limit)
            self._taken = stop
            return self.sliced(taken, stop)
        found = pull(self._rows, limit, seconds)
        if not found:
            return None
        self._taken += len(found)
        return Block(self.origin, self.offset + taken, computed=found)

    def remainder(self) -> Block[T]:
        """Give what `chunk` has not taken yet, as a block of its own."""
        if self._rows is None:
            assert self.length is not None
            return self.sliced(self._taken, self.length)
        length = None if self.length is None else self.length - self._taken
        return Block(self.origin, self.offset + self._taken, rows=self._rows, length=length)

    def drop(self, count: int, skipped: Skipped | None = None) -> tuple[Block[T], int]:
        """Pull and forget the first `count` elements; give the rest as a block, and how many there were to drop."""
        found: list[Any] = []
        if self._rows is None:
            assert self.length is not None
            dropped = min(count, self.length)
        else:
            found = pull(self._rows, count)
            dropped = len(found)
        self._taken += dropped
        if skipped is not None and dropped:
            skipped.note(dropped, found)
        return self.remainder(), dropped


async def no_blocks() -> AsyncIterator[Block[Any]]:
    """Give nothing: the blocks of an empty stage."""
    return
    yield


def pull(rows: Iterator[T], limit: int, seconds: float = 1e9) -> list[Any]:
    """Pull up to `limit` elements, with `Failure`s for errors; stop early, but not before one, after `seconds`."""
    found: list[Any] = []
    deadline = monotonic() + seconds if (timed := seconds < 1e9) else 0.0
    step = 1 if timed else limit
    try:
        while len(found) < limit:
            goal = min(limit, len(found) + step)
            try:
                found.extend(islice(rows, goal - len(found)))
            except Exception as error:
                # Without this frame, which holds the list: a failure that is dropped unopened would be a cycle.
                found.append(Failure(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)))
            else:
                if len(found) < goal:
                    break
            if timed and monotonic() > deadline:
                break
            step *= 2
        return found
    finally:
        del found  # a generator's frame in a traceback refers to this one, from Python 3.12 on
