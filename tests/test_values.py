"""`aiodata.values`: what a position holds of a stage's own state comes back exactly, by way of JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata.errors import StateError
from aiodata.values import decode, encode
from tests.programs import Pair, arr, assert_same, objects


def through_json(value: Any, like: Any = None) -> Any:
    return decode(json.loads(json.dumps(encode(value, "the state"), allow_nan=False)), like)


@pytest.mark.parametrize(
    "value",
    [
        *[None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**20_000],
        *[0.0, 1.0, 0.1, 5e-324, float("inf"), float("-inf"), float("nan"), 1j],
        *["", "text", "é\ud800", "x\0", b"", b"\0\xff\0"],
        *[np.bool_(True), np.int8(-1), np.uint64(2**64 - 1), np.float16(0.1), np.float64("nan"), np.complex64(1 + 2j)],
        *[np.datetime64("2020-01-01"), np.timedelta64(5, "ms"), np.str_("a\0"), np.bytes_(b"a\0")],
        *[arr([1, 2], ">i4"), arr([[1.5, np.nan]], np.float16), np.zeros((0, 3)), arr(7, np.uint8), arr([True], bool)],
        *[arr(["ab", "c"], "U2"), arr([b"ab"], "S2"), arr(["2020"], "M8[Y]"), np.arange(6).reshape(2, 3).T],
        *[objects("a", b"b\0", None, 2**70), objects(arr([1]), arr([2, 3], np.int8)), np.empty((2, 0), object)],
        *[(), (1,), ((), (1, (2, "x"))), {}, {"a": 1, 2: (b"x", {"y": None}), (1, "k"): 0.5, b"z": arr([1])}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_comes_back_exactly(value: Any) -> None:
    found = through_json(value)
    assert_same(found, value)
    if isinstance(value, float):
        assert repr(found) == repr(value)


def test_the_sign_of_a_zero_is_kept() -> None:
    assert repr(through_json((-0.0, np.float32(-0.0)))) == "(-0.0, np.float32(-0.0))"
    assert repr(through_json(complex(float("nan"), -0.0))) == "(nan-0j)"


def test_the_order_of_a_dicts_keys_is_kept() -> None:
    assert list(through_json({"b": 1, "a": 2})) == ["b", "a"]


def test_named_tuples_come_back_where_the_template_has_them() -> None:
    value = {"p": Pair(1, (Pair("x", 2), 3)), "q": (1, 2)}
    assert_same(through_json(value, like={"q": (0, 0), "p": Pair(0, (Pair(0, 0), 0))}), value)
    assert_same(through_json(value), {"p": (1, (("x", 2), 3)), "q": (1, 2)})
    assert_same(through_json(Pair(1, 2), like=(0, 0)), (1, 2))
    assert_same(through_json(Pair(1, 2), like=Pair(0, Pair(1, 1))), Pair(1, 2))


def test_arrays_come_back_writable_and_apart_from_the_original() -> None:
    array = np.arange(3)
    saved = encode(array, "the state")
    array[0] = 9
    found = decode(saved)
    found[1] = 7
    assert_same([found, decode(saved)], [arr([0, 7, 2]), arr([0, 1, 2])])


class Thing:
    """No number and no text."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Thing(), "the state of f is a Thing, which"),
        ({"x": (1, Thing())}, "component ['x'][1] of the state of f is a Thing, which"),
        (Pair(1, {2}), "component .y of the state of f is a set, which"),
        ([1], "the state of f is a list, which"),
        (objects(b"a", Thing()), "component [1] of the state of f is a Thing, which"),
        (np.zeros(2, "i4,f4"), "the state of f is a ndarray of dtype [('f0', '<i4'), ('f1', '<f4')], which"),
        (np.ma.masked_array([1, 2], [True, False]), "the state of f is a MaskedArray of dtype int64, which"),
        ({Thing: 1}, "of the state of f is a type, which"),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_what_cannot_be_encoded_is_named(value: Any, message: str) -> None:
    with pytest.raises(StateError) as failure:
        encode(value, "the state of f")
    assert message in str(failure.value)
    assert "a saved state cannot hold" in str(failure.value)


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"what": 1},
        {"array": "AQI=", "dtype": "|u1", "shape": [3]},
        {"array": "%", "dtype": "|u1", "shape": [0]},
        {"scalar": "AQI=", "dtype": "no"},
        {"bytes": 3},
        {"int": "z"},
        {"dict": [1]},
    ],
    ids=repr,
)
def test_what_was_not_encoded_is_refused(saved: Any) -> None:
    with pytest.raises(StateError, match="not a saved value"):
        decode(saved)


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary())


@given(st.recursive(LEAVES, lambda inner: st.one_of(st.tuples(inner, inner), st.dictionaries(st.text(), inner))))
def test_any_structure_comes_back(value: Any) -> None:
    assert repr(through_json(value)) == repr(value)
