"""What the headers of HTTP answers say: trouble, ranges, tags, checksums (RFC 9110, RFC 9530)."""

from __future__ import annotations

import base64
import errno
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from aiodata.errors import RemoteError
from aiodata.storage.masking import masked, masked_text
from aiodata.storage.transfer.healing import Trouble

__all__ = ["REFUSED", "check_of", "check_status", "content_range", "has_parts", "range_stop", "retry_after", "tag_of"]

_Wanted: TypeAlias = tuple[Any, bytes]
"""What computes a checksum, and what it has to be."""
MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE = re.compile(r"\s*bytes\s+(?:(\d+)-(\d+)|\*)/(\d+|\*)\s*")
REFUSED = frozenset({401, 403, 407})
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")
_CHECKSUMS = ("Content-Digest", "Repr-Digest", "Content-MD5", "X-Goog-Hash")
_DIGEST = re.compile(r"(sha-256|sha-512)=:([A-Za-z0-9+/=]*):")


def check_status(status: int, headers: Mapping[str, str], reason: str | None, url: str) -> None:
    """Make sure that an answer is one with content.

    Raises:
        Trouble: It may be another one next time.
        FileNotFoundError, PermissionError, RemoteError: It will not.
    """
    if status in (200, 206):
        return
    text = masked_text(f"{status} {reason or ''}".strip())
    if status in MAY_PASS:
        raise Trouble(f"the server answered {text}", retry_after(headers))
    if status in (404, 410):
        raise FileNotFoundError(errno.ENOENT, f"the server answered {text}", masked(url))
    if status in REFUSED:
        raise PermissionError(errno.EACCES, f"the server answered {text}", masked(url))
    raise RemoteError(f"the server answered {text}", masked(url))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Give how many seconds a server asks to wait; None if it does not.

    >>> retry_after({"Retry-After": "7"})
    7.0
    """
    text = headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        when = parsedate_to_datetime(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return None


def content_range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Give the first byte of an answer's range, and the size of the file; None for what is not told."""
    found = _RANGE.fullmatch(headers.get("Content-Range", ""))
    if found is None:
        return None, None
    begin, _, size = found.groups()
    return None if begin is None else int(begin), None if size == "*" else int(size)


def range_stop(headers: Mapping[str, str]) -> int | None:
    """Give the byte behind the last one of an answer's range; None if it is not told."""
    found = _RANGE.fullmatch(headers.get("Content-Range", ""))
    return None if found is None or found[2] is None else int(found[2]) + 1


def has_parts(headers: Mapping[str, str]) -> bool:
    """Tell whether an answer is of several ranges, each behind headers of its own."""
    return headers.get("Content-Type", "").strip().lower().startswith("multipart/byteranges")


def tag_of(headers: Mapping[str, str]) -> str:
    """Give what tells a content from another under the same URL; "" if there is nothing."""
    return headers.get("ETag", "").strip().removeprefix("W/") or headers.get("Last-Modified", "").strip()


def check_of(headers: Mapping[str, str], is_whole: bool) -> Callable[[bytes], None] | None:
    """Give what verifies the content of an answer by the checksums that came with it; None if there are none.

    Args:
        headers: The answer's.
        is_whole: Whether it has the whole file; only then a checksum of the file counts, and Content-MD5, for servers
            do not agree on what it is of in an answer with a range.
    """
    if not any(name in headers for name in _CHECKSUMS):
        return None
    wanted = _digests(headers.get("Content-Digest", ""))
    if is_whole:
        wanted += _digests(headers.get("Repr-Digest", ""))
        wanted += _wanted(_md5, headers.get("Content-MD5", ""))
        wanted += _google_hashes(headers)
    if not wanted:
        return None

    def check(piece: bytes) -> None:
        for digest, expected in wanted:
            if piece:
                digest.update(piece)
            elif digest.digest() != expected:
                raise Trouble("the answer is damaged: it has another checksum than the server says")

    return check


def _digests(value: str) -> list[_Wanted]:
    found = _DIGEST.findall(value)
    return [each for name, value in found for each in _wanted(partial(hashlib.new, name.replace("-", "")), value)]


def _google_hashes(headers: Mapping[str, str]) -> list[_Wanted]:
    """Give what X-Goog-Hash says; it is of the file as it is stored, which may be compressed and come uncompressed."""
    stored = headers.get("X-Goog-Stored-Content-Encoding", "identity").strip().lower()
    if stored not in ("", "identity", headers.get("Content-Encoding", "").strip().lower()):
        return []
    every = headers.getall("X-Goog-Hash", []) if hasattr(headers, "getall") else [headers.get("X-Goog-Hash", "")]
    wanted: list[_Wanted] = []
    for name, _, value in (part.strip().partition("=") for text in every for part in text.split(",")):
        if name == "md5":
            wanted += _wanted(_md5, value)
        elif name == "crc32c" and find_spec("google_crc32c"):
            crc32c: Any = import_module("google_crc32c")
            wanted += _wanted(crc32c.Checksum, value)
    return wanted


def _md5() -> Any:
    return hashlib.md5(usedforsecurity=False)


def _wanted(make: Callable[[], Any], value: str) -> list[_Wanted]:
    """Give the one checksum that a header tells; none if it is none, such as a broken one."""
    try:
        expected, digest = base64.b64decode(value, validate=True), make()
    except ValueError:
        return []
    return [(digest, expected)] if len(expected) == len(digest.digest()) else []
