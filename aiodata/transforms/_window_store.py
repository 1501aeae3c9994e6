"""Where a shuffle keeps the elements of its window: a dictionary of rows, or slots in arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.columns import iterate, take_columns
from aiodata.structure import flatten, map_structure, pack_like, same_structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ColumnStore", "RowStore"]


class RowStore:
    """Elements by their number; ids in the ring are the numbers themselves."""

    def __init__(self, elements: dict[int, Any]) -> None:
        self.elements = elements

    def numbers(self, ids: list[int]) -> list[int]:
        """Give the numbers of ids."""
        return ids


class ColumnStore:
    """Rows of columns in slots of arrays that grow as needed; ids in the ring are slots.

    Args:
        columns: Columns of the structure, shapes and dtypes that are to be kept.
    """

    def __init__(self, columns: Any) -> None:
        self._arrays: list[Any] = [None if leaf is None else leaf[:0].copy() for leaf in flatten(columns)]
        self._template = map_structure(lambda leaf: None if leaf is None else leaf[:0].copy(), columns)
        self._numbers = np.empty(0, np.int64)
        self._free = np.empty(0, np.int64)

    def fits(self, columns: Any) -> bool:
        """Tell whether columns have the structure, shapes and dtypes of this store."""
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

    def add(self, columns: Any, start: int, stop: int, number: int) -> np.ndarray[Any, Any]:
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
        larger = max(size + more, min(2 * size, size + 65536))
        self._free = np.concatenate([self._free, np.arange(size, larger)])
        self._numbers = np.concatenate([self._numbers, np.zeros(larger - size, np.int64)])
        for number, array in enumerate(self._arrays):
            if array is not None:
                grown = np.empty((larger, *array.shape[1:]), array.dtype)
                grown[:size] = array
                self._arrays[number] = grown

    def take(self, slots: np.ndarray[Any, Any]) -> Any:
        """Take rows out of their slots, as columns, and free the slots."""
        columns = take_columns(pack_like(self._template, self._arrays), slots)
        for array in self._arrays:
            if array is not None and array.dtype == object:
                array[slots] = None  # else the arrays would keep the elements alive
        self._free = np.concatenate([self._free, slots])
        return columns

    def numbers(self, slots: Sequence[int] | np.ndarray[Any, Any]) -> list[int]:
        """Give the numbers of the rows in slots."""
        found: list[int] = self._numbers[np.asarray(slots, np.int64)].tolist()
        return found

    def rows(self, slots: Sequence[int]) -> Iterator[Any]:
        """Iterate over the elements in slots."""
        return iterate(take_columns(pack_like(self._template, self._arrays), np.asarray(slots, np.int64)))
