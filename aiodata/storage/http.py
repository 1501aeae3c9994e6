"""Files behind `http://` and `https://` URLs, through aiohttp."""

from __future__ import annotations

import os
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiodata.errors import RemoteError
from aiodata.extras import load
from aiodata.storage.healing import Trouble
from aiodata.storage.http_headers import check_of, check_status, content_range, tag_of
from aiodata.storage.masking import masked
from aiodata.storage.protocol import Answer, FileInfo, Storage

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpStorage"]

BUFFER_BYTES = 256 * 1024
_COMPRESSED_NAMES = (".gz", ".gzip", ".tgz")


class HttpStorage(Storage):
    """Reads what HTTP servers give, in ranges of bytes where they know those.

    A server that ignores ranges is read from the beginning, what is not wanted is dropped, and nothing is read ahead.
    So is one that compresses in transfer, which is undone; a file that is itself compressed, by its name (`.gz`), stays
    so. Checksums that an answer brings (Content-Digest and Repr-Digest of RFC 9530, Content-MD5, x-goog-hash) are
    verified. Proxies and logins come from the environment and from `.netrc`, as curl reads them.

    Args:
        headers: Headers for every request, such as Authorization; or a function that gives them, which is asked again
            when a server answers 401 or 403. It is called on the network's loop, and may be `async def`.
        session: Further arguments of `aiohttp.ClientSession`.
    """

    def __init__(self, headers: Mapping[str, str] | Callable[[], Any] | None = None, **session: Any) -> None:
        self._aiohttp = load("aiohttp", "http", "reading URLs")
        self._given = headers
        self._headers: Mapping[str, str] | None = None
        self._arguments = session
        self._session: aiohttp.ClientSession | None = None

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        """Ask for bytes of a file; see `Storage.open`."""
        last = "" if length is None else offset + length - 1
        ranged = offset > 0 or length is not None
        response = await self._get(url, {"Range": f"bytes={offset}-{last}"} if ranged else {})
        try:
            if response.status == 416:
                size = content_range(response.headers)[1]
                if size is None:
                    raise RemoteError("the server refuses the range and does not tell the size", masked(url), offset)
                response.close()
                return Answer(FileInfo(size, ""), _nothing(), offset)
            check_status(response.status, response.headers, response.reason, url)
            coding = self._coding(response, url)
            if response.status == 206:
                begin, size = content_range(response.headers)
                if not coding and size is not None and begin is not None:
                    if begin != offset:
                        raise Trouble(f"the answer is for another range, which begins at byte {begin}")
                    info = FileInfo(size, tag_of(response.headers))
                    whole = begin == 0 and response.content_length == size
                    return Answer(info, self._pieces(response), offset, check=check_of(response.headers, whole))
                response.close()  # a range of a compressed file, or of one whose size is not told, is of no use
                response = await self._get(url, {})
                check_status(response.status, response.headers, response.reason, url)
                coding = self._coding(response, url)
            size = None if coding else response.content_length
            info = FileInfo(size, tag_of(response.headers))
            check = None if coding else check_of(response.headers, True)
            return Answer(info, self._pieces(response, coding), 0, is_range=False, check=check)
        except BaseException:
            response.close()
            raise

    async def list(self, pattern: str) -> list[str]:
        """Give the URL itself if there is such a file; HTTP has no listings."""
        if "*" in urlsplit(pattern).path:
            raise ValueError(f"{masked(pattern)}: HTTP has no listing of files, so a URL can have no wildcards")
        with suppress(FileNotFoundError):
            await self.info(pattern)
            return [pattern]
        return []

    async def renew(self) -> bool:
        """Ask for the headers anew."""
        self._headers = None
        return callable(self._given)

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _get(self, url: str, headers: dict[str, str]) -> aiohttp.ClientResponse:
        import yarl

        given = await self._all_headers()
        plain = url.isascii() and " " not in url
        try:
            return await self._open_session().get(yarl.URL(url, encoded=plain), headers={**given, **headers})
        except Exception as error:
            raise self._fault(error, url) from error

    async def _all_headers(self) -> Mapping[str, str]:
        if self._headers is None:
            found: Any = self._given() if callable(self._given) else self._given
            self._headers = (await found if hasattr(found, "__await__") else found) or {}
        return self._headers or {}

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            client = self._aiohttp
            arguments = {
                "connector": client.TCPConnector(limit=0),  # requests are limited before they get here
                "auto_decompress": False,
                "timeout": client.ClientTimeout(total=None),
                "trust_env": _is_told_by_environment(),
                "read_bufsize": BUFFER_BYTES,
                "headers": {"Accept-Encoding": "identity", "User-Agent": "aiodata"},
            }
            self._session = client.ClientSession(**{**arguments, **self._arguments})
        return self._session

    def _coding(self, response: aiohttp.ClientResponse, url: str) -> str:
        """Tell how the server has compressed what it sends; "" if it has not, or if the file itself is meant."""
        coding = response.headers.get("Content-Encoding", "").strip().lower()
        if coding in ("", "identity") or ("gzip" in coding and urlsplit(url).path.lower().endswith(_COMPRESSED_NAMES)):
            return ""
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise RemoteError(f"the server compresses by {coding!r}, which was not asked for", masked(url))
        return coding

    async def _pieces(self, response: aiohttp.ClientResponse, coding: str = "") -> AsyncIterator[bytes]:
        """Give the body as it comes, uncompressed."""
        undo = zlib.decompressobj(wbits=47 if coding != "deflate" else 15) if coding else None
        try:
            async for piece in response.content.iter_any():
                yield piece if undo is None else undo.decompress(piece)
            if undo is not None and not undo.eof:
                raise Trouble("the compressed answer is cut short")
        except Exception as error:
            raise self._fault(error, str(response.url)) from error
        finally:
            response.close()

    def _fault(self, error: Exception, url: str) -> BaseException:
        """Give what an error of aiohttp's means."""
        client = self._aiohttp
        if isinstance(error, (Trouble, TimeoutError)):
            return error
        if isinstance(error, (client.InvalidURL, ValueError)) and not isinstance(error, client.ClientPayloadError):
            return ValueError(f"{masked(url)}: this is no URL that can be read: {type(error).__name__}")
        if isinstance(error, client.ClientConnectorCertificateError):
            return RemoteError(f"the server's certificate is refused: {type(error).__name__}", masked(url))
        if isinstance(error, client.TooManyRedirects):
            return RemoteError("there are too many redirects", masked(url))
        if isinstance(error, (client.ClientError, OSError, zlib.error)):
            return Trouble(f"{type(error).__name__}: {error}".replace(url, masked(url)))
        return error


def _is_told_by_environment() -> bool:
    """Tell whether the environment names proxies, or there are logins; aiohttp looks in a thread at each request."""
    from urllib.request import getproxies  # takes a while to import

    netrc = os.environ.get("NETRC") or os.path.join(os.path.expanduser("~"), "_netrc" if os.name == "nt" else ".netrc")
    return bool(getproxies()) or os.path.exists(netrc)


async def _nothing() -> AsyncIterator[bytes]:
    """Give no bytes."""
    return
    yield b""
