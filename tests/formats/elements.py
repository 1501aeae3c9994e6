"""Elements of all kinds, for the tests of what keeps them in files."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aiodata import SparseTensor
from tests.programs import Pair, arr, objects

KINDS: list[Any] = [
    *[None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**70)],
    *[0.0, -0.0, 0.1, 5e-324, float("inf"), float("nan"), 1j, complex(float("nan"), -0.0)],
    *["", "text", "é\ud800", "x\0", b"", b"\0\xff\0"],
    *[np.bool_(True), np.int8(-1), np.uint64(2**64 - 1), np.float16(0.1), np.float64("nan"), np.complex64(1 + 2j)],
    *[
        np.datetime64("2020-01-01"),
        np.datetime64("NaT", "ns"),
        np.timedelta64(5, "ms"),
        np.str_("a\0"),
        np.bytes_(b"a\0"),
    ],
    *[arr([1, 2], ">i4"), arr([[1.5, np.nan]], np.float16), np.zeros((0, 3)), arr(7, np.uint8), arr([True], bool)],
    *[arr(["ab", "c"], "U2"), arr([b"ab\0"], "S3"), arr(["2020"], "M8[Y]"), np.arange(6).reshape(2, 3).T, np.zeros(0)],
    *[objects("a", b"b\0", None, 2**70), objects(arr([1]), arr([2, 3], np.int8)), np.empty((2, 0), object)],
    *[np.array(b"x", object), np.array([[b"a", "b"], [None, 1]], object), objects((), {}, (1, {"a": None}))],
    *[(), (1,), ((), (1, (2, "x"))), {}, {"a": 1, 2: (b"x", {"y": None}), (1, "k"): 0.5, b"z": arr([1])}],
    *[Pair(1, (Pair("x", 2), 3)), {1: "int", "1": "text"}, {"a/b": 1, "a.b": 2, "..": 3, "é": 4}, {"b": 1, "a": 2}],
    SparseTensor(arr([[0], [2]]), arr([1.5, 2.5], np.float32), arr([3])),
    np.array([(1, 2.5), (3, np.nan)], [("a", ">i2"), ("b", "f8")]),
    np.array([(1, [2, 3])], [("a", "i1"), ("b", "<u4", (2,))])[0],
    (np.array([(1, [2, 3])], [("a", "i1"), ("b", "<u4", (2,))])[0], {"x": np.datetime64("2020", "Y")}),
]
"""An element of each kind of value, and of each kind of structure."""

_texts = st.one_of(st.binary(max_size=5), st.text(max_size=5))
_numbers = st.one_of(st.booleans(), st.integers(-(2**65), 2**65), st.floats(), st.complex_numbers())
_dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(),
    hnp.datetime64_dtypes(),
    hnp.byte_string_dtypes(max_len=4),
    hnp.unicode_string_dtypes(max_len=3),
)
_arrays = hnp.arrays(_dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
_leaves = st.one_of(st.sampled_from(KINDS), st.none(), _texts, _numbers, _arrays)
_keys = st.one_of(st.text(max_size=3), st.integers(-3, 3), st.binary(max_size=2))


def _held(values: list[Any]) -> Any:
    return np.fromiter(values, object, len(values))


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Pair, inner, inner),
        st.dictionaries(_keys, inner, max_size=3),
        st.lists(inner, max_size=3).map(_held),
    )


elements = st.recursive(_leaves, _deeper, max_leaves=6)
"""Any elements."""


def _columns_of(rows: int) -> st.SearchStrategy[Any]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3).map(lambda shape: (rows, *shape))
    array = st.one_of(
        hnp.arrays(_dtypes, shapes),
        st.lists(_texts, min_size=rows, max_size=rows).map(_held),
        hnp.arrays(object, shapes, elements=_leaves, fill=st.nothing()),
    )
    part = st.one_of(array, st.none())
    return st.one_of(array, st.tuples(array, part), st.builds(Pair, array, part), st.fixed_dictionaries({"x": array}))


columns = st.integers(0, 5).flatmap(_columns_of)
"""Any columns."""


def _shown(x: Any) -> Any:
    """Show all there is to see of an element: types, the order of keys, signs of zeros, payloads of NaN."""
    if isinstance(x, dict):
        return dict, [(type(key), key, _shown(part)) for key, part in x.items()]
    if isinstance(x, (tuple, list)):
        return type(x), list(map(_shown, x))
    if isinstance(x, np.ndarray) and x.dtype == object:
        return np.ndarray, x.shape, list(map(_shown, x.ravel().tolist()))
    if isinstance(x, (np.str_, np.bytes_)):
        return type(x), x[:]
    if isinstance(x, (np.ndarray, np.generic)):
        return type(x), x.dtype, x.shape, x.tobytes()
    return type(x), repr(x)


def assert_exact(found: Any, expected: Any) -> None:
    """Fail unless elements are the same in everything."""
    __tracebackhide__ = True
    assert _shown(found) == _shown(expected)
