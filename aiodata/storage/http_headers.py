"""What the headers of HTTP answers say: trouble, ranges, tags, checksums (RFC 9110, RFC 9530)."""

from __future__ import annotations

import base64
import errno
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from aiodata.errors import RemoteError
from aiodata.storage.healing import Trouble
from aiodata.storage.masking import masked

__all__ = ["check_of", "check_status", "content_range", "retry_after", "tag_of"]

MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE = re.compile(r"\s*bytes\s+(?:(\d+)-(\d+)|\*)/(\d+|\*)\s*")
_DIGEST = re.compile(r"(sha-256|sha-512)=:([A-Za-z0-9+/=]*):")


def check_status(status: int, headers: Mapping[str, str], reason: str | None, url: str) -> None:
    """Make sure that an answer is one with content.

    Raises:
        Trouble: It may be another one next time.
        FileNotFoundError, PermissionError, RemoteError: It will not.
    """
    if status in (200, 206):
        return
    text = f"{status} {reason or ''}".strip()
    if status in MAY_PASS:
        raise Trouble(f"the server answered {text}", retry_after(headers))
    if status in (404, 410):
        raise FileNotFoundError(errno.ENOENT, f"the server answered {text}", masked(url))
    if status in (401, 403, 407):
        raise PermissionError(errno.EACCES, f"the server answered {text}", masked(url))
    raise RemoteError(f"the server answered {text}", masked(url))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Give how many seconds a server asks to wait; None if it does not.

    >>> retry_after({"Retry-After": "7"})
    7.0
    """
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def content_range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Give the first byte of an answer's range, and the size of the file; None for what is not told."""
    found = _RANGE.fullmatch(headers.get("Content-Range", ""))
    if found is None:
        return None, None
    begin, _, size = found.groups()
    return None if begin is None else int(begin), None if size == "*" else int(size)


def tag_of(headers: Mapping[str, str]) -> str:
    """Give what tells a content from another under the same URL; "" if there is nothing."""
    return headers.get("ETag", "").strip().removeprefix("W/") or headers.get("Last-Modified", "").strip()


def check_of(headers: Mapping[str, str], is_whole: bool) -> Callable[[bytes], None] | None:
    """Give what verifies the content of an answer by the checksums that came with it; None if there are none.

    Args:
        headers: The answer's.
        is_whole: Whether it has the whole file; only then a checksum of the file counts.
    """
    wanted: list[tuple[Any, bytes]] = []
    digests = headers.get("Content-Digest", "") + ("," + headers.get("Repr-Digest", "") if is_whole else "")
    wanted += [(hashlib.new(name.replace("-", "")), _bytes(value)) for name, value in _DIGEST.findall(digests)]
    if value := headers.get("Content-MD5"):
        wanted.append((hashlib.md5(usedforsecurity=False), _bytes(value)))
    if is_whole and "X-Goog-Hash" in headers:
        every = headers.getall("X-Goog-Hash") if hasattr(headers, "getall") else [headers["X-Goog-Hash"]]
        for name, _, value in (part.strip().partition("=") for text in every for part in text.split(",")):
            if name == "md5":
                wanted.append((hashlib.md5(usedforsecurity=False), _bytes(value)))
            elif name == "crc32c" and find_spec("google_crc32c"):
                crc32c: Any = import_module("google_crc32c")
                wanted.append((crc32c.Checksum(), _bytes(value)))
    if not wanted:
        return None

    def check(piece: bytes) -> None:
        for digest, expected in wanted:
            if piece:
                digest.update(piece)
            elif digest.digest() != expected:
                raise Trouble("the answer is damaged: it has another checksum than the server says")

    return check


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b"?"  # no checksum at all, which no content has
