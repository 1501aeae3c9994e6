"""Positions in files and queries: what they promise, and that it is noticed where it does not hold any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.errors import DataError, StateError

if TYPE_CHECKING:
    from aiodata.storage.marks import Mark

__all__ = ["Promise", "failed_position", "position"]


def position(where: tuple[Any, ...], count: int, mark: Mark = None) -> list[Any]:
    """Give the position of a run of records that were read.

    Args:
        where: What the reader needs to read from there on.
        count: How many records there are for sure, those of the run.
        mark: What tells the file from another.
    """
    return [*where, count, None if mark is None else list(mark)]


def failed_position(where: tuple[Any, ...], fault: str = "") -> list[Any]:
    """Give the position of a record that could not be read; `fault` may say why. The file may be repaired."""
    return [*where, fault or "failed", None]


class Promise:
    """What a saved position says is there: as many records as were read from it on.

    A cursor leaves out records behind its position. If the file has lost them, that would go on in the next file, or
    what is left would be taken for everything: both lose records in silence. So until as many records have been given
    as the position has, whatever goes wrong ends the run.

    Args:
        start: A position, or None to begin where a file begins.
        first: What the reader needs to begin there.
    """

    def __init__(self, start: Any, first: tuple[Any, ...]) -> None:
        self.where: list[Any]
        *self.where, fact, self.mark = start or (*first, 0, None)
        self.fault: str = fact if isinstance(fact, str) else ""
        """What failed here, if the position is that of a record that could not be read."""
        self.count: int = 1 if self.fault else fact
        self._given = 0
        self.binds = start is not None and not self.fault
        """Whether an error ends the run now, and takes no record's place."""

    def give(self, count: int) -> None:
        """Count records that have been read, failed ones included."""
        self._given += count
        self.binds = self.binds and self._given < self.count

    def check(self, place: str) -> None:
        """Make sure that all have come; called at the end.

        Args:
            place: The place of the first one, such as "a.csv line 7".

        Raises:
            StateError: There are fewer.
            DataError: What could not be read before is not there now; it takes that record's place.
        """
        if self._given >= self.count:
            return
        if self.fault:
            raise DataError(f"{place}: it could not be read when the state was saved, and is not there now")
        raise StateError(
            f"{place}: {self.count} records were read from there on before the state was saved, but now there are "
            f"{self._given or 'none'}"
        )
