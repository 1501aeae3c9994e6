"""What cuts the content of a file into records, and what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Cut", "Splitter"]


class Cut:
    """A run of records that a splitter has cut off its content.

    Args:
        size: Bytes of content that the run takes up.
        elements: The records, with `Failure`s for those that are damaged, or
        columns: a structure of arrays with one leading axis.
        length: Number of records.
        numbers: By how much the number grows (of lines, say) where that is not `length`.
        begins: The number that each record begins with, counted from the run's first, where they do not go up by one.
        clean: There are no failures in `elements`.
    """

    __slots__ = ("begins", "clean", "columns", "elements", "length", "numbers", "size")

    def __init__(
        self,
        size: int,
        elements: list[Any] | None = None,
        columns: Any = None,
        length: int | None = None,
        numbers: int | None = None,
        begins: Sequence[int] | None = None,
        clean: bool = True,
    ) -> None:
        self.size = size
        self.elements = elements
        self.columns = columns
        self.length = len(elements or ()) if length is None else length
        self.numbers = self.length if numbers is None else numbers
        self.begins = begins
        self.clean = clean


class Splitter(Protocol):
    """Cuts the content of one file into records; it opens no file.

    It must cut alike whatever the sizes of the pieces are that it is fed, and when it begins at any of its own cuts.
    """

    def feed(self, piece: bytes) -> Iterable[Cut]:
        """Take the next piece of content, never empty, and give what is complete."""

    def finish(self) -> Iterable[Cut]:
        """Give what is left at the end of the content.

        Raises:
            CorruptRecordError: The content ends in the middle of a record.
        """
