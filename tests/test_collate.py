from __future__ import annotations

import enum
import pickle
import re
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aiodata.collate import (
    as_columns,
    as_element,
    check_padding,
    concat_columns,
    freeze,
    iterate,
    length,
    merge_batches,
    pad_stack,
    reshape_batches,
    slice_columns,
    stack,
    take_columns,
)
from aiodata.columns import owned
from aiodata.errors import StructureError
from aiodata.structure import flatten, pack_like, same_structure


class Point(NamedTuple):
    x: Any
    y: Any


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


def exactly(error: type[Exception], words: str) -> Any:
    return pytest.raises(error, match=f"^{re.escape(words)}$")


def same(a: Any, b: Any) -> bool:
    """Compare structures of numpy values by structure, dtype and every value, NaN equal to itself."""
    if same_structure(a, b):
        return False
    for one, other in zip(flatten(a), flatten(b), strict=True):
        if isinstance(one, (np.ndarray, np.generic)):
            if one.dtype != other.dtype or one.shape != other.shape:
                return False
            np.testing.assert_array_equal(one, other)
        elif type(one) is not type(other) or one != other:
            return False
    return True


# --- stack -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "dtype"),
    [
        ([1, 2], np.int64),
        ([1.0, 2.0], np.float64),
        ([True, False], np.bool_),
        ([1j, 2j], np.complex128),
        ([1, 2.5], np.float64),
        ([True, 2], np.int64),
        ([Colour.RED, Colour.BLUE], np.int64),
        ([2**63, 1], np.uint64),
        ([2**63, -1], object),
        ([2**70, -1], object),
        ([2**70, True], object),
        ([np.int8(1), np.int8(2)], np.int8),
        ([np.float16(1), np.float16(2)], np.float16),
        ([np.bool_(True), np.bool_(False)], np.bool_),
        ([np.longlong(1), np.longlong(2)], np.longlong),
        ([np.longdouble(1), np.longdouble(2)], np.longdouble),
        ([np.array(1.5, np.float32), np.float32(2)], np.float32),
        ([np.int8(1), 2], np.int8),
        ([1, np.int8(2)], np.int8),
        ([np.int8(1), 300], np.int64),
        ([np.int8(1), 0.5], np.float64),
        ([np.float32(1), 0.1], np.float32),
        ([np.float32(1), 1e300], np.float64),
        ([np.float32(1), float("inf")], np.float32),
        ([np.float32(1), 2**24 + 1], np.float64),
        ([np.float16(1), 10**9], np.float64),
        ([np.bool_(True), False], np.bool_),
        ([np.bool_(True), 3], np.int64),
        ([np.int32(1), True], np.int32),
        ([np.complex64(1), 0.5], np.complex64),
        ([np.datetime64("2020-01-01"), np.datetime64("2021-01-01")], "M8[D]"),
    ],
)
def test_stack_makes_numpys_dtypes_of_single_values(rows: list[Any], dtype: Any) -> None:
    column = stack(rows)
    assert column.dtype == dtype
    assert column.shape == (2,)
    wanted = rows if dtype in (object, "M8[D]") else [np.dtype(dtype).type(row) for row in rows]
    assert list(column) == wanted


@pytest.mark.parametrize(
    "rows",
    [
        [b"a\0\0", b"", b"\0"],
        ["a\0", "", "long text"],
        ["text", b"bytes"],
        [object(), object()],
        [np.bytes_(b"a"), np.bytes_(b"bc")],
        [np.str_("a"), "b"],
        [{1, 2}, frozenset({3})],
    ],
)
def test_text_and_objects_survive_whole_in_object_arrays(rows: list[Any]) -> None:
    column = stack(rows)
    assert column.dtype == object
    assert column.shape == (len(rows),)
    assert column.tolist() == rows
    assert list(iterate(column)) == rows


def test_numpys_own_text_types_become_objects() -> None:
    column = stack([np.array([b"a", b"b"]), np.array([b"long", b""])])
    assert column.dtype == object
    assert column.tolist() == [[b"a", b"b"], [b"long", b""]]


def test_objects_that_look_like_sequences_stay_one_value_each() -> None:
    column = stack([range(3), range(3)])
    assert column.shape == (2,)
    assert column[0] == range(3)


def test_lists_left_in_an_element_count_as_arrays() -> None:
    assert same(stack([{"a": [1, 2]}, {"a": [3, 4]}]), {"a": np.array([[1, 2], [3, 4]])})


def test_stack_keeps_nested_structures_and_the_first_key_order() -> None:
    first = {"b": Point(1, b"x"), "a": (np.zeros(2), None)}
    second = {"a": (np.ones(2), None), "b": Point(2, b"y")}
    columns = stack([first, second])
    wanted = {
        "b": Point(np.array([1, 2]), np.array([b"x", b"y"], object)),
        "a": (np.array([[0.0, 0], [1, 1]]), None),
    }
    assert same(columns, wanted)
    assert list(columns) == ["b", "a"]
    assert type(columns["b"]) is Point


def test_stack_takes_dict_subclasses_single_keys_and_empty_structures() -> None:
    assert same(stack([OrderedDict(a=1), {"a": 2}]), {"a": np.array([1, 2])})
    assert stack([(), ()]) == ()
    assert stack([{}, {}]) == {}
    assert stack([None, None]) is None


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0), (2, 3), (300, 500)])
def test_stack_agrees_with_numpy_for_every_layout(shape: tuple[int, ...], order: Any) -> None:
    rng = np.random.default_rng(0)
    rows = [np.asarray(rng.random(shape), order=order) for _ in range(3)]
    assert same(stack(rows), np.stack(rows))
    assert same(
        stack([row[..., ::-1] if shape else row for row in rows]),
        np.stack(rows)[..., ::-1] if shape else np.stack(rows),
    )


def test_stack_keeps_byte_order_records_and_subclasses_values() -> None:
    rows = [np.array([1, 2], ">i4"), np.array([3, 4], ">i4")]
    assert same(stack(rows), np.array([[1, 2], [3, 4]], ">i4"))
    rows = [np.asfortranarray(np.ones((2, 2), ">f8"))] * 2
    assert same(stack(rows), np.ones((2, 2, 2), ">f8"))
    record = np.dtype([("a", "i4"), ("b", "f8")])
    rows = list(np.array([(1, 2.0), (3, 4.0)], record))
    assert stack(rows).tolist() == [(1, 2.0), (3, 4.0)]
    objects = [np.array([b"a", None], object), np.array([[1], 2.5], object)]
    assert stack(objects).tolist() == [[b"a", None], [[1], 2.5]]


def test_what_stack_makes_is_its_own_and_writable() -> None:
    for rows in ([np.zeros(3), np.zeros(3)], [np.int64(1)], [1], [b"x"], [np.zeros(2)], [np.zeros(200_000)]):
        column = stack(rows)
        column[0] = rows[0]
        assert column.flags.writeable
        assert not any(np.shares_memory(column, row) for row in rows if isinstance(row, np.ndarray))
        assert pickle.loads(pickle.dumps(column)).tolist() == column.tolist()


def test_stack_refuses_nothing() -> None:
    with pytest.raises(ValueError, match="no elements"):
        stack([])
    with pytest.raises(ValueError, match="no elements"):
        pad_stack([])


def test_an_error_names_component_row_and_both_shapes() -> None:
    rows = [{"image": np.zeros((2, 2)), "label": 1} for _ in range(5)]
    rows[3]["image"] = np.zeros((2, 3))
    words = (
        "component ['image']: row 3 of the batch has shape (2, 3), row 0 has shape (2, 2); "
        "padded_batch pads rows to one shape"
    )
    with exactly(StructureError, words):
        stack(rows)


def test_an_error_names_component_row_and_both_dtypes() -> None:
    rows: list[Any] = [{"image": np.zeros(2), "label": np.int64(1)} for _ in range(5)]
    rows[2]["label"] = np.int32(1)
    with exactly(StructureError, "component ['label']: row 2 of the batch has dtype int32, row 0 has dtype int64"):
        stack(rows)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([np.zeros(3), np.zeros(2)], "element: row 1 of the batch has shape (2,), row 0 has shape (3,); padded"),
        ([np.zeros((1, 3)), np.zeros(3)], "element: row 1 of the batch has shape (3,), row 0 has shape (1, 3); padded"),
        ([np.zeros((2, 3)), np.zeros((3, 2))], "element: row 1 of the batch has shape (3, 2), row 0 has shape (2, 3)"),
        ([np.zeros(0), np.zeros((0, 5))], "element: row 1 of the batch has shape (0, 5), row 0 has shape (0,)"),
        ([1, np.zeros(3)], "element: row 1 of the batch has shape (3,), row 0 has shape ()"),
        (
            [(1, Point(2, np.zeros(1))), (1, Point(2, np.zeros(4)))],
            "component [1].y: row 1 of the batch has shape (4,)",
        ),
        ([np.float32(1), np.float64(1)], "element: row 1 of the batch has dtype float64, row 0 has dtype float32"),
        ([1, np.int8(1), np.int16(1)], "element: row 2 of the batch has dtype int16, row 1 has dtype int8"),
        (["a", 1], "element: row 1 of the batch has dtype int64, row 0 has dtype object"),
        ([1, b"a"], "element: row 0 of the batch has dtype int64, row 1 has dtype object"),
        ([np.int64(1), "a"], "element: row 1 of the batch has dtype object, row 0 has dtype int64"),
        (
            [np.zeros(2, ">f4"), np.zeros(2, "<f4")],
            "element: row 1 of the batch has dtype float32, row 0 has dtype >f4",
        ),
        ([np.datetime64("2020"), np.datetime64("2020-01")], "element: row 1 of the batch has dtype datetime64[M]"),
        ([np.datetime64("2020"), 1], "element: row 1 of the batch has dtype int64, row 0 has dtype datetime64[Y]"),
        ([{"a": 1}, {"b": 1}], "row 1 of the batch does not fit row 0: element has the keys ['a'] in one and ['b']"),
        ([{"a": 1, "b": 2}, {"a": 1, "c": 2}], "row 1 of the batch does not fit row 0: element has the keys"),
        ([{"a": 1}, {"a": 1, "b": 2}], "row 1 of the batch does not fit row 0: element has the keys"),
        (
            [(1, 2), (1, 2), (1,)],
            "row 2 of the batch does not fit row 0: element is a tuple of 2 in one and a tuple of 1",
        ),
        ([(1, 2), Point(1, 2)], "row 1 of the batch does not fit row 0: element is a tuple of 2 in one and a named"),
        ([{"a": 1}, (1,)], "row 1 of the batch does not fit row 0: element is a dict of 1 in one and a tuple of 1"),
        ([1, (1,)], "row 1 of the batch does not fit row 0: element is a single value in one and a tuple of 1"),
        ([{"a": {"b": 1}}, {"a": 1}], "row 1 of the batch does not fit row 0: in component ['a']: element is a dict"),
        ([{"a": 1}, {"a": None}], "row 1 of the batch does not fit row 0: in component ['a']: element is a single"),
        ([(None,), (1,)], "row 1 of the batch does not fit row 0: in component [0]: element is None in one and a si"),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_words(rows: list[Any], words: str) -> None:
    with pytest.raises(StructureError, match=f"^{re.escape(words)}"):
        stack(rows)


DTYPES = st.sampled_from(["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", ">i2", "M8[s]"])


@st.composite
def batches(draw: st.DrawFn) -> list[Any]:
    specs = draw(
        st.lists(
            st.tuples(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)), min_size=1, max_size=3
        )
    )
    count = draw(st.integers(1, 5))
    rows = [tuple(draw(hnp.arrays(dtype, shape)) for dtype, shape in specs) for _ in range(count)]
    shape = draw(st.sampled_from(["leaf", "tuple", "dict", "nested"]))
    if shape == "leaf":
        return [row[0] for row in rows]
    if shape == "dict":
        return [{f"key{i}": leaf for i, leaf in enumerate(row)} for row in rows]
    return rows if shape == "tuple" else [Point({"a": row}, row[0]) for row in rows]


@given(batches())
def test_stack_is_numpys_stack_of_each_component(rows: list[Any]) -> None:
    columns = stack(rows)
    wanted = [np.stack(parts).astype(parts[0].dtype) for parts in zip(*map(flatten, rows), strict=True)]
    assert same(columns, pack_like(rows[0], wanted))
    assert length(columns) == len(rows)
    for got, row in zip(iterate(columns), rows, strict=True):
        # numpy's scalars, which (n,) arrays yield, are always in native byte order.
        got_leaves = [np.asarray(leaf, part.dtype) for leaf, part in zip(flatten(got), flatten(row), strict=True)]
        assert same(pack_like(row, got_leaves), row)


@given(st.lists(st.tuples(st.integers(), st.binary(), st.text(), st.floats(allow_nan=False)), min_size=1))
def test_iterate_gives_python_values_back_exactly(rows: list[Any]) -> None:
    assert list(iterate(stack(rows))) == rows


# --- pad_stack -------------------------------------------------------------------------------------------------------


def test_rows_are_padded_to_the_longest_of_the_batch() -> None:
    made = pad_stack([np.array([1, 2, 3], np.int32), np.array([4], np.int32)])
    assert same(made, np.array([[1, 2, 3], [4, 0, 0]], np.int32))
    assert made.flags.writeable
    assert same(pad_stack([np.zeros(4), np.zeros(2)]), np.zeros((2, 4)))


def test_several_axes_pad_and_explicit_sizes_hold() -> None:
    rows = [np.ones((1, 2)), np.ones((2, 1))]
    assert same(pad_stack(rows), np.array([[[1.0, 1], [0, 0]], [[1, 0], [1, 0]]]))
    assert pad_stack(rows, [None, 4]).shape == (2, 2, 4)
    assert pad_stack(rows, (3, -1)).shape == (2, 3, 2)
    assert pad_stack(rows, np.array([3, 3])).shape == (2, 3, 3)


def test_each_component_has_its_own_shape_and_value() -> None:
    rows = [{"a": np.array([1]), "b": (b"x", np.array(["u", "v"], object)), "c": None, "d": 1.5} for _ in range(2)]
    rows[1]["a"] = np.array([1, 2])
    made = pad_stack(
        rows,
        {"a": [3], "b": ([], [4]), "c": None, "d": ()},
        {"a": np.int64(-1), "b": (None, "?"), "c": None, "d": None},
    )
    wanted = {
        "a": np.array([[1, -1, -1], [1, 2, -1]]),
        "b": (np.array([b"x", b"x"], object), np.array([["u", "v", "?", "?"]] * 2, object)),
        "c": None,
        "d": np.array([1.5, 1.5]),
    }
    assert same(made, wanted)


@pytest.mark.parametrize(
    ("row", "fill"),
    [
        (np.array([b"a"], object), b""),
        (np.array(["a"], object), ""),
        (np.array([b"a"]), b""),
        (np.array([True]), False),
        (np.array([1.5]), 0.0),
        (np.array([object()], object), None),
    ],
)
def test_defaults_follow_the_type(row: Any, fill: Any) -> None:
    made = pad_stack([row], [2])
    assert made[0, 1] == fill
    assert type(made[0, 1]) is type(fill) or made.dtype != object
    assert made[0, 0] == row[0]


def test_dates_pad_with_not_a_time() -> None:
    assert np.isnat(pad_stack([np.array(["2020-01-01"], "M8[D]")], [2])[0, 1])


def test_one_value_serves_the_components_of_its_dtype_only() -> None:
    row = (np.array([1]), np.array([1.0], np.float32), np.array([True]), np.array([b"a"], object))
    shapes = ([2],) * 4
    assert [leaf[0, 1] for leaf in pad_stack([row], shapes, -1)] == [-1, -1.0, False, b""]
    assert [leaf[0, 1] for leaf in pad_stack([row], shapes, 0.5)] == [0, 0.5, False, b""]
    assert [leaf[0, 1] for leaf in pad_stack([row], shapes, True)] == [0, 0.0, True, b""]
    assert [leaf[0, 1] for leaf in pad_stack([row], shapes, "é")] == [0, 0.0, False, "é".encode()]
    assert [leaf[0, 1] for leaf in pad_stack([row], shapes, np.array(7, np.int64))] == [7, 0.0, False, b""]
    with pytest.raises(StructureError, match="the padding value 7 has the dtype of no component"):
        pad_stack([(np.array([True]), np.array([False, True]))], None, 7)


@pytest.mark.parametrize(
    ("rows", "shapes", "values", "words"),
    [
        ([{"a": np.zeros(2)}, {"a": np.zeros(5)}], {"a": [3]}, None,
         "component ['a']: row 1 of the batch has shape (5,), longer than the padded shape (3,)"),
        ([np.zeros((1, 2)), np.zeros((9, 3))], [None, 2], None,
         "element: row 1 of the batch has shape (9, 3), longer than the padded shape (None, 2)"),
        ([np.zeros(2), np.zeros((2, 2))], None, None,
         "element: row 1 of the batch has shape (2, 2), row 0 has shape (2,); padding lengthens"),
        ([np.zeros(2)], [None, None], None, "element: rows have shape (2,), padded_shapes says [None, None]"),
        ([(1, 2)], ([],), None, "padded_shapes does not fit the elements, tuples of 2: ([],)"),
        ([{"a": 1}], {"b": []}, None, "padded_shapes does not fit the elements, dicts of ['a']: {'b': []}"),
        ([(1, 2)], None, (0,), "padding_values does not fit the elements, tuples of 2: (0,)"),
        ([np.array([1])], [3], 0.5, "element: the padding value 0.5 does not fit dtype int64"),
        ([(np.array([1], np.int8),)], ([3],), (300,), "component [0]: the padding value 300 does not fit dtype int8"),
        ([np.array([1])], [3], b"x", "element: the padding value b'x' does not fit dtype int64"),
        ([np.zeros(1), np.zeros(1, np.float32)], None, None,
         "element: row 1 of the batch has dtype float32, row 0 has dtype float64"),
        ([(1, 2), (1,)], None, None, "row 1 of the batch does not fit row 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_padded_is_refused_in_words(rows: Any, shapes: Any, values: Any, words: str) -> None:
    with pytest.raises(StructureError, match=f"^{re.escape(words)}"):
        pad_stack(rows, shapes, values)


@pytest.mark.parametrize(
    ("shapes", "values", "error", "words"),
    [
        (5, None, TypeError, "padded_shapes holds shapes"),
        ([1.5], None, TypeError, "not 1.5"),
        ([True], None, TypeError, "not True"),
        ({"a": ["x"]}, None, TypeError, "not 'x'"),
        (([None], [-2]), None, ValueError, "not -2"),
        (None, {1, 2}, TypeError, "padding_values holds"),
        (None, (0, object()), TypeError, "padding_values holds"),
        (None, (0, np.zeros(2)), ValueError, "not an array of shape (2,)"),
    ],
)
def test_padding_arguments_are_checked_at_once(shapes: Any, values: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        check_padding(shapes, values)


def test_good_padding_arguments_pass() -> None:
    check_padding(None, None)
    check_padding([None, 3, -1, np.int64(2)], 0)
    check_padding(
        {"a": ([], (None,)), "b": None, "c": np.array([1, -1])}, {"a": (b"", ""), "b": None, "c": np.array(1)}
    )


def pad_slowly(rows: list[Any], target: tuple[int, ...], fill: Any) -> Any:
    out = np.full((len(rows), *target), fill, rows[0].dtype)
    for row, value in enumerate(rows):
        for at in np.ndindex(value.shape):
            out[(row, *at)] = value[at]
    return out


@given(st.data())
def test_pad_stack_agrees_with_a_slow_one(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 3))
    dtype = np.dtype(data.draw(st.sampled_from(["i2", "f4", "?", "u8", ">f8"])))
    sides = st.tuples(*[st.integers(0, 3)] * rank)
    rows = [data.draw(hnp.arrays(dtype, shape)) for shape in data.draw(st.lists(sides, min_size=1, max_size=4))]
    layout = data.draw(st.sampled_from(["C", "F", "strided"]))
    if layout == "F":
        rows = [np.array(row, order="F") for row in rows]
    elif layout == "strided" and rank:
        rows = [row.repeat(2, -1)[..., ::2] for row in rows]
    extra = data.draw(st.tuples(*[st.none() | st.integers(0, 2)] * rank))
    longest = [max(row.shape[axis] for row in rows) for axis in range(rank)]
    wanted = [None if more is None else most + more for most, more in zip(longest, extra, strict=True)]
    target = tuple(most if size is None else size for most, size in zip(longest, wanted, strict=True))
    fill = data.draw(st.sampled_from([None, dtype.type(1)]))
    assert same(pad_stack(rows, wanted, fill), pad_slowly(rows, target, fill or 0))


@pytest.mark.parametrize("fill", [None, -1])
def test_padding_of_any_length_is_the_same(fill: int | None) -> None:
    for most in (1, 127, 128, 129, 3000):
        rows = [np.arange(length) for length in (most, 0, most // 2, most - 1)]
        assert same(pad_stack(rows, padding_values=fill), pad_slowly(rows, (most,), fill or 0))


def test_rows_of_nothing_pad_at_no_cost() -> None:
    rows = [np.zeros((10**9, 0)), np.zeros((1, 0))]
    assert pad_stack(rows).shape == (2, 10**9, 0)


def test_a_padded_batch_is_writable_and_shares_nothing() -> None:
    rows = [np.arange(2), np.arange(3)]
    for _ in range(2):
        made = pad_stack(rows)
        assert same(made, np.array([[0, 1, 0], [0, 1, 2]]))
        made[:] = 7
    assert same(rows[1], np.arange(3))


def test_large_batches_pad_alike() -> None:
    rows = [np.arange(100_000), np.arange(90_000)]
    assert same(pad_stack(rows), pad_slowly(rows, (100_000,), 0))


# --- columns ---------------------------------------------------------------------------------------------------------

COLUMNS = {"a": np.arange(6), "b": Point(np.arange(12.0).reshape(6, 2), None)}


def test_length_counts_rows() -> None:
    assert length(COLUMNS) == 6
    assert length((np.zeros((0, 3)),)) == 0


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((np.zeros(3), np.zeros(4)), "component [0] has 3 rows, component [1] has 4"),
        ({"a": None, "b": np.zeros(3), "c": (np.zeros(2),)}, "component ['b'] has 3 rows, component ['c'][0] has 2"),
        (np.array(1.0), "element has no rows: it is a single value of type ndarray"),
        ((np.zeros(3), "text"), "component [1] has no rows: it is a single value of type str"),
        (5, "element has no rows: it is a single value of type int"),
        ((None,), "there is no component with rows to count"),
        ((), "there is no component with rows to count"),
    ],
)
def test_columns_without_one_length_are_refused(columns: Any, words: str) -> None:
    with exactly(StructureError, words):
        length(columns)
    with exactly(StructureError, words):
        iterate(columns)


def test_slices_are_views_and_taken_rows_are_copies() -> None:
    part = slice_columns(COLUMNS, 1, 3)
    assert same(part, {"a": np.array([1, 2]), "b": Point(np.array([[2.0, 3], [4, 5]]), None)})
    assert np.shares_memory(part["a"], COLUMNS["a"])
    assert same(slice_columns(np.arange(4), 3, 9), np.array([3]))
    taken = take_columns(COLUMNS, np.array([5, 0, 5]))
    assert same(taken, {"a": np.array([5, 0, 5]), "b": Point(np.array([[10.0, 11], [0, 1], [10, 11]]), None)})
    assert not np.shares_memory(taken["a"], COLUMNS["a"])
    assert same(take_columns(np.array([b"a", b"b"], object), np.array([1])), np.array([b"b"], object))
    with pytest.raises(IndexError):
        take_columns(COLUMNS, np.array([6]))


def test_columns_join_in_order_whatever_their_key_order() -> None:
    first, second = (
        {"a": np.array([1]), "b": np.array([b"x"], object)},
        {"b": np.array([b"y"], object), "a": np.array([2])},
    )
    assert same(concat_columns([first, second]), {"a": np.array([1, 2]), "b": np.array([b"x", b"y"], object)})
    parts = [slice_columns(COLUMNS, 0, 2), slice_columns(COLUMNS, 2, 2), slice_columns(COLUMNS, 2, 6)]
    assert same(concat_columns(parts), COLUMNS)
    assert concat_columns([COLUMNS]) is COLUMNS
    assert concat_columns([np.zeros(1, ">f8"), np.zeros(1, ">f8")]).dtype == ">f8"


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ([], ValueError, "there are no columns to join"),
        ([{"a": np.zeros(1)}, {}], StructureError, "block 1 does not fit block 0: element has the keys"),
        ([(np.zeros(1),), (np.zeros(1, np.float32),)], StructureError,
         "[0]: rows of block 1 have shape () and dtype float32, of block 0 shape () and dtype float64"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], StructureError,
         "element: rows of block 1 have shape (3,) and dtype float64, of block 0 shape (2,) and dtype float64"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_not_joined(parts: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        concat_columns(parts)


def test_batches_are_cut_and_merged_again() -> None:
    cut = reshape_batches(COLUMNS, 2)
    assert cut["a"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert cut["b"].x.shape == (3, 2, 2)
    assert cut["b"].y is None
    assert same(merge_batches(cut), COLUMNS)
    assert reshape_batches(np.zeros((0, 3)), 2).shape == (0, 2, 3)
    assert merge_batches(reshape_batches(np.zeros((4, 0)), 2)).shape == (4, 0)


@pytest.mark.parametrize("size", [4, 0, -1])
def test_rows_that_do_not_divide_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"6 rows do not divide into batches of {size}"):
        reshape_batches(COLUMNS, size)


def test_batches_that_disagree_are_not_merged() -> None:
    with exactly(StructureError, "component [1] has shape (2,): its rows are single values, not batches"):
        merge_batches((np.zeros((2, 3)), np.zeros(2)))
    with exactly(StructureError, "component [0] has 3 rows, component [1] has 4 in each batch"):
        merge_batches((np.zeros((2, 3)), np.zeros((2, 4))))


@pytest.mark.parametrize("keys", ["", "a", "ab", "abc", "abcde"])
def test_rows_of_dicts_of_any_size(keys: str) -> None:
    columns = ({key: np.arange(3) for key in keys}, np.arange(3))
    assert list(iterate(columns)) == [(dict.fromkeys(keys, i), i) for i in range(3)]


def test_iterate_is_lazy_and_gives_each_kind_of_row() -> None:
    columns = {
        "a": (np.arange(2, dtype=np.int8), ()),
        "b": Point(np.array([b"x\0", None], object), None),
        "c": np.eye(2),
    }
    rows = iterate(columns)
    first = next(rows)
    assert first["a"] == (0, ())
    assert type(first["a"][0]) is np.int8
    assert first["b"] == Point(b"x\0", None)
    assert type(first["b"]) is Point
    assert np.shares_memory(first["c"], columns["c"])
    assert next(rows)["b"] == (None, None)
    assert next(rows, "end") == "end"
    assert list(iterate(np.zeros((0, 2)))) == []
    assert [row.shape for row in iterate(np.zeros((2, 0)))] == [(0,), (0,)]


def test_freeze_reaches_every_array() -> None:
    columns = (np.zeros(2), {"a": np.zeros(2), "b": None})
    assert freeze(columns) is columns
    assert not columns[0].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        next(iterate(columns[1]["a"].reshape(1, 2)))[0] = 1


def test_owned_copies_what_is_shared_only() -> None:
    shared, private = freeze(np.zeros(2)), np.zeros(2)
    made = owned({"a": shared, "b": (private, None)})
    assert made["b"][0] is private
    assert made["a"].flags.writeable
    assert not np.shares_memory(made["a"], shared)


# --- as_columns and as_element ---------------------------------------------------------------------------------------


def test_tensors_become_columns() -> None:
    given_array = np.arange(3, dtype=np.int16)
    made = as_columns(
        {"a": [1, 2, 3], "b": Point([0.5, 1, 2], None), "c": (["x", "y", "z"], given_array), "d": [[1], [2], [3]]}
    )
    wanted = {
        "a": np.array([1, 2, 3]),
        "b": Point(np.array([0.5, 1, 2]), None),
        "c": (np.array(["x", "y", "z"], object), given_array),
        "d": np.array([[1], [2], [3]]),
    }
    assert same(made, wanted)
    assert not np.shares_memory(made["c"][1], given_array)
    assert same(as_columns([]), np.zeros(0, np.float32))
    assert same(as_columns(([b"a\0"],)), (np.array([b"a\0"], object),))


@pytest.mark.parametrize(
    ("tensors", "error", "words"),
    [
        (5, ValueError, "element is a scalar, which has no rows: 5"),
        ({"a": [1], "b": "text"}, ValueError, "component ['b'] is a scalar, which has no rows: 'text'"),
        ({"a": [1, 2], "b": [1]}, ValueError, "component ['a'] has 2 rows, component ['b'] has 1"),
        (None, ValueError, "there is no component with rows"),
        ((), ValueError, "there is no component with rows"),
        ({1, 2}, TypeError, "element is a set, whose order is not defined; pass a sorted list of it"),
        (([1], frozenset()), TypeError, "component [1] is a set, whose order is not defined; pass a sorted list of it"),
        (iter([1]), TypeError, "element is an iterator (list_iterator), which ends after one pass; pass a list"),
        ([{"a": 1}], TypeError, "element is a list of dicts; pass a dict of lists"),
        (([["a"], ["b", "c"]],), ValueError, "component [0]: the list is ragged: its rows differ in length"),
    ],
)
def test_tensors_without_rows_are_refused(tensors: Any, error: type[Exception], words: str) -> None:
    with exactly(error, words):
        as_columns(tensors)


def test_ragged_numbers_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^component \['x'\]: the list is ragged"):
        as_columns({"x": [[1, 2], [3]]})


def test_one_element_keeps_its_structure() -> None:
    given_array = np.zeros(2)
    made = as_element({"a": [1, 2], "b": (given_array, None, 5, "text"), "c": Point([], b"x")})
    wanted = {
        "a": np.array([1, 2]),
        "b": (np.zeros(2), None, 5, "text"),
        "c": Point(np.zeros(0, np.float32), b"x"),
    }
    assert same(made, wanted)
    assert not made["a"].flags.writeable
    assert not made["b"][0].flags.writeable
    assert given_array.flags.writeable
    assert as_element(None) is None
    with pytest.raises(TypeError, match="is a set"):
        as_element(({1},))
