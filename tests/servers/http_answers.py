"""What the HTTP server for tests is asked, and its good answers."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import unquote

if TYPE_CHECKING:
    from tests.servers.http_connection import Body

PIECE_BYTES = 1 << 18

Handler = Callable[["Body", "Request"], Awaitable[None]]
How = Literal["reset", "close", "silence"]
Digest = Literal["content-digest", "repr-digest", "content-md5", "x-goog-hash"]


@dataclass(frozen=True)
class Request:
    """A request that came."""

    method: str
    path: str
    """As it was sent, with its query."""
    headers: dict[str, str]
    """By lower-case names."""
    body: bytes = b""
    time: float = field(default_factory=time.monotonic)

    @classmethod
    def parse(cls, head: bytes, body: bytes = b"") -> Self:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines if line)
        return cls(method, path, {name.lower(): value.strip() for name, _, value in pairs}, body)

    @property
    def range(self) -> tuple[int, int | None] | None:
        """(5, 9) for `bytes=5-9`, (5, None) for `bytes=5-`, (-5, None) for `bytes=-5`."""
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("range", ""))
        if found is None or found[0] == "bytes=-":
            return None
        first, last = found.groups()
        return (int(first), int(last) if last else None) if first else (-int(last), None)

    @property
    def file(self) -> str:
        """What the request is about: its path, decoded, without the query."""
        return unquote(self.path.partition("?")[0])


@dataclass
class Plan:
    """How the good answer is to be made."""

    range: tuple[int, int | None] | None
    ranges: bool
    chunked: bool
    compressed: bool
    compressed_ranges: bool = False
    content: bytes | None = None
    """Put in the file's place, from now on."""


@dataclass
class Answer:
    """An answer, and how it is sent."""

    status: int = 200
    headers: dict[str, str | None] = field(default_factory=dict)
    """By lower-case names; `None` leaves out a header that would be sent otherwise."""
    body: bytes = b""
    first: int = 0
    """Where in the file the body begins."""
    chunked: bool = False
    handler: Handler | None = None
    """Writes the body, if it is not known before."""
    instead: bytes | None = None
    """Sent instead of all this."""
    piece_bytes: int = PIECE_BYTES
    piece_seconds: float = 0.0
    ending: How | None = None
    ending_at: int = 0
    """After so many bytes of the body; -1: before the answer."""
    pause_seconds: float = 0.0
    """How long the client has for reading what came before the ending."""


def answer_file(content: bytes, plan: Plan, request: Request, marks: dict[str, str], digest: Digest | None) -> Answer:
    """Answer with a file or a range of it; `marks` are the headers that tell its versions apart."""
    headers: dict[str, str | None] = {**marks, "content-type": "application/octet-stream"}
    whole, ranges = content, plan.ranges
    if plan.compressed:
        whole, ranges = gzip.compress(content, mtime=0), ranges and plan.compressed_ranges
        headers["content-encoding"] = "gzip"
        if "etag" in marks and not ranges:
            headers["etag"] = "W/" + marks["etag"]
    if ranges:
        headers["accept-ranges"] = "bytes"
    if not _matches(request, "if-match", marks.get("etag")):
        return Answer(412)
    if not _matches(request, "if-unmodified-since", marks.get("last-modified")):
        return Answer(412)
    if_range = request.headers.get("if-range")
    if plan.range is None or not ranges or if_range not in (None, marks.get("etag"), marks.get("last-modified")):
        return Answer(200, headers | _digests(digest, content, whole, whole, request.method), whole)
    first, last = plan.range
    first = max(0, len(whole) + first) if first < 0 else first
    last = len(whole) - 1 if last is None else min(last, len(whole) - 1)
    if first > last:
        return Answer(416, {"content-range": f"bytes */{len(whole)}"})
    body = whole[first : last + 1]
    headers["content-range"] = f"bytes {first}-{last}/{len(whole)}"
    return Answer(206, headers | _digests(digest, content, whole, body, request.method), body, first)


def _matches(request: Request, condition: str, mark: str | None) -> bool:
    wanted = request.headers.get(condition)
    return wanted is None or wanted == "*" or wanted == mark


def _digests(digest: Digest | None, content: bytes, whole: bytes, body: bytes, method: str) -> dict[str, str | None]:
    """Give the checksum header of an answer: that of the whole file needs no look at its range."""
    if digest == "content-digest":  # of what is sent, which is nothing if only the head is
        return {digest: f"sha-256=:{_base64(hashlib.sha256(b'' if method == 'HEAD' else body).digest())}:"}
    if digest == "repr-digest":
        return {digest: f"sha-256=:{_base64(hashlib.sha256(whole).digest())}:"}
    if digest == "content-md5" and body is whole:  # servers do not agree on what it says of a range
        return {digest: _base64(hashlib.md5(whole).digest())}
    if digest == "x-goog-hash":
        import google_crc32c

        crc = google_crc32c.value(content).to_bytes(4, "big")
        return {digest: f"crc32c={_base64(crc)},md5={_base64(hashlib.md5(content).digest())}"}
    return {}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
