"""FarmHash's 64-bit fingerprint, which TensorFlow puts texts into buckets by; the same in every process, for ever.

Source: FarmHash by Geoff Pike, `farmhashna::Hash64` in https://github.com/google/farmhash.
"""

from __future__ import annotations

from struct import Struct

__all__ = ["fingerprint64"]

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MASK = (1 << 64) - 1
_WORD = Struct("<Q").unpack_from
_HALF = Struct("<I").unpack_from
_EIGHT = Struct("<8Q").unpack_from


def fingerprint64(data: bytes) -> int:
    """Give the fingerprint, in [0, 2**64).

    >>> fingerprint64(b"abc")
    2640714258260161385
    """
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 32:
        return _up_to_32(data, size)
    return _up_to_64(data, size) if size <= 64 else _long(data, size)


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value >> bits | value << 64 - bits) & _MASK


def _mixed(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _of_two(u: int, v: int, factor: int) -> int:
    first = _mixed(((u ^ v) & _MASK) * factor)
    return _mixed(((v ^ first) & _MASK) * factor) * factor & _MASK


def _up_to_16(data: bytes, size: int) -> int:
    factor = _K2 + 2 * size
    if size >= 8:
        a = _WORD(data)[0] + _K2
        b = _WORD(data, size - 8)[0]
        return _of_two(_rotated(b, 37) * factor + a, (_rotated(a, 25) + b) * factor, factor)
    if size >= 4:
        return _of_two(size + (_HALF(data)[0] << 3), _HALF(data, size - 4)[0], factor)
    if size:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[-1] << 2)
        return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _up_to_32(data: bytes, size: int) -> int:
    factor = _K2 + 2 * size
    a, b = _WORD(data)[0] * _K1, _WORD(data, 8)[0]
    c, d = _WORD(data, size - 8)[0] * factor, _WORD(data, size - 16)[0] * _K2
    return _of_two(_rotated(a + b, 43) + _rotated(c, 30) + d, a + _rotated(b + _K2, 18) + c, factor)


def _up_to_64(data: bytes, size: int) -> int:
    factor = _K2 + 2 * size
    a, b = _WORD(data)[0] * _K2, _WORD(data, 8)[0]
    c, d = _WORD(data, size - 8)[0] * factor, _WORD(data, size - 16)[0] * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _of_two(y, a + _rotated(b + _K2, 18) + c, factor)
    e, f = _WORD(data, 16)[0] * factor, _WORD(data, 24)[0]
    g, h = (y + _WORD(data, size - 32)[0]) * factor, (z + _WORD(data, size - 24)[0]) * factor
    return _of_two(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, factor)


def _long(data: bytes, size: int) -> int:
    """Mix block after block of 64 bytes, and then the last 64, into a state of seven words."""
    x, y = 81, 81 * _K1 + 113
    z = _mixed(y * _K2 + 113) * _K2
    x = x * _K2 + _WORD(data)[0]
    v = w = (0, 0)
    end = (size - 1) // 64 * 64
    for at in range(0, end, 64):
        x, y, z, v, w = _stirred(_EIGHT(data, at), x, y, z, v, w, _K1, 1)
    factor = _K1 + ((z & 0xFF) << 1)
    first = w[0] + (size - 1 & 63)
    second = v[0] + first
    v, w = (second, v[1]), (first + second, w[1])
    x, y, z, v, w = _stirred(_EIGHT(data, size - 64), x, y, z, v, w, factor, 9)
    left = _of_two(v[0], w[0], factor) + _mixed(y) * _K0 + z
    return _of_two(left, _of_two(v[1], w[1], factor) + x, factor)


_Pair = tuple[int, int]


def _stirred(
    words: tuple[int, ...], x: int, y: int, z: int, v: _Pair, w: _Pair, factor: int, weight: int
) -> tuple[int, int, int, _Pair, _Pair]:
    x = _rotated(x + y + v[0] + words[1], 37) * factor
    y = _rotated(y + v[1] + words[6], 42) * factor
    x = (x ^ w[1] * weight) & _MASK
    y = y + v[0] * weight + words[5] & _MASK
    z = _rotated(z + w[0], 33) * factor & _MASK
    v, w = _of_half(words[:4], v[1] * factor, x + w[0]), _of_half(words[4:], z + w[1], y + words[2])
    return z, y, x, v, w


def _of_half(words: tuple[int, ...], a: int, b: int) -> _Pair:
    a += words[0]
    b = _rotated(b + a + words[3], 21)
    total = a + words[1] + words[2]
    return (total + words[3] & _MASK, b + _rotated(total, 44) + a & _MASK)
