"""Where the elements in a shuffle's window came from."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from aiodata.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiodata.engine.block import Block

__all__ = ["Reads"]


class _Read:
    """A block of the input: the number of its first element, and where it came from; it does not hold elements."""

    __slots__ = ("first", "here", "offset", "place")

    def __init__(self, first: int, block: Block[Any]) -> None:
        self.first = first
        self.here = block.here()
        self.place: Callable[[int], str | None] = block.origin.place
        self.offset = block.offset


class Reads:
    """The blocks of an input that have been read, from one on.

    Args:
        blocks: They.
    """

    def __init__(self, blocks: Sequence[_Read] = ()) -> None:
        self._blocks = list(blocks)
        self.read = 0
        """How many elements have been read in all, those before these blocks included."""
        self.promised: Any = None
        """The number of an element that had been read when a state was saved, and its place."""

    def note(self, number: int, block: Block[Any]) -> None:
        """Note a block whose first element has a number.

        Raises:
            StateError: As for `check`.
        """
        self._blocks.append(_Read(number, block))
        if self.promised is not None and number > self.promised[0]:
            self.check(number)

    def since(self, number: int) -> Reads:
        """Give those from the block on in which an element is."""
        later = Reads(self._blocks[max(0, self._find(number)) :])
        later.read, later.promised = self.read, self.promised
        return later

    def first(self, otherwise: int) -> int:
        """Give the number of the first element; without blocks, `otherwise`."""
        return self._blocks[0].first if self._blocks else otherwise

    def last(self, otherwise: int) -> int:
        """Give the number of the last block's first element; without blocks, `otherwise`."""
        return self._blocks[-1].first if self._blocks else otherwise

    def here(self) -> Any:
        """Give the cursor of the first block; None without blocks."""
        return self._blocks[0].here() if self._blocks else None

    def place(self, number: int) -> str | None:
        """Give the place of an element in words, if it has one."""
        if not self._blocks:
            return None
        read = self._blocks[self._find(number)]
        return read.place(read.offset + number - read.first)

    def check(self, read: int) -> None:
        """Make sure that what a saved state had read has been read again, and nothing else in its place.

        Args:
            read: How many elements have been read.

        Raises:
            StateError: Another element has come in the place of the one that was promised, or the end.
        """
        if self.promised is None:
            return
        (number, saved), self.promised = self.promised, None
        found = self.place(number) if read > number else None
        if saved is not None and saved != found:
            raise StateError(
                f"shuffle: {saved} had been read when the state was saved; reading again came to {found or 'the end'} "
                "instead: the input is not what it was"
            )

    def _find(self, number: int) -> int:
        return bisect_right(self._blocks, number, key=lambda read: read.first) - 1
