"""Files behind `http://` and `https://` URLs, through aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiodata.errors import CorruptRecordError, RemoteError
from aiodata.extras import load
from aiodata.formats.compression import Decompressor
from aiodata.storage.kinds.http_client import fault_of, new_session, send
from aiodata.storage.kinds.http_headers import (
    REFUSED,
    check_of,
    check_status,
    content_range,
    has_parts,
    range_stop,
    tag_of,
)
from aiodata.storage.masking import masked
from aiodata.storage.protocol import Answer, FileInfo, Storage, close_pieces
from aiodata.storage.transfer.healing import IDLE_SECONDS, Trouble

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpStorage"]

BUFFER_BYTES = 256 * 1024
_COMPRESSED_NAMES = (".gz", ".gzip", ".tgz")
_CODINGS = {"gzip": "GZIP", "x-gzip": "GZIP", "deflate": "ZLIB"}


class HttpStorage(Storage):
    """Reads what HTTP servers give, in ranges of bytes where they know those.

    A server that ignores ranges is read from the beginning, what is not wanted is dropped, and nothing is read ahead.
    So is one that compresses in transfer, which is undone; a file that is itself compressed, by its name (`.gz`), stays
    so. Checksums that an answer brings are verified before anything of it is given: Content-Digest (RFC 9530); those
    of all of a file, Repr-Digest, Content-MD5 and x-goog-hash, if one answer has all of it. Proxies and logins come
    from the environment and from `.netrc`, as curl reads them.

    A prefix that it is registered for is compared as text: one with a path before `..` in a URL is resolved, and a URL
    with a login (`https://ann:pw@host/a`) needs a prefix that has it too.

    Args:
        headers: Headers for every request, such as Authorization; or a function that gives them, which is asked again
            when a server answers 401 or 403. It is called on the network's loop, and may be `async def`. Another origin
            that a URL is redirected to does not get them. They replace headers of the same name that this library
            sends, such as Accept-Encoding.
        session: Further arguments of `aiohttp.ClientSession`.
    """

    def __init__(self, headers: Mapping[str, str] | Callable[[], Any] | None = None, **session: Any) -> None:
        load("aiohttp", "http", "reading URLs")
        self._given = headers
        self._headers: Mapping[str, str] | None = None
        self._asking = asyncio.Lock()
        self._arguments = session
        self._session: aiohttp.ClientSession | None = None

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        """Ask for bytes of a file; see `Storage.open`."""
        last = "" if length is None else offset + length - 1
        if offset > 0 or length is not None:
            response = await self._get(url, {"Range": f"bytes={offset}-{last}"})
            try:
                answer = self._range(response, url, offset)
            except BaseException:
                response.close()
                raise
            if answer is not None:
                return answer
            response.close()  # a range of what is compressed, or whose size is not told, is of no use
        response = await self._get(url, {})
        try:
            return self._whole(response, url)
        except BaseException:
            response.close()
            raise

    def _range(self, response: aiohttp.ClientResponse, url: str, offset: int) -> Answer | None:
        """Give the answer to a request for a range; None if all has to be asked for."""
        begin, size = content_range(response.headers)
        if response.status == 416:
            if size != offset:  # it is not the end: the size may be that of what is compressed in transfer
                return None
            response.close()
            return Answer(FileInfo(size, ""), _nothing(), offset)
        if response.status != 206:
            return self._whole(response, url)
        if size is None or begin is None or self._coding(response, url) or has_parts(response.headers):
            return None
        if begin != offset:
            raise Trouble(f"the answer is for another range, which begins at byte {begin}")
        is_whole = begin == 0 and response.content_length == size
        check = check_of(response.headers, is_whole)
        return Answer(
            FileInfo(size, tag_of(response.headers)),
            _Body(response),
            offset,
            check=check,
            stop=range_stop(response.headers),
        )

    def _whole(self, response: aiohttp.ClientResponse, url: str) -> Answer:
        check_status(response.status, response.headers, response.reason, url)
        if response.status == 206:
            raise RemoteError("the server gave a part of the content, where all was asked for", masked(url))
        coding = self._coding(response, url)
        info = FileInfo(None if coding else response.content_length, tag_of(response.headers))
        check = None if coding else check_of(response.headers, True)
        return Answer(info, _Body(response, coding), 0, is_range=False, check=check)

    async def list(self, pattern: str) -> list[str]:
        """Give the URL itself if there is such a file; HTTP has no listings."""
        if "*" in urlsplit(pattern).path:
            raise ValueError(f"{masked(pattern)}: HTTP has no listing of files, so a URL can have no wildcards")
        with suppress(FileNotFoundError):
            async with asyncio.timeout(IDLE_SECONDS):
                await close_pieces(await self.open(pattern, 0, 1))
            return [pattern]
        return []

    async def renew(self) -> bool:
        """Tell whether there is a function that gives headers; a request that was refused has forgotten its own."""
        return callable(self._given)

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _get(self, url: str, headers: dict[str, str]) -> aiohttp.ClientResponse:
        given = await self._all_headers()
        try:
            response = await send(self._open_session(), "GET", url, {**given, **headers}, given)
        except Exception as error:
            fault = fault_of(error, url)
        else:
            if response.status in REFUSED and self._headers is given and callable(self._given):
                self._headers = None  # once for all requests that were made with it
            return response
        try:
            raise fault
        finally:
            del fault  # else it and this frame, which its traceback holds, would be a cycle

    async def _all_headers(self) -> Mapping[str, str]:
        if self._headers is not None:
            return self._headers
        async with self._asking:
            if self._headers is None:
                found: Any = self._given() if callable(self._given) else self._given
                self._headers = (await found if hasattr(found, "__await__") else found) or {}
            return self._headers

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            plain = {"Accept-Encoding": "identity", "User-Agent": "aiodata"}
            arguments = {"auto_decompress": False, "read_bufsize": BUFFER_BYTES, "headers": plain, **self._arguments}
            self._session = new_session("reading URLs", **arguments)
        return self._session

    def _coding(self, response: aiohttp.ClientResponse, url: str) -> str:
        """Tell how the server has compressed what it sends; "" if it has not, or if the file itself is meant."""
        coding = response.headers.get("Content-Encoding", "").strip().lower()
        if coding in ("", "identity") or ("gzip" in coding and urlsplit(url).path.lower().endswith(_COMPRESSED_NAMES)):
            return ""
        if coding not in _CODINGS:
            raise RemoteError(f"the server compresses by {coding!r}, which was not asked for", masked(url))
        return _CODINGS[coding]


class _Body(AsyncIterator[bytes]):
    """The body of a response as it comes, uncompressed; the response is closed with it, also if none has been taken.

    Args:
        response: The response.
        coding: How it is compressed: "", "GZIP" or "ZLIB".
    """

    def __init__(self, response: aiohttp.ClientResponse, coding: str = "") -> None:
        self._response = response
        self._undo = Decompressor(coding, "the answer") if coding else None

    async def __anext__(self) -> bytes:
        try:
            piece = await self._response.content.readany() if self._undo is None else await self._uncompressed()
        except CorruptRecordError as error:
            fault: Exception = Trouble(f"its compression is damaged or cut short: {error}")
        except Exception as error:
            # aiohttp keeps it in the response, which this frame has: a cycle, but for this.
            fault = fault_of(error.with_traceback(None), str(self._response.url))
        else:
            if piece:
                return piece
            raise StopAsyncIteration
        try:
            raise fault
        finally:
            del fault  # as in `_get`

    async def _uncompressed(self) -> bytes:
        assert self._undo is not None
        while True:
            while self._undo.is_fed:
                if piece := self._undo.read():
                    return piece
            if not (data := await self._response.content.readany()):
                self._undo.finish()
                return b""
            self._undo.feed(data)

    async def aclose(self) -> None:
        self._response.close()


async def _nothing() -> AsyncIterator[bytes]:
    """Give no bytes."""
    return
    yield b""
