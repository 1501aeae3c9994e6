"""Trouble that may pass: waited out, logged and counted, up to a limit."""

from __future__ import annotations

import asyncio
import logging
import random
from time import monotonic
from typing import TYPE_CHECKING

from aiodata.errors import RemoteError

if TYPE_CHECKING:
    from aiodata.engine.statistics import Counters
    from aiodata.options import StorageOptions

__all__ = ["Healing", "Trouble", "idle_seconds", "sending_seconds"]

MAX_ATTEMPTS = 10
FIRST_WAIT_SECONDS = 0.2
MAX_WAIT_SECONDS = 10.0
GIVE_UP_SECONDS = 120.0
IDLE_SECONDS = 30.0
SENT_BYTES = 2 * 1024 * 1024
"""Bytes that are sent in `idle_seconds`, at least, by what does not show how far it is."""
logger = logging.getLogger("aiodata")
_chance = random.SystemRandom()  # forks of a process would all choose alike by another one


class Trouble(Exception):
    """What may not happen again: a storage raises it, and the request is repeated.

    Args:
        message: What happened, in words.
        wait_seconds: How long the server asks to wait before the next request, if it says so.
    """

    def __init__(self, message: str, wait_seconds: float | None = None) -> None:
        self.message = message
        self.wait_seconds = wait_seconds
        super().__init__(message)


def idle_seconds(options: StorageOptions) -> float:
    """Give how long a request may be silent."""
    return IDLE_SECONDS if options.idle_seconds is None else options.idle_seconds


def sending_seconds(options: StorageOptions, size: int) -> float:
    """Give how long a request may take that sends so many bytes, and does not show how far it is.

    It may be silent, and as slow as 2 MiB in `idle_seconds`.
    """
    return idle_seconds(options) * (1 + size / SENT_BYTES)


class Healing:
    """The attempts at one thing that is to be read, from the last one that brought something.

    Args:
        url: What is read, without its secrets.
        options: The limits.
        counters: Where retries are counted.
        unit: What an offset counts, for the log and errors.
    """

    def __init__(self, url: str, options: StorageOptions, counters: Counters, unit: str = "byte") -> None:
        self._url = url
        self._unit = unit
        self._counters = counters
        self._max_attempts = options.max_attempts or MAX_ATTEMPTS
        self._first, self._longest, self._patience = (
            default if given is None else given
            for given, default in (
                (options.first_wait_seconds, FIRST_WAIT_SECONDS),
                (options.max_wait_seconds, MAX_WAIT_SECONDS),
                (options.give_up_seconds, GIVE_UP_SECONDS),
            )
        )
        self._attempts = 0
        self._since = 0.0

    def progress(self) -> None:
        """Note that something has come."""
        self._attempts = 0

    async def wait(self, error: BaseException, offset: int | None = None) -> None:
        """Wait until the request may be repeated.

        Args:
            error: What ended the last request: a `Trouble`, or another exception that may not happen again.
            offset: The first byte, or row, that is missing.

        Raises:
            RemoteError: The limit is reached.
        """
        self._attempts += 1
        if self._attempts == 1:
            self._since = monotonic()
        hint = error.wait_seconds if isinstance(error, Trouble) else None
        cause = str(error) or type(error).__name__
        seconds = max(self._pause(), hint or 0.0)
        left = self._since + self._patience - monotonic()
        if self._attempts >= self._max_attempts or seconds > left:
            if hint is not None and hint > left:
                cause += f", and asks to wait {hint:g} s"
            if self._attempts < self._max_attempts:
                cause += f"; give_up_seconds ({self._patience:g}) leaves no time for another attempt"
            # The cause's own frames, which have what came in vain, would be held as long as the error is.
            raise RemoteError(cause, self._url, offset, self._attempts, self._unit) from error.with_traceback(None)
        self._counters.retries += 1
        where = "" if offset is None else f", {self._unit} {offset}"
        logger.warning(
            "%s%s: %s; attempt %d of %d follows in %.2f s",
            *(self._url, where, cause, self._attempts + 1, self._max_attempts, seconds),
        )
        await asyncio.sleep(seconds)

    def _pause(self) -> float:
        """Choose how long to wait: longer each time, and by chance, so that not all clients come back at once."""
        longest = min(self._longest, self._first * 2.0 ** min(self._attempts - 1, 60))
        return longest * (0.5 + 0.5 * _chance.random())
