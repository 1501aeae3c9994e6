"""Where the columns of a Parquet file are, by its footer.

pyarrow tells that, too, but ends the process if what it is asked about is damaged.

Source: `parquet.thrift` of apache/parquet-format, in Thrift's compact protocol.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from aiodata.storage.transfer.expected import Range

__all__ = ["column_ranges", "read_footer"]

MAGIC = b"PAR1"
_TAIL = 8
_LEAST, _MOST_DEEP = 12, 16
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

_ROW_GROUPS = 4  # of FileMetaData
_COLUMNS = 1  # of RowGroup
_META_DATA = 3  # of ColumnChunk
_PATH, _SIZE, _DATA_PAGE, _DICTIONARY_PAGE = 3, 7, 9, 11  # of ColumnMetaData


def read_footer(file: IO[bytes] | Any) -> bytes:
    """Read the footer; b"" if there is none that can be read here."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    footer = b""
    if size >= _LEAST and tail[4:] == MAGIC and length <= size - _LEAST:
        file.seek(size - _TAIL - length)
        footer = file.read(length)
    file.seek(0)
    return footer


def column_ranges(footer: bytes, names: Sequence[str] | None, groups: Collection[int]) -> Iterator[list[Range]]:
    """Give the ranges of bytes of the chosen columns, for one row group after the other.

    Damage ends it: it is no promise that the rows can be read.

    Args:
        footer: What `read_footer` gave.
        names: The columns, or what they are inside of; None for all.
        groups: The numbers of the row groups.
    """
    chosen = None if names is None else tuple(names)
    wanted = set(groups)
    reader = _Reader(footer)
    try:
        for field, kind in reader.fields():
            if field != _ROW_GROUPS or kind != _LIST:
                reader.skip(kind)
                continue
            for number in range(reader.list_head()[0]):
                if not wanted:
                    return
                ranges: list[Range] = []
                for inner, inner_kind in reader.fields():
                    if inner == _COLUMNS and inner_kind == _LIST and number in wanted:
                        ranges = _ranges_of(reader, chosen)
                    else:
                        reader.skip(inner_kind)
                if number in wanted:
                    wanted.discard(number)
                    yield ranges
    except (IndexError, ValueError):
        return


def _ranges_of(reader: _Reader, chosen: tuple[str, ...] | None) -> list[Range]:
    ranges: list[Range] = []
    for _ in range(reader.list_head()[0]):
        for field, kind in reader.fields():
            if field != _META_DATA or kind != _STRUCT:
                reader.skip(kind)
                continue
            path, facts = "", {}
            for inner, inner_kind in reader.fields():
                if inner == _PATH and inner_kind == _LIST:
                    parts = [reader.binary() for _ in range(reader.list_head()[0])]
                    path = b".".join(parts).decode("utf-8", "replace")
                elif inner_kind == _I64:
                    facts[inner] = reader.integer()
                else:
                    reader.skip(inner_kind)
            pages = [facts[page] for page in (_DICTIONARY_PAGE, _DATA_PAGE) if facts.get(page, 0) > 0]
            if pages and (chosen is None or any(f"{path}.".startswith(f"{name}.") for name in chosen)):
                ranges.append((min(pages), min(pages) + facts.get(_SIZE, 0)))
    return ranges


class _Reader:
    """Reads Thrift's compact protocol.

    Raises:
        IndexError, ValueError: By its methods: the data is cut short, or damaged.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._deep = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Give the number and kind of each field of a struct; whoever takes them reads or skips what is in it."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 15

    def list_head(self) -> tuple[int, int]:
        """Give the length of a list that begins here, and the kind of what is in it."""
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._data) - self._at:  # each takes a byte at least
            raise ValueError("a list is longer than the data")
        return count, head & 15

    def integer(self) -> int:
        """Read a signed integer."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Read bytes."""
        length = self._varint()
        found = self._data[self._at : self._at + length]
        self._go(length)
        return found

    def skip(self, kind: int) -> None:
        """Go over a value of a field."""
        if kind == _BYTE:
            self._go(1)
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _DOUBLE:
            self._go(8)
        elif kind == _BINARY:
            self._go(self._varint())
        elif kind in (_LIST, _SET, _MAP, _STRUCT):
            self._skip_inside(kind)
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"there is no kind {kind}")

    def _skip_inside(self, kind: int) -> None:
        self._deep += 1
        if self._deep > _MOST_DEEP:
            raise ValueError("it is too deep")
        if kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind == _MAP:
            if count := self._varint():
                kinds = self._byte()
                for _ in range(min(count, len(self._data))):
                    self._skip_item(kinds >> 4)
                    self._skip_item(kinds & 15)
        else:
            count, inner = self.list_head()
            for _ in range(count):
                self._skip_item(inner)
        self._deep -= 1

    def _skip_item(self, kind: int) -> None:
        """Go over a value in a list or map, where a bool takes a byte."""
        self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def _byte(self) -> int:
        found = self._data[self._at]
        self._at += 1
        return found

    def _varint(self) -> int:
        value = shift = 0
        while True:
            found = self._byte()
            value |= (found & 127) << shift
            if found < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("an integer is too long")

    def _go(self, count: int) -> None:
        if count > len(self._data) - self._at:
            raise IndexError("the data is cut short")
        self._at += count
