"""A dataset that `interleave` or `flat_map` has open, and how far it has been read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.columns import iterate, slice_columns
from aiodata.engine.position import cursor
from aiodata.transforms._made import stages_checksum

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiodata.engine.block import Block
    from aiodata.engine.channel import Channel
    from aiodata.engine.position import Cursor, Origin
    from aiodata.transforms._inputs import Owners

__all__ = ["Reader", "saved_mark"]


class Reader:
    """One open dataset and how far it has been read.

    Args:
        outer: Origin and offset of the element that the dataset was made from.
        blocks: The dataset's blocks.
        start: Where it was opened.
        seeds: The dataset's seed generators as they were before it was opened.
        stages: The dataset's stages, by name and arguments.
    """

    __slots__ = (
        "blocks",
        "channel",
        "columns",
        "fixed",
        "inner",
        "offset",
        "origin",
        "owners",
        "rows",
        "spot",
        "stop",
    )

    def __init__(
        self,
        outer: tuple[Origin, int],
        blocks: AsyncIterator[Block[Any]],
        start: Cursor | None,
        seeds: Any,
        stages: tuple[str, ...],
    ) -> None:
        self.fixed = (outer, start, seeds, stages)
        self.blocks = blocks
        self.inner = blocks
        """The dataset's own blocks, also where `blocks` are read ahead from them."""
        self.owners: Owners | None = None
        self.channel: Channel | None = None
        """What a task reads ahead into, if one does."""
        self.origin: Origin | None = None
        self.offset = 0
        self.rows: Iterator[Any] | None = None
        """What is left of the block in hand, or"""
        self.columns: Any = None
        """the same as columns."""
        self.stop: int | None = None
        """Offset behind the last element in hand, where it is known."""
        self.spot: tuple[Origin | None, int] = (None, 0)

    def take_in_hand(self, block: Block[Any]) -> None:
        """Go on with a block's elements."""
        self.origin = block.origin
        self.offset = block.offset
        self.stop = None if block.length is None else block.offset + block.length
        if block.has_columns:
            self.columns = block.columns
        else:
            self.rows = block.rows()

    @property
    def is_empty(self) -> bool:
        """Whether no block is in hand."""
        return self.rows is None and self.columns is None

    def take_columns(self, count: int) -> Any:
        """Take columns off the front of those in hand, of which there are as many at least."""
        assert self.stop is not None
        have = self.stop - self.offset
        taken = self.columns if count == have else slice_columns(self.columns, 0, count)
        self.columns = None if count == have else slice_columns(self.columns, count, have)
        self.offset += count
        return taken

    def by_row(self) -> Iterator[Any] | None:
        """Give the elements in hand as an iterator, whatever they were before; None if there are none."""
        if self.columns is not None:
            self.rows, self.columns = iterate(self.columns), None
        return self.rows

    def mark(self) -> Any:
        """Give what the reader's state is made of, frozen; it does not hold elements."""
        return self.fixed, self.origin, self.offset


def saved_mark(mark: Any) -> Any:
    """Give a reader's mark as JSON."""
    if mark is None:
        return None
    (outer, start, seeds, stages), origin, offset = mark
    inner = start if origin is None else cursor(origin, offset)
    return [cursor(*outer), inner, seeds, stages_checksum(stages)]
