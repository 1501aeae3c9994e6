"""Records in a stream of bytes: each behind its length, or up to a separator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer
from aiodata.errors import CorruptRecordError
from aiodata.formats.cuts import Cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiodata.formats.cuts import Splitter

__all__ = ["LengthSplitter", "SeparatedSplitter", "framing_of"]


class SeparatedSplitter:
    r"""Cuts a stream at each separator, which is no part of the records.

    Where the separator is `\n`, a `\r` before it is no part of them, either.

    Args:
        path: The stream's name, for errors.
        offset: Where in the stream the first piece begins.
        number: Number of the record there.
        separator: At least one byte.
        most: Bytes that a record may have.
        needs_end: Whether the last record needs a separator, too; else the stream was cut short.

    >>> splitter = SeparatedSplitter("feed", 0, 0, separator=b"\n", most=9, needs_end=False)
    >>> [cut.elements for piece in (b"a\r\nb", b"c\n\nd") for cut in splitter.feed(piece)]
    [[b'a'], [b'bc', b'']]
    """

    def __init__(self, path: str, offset: int, number: int, *, separator: bytes, most: int, needs_end: bool) -> None:
        self._path, self._offset, self._number = path, offset, number
        self._separator, self._most, self._needs_end = separator, most, needs_end
        self._held: list[bytes] = []
        self._size = 0
        """Bytes that are held."""
        self._tail = b""
        """The last of them, in which a separator may have begun."""

    def feed(self, piece: bytes) -> Iterator[Cut]:
        """Take the next piece and give the records that are complete.

        Raises:
            CorruptRecordError: A record is too long.
        """
        self._held.append(piece)
        self._size += len(piece)
        if self._separator in (self._tail + piece if self._tail else piece):
            yield from self._cuts()
        else:
            self._keep_tail(self._tail + piece)
        if self._size >= self._most + len(self._separator):
            raise self._too_long()

    def _cuts(self) -> Iterator[Cut]:
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        records = data.split(self._separator)
        rest = records.pop()
        self._held, self._size = [rest] if rest else [], len(rest)
        self._keep_tail(rest)
        size = len(data) - len(rest)
        if len(data) > self._most and max(map(len, records)) > self._most:
            records = records[: next(place for place, record in enumerate(records) if len(record) > self._most)]
            size = sum(map(len, records)) + len(records) * len(self._separator)
            self._size = len(data)  # so that the too long one is noticed behind those before it
        if self._separator == b"\n" and b"\r" in data:
            records = [record.removesuffix(b"\r") for record in records]
        self._number += len(records)
        self._offset += size
        if records:
            yield Cut(size, records)

    def _keep_tail(self, data: bytes) -> None:
        if len(self._separator) > 1:
            self._tail = data[1 - len(self._separator) :]

    def _too_long(self) -> CorruptRecordError:
        return CorruptRecordError(
            f"the record is longer than {self._most} bytes, which max_record_bytes allows",
            *(self._path, self._number, self._offset),
        )

    def finish(self) -> Iterator[Cut]:
        """Give the last record, if it has no separator.

        Raises:
            CorruptRecordError: It needs one, or is too long.
        """
        if not self._held:
            return
        record = b"".join(self._held)
        if self._needs_end:
            raise CorruptRecordError(
                f"the stream ended in the middle of a record: {len(record)} bytes came, and no {self._separator!r}",
                *(self._path, self._number, self._offset),
            )
        if len(record) > self._most:
            raise self._too_long()
        yield Cut(len(record), [record.removesuffix(b"\r") if self._separator == b"\n" else record])


class LengthSplitter:
    r"""Cuts a stream into records that each stand behind their length, which does not count itself.

    Args:
        path: The stream's name, for errors.
        offset: Where in the stream the first piece begins.
        number: Number of the record there.
        length_bytes: Size of the length: 1, 2, 4 or 8.
        byte_order: The length's: "big" or "little".
        most: Bytes that a record may have.

    >>> splitter = LengthSplitter("feed", 0, 0, length_bytes=1, byte_order="big", most=9)
    >>> [cut.elements for piece in (b"\2ab\1", b"c\0\4d") for cut in splitter.feed(piece)]
    [[b'ab'], [b'c', b'']]
    """

    def __init__(self, path: str, offset: int, number: int, *, length_bytes: int, byte_order: Any, most: int) -> None:
        self._path, self._offset, self._number = path, offset, number
        self._prefix, self._order, self._most = length_bytes, byte_order, most
        self._held: list[bytes] = []
        self._size = 0
        self._needed = length_bytes
        """Bytes that have to be held before there is anything to do."""

    def feed(self, piece: bytes) -> Iterator[Cut]:
        """Take the next piece and give the records that are complete.

        Raises:
            CorruptRecordError: A record is too long.
        """
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._needed:
            return
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        records: list[bytes] = []
        begin, end, length = 0, self._prefix, -1
        while end <= len(data):
            length = int.from_bytes(data[begin:end], self._order)
            if length > self._most or end + length > len(data):
                break
            records.append(data[end : end + length])
            begin, length = end + length, -1
            end = begin + self._prefix
        self._held, self._size = [data[begin:]], len(data) - begin
        self._needed = self._prefix + max(length, 0)
        if records:
            self._number += len(records)
            self._offset += begin
            yield Cut(begin, records)
        if length > self._most:
            raise CorruptRecordError(
                f"the record says that it has {length} bytes, and max_record_bytes allows {self._most}",
                *(self._path, self._number, self._offset),
            )

    def finish(self) -> Iterator[Cut]:
        """Check that the stream does not end in the middle of a record.

        Raises:
            CorruptRecordError: It does.
        """
        if self._size:
            what = "its length" if self._needed == self._prefix else f"it and its length of {self._needed} bytes"
            raise CorruptRecordError(
                f"the stream ended in the middle of a record, {self._size} bytes into {what}",
                *(self._path, self._number, self._offset),
            )
        yield from ()


def framing_of(
    method: str,
    is_length: bool,
    separator: object,
    length_bytes: object,
    byte_order: object,
    max_record_bytes: object,
    needs_end: bool,
) -> tuple[Callable[[str, int, int], Splitter], str]:
    """Check the arguments that say how a stream is cut; give what makes the splitter, and the arguments in short.

    Args:
        method: The public method, for errors.
        is_length: Whether records stand behind their lengths.
        separator: What records end with, if not.
        length_bytes: Size of a length: 1, 2, 4 or 8.
        byte_order: Of a length: "big" or "little".
        max_record_bytes: Bytes that a record may have, at least 1.
        needs_end: Whether the last record needs a separator.

    Raises:
        TypeError, ValueError: An argument is not what it must be.
    """
    most = check_integer(max_record_bytes, method, "max_record_bytes", 1)
    if not isinstance(separator, bytes):
        raise TypeError(f"{method}: separator must be bytes, not {type(separator).__name__}")
    if not separator:
        raise ValueError(f"{method}: separator must not be empty")
    size = check_integer(length_bytes, method, "length_bytes")
    if size not in (1, 2, 4, 8):
        raise ValueError(f"{method}: length_bytes must be 1, 2, 4 or 8, not {size}")
    if byte_order not in ("big", "little"):
        raise ValueError(f"{method}: byte_order must be 'big' or 'little', not {byte_order!r}")
    if is_length:
        detail = f"length_bytes={size}, byte_order={byte_order!r}"
        return partial(LengthSplitter, length_bytes=size, byte_order=byte_order, most=most), detail
    detail = f"separator={separator!r}"
    return partial(SeparatedSplitter, separator=separator, most=most, needs_end=needs_end), detail
