"""What is asked for of examples, checked once and kept, with what was learnt while it was read."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from aiodata.formats.example_columns import Column, FixedColumn, PaddedColumn, RaggedColumn, SparseColumn
from aiodata.formats.example_features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RawFeature,
    VarLenFeature,
)
from aiodata.formats.example_raw import RawColumn

if TYPE_CHECKING:
    from aiodata.formats.example_layout import Layout

__all__ = ["Request", "checked", "column_of", "compiled"]


class Request(NamedTuple):
    """What is wanted of examples, and what was learnt on the way.

    Args:
        columns: The columns.
        layouts: The layout that records of a size had last, by their size.
    """

    columns: list[Column]
    layouts: dict[int, Layout]


_recent: tuple[tuple[Any, ...], ...] = ()  # what `compiled` was given last and what it gave; replaced, never changed
_MOST_RECENT = 4


def compiled(features: Any, method: str) -> Request:
    """Check features and make columns of them, once for the same ones: a map parses by them for every element.

    Raises:
        TypeError: They are no dict of names and features.
        ValueError: There are none, or one that needs `allow_missing` has not got it.
    """
    global _recent
    names, given = (list(features), list(features.values())) if isinstance(features, Mapping) else ([], [])
    for kept_names, kept, request in _recent:
        if len(kept) == len(given) and all(map(is_, given, kept)) and names == kept_names:
            found: Request = request
            return found
    columns = [column_of(*item) for item in checked(features, Feature, f"{method}: features").items()]
    if not columns:
        raise ValueError(f"{method}: there are no features to read")
    for name, feature in features.items():
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(f"{method}: feature {name!r}: FixedLenSequenceFeature needs allow_missing=True")
    found = Request(columns, {})
    _recent = ((names, given, found), *_recent[: _MOST_RECENT - 1])
    return found


def checked(features: Any, allowed: Any, owner: str) -> dict[str, Feature]:
    """Check a dict of names and features.

    Args:
        features: What was given.
        allowed: The classes of features that may be in it.
        owner: The method and its argument, for errors.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(features, Mapping):
        raise TypeError(f"{owner} must be a dict of names and features, not {type(features).__name__}")
    for name, feature in features.items():
        if not isinstance(name, str):
            raise TypeError(f"{owner}: a feature's name must be a str, not {name!r}")
        if not isinstance(feature, allowed):
            raise TypeError(f"{owner}: there can be no such feature as {name!r} is: {feature!r:.200}")
    # Made anew, because what `_replace` gives has not been checked.
    return {name: type(feature)(*feature) for name, feature in features.items()}


def column_of(name: str, feature: Feature) -> Column:
    """Make the column of a feature."""
    if isinstance(feature, FixedLenFeature):
        return FixedColumn(name, feature)
    if isinstance(feature, RawFeature):
        return RawColumn(name, feature)
    if isinstance(feature, FixedLenSequenceFeature):
        return PaddedColumn(name, feature)
    return SparseColumn(name, feature) if isinstance(feature, VarLenFeature) else RaggedColumn(name, feature)
