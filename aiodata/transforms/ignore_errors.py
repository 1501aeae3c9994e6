"""`ignore_errors`: leave out the elements that fail."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.checks import check_integer
from aiodata.engine.block import Block, Failure
from aiodata.engine.position import Origin, cursor, locate
from aiodata.errors import TooManyErrorsError
from aiodata.functions import as_error, check_callable, is_coroutine_function, name_of
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["ignore_errors"]

T = TypeVar("T")
MOST_IN_A_ROW = 100_000
logger = logging.getLogger("aiodata")


def ignore_errors(
    self: Dataset[T],
    log_warning: bool = False,
    name: str | None = None,
    *,
    on_error: Callable[[Exception], object] | None = None,
    limit: int | float | None = None,
) -> Dataset[T]:
    """Leave out the elements that fail.

    Stages before this one count a failed element as one: behind `take(5)` come four elements if one of the five
    fails. `batch` loses the elements that it had read for a batch when one fails, so put `ignore_errors` before it.
    Only errors of single elements are dropped; what ends the iteration, such as a source that cannot go on, is raised.
    The counts are those of one pass over the input: with a `repeat` behind, each epoch begins anew. They are part of
    a saved state, and `statistics()` of the iterator shows how many errors were dropped.

    An input that only fails comes to an end: unless it is known to be finite, 100,000 errors in a row, with no element
    between them, are too many under any limit.

    Args:
        log_warning: Log a warning on the logger "aiodata" for each dropped error: its type, text and notes.
        name: A name for the stage, shown in `repr`.
        on_error: A plain function that is called with each dropped exception, whose notes tell the stage, the element
            and its place. What it raises itself takes the element's place.
        limit: The most errors that may be dropped: a number from 0; or, as a float between 0 and 1, a share of the
            elements read so far, those that failed included, where one error is always allowed. None sets no limit.

    Returns:
        A dataset of the elements that did not fail, in order; its cardinality is unknown.

    Raises:
        TypeError: `on_error` is not a plain function, or `limit` not a number.
        ValueError: `limit` is negative, or a float that is not between 0 and 1.
        TooManyErrorsError: While iterating: there were more errors than `limit`, or 100,000 in a row. It tells how
            many, is raised from the last of them, and ends the iteration.

    >>> import aiodata
    >>> ds = aiodata.Dataset.from_tensor_slices([1, 0, 2]).map(lambda x: 10 // int(x))
    >>> list(ds.ignore_errors())
    [10, 5]

    Source: `tf.data.Dataset.ignore_errors`; `on_error` and `limit` are additions.
    """
    if on_error is not None:
        check_callable(on_error, "ignore_errors", "on_error")
        if is_coroutine_function(on_error):
            raise TypeError("ignore_errors: on_error must be a plain function, not a coroutine function")
    most = _checked_limit(limit)
    detail = ", ".join(
        [
            *(["log_warning=True"] if log_warning else []),
            *([f"on_error={name_of(on_error)}"] if on_error is not None else []),
            *([f"limit={most}"] if most is not None else []),
        ]
    )
    rules = _Rules(f"ignore_errors({detail})", log_warning, on_error, most)
    return self.then("ignore_errors", partial(_ignore, rules=rules), detail=detail, spec=same, title=name)


def _checked_limit(limit: Any) -> int | float | None:
    if limit is None:
        return None
    if not isinstance(limit, (float, np.floating)):
        return check_integer(limit, "ignore_errors", "limit", 0)
    if not 0 < limit < 1:
        raise ValueError(f"ignore_errors: limit must be a number of errors or a share between 0 and 1, not {limit}")
    return float(limit)


@dataclass(frozen=True)
class _Rules:
    """What is to be done with errors."""

    label: str
    log_warning: bool
    on_error: Callable[[Exception], object] | None
    limit: int | float | None


def _ignore(run: Run, source: Source, *, start: Any, rules: _Rules) -> AsyncIterator[Block[Any]]:
    *counts, place = start or (0, 0, 0, None)
    may_not_end = source.plan.cardinality() < 0
    return _Ignoring(run, rules, may_not_end, *counts).blocks(source.open(place))


class _Good:
    """The elements of a block up to the next error; what has been learned when they are drained."""

    def __init__(self) -> None:
        self.count = 0
        self.failure: Failure | None = None
        """What ended them before the block's end."""

    def rows(self, rows: Iterator[Any]) -> Iterator[Any]:
        try:
            for element in rows:
                self.count += 1
                yield element
        except Exception as error:
            self.failure = Failure(error)


class _Ignoring:
    """The counts of one pass.

    An error ends the block that the reader has in hand. So the loop can breathe between errors, and a position needs
    the counts at a block's beginning only, for what it skips has not failed.
    """

    def __init__(self, run: Run, rules: _Rules, may_not_end: bool, errors: int, seen: int, in_a_row: int) -> None:
        self.run = run
        self.rules = rules
        self.may_not_end = may_not_end
        self.errors = errors
        self.seen = seen
        self.in_a_row = in_a_row
        self.counters = run.statistics.counters(rules.label)

    async def blocks(self, blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
        async for block in blocks:
            if block.columns is not None and block.length is not None:
                yield block.moved(self._origin(block.origin, block.offset))
                self._passed(block.length)
                continue
            rows, offset = block.rows(), block.offset
            while True:
                good = _Good()
                yield Block(self._origin(block.origin, offset), rows=good.rows(rows))
                self._passed(good.count)
                offset += good.count
                if good.failure is None:
                    break
                raised = self._drop(good.failure, block.origin, offset)
                if raised is not None:
                    yield raised
                offset += 1
                await self.run.breathe()

    def _origin(self, origin: Origin, offset: int) -> Origin:
        counts = (self.errors, self.seen, self.in_a_row)
        return origin.within(partial(_position, counts, origin, offset), offset)

    def _passed(self, count: int) -> None:
        if count:
            self.seen += count
            self.in_a_row = 0
            self.counters.elements += count
            self.counters.blocks += 1

    def _drop(self, failure: Failure, origin: Origin, offset: int) -> Block[Any] | None:
        """Count and report an error; give a block with what `on_error` raised in its place, if it did.

        Raises:
            TooManyErrorsError: It was one too many.
        """
        before = self._origin(origin, offset)
        error, failure.exception = failure.exception, None
        self.errors += 1
        self.seen += 1
        self.in_a_row += 1
        if not getattr(error, "__notes__", None):
            locate(error, self.rules.label, self.seen - 1, origin, offset)
        if reason := self._too_many():
            raise TooManyErrorsError(f"{self.rules.label}: {reason}") from error
        self.counters.errors += 1
        if self.rules.log_warning:
            described = "".join(traceback.format_exception_only(error)).rstrip()
            logger.warning("left out an element that failed: %s", described)
        if self.rules.on_error is not None:
            try:
                self.rules.on_error(error)
            except Exception as raised:
                self.in_a_row = 0  # the reader gets something
                locate(raised, self.rules.label, self.seen - 1, origin, offset)
                return Block.failed(as_error(raised), before)
        return None

    def _too_many(self) -> str | None:
        limit = self.rules.limit
        counts = f"{self.errors} of the {self.seen} elements read so far failed"
        # A quotient is rounded as the user's number was; `limit * seen` may fall short of a whole number.
        if isinstance(limit, float) and self.errors > 1 and self.errors / self.seen > limit:
            return f"{counts}, more than the share that may"
        if isinstance(limit, int) and self.errors > limit:
            return f"{counts}, more than may"
        if self.may_not_end and self.in_a_row >= MOST_IN_A_ROW:
            return f"{counts}, the last {self.in_a_row} with no element between them"
        return None


def _position(counts: tuple[int, int, int], origin: Origin, offset: int) -> Any:
    return [*counts, cursor(origin, offset)]
