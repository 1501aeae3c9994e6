"""Decompression of a stream of bytes, chunk by chunk, by the standard library's zlib."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from aiodata.errors import CorruptRecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COMPRESSION_TYPES", "Decompressor", "check_compression_type"]

COMPRESSION_TYPES = ("", "GZIP", "ZLIB")
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}
LARGEST_PIECE = 1 << 20


def check_compression_type(compression_type: str | None, method: str) -> str:
    """Give the compression type, "" for None.

    Raises:
        ValueError: It is unknown.
    """
    found = "" if compression_type is None else compression_type
    if found not in COMPRESSION_TYPES:
        raise ValueError(
            f"{method}: compression_type must be one of {', '.join(map(repr, COMPRESSION_TYPES))}, not {found!r}"
        )
    return found


class Decompressor:
    """Decompresses one file; a GZIP file may hold several members, one behind the other (RFC 1952).

    Args:
        compression_type: "GZIP" or "ZLIB".
        path: The file, for errors.
    """

    def __init__(self, compression_type: str, path: str) -> None:
        self._bits = _WINDOW_BITS[compression_type]
        self._members = compression_type == "GZIP"
        self._name = compression_type
        self._path = path
        self._engine = zlib.decompressobj(self._bits)
        self._begun = False
        self._read = 0

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decompress `data`, giving pieces of at most 1 MiB, so that no input makes a huge one.

        Raises:
            CorruptRecordError: The data is not what it says it is.
        """
        self._read += len(data)
        while data:
            if self._engine.eof:
                data = self._next_member(data)
                if not data:
                    return
            self._begun = True
            try:
                piece = self._engine.decompress(data, LARGEST_PIECE)
            except zlib.error as error:
                raise CorruptRecordError(
                    f"the {self._name} data is damaged, or the file is not {self._name}: {error}",
                    self._path,
                    offset=self._read - len(data),
                ) from error
            data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
            if piece:
                yield piece

    def _next_member(self, data: bytes) -> bytes:
        if self._members:
            data = data.lstrip(b"\0")  # tar and tape tools pad with zeros; gzip ignores them
            self._engine = zlib.decompressobj(self._bits)
            self._begun = False
            return data
        raise CorruptRecordError("there is data behind the end of the ZLIB stream", self._path, offset=self._read)

    def finish(self) -> None:
        """Check that the stream is complete.

        Raises:
            CorruptRecordError: The file ends in the middle of its compressed data.
        """
        if self._begun and not self._engine.eof:
            raise CorruptRecordError(
                f"the file ends in the middle of its {self._name} data: it is cut short", self._path, offset=self._read
            )
