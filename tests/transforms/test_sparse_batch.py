"""`sparse_batch`: arrays of unequal shapes as one sparse array, as tf.data's `SparseTensor`s."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, SparseTensor, TensorSpec
from aiodata.errors import StructureError
from tests.programs import Boom, arr, assert_gives, assert_outcomes, assert_same, failing, objects, outcomes, to_list


def grown(x: Any) -> Any:
    return np.arange(int(x) * 10, int(x) * 10 + int(x) % 3 + 1)


def sparse(indices: Any, values: Any, shape: Any, dtype: Any = np.int64) -> SparseTensor:
    return SparseTensor(arr(indices), arr(values, dtype), arr(shape))


TF = [  # what TensorFlow gives for rows of 1, 2, 3 and 1 elements
    sparse([[0, 0], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2]], [0, 10, 11, 20, 21, 22], [3, 4]),
    sparse([[0, 0]], [30], [1, 4]),
]


@pytest.mark.parametrize("shape", [[4], (4,), 4, np.array([4]), [np.int8(4)]], ids=repr)
def test_is_tf_datas(shape: Any) -> None:
    assert_gives(Dataset.range(4).map(grown).sparse_batch(3, shape), TF)


def test_an_axis_of_none_is_the_longest_of_the_batch() -> None:
    expected = [TF[0]._replace(dense_shape=arr([3, 3])), TF[1]._replace(dense_shape=arr([1, 1]))]
    assert_gives(Dataset.range(4).map(grown).sparse_batch(3, [None]), expected)


def test_all_values_are_there_in_row_major_order() -> None:
    ds = Dataset.from_tensors(arr([[0, 1, 0], [2, 0, 3]], np.float32)).sparse_batch(2, [2, 4])
    places = [[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 0], [0, 1, 1], [0, 1, 2]]
    assert_gives(ds, [sparse(places, [0, 1, 0, 2, 0, 3], [1, 2, 4], np.float32)])


def test_single_values() -> None:
    expected = [sparse([[0], [1]], [0, 1], [2]), sparse([[0]], [2], [1])]
    assert_gives(Dataset.range(3).sparse_batch(2, []), expected)
    assert_gives(Dataset.from_generator(lambda: [0, 1, 2]).sparse_batch(2, []), expected)


def test_text_and_empty_rows() -> None:
    ds = Dataset.from_generator(lambda: [objects("a", b"b\0"), objects(), objects("c")])
    places = arr([[0, 0], [0, 1], [2, 0]])
    assert_gives(ds.sparse_batch(3, [None]), [SparseTensor(places, objects("a", b"b\0", "c"), arr([3, 2]))])
    assert_gives(
        Dataset.from_tensor_slices([b"a", b"b"]).sparse_batch(2, []),
        [SparseTensor(arr([[0], [1]]), objects(b"a", b"b"), arr([2]))],
    )
    ds = Dataset.from_generator(lambda: [np.zeros((0, 2)), np.zeros((0, 3))])
    assert_gives(
        ds.sparse_batch(2, [None, None]), [SparseTensor(np.zeros((0, 3), np.int64), np.zeros(0), arr([2, 0, 3]))]
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9), st.booleans())
def test_the_dense_array_comes_back(shapes: list[tuple[int, int]], fixed: bool) -> None:
    rows = [np.arange(1, a * b + 1, dtype=np.int16).reshape(a, b) for a, b in shapes]
    ds = Dataset.from_generator(lambda: rows)
    (batch,) = to_list(ds.sparse_batch(9, [5, 5] if fixed else [None, None]))
    (padded,) = to_list(ds.padded_batch(9, [5, 5] if fixed else None))
    dense = np.zeros(batch.dense_shape, batch.values.dtype)
    dense[tuple(batch.indices.T)] = batch.values
    assert_same(dense, padded)
    assert_same(batch.indices, batch.indices[np.lexsort(batch.indices.T[::-1])])


def test_a_row_that_is_too_long_is_an_error_in_its_place_as_in_tf_data() -> None:
    ds = Dataset.range(4).map(grown).sparse_batch(2, [2])
    expected = [sparse([[0, 0], [1, 0], [1, 1]], [0, 10, 11], [2, 2]), StructureError, sparse([[0, 0]], [30], [1, 2])]
    assert_outcomes(ds, expected)
    error = outcomes(ds)[1]
    assert str(error) == "the element has shape (3,), longer than row_shape [2]"
    assert error.__notes__ == ["in sparse_batch(row_shape=[2]), element 2"]


def test_another_number_of_axes_is_an_error() -> None:
    assert_outcomes(Dataset.range(2).map(grown).sparse_batch(2, [4, 2]), [StructureError, StructureError])


def test_dtypes_that_differ_lose_their_batch() -> None:
    rows = [arr([1]), arr([1.0], float), arr([2]), arr([3])]
    ds = Dataset.from_generator(lambda: rows).sparse_batch(2, [1])
    assert_outcomes(ds, [StructureError, sparse([[0, 0], [1, 0]], [2, 3], [2, 1])])
    assert "row 1 of the batch has dtype float64, row 0 has dtype int64" in str(outcomes(ds)[0])


def test_error_of_the_input_loses_the_elements_read_for_that_batch() -> None:
    ds = failing(Dataset.range(5), 1).map(grown).sparse_batch(2, [None])
    got = outcomes(ds)
    assert_same(got[0], Boom(1))
    assert_same([batch.values for batch in got[1:]], [arr([20, 21, 22, 30]), arr([40, 41])])


def test_several_components_are_refused() -> None:
    for structure in ((Dataset.range(2), Dataset.range(2)), (Dataset.range(2),), {"a": Dataset.range(2)}):
        with pytest.raises(TypeError, match="sparse_batch: elements must be single arrays"):
            Dataset.zip(structure).sparse_batch(2, [])
    for element in ((1, 2), {"a": 1}, None):
        ds = Dataset.range(2).map(lambda x, element=element: (x, element)).map(lambda x, element: {"k": (x, element)})
        assert_outcomes(ds.sparse_batch(2, []), [StructureError, StructureError])
    assert_outcomes(Dataset.range(1).map(lambda x: (x, x)).sparse_batch(2, []), [StructureError])


@pytest.mark.parametrize(
    ("size", "shape", "error"),
    [
        *[(0, [], ValueError), (-1, [], ValueError), (1.5, [], TypeError)],
        *[
            (1, [-1], ValueError),
            (1, None, TypeError),
            (1, "4", TypeError),
            (1, [1.5], TypeError),
            (1, [[1]], TypeError),
        ],
    ],
)
def test_arguments_are_checked_at_the_call(size: Any, shape: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="sparse_batch: "):
        Dataset.range(3).sparse_batch(size, shape)


def test_cardinality_spec_and_repr() -> None:
    ds = Dataset.range(7).sparse_batch(3, [])
    assert ds.cardinality() == 3
    assert Dataset.range(7).repeat().sparse_batch(3, []).cardinality() == aiodata.INFINITE_CARDINALITY
    expected = SparseTensor(TensorSpec((None, 1), np.int64), TensorSpec((None,), np.int64), TensorSpec((1,), np.int64))
    assert ds.element_spec == expected
    assert Dataset.range(4).map(grown).sparse_batch(3, [4]).element_spec is None
    assert "sparse_batch(3, [4, None]) 's': ?" in repr(Dataset.range(4).map(grown).sparse_batch(3, [4, None], name="s"))
