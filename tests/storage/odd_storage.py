"""A storage that answers as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiodata.engine.statistics import Counters
from aiodata.storage import Answer, FileInfo, Storage
from aiodata.storage.transfer.download import Download
from aiodata.storage.transfer.network import Limits
from tests.storage.remote_files import TEXT, quick

URL = "odd://host/a"
Open = Callable[[int, "int | None"], Awaitable[Answer]]


class Odd(Storage):
    """Opens what a function gives."""

    def __init__(self, opening: Open) -> None:
        self.opening = opening
        self.opened: list[tuple[int, int | None]] = []

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        self.opened.append((offset, length))
        return await self.opening(offset, length)


async def pieces(*parts: bytes | BaseException) -> AsyncIterator[bytes]:
    """Give bytes, or raise."""
    for part in parts:
        if isinstance(part, BaseException):
            raise part
        yield part


async def good(offset: int, length: int | None) -> Answer:
    """Answer with what was asked for."""
    data = TEXT[offset:] if length is None else TEXT[offset : offset + length]
    return Answer(FileInfo(len(TEXT), "tag"), pieces(data), offset)


def download(storage: Storage, limits: Limits | None = None, **options: Any) -> Download:
    """Begin to read with it, on this loop."""
    return Download(storage, URL, quick(**options), Counters("x"), limits or Limits())


async def content(reading: Download) -> bytes:
    """Read all that is left."""
    data = b""
    while part := await reading.take(100):
        data += part
    return data
