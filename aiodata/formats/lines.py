"""Content cut into blocks of whole lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LineBlocks"]

BLOCK_BYTES = 64 * 1024
"""About how many bytes become one block: reading JSON from them takes some milliseconds. A longer line is one, too."""


class LineBlocks:
    r"""Gathers pieces of content and gives them back in blocks that end with a line.

    >>> blocks = LineBlocks()
    >>> list(blocks.feed(b"one\ntwo\nthr")), blocks.rest()
    ([b'one\ntwo\n'], b'thr')
    """

    def __init__(self) -> None:
        self._held: list[bytes] = []
        """What has been fed of a line without its end."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece and give the lines that are complete, with their ends."""
        self._held.append(piece)
        if b"\n" not in piece:
            return
        text = b"".join(self._held)
        end = text.rfind(b"\n") + 1
        self._held = [text[end:]] if end < len(text) else []
        begin = 0
        while begin < end:
            stop = _stop(text, begin, end)
            yield text[begin:stop]
            begin = stop

    def rest(self) -> bytes:
        """Give the last line, if it has no end; else b""."""
        return b"".join(self._held)


def _stop(text: bytes, begin: int, end: int) -> int:
    """Give where the block that begins at `begin` stops: behind the end of a line, at `end` at the latest."""
    if end - begin <= BLOCK_BYTES * 3 // 2:
        return end
    return text.rfind(b"\n", begin, begin + BLOCK_BYTES) + 1 or text.index(b"\n", begin) + 1
