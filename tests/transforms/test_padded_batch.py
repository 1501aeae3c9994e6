"""`padded_batch`: rows of different lengths, padded to the longest of their batch or to a given shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    failing,
    first,
    objects,
    outcomes,
    same,
)


def ragged(*lengths: int, dtype: Any = np.int64) -> Dataset[Any]:
    """Rows of these lengths, filled with the number of the row, from 1."""
    rows = [np.full(length, number, dtype) for number, length in enumerate(lengths, 1)]
    return Dataset.from_generator(lambda: rows)


@pytest.mark.parametrize("shape", [None, [None], [-1], (None,)])
def test_pads_to_the_longest_of_the_batch(shape: Any) -> None:
    ds = ragged(3, 1, 4, 2).padded_batch(2, padded_shapes=shape)
    assert_gives(ds, [arr([[1, 1, 1], [2, 0, 0]]), arr([[3, 3, 3, 3], [4, 4, 0, 0]])])


def test_empty_one_and_sizes_around_the_batch() -> None:
    assert_gives(ragged().padded_batch(2), [])
    assert_gives(ragged(2).padded_batch(2), [arr([[1, 1]])])
    assert_gives(ragged(2, 1).padded_batch(2), [arr([[1, 1], [2, 0]])])
    assert_gives(ragged(2, 1, 1).padded_batch(2), [arr([[1, 1], [2, 0]]), arr([[3]])])
    assert_gives(ragged(2, 1, 1).padded_batch(2, drop_remainder=True), [arr([[1, 1], [2, 0]])])


def test_rows_of_no_length_are_all_padding() -> None:
    assert_gives(ragged(0, 2).padded_batch(2), [arr([[0, 0], [2, 2]])])
    assert_gives(ragged(0, 0).padded_batch(2), [np.zeros((2, 0), np.int64)])


def test_pads_to_an_explicit_shape() -> None:
    assert_gives(ragged(3, 1).padded_batch(2, padded_shapes=[4]), [arr([[1, 1, 1, 0], [2, 0, 0, 0]])])


def test_row_longer_than_the_shape_is_an_error_for_that_batch_only() -> None:
    ds = ragged(1, 3, 2, 1).padded_batch(2, padded_shapes=[2])
    assert_outcomes(ds, [DataError, arr([[3, 3], [4, 0]])])
    text = str(outcomes(ds)[0])
    assert "(3,)" in text
    assert "row 1" in text


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
def test_dtype_is_kept(dtype: str) -> None:
    assert_gives(ragged(1, 2, dtype=dtype).padded_batch(2), [arr([[1, 0], [2, 2]], dtype)])


def test_default_padding_is_false_and_empty_bytes() -> None:
    flags = Dataset.from_generator(lambda: [arr([True], bool), arr([True, True], bool)])
    assert_gives(flags.padded_batch(2), [arr([[True, False], [True, True]], bool)])
    words = Dataset.from_generator(lambda: [objects(b"a\x00"), objects(b"b", b"c")])
    expected = np.array([[b"a\x00", b""], [b"b", b"c"]], dtype=object)
    assert_gives(words.padded_batch(2), [expected])


def test_scalars_need_no_padding() -> None:
    assert_gives(Dataset.range(3).padded_batch(2), [arr([0, 1]), arr([2])])
    assert_gives(Dataset.range(3).padded_batch(2, padded_shapes=[]), [arr([0, 1]), arr([2])])


def test_given_padding_value() -> None:
    assert_gives(ragged(1, 2).padded_batch(2, padding_values=np.int64(-1)), [arr([[1, -1], [2, 2]])])
    assert_gives(ragged(1, 2).padded_batch(2, padding_values=-1), [arr([[1, -1], [2, 2]])])


def test_several_axes() -> None:
    rows = [np.ones((1, 2), np.float32), np.full((2, 1), 2, np.float32)]
    ds = Dataset.from_generator(lambda: rows)
    expected = arr([[[1, 1], [0, 0]], [[2, 0], [2, 0]]], np.float32)
    assert_gives(ds.padded_batch(2), [expected])
    assert_gives(ds.padded_batch(2, padded_shapes=[None, None]), [expected])
    wide = arr([[[1, 1, 0], [0, 0, 0]], [[2, 0, 0], [2, 0, 0]]], np.float32)
    assert_gives(ds.padded_batch(2, padded_shapes=[None, 3]), [wide])


def structured() -> Dataset[Any]:
    return Dataset.zip(ragged(1, 2), ragged(2, 0), Dataset.range(2))


def test_shapes_and_values_for_each_component() -> None:
    ds = structured().padded_batch(2, padded_shapes=([None], [3], []), padding_values=(7, 8, 9))
    assert_gives(ds, [(arr([[1, 7], [2, 2]]), arr([[1, 1, 8], [8, 8, 8]]), arr([0, 1]))])


def test_one_value_serves_all_components_of_its_dtype() -> None:
    ds = structured().padded_batch(2, padding_values=np.int64(5))
    assert_gives(ds, [(arr([[1, 5], [2, 2]]), arr([[1, 1], [5, 5]]), arr([0, 1]))])


def test_none_among_the_values_means_the_default() -> None:
    ds = structured().padded_batch(2, padding_values=(None, 8, None))
    assert_gives(ds, [(arr([[1, 0], [2, 2]]), arr([[1, 1], [8, 8]]), arr([0, 1]))])


def test_dict_and_named_tuple_keep_their_shape() -> None:
    ds = Dataset.zip({"a": ragged(1, 2), "p": Dataset.zip(Dataset.range(2), ragged(2, 1))})
    ds = ds.map(lambda d: {"a": d["a"], "p": Pair(*d["p"])})
    shapes = {"a": [3], "p": Pair([], [None])}
    expected = {"a": arr([[1, 0, 0], [2, 2, 0]]), "p": Pair(arr([0, 1]), arr([[1, 1], [2, 0]]))}
    assert_gives(ds.padded_batch(2, padded_shapes=shapes), [expected])


@pytest.mark.parametrize("size", [0, -1, 1.5, None])
def test_wrong_size_is_refused_at_the_call(size: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        ragged(1).padded_batch(size)


@pytest.mark.parametrize("shapes", [[None, None], [], ([None], [None]), {"a": [None]}], ids=str)
def test_shapes_that_do_not_fit_are_refused(shapes: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        first(ragged(1, 2).padded_batch(2, padded_shapes=shapes), 1)


def test_unequal_ranks_and_dtypes_are_errors() -> None:
    ranks = Dataset.from_generator(lambda: [np.ones(2), np.ones((2, 2))])
    assert isinstance(outcomes(ranks.padded_batch(2))[0], DataError)
    dtypes = Dataset.from_generator(lambda: [np.ones(2, np.int64), np.ones(1, np.float32)])
    error = outcomes(dtypes.padded_batch(2))[0]
    assert isinstance(error, DataError)
    assert "int64" in str(error)
    assert "float32" in str(error)


def test_input_error_loses_what_was_read_for_that_batch() -> None:
    ds = failing(Dataset.range(6), 3).padded_batch(2)
    assert_outcomes(ds, [arr([0, 1]), Boom(3), arr([4, 5])])


def test_early_stop_and_endless_input() -> None:
    got = first(Dataset.range(2).repeat().padded_batch(3), 2)
    assert same(got, [arr([0, 1, 0]), arr([1, 0, 1])])


def test_cardinality_is_that_of_batch() -> None:
    assert Dataset.range(7).padded_batch(3).cardinality() == 3
    assert Dataset.range(7).padded_batch(3, drop_remainder=True).cardinality() == 2
    assert Dataset.range(7).repeat().padded_batch(3).cardinality() == aiodata.INFINITE_CARDINALITY
    assert ragged(1, 2).padded_batch(3).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_padding_does_not_touch_the_rows_themselves() -> None:
    row = arr([1])
    ds = Dataset.from_generator(lambda: [row, arr([2, 2])]).padded_batch(2, padding_values=9)
    first(ds, 1)
    assert same(row, arr([1]))
