"""Limits of time: how long a call may take, and what becomes of one that takes longer."""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Failure
from aiodata.engine.job import Job
from aiodata.engine.workers import wait_out
from aiodata.functions import call
from aiodata.transforms._in_worker import timed_out

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiodata.engine.run import Run

__all__ = ["awaited", "check_seconds", "computed_within"]

CANCELLED_SECONDS = 1.0
"""How long to wait for a coroutine that has been cancelled, and will not end."""

_OVERDUE: Any = object()

_left: set[Job] = set()
"""Coroutines that nobody waits for any more; asyncio itself holds tasks weakly."""


def check_seconds(value: object, method: str, argument: str) -> float | None:
    """Give a limit of time in seconds, or None for no limit.

    Raises:
        TypeError: It is not a number (a bool is not one).
        ValueError: It is not above 0, or not finite.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{method}: {argument} must be a number of seconds, not {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = inf
    if not 0 < seconds < inf:
        raise ValueError(f"{method}: {argument} must be a positive, finite number of seconds, not {value}")
    return seconds


async def awaited(run: Run, function: Callable[..., Any], element: Any, limit: float) -> Any:
    """Await a coroutine function for at most `limit` seconds.

    One that takes longer is cancelled by level, as all jobs are: again whenever it waits. If it has not ended a second
    later, it is left to itself, and nobody waits for it.

    Raises:
        TimeoutError: It took longer.
        Exception: What the function raised in time.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    run.guard()
    job = Job(partial(_settle, outcome, function, element), partial(_fail, outcome))
    timer = loop.call_later(limit, _give_up, outcome)
    try:
        result = await outcome
    except asyncio.CancelledError:  # the waiting task's own: a job makes another error of the function's
        await _end(job)
        raise
    finally:
        timer.cancel()
        del outcome  # else its exception and this frame, which the traceback holds, would be a cycle
    if result is _OVERDUE:
        await _end(job)
        raise timed_out(limit)
    return result


async def _settle(outcome: asyncio.Future[Any], function: Callable[..., Any], element: Any) -> None:
    result = await call(function, element)
    if not outcome.done():
        outcome.set_result(result)


def _fail(outcome: asyncio.Future[Any], error: BaseException) -> None:
    if not outcome.done():
        outcome.set_exception(error)


def _give_up(outcome: asyncio.Future[Any]) -> None:
    if not outcome.done():
        outcome.set_result(_OVERDUE)


async def _end(job: Job) -> None:
    """Cancel a coroutine and wait for its end, but not for ever."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    _left.add(job)
    job.when_ended(_left.discard)
    job.when_ended(lambda _: None if ended.done() else ended.set_result(None))
    job.cancel()
    await wait_out(ended, CANCELLED_SECONDS)


async def computed_within(
    limit: float, elements: list[Any], attempt: Callable[[list[Any]], Awaitable[tuple[list[Any], int | None]]]
) -> list[Any]:
    """Compute elements of which some may take too long.

    Args:
        limit: Seconds that a call may take.
        elements: What to compute.
        attempt: Gives the results of some elements, from the front, and the number of one that took too long, if there
            is one; then there may be fewer results. The others are attempted again.

    Returns:
        The results, with failures in their places.
    """
    results: list[Any] = [None] * len(elements)
    pending = list(range(len(elements)))
    while pending:
        found, overdue = await attempt([elements[at] for at in pending])
        for at, result in zip(pending, found, strict=False):
            results[at] = result
        if overdue is None:
            break
        results[pending[overdue]] = Failure(timed_out(limit))
        pending = pending[len(found) : overdue] + pending[overdue + 1 :]
    return results
