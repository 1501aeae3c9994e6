"""What a stage holds that collects groups of elements with the same key, and positions made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.engine.position import Origin, cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["Group", "Mark", "position"]


class Group:
    """Elements with the same key.

    Args:
        key: The key.
        size: How many elements make the group full.
        number: Number of the first element in the stage's input.
        origin: Where it came from.
        offset: Its offset there.
    """

    __slots__ = ("elements", "key", "number", "offset", "origin", "size")

    def __init__(self, key: int, size: int, number: int, origin: Origin, offset: int) -> None:
        self.key = key
        self.size = size
        self.number = number
        self.origin = origin
        self.offset = offset
        self.elements: list[Any] = []


class Mark:
    """What was held before some element, without the elements: where they came from, and how many each group had.

    Args:
        number: Number of that element.
        groups: The groups.
        origin: Where that element comes from.
        offset: Its offset there.
    """

    __slots__ = ("at", "held", "number", "seen")

    def __init__(self, number: int, groups: Collection[Group], origin: Origin, offset: int) -> None:
        self.number = number
        self.held = [[group.key, len(group.elements), group.size] for group in groups]
        self.at = origin, offset
        """Where the first element in any group came from; that element itself if there is none."""
        self.seen = 0
        """How many elements there were from that one on."""
        if groups:
            oldest = min(groups, key=lambda group: group.number)
            self.at = oldest.origin, oldest.offset
            self.seen = number - oldest.number


def position(
    mark: Mark, pulls: int, ended: int | None, made: list[Any] | None = None, here: Callable[[], Any] | None = None
) -> dict[str, Any]:
    """Give a position as JSON.

    Args:
        mark: What was held some time before.
        pulls: How many elements have been read since. The last of them made a group full, if one is being given.
        ended: At the input's end, the key of the group whose turn it is.
        made: Of the dataset that is being given, the seed generators as they were before it was opened, and what tells
            it from others.
        here: Gives the cursor in that dataset; None if it has not been opened.
    """
    return {
        "at": cursor(*mark.at),
        "seen": mark.seen,
        "held": mark.held,
        "pulls": pulls,
        "ended": ended,
        "inner": None if here is None or made is None else [here(), *made],
    }
