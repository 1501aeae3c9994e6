r"""The records of CSV content, cut off a stream of pieces and decoded (RFC 4180).

A record ends at `\n`, `\r\n` or `\r` outside quotes. As the csv module has it, a quote opens a quoted field only where
it is the field's first character. Here is decided where records end; those with quotes are split by that module.
"""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from aiodata.columns import iterate
from aiodata.engine.block import Failure
from aiodata.errors import DataError
from aiodata.formats.compression import check_text
from aiodata.formats.csv_blocks import decode_block
from aiodata.formats.cuts import Cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiodata.formats.csv_columns import CsvColumns

__all__ = ["CsvRecords"]

BLOCK_BYTES = 128 * 1024
"""About how many bytes of content become one block: decoding them takes a few milliseconds."""

LARGEST_RECORD = 16 * 1024 * 1024
"""Bytes within which a record must end; behind a quote that nobody closes the whole file would be held in memory."""

_FEW = 64
_MARK = b"\xef\xbb\xbf"


class CsvRecords:
    """Cuts the content of a CSV file into records, and decodes them, into columns where all of a block are good.

    A record that cannot be decoded is a `DataError` in its place, which names file and line; the next one follows.
    UTF-8's byte-order mark is dropped.

    Args:
        columns: What to decode.
        header: The first record of the file holds names: it must be there, and is left out.
        path: The file, for errors.
        offset: Byte of the content where the first record begins.
        number: Its line.
    """

    def __init__(self, columns: CsvColumns, header: bool, path: str, offset: int, number: int) -> None:
        self._columns = columns
        self._path = path
        self._line = number
        self._has_mark = offset == 0
        self._has_header = header and offset == 0
        self._pattern = _record_pattern(columns.field_delim, columns.quoting)
        self._held: list[bytes] = []
        self._size = 0
        self._wanted = 0
        """Bytes to hold before looking at them again: an open quote is not looked for in every piece."""

    def feed(self, piece: bytes) -> Iterator[Cut]:
        """Take the next piece of content and give the records that it completes.

        Raises:
            DataError: A record is too long, the header is damaged, or the content is compressed.
        """
        if self._size > LARGEST_RECORD:
            raise DataError(
                f"{self._path} line {self._line}: no record ends within {LARGEST_RECORD} bytes; "
                "is a quoted field without its closing quote?"
            )
        self._held.append(piece)
        self._size += len(piece)
        if self._size < self._wanted or (b"\n" not in piece and b"\r" not in piece and not self._wanted):
            return
        data = b"".join(self._held)
        if self._has_mark:
            check_text(data, self._path)
        # A return at the very end may be half of a line's end.
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        begin = 0
        for cut in self._cuts(data, end):
            begin += cut.size
            yield cut
        self._held = [data[begin:]] if begin < len(data) else []
        self._size = len(data) - begin
        self._wanted = self._size * 5 // 4 if begin < end else 0

    def finish(self) -> Iterator[Cut]:
        """Give what is left at the end of the content.

        Raises:
            DataError: There is no header, or it is damaged, or the content is compressed.
        """
        data = b"".join(self._held)
        if self._has_mark:
            check_text(data, self._path)
        if data and not (self._has_mark and data == _MARK):
            data = data if data[-1:] in b"\r\n" else data + b"\n"
            yield from self._cuts(data, len(data), is_all=True)
        if self._has_header:
            raise DataError(f"{self._path}: the file is empty, but should begin with a header")

    def _cuts(self, data: bytes, end: int, is_all: bool = False) -> Iterator[Cut]:
        """Cut up the data before `end`, which is behind the end of a line.

        A last record in which a quote is open is left, unless the data is all that there is.
        """
        begin = 0
        size = 1 if self._has_header else BLOCK_BYTES
        while begin < end:
            stop = _stop(data, begin, end, size)
            cut = self._cut(data[begin:stop], is_all and stop == end)
            if cut is not None:
                yield cut
                begin += cut.size
                size = BLOCK_BYTES
            elif stop < end:
                size = 2 * max(size, stop - begin)
            else:
                break

    def _cut(self, data: bytes, is_all: bool) -> Cut | None:
        """Cut off the records, or the header; give None where a quote is open from the first record on."""
        mark = len(_MARK) if self._has_mark and data.startswith(_MARK) else 0
        block = data[mark:]
        cut = None
        if not self._has_header and len(block) <= 2 * BLOCK_BYTES:  # a very long record may have many fields
            with suppress(ValueError, OverflowError):
                arrays = decode_block(self._columns, block)
                if arrays is not None:
                    cut = Cut(len(data), columns=arrays, length=len(arrays[0]))
        if cut is None:
            lines, rest = self._split(block)
            if rest and is_all:
                lines.append(rest)
                rest = ""
            if not lines:
                return None
            if self._has_header:
                cut = self._header(lines[0], mark)
            else:
                cut = self._decode(lines, len(data) - len(_encoded(rest)))
        self._has_mark = self._has_header = False
        self._line += cut.numbers
        return cut

    def _split(self, block: bytes) -> tuple[list[str], str]:
        """Split a block into the texts of records, with their ends; one in which a quote is open is given apart."""
        text = block.decode("utf-8", "surrogateescape")
        match = self._pattern.match
        lines: list[str] = []
        begin = at = 0
        while at < len(text) and (found := match(text, at)) and found.end() > at:
            at = found.end()
            if found.lastindex:
                lines.append(text[begin:at])
                begin = at
        return lines, text[begin:]

    def _header(self, line: str, mark: int) -> Cut:
        self._columns.split(line, f"{self._path} line {self._line}")
        return Cut(mark + len(_encoded(line)), [], numbers=_line_ends(line))

    def _decode(self, lines: list[str], size: int) -> Cut:
        """Decode records from their texts, one by one near those that are bad."""
        begins: Sequence[int] = list(accumulate(map(_line_ends, lines), initial=0))
        numbers = begins[-1]
        begins = begins[:-1] if numbers > len(lines) else range(len(lines))
        with suppress(ValueError, OverflowError, csv.Error):
            arrays = self._columns.arrays(lines)
            return Cut(size, columns=arrays, length=len(lines), numbers=numbers, begins=begins)
        found: list[Any] = []
        for first in range(0, len(lines), _FEW):
            few = slice(first, first + _FEW)
            try:
                found += iterate(self._columns.arrays(lines[few]))
            except (ValueError, OverflowError, csv.Error):
                found += map(self._element, lines[few], begins[few])
        return Cut(size, found, numbers=numbers, begins=begins, clean=False)

    def _element(self, line: str, begin: int) -> Any:
        try:
            return self._columns.decode_line(line.rstrip("\r\n"), f"{self._path} line {self._line + begin}")
        except DataError as error:
            return Failure(error.with_traceback(None))


def _stop(data: bytes, begin: int, end: int, size: int) -> int:
    """Give where a block of about `size` bytes stops: behind the end of a line, at `end` at the latest."""
    if end - begin <= size * 3 // 2:
        return end
    for newline in (b"\n", b"\r"):
        stop = data.rfind(newline, begin, begin + size) + 1 or data.find(newline, begin + size, end) + 1
        if stop:
            return stop
    return end


@lru_cache(maxsize=64)
def _record_pattern(field_delim: str, quoting: bool) -> re.Pattern[str]:
    """Give what matches a record, or some part of a long one; there is a group if it is to the record's end.

    It matches nothing, not even one character, where a quoted field begins that does not end.
    """
    if not quoting:
        return re.compile(r"[^\r\n]*+(\r\n?|\n)?")
    ends = rf"{re.escape(field_delim)}\r\n"
    quoted = rf'(?:\A|(?<=[{ends}]))"[^"]*+(?:""[^"]*+)*+"'
    return re.compile(rf'(?:[^"\r\n]++|{quoted}|(?<=[^{ends}])"){{0,500}}(\r\n?|\n)?')


def _line_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n") if "\r" in text else text.count("\n")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
