"""The elements of a shuffle's window that reading its input again has found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.columns import concat_columns, iterate, take_columns
from aiodata.engine.block import Failure
from aiodata.transforms._shuffle_store import ColumnStore, RowStore
from aiodata.transforms._turns import alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.engine.block import Block

__all__ = ["Found"]


class Found:
    """Elements by their numbers.

    Args:
        numbers: Those of the wanted elements, in the window's order.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._wanted = frozenset(numbers)
        self._rows: dict[int, Any] = {}
        self._columns: list[tuple[Any, list[int]]] = []

    def add(self, chunk: Block[Any], number: int) -> list[Any]:
        """Keep the wanted ones among computed elements, the first of which has the given number; give all, if rows."""
        count = chunk.length or 0
        places = [place for place in range(count) if number + place in self._wanted]
        if chunk.columns is not None:
            if places:
                columns = take_columns(chunk.columns, np.array(places))
                self._columns.append((columns, [number + place for place in places]))
            return []
        elements: list[Any] = chunk.computed or []
        for place in places:
            if elements[place].__class__ is Failure:
                raise elements[place].exception  # it did not fail when it went into the window
            self._rows[number + place] = elements[place]
        return elements

    def store(self, as_columns: bool) -> tuple[RowStore | ColumnStore | None, Any]:
        """Give a store of all elements, None if it is for the next ones to decide, and their ids in the window's order.

        Args:
            as_columns: Keep columns, as they were kept when the state was saved: what comes out is batched alike then.
        """
        if as_columns and not self._numbers:
            return None, []
        if as_columns and self._columns and not self._rows:
            first = self._columns[0][0]
            if all(alike(first, columns) for columns, _ in self._columns):
                found = np.array([number for _, numbers in self._columns for number in numbers])
                store, slots = ColumnStore.of(concat_columns([columns for columns, _ in self._columns]), found)
                slot_of = dict(zip(found.tolist(), slots.tolist(), strict=True))
                return store, [slot_of[number] for number in self._numbers]
        for columns, numbers in self._columns:
            self._rows.update(zip(numbers, iterate(columns), strict=True))
        return RowStore(self._rows), self._numbers
