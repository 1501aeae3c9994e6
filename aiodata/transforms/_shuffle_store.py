"""Where a shuffle keeps the elements of its window, rows or columns, and which numbers it has given."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.columns import iterate, take_columns
from aiodata.structure import flatten, map_structure, pack_like, same_structure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiodata.engine.block import Block

__all__ = ["ColumnStore", "Given", "IndexStore", "RowStore"]

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

SMALL = 64
"""Fewer numbers take less memory in a list than in an array of their own."""


MOST_BYTES, MOST_ROWS = 1 << 30, 1 << 17
"""For as many there is room from the start, where it is known how many rows come."""


class Given:
    """Numbers of the elements given since a snapshot: arrays of them, and lists where they come one by one.

    It is asked for numbers while it grows, also by other threads: what is in it stays as it is.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[tuple[int, Any]] = []
        """Each with how many there are before it; only the last one grows."""

    def __len__(self) -> int:
        """Count them."""
        if not self._parts:
            return 0
        before, last = self._parts[-1]
        return before + len(last)

    def extend(self, numbers: Numbers) -> None:
        """Add numbers, which nobody changes from now on."""
        if len(numbers) < SMALL:
            self.singly().extend(numbers.tolist())
        else:
            self._parts.append((len(self), numbers))

    def singly(self) -> list[int]:
        """Give the list to append single numbers to, until the next call of `extend`."""
        if not self._parts or not isinstance(self._parts[-1][1], list):
            self._parts.append((len(self), []))
        last: list[int] = self._parts[-1][1]
        return last

    def number(self, offset: int) -> int | None:
        """Give the number at an offset; None where nothing has been given yet."""
        for before, part in reversed(self._parts):
            if offset >= before:
                return int(part[offset - before]) if offset - before < len(part) else None
        return None


class RowStore:
    """Elements by their number; ids in the ring are the numbers themselves."""

    def __init__(self, elements: dict[int, Any]) -> None:
        self.elements = elements

    def add(self, rows: Iterator[Any], start: int, stop: int, number: int) -> Numbers:
        """Keep the next `stop - start` of rows, the first one having the given number; give their ids."""
        following = number + stop - start
        self.elements.update(zip(range(number, following), islice(rows, stop - start), strict=True))
        return np.arange(number, following)

    def take(self, ids: Numbers) -> list[Any]:
        """Take elements out."""
        return list(map(self.elements.pop, ids.tolist()))

    def numbers(self, ids: Numbers) -> Numbers:
        """Give the numbers of ids."""
        return ids


class IndexStore:
    """Rows of columns that lie in memory anyway, by their numbers: nothing is copied until they are taken out.

    Args:
        block: One that is within them.
        number: Of its first element.
    """

    def __init__(self, block: Block[Any], number: int) -> None:
        assert block.within is not None
        self._columns, first = block.within
        self.row_bytes = _row_bytes(block.columns)
        self._ahead = number - first
        """By how much an element's number is ahead of its row's; the same for all of them."""

    def fits(self, block: Block[Any], number: int) -> bool:
        """Tell whether a block whose first element has that number goes on in the same columns."""
        within = block.within
        return within is not None and within[0] is self._columns and number - within[1] == self._ahead

    def add(self, columns: Any, start: int, stop: int, number: int) -> Numbers:
        """Keep rows `start` to `stop` of a block, the first one having the given number; give their ids."""
        return np.arange(number, number + stop - start)

    def take(self, ids: Numbers) -> Any:
        """Take rows out, as columns."""
        return take_columns(self._columns, ids - self._ahead)

    def numbers(self, ids: Numbers) -> Numbers:
        """Give the numbers of ids."""
        return ids

    def rows(self, ids: Numbers) -> Iterator[Any]:
        """Iterate over the elements of ids."""
        return iterate(self.take(ids))


class ColumnStore:
    """Rows of columns in slots of arrays that grow as needed; ids in the ring are slots.

    Args:
        columns: Columns of the structure, shapes and dtypes that are to be kept.
        most: How many rows there will be at the most, if that is known. As many have room from the start: memory that
            is not written to is not taken, and arrays that never grow are never copied.
    """

    def __init__(self, columns: Any, most: int = 0) -> None:
        self.row_bytes = _row_bytes(columns)
        self._most = most if most <= MOST_ROWS and most * self.row_bytes <= MOST_BYTES else 0
        self._arrays: list[Any] = [None if leaf is None else leaf[:0].copy() for leaf in flatten(columns)]
        self._template = map_structure(lambda leaf: None if leaf is None else leaf[:0].copy(), columns)
        self._numbers = np.empty(0, np.int64)
        self._free = np.empty(0, np.int64)

    def fits(self, block: Block[Any], number: int) -> bool:
        """Tell whether a block's columns have the structure, shapes and dtypes of this store."""
        columns = block.columns
        if same_structure(self._template, columns):
            return False
        return all(
            (ours is None and theirs is None)
            or (
                ours is not None
                and theirs is not None
                and ours.shape[1:] == theirs.shape[1:]
                and ours.dtype == theirs.dtype
            )
            for ours, theirs in zip(self._arrays, flatten(columns), strict=True)
        )

    @classmethod
    def of(cls, columns: Any, numbers: Numbers) -> tuple[ColumnStore, Numbers]:
        """Make a store of rows that have the given numbers; give it and their slots."""
        store = cls(columns)
        slots = store.add(columns, 0, len(numbers), 0)
        store._numbers[slots] = numbers
        return store, slots

    def add(self, columns: Any, start: int, stop: int, number: int) -> Numbers:
        """Keep rows `start` to `stop` of columns, the first one having the given number; give their slots."""
        count = stop - start
        if len(self._free) < count:
            self._grow(count - len(self._free))
        slots, self._free = self._free[:count], self._free[count:]
        self._numbers[slots] = np.arange(number, number + count)
        for array, leaf in zip(self._arrays, flatten(columns), strict=True):
            if array is not None:
                array[slots] = leaf[start:stop]
        return slots

    def _grow(self, more: int) -> None:
        size = len(self._numbers)
        larger = max(size + more, min(2 * size, size + 65536), self._most)
        self._free = np.concatenate([self._free, np.arange(size, larger)])
        self._numbers = np.concatenate([self._numbers, np.zeros(larger - size, np.int64)])
        for number, array in enumerate(self._arrays):
            if array is not None:
                grown = np.empty((larger, *array.shape[1:]), array.dtype)
                grown[:size] = array
                self._arrays[number] = grown

    def take(self, slots: Numbers) -> Any:
        """Take rows out of their slots, as columns, and free the slots."""
        columns = take_columns(pack_like(self._template, self._arrays), slots)
        for array in self._arrays:
            if array is not None and array.dtype == object:
                array[slots] = None  # else the arrays would keep the elements alive
        self._free = np.concatenate([self._free, slots])
        return columns

    def numbers(self, slots: Numbers) -> Numbers:
        """Give a copy of the numbers of the rows in slots."""
        return self._numbers.take(slots)

    def rows(self, slots: Numbers) -> Iterator[Any]:
        """Iterate over the elements in slots."""
        return iterate(take_columns(pack_like(self._template, self._arrays), slots))


def _row_bytes(columns: Any) -> int:
    """Give the bytes of a row in its arrays."""
    return sum(int(np.prod(leaf.shape[1:])) * leaf.itemsize for leaf in flatten(columns) if leaf is not None)
