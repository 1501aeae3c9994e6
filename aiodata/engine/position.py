"""Positions: from where a stage can be opened again, and where in the data an element came from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Cursor", "Origin", "Position", "cursor", "locate", "nowhere"]

Position: TypeAlias = Any
"""A small JSON value from which a stage opens again."""

Cursor: TypeAlias = list[Any]
"""`[position, skip]`: open a stage at `position` and drop the first `skip` elements; a third part says what has been
drawn since, see `aiodata.engine.draws`."""


def nowhere(offset: int) -> str | None:
    """Name no place: for elements that come from memory."""
    return None


class Origin:
    """Where a run of elements came from; asked only when a state is saved or an error is described.

    It must not hold the elements themselves: a shuffle keeps the origins of all that it has read.

    Args:
        position: Gives the position of the run's first element.
        place: Gives the place of the run's element number `offset` in words (`"a.csv line 7"`), or None.
    """

    __slots__ = ("drawn", "place", "position")

    def __init__(self, position: Callable[[], Position], place: Callable[[int], str | None] = nowhere) -> None:
        self.position = position
        self.place = place
        self.drawn: Any = None
        """The last draw of a seed pair before the elements were given, if there can be any."""

    def within(self, position: Callable[[], Position], offset: int) -> Origin:
        """Give an origin with another stage's position but this one's places, shifted by `offset`."""
        if self.place is nowhere:
            return Origin(position)
        return Origin(position, self.place if offset == 0 else partial(_shifted, self.place, offset))


def _shifted(place: Callable[[int], str | None], shift: int, offset: int) -> str | None:
    return place(shift + offset)


def cursor(origin: Origin, offset: int) -> Cursor:
    """Give the cursor of the element that lies `offset` elements behind the start of `origin`."""
    drawn = [] if origin.drawn is None else origin.drawn.since()
    return [origin.position(), offset, drawn] if drawn else [origin.position(), offset]


def locate(error: BaseException, stage: str, index: int, origin: Origin, offset: int) -> None:
    """Add a note to `error` that names the stage, the element's number and the place in the data.

    Args:
        error: The exception, raised on as it is.
        stage: The stage's label, such as `map(parse)`.
        index: Number of the stage's input element, counted from where the iterator was opened.
        origin: Origin of the block that the element belongs to.
        offset: The element's offset in that origin.
    """
    place = origin.place(offset)
    note = f"in {stage}, element {index}" + (f", from {place}" if place else "")
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
