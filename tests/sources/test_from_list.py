"""`from_list`: Python elements of one structure, copied when the dataset is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import Dataset, TensorSpec
from aiodata.spec import NoneTensorSpec
from tests.programs import Pair, arr, assert_gives, assert_same, i64, objects, to_list


@pytest.mark.parametrize("count", [1, 2, 64, 65, 300])
def test_gives_the_elements(count: int) -> None:
    assert_gives(Dataset.from_list([*range(count)]), i64(*range(count)))
    arrays = [[n] * (n % 3) if n % 3 else [n] * 4 for n in range(count)]
    assert_gives(Dataset.from_list(arrays), [arr(row) for row in arrays])


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([1.5, 2.0], [np.float64(1.5), np.float64(2.0)]),
        ([True, False], [np.True_, np.False_]),
        ([np.int8(1), np.int8(2)], [np.int8(1), np.int8(2)]),
        (["a", "é"], ["a", "é"]),
        ([b"a\0", b""], [b"a\0", b""]),
        (["a", b"b"], ["a", b"b"]),
        ([[1, 2], [3, 4]], [arr([1, 2]), arr([3, 4])]),
        ([[1], [[2]]], [arr([1]), arr([[2]])]),
        ([(1, "a"), (2, "b")], [(np.int64(1), "a"), (np.int64(2), "b")]),
        ([(1, [1]), (2, [2, 3])], [(np.int64(1), arr([1])), (np.int64(2), arr([2, 3]))]),
        ([Pair(1, {"x": 2.0})], [Pair(np.int64(1), {"x": np.float64(2.0)})]),
        ([{"a": 1, "b": "x"}, {"b": "y", "a": 2}], [{"a": np.int64(1), "b": "x"}, {"a": np.int64(2), "b": "y"}]),
        ([(None, 1), (None, 2)], [(None, np.int64(1)), (None, np.int64(2))]),
        ([(None, [1]), (None, [])][:1], [(None, arr([1]))]),
        ([["a"], ["b", "c"]], [objects("a"), objects("b", "c")]),
        ([2**70, 2**71], [2**70, 2**71]),
    ],
    ids=repr,
)
def test_elements_of_every_kind(elements: list[Any], expected: list[Any]) -> None:
    assert_gives(Dataset.from_list(elements), expected)
    assert_gives(Dataset.from_list(elements).map(lambda *x: x if len(x) > 1 else x[0]), expected)


@given(st.lists(st.lists(st.integers(-5, 5), min_size=1, max_size=3), min_size=1, max_size=300))
def test_any_list_of_lists(rows: list[list[int]]) -> None:
    assert_same(to_list(Dataset.from_list(rows)), [arr(row) for row in rows])


def test_datasets_may_be_elements() -> None:
    ds = Dataset.from_list([Dataset.range(2), Dataset.range(5, 8)])
    assert_gives(ds.flat_map(lambda inner: inner), i64(0, 1, 5, 6, 7))


def test_any_object_may_be_an_element() -> None:
    things = [object(), object()]
    got = to_list(Dataset.from_list(things))
    assert got[0] is things[0]
    assert got[1] is things[1]


@pytest.mark.parametrize("same_shape", [True, False])
def test_elements_are_copied_at_the_call_and_read_only(same_shape: bool) -> None:
    elements = [{"x": np.zeros(2)}, {"x": np.zeros(2 if same_shape else 3)}]
    ds = Dataset.from_list(elements)
    elements[0]["x"][:] = 7
    elements.append({"x": np.ones(2)})
    got = to_list(ds)
    assert_same(got[0], {"x": np.zeros(2)})
    assert len(got) == 2
    with pytest.raises(ValueError, match="read-only"):
        got[0]["x"] += 1
    got[0]["y"] = 1
    assert_same(to_list(ds)[0], {"x": np.zeros(2)})


def test_a_change_to_a_dict_inside_is_seen_by_nobody_else() -> None:
    ds = Dataset.from_list([([1], {"x": (1,)}), ([1, 2], {"x": (2,)})])
    for element in to_list(ds):
        element[1].clear()
    assert_gives(ds, [(arr([1]), {"x": (np.int64(1),)}), (arr([1, 2]), {"x": (np.int64(2),)})])


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([1, 2.5], "element 1 does not fit those before: the element is int64 in one and float64 in the other"),
        ([True, 1], "bool in one and int64"),
        ([np.int32(1), np.int64(2)], "int32 in one and int64"),
        ([1, "a"], "int64 in one and object"),
        ([[], [1]], "float32"),
        ([(1,), (1, 2)], "element 1 does not fit those before: element is a tuple of 1 in one and a tuple of 2"),
        ([{"a": 1}, {"b": 2}], r"the keys \['a'\] in one and \['b'\]"),
        ([{"a": (1, 2)}, {"a": (1, 2)}, {"a": (1, 2.0)}], r"element 2 .*component \['a'\]\[1\] is int64"),
        ([Pair(1, 2), (1, 2)], "a named tuple Pair in one and a tuple of 2"),
        ([1, None], "None"),
        ([{1}], "a set"),
        ((1, 2), "elements must be a list, not tuple"),
        (np.arange(3), "elements must be a list, not ndarray"),
    ],
    ids=repr,
)
def test_elements_that_do_not_fit_each_other_are_refused_at_the_call(elements: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Dataset.from_list(elements)


def test_an_empty_list_and_ragged_elements_are_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match="from_list: elements is empty"):
        Dataset.from_list([])
    with pytest.raises(ValueError, match="ragged"):
        Dataset.from_list([[[1], [2, 3]]])


def test_cardinality_spec_and_repr() -> None:
    ds = Dataset.from_list([(1, [1], None), (2, [2, 3], None)], name="mine")
    assert len(ds) == 2
    assert ds.element_spec == (TensorSpec((), np.int64), TensorSpec((None,), np.int64), NoneTensorSpec())
    assert Dataset.from_list([[1], [[2]]]).element_spec == TensorSpec(None, np.int64)
    assert "from_list(2 x (int64, int64[None], None)) 'mine'" in repr(ds)


def test_elements_of_one_shape_are_columns() -> None:
    def loud(x: Any) -> Any:
        raise AssertionError("a stage looked at an element")

    ds = Dataset.from_list([(n, "t") for n in range(70)]).batch(4).take(1)
    assert_gives(ds, [(arr([0, 1, 2, 3]), objects("t", "t", "t", "t"))])
