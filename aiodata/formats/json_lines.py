"""JSON Lines: one JSON value a line, read by Python's own `json`."""

from __future__ import annotations

from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Failure
from aiodata.errors import CorruptRecordError
from aiodata.formats.compression import check_text
from aiodata.formats.cuts import Cut
from aiodata.formats.lines import LineBlocks
from aiodata.structure import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiodata.formats.json_columns import JsonColumns

__all__ = ["JsonLinesSplitter"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_decode, _decode_raw = JSONDecoder().decode, JSONDecoder().raw_decode


class JsonLinesSplitter:
    """Cuts content into lines and reads the JSON value of each; blank lines are left out.

    A line that cannot be read is a `CorruptRecordError` in its place, and the next line follows.

    Args:
        path: The file, for errors.
        offset: Byte of the content where the first line begins.
        number: Its number.
        columns: What to take out of each value; None takes the value as it is.
        skips_truncated: Whether a last line without an end that cannot be read is left out.
    """

    def __init__(
        self, path: str, offset: int, number: int, columns: JsonColumns | None = None, skips_truncated: bool = False
    ) -> None:
        self._path = path
        self._offset = offset
        self._number = number
        self._columns = columns
        self._skips_truncated = skips_truncated
        self._blocks = LineBlocks()

    def feed(self, piece: bytes) -> Iterator[Cut]:
        """Take the next piece and give the values of the lines that are complete."""
        for text in self._blocks.feed(piece):
            yield self._cut(text)

    def finish(self) -> Iterator[Cut]:
        """Give the value of the last line, where it has no end."""
        if text := self._blocks.rest():
            yield self._cut(text)

    def _cut(self, text: bytes) -> Cut:
        lines = text.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not self._offset:
            check_text(text, self._path)
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        try:
            cut = self._all(text, lines)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            cut = self._one_by_one(text, lines)
        self._offset += len(text)
        self._number += len(lines)
        return cut

    def _all(self, text: bytes, lines: list[bytes]) -> Cut:
        """Read a whole block of lines, or fail without saying why."""
        found = map(_value, b"\n".join(lines).decode().split("\n"))
        if self._columns is None:
            return Cut(len(text), list(map(normalize, found)))
        values = list(found)
        if self._columns.are_arrays:
            return Cut(len(text), columns=self._columns.arrays(values), length=len(values))
        return Cut(len(text), self._columns.rows(values))

    def _one_by_one(self, text: bytes, lines: list[bytes]) -> Cut:
        """Read line by line, and put what is wrong with one in its place."""
        found: list[Any] = []
        begins: list[int] = []
        begin = 0
        for number, line in enumerate(lines):
            if line.strip():
                try:
                    found.append(self._read(line))
                except (ValueError, TypeError, OverflowError, RecursionError) as error:
                    truncated = number == len(lines) - 1 and not text.endswith(b"\n")
                    if truncated and self._skips_truncated:
                        break
                    found.append(Failure(self._failed(error, number, begin, truncated)))
                begins.append(number)
            begin += len(line) + 1
        return Cut(len(text), found, numbers=len(lines), begins=begins, clean=False)

    def _read(self, line: bytes) -> Any:
        value = _value(line.decode())
        if self._columns is not None:
            return self._columns.row(value)
        if value is None:
            raise ValueError("null cannot be an element")
        return normalize(value)

    def _failed(self, error: Exception, number: int, begin: int, truncated: bool) -> CorruptRecordError:
        column = ""
        message = str(error)
        if isinstance(error, JSONDecodeError):
            column, message = f", column {error.colno}", error.msg
        elif isinstance(error, UnicodeDecodeError):
            column, message = f", column {error.start + 1}", f"this is no UTF-8: {error.reason}"
        elif isinstance(error, RecursionError):
            message = "the value is nested too deeply"
        end = "; the file ends there without an end of the line: it may be cut short" if truncated else ""
        where = f"line {self._number + number}{column}"
        return CorruptRecordError(f"{where}: {message}{end}", self._path, offset=self._offset + begin)


def _value(text: str) -> Any:
    """Give the value of one line, in less time than `decode` where there is no blank around it."""
    try:
        value, end = _decode_raw(text)
    except JSONDecodeError:
        return _decode(text)
    return value if end == len(text) else _decode(text)
