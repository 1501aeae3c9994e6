"""The entries of an HTTP server's script: each is what is wrong with one answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tests.servers.http_answers import Answer, How, Plan

PAUSE_SECONDS = 0.05


class Fault:
    """What is wrong with an answer."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def plan(self, plan: Plan) -> None:
        """Change how the good answer is made."""

    def spoil(self, answer: Answer) -> None:
        """Change the good answer."""


class Normal(Fault):
    """Nothing is wrong."""


@dataclass(frozen=True)
class Status(Fault):
    """This status instead of the answer."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def spoil(self, answer: Answer) -> None:
        answer.status, answer.body, answer.chunked, answer.handler = self.status, self.body, False, None
        answer.headers = {name.lower(): value for name, value in self.headers.items()}


@dataclass(frozen=True)
class Headers(Fault):
    """These headers are other ones; `None` leaves one out."""

    headers: Mapping[str, str | None]

    def spoil(self, answer: Answer) -> None:
        answer.headers |= {name.lower(): value for name, value in self.headers.items()}


@dataclass(frozen=True)
class ResetAt(Fault):
    """The connection is reset after so many bytes of the body, and a while in which the client can read these."""

    how: ClassVar[How] = "reset"
    at: int
    pause_seconds: float = PAUSE_SECONDS

    def spoil(self, answer: Answer) -> None:
        answer.ending, answer.ending_at, answer.pause_seconds = self.how, self.at, self.pause_seconds


class CutAt(ResetAt):
    """The connection is closed after so many bytes of the body; a chunked one lacks its last chunk."""

    how = "close"


@dataclass(frozen=True)
class SilentAt(Fault):
    """Nothing comes after so many bytes of the body, until the client goes or the server stops."""

    at: int

    def spoil(self, answer: Answer) -> None:
        answer.ending, answer.ending_at = "silence", self.at


class ResetBefore(Fault):
    """The connection is reset instead of an answer."""

    how: ClassVar[How] = "reset"

    def spoil(self, answer: Answer) -> None:
        answer.ending, answer.ending_at = self.how, -1


class CloseBefore(ResetBefore):
    """The connection is closed instead of an answer."""

    how = "close"


class SilentBefore(ResetBefore):
    """No answer comes, until the client goes or the server stops."""

    how = "silence"


@dataclass(frozen=True)
class WrongByteAt(Fault):
    """The byte at this place of the file has all its bits turned, in an answer that has it."""

    offset: int

    def spoil(self, answer: Answer) -> None:
        body, at = bytearray(answer.body), self.offset - answer.first
        if 0 <= at < len(body):
            body[at] ^= 0xFF
            answer.body = bytes(body)


@dataclass(frozen=True)
class Slowly(Fault):
    """The body comes in pieces of this size, with a while after each."""

    piece_bytes: int
    piece_seconds: float

    def spoil(self, answer: Answer) -> None:
        answer.piece_bytes, answer.piece_seconds = self.piece_bytes, self.piece_seconds


@dataclass(frozen=True)
class Garbage(Fault):
    """These bytes come instead of HTTP, and the connection is closed."""

    data: bytes = b"\x15\x03\x01\x00\x02\x02\x28 this is no HTTP\r\n\r\n"

    def spoil(self, answer: Answer) -> None:
        answer.instead = self.data


class IgnoreRange(Fault):
    """All of the file comes, with status 200."""

    def plan(self, plan: Plan) -> None:
        plan.ranges = False


@dataclass(frozen=True)
class OtherRange(Fault):
    """This range comes, whichever was asked for."""

    first: int
    last: int | None = None

    def plan(self, plan: Plan) -> None:
        plan.range = (self.first, self.last)


@dataclass(frozen=True)
class Replace(Fault):
    """From this request on the file is another one."""

    content: bytes

    def plan(self, plan: Plan) -> None:
        plan.content = self.content


class Chunked(Fault):
    """The body comes in chunks, its length untold."""

    def plan(self, plan: Plan) -> None:
        plan.chunked = True


@dataclass(frozen=True)
class Compressed(Fault):
    """The file is compressed in transfer; `ranges` are of the compressed bytes, else ignored."""

    ranges: bool = False

    def plan(self, plan: Plan) -> None:
        plan.compressed, plan.compressed_ranges = True, self.ranges
