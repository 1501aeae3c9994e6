"""Which bytes of a file will be read, where its format tells: cut into requests, in the order in which they are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Cutting", "Range", "cut", "forward"]

Range = tuple[int, int]
"""The first byte, and the one behind the last."""

MOST_OF_COLUMN = 1 << 20
LEAST_OF_COLUMN = 64 << 10
FORWARD_BYTES = 64 << 20


@dataclass(frozen=True)
class Cutting:
    """Ranges that are read side by side, cut into requests.

    Args:
        parts: The requests, in order.
        first: How many bytes to ask for when reading begins.
        most: How many bytes may be asked for and not read.
    """

    parts: tuple[Range, ...]
    first: int
    most: int


def cut(ranges: Sequence[Range], most: int, chunk: int) -> Cutting:
    """Cut ranges that are read side by side, each forward, such as the columns of a row group.

    Few bytes are asked for all at once. Of many each range gets a piece in any case, up to 1 MiB of it: as long as a
    piece is missing nothing can be read.

    Args:
        ranges: The ranges; none of them is empty.
        most: How many bytes may be asked for and not read.
        chunk: How many bytes one request may be for.

    >>> cut([(0, 10), (10, 15), (20, 30)], 100, 8)
    Cutting(parts=((0, 8), (8, 15), (20, 28), (28, 30)), first=25, most=100)
    >>> cut([(0, 400_000), (500_000, 1_300_000)], 100_000, 1 << 21).parts[:3]
    ((0, 200000), (500000, 700000), (700000, 900000))
    """
    total = sum(end - begin for begin, end in ranges)
    if total <= most:
        return Cutting(tuple(part for each in _joined(ranges) for part in _pieces(each, chunk)), total, most)
    share = MOST_OF_COLUMN if len(ranges) > 1 else chunk
    piece = min(chunk, share, max(LEAST_OF_COLUMN, 4 * most // len(ranges)))
    placed = [
        ((part[0] - begin) / (end - begin), number, part)
        for number, (begin, end) in enumerate(ranges)
        for part in _pieces((begin, end), piece)
    ]
    first = piece * len(ranges)
    return Cutting(tuple(part for _, _, part in sorted(placed)), first, max(most, first))


def forward(begin: int, end: int) -> Iterator[list[Range]]:
    """Give the ranges of a file that is read forward."""
    for at in range(begin, end, FORWARD_BYTES):
        yield [(at, min(at + FORWARD_BYTES, end))]


def _joined(ranges: Sequence[Range]) -> Iterator[Range]:
    """Join ranges that touch."""
    begin = end = -1
    for low, high in sorted(ranges):
        if low > end:
            if end > begin:
                yield begin, end
            begin = low
        end = max(end, high)
    if end > begin:
        yield begin, end


def _pieces(whole: Range, size: int) -> Iterator[Range]:
    begin, end = whole
    for at in range(begin, end, size):
        yield at, min(at + size, end)
