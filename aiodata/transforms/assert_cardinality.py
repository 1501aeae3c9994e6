"""`assert_cardinality`: a dataset that has to have a given number of elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.checks import check_integer
from aiodata.engine.block import Block, resumable
from aiodata.engine.plan import INFINITE
from aiodata.engine.position import Origin, locate
from aiodata.errors import CardinalityError
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["assert_cardinality"]

T = TypeVar("T")


def assert_cardinality(self: Dataset[T], expected_cardinality: int, name: str | None = None) -> Dataset[T]:
    """Give the elements as they are, and see to it that there are as many as expected.

    With it a dataset whose number of elements is not known, such as the lines of a file, gets one. Elements that fail
    do not count.

    Args:
        expected_cardinality: How many elements there have to be, or `INFINITE_CARDINALITY`.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of the elements, with that cardinality.

    Raises:
        TypeError: `expected_cardinality` is not an integer.
        ValueError: It is below 0 and not `INFINITE_CARDINALITY`.
        CardinalityError: While iterating: at the first element too many, or at the end, where there are too few. The
            iteration ends with it.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(6).filter(lambda x: x % 2 == 0).assert_cardinality(3)
    >>> len(ds), [int(x) for x in ds]
    (3, [0, 2, 4])

    Source: `tf.data.experimental.assert_cardinality`.
    """
    expected = check_integer(expected_cardinality, "assert_cardinality", "expected_cardinality", INFINITE)
    detail = "INFINITE_CARDINALITY" if expected == INFINITE else str(expected)
    stage = partial(_assert, expected=expected)
    return self.then("assert_cardinality", stage, detail=detail, count=lambda _: expected, spec=same, title=name)


def _assert(run: Run, source: Source, *, start: Any, expected: int) -> AsyncIterator[Block[Any]]:
    seen, at = start or (0, None)
    return _Count(expected, seen).blocks(source.open(at), at)


class _Count:
    """How many elements there have been."""

    def __init__(self, expected: int, seen: int) -> None:
        self.expected = expected
        self.seen = seen
        self.pulls = 0
        """Pulls of the block in hand, those that failed included."""
        self.over = False

    async def blocks(self, blocks: AsyncIterator[Block[Any]], start: Cursor | None) -> AsyncIterator[Block[Any]]:
        origin = Origin(partial(_position, self.seen, partial(_cursor, start)))
        async for block in blocks:
            origin = block.origin.within(partial(_position, self.seen, block.here()), block.offset)
            if block.columns is None or block.length is None:
                self.pulls = 0
                yield Block(origin, rows=self._passing(block, origin))  # they may end early, so no length
            else:
                fitting = block.length if self.expected == INFINITE else self.expected - self.seen
                self.over = fitting < block.length
                self.pulls = min(fitting, block.length)
                self.seen += self.pulls
                yield (block.sliced(0, fitting) if self.over else block).moved(origin)
                if self.over:
                    yield Block.failed(self._too_many(origin, self.pulls), origin, self.pulls)
            if self.over:
                return
        if self.seen != self.expected:
            # In the place behind the last element, so that a state there finds it again.
            yield Block.failed(CardinalityError(self.expected, self.seen), origin, self.pulls)

    def _passing(self, block: Block[Any], origin: Origin) -> Iterator[Any]:
        rows = block.rows()

        def passing() -> Iterator[Any]:
            before = seen = self.seen
            failed = 0
            try:
                for element in () if self.over else rows:
                    if seen == self.expected:
                        self.over = True
                        raise self._too_many(origin, self.pulls + seen - before)
                    seen += 1
                    yield element
            except Exception:
                failed = 1
                raise
            finally:
                self.seen = seen
                self.pulls += seen - before + failed

        return resumable(passing)

    def _too_many(self, origin: Origin, offset: int) -> CardinalityError:
        error = CardinalityError(self.expected, self.expected + 1, more=True)
        locate(error, f"assert_cardinality({self.expected})", self.expected, origin, offset)
        return error


def _position(seen: int, cursor: Callable[[], Any]) -> Any:
    return [seen, cursor()]


def _cursor(start: Cursor | None) -> Cursor | None:
    return start
