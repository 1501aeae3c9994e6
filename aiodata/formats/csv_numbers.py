"""Plain decimal numbers to numpy arrays, a whole column of bytes at a time and without a Python step for each field.

Plain means: a `-` or none, then at most 8 digits, with or without a point, at most 7 more behind it. Eight characters
are one integer of 64 bits, whose bytes are turned into digits, pairs of digits and so on by the same few operations for
all rows. A decimal fraction is an integer below 2**53 divided by a power of ten below 2**53. Both are exact as floats,
so that the quotient is the float that lies nearest to the number, as `float` gives it (Clinger, "How to read floating
point numbers accurately", 1990).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LARGEST", "LONGEST", "MARGIN", "eights", "floats", "integers"]

LARGEST = 99_999_999
LONGEST = 16
"""Characters of a plain number, its sign not counted."""

MARGIN = 8
"""Bytes of anything that must stand before the first field."""

_U = np.uint64
_EACH = _U(0x0101010101010101)
_HIGH = _EACH * _U(0x80)
_ZEROS = _EACH * _U(ord("0"))
_ABOVE_NINE = _EACH * _U(0x7F - 9)
_POINTS = _EACH * _U(ord(".") ^ ord("0"))
_STEPS = ((_U(10), _U(8), _U(0x00FF00FF00FF00FF)), (_U(100), _U(16), _U(0x0000FFFF0000FFFF)))
_LAST = (_U(10_000), _U(32), _U(0xFFFFFFFF))
_POWERS = 10 ** np.arange(9)


def eights(padded: bytes) -> npt.NDArray[np.uint64]:
    """View every 8 bytes in a row of `padded` as one integer, the first byte in its lowest bits."""
    return np.ndarray((max(0, len(padded) - 7),), "<u8", padded, strides=(1,))


def integers(words: Any, negative: Any, ends: Any, lengths: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Convert fields to integers.

    Args:
        words: The `eights` of the bytes that the fields are in.
        negative: Whether each field begins with `-`, (n,) bool.
        ends: Where each field ends in those bytes, (n,), at least `MARGIN`.
        lengths: Number of characters of each, its `-` included, (n,).

    Returns:
        The values (n,), and whether each field is plain, (n,) bool; where it is not, the value means nothing.
    """
    digits = lengths - negative
    found = _characters(words, ends, digits)
    plain = (digits > 0) & (digits <= 8) & _are_digits(found)
    values = _value(found)
    return np.where(negative, -values, values), plain


def floats(words: Any, negative: Any, ends: Any, lengths: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Convert fields to float64, as `integers` does."""
    sizes = lengths - negative
    last = _characters(words, ends, np.minimum(sizes, 8))
    shifted = last ^ _POINTS
    marks = (shifted - _EACH) & ~shifted & _HIGH  # the lowest bit that is set marks the first point
    if not marks.any():
        plain = (sizes > 0) & (sizes <= 8) & _are_digits(last)
        values = _value(last).astype(np.float64)
        return np.where(negative, -values, values), plain
    has_point = marks != 0
    lowest = marks & (~marks + _U(1))
    fractions = np.where(has_point, 8 - (np.frexp(lowest.astype(np.float64))[1] >> 3), 0)
    behind = np.where(has_point, last & ~((lowest << _U(1)) - _U(1)), _U(0))
    wholes = sizes - fractions - has_point
    whole = _characters(words, ends - fractions - has_point, np.clip(wholes, 0, 8))
    plain = (wholes >= 0) & (wholes <= 8) & (wholes + fractions > 0) & _are_digits(whole) & _are_digits(behind)
    scale = _POWERS[fractions]
    values = (_value(whole) * scale + _value(behind)) / scale
    return np.where(negative, -values, values), plain


def _characters(words: Any, ends: Any, counts: Any) -> npt.NDArray[np.uint64]:
    """Give the last `counts` (0 to 8) characters before `ends`, less "0", in the highest bytes; zeros below them."""
    half = ((8 - counts) << 2).astype(np.uint64)  # of the bits to clear: a shift by all 64 is undefined
    found: npt.NDArray[np.uint64] = (words[ends - 8] ^ _ZEROS) >> half >> half << half << half
    return found


def _are_digits(characters: Any) -> npt.NDArray[np.bool_]:
    """Tell where all 8 bytes are 0 to 9."""
    found: npt.NDArray[np.bool_] = ((characters + _ABOVE_NINE) | characters) & _HIGH == 0
    return found


def _value(digits: Any) -> npt.NDArray[np.int64]:
    """Give the number that 8 bytes of 0 to 9 are, the lowest byte being the first digit."""
    for factor, shift, mask in (*_STEPS, _LAST):
        digits = (digits * factor + (digits >> shift)) & mask
    values: npt.NDArray[np.int64] = digits.astype(np.int64)
    return values
