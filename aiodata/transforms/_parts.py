"""Which part of a split each element belongs to: drawn by its number, the same in every pass and process."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from aiodata.philox import WordStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["BEYOND", "Parts", "TOLERANCE", "exact_sizes"]

TOLERANCE = 1e-6
"""Fractions that add up to 1 but for so much are all of it; sums of such numbers are seldom exact."""

BEYOND = -1
"""Stands for the part of an element behind the last one that was known of: it is in none, and has no place."""

PORTION = 256
"""Elements whose parts are drawn at a time where it is not known how many there are."""


def exact_sizes(fractions: Sequence[float], count: int) -> list[int]:
    """Share `count` elements out, by the largest remainders; what the fractions leave over is nobody's.

    >>> exact_sizes([0.5, 0.3, 0.2], 11)
    [6, 3, 2]
    """
    shares = [Fraction(fraction) for fraction in fractions]
    total = sum(shares)
    if total > 1 - TOLERANCE:
        shares = [share / total for share in shares]
    shares.append(1 - sum(shares, Fraction(0)))
    quotas = [share * count for share in shares]
    sizes = [int(quota) for quota in quotas]
    first = sorted(range(len(quotas)), key=lambda number: sizes[number] - quotas[number])
    for number in first[: count - sum(sizes)]:
        sizes[number] += 1
    return sizes[:-1]


class Parts:
    """Draws parts for one element after the other.

    Where the number of elements is known, parts have exact sizes: element by element, a part is drawn as likely as it
    has places left (Knuth's algorithm S). Otherwise each element's part is drawn by itself. The draw for an element
    takes two words of the pair's stream, at twice its number.

    Args:
        pair: Names the stream of words.
        number: Number of the first element to draw for.
        left: Places left in each part, and last those of the elements that are in none; None draws each by itself.
        fractions: The parts' shares, for that.
    """

    def __init__(
        self, pair: tuple[int, int], number: int, left: Sequence[int] | None, fractions: Sequence[float]
    ) -> None:
        self._stream = WordStream(*pair, drawn=2 * number)
        self._number = number
        self._left = None if left is None else list(left)
        sums = [1.0 if total > 1 - TOLERANCE else total for total in accumulate(fractions)]
        self._bounds = np.array([round(total * 2**53) for total in sums], np.uint64)
        self.ahead: list[int] = []
        """Parts that have been drawn and not taken, the next one last; may be empty, `refill` brings more."""

    def refill(self) -> None:
        """Bring parts into `ahead`, which must be empty."""
        self.ahead.extend(self._draw(PORTION)[::-1].tolist())

    def take(self, count: int) -> npt.NDArray[np.intp]:
        """Take the parts of the next `count` elements."""
        ready = [self.ahead.pop() for _ in range(min(count, len(self.ahead)))]
        return np.concatenate([np.array(ready, np.intp), self._draw(count - len(ready))])

    def mark(self) -> tuple[int, list[int] | None]:
        """Give the `number` and `left` that the next element's part is drawn from."""
        number = self._number - len(self.ahead)
        if self._left is None:
            return number, None
        left = list(self._left)
        for part in self.ahead:
            if part != BEYOND:
                left[part] += 1
        return number, left

    def _draw(self, count: int) -> npt.NDArray[np.intp]:
        words = self._stream.take(2 * count).astype(np.uint64)
        self._number += count
        draws = (words[::2] << np.uint64(32) | words[1::2]) >> np.uint64(11)
        if self._left is None:
            return np.searchsorted(self._bounds, draws, side="right")
        total = sum(self._left)
        known = min(count, total)
        places = draws[:known].astype(np.float64) * 2.0**-53 * np.arange(total, total - known, -1)
        parts = np.full(count, BEYOND, np.intp)
        parts[:known] = _take_places(self._left, places.astype(np.int64).tolist())
        return parts


def _take_places(left: list[int], places: list[int]) -> list[int]:
    """Take one place after the other out of what is left in the parts; give the parts that they were in."""
    found = []
    for place in places:
        part = 0
        while place >= left[part]:
            place -= left[part]
            part += 1
        left[part] -= 1
        found.append(part)
    return found
