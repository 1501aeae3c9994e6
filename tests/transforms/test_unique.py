"""`unique`: every element where it comes first; restoring looks at what has been seen once more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from tests.programs import (
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    i64,
    objects,
    outcomes,
    to_list,
)


def from_list(elements: list[Any]) -> Dataset[Any]:
    return Dataset.from_generator(lambda: elements)


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("values", [[], [5], [5, 5], [3, 1, 3, 2, 1], [*range(70), *range(69, -1, -1), 70]])
def test_gives_what_comes_first(values: list[int], columns: bool) -> None:
    ds = Dataset.from_tensor_slices(np.array(values, np.int64))
    assert_gives((ds if columns else ds.map(lambda x: x)).unique(), i64(*dict.fromkeys(values)))


@given(
    st.lists(st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from([b"", b"a", "", "a", 2**70])), max_size=150)
)
def test_is_pythons_dict_of_keys(values: list[Any]) -> None:
    assert_same(to_list(from_list(values).unique()), list(dict.fromkeys(values)))


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), max_size=100), st.integers(1, 40))
def test_rows_as_columns_and_one_by_one(rows: list[list[int]], size: int) -> None:
    ds = Dataset.from_tensor_slices(np.array(rows, np.int16).reshape(-1, 2)).batch(size).unbatch()
    expected = [arr(row, np.int16) for row in dict.fromkeys(map(tuple, rows))]
    assert_same(to_list(ds.unique()), expected)
    assert_same(to_list(ds.map(lambda x: x).unique()), expected)


@pytest.mark.parametrize("kind", [*"bBhHiIlLqQ?"])
def test_integers_of_every_width_and_bools(kind: str) -> None:
    values = np.array([1, 0, 1, 0, 1], kind)
    assert_gives(Dataset.from_tensor_slices(values).unique(), [values[0], values[1]])


def test_text() -> None:
    for texts in ([b"a", b"a\0", b"", b"a"], ["x", "é", "x"], ["a", b"a", "a"]):
        assert_gives(from_list(texts).unique(), list(dict.fromkeys(texts)))
        if len(set(map(type, texts))) == 1:
            assert_gives(Dataset.from_tensor_slices(texts).unique(), list(dict.fromkeys(texts)))
    assert_gives(
        from_list([objects("a", "b"), objects("a"), objects("a", "b")]).unique(), [objects("a", "b"), objects("a")]
    )


def test_numbers_are_equal_by_value_and_arrays_with_shape_and_dtype() -> None:
    assert_gives(from_list([1, np.int8(1), np.uint64(1), np.array(1), 2]).unique(), [1, 2])
    arrays = [arr([1, 2]), arr([[1, 2]]), arr([1, 2], np.int32), arr([1, 2]), arr([]), arr([])]
    assert_gives(from_list(arrays).unique(), [*arrays[:3], arrays[4]])


def test_a_structure_of_one_component_is_taken_as_in_tf_data() -> None:
    assert_gives(Dataset.from_tensor_slices(([1, 1, 2],)).unique(), [(np.int64(1),), (np.int64(2),)])
    assert_gives(Dataset.from_tensor_slices({"a": [1, 1]}).map(lambda x: x).unique(), [{"a": np.int64(1)}])


@pytest.mark.parametrize(
    "elements",
    [np.zeros(2), np.zeros((2, 2), np.float32), np.zeros(2, complex), ([1], [1]), {"a": [1], "b": [1]}, Pair([1], [2])],
    ids=repr,
)
def test_what_is_known_to_be_refused_is_refused_at_the_call(elements: Any) -> None:
    ds = Dataset.from_tensor_slices(elements)
    with pytest.raises(TypeError, match="unique: "):
        ds.unique()
    got = outcomes(ds.map(lambda *x: x if len(x) > 1 else x[0]).unique())
    assert got
    assert all(isinstance(error, TypeError) for error in got)


@pytest.mark.parametrize(
    "bad", [1.5, np.float32(1), (1, 2), {"a": 1, "b": 2}, arr([1.0], float), objects(None)], ids=repr
)
def test_what_is_refused_while_iterating_is_an_error_at_that_element(bad: Any) -> None:
    got = outcomes(from_list([1, bad, 1, 2]).unique())
    assert_same([got[0], got[2]], [1, 2])
    with pytest.raises(TypeError) as failure:
        raise got[1]
    assert failure.value.__notes__ == ["in unique(), element 1"]


def test_error_of_the_input_passes_through() -> None:
    ds = failing(Dataset.range(6), 1, 4).map(lambda x: x % 3).unique()
    assert_outcomes(
        ds,
        [
            np.int64(0),
            *outcomes(failing(Dataset.range(2), 1))[1:],
            np.int64(2),
            *outcomes(failing(Dataset.range(4, 5), 4)),
        ],
    )


def test_each_iteration_and_epoch_begins_anew() -> None:
    assert_gives(Dataset.from_tensor_slices([1, 1, 2]).unique().repeat(2), i64(1, 2, 1, 2))
    assert_gives(Dataset.from_tensor_slices([1, 1, 2]).repeat(2).unique(), i64(1, 2))


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100).repeat())
    assert_same(to_list(ds.unique().take(3)), i64(0, 1, 2))
    assert seen == [0, 1, 2]


def test_a_position_is_small_and_restoring_reads_from_the_start() -> None:
    ds, seen = counted(Dataset.range(5000))
    ds = ds.map(lambda x: x % 3000).unique()
    with ds.iterate() as iterator:
        for _ in range(2990):
            next(iterator)
        state = iterator.state_dict()
        rest = list(iterator)
    assert len(str(state)) < 900
    seen.clear()
    with ds.iterate(state) as iterator:
        assert_same(list(iterator), rest)
    behind = state["position"][0][1]
    assert seen[:behind] == [*range(behind)]
    assert seen[behind:] == [*range(seen[behind], 5000)]
    assert seen[behind] <= behind


def test_a_reshuffled_input_is_read_again_in_the_same_order() -> None:
    def make() -> Dataset[Any]:
        return Dataset.range(12).shuffle(12, seed=3).map(lambda x: x % 7).unique().repeat(3)

    whole = to_list(make())
    assert len({tuple(map(int, whole[epoch : epoch + 7])) for epoch in (0, 7, 14)}) == 3
    for number in range(len(whole) + 1):
        with make().iterate() as iterator:
            assert_same([next(iterator) for _ in range(number)], whole[:number])
            state = iterator.state_dict()
        with make().iterate(state) as iterator:
            assert_same(list(iterator), whole[number:])


def test_cardinality_is_unknown_and_the_spec_is_the_inputs() -> None:
    assert Dataset.range(3).unique().cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().unique().cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).unique().element_spec == Dataset.range(3).element_spec
    assert "unique() 'once': int64" in repr(Dataset.range(3).unique(name="once"))
