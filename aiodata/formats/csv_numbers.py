"""Plain decimal numbers to numpy arrays, many fields at once and without a Python step for each.

Plain means: a `-` or none, then digits, with or without one point among them or at either end. Eight characters are one
integer of 64 bits, whose bytes are turned into digits, pairs of digits and so on by the same few operations for all
fields. A decimal fraction is an integer below 2**53 divided by a power of ten below 2**53. Both are exact as floats, so
that the quotient is the float that lies nearest to the number, as `float` gives it (Clinger, "How to read floating
point numbers accurately", 1990).

Constants are arrays without dimensions: numpy takes them as they are, but would convert scalars in every call, and in
blocks of a few records the calls are what takes time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LONGEST", "MARGIN", "POINT", "eights", "long_decimals", "short_decimals"]

LONGEST = 16
"""Characters of a plain number, its sign not counted."""

MARGIN = 8
"""Bytes of anything that must stand before the text; the first field has a character of the text before it."""

POINT = 8
"""The least place of a point; what has none has less."""


def _word(value: int) -> npt.NDArray[np.int64]:
    return np.array(value, np.uint64).view(np.int64)


_WORD = np.dtype("<i8")
_EACH = 0x0101010101010101
_ALL = 2**64 - 1
_ONES = _word(_EACH)
_HIGH = _word(_EACH * 0x80)
_HIGH_BUT_LAST = _word(_EACH * 0x80 >> 8)
_ZEROS = _word(_EACH * ord("0"))
_POINTS = _word(_EACH * (ord(".") ^ ord("0")))
_ABOVE_NINE = _word(_EACH * (0x7F - 9))
_MINUS = np.array(ord("-"), np.uint8)
_1, _8, _16, _32 = map(_word, (1, 8, 16, 32))
_TO_PAIRS, _TO_FOURS, _TO_EIGHT = (_word((10**size << 8 * size) + 1) for size in (1, 2, 4))
_PAIRS, _FOURS = map(_word, (0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF))

_KEPT = np.array([0, 0, *[_ALL ^ (_ALL >> 8 * size) for size in range(1, 9)], 0], np.uint64).view(np.int64)
"""What belongs to a field of 0 to 8 characters, by 1 more than their number; nothing of a longer one."""

_MARKS = np.array([_HIGH, _HIGH, *[_POINTS] * 8, _HIGH], np.int64)
"""What makes points zeros, and flaws where there are no characters or too many."""

_SCALES = np.array(
    [1, 1, -1, *[1] * 5, *[sign * 10.0**power for power in range(8, 0, -1) for sign in (1, -1, *[1] * 6)]]
)
"""10 to the number of digits behind the point and 1 more, or 1 without a point, by its place."""

_LONG_KEPT = _KEPT[:-1]

_LONG_SCALES = 10.0 ** np.array(
    [[7 - low if low < 8 else 15 - high if high < 8 else 0 for high in range(9)] for low in range(9)]
)
"""10 to the number of digits behind the point, by its place, in bytes, in the lower and in the higher word."""


def eights(padded: bytes) -> npt.NDArray[np.int64]:
    """View every 8 bytes in a row of `padded` as one integer, the first byte in its lowest bits."""
    return np.ndarray((max(0, len(padded) - 7),), _WORD, padded, 0, (1,))


def short_decimals(
    chars: npt.NDArray[np.uint8],
    words: npt.NDArray[np.int64],
    before: npt.NDArray[np.intp],
    ends: npt.NDArray[np.intp],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Convert fields of at most 8 characters, a sign not counted.

    Args:
        chars: The text that the fields are in.
        words: The `eights` of that text behind a `MARGIN`.
        before: Places in the text of the character before each field, any shape.
        ends: Places of the character behind each, as many.

    Returns:
        The values; flaws, 0 where a field is plain, no longer, and does not end with a point, while elsewhere the value
        means nothing; and the places of the points, from `POINT` on where there is one.
    """
    negative = (chars[1:].take(before) == _MINUS).view(np.uint8)
    sizes = ends - before
    sizes -= negative
    digits = words[ends]
    digits ^= _ZEROS
    flaws = _KEPT.take(sizes, None, None, "clip")
    digits &= flaws
    _MARKS.take(sizes, None, flaws, "clip")
    flaws ^= digits
    spare = flaws - _ONES
    spare &= _HIGH_BUT_LAST  # so that a lone point, which is no number, is none
    mask = spare - _1
    mask ^= spare  # the bits up to the first point's; all of them if there is none
    places = np.bitwise_count(mask)  # 8 to 56, or 1: that of a number below 0 is its absolute value's
    places += negative
    mask >>= _8
    np.right_shift(digits, _8, spare)
    digits ^= spare
    digits &= mask
    digits ^= spare  # the digits behind the point now begin in its place
    np.add(digits, _ABOVE_NINE, spare)
    flaws |= spare
    flaws &= _HIGH
    values = _numbers(digits).astype(np.float64)
    values /= _SCALES.take(places)
    return values, flaws, places


def long_decimals(
    chars: npt.NDArray[np.uint8],
    words: npt.NDArray[np.int64],
    before: npt.NDArray[np.intp],
    ends: npt.NDArray[np.intp],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Convert fields of 2 to `LONGEST` characters, a sign not counted; arguments are those of `short_decimals`, (n,).

    Returns:
        The values; where fields are plain, while elsewhere the value means nothing; and where they are integers below
        2**53.
    """
    negative = chars[before + 1] == _MINUS
    sizes = ends - before - negative - 1
    low = (words[ends] ^ _ZEROS) & _LONG_KEPT.take(sizes + 1, mode="clip")
    high = (words[np.maximum(ends - 8, 0)] ^ _ZEROS) & _LONG_KEPT.take(sizes - 7, mode="clip")
    flaws = low | high
    low_place, low_moves = _point(low)
    high_place, high_moves = _point(high)
    high_moves[low_place < 8] = -1
    carried = high >> _word(56)
    high = (high << _8) & high_moves | high & ~high_moves  # the digits before the point move to it
    low = (low << _8 | carried) & low_moves | low & ~low_moves
    flaws |= (low + _ABOVE_NINE) | (high + _ABOVE_NINE)
    plain = (flaws & _HIGH == 0) & (sizes > 1) & (sizes <= LONGEST)
    numbers = _numbers(high) * 10**8 + _numbers(low)
    scales = _LONG_SCALES[low_place, high_place]
    values = numbers / np.where(negative, -scales, scales)
    return values, plain, plain & ((low_place & high_place) == 8) & (numbers < 2**53)


def _point(digits: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Give the byte where the first point is, 8 if there is none, and a mask of the bytes up to it."""
    marks = ((digits ^ _POINTS) - _ONES) & _HIGH
    mask = marks ^ (marks - _1)
    mask[marks == 0] = 0
    place = (np.bitwise_count(mask.view(np.uint64)) >> 3) - np.uint8(1)
    return np.minimum(place, 8), mask


def _numbers(digits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Give, in the same memory, the number that 8 bytes of 0 to 9 are, the lowest byte being the first digit."""
    digits *= _TO_PAIRS
    digits >>= _8
    digits &= _PAIRS
    digits *= _TO_FOURS
    digits >>= _16
    digits &= _FOURS
    digits *= _TO_EIGHT
    digits >>= _32
    return digits
