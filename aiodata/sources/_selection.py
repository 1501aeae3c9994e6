"""Selections by fixed weights, in tf.data's order: from weights and random words to the number of an input."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.philox import WordStream, philox

if TYPE_CHECKING:
    import numpy.typing as npt

    from aiodata.sources._directed import Input

__all__ = ["FixedChoices", "Uniforms", "cumulated", "summary", "typed"]

_SCRAMBLE = (0x3EC8F720, 0x02461E29)
FEWEST, MOST = 64, 4096
"""Selections made at a time: few at first, then growing."""


class Uniforms:
    """The numbers in [0, 1) that selections are made from, each from two words of a stream.

    Args:
        pair: The seed pair that names the stream.
        used: Number of selections to skip, at no cost.
    """

    def __init__(self, pair: tuple[int, int], used: int) -> None:
        self._stream = WordStream(*pair, drawn=2 * used)
        self._size = FEWEST

    def take(self) -> npt.NDArray[np.float64]:
        """Make the next numbers, some 64 to 4,096."""
        words = self._stream.take(2 * self._size).astype(np.uint64)
        self._size = min(4 * self._size, MOST)
        m0, m1, m2, m3 = philox((words[::2], 0, words[1::2], 0), _SCRAMBLE)
        high, low, *_ = philox((0, 0, m2, m3), (m0, m1))
        mantissa = (high & np.uint64(0xFFFFF)) << np.uint64(32) | low
        return mantissa.astype(np.float64) * 2.0**-52


def typed(weights: Any) -> npt.NDArray[Any]:
    """Give weights as tf.data types them: Python's floats are float32, what numpy has typed stays.

    Raises:
        TypeError: They are not floating-point numbers of 32 or 64 bits.
    """
    first: Any = next(iter(weights), None) if isinstance(weights, Sequence) else weights
    found = np.asarray(weights)
    if found.dtype.kind == "f" and not hasattr(first, "dtype"):
        with np.errstate(over="ignore", under="ignore"):
            found = found.astype(np.float32)
    elif found.dtype.kind == "f" and first is not weights:
        found = found.astype(first.dtype if first.dtype.kind == "f" else np.float32)
    if found.dtype not in (np.float32, np.float64):
        raise TypeError(f"sample_from_datasets: weights must be float32 or float64 numbers, not {found.dtype}")
    return found


def cumulated(weights: npt.NDArray[Any]) -> list[float]:
    """Give the running sums whose intervals are as likely as the weights say.

    The logarithms are rounded to the weights' own type, as tf.data's are. What has no finite one adds nothing, so that
    the last sum is 0 if no weight is positive and finite.
    """
    single = weights.dtype == np.float32
    logits = []
    for weight in weights.tolist():
        logit = math.log(weight) if 0 < weight < math.inf else -math.inf
        logits.append(float(np.float32(logit)) if single else logit)
    top = max(logits)
    total, sums = 0.0, []
    for logit in logits:
        total += math.exp(logit - top) if logit > -math.inf else 0.0
        sums.append(total)
    return sums


def summary(weights: npt.NDArray[Any]) -> str:
    """Give weights in words that tell them from others."""
    if len(weights) <= 8:
        return f"[{', '.join(map(str, weights))}]"
    return f"[{len(weights)} of CRC-32 {zlib.crc32(np.ascontiguousarray(weights).tobytes()):08x}]"


class FixedChoices:
    """Selections by weights that stay the same.

    Attributes:
        picks: Numbers of inputs, one for each selection that has been made, without those of inputs that had ended.

    Args:
        pair: The seed pair of the selections' words.
        used: Number of selections made before.
        sums: What `cumulated` gave.
    """

    rows: Input | None = None
    fixed = True

    def __init__(self, pair: tuple[int, int], used: int, sums: list[float]) -> None:
        self.picks: list[int] = []
        self._uniforms = Uniforms(pair, used)
        self._sums = np.array(sums)
        self._base = used
        self._made = 0
        self._numbers: npt.NDArray[np.intp] = np.empty(0, np.intp)

    def load(self, live: npt.NDArray[np.bool_]) -> None:
        """Replace `picks`, which are used up, by the next ones: perhaps none, if they were all of ended inputs."""
        self._base += self._made
        uniforms = self._uniforms.take()
        self._made = len(uniforms)
        choices = np.searchsorted(self._sums, uniforms * self._sums[-1], side="right")
        self._numbers = np.flatnonzero(live[choices])
        self.picks = choices[self._numbers].tolist()

    def more(self) -> bool:
        """Add to `picks` if that can be done at once; tell whether it could. These never do."""
        return False

    def drop(self, chosen: int, at: int) -> int:
        """Drop the picks of an input that has ended, from number `at` on; give the number of the one that is next."""
        picks = np.array(self.picks[at:], np.intp)
        keep = np.flatnonzero(picks != chosen)
        self._numbers = self._numbers[at:][keep]
        self.picks = picks[keep].tolist()
        return 0

    def mark(self, at: int) -> dict[str, Any]:
        """Give what opens the selections again at pick number `at`."""
        return {"used": self._base + (int(self._numbers[at]) if at < len(self._numbers) else self._made)}
