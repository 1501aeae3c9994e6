"""What the readers of databases share: how a query is shown, and how a call to a database ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from zlib import crc32

from aiodata.engine.workers import wait_out

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["finished", "shown"]

LONGEST_SHOWN = 80


def shown(text: str) -> str:
    r"""Give a text on one line, and short; what is not shown is told apart by a checksum.

    >>> shown("SELECT 1"), shown("SELECT\n  1")
    ('SELECT 1', 'SELECT 1 #9a580ddc')
    """
    line = " ".join(text.split())
    if line == text and len(line) <= LONGEST_SHOWN:
        return line
    cut = line if len(line) <= LONGEST_SHOWN else line[: LONGEST_SHOWN - 3] + "..."
    return f"{cut} #{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


async def finished(
    waiting: asyncio.Future[Any], stop: Callable[[asyncio.Future[Any]], Awaitable[None]], every: float
) -> Any:
    """Wait for a call to a database and give its result; a cancelled task has it stopped, and waits for its end.

    Args:
        waiting: The call.
        stop: Asks the database to stop, given the call; called again as long as the call goes on.
        every: Seconds between two calls of `stop`: the first one may come before the call has begun.
    """
    try:
        await asyncio.wait({waiting})
    except asyncio.CancelledError:
        # In a task of its own: this one may be cancelled again whenever it waits.
        await wait_out(asyncio.get_running_loop().create_task(_stopped(waiting, stop, every)))
        raise
    try:
        return waiting.result()
    finally:
        del waiting  # else it, its error and this frame, which the error's traceback holds, would be a cycle


async def _stopped(
    waiting: asyncio.Future[Any], stop: Callable[[asyncio.Future[Any]], Awaitable[None]], every: float
) -> None:
    while not waiting.done():
        await stop(waiting)
        await asyncio.wait({waiting}, timeout=every)
    if not waiting.cancelled():
        waiting.exception()  # mark as seen
