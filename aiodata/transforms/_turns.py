"""Datasets that take turns: how far they get, and their columns made into one without touching single elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.structure import flatten, pack_like, same_structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.transforms._reader import Reader

__all__ = ["alike", "merged", "scheduled"]

PORTION = 4096
"""Elements that are taken at a time from all readers, at most."""

LEAST = 64
"""As many are taken from each one nevertheless, where that is not more than"""
PORTION_BYTES = 4 << 20


def scheduled(readers: Sequence[Reader | None], size: int, begun: int) -> tuple[int, list[int]] | None:
    """Say how far readers get until it is the turn of one that has no element in hand, or for a portion of elements.

    Args:
        readers: The readers in turn, from the present one on; None for a dataset that has to be opened.
        size: Elements in a turn.
        begun: How many of them the present turn has had already.

    Returns:
        How many elements come until then, with those that the present turn has had, and how many each reader gives;
        None if that is not known or nothing comes.
    """
    left = []
    for reader in readers:
        if reader is None or reader.is_empty:
            left.append(0)
        elif reader.stop is None:
            return None
        else:
            left.append(reader.stop - reader.offset)
    left[0] += begun
    turns = left if size == 1 else [count // size for count in left]
    rounds = min(turns)
    number = turns.index(rounds)  # the first one that has so few
    until = (rounds * len(left) + number) * size + left[number] % size
    until = min(until, begun + _portion(readers))
    if until == begun:
        return None
    rounds, rest = divmod(until, len(left) * size)
    more, part = divmod(rest, size)
    taken = [(rounds + 1) * size] * more + [rounds * size] * (len(left) - more)
    if part:
        taken[more] += part
    taken[0] -= begun
    return until, taken


def _portion(readers: Sequence[Reader | None]) -> int:
    """Say how many elements to take: enough from each of many readers to be worth turning to it, but no megabytes."""
    if len(readers) * LEAST <= PORTION:
        return PORTION
    columns = next((reader.columns for reader in readers if reader is not None and reader.columns is not None), None)
    row_bytes: int = sum(leaf[:1].nbytes for leaf in flatten(columns) if leaf is not None)
    return max(PORTION, min(len(readers) * LEAST, PORTION_BYTES // max(1, row_bytes)))


def alike(one: Any, other: Any) -> bool:
    """Tell whether columns have the same structure, row shapes and dtypes, keys in the same order."""
    if type(one) is np.ndarray and type(other) is np.ndarray:
        return bool(one.dtype == other.dtype) and one.shape[1:] == other.shape[1:]
    if same_structure(one, other) or _keys(one) != _keys(other):
        return False
    return all(
        left is right is None
        or (left is not None and right is not None and left.dtype == right.dtype and left.shape[1:] == right.shape[1:])
        for left, right in zip(flatten(one), flatten(other), strict=True)
    )


def _keys(columns: Any) -> Any:
    if isinstance(columns, dict):
        return [(key, _keys(part)) for key, part in columns.items()]
    if isinstance(columns, tuple):
        return [_keys(part) for part in columns]
    return None


def merged(parts: Sequence[Any], counts: Sequence[int], size: int, begun: int) -> Any:
    """Give the rows of columns that take turns of `size` rows.

    Args:
        parts: Columns that are alike, in the order of their turns; anything where the count is 0.
        counts: Rows of each, as many as it has in its turns until the last row.
        size: Rows in a turn.
        begun: How many rows of the first turn have been given before.

    Returns:
        Columns of `sum(counts)` rows.
    """
    present = [number for number, count in enumerate(counts) if count]
    template = parts[present[0]]
    leaves = [flatten(parts[number]) for number in present]
    places = [_places(number, counts[number], size, begun, len(counts)) for number in present]
    total = sum(counts)
    joined: list[Any] = []
    for at, first in enumerate(leaves[0]):
        if first is None:
            joined.append(None)
            continue
        whole = np.empty((total, *first.shape[1:]), first.dtype)
        for place, each in zip(places, leaves, strict=True):
            whole[place] = each[at]
        joined.append(whole)
    return pack_like(template, joined)


def _places(number: int, count: int, size: int, begun: int, parts: int) -> Any:
    """Say which of the rows come from a part: a slice, or their numbers."""
    if size == 1:
        return slice(number, None, parts)
    rows = np.arange(count)
    if not number:
        rows += begun
    return rows // size * (size * parts) + number * size + rows % size - begun
