"""Records of one fixed length, behind a header and before a footer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aiodata.errors import CorruptRecordError
from aiodata.formats.compression import compression_of
from aiodata.formats.cuts import Cut

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FixedLengthSplitter"]

BLOCK_BYTES = 1 << 20
"""About how many bytes become one block; a longer record is a block of its own."""

BLOCK_RECORDS = 4096


class FixedLengthSplitter:
    """Cuts content into records of one length, and leaves its header and footer out.

    Args:
        path: The file, for errors.
        offset: Byte of the content where the first record begins; 0 is before the header.
        number: Its number.
        record_bytes: Length of a record.
        header_bytes: Length of what stands before the first record.
        footer_bytes: Length of what stands behind the last one.
        size: Length of the whole content where it is known.
    """

    def __init__(
        self,
        path: str,
        offset: int,
        number: int,
        record_bytes: int,
        header_bytes: int,
        footer_bytes: int,
        size: int | None = None,
    ) -> None:
        self._path = path
        self._offset = offset
        self._number = number
        self._record = record_bytes
        self._header, self._footer = header_bytes, footer_bytes
        self._skip = header_bytes if offset == 0 else 0
        self._most = max(1, min(BLOCK_RECORDS, BLOCK_BYTES // record_bytes))
        self._held: list[bytes] = []
        self._size = 0
        """Bytes that are held, the header among them."""
        self._wrong = "" if size is None else self._misfit(size)
        """Why the records do not fit into the content, known before it is read."""

    def _misfit(self, size: int) -> str:
        """Tell in words why records do not fit into content of a size; "" if they do."""
        body = size - self._header - self._footer
        if body < 0:
            return (
                f"the header of {self._header} bytes and the footer of {self._footer} are longer than the content, "
                f"which has {size} bytes"
            )
        if not body % self._record:
            return ""
        around = f" without its header ({self._header}) and footer ({self._footer})"
        return (
            f"the content has {body} bytes{around if self._header or self._footer else ''}, which is no multiple "
            f"of record_bytes ({self._record}): {body % self._record} bytes are left"
        )

    def _check(self, wrong: str) -> None:
        """Raise what is wrong, with a hint from the first bytes where they are at hand."""
        if wrong:
            looks_like = compression_of(b"".join(self._held)[:2]) if self._offset == 0 else None
            hint = f"; it looks {looks_like}-compressed: pass compression_type={looks_like!r}" if looks_like else ""
            raise CorruptRecordError(wrong + hint, self._path, self._number, self._offset)

    def feed(self, piece: bytes) -> Iterator[Cut]:
        """Take the next piece and give the records that are complete, and followed by a footer's length.

        Raises:
            CorruptRecordError: Records do not fit into `size`.
        """
        self._held.append(piece)
        self._size += len(piece)
        if self._wrong:
            if self._size > 1:
                self._check(self._wrong)
            return
        # With a long footer not for each record, since all that is held is copied then.
        if self._size >= self._skip + max(self._record, self._footer) + self._footer:
            yield from self._cuts()

    def _cuts(self) -> Iterator[Cut]:
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        at = self._skip
        count = max(0, len(data) - at - self._footer) // self._record
        while count:
            length = min(count, self._most)
            stop = at + length * self._record
            # numpy makes many small bytes objects faster than slices do, but knows none beyond 2 GiB.
            found = [data[at:stop]] if length == 1 else np.frombuffer(data, f"V{self._record}", length, at).tolist()
            cut = Cut(stop - at + self._skip, found)
            self._offset += cut.size
            self._number += length
            self._size -= cut.size
            at, count, self._skip = stop, count - length, 0
            yield cut
        self._held = [data[len(data) - self._size :]]

    def finish(self) -> Iterator[Cut]:
        """Give the last records, and check that the footer, and nothing else, is left.

        Raises:
            CorruptRecordError: The content ends in the middle of a record or of the footer, or is too short for both
                header and footer.
        """
        self._check(self._wrong)
        yield from self._cuts()
        self._check(self._misfit(self._offset + self._size))
