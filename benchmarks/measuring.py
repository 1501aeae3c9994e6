"""Time competitors round by round, so that a noisy machine is as noisy for each of them."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

__all__ = ["Row", "adrain", "drain", "interleaved", "ratios", "row_of", "rows_of"]


@dataclass
class Row:
    """A line of the table.

    Args:
        what: What was measured.
        figures: One a round, in `unit`.
        unit: Such as "us/element".
        beside: The competitor that `ratio` divides by.
        ratio: Median over the rounds of the time that this took over what the competitor took in the same round.
        limit: What the ratio, or without one the figure, may be at most.
        take: How the rounds make one figure.
        stage: Rows that name a stage make a table of their own, with a line for each stage.
    """

    what: str
    figures: list[float]
    unit: str
    beside: str = ""
    ratio: float | None = None
    limit: float | None = None
    take: str = "median"
    stage: str = ""

    @property
    def figure(self) -> float:
        """The one figure for the rounds."""
        return min(self.figures) if self.take == "best" else median(self.figures)

    @property
    def is_missed(self) -> bool:
        """Whether there is a limit and it does not hold."""
        measured = self.figure if self.ratio is None else self.ratio
        return self.limit is not None and measured > self.limit


def interleaved(competitors: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Time every competitor once a round, after a round that does not count; give the seconds of each.

    Who begins changes from round to round. Each call must do all of the work of one pass.
    """
    names = list(competitors)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-1, rounds):
        turn = max(0, number) % len(names)
        for name in names[turn:] + names[:turn]:
            gc.collect()
            start = perf_counter()
            competitors[name]()
            taken = perf_counter() - start
            if number >= 0:
                seconds[name].append(taken)
    return seconds


def drain(elements: Iterable[Any]) -> None:
    """Read everything."""
    for _ in elements:
        pass


async def adrain(elements: AsyncIterable[Any]) -> None:
    """Read everything in the running loop."""
    async for _ in elements:
        pass


def ratios(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """Give the median of the ratios within the rounds."""
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def row_of(
    seconds: dict[str, list[float]],
    what: str,
    count: int,
    beside: str = "",
    limit: float | None = None,
    unit: str = "us/element",
) -> Row:
    """Make a line of the table from what `interleaved` gave, in microseconds for each of `count` elements."""
    figures = [taken / count * 1e6 for taken in seconds[what]]
    ratio = ratios(seconds[what], seconds[beside]) if beside else None
    return Row(what, figures, unit, beside, ratio, limit)


def rows_of(seconds: dict[str, list[float]], count: int, beside: str, limit: float | None) -> list[Row]:
    """Make a line for each competitor: the others beside one of them, with a limit for those that are aiodata."""
    return [
        row_of(seconds, what, count)
        if what == beside
        else row_of(seconds, what, count, beside, limit if what.startswith("aiodata") else None)
        for what in seconds
    ]
