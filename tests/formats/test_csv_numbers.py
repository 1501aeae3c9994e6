"""Plain numbers many at a time: bit for bit what `float` and `int` give, and nothing else is taken for plain."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata.formats.csv_numbers import MARGIN, POINT, eights, long_decimals, short_decimals

SHORT = re.compile(rb"-?(?=.{1,8}\Z)[0-9]*(\.?[0-9]+)?", re.DOTALL)
LONG = re.compile(rb"-?(?=.{2,16}\Z)[0-9]*\.?[0-9]*", re.DOTALL)
DIGITS = st.text("0123456789", max_size=17)
SIGN = st.sampled_from(["", "-"])


def places(fields: list[bytes], delim: bytes) -> tuple[Any, ...]:
    text = b"\n" + b"".join([field + delim for field in fields])
    padded = b"9" * MARGIN + text
    bounds = np.cumsum([0, *[len(field) + 1 for field in fields]])
    return np.frombuffer(padded, np.uint8, offset=MARGIN), eights(padded), bounds[:-1], bounds[1:]


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def assert_exact(fields: list[bytes], delim: bytes = b",") -> None:
    values, flaws, points = short_decimals(*places(fields, delim))
    assert values.dtype == np.float64
    for field, value, flaw, point in zip(fields, values.tolist(), flaws.tolist(), points.tolist(), strict=True):
        assert (flaw == 0) == (SHORT.fullmatch(field) is not None), field
        if not flaw:
            assert bits(value) == bits(float(field)), field
            assert (point >= POINT) == (b"." in field), field
    values, plain, whole = long_decimals(*places(fields, delim))
    for field, value, good, integer in zip(fields, values.tolist(), plain.tolist(), whole.tolist(), strict=True):
        assert good == (LONG.fullmatch(field) is not None), field
        assert integer == (good and b"." not in field and abs(int(field)) < 2**53), field
        assert not good or bits(value) == bits(float(field)), field


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.builds(lambda sign, whole: (sign + whole).encode(), SIGN, DIGITS)
        | st.builds(lambda sign, whole, rest: f"{sign}{whole}.{rest}".encode(), SIGN, DIGITS, DIGITS)
        | st.text("0123456789.-+eE _/:x", max_size=18).map(str.encode)
        | st.floats().map(lambda x: repr(x).encode())
        | st.binary(max_size=18),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([b",", b"-", b".", b"5", b"\n", b"\0", b" "]),
)
def test_exact_or_not_plain(fields: list[bytes], delim: bytes) -> None:
    assert_exact(fields, delim)


@pytest.mark.parametrize("byte", range(256))
@pytest.mark.parametrize("sign", [b"", b"-"])
def test_every_byte_at_every_place(byte: int, sign: bytes) -> None:
    sizes = range(1, 18)
    fields = [b"%b%b%c%b" % (sign, b"7" * at, byte, b"7" * (size - at - 1)) for size in sizes for at in range(size)]
    assert_exact(fields)
    assert_exact([field.replace(b"77", b".7", 1) for field in fields])
    assert_exact([b"%c" % byte * size for size in range(20)])


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 15, 16, 17])
@pytest.mark.parametrize("sign", [b"", b"-", b"--", b"+", b"-+"])
def test_points_at_every_place(size: int, sign: bytes) -> None:
    digits = b"98765432109876543"[: size - 1]
    points = [sign + digits[:at] + b"." + digits[at:] for at in range(size)]
    assert_exact([*points, sign + digits + b"1", sign, b"", sign + b"0" * size, sign + b"9" * size])
    assert_exact([one + b"." for one in points] + [b"." + one for one in points])


def test_fields_of_any_shape() -> None:
    chars, words, before, ends = places([b"1.5", b"-2", b"x", b"3", b".25", b""], b",")
    values, flaws, points = short_decimals(chars, words, before.reshape(3, 2), ends.reshape(3, 2))
    assert values[flaws == 0].tolist() == [1.5, -2, 3, 0.25]
    assert (flaws != 0).tolist() == [[False, False], [True, False], [False, True]]
    assert (points >= POINT).tolist() == [[True, False], [False, False], [True, False]]


def test_many_decimals_are_rounded_as_float_does() -> None:
    numbers = np.random.default_rng(1)
    wholes, decimals = numbers.integers(0, 10**8, 20_000), numbers.integers(0, 10**7, 20_000)
    pairs = list(zip(wholes.tolist(), decimals.tolist(), strict=True))
    assert_exact([b"%d.%07d" % pair for pair in pairs])
    assert_exact([(b"%d.%07d" % pair)[:8].rstrip(b".") for pair in pairs])
    assert_exact([b"%d%d" % pair for pair in pairs])


def test_minus_zero_keeps_its_sign() -> None:
    values, flaws, _ = short_decimals(*places([b"-0", b"-.0", b"-0.00000"], b","))
    assert not flaws.any()
    assert values.tobytes() == struct.pack("3d", -0.0, -0.0, -0.0)
