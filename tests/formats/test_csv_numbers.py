"""Plain numbers a column at a time: bit for bit what `float` and `int` give, and nothing else is taken for plain."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata.formats.csv_numbers import MARGIN, eights, floats, integers

PLAIN_INTEGER = re.compile(rb"-?[0-9]{1,8}")
PLAIN_FLOAT = re.compile(rb"-?([0-9]{1,8}(\.[0-9]{0,7})?|\.[0-9]{1,7})")
DIGITS = st.text("0123456789", max_size=9)


def convert(function: Any, fields: list[bytes]) -> tuple[list[Any], list[bool]]:
    padded = b"9" * MARGIN + b",".join(fields) + b","
    chars = np.frombuffer(padded, np.uint8)
    lengths = np.array([len(field) for field in fields])
    ends = MARGIN + np.cumsum(lengths + 1) - 1
    values, plain = function(eights(padded), chars[ends - lengths] == ord("-"), ends, lengths)
    assert values.dtype == (np.int64 if function is integers else np.float64)
    return values.tolist(), plain.tolist()


def assert_exact(fields: list[bytes]) -> None:
    for field, value, plain in zip(fields, *convert(integers, fields), strict=True):
        assert plain == (PLAIN_INTEGER.fullmatch(field) is not None), field
        assert not plain or value == int(field), field
    for field, value, plain in zip(fields, *convert(floats, fields), strict=True):
        assert plain == (PLAIN_FLOAT.fullmatch(field) is not None), field
        assert not plain or struct.pack("d", value) == struct.pack("d", float(field)), field


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.builds(lambda sign, whole, rest: (sign + whole + rest).encode(), st.sampled_from(["", "-"]), DIGITS, DIGITS)
        | st.builds(
            lambda sign, whole, rest: f"{sign}{whole}.{rest}".encode(), st.sampled_from(["", "-"]), DIGITS, DIGITS
        )
        | st.text("0123456789.-+eE _/:x", max_size=12).map(str.encode)
        | st.floats().map(lambda x: repr(x).encode())
        | st.binary(max_size=10).filter(lambda field: b"," not in field),
        min_size=1,
        max_size=20,
    )
)
def test_exact_or_not_plain(fields: list[bytes]) -> None:
    assert_exact(fields)


@pytest.mark.parametrize("byte", range(256))
def test_every_byte_at_every_place(byte: int) -> None:
    if byte == ord(","):
        return
    fields = [
        b"%b%c%b" % (b"7" * before, byte, b"7" * (size - before - 1)) for size in range(1, 11) for before in range(size)
    ]
    assert_exact([field for field in fields if len(field) <= 10])


def test_many_decimals_are_rounded_as_float_does() -> None:
    numbers = np.random.default_rng(1)
    wholes, decimals = numbers.integers(0, 10**8, 20_000), numbers.integers(0, 10**7, 20_000)
    assert_exact([b"%d.%07d" % pair for pair in zip(wholes.tolist(), decimals.tolist(), strict=True)])


def test_minus_zero_keeps_its_sign() -> None:
    (value, other), plain = convert(floats, [b"-0", b"-.0"])
    assert plain == [True, True]
    assert struct.pack("dd", value, other) == struct.pack("dd", -0.0, -0.0)
