"""Selections by the rows of a further input: rows of weights, or the numbers of the inputs themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.position import locate
from aiodata.errors import DataError, StructureError
from aiodata.sources._selection import Uniforms, cumulated, typed

if TYPE_CHECKING:
    import numpy.typing as npt

    from aiodata.sources._directed import Input

__all__ = ["IndexChoices", "RowChoices", "WeightChoices"]

MOST = 4096
"""Selections made before the reader gets a turn."""
DEAD_MOST = 256
"""Rows spent on inputs that have ended before the event loop gets a turn."""


class RowChoices(ABC):
    """Selections made from the rows of an input, one from each; a row is read when its selection is made.

    A kind of selection gives `choice`, and `method` for error messages.

    Attributes:
        picks: Numbers of inputs, one for each selection that has been made, without those of inputs that had ended.

    Args:
        rows: The input that gives the rows.
        live: Which inputs have not ended; kept up by the reader.
        used: Number of rows that have been read before.
    """

    fixed = False
    method: str

    def __init__(self, rows: Input, live: npt.NDArray[np.bool_], used: int = 0) -> None:
        self.picks: list[int] = []
        self.rows = rows
        self.live = live
        self._begun = self._used = used
        self._before: list[tuple[int, Any]] = []

    @abstractmethod
    def choice(self, row: Any) -> int:
        """Give the number of the input that a row selects.

        Raises:
            Exception: It cannot be told from the row.
        """

    def fail(self) -> None:  # noqa: B027 - to be extended, not to be given
        """Note that a row failed."""

    def load(self, live: npt.NDArray[np.bool_]) -> None:
        """Forget the picks that are used up."""
        self.picks, self._before = [], []

    def more(self) -> bool:
        """Select by the next row that is at hand, passing over inputs that have ended; tell whether there was one.

        Raises:
            Exception: The row failed, or nothing can be selected by it; it is spent.
        """
        if len(self.picks) >= MOST:
            return False
        end = self
        for _ in range(DEAD_MOST):
            if self.rows.rows is None:
                return False
            before = (self._used, self.rows.here())
            try:
                row = next(self.rows.rows, end)
            except Exception:
                self._spend()
                self.fail()
                raise
            if row is end:
                self.rows.rows = None
                return False
            self._spend()
            try:
                chosen = self.choice(row)
            except Exception as error:
                assert self.rows.origin is not None
                number, offset = self._used - self._begun - 1, self.rows.offset - 1
                locate(error, f"{self.method}()", number, self.rows.origin, offset)
                raise
            if self.live[chosen]:
                self.picks.append(chosen)
                self._before.append(before)
                return True
        return False

    def _spend(self) -> None:
        self._used += 1
        self.rows.offset += 1

    def drop(self, chosen: int, at: int) -> int:
        """Pass over the pick number `at`, of an input that has ended; there is none behind it."""
        return at + 1

    def mark(self, at: int) -> dict[str, Any]:
        """Give what opens the selections again at pick number `at`: how many rows there were, and the next one."""
        used, row = self._before[at] if at < len(self._before) else (self._used, self.rows.here())
        return {"used": used, "row": row}


class WeightChoices(RowChoices):
    """Random selections, each by a row of weights of its own.

    Args:
        rows: The input that gives the weights.
        live: As for `RowChoices`.
        used: As for `RowChoices`.
        pair: The seed pair of the selections' words.
    """

    method = "sample_from_datasets"

    def __init__(self, rows: Input, live: npt.NDArray[np.bool_], used: int, pair: tuple[int, int]) -> None:
        super().__init__(rows, live, used)
        self._uniforms = Uniforms(pair, used)
        self._waiting: list[float] = []
        self._last: tuple[Any, list[float]] = (None, [])

    def choice(self, row: Any) -> int:
        """Give the number of the input that a row of weights and the next random number select.

        Raises:
            TypeError: They are not floating-point numbers.
            StructureError: There is not one for each input, or none is positive.
        """
        uniform = self._uniform()
        known, sums = self._last
        if row is not known:
            sums = self._sums(row)
            if isinstance(row, np.ndarray) and not row.flags.writeable:  # else it may be another the next time
                self._last = (row, sums)
        return bisect_right(sums, uniform * sums[-1])

    def fail(self) -> None:
        """Note that a row failed; its selection is spent."""
        self._uniform()

    def _uniform(self) -> float:
        if not self._waiting:
            self._waiting = self._uniforms.take()[::-1].tolist()
        return self._waiting.pop()

    def _sums(self, row: Any) -> list[float]:
        weights = typed(row)
        if weights.shape != self.live.shape:
            raise StructureError(
                f"sample_from_datasets: a row of weights has shape {weights.shape}, not a weight for each of "
                f"the {len(self.live)} datasets"
            )
        sums = cumulated(weights)
        if not sums[-1] > 0:
            raise StructureError(f"sample_from_datasets: no weight of the row {weights.tolist()} is positive")
        return sums


class IndexChoices(RowChoices):
    """Selections by rows that are numbers of inputs."""

    method = "choose_from_datasets"

    def choice(self, row: Any) -> int:
        """Give the number of the input.

        Raises:
            StructureError: The row is not one integer.
            DataError: There is no such input.
        """
        if isinstance(row, np.ndarray) and row.shape == ():
            row = row[()]
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)):
            raise StructureError(f"choose_from_datasets: a choice must be an integer, not {row!r:.80}")
        if not 0 <= row < len(self.live):
            most = len(self.live) - 1
            raise DataError(f"choose_from_datasets: choice {row} is out of range: datasets are numbered 0 to {most}")
        return int(row)
