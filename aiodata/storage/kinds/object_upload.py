"""New objects: sent at once if they are small, else in parts, and seen when all of them are there."""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from aiodata.errors import RemoteError
from aiodata.storage.masking import masked
from aiodata.storage.transfer.healing import (
    FIRST_WAIT_SECONDS,
    GIVE_UP_SECONDS,
    MAX_ATTEMPTS,
    MAX_WAIT_SECONDS,
    Trouble,
    sending_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiodata.options import StorageOptions

__all__ = ["ObjectUpload", "Repeats", "Store"]

PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4
LEAST_WAIT_SECONDS = 0.001  # obstore does not take 0
_ABORT = re.compile(r"performing DELETE\b")
_RETRIES = re.compile(r"\bafter (\d+) retr")
logger = logging.getLogger("aiodata")


class Repeats(NamedTuple):
    """How obstore repeats what sends parts: as aiodata does with what it sends by itself."""

    timeout: timedelta
    """How long one attempt may take."""
    max_attempts: int
    first: timedelta
    longest: timedelta
    give_up: timedelta

    @classmethod
    def of(cls, options: StorageOptions) -> Repeats:
        """Give what the limits mean for parts."""
        first, longest, give_up = (
            default if given is None else given
            for given, default in (
                (options.first_wait_seconds, FIRST_WAIT_SECONDS),
                (options.max_wait_seconds, MAX_WAIT_SECONDS),
                (options.give_up_seconds, GIVE_UP_SECONDS),
            )
        )
        first = max(first, LEAST_WAIT_SECONDS)
        return cls(
            timedelta(seconds=sending_seconds(options, PART_BYTES)),
            options.max_attempts or MAX_ATTEMPTS,
            timedelta(seconds=first),
            timedelta(seconds=max(first, longest)),
            timedelta(seconds=give_up),
        )

    def settings(self) -> dict[str, Any]:
        """Give that for a store of obstore's."""
        return {
            "max_retries": self.max_attempts - 1,
            "retry_timeout": self.give_up,
            "backoff": {"init_backoff": self.first, "max_backoff": self.longest, "base": 2},
        }


class Store:
    """A store of obstore's that can be let go of, also where an error's traceback has it.

    Args:
        it: The store.
    """

    def __init__(self, it: Any) -> None:
        self.it = it


class ObjectUpload:
    """A new object.

    Up to a part is kept here, and sent at once when the object is complete. More is sent in parts by obstore, whose
    only way to give an upload up, with nothing left of it in the store, is that what it takes the parts from fails.

    Args:
        put: `obstore.put_async`.
        store: Gives the store, one that repeats requests by itself if it is told how, and the key.
        url: The object.
        refused: Raises what an error of the store's means.
        options: The limits.
    """

    def __init__(
        self,
        put: Callable[..., asyncio.Future[Any]],
        store: Callable[[Repeats | None], Awaitable[tuple[Store, str]]],
        url: str,
        refused: Callable[[Exception, str, Store], NoReturn],
        options: StorageOptions,
    ) -> None:
        self._put = put
        self._store = store
        self._used: Store | None = None
        """That which the parts go to."""
        self._url = url
        self._refused = refused
        self._options = options
        self._repeats = Repeats.of(options)
        self._size = 0
        """Bytes that have been handed over to be sent in parts."""
        self._held = bytearray()
        self._parts = _Parts()
        self._sending: asyncio.Future[Any] | None = None
        """The parts' way to the store; None as long as there are none."""

    async def write(self, data: bytes, /) -> None:
        """Write more of it."""
        if self._sending is None and len(self._held) + len(data) > PART_BYTES:
            await self._begin()  # may fail and be repeated, so before any of the data is taken
        for start in range(0, len(data), PART_BYTES):
            self._held += data[start : start + PART_BYTES]
            if len(self._held) > PART_BYTES:
                part = bytes(memoryview(self._held)[:PART_BYTES])
                del self._held[:PART_BYTES]
                await self._send(part)

    async def commit(self) -> None:
        """Put it in its place."""
        if self._sending is None:
            store, key = await self._store(None)
            seconds = sending_seconds(self._options, len(self._held))
            try:
                async with asyncio.timeout(seconds) as limit:
                    await self._put(store.it, key, bytes(self._held), use_multipart=False)
            except Exception as error:
                if limit.expired():
                    raise Trouble(f"there was no answer for {seconds:g} s") from None
                self._refused(error, self._url, store)
            return
        await self._send(bytes(self._held))
        await self._send(StopAsyncIteration())
        await self._wait([self._sending])
        self._result()

    async def discard(self) -> None:
        """Give it up."""
        sending = self._sending
        if sending is None:
            return
        has_ended = sending.done()  # what has failed obstore gives up by itself
        self._parts.give_up()
        try:
            await asyncio.wait([sending])
        finally:
            sending.cancel()
        error = None if sending.cancelled() else sending.exception()
        if error is not None and not isinstance(error, _GivenUp) and not has_ended:
            raise RemoteError("an upload could not be given up: parts of it may be left", masked(self._url))

    async def _begin(self) -> None:
        """Have the store take parts."""
        store, key = await self._store(self._repeats)
        self._used = store
        self._sending = self._put(store.it, key, self._parts, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

    async def _send(self, part: bytes | StopAsyncIteration) -> None:
        """Hand a part over, or the end, when the one before has been taken."""
        assert self._sending is not None
        handing = asyncio.ensure_future(self._parts.put(part))
        try:
            await self._wait([handing, self._sending])
        finally:
            handing.cancel()
        if self._sending.done():
            self._result()
        elif isinstance(part, bytes):
            self._size += len(part)

    async def _wait(self, waiting: list[asyncio.Future[Any]]) -> None:
        """Wait for one of these, as long as a part may take with all that is repeated.

        Raises:
            RemoteError: It takes longer: obstore has failed by then, and fails to give the upload up.
        """
        seconds = (self._repeats.timeout + self._repeats.give_up).total_seconds()
        done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise RemoteError(f"no part could be sent for {seconds:g} s", masked(self._url), self._size)

    def _result(self) -> None:
        """Raise what has ended the sending, if it has failed; it cannot be repeated from here.

        obstore gives up by itself what has failed. If that fails as well, its error is of that, and the first is lost.
        """
        assert self._sending is not None
        assert self._used is not None
        error = self._sending.exception()
        if isinstance(error, Exception):
            try:
                self._refused(error, self._url, self._used)
            except (Trouble, RemoteError) as found:
                text, message = str(error), found.message
                retries = _RETRIES.search(text)
                attempts = int(retries[1]) + 1 if retries else 1
                if _ABORT.search(text):
                    attempts = 1
                    logger.warning("%s: parts of an upload may be left: %s", masked(self._url), message)
                    message = "a part could not be sent, nor the upload be given up after that"
                raise RemoteError(message, masked(self._url), self._size, attempts) from None


class _GivenUp(Exception):
    pass


class _Parts:
    """What obstore takes the parts from, one after the other."""

    def __init__(self) -> None:
        self._next: asyncio.Queue[bytes | Exception] = asyncio.Queue(1)

    async def put(self, part: bytes | Exception) -> None:
        await self._next.put(part)

    def give_up(self) -> None:
        while not self._next.empty():
            self._next.get_nowait()
        self._next.put_nowait(_GivenUp())

    def __aiter__(self) -> _Parts:
        return self

    async def __anext__(self) -> bytes:
        part = await self._next.get()
        if isinstance(part, Exception):
            raise part
        return part
