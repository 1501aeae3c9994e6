"""TFRecord framing: records of bytes, each with its length and two checksums.

A record is its length (uint64, little-endian), the masked CRC-32C of those 8 bytes (uint32), the payload, and the
masked CRC-32C of the payload. Source: TensorFlow's guide to TFRecord, and its `core/lib/io/record_writer.h`.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.block import Failure
from aiodata.errors import CorruptRecordError
from aiodata.extras import load
from aiodata.formats.compression import compression_of
from aiodata.formats.cuts import Cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LARGEST_RECORD", "RecordSplitter", "checksum_function", "frame"]

HEADER_BYTES = 12
FOOTER_BYTES = 4
LARGEST_RECORD = 1 << 31
"""No record is longer than 2 GiB, as none of protobuf's is; a length beyond it is not believed, whatever its checksum
says."""

LARGE_RECORD = 1 << 24
"""A longer one is waited for only if the file has so many bytes."""

BLOCK_BYTES = 1 << 20
"""About how many bytes become one block; a longer record is a block of its own."""

BLOCK_RECORDS = 4096
MOST_HEADS = 4096
"""Headers that are remembered: records of the same length have the same one."""

_LONG_RUN = 32
"""From about so many records of one length on, cutting them together is quicker than one by one."""

_SINGLY = 64
"""So many are cut one by one before the next look whether a run follows: a look costs as much as cutting a record."""

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_MASK = 0xFFFFFFFF


@cache
def checksum_function(method: str) -> Callable[[bytes], int]:
    """Give CRC-32C (RFC 3720, appendix B.4).

    Raises:
        ImportError: google-crc32c is not installed.
    """
    value: Callable[[bytes], int] = load("google_crc32c", "tfrecord", method, "google-crc32c").value
    return value


def _masked(crc: Any) -> Any:
    """Mask a checksum, or uint32 (n,) of them, for data that holds checksums itself would else be checked badly."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & _MASK


def frame(payload: bytes, method: str = "TFRecordWriter") -> bytes:
    r"""Give a record's bytes in the file.

    >>> frame(b"abc")[:8]
    b'\x03\x00\x00\x00\x00\x00\x00\x00'
    """
    crc = checksum_function(method)
    length = struct.pack("<Q", len(payload))
    checksums = [_CHECKSUM.pack(_masked(crc(part))) for part in (length, payload)]
    return b"".join((length, checksums[0], payload, checksums[1]))


class RecordSplitter:
    """Cuts the content of a TFRecord file into payloads.

    A payload whose checksum fails is a `CorruptRecordError` in its place, and the next record follows; behind a length
    whose checksum fails nothing can be read.

    Args:
        path: The file, for errors.
        offset: Byte of the content where the first record begins.
        number: Its number.
        size: Gives the number of bytes of the content, None where it is not known.
    """

    def __init__(self, path: str, offset: int, number: int, size: Callable[[], int | None] = lambda: None) -> None:
        self._content_size = size
        self._crc = checksum_function("TFRecordDataset")
        self._path = path
        self._offset = offset
        self._number = number
        self._held: list[bytes] = []
        self._size = 0
        self._wanted = HEADER_BYTES
        """Bytes that must be there before another record can be complete."""
        self._heads: dict[bytes, int] = {}
        """The lengths that headers tell, of some that have been checked."""

    def feed(self, piece: bytes) -> Iterator[Cut]:
        """Take the next piece of content and give the records that it completes.

        Raises:
            CorruptRecordError: A length is damaged; all records before it have been given.
        """
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._wanted:
            return
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        begin = 0
        while begin < len(data):
            cut, error = self._cut(data, begin)
            if cut is not None:
                begin += cut.size
                self._offset += cut.size
                self._number += cut.length
                yield cut
            if error is not None:
                raise error
            if cut is None:
                break
        self._held = [data[begin:]] if begin < len(data) else []
        self._size = len(data) - begin

    def _cut(self, data: bytes, begin: int) -> tuple[Cut | None, CorruptRecordError | None]:
        """Cut up to about `BLOCK_BYTES` off the data; give that, and what is wrong behind it."""
        found: list[Any] = []
        at, limit = begin, begin + BLOCK_BYTES
        error: CorruptRecordError | None = None
        self._wanted = HEADER_BYTES
        while at < limit and len(found) < BLOCK_RECORDS:
            run = self._run(data, at, limit, BLOCK_RECORDS - len(found))
            if run:
                found += run
                at += len(run) * (HEADER_BYTES + len(run[0]) + FOOTER_BYTES)
                continue
            goal = min(len(found) + _SINGLY, BLOCK_RECORDS)
            at, error = self._cut_singly(data, begin, at, found, goal)
            if len(found) < goal:
                break
        return self._checked(data, begin, at - begin, found) if found else None, error

    def _run(self, data: bytes, at: int, limit: int, most: int) -> list[bytes]:
        """Give the payloads from a place on whose headers are all the same; none where they are few.

        Args:
            data: The content.
            at: Where the first record begins.
            limit: Where the last one begins at the latest.
            most: How many to give at the most.
        """
        head = data[at : at + HEADER_BYTES]
        length = self._heads.get(head)
        if not length:  # not known yet; and numpy knows no items without bytes
            return []
        size = HEADER_BYTES + length + FOOTER_BYTES
        if not (data.startswith(head, at + size) and data.startswith(head, at + _LONG_RUN * size)):
            return []
        most = min(most, (limit - at - 1) // size + 1, (len(data) - at) // size)
        # As text of a fixed width a header is compared in one step.
        same = np.ndarray((most,), f"S{HEADER_BYTES}", data, at, (size,)) == head
        count = most if same.all() else int(same.argmin())
        records: list[bytes] = np.ndarray((count,), f"V{length}", data, at + HEADER_BYTES, (size,)).tolist()
        return records

    def _cut_singly(
        self, data: bytes, begin: int, at: int, found: list[Any], goal: int
    ) -> tuple[int, CorruptRecordError | None]:
        """Cut records off one by one.

        Args:
            data: The content.
            begin: Where the block begins in it.
            at: Where the next record begins.
            found: The payloads of the block, to which they are added.
            goal: How many payloads there are to be at the most.

        Returns:
            Where the next record begins, and what is wrong with it, if anything is.
        """
        heads = self._heads
        end, limit = len(data) - HEADER_BYTES, begin + BLOCK_BYTES
        while at <= end and at < limit and len(found) < goal:
            head = data[at : at + HEADER_BYTES]
            length = heads.get(head)
            if length is None and (length := self._length(head)) is None:
                return at, self._damaged_length(data, at, at - begin, len(found))
            start = at + HEADER_BYTES
            stop = start + length
            if stop + FOOTER_BYTES > len(data):
                self._wanted = HEADER_BYTES + length + FOOTER_BYTES
                if length > LARGE_RECORD and not self._is_there(at - begin):
                    return at, CorruptRecordError(
                        f"the record's {length} bytes go beyond the end of the file: it is cut short, or damaged",
                        self._path,
                        self._number + len(found),
                        self._offset + at - begin,
                    )
                break
            found.append(data[start:stop])
            at = stop + FOOTER_BYTES
        return at, None

    def _length(self, head: bytes) -> int | None:
        """Give the length that a header tells, and remember it; None if it is damaged."""
        length: int
        length, length_crc = _HEADER.unpack(head)
        if _masked(self._crc(head[:8])) != length_crc or length > LARGEST_RECORD:
            return None
        if len(self._heads) >= MOST_HEADS:
            self._heads.clear()
        self._heads[head] = length
        return length

    def _checked(self, data: bytes, begin: int, size: int, found: list[Any]) -> Cut:
        """Give records as columns if their checksums are right, else with failures in the places of those that are not.

        Args:
            data: The content.
            begin: Where the first record begins in it.
            size: The bytes of all records.
            found: The payloads, at least one.
        """
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        stops = begin + np.cumsum(lengths + HEADER_BYTES + FOOTER_BYTES) - FOOTER_BYTES
        crcs = np.fromiter(map(self._crc, found), np.uint32, len(found))
        places = stops[:, np.newaxis] + np.arange(FOOTER_BYTES)
        wanted = np.frombuffer(data, np.uint8)[places].view("<u4")[:, 0]
        wrong = (_masked(crcs) != wanted).nonzero()[0].tolist()
        if not wrong:
            return Cut(size, columns=np.array(found, object), length=len(found))
        for index in wrong:
            length = len(found[index])
            found[index] = Failure(
                CorruptRecordError(
                    f"the checksum of the record's {length} bytes is wrong: the data is damaged",
                    self._path,
                    self._number + index,
                    self._offset + int(stops[index]) - length - HEADER_BYTES - begin,
                )
            )
        return Cut(size, found, clean=False)

    def _is_there(self, behind: int) -> bool:
        size = self._content_size()
        return size is None or self._offset + behind + self._wanted <= size

    def _damaged_length(self, data: bytes, at: int, behind: int, count: int) -> CorruptRecordError:
        offset = self._offset + behind
        looks_like = compression_of(data[at : at + 2]) if offset == 0 else None
        message = (
            f"this is no TFRecord; it looks {looks_like}-compressed: pass compression_type={looks_like!r}"
            if looks_like
            else "the checksum of the record's length is wrong, or it is absurd: "
            "the data is damaged, or the file is no TFRecord; what follows in it cannot be read"
        )
        return CorruptRecordError(message, self._path, self._number + count, offset)

    def finish(self) -> Iterator[Cut]:
        """Check that the content ends behind a record.

        Raises:
            CorruptRecordError: It ends in the middle of one.
        """
        if self._size:
            data = b"".join(self._held)
            looks_like = compression_of(data[:2]) if self._offset == 0 and self._size < HEADER_BYTES else None
            part = "its length" if self._size < HEADER_BYTES else f"{self._wanted - HEADER_BYTES - FOOTER_BYTES} bytes"
            hint = f"; it looks {looks_like}-compressed: pass compression_type={looks_like!r}" if looks_like else ""
            raise CorruptRecordError(
                f"the file ends {self._size} bytes into a record of {part}: it is cut short{hint}",
                self._path,
                self._number,
                self._offset,
            )
        return iter(())
