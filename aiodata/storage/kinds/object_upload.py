"""New objects: sent at once if they are small, else in parts, and seen when all of them are there."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from aiodata.errors import RemoteError
from aiodata.storage.masking import masked
from aiodata.storage.transfer.healing import (
    FIRST_WAIT_SECONDS,
    GIVE_UP_SECONDS,
    MAX_ATTEMPTS,
    MAX_WAIT_SECONDS,
    Trouble,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["ObjectUpload", "Store", "part_retries", "part_timeout"]

PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4
part_timeout = timedelta(seconds=120)
"""How long one attempt to send a part may take."""


def part_retries() -> dict[str, Any]:
    """Give how obstore repeats parts: as aiodata does with what it reads, by default."""
    first, longest = timedelta(seconds=FIRST_WAIT_SECONDS), timedelta(seconds=MAX_WAIT_SECONDS)
    return {
        "max_retries": MAX_ATTEMPTS - 1,
        "retry_timeout": timedelta(seconds=GIVE_UP_SECONDS),
        "backoff": {"init_backoff": first, "max_backoff": longest, "base": 2},
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
        store: Gives the store, one that repeats requests by itself or one that does not, and the key.
        url: The object.
        refused: Raises what an error of the store's means.
    """

    def __init__(
        self,
        put: Callable[..., asyncio.Future[Any]],
        store: Callable[[bool], Awaitable[tuple[Store, str]]],
        url: str,
        refused: Callable[[Exception, str, Store], NoReturn],
    ) -> None:
        self._put = put
        self._store = store
        self._used: Store | None = None
        """That which the parts go to."""
        self._url = url
        self._refused = refused
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
            store, key = await self._store(False)
            try:
                await self._put(store.it, key, bytes(self._held), use_multipart=False)
            except Exception as error:
                self._refused(error, self._url, store)
            return
        await self._send(bytes(self._held))
        await self._send(StopAsyncIteration())
        await asyncio.wait([self._sending])
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
        store, key = await self._store(True)
        self._used = store
        self._sending = self._put(store.it, key, self._parts, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

    async def _send(self, part: bytes | StopAsyncIteration) -> None:
        """Hand a part over, or the end, when the one before has been taken."""
        assert self._sending is not None
        handing = asyncio.ensure_future(self._parts.put(part))
        try:
            await asyncio.wait([handing, self._sending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            handing.cancel()
        if self._sending.done():
            self._result()

    def _result(self) -> None:
        """Raise what has ended the sending, if it has failed; it cannot be repeated from here."""
        assert self._sending is not None
        assert self._used is not None
        error = self._sending.exception()
        if isinstance(error, Exception):
            try:
                self._refused(error, self._url, self._used)
            except Trouble as trouble:
                raise RemoteError(trouble.message, masked(self._url)) from None


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
