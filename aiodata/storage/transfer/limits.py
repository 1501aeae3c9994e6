"""What all transfers of the process have together: requests to a host that are under way, and bytes in memory."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import suppress

__all__ = ["Limits"]


class Limits:
    """The counts of one process; they belong to the network's loop."""

    def __init__(self) -> None:
        self.held = 0
        """Bytes that files hold or have asked for."""
        self._busy: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}

    async def enter(self, host: str, most: int) -> None:
        """Wait until fewer than `most` requests to a host are under way, first come first served; count one more.

        Pipelines may have different limits. One with a small limit is not passed by others while it waits, so that it
        has its turn.
        """
        if not self._waiting.get(host) and self._busy[host] < most:
            self._busy[host] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(host, deque())
        waiting.append((most, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    waiting.remove((most, turn))
                self._call_next(host)  # who may have waited for this one only
            else:
                self.leave(host)  # it was given the turn just before
            raise

    def leave(self, host: str) -> None:
        """Count one request less: the next that waits has its place."""
        self._busy[host] -= 1
        self._call_next(host)

    def _call_next(self, host: str) -> None:
        waiting = self._waiting.get(host)
        while waiting and (waiting[0][1].done() or self._busy[host] < waiting[0][0]):
            turn = waiting.popleft()[1]
            if not turn.done():
                self._busy[host] += 1
                turn.set_result(None)
        if not waiting:
            self._waiting.pop(host, None)
        if not self._busy[host]:
            del self._busy[host]
