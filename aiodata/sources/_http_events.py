"""The events of HTTP answers that are event streams."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, no_blocks
from aiodata.engine.position import Origin, locate
from aiodata.errors import RemoteError, StateError
from aiodata.formats.event_stream import EventStream, ServerSentEvent
from aiodata.sources._http_body import Changed, Seen
from aiodata.sources._http_client import client_of
from aiodata.storage.masking import masked
from aiodata.storage.transfer.healing import Healing, Trouble

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.sources._http_client import Asking, Client

__all__ = ["read_events"]

RETRY_SECONDS = 3.0
"""How long to wait before a stream that has ended is asked for again, if the server does not say."""


def read_events(
    run: Run, *, start: Cursor | None, url: str, asking: Asking, reconnect: bool
) -> AsyncIterator[Block[Any]]:
    """Open a stage that gives the events of a stream as they come.

    A position is `[before, after]`, of an event that is a block by itself. Each is `[id, seen, number, next]`: the last
    id, what `Seen.saved` gave of the events that came since, how many have come, and the checksum of the next event, ""
    if it is not known; `after` is None behind an error.

    Args:
        run: The run.
        start: None or a cursor.
        url: What to ask for.
        asking: How.
        reconnect: Whether to ask again when the stream has ended.
    """
    where = ["", Seen().saved(), 0, ""] if start is None else start[0][min(1, start[1])]
    return no_blocks() if where is None else _blocks(run, where, url, asking, reconnect)


async def _blocks(run: Run, where: list[Any], url: str, asking: Asking, reconnect: bool) -> AsyncIterator[Block[Any]]:
    begun, name = where[2], masked(url)
    client = await client_of(run, asking)
    events = _Events(client, url, where, Healing(name, run.options.storage, client.counters, "event"), reconnect)
    failed: list[Block[Any]] = []
    try:
        async with aclosing(events.all()) as found:
            async for event, before, after in found:
                client.counters.elements += 1
                client.counters.blocks += 1
                origin = Origin(partial(_position, before, after), partial(_place, name, before[2]))
                yield Block(origin, computed=[event], clean=True)
    except Exception as error:
        number = events.number
        origin = Origin(partial(_position, events.where(), None), partial(_place, name, number))
        locate(error, "from_http", number - begun, origin, 0)
        if isinstance(error, Changed) and number == begun > 0:
            raise StateError(f"the state does not fit any more: {error}") from error
        if isinstance(error, RemoteError):
            raise
        failed.append(Block.failed(error, origin))
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback


class _Events:
    """The events of a stream, each once, whatever breaks meanwhile.

    Args:
        client: Sends the requests.
        url: What to ask for.
        where: Where to begin, as in a position.
        healing: Waits out what may pass.
        reconnect: Whether to ask again when the stream has ended.
    """

    def __init__(self, client: Client, url: str, where: list[Any], healing: Healing, reconnect: bool) -> None:
        self._client, self._url, self._healing, self._reconnect = client, url, healing, reconnect
        self._id, self._expected, self.number, self._next = where
        """The last id; what has to come again behind it; how many events have come; the checksum of the next one."""
        self._seen: Seen | None = None
        """What has come since the last id; None until all that is expected has come again."""
        self._retry: float | None = None
        self._is_over = False

    def where(self) -> list[Any]:
        """Give the place of the next event, as in a position."""
        return [self._id, self._expected if self._seen is None else self._seen.saved(), self.number, self._next]

    async def all(self) -> AsyncGenerator[tuple[ServerSentEvent, list[Any], list[Any]], None]:
        """Give the events, each with its place and the place behind it.

        Raises:
            Changed: The server cannot go on, or not where it broke off.
            OSError, CorruptRecordError: They cannot be read.
        """
        while True:
            try:
                async with aclosing(self._attempt()) as events:
                    async for event in events:
                        yield event
                if not self._reconnect or self._is_over:
                    return
                if not self._id:
                    self._seen, self._expected = Seen(), Seen().saved()  # what follows is new, if it is anything
            except (Trouble, ConnectionError) as error:
                hint = max(getattr(error, "wait_seconds", None) or 0.0, self._retry or 0.0)
                await self._healing.wait(Trouble(str(error) or type(error).__name__, hint or None), self.number)
            else:
                await asyncio.sleep(RETRY_SECONDS if self._retry is None else self._retry)

    async def _attempt(self) -> AsyncGenerator[tuple[ServerSentEvent, list[Any], list[Any]], None]:
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity", "Cache-Control": "no-store"}
        if self._id:
            headers["Last-Event-ID"] = self._id
        response = await self._client.open(self._url, headers)
        try:
            self._is_over = response.status == 204
            if self._is_over:
                return
            if response.content_type != "text/event-stream":
                raise RemoteError(f"the answer is {response.content_type}, not text/event-stream", masked(self._url))
            if self._seen is not None:
                self._expected = self._seen.saved()
            self._seen, again = None, Seen()
            stream = EventStream(masked(self._url), self.number, self._client.asking.most, self._id)
            while piece := await self._client.piece(response, self._url):
                self._healing.progress()
                self._client.counters.bytes_read += len(piece)
                for event, has_id in stream.feed(piece):
                    if self._is_new(event, has_id, again):
                        yield self._given(event, has_id)
                self._retry = self._retry if stream.retry_seconds is None else stream.retry_seconds
            if not self._id and again.size < self._expected[0]:
                raise self._changed()
        finally:
            response.close()

    def _is_new(self, event: ServerSentEvent, has_id: bool, again: Seen) -> bool:
        """Tell whether an event has not been given; those that have, since the last id, come again first."""
        if self._seen is not None:
            return True
        if (has_id and self._id) or again.size >= self._expected[0]:
            self._seen = again
            return True
        again.add(_bytes(event))
        if again.differs_from(self._expected):
            raise self._changed()
        return False

    def _given(self, event: ServerSentEvent, has_id: bool) -> tuple[ServerSentEvent, list[Any], list[Any]]:
        assert self._seen is not None
        content = _bytes(event)
        checksum = blake2b(content, digest_size=8).hexdigest()
        if self._next not in ("", checksum):
            raise self._changed()
        self._next = ""
        before = [*self.where()[:-1], checksum]
        if has_id:
            self._id, self._seen = event.id, Seen()
        else:
            self._seen.add(content)
        self.number += 1
        return event, before, self.where()

    def _changed(self) -> Changed:
        behind = f"behind the id {self._id!r}" if self._id else "and they have no ids behind which it could go on"
        return Changed(
            "the stream cannot be gone on with: asked again, the server gives other events than before, " + behind,
            masked(self._url),
        )


def _bytes(event: ServerSentEvent) -> bytes:
    return "\0".join((*event, "\n")).encode("utf-8", "surrogatepass")


def _position(before: Any, after: Any) -> list[Any]:
    return [before, after]


def _place(name: str, number: int, offset: int) -> str:
    return f"{name} event {number + offset}"
