"""What a kind of remote storage has to do; one class for each, chosen by the scheme of a URL."""

from __future__ import annotations

import asyncio
import io
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.options import StorageOptions

__all__ = ["Answer", "FileInfo", "Storage", "Upload", "close_pieces"]

CLOSE_SECONDS = 5.0
_HOST = re.compile(r"[^/?#]*//[^/?#]*")


@dataclass(frozen=True)
class FileInfo:
    """What is known of a file.

    Args:
        size: Its number of bytes; None where the server does not say, and so gives the whole file only.
        tag: Tells this content from another under the same name, such as an ETag; "" where the server does not say.
    """

    size: int | None = None
    tag: str = ""


@dataclass
class Answer:
    """What came for a request of some bytes.

    Args:
        info: The file.
        pieces: The bytes, as they come. It is closed by whoever reads it if it has `aclose`.
        offset: Where in the file they begin: at the byte that was asked for, or before it.
        is_range: True if this is only what was asked for. False if it is the file from `offset` to its end, because the
            server cannot give parts; the reader drops what it does not need then, and reads nothing ahead.
        check: A function that compares a checksum, if the server sends one. It is called with each piece in order and
            then once with b"" for the end; it raises `Trouble` if the bytes are damaged, and they are asked for again.
        stop: The byte behind the last one that the answer says it has, which may be before what was asked for; None
            where it does not say.
    """

    info: FileInfo
    pieces: AsyncIterator[bytes]
    offset: int
    is_range: bool = True
    check: Callable[[bytes], None] | None = None
    stop: int | None = None


class Upload(Protocol):
    """A new file, which is not seen under its name before it is complete; one task writes it.

    What raises `Trouble` is called again with the same data, so it must have taken none of it. Only listing and
    deleting are limited in time from outside: an upload must end by itself where a server is silent.
    """

    async def write(self, data: bytes, /) -> None:
        """Write more of it."""
        ...

    async def commit(self) -> None:
        """Put it in its place, in place of what may be there."""
        ...

    async def discard(self) -> None:
        """Give it up: nothing of it is left, and what was there stays. Harmless after `commit`, done or failed."""
        ...


class Storage(ABC):
    r"""A kind of remote storage.

    Its methods are called on one event loop, a private one of aiodata's, many at once, and each may be cancelled at any
    time: whatever it has begun has to end then. They raise

    - `FileNotFoundError`, `PermissionError` and other `OSError`s for what will not pass;
    - `Trouble`, `ConnectionError` or `TimeoutError` for what may. The request is repeated then, from the last byte that
      came. So no method has to repeat anything itself.

    URLs in messages should be `masked`.

    Only `open` has to be there. Without `info` a file is looked up by asking for its first byte. Without `list`
    patterns are an `io.UnsupportedOperation`, and a URL without wildcards is looked up by `info`. Without `create`
    nothing can be written, and without `delete` what a save replaces is left there. Without `renew` a refusal is final,
    without `host` what is between `://` and the next `/` counts as one host, and without `aclose` nothing is closed.

    >>> from functools import partial
    >>> from aiodata import TextLineDataset, storage
    >>> class Shelf(storage.Storage):
    ...     def __init__(self, files):
    ...         self.files = files
    ...     async def open(self, url, offset, length):
    ...         if url not in self.files:
    ...             raise FileNotFoundError(2, "there is no such file", storage.masked(url))
    ...         data = self.files[url]
    ...         async def pieces():
    ...             yield data[offset:] if length is None else data[offset : offset + length]
    ...         return storage.Answer(storage.FileInfo(len(data)), pieces(), offset)
    >>> storage.register("shelf", partial(Shelf, {"shelf://a.txt": b"one\ntwo"}))
    >>> list(TextLineDataset("shelf://a.txt"))
    [b'one', b'two']
    """

    @abstractmethod
    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        """Ask for bytes of a file.

        Args:
            url: The file.
            offset: The first byte, 0 or more.
            length: How many, at least 1; None for all that follow. Behind the end of the file there are fewer, or none,
                which is no error.
        """

    async def info(self, url: str) -> FileInfo:
        """Look a file up."""
        answer = await self.open(url, 0, 1)
        await close_pieces(answer)
        return answer.info

    async def list(self, pattern: str) -> list[str]:
        """List the URLs that match a pattern, sorted; none is no error.

        Args:
            pattern: As `tf.io.gfile.glob` takes it: `*`, `?` and `[...]` do not cross a `/`.
        """
        if not any(wildcard in pattern for wildcard in "*?["):
            with suppress(FileNotFoundError):
                await self.info(pattern)
                return [pattern]
            return []
        raise io.UnsupportedOperation(f"{masked(pattern)}: files of this kind cannot be listed")

    async def create(self, url: str, options: StorageOptions) -> Upload:
        """Begin a new file.

        Args:
            url: The file.
            options: The limits for what the upload repeats, or waits for, by itself.
        """
        raise io.UnsupportedOperation(f"{masked(url)}: files of this kind cannot be written")

    async def delete(self, url: str) -> None:
        """Remove a file; one that is not there is no error."""
        raise io.UnsupportedOperation(f"{masked(url)}: files of this kind cannot be removed")

    async def renew(self) -> bool:
        """Ask for credentials anew, after a request was refused; tell whether there are any to ask for."""
        return False

    def host(self, url: str) -> str:
        """Name what `requests_per_host` counts for a URL."""
        found = _HOST.match(url)
        return url if found is None else found[0]

    async def aclose(self) -> None:  # noqa: B027 - nothing has to be closed
        """Close connections. No request is under way."""


async def close_pieces(answer: Answer) -> None:
    """End an answer that need not have been read to its end; what fails or hangs there changes nothing any more."""
    close = getattr(answer.pieces, "aclose", None)
    if close is not None:
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_SECONDS):
                await close()
