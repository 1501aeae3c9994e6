"""The body of an HTTP answer, each byte once and in order, whatever breaks meanwhile."""

from __future__ import annotations

from contextlib import aclosing
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from aiodata.errors import RemoteError
from aiodata.storage.kinds.http_headers import content_range, has_parts
from aiodata.storage.masking import masked
from aiodata.storage.transfer.healing import Trouble

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import aiohttp

    from aiodata.sources._http_client import Client
    from aiodata.storage.transfer.healing import Healing

__all__ = ["Body", "Changed", "Seen"]

HEAD_BYTES = 1024
_BEHIND_END = 416


class Changed(RemoteError):
    """The server gives other content than before."""


class Seen:
    """Content that has come, by its checksum, so that it is known when it comes again.

    >>> seen, again = Seen(), Seen()
    >>> seen.add(b"abc")
    >>> again.add(b"ab")
    >>> again.differs_from(seen.saved())
    False
    >>> again.add(b"d")
    >>> again.differs_from(seen.saved())
    True
    """

    def __init__(self) -> None:
        self.size = 0
        self._head = ""
        """Checksum of the first bytes, once there are enough, so that other content is not read to its end."""
        self._hash = blake2b(digest_size=16)

    def add(self, data: bytes) -> None:
        """Take what has come next."""
        left = HEAD_BYTES - self.size
        if 0 < left <= len(data):
            self._hash.update(data[:left])
            self._head = self._hash.hexdigest()
            data, self.size = data[left:], HEAD_BYTES
        self._hash.update(data)
        self.size += len(data)

    def saved(self) -> list[Any]:
        """Give what identifies it, as JSON."""
        return [self.size, self._head, self._hash.hexdigest() if self.size else ""]

    def differs_from(self, saved: list[Any]) -> bool:
        """Tell whether this cannot be, or become, what was saved."""
        size, head, _ = saved
        if self.size >= size:
            return self.saved() != saved
        return bool(head and self._head and self._head != head)


class Body:
    """The bytes behind a URL from some place on.

    If the server gives a strong ETag, what is missing is asked for by a range, or, from a server that ignores ranges,
    skipped in an answer with the same ETag. Without one all is asked for again, and has to begin with the same bytes.

    Args:
        client: Sends the requests.
        url: What to ask for.
        healing: Waits out what may pass.
        headers: Headers of each request beside the user's.
        offset: The first byte to give.
        proof: What was saved with it: an ETag, or what `Seen.saved` gave of all bytes up to there, or behind; None at
            the beginning.
    """

    def __init__(
        self,
        client: Client,
        url: str,
        healing: Healing,
        headers: dict[str, str],
        offset: int = 0,
        proof: str | list[Any] | None = None,
    ) -> None:
        self.offset = offset
        """The next byte to give."""
        self._client, self._url, self._healing, self._headers = client, url, healing, headers
        self._tag = proof if isinstance(proof, str) else ""
        self._proof = proof if isinstance(proof, list) else None
        self._seen = Seen()
        self._coding = ""
        self._has_ranges = client.asking.method == "GET"

    def proof(self) -> str | list[Any]:
        """Give what tells the content that has come from another one."""
        return self._tag or self._proof or self._seen.saved()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Give the bytes as they come, to the end.

        Raises:
            Changed: The server gives other content than before.
            OSError: They cannot be read.
        """
        while True:
            try:
                async with aclosing(self._attempt()) as pieces:
                    async for piece in pieces:
                        self._healing.progress()
                        self.offset += len(piece)
                        yield piece
                return
            except (Trouble, ConnectionError) as error:
                await self._healing.wait(error, self.offset)

    async def _attempt(self) -> AsyncGenerator[bytes, None]:
        """Ask once for what is missing, and give it."""
        ranged = self.offset > 0 and self._has_ranges and self._tag != "" and not self._coding
        wanted = {"Range": f"bytes={self.offset}-", "If-Range": self._tag} if ranged else {}
        response = await self._client.open(self._url, {**self._headers, **wanted}, _BEHIND_END if ranged else None)
        try:
            if response.status == _BEHIND_END:
                if content_range(response.headers)[1] != self.offset:
                    raise self._changed()
                return
            begin = self._begin_of(response, ranged)
            pieces = self._skipping(response, begin) if self._tag else self._comparing(response)
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        finally:
            response.close()

    def _begin_of(self, response: aiohttp.ClientResponse, ranged: bool) -> int:
        """Give the byte that an answer begins with, after a look at whether it is of the same content."""
        self._coding = response.headers.get("Content-Encoding", "").strip().lower().replace("identity", "")
        tag = response.headers.get("ETag", "").strip()
        if response.status == 206:
            if not ranged:
                raise RemoteError("the server gave a part of the content, where all was asked for", masked(self._url))
            if tag not in ("", self._tag):
                raise self._changed()
            if not tag:
                self._has_ranges = False
                raise Trouble("the server does not say any more whether this is the same file")
            if has_parts(response.headers) or self._coding or content_range(response.headers)[0] != self.offset:
                self._has_ranges = False
                raise Trouble("the server answered with another range than the one that was asked for")
            return self.offset
        if self._tag:
            if tag != self._tag:
                raise self._changed()
        elif self._proof is None and not self._seen.size:
            self._tag = "" if tag.startswith("W/") else tag
        return 0

    async def _skipping(self, response: aiohttp.ClientResponse, begin: int) -> AsyncGenerator[bytes, None]:
        """Give an answer's bytes from the one on that is wanted."""
        while piece := await self._client.piece(response, self._url):
            skipped = min(len(piece), max(0, self.offset - begin))
            begin += len(piece)
            if skipped < len(piece):
                yield piece[skipped:]
        if begin < self.offset:
            raise self._changed()

    async def _comparing(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        """Give an answer's bytes from the one on that is wanted, once those that came before have come again."""
        proof, seen = self._proof or self._seen.saved(), Seen()
        size: int = proof[0]
        held: list[bytes] = []
        while piece := await self._client.piece(response, self._url):
            begin = seen.size
            if begin < size:
                seen.add(piece[: size - begin])
                if seen.differs_from(proof):
                    raise self._changed()
                held.append(piece[max(0, self.offset - begin) :])
                if seen.size < size:
                    continue
                piece, rest = b"".join(held), piece[size - begin :]
                held.clear()
            else:
                rest = piece
            seen.add(rest)
            self._seen, self._proof = seen, None
            if piece:
                yield piece
        if seen.size < size:
            raise self._changed()

    def _changed(self) -> Changed:
        return Changed(
            "what has been given cannot be gone on with: asked again, the server gives other content than before",
            *(masked(self._url), self.offset),
        )
