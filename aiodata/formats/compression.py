"""Decompression of a stream of bytes, chunk by chunk, by the standard library's zlib."""

from __future__ import annotations

import zlib

from aiodata.errors import CorruptRecordError

__all__ = ["COMPRESSION_TYPES", "Decompressor", "check_compression_type", "check_text", "compression_of"]

COMPRESSION_TYPES = ("", "GZIP", "ZLIB")
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}
LARGEST_PIECE = 1 << 20
_GZIP = b"\x1f\x8b\x08"
_ZLIB_TEXT = (b"x\x01", b"x\x9c", b"x\xda")


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


def compression_of(magic: bytes) -> str | None:
    """Tell from a file's first two bytes how it seems to be compressed (RFC 1952, RFC 1950), if it does."""
    if magic == b"\x1f\x8b":
        return "GZIP"
    is_zlib = len(magic) == 2 and magic[0] & 0x0F == 8 and magic[0] >> 4 <= 7 and int.from_bytes(magic, "big") % 31 == 0
    return "ZLIB" if is_zlib else None


def check_text(start: bytes, path: str) -> None:
    """Make sure that what is to be lines of text is not compressed data, which would be lines of garbage.

    No text begins with the bytes of GZIP. Some of ZLIB's might be a text in some encoding, so the rest of the line must
    be such data, too; `x^`, with which its low levels begin, is ASCII and not noticed.

    Args:
        start: The beginning of the content, with its first line whole.
        path: The file, for errors.

    Raises:
        CorruptRecordError: It looks compressed.
    """
    if start.startswith(_GZIP):
        looks_like = "GZIP"
    elif start.startswith(_ZLIB_TEXT) and _is_zlib(start.partition(b"\n")[0]):
        looks_like = "ZLIB"
    else:
        return
    message = f"this is no text; it looks {looks_like}-compressed: pass compression_type={looks_like!r}"
    raise CorruptRecordError(message, path, offset=0)


def _is_zlib(start: bytes) -> bool:
    try:
        zlib.decompressobj().decompress(start, LARGEST_PIECE)
    except zlib.error:
        return False
    return True


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
        self._data = b""
        self._read = 0

    @property
    def is_fed(self) -> bool:
        """Whether there is data that has not been decompressed yet."""
        return bool(self._data)

    def feed(self, data: bytes) -> None:
        """Take more of the file, when all that came before has been decompressed."""
        self._data = data
        self._read += len(data)

    def read(self) -> bytes:
        """Decompress, giving at most 1 MiB, so that no input makes a huge piece; b"" is not the end.

        Raises:
            CorruptRecordError: The data is not what it says it is; all that comes before has been given.
        """
        found: list[bytes] = []
        room = LARGEST_PIECE
        while self._data and room:
            try:
                piece = self._step(room)
            except CorruptRecordError:
                if not found:
                    raise
                break  # the next call comes upon it again
            if piece:
                found.append(piece)
                room -= len(piece)
        return b"".join(found)

    def _step(self, room: int) -> bytes:
        """Decompress up to `room` bytes of one member; leaves everything as it is when that fails."""
        if self._engine.eof:
            self._data = self._next_member(self._data)
            if not self._data:
                return b""
        self._begun = True
        try:
            piece = self._engine.decompress(self._data, room)
        except zlib.error as error:
            raise CorruptRecordError(
                f"the {self._name} data is damaged, or the file is not {self._name}: {error}",
                self._path,
                offset=self._read - len(self._data),
            ) from error
        self._data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
        return piece

    def _next_member(self, data: bytes) -> bytes:
        if self._members:
            data = data.lstrip(b"\0")  # tar and tape tools pad with zeros; gzip ignores them
            if data:
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
