"""Requests to a storage, repeated where that may help."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from aiodata.storage.masking import masked
from aiodata.storage.transfer.healing import Healing, Trouble, idle_seconds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiodata.engine.statistics import Counters
    from aiodata.options import StorageOptions
    from aiodata.storage.protocol import Storage
    from aiodata.storage.transfer.network import Limits

__all__ = ["Silence", "ask", "in_time", "turn"]

R = TypeVar("R")
REQUESTS_PER_HOST = 100


async def ask(
    storage: Storage,
    url: str,
    request: Callable[[], Awaitable[R]],
    options: StorageOptions,
    counters: Counters,
    reached: Callable[[], int] | None = None,
) -> R:
    """Make a request until it succeeds, on the network's loop.

    After trouble that may pass it is made again, see `Healing`; once more after a refusal, if there are credentials to
    ask for anew.

    Args:
        storage: What is asked.
        url: What it is asked for.
        request: Makes the request, each time for what is still missing.
        options: The limits.
        counters: Where retries are counted.
        reached: Gives the first byte that is missing; None where there are none.

    Raises:
        OSError: It failed, and not by trouble that may pass; or more often than the limits allow.
    """
    healing: Healing | None = None
    refused_at: int | None = None
    at = 0
    while True:
        before = at
        try:
            return await _uncancelled(request)
        except PermissionError:
            at = reached() if reached else 0
            if refused_at == at or not await storage.renew():
                raise
            refused_at = at
            counters.retries += 1
        except (Trouble, ConnectionError, TimeoutError) as error:
            healing = healing or Healing(masked(url), options, counters)
            at = reached() if reached else 0
            if at > before:
                healing.progress()
            await healing.wait(error, at if reached else None)


async def _uncancelled(request: Callable[[], Awaitable[R]]) -> R:
    """Make a request; a cancellation that a storage lets out by itself is trouble, for nobody else would hear of it."""
    try:
        return await request()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
    raise Trouble("the storage has cancelled the request")


class turn:
    """Count one more request to the host of a URL, when it may be made; use it in `async with`.

    Args:
        limits: What all transfers share.
        storage: What is asked.
        url: What it is asked for.
        options: The limits.
        counters: Where requests are counted.
    """

    def __init__(self, limits: Limits, storage: Storage, url: str, options: StorageOptions, counters: Counters) -> None:
        self._limits = limits
        self._host = storage.host(url)
        self._most = options.requests_per_host or REQUESTS_PER_HOST
        self._counters = counters
        self._is_counted = False

    async def __aenter__(self) -> turn:
        await self._limits.enter(self._host, self._most)
        self._is_counted = True
        self._counters.requests += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Let the next one have its turn before this one has ended."""
        if self._is_counted:
            self._is_counted = False
            self._limits.leave(self._host)


async def in_time(waiting: Awaitable[R], options: StorageOptions, what: str) -> R:
    """Wait for what must not take longer than a request may be silent.

    Raises:
        Trouble: It does.
    """
    with Silence(options) as silence:
        return await silence.wait(waiting, what)


class Silence:
    """Ends what is silent for too long; use it in `with`, in the task that waits.

    One timer serves all that a request waits for: when it goes off, it looks when the waiting began that is going on.

    Args:
        options: The limits.
    """

    def __init__(self, options: StorageOptions) -> None:
        self._seconds = idle_seconds(options)
        self._since: float | None = None
        """When the waiting began that is going on."""
        self._made = 0
        """Cancellations that were made here; whoever swallows one is cancelled again."""

    def __enter__(self) -> Silence:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancellations = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._seconds, self._look)
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()

    async def wait(self, waiting: Awaitable[R], what: str) -> R:
        """Wait for something.

        Args:
            waiting: What is waited for.
            what: What it brings, for the error.

        Raises:
            Trouble: It takes too long.
        """
        self._since = self._loop.time()
        try:
            return await waiting
        except (TimeoutError, asyncio.CancelledError) as error:
            if not isinstance(error, TimeoutError) and not self._withdraw():
                raise
            raise Trouble(str(error) or f"there was silence for {self._seconds:g} s instead of {what}") from error
        finally:
            self._since = None
            self._withdraw()

    def _look(self) -> None:
        now = self._loop.time()
        due = (now if self._since is None else self._since) + self._seconds
        if due <= now:
            self._made += self._task.cancel()
            due = now + self._seconds
        self._timer = self._loop.call_at(due, self._look)

    def _withdraw(self) -> bool:
        """Take back the cancellations that were made here; tell whether there are some, and no others."""
        made, self._made = self._made, 0
        for _ in range(made):
            self._task.uncancel()
        return made > 0 and self._task.cancelling() <= self._cancellations
