"""`ragged_batch`: rows of unequal length stay arrays of their own; what is known to have one shape is stacked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, TensorSpec
from aiodata.errors import StructureError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    nested,
    objects,
    outcomes,
    to_list,
)


def grown(x: Any) -> Any:
    return np.arange(int(x) * 10, int(x) * 10 + int(x) % 3 + 1)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 7])
def test_rows_stay_arrays(count: int, size: int, drop: bool) -> None:
    groups = [range(at, min(at + size, count)) for at in range(0, count, size)]
    expected = [objects(*map(grown, group)) for group in groups if not drop or len(group) == size]
    assert_gives(Dataset.range(count).map(grown).ragged_batch(size, drop), expected)


def test_the_kind_of_result_does_not_depend_on_the_lengths() -> None:
    ds = Dataset.from_generator(lambda: [arr([1]), arr([2]), arr([3, 4])])
    assert_gives(ds.ragged_batch(2), [objects(arr([1]), arr([2])), objects(arr([3, 4]))])


def test_single_values_are_stacked() -> None:
    ds = Dataset.range(3).map(
        lambda x: {"n": x, "b": b"b", "s": "s", "p": 1.5, "none": None, "pair": Pair(True, grown(x))}
    )
    expected = {
        "n": arr([0, 1, 2]),
        "b": objects(b"b", b"b", b"b"),
        "s": objects("s", "s", "s"),
        "p": arr([1.5] * 3, float),
        "none": None,
        "pair": Pair(arr([True] * 3, bool), objects(grown(0), grown(1), grown(2))),
    }
    assert_gives(ds.ragged_batch(3), [expected])


def test_what_is_known_to_have_one_shape_is_stacked() -> None:
    assert_gives(nested(5).ragged_batch(2), to_list(nested(5).batch(2)))
    assert nested(5).ragged_batch(2, True).element_spec == nested(5).batch(2, True).element_spec
    signature = {
        "b": TensorSpec((None,), int),
        "a": TensorSpec((2,), int),
        "p": Pair(TensorSpec((1,), int), TensorSpec((), int)),
    }
    elements = [{"a": [n, n], "b": [n] * n, "p": Pair([n], n)} for n in (2, 2)]
    ds = Dataset.from_generator(lambda: elements, output_signature=signature)
    expected = {"b": objects(arr([2, 2]), arr([2, 2])), "a": arr([[2, 2]] * 2), "p": Pair(arr([[2]] * 2), arr([2, 2]))}
    assert_gives(ds.ragged_batch(2), [expected])


def test_rows_of_several_axes_and_of_text() -> None:
    rows = [(np.zeros((2, 1), np.float32), objects("a", b"b")), (np.ones((0, 5), np.float32), objects())]
    ds = Dataset.from_generator(lambda: rows)
    assert_gives(ds.ragged_batch(2), [(objects(rows[0][0], rows[1][0]), objects(rows[0][1], rows[1][1]))])


def test_rows_are_not_copied() -> None:
    rows = [np.arange(3), np.arange(2)]
    batch = to_list(Dataset.range(2).map(lambda n: rows[int(n)]).ragged_batch(2))[0]
    assert batch[0] is rows[0]
    assert batch[1] is rows[1]


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 9))
def test_unbatch_gives_the_rows_back(lengths: list[int], size: int) -> None:
    elements = [{"x": np.arange(n), "y": np.float32(n)} for n in lengths]
    ds = Dataset.from_generator(lambda: elements)
    assert_same(to_list(ds.ragged_batch(size).unbatch()), elements)
    assert_same(to_list(ds.ragged_batch(size).unbatch().ragged_batch(size).unbatch()), elements)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([arr([1]), arr([1.0], float)], "component ['x']: row 1 of the batch has dtype float64, row 0 has dtype int64"),
        ([arr([1]), arr([[1]])], "component ['x']: row 1 of the batch has shape (1, 1), row 0 has shape (1,)"),
        ([np.int64(1), arr([1])], "component ['x']: row 1 of the batch has shape (1,), row 0 has shape ()"),
        ([arr([1]), None], "component ['x']"),
        ([arr([1]), (1,)], "component ['x']"),
    ],
    ids=repr,
)
def test_rows_that_do_not_fit_lose_their_batch(rows: list[Any], message: str) -> None:
    good = [{"x": arr([5, 5])}, {"x": arr([6])}]
    ds = Dataset.from_generator(lambda: [*({"x": row} for row in rows), *good]).ragged_batch(2)
    assert_outcomes(ds, [StructureError, {"x": objects(arr([5, 5]), arr([6]))}])
    error = outcomes(ds)[0]
    assert message in str(error)
    assert error.__notes__ == ["in ragged_batch(2), element 0"]


def test_error_of_the_input_loses_the_elements_read_for_that_batch() -> None:
    ds = failing(Dataset.range(6), 1).map(grown).ragged_batch(2)
    assert_outcomes(ds, [Boom(1), objects(grown(2), grown(3)), objects(grown(4), grown(5))])


def test_row_splits_dtype_is_accepted_and_has_no_effect() -> None:
    ds = Dataset.range(2).map(grown)
    for dtype in (np.int32, "int64", np.dtype(np.int32)):
        assert_same(to_list(ds.ragged_batch(2, row_splits_dtype=dtype)), to_list(ds.ragged_batch(2)))
    for refused in (np.float32, np.int16):
        with pytest.raises(ValueError, match="ragged_batch: row_splits_dtype"):
            ds.ragged_batch(2, row_splits_dtype=refused)
    with pytest.raises(TypeError):
        ds.ragged_batch(2, row_splits_dtype="no dtype")


@pytest.mark.parametrize(("size", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_sizes_are_checked_at_the_call(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="ragged_batch: batch_size"):
        Dataset.range(3).ragged_batch(size)


def test_cardinality_spec_and_repr() -> None:
    assert Dataset.range(7).ragged_batch(3).cardinality() == 3
    assert Dataset.range(7).ragged_batch(3, True).cardinality() == 2
    assert Dataset.range(7).repeat().ragged_batch(3).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(7).ragged_batch(3).element_spec == TensorSpec((None,), np.int64)
    assert Dataset.range(7).map(grown).ragged_batch(3).element_spec is None
    assert "ragged_batch(3, drop_remainder=True) 'r': int64[3]" in repr(
        Dataset.range(7).ragged_batch(3, True, name="r")
    )


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    to_list(ds.map(grown).ragged_batch(3).take(2))
    assert seen == [*range(6)]
