"""Server-sent events: the format `text/event-stream` of the HTML standard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from aiodata.errors import CorruptRecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EventStream", "ServerSentEvent"]

_END = re.compile(rb"\r\n|\r|\n")


class ServerSentEvent(NamedTuple):
    """A server-sent event."""

    event: str
    """Its kind; "message" where the server says none."""
    data: str
    """Its lines of data, joined by newlines."""
    id: str
    """The last id that the server has given, with this event or before; "" for none."""


class EventStream:
    r"""Finds the events in a stream of bytes, as soon as they are complete.

    Args:
        path: The stream's name, for errors.
        number: Number of the first event, for errors.
        most: Bytes that a line, and all data of an event together, may have.
        last_id: The last id that was given before.

    >>> stream = EventStream("feed", 0, 100)
    >>> [list(stream.feed(piece)) for piece in (b"id: 7\rdata: a\r\ndata", b": b\n\n:\nretry:5\n\n")]
    [[], [(ServerSentEvent(event='message', data='a\nb', id='7'), True)]]
    >>> stream.retry_seconds
    0.005
    """

    def __init__(self, path: str, number: int, most: int, last_id: str = "") -> None:
        self.retry_seconds: float | None = None
        """How long the server wants a client to wait that comes back."""
        self._path, self._number, self._most = path, number, most
        self._held: list[bytes] = []
        """What has come of a line without its end."""
        self._held_size = 0
        self._after_return = False
        """Whether the last byte was a carriage return, so that a newline now belongs to it."""
        self._is_first = True
        self._event = ""
        self._data: list[str] = []
        self._data_size = 0
        self._id = last_id
        self._has_id = False

    def feed(self, piece: bytes) -> Iterator[tuple[ServerSentEvent, bool]]:
        """Take the next bytes; give the events that are complete, and whether each has an id of its own.

        Raises:
            CorruptRecordError: A line or an event is too long.
        """
        if self._after_return and piece:
            self._after_return = False
            piece = piece.removeprefix(b"\n")
        if _END.search(piece) is None:
            self._hold(piece)
            return
        *lines, rest = _END.split(b"".join(self._held) + piece)
        self._after_return = piece.endswith(b"\r")
        self._held, self._held_size = [], 0
        for line in lines:
            if line:
                self._take(line)
            elif (event := self._complete()) is not None:
                yield event
            self._is_first = False
        self._hold(rest)

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._held.append(piece)
            self._held_size += len(piece)
            self._check(self._held_size)

    def _take(self, line: bytes) -> None:
        """Take a line that is not empty."""
        text = line.decode("utf-8", "replace")
        if self._is_first:
            text = text.removeprefix("\ufeff")
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_size += len(line)
            self._check(self._data_size)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id, self._has_id = value, value != ""
        elif name == "retry" and value.isascii() and value.isdigit() and len(value) < 16:
            self.retry_seconds = int(value) / 1000

    def _complete(self) -> tuple[ServerSentEvent, bool] | None:
        """Give the event that an empty line ends; None if it has no data."""
        found = None
        if self._data:
            found = ServerSentEvent(self._event or "message", "\n".join(self._data), self._id), self._has_id
            self._number += 1
            self._has_id = False
        self._event, self._data, self._data_size = "", [], 0
        return found

    def _check(self, size: int) -> None:
        if size > self._most:
            raise CorruptRecordError(
                f"the event is longer than {self._most} bytes, which max_record_bytes allows", self._path, self._number
            )
