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

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LONGEST", "MARGIN", "NO_POINT", "eights", "long_decimals", "short_decimals"]

LONGEST = 16
"""Characters of a plain number, its sign not counted."""

MARGIN = 8
"""Bytes of anything that must stand before the text; the first field has a character of the text before it."""

NO_POINT = 64
"""The place of the point in fields that have none."""


def _word(value: int) -> npt.NDArray[np.uint64]:
    return np.array(value, np.uint64)


_EACH = 0x0101010101010101
_ALL = 2**64 - 1
_ONES = _word(_EACH)
_HIGH = _word(_EACH * 0x80)
_HIGH_BUT_LAST = _word(_EACH * 0x80 >> 8)
_ZEROS = _word(_EACH * ord("0"))
_POINTS = _word(_EACH * (ord(".") ^ ord("0")))
_ABOVE_NINE = _word(_EACH * (0x7F - 9))
_MINUS = np.array(ord("-"), np.uint8)
_1, _7, _8, _10, _16, _32 = map(_word, (1, 7, 8, 10, 16, 32))
_PAIRS, _FIRST_PAIRS, _LAST_PAIRS = map(_word, (0x000000FF000000FF, 1_000_000 << 32 | 100, 10_000 << 32 | 1))
_HALF = _word(10**8)

_KEPT = np.array([0, 0, *[_ALL ^ (_ALL >> 8 * size) for size in range(1, 9)], 0], np.uint64)
"""What belongs to a field of 0 to 8 characters, by 1 more than their number; nothing of a longer one."""

_MARKS = np.array([_HIGH, _HIGH, *[_POINTS] * 8, _HIGH], np.uint64)
"""What makes points zeros, and flaws where there are no characters or too many."""

_SCALES = np.array([10.0**power * sign for power in (*range(8, 0, -1), 0) for sign in (1, -1, *[1] * 6)])
"""10 to the number of digits behind the point and 1 more, by its place, which has 1 added if there is a minus."""

_LAST_KEPT = _KEPT[:-1]

_LONG_SCALES = 10.0 ** np.array(
    [[7 - low if low < 8 else 15 - high if high < 8 else 0 for high in range(9)] for low in range(9)]
)
"""10 to the number of digits behind the point, by its place, in bytes, in the lower and in the higher word."""


def eights(padded: bytes) -> npt.NDArray[np.uint64]:
    """View every 8 bytes in a row of `padded` as one integer, the first byte in its lowest bits."""
    return np.ndarray((max(0, len(padded) - 7),), "<u8", padded, strides=(1,))


def short_decimals(
    chars: npt.NDArray[np.uint8],
    words: npt.NDArray[np.uint64],
    before: npt.NDArray[np.intp],
    ends: npt.NDArray[np.intp],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """Convert fields of at most 8 characters, a sign not counted.

    Args:
        chars: The text that the fields are in.
        words: The `eights` of that text behind a `MARGIN`.
        before: Places in the text of the character before each field, any shape.
        ends: Places of the character behind each, as many.

    Returns:
        The values; flaws, 0 where a field is plain, no longer, and does not end with a point, while elsewhere the value
        means nothing; and the places of the points, with 1 added where there is a minus.
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
    mask = flaws - _ONES
    mask &= _HIGH_BUT_LAST  # so that a lone point, which is no number, is none
    mask >>= _7
    spare = np.negative(mask)
    mask &= spare
    mask -= _1  # the bits before the first point; all of them if there is none
    places = np.bitwise_count(mask)
    places += negative
    np.right_shift(digits, _8, spare)
    digits ^= spare
    digits &= mask
    digits ^= spare  # the digits behind the point now begin in its place
    np.add(digits, _ABOVE_NINE, spare)
    flaws |= spare
    flaws &= _HIGH
    values = _numbers(digits, spare).astype(np.float64)
    values /= _SCALES.take(places)
    return values, flaws, places


def long_decimals(
    chars: npt.NDArray[np.uint8],
    words: npt.NDArray[np.uint64],
    before: npt.NDArray[np.intp],
    ends: npt.NDArray[np.intp],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Convert fields of 2 to `LONGEST` characters, a sign not counted; arguments are those of `short_decimals`, (n,).

    Returns:
        The digits as one number, the power of ten to divide it by, below 0 where there is a minus, and where fields
        are plain; elsewhere the numbers mean nothing.
    """
    negative = chars[before + 1] == _MINUS
    sizes = ends - before - negative - 1
    low = (words[ends] ^ _ZEROS) & _LAST_KEPT.take(sizes + 1, mode="clip")
    high = (words[np.maximum(ends - 8, 0)] ^ _ZEROS) & _LAST_KEPT.take(sizes - 7, mode="clip")
    signs = (low | high) & _HIGH
    low_point, high_point = _first_point(low), _first_point(high)
    scales = _LONG_SCALES[np.bitwise_count(low_point - _1) >> 3, np.bitwise_count(high_point - _1) >> 3]
    moved = (high_point << _8) - (high_point != 0)  # the bytes up to the point
    moved[low_point != 0] = _ALL
    carried = high >> _word(56)
    high = (high << _8) & moved | high & ~moved
    moved = (low_point << _8) - (low_point != 0)
    low = (low << _8 | carried) & moved | low & ~moved
    flaws = signs | ((low + _ABOVE_NINE) | (high + _ABOVE_NINE)) & _HIGH
    numbers = _numbers(high, signs) * _HALF + _numbers(low, signs)
    plain = (flaws == 0) & (sizes > 1) & (sizes <= LONGEST)
    return numbers.astype(np.int64), np.where(negative, -scales, scales), plain


def _first_point(digits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Give the lowest bit of the byte where the first point is, or 0; bytes must be below 128."""
    found: npt.NDArray[np.uint64] = (((digits ^ _POINTS) - _ONES) & _HIGH) >> _7
    return found & np.negative(found)


def _numbers(digits: npt.NDArray[np.uint64], spare: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Give, in the same memory, the number that 8 bytes of 0 to 9 are, the lowest byte being the first digit."""
    np.right_shift(digits, _8, spare)
    digits *= _10
    digits += spare
    np.right_shift(digits, _16, spare)
    spare &= _PAIRS
    spare *= _LAST_PAIRS
    digits &= _PAIRS
    digits *= _FIRST_PAIRS
    digits += spare
    digits >>= _32
    return digits
