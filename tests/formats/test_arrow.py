"""Arrow arrays to numpy columns: every type, nulls, slices."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata.columns import slice_columns
from aiodata.errors import StructureError
from aiodata.structure import flatten
from tests.programs import arr, assert_same, objects

if TYPE_CHECKING:
    from collections.abc import Callable

pa = pytest.importorskip("pyarrow", reason="Arrow's arrays need pyarrow")

from aiodata.formats.arrow import convert, fills, type_text  # noqa: E402 - behind importorskip

NAN, NAT = float("nan"), "NaT"


def converted(array: Any, **null_values: Any) -> tuple[Any, bool, list[Any]]:
    """Convert one array: the value, whether it is loose, and the rows in which something is missing."""
    batch = pa.record_batch({"c": array})
    found = convert(batch, fills(batch.schema, null_values))
    return found.columns["c"], found.loose, [(name, np.flatnonzero(mask).tolist()) for name, mask in found.missing]


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", [*INTEGERS, "float16", "float32", "float64", "bool"])
def test_numbers_keep_their_width(dtype: str) -> None:
    given = arr([1, 0, 1], dtype)
    assert_same(converted(pa.array(given))[0], given)
    assert_same(converted(pa.array(given[:0]))[0], given[:0])
    value, loose, missing = converted(pa.array(given, mask=arr([False, True, False], bool)))
    assert (value.dtype, loose) == (np.dtype(dtype), False)
    if value.dtype.kind == "f":
        assert_same(value, arr([1, NAN, 1], dtype))
        assert missing == []
    else:
        assert missing == [("c", [1])]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (lambda: pa.array([1, None], pa.date32()), arr([1, NAT], "M8[D]")),
        (lambda: pa.array([86_400_000, None], pa.date64()), arr([86_400_000, NAT], "M8[ms]")),
        (lambda: pa.array([1, None], pa.timestamp("s")), arr([1, NAT], "M8[s]")),
        (lambda: pa.array([1, None], pa.timestamp("ns", "Europe/Berlin")), arr([1, NAT], "M8[ns]")),
        (lambda: pa.array([1, None], pa.time32("ms")), arr([1, NAT], "m8[ms]")),
        (lambda: pa.array([1, None], pa.time64("us")), arr([1, NAT], "m8[us]")),
        (lambda: pa.array([-1, None], pa.duration("us")), arr([-1, NAT], "m8[us]")),
    ],
)
def test_times_keep_their_unit(array: Callable[[], Any], expected: Any) -> None:
    value, loose, missing = converted(array())
    assert (value.dtype, loose, missing) == (expected.dtype, False, [])
    assert_same(value.view(np.int64), expected.view(np.int64))  # NaT is not equal to itself
    assert_same(converted(array().slice(0, 1))[0], expected[:1])


TEXT = ["a", "", "grün\0"]


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_text_is_str(kind: str) -> None:
    made = getattr(pa, kind)()
    assert_same(converted(pa.array(TEXT, made)), (objects(*TEXT), False, []))
    assert_same(converted(pa.array(["a", None], made)), (objects("a", None), True, []))


@pytest.mark.parametrize("kind", ["binary", "large_binary", "binary_view"])
def test_binary_is_bytes(kind: str) -> None:
    assert_same(converted(pa.array([b"a\0", b"", None], getattr(pa, kind)())), (objects(b"a\0", b"", None), True, []))


def test_other_leaves() -> None:
    assert_same(converted(pa.array([b"ab", b"c\0"], pa.binary(2))), (objects(b"ab", b"c\0"), False, []))
    decimals = [Decimal("1.50"), None]
    assert_same(converted(pa.array(decimals, pa.decimal128(5, 2))), (objects(*decimals), True, []))
    assert_same(converted(pa.nulls(2)), (objects(None, None), True, []))
    coded = pa.array(["a", None, "b", "a"]).dictionary_encode()
    assert_same(converted(coded.slice(1)), (objects(None, "b", "a"), True, []))
    assert_same(converted(pa.array([5, 7, 5]).dictionary_encode()), (arr([5, 7, 5]), False, []))
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], [1.5, 2.5])
    assert_same(converted(runs.slice(1)), (arr([1.5, 2.5], float), False, []))


def test_text_that_is_not_utf_8_is_an_error() -> None:
    bad = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff"]).buffers()[1:]])
    with pytest.raises(Exception, match=r"decode|Wrapping"):
        converted(bad)


# Nested


def test_structs_are_dicts_and_a_null_one_has_null_fields() -> None:
    array = pa.array([{"a": 1.0, "b": {"c": "x"}}, None, {"a": None, "b": None}])
    expected = {"a": arr([1, NAN, NAN], float), "b": {"c": objects("x", None, None)}}
    assert_same(converted(array), (expected, True, []))
    assert_same(converted(array.slice(0, 1)), (slice_columns(expected, 0, 1), False, []))
    assert converted(pa.array([{"a": 1}, None, {"a": None}]))[2] == [("c.a", [1, 2])]


def test_lists_of_a_fixed_size_are_arrays() -> None:
    array = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2))
    assert_same(converted(array), (arr([[1, 2], [3, 4], [5, 6]], np.int16), False, []))
    assert_same(converted(array.slice(1)), (arr([[3, 4], [5, 6]], np.int16), False, []))
    assert converted(array.slice(3))[0].shape == (0, 2)
    nulls = pa.array([[1, 2], None, [3, None], [5, 6]], pa.list_(pa.float32(), 2))
    assert_same(converted(nulls)[0], arr([[1, 2], [NAN, NAN], [3, NAN], [5, 6]], np.float32))
    assert_same(converted(nulls.slice(1, 2))[0], arr([[NAN, NAN], [3, NAN]], np.float32))
    assert converted(nulls.cast(pa.list_(pa.int8(), 2)).slice(1))[2] == [("c", [0, 1])]
    assert converted(pa.array([[], None], pa.list_(pa.int8(), 0)))[0].shape == (2, 0)
    deep = pa.array([[[1, 2, 3], [4, 5, 6]]] * 4, pa.list_(pa.list_(pa.int8(), 3), 2))
    assert_same(converted(deep.slice(2))[0], arr([[[1, 2, 3], [4, 5, 6]]] * 2, np.int8))


def test_tensors_have_their_shape() -> None:
    storage = pa.array([list(range(6)), list(range(6, 12))], pa.list_(pa.int32(), 6))
    array = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2, 3]), storage)
    assert_same(converted(array)[0], arr(range(12), np.int32).reshape(2, 2, 3))
    assert_same(converted(array.slice(1))[0], arr(range(6, 12), np.int32).reshape(1, 2, 3))
    other = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0]), storage)
    assert converted(other)[0].shape == (2, 6)


@pytest.mark.parametrize("kind", ["list_", "large_list", "list_view", "large_list_view"])
def test_lists_are_arrays_of_their_own(kind: str) -> None:
    array = pa.array([[1, 2], [], None, [3]], getattr(pa, kind)(pa.int32()))
    expected = objects(arr([1, 2], np.int32), arr([], np.int32), None, arr([3], np.int32))
    assert_same(converted(array), (expected, True, []))
    assert_same(converted(array.slice(1, 3)), (expected[1:], True, []))
    assert_same(converted(array.slice(4)), (objects(), True, []))
    gaps = pa.array([[1], [None, 2], None], getattr(pa, kind)(pa.int8()))
    assert converted(gaps)[2] == [("c", [1])]
    assert_same(converted(gaps, c=7)[0], objects(arr([1], np.int8), arr([7, 2], np.int8), None))


def test_lists_of_structs_and_maps_are_dicts_of_arrays() -> None:
    array = pa.array([[{"a": 1, "b": "x"}, {"a": 2, "b": None}], [], None])
    expected = objects({"a": arr([1, 2]), "b": objects("x", None)}, {"a": arr([]), "b": objects()}, None)
    assert_same(converted(array), (expected, True, []))
    found, _, missing = converted(pa.array([[("k", 1)], [("l", None)]], pa.map_(pa.string(), pa.int8())))
    assert_same(found[0], {"key": objects("k"), "value": arr([1], np.int8)})
    assert missing == [("c.value", [1])]


# Values for nulls


def test_values_for_nulls() -> None:
    assert_same(converted(pa.array([1, None], pa.uint8()), c=255), (arr([1, 255], np.uint8), False, []))
    assert_same(converted(pa.array([1.5, None]), c=0), (arr([1.5, 0], float), False, []))
    assert_same(converted(pa.array([True, None]), c=False), (arr([True, False], bool), False, []))
    assert_same(converted(pa.array(["a", None]), c=""), (objects("a", ""), False, []))
    assert_same(converted(pa.array(["a", None]).dictionary_encode(), c="b"), (objects("a", "b"), False, []))
    assert_same(converted(pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), c=9)[0], arr([[1, 2], [9, 9]], np.int8))
    structs = pa.array([{"a": 1}, None])
    assert_same(converted(structs, **{"c.a": -1}), ({"a": arr([1, -1])}, False, []))


@pytest.mark.parametrize(("kind", "value"), [("uint8", -1), ("int8", 300), ("int8", 1.5), ("int8", "x"), ("string", 1)])
def test_values_that_do_not_fit_are_refused(kind: str, value: Any) -> None:
    with pytest.raises(StructureError, match=rf"{value!r} does not fit 'c' of type {kind}"):
        converted(pa.array([], getattr(pa, kind)()), c=value)


def test_values_for_what_is_not_there_are_refused() -> None:
    schema = pa.schema({"a": pa.int8(), "s": pa.struct({"b": pa.list_(pa.struct({"c": pa.int8()}))})})
    assert list(fills(schema, {"s.b.c": 1})) == ["s.b.c"]
    with pytest.raises(StructureError, match=r"null_values names 's\.b', which is none of 'a', 's\.b\.c'"):
        fills(schema, {"s.b": 1})


# Types


def test_types_have_one_name_however_they_are_held() -> None:
    same = [
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
        [pa.binary(), pa.large_binary(), pa.binary(3), pa.binary_view()],
        [pa.int8(), pa.run_end_encoded(pa.int16(), pa.int8()), pa.dictionary(pa.int8(), pa.int8())],
        [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_view(pa.int8())],
        [pa.decimal128(3, 1), pa.decimal256(5, 2)],
        [pa.list_(pa.int8(), 2)],
        [pa.fixed_shape_tensor(pa.int8(), [1, 2])],
        [pa.struct({"a": pa.int8()})],
        [pa.map_(pa.string(), pa.int8())],
        [pa.timestamp("s")],
        [pa.timestamp("s", "UTC")],
    ]
    names = [{type_text(kind) for kind in kinds} for kinds in same]
    assert [len(found) for found in names] == [1] * len(same)
    assert len(set.union(*names)) == len(same)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pa.month_day_nano_interval(),
        lambda: pa.dense_union([pa.field("a", pa.int8())]),
        lambda: pa.list_(pa.struct([])),
        lambda: pa.struct([pa.field("a", pa.int8()), pa.field("a", pa.int8())]),
    ],
)
def test_types_that_numpy_has_nothing_for_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(StructureError, match="it is"):
        type_text(make())


# Against a plain reading of single values

LEAVES: dict[str, Any] = {
    "int8": st.integers(-128, 127),
    "uint64": st.integers(0, 2**64 - 1),
    "float32": st.floats(width=32, allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(max_size=3),
    "binary": st.binary(max_size=3),
}


def nested_types(depth: int) -> st.SearchStrategy[Any]:
    leaves = st.sampled_from(sorted(LEAVES)).map(lambda name: (name, LEAVES[name]))
    if not depth:
        return leaves
    inner = nested_types(depth - 1)
    structs = st.tuples(inner, inner).map(
        lambda two: ({"a": two[0][0], "b": two[1][0]}, st.fixed_dictionaries({"a": two[0][1], "b": two[1][1]}))
    )
    lists = inner.map(lambda one: ([one[0]], st.lists(one[1], max_size=3)))
    fixed = inner.map(lambda one: ((2, one[0]), st.lists(one[1], min_size=2, max_size=2)))
    return st.one_of(leaves, structs, lists, fixed)


def arrow_type(kind: Any) -> Any:
    if isinstance(kind, str):
        return pa.bool_() if kind == "bool" else getattr(pa, kind)()
    if isinstance(kind, dict):
        return pa.struct({name: arrow_type(part) for name, part in kind.items()})
    return pa.list_(arrow_type(kind[-1]), kind[0] if isinstance(kind, tuple) else -1)


def stacked(values: list[Any], kind: Any) -> Any:
    """Say what values of a type are as columns."""
    if kind in ("string", "binary"):
        return objects(*values)
    if isinstance(kind, str):
        return arr(values, kind)
    if isinstance(kind, dict):
        return {name: stacked([value[name] for value in values], part) for name, part in kind.items()}
    if isinstance(kind, list):
        return objects(*[stacked(value, kind[0]) for value in values])
    items = stacked([item for value in values for item in value], kind[1])

    def fold(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: fold(inner) for name, inner in part.items()}
        return part.reshape(len(values), 2, *part.shape[1:])

    return fold(items)


@given(st.data())
def test_nested_values_are_those_of_a_plain_reading(data: st.DataObject) -> None:
    kind, values_of = data.draw(nested_types(2))
    values = data.draw(st.lists(values_of, max_size=6))
    begin = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(begin, len(values)))
    array = pa.array(values, arrow_type(kind)).slice(begin, end - begin)
    found, _, missing = converted(array)
    assert missing == []
    assert_same(found, stacked(values[begin:end], kind))
    assert all(isinstance(leaf, np.ndarray) for leaf in flatten(found))
