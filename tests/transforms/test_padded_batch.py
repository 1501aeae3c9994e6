"""`padded_batch`: rows of different lengths, padded to the longest of their batch or to a given shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError
from aiodata.spec import NoneTensorSpec, TensorSpec
from aiodata.structure import flatten
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    failing,
    first,
    nested,
    objects,
    outcomes,
    same,
    to_list,
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


# All the forms of shapes and values


def rows_of(*rows: Any) -> Dataset[Any]:
    return Dataset.from_generator(lambda: rows)


def test_rows_of_length_3_1_4_and_2_in_pairs() -> None:
    batches = to_list(ragged(3, 1, 4, 2).padded_batch(2))
    assert [batch.shape for batch in batches] == [(2, 3), (2, 4)]
    assert_same(batches, [arr([[1, 1, 1], [2, 0, 0]]), arr([[3, 3, 3, 3], [4, 4, 0, 0]])])


@pytest.mark.parametrize("shape", [[3], (3,), [np.int64(3)], np.array([3]), np.array([3], np.int32)], ids=repr)
def test_a_shape_may_be_a_list_a_tuple_or_an_array(shape: Any) -> None:
    assert_gives(ragged(1, 2).padded_batch(2, shape), [arr([[1, 0, 0], [2, 2, 0]])])


@pytest.mark.parametrize("shape", [[-1, 2], [None, 2], (-1, 2), np.array([-1, 2])], ids=repr)
def test_open_and_fixed_axes_together(shape: Any) -> None:
    ds = rows_of(np.ones((2, 1), np.int64), np.ones((1, 2), np.int64))
    assert_gives(ds.padded_batch(2, shape), [arr([[[1, 0], [1, 0]], [[1, 1], [0, 0]]])])


def test_an_open_axis_is_as_long_as_the_longest_of_its_own_batch() -> None:
    found = to_list(ragged(1, 2, 5, 1, 3).padded_batch(2, [None]))
    assert [batch.shape for batch in found] == [(2, 2), (2, 5), (1, 3)]


def test_none_in_place_of_a_shape_among_others() -> None:
    ds = structured().padded_batch(2, padded_shapes=(None, [3], None))
    assert_gives(ds, [(arr([[1, 0], [2, 2]]), arr([[1, 1, 0], [0, 0, 0]]), arr([0, 1]))])


def test_a_list_of_shapes_fits_a_tuple() -> None:
    ds = structured().padded_batch(2, padded_shapes=[[None], [3], []], padding_values=[7, None, 9])
    assert_gives(ds, [(arr([[1, 7], [2, 2]]), arr([[1, 1, 0], [0, 0, 0]]), arr([0, 1]))])


def deep() -> Dataset[Any]:
    """Elements that nest a tuple in a dict in a tuple, a named tuple among them."""
    return Dataset.zip(ragged(1, 2), Dataset.zip({"p": ragged(2, 1), "q": Dataset.range(2)})).map(
        lambda row, d: (row, {"p": (d["p"],), "q": Pair(d["q"], row.astype(np.float32))})
    )


def test_nested_shapes_and_values() -> None:
    shapes = (None, {"p": ([3],), "q": Pair([], [-1])})
    values = (-1, {"p": (None,), "q": Pair(None, 0.5)})
    expected = (
        arr([[1, -1], [2, 2]]),
        {"p": (arr([[1, 1, 0], [2, 0, 0]]),), "q": Pair(arr([0, 1]), arr([[1, 0.5], [2, 2]], np.float32))},
    )
    assert_gives(deep().padded_batch(2, shapes, values), [expected])
    plain_pairs = {"p": [[3]], "q": ([], [-1])}
    assert_gives(deep().padded_batch(2, (None, plain_pairs), values), [expected])


def test_one_value_serves_its_dtype_and_the_others_get_the_default() -> None:
    ds = deep().padded_batch(2, padding_values=np.float32(0.5))
    (batch,) = to_list(ds)
    assert_same(batch[1]["q"].y, arr([[1, 0.5], [2, 2]], np.float32))
    assert_same(batch[0], arr([[1, 0], [2, 2]]))
    assert_same(batch[1]["p"][0], arr([[1, 1], [2, 0]]))


@pytest.mark.parametrize(
    ("one", "two", "value", "expected"),
    [
        (arr([True], bool), arr([False, True], bool), True, arr([[True, True], [False, True]], bool)),
        (arr([1.5], "float32"), arr([2, 3], "float32"), 0.25, arr([[1.5, 0.25], [2, 3]], "float32")),
        (arr([1.5], "float64"), arr([2, 3], "float64"), float("nan"), arr([[1.5, np.nan], [2, 3]], "float64")),
        (arr([1], "float16"), arr([2, 3], "float16"), 4, arr([[1, 4], [2, 3]], "float16")),
        (arr([1j], "complex64"), arr([2, 3], "complex64"), 1 - 1j, arr([[1j, 1 - 1j], [2, 3]], "complex64")),
        (arr([1j], "complex128"), arr([2, 3], "complex128"), None, arr([[1j, 0], [2, 3]], "complex128")),
        (arr([1], "uint8"), arr([2, 3], "uint8"), 255, arr([[1, 255], [2, 3]], "uint8")),
        (arr([1], "int8"), arr([2, 3], "int8"), np.int8(-1), arr([[1, -1], [2, 3]], "int8")),
        (objects(b"a"), objects(b"b", b""), b"<pad>", np.array([[b"a", b"<pad>"], [b"b", b""]], object)),
        (objects("a"), objects("b", "c"), "<pad>", np.array([["a", "<pad>"], ["b", "c"]], object)),
        (objects("a"), objects("b", "c"), None, np.array([["a", ""], ["b", "c"]], object)),
        (objects(b"a"), objects(b"b", b"c"), "?", np.array([[b"a", b"?"], [b"b", b"c"]], object)),
    ],
    ids=lambda value: str(getattr(value, "dtype", value)),
)
def test_values_of_every_kind(one: Any, two: Any, value: Any, expected: Any) -> None:
    assert_gives(rows_of(one, two).padded_batch(2, padding_values=value), [expected])


@pytest.mark.parametrize(
    ("dtype", "value"), [("int64", 0.5), ("uint8", -1), ("int8", 300), ("int64", "x"), ("float32", 1j), ("int32", b"x")]
)
def test_a_value_that_does_not_fit_is_an_error(dtype: str, value: Any) -> None:
    assert_outcomes(ragged(1, 2, dtype=dtype).padded_batch(2, padding_values=value), [DataError])


def test_a_batch_that_needs_no_padding_is_as_batch_makes_it() -> None:
    ds = nested(5)
    assert_gives(ds.padded_batch(2), to_list(ds.batch(2)))


def test_components_that_are_none_stay_none() -> None:
    ds = rows_of((arr([1]), None), (arr([2, 3]), None))
    assert_gives(ds.padded_batch(2), [(arr([[1, 0], [2, 3]]), None)])
    assert_gives(ds.padded_batch(2, ([3], None)), [(arr([[1, 0, 0], [2, 3, 0]]), None)])


def test_a_shape_longer_and_shorter_than_the_rows_in_one_axis_each() -> None:
    ds = rows_of(np.ones((1, 3)), np.ones((2, 2))).padded_batch(1, [2, 2])
    assert_outcomes(ds, [DataError, np.ones((1, 2, 2))])


@pytest.mark.parametrize("drop", [False, True])
def test_a_last_smaller_batch_is_padded_or_dropped(drop: bool) -> None:
    whole, rest = arr([[1, 0, 0], [2, 2, 0]]), arr([[3, 3, 0]])
    assert_gives(ragged(1, 2, 2).padded_batch(2, [3], drop_remainder=drop), [whole] if drop else [whole, rest])


# What is known before


def test_spec() -> None:
    def spec(ds: Dataset[Any], *arguments: Any, **options: Any) -> Any:
        return ds.padded_batch(4, *arguments, **options).plan.element_spec()

    assert spec(Dataset.range(3)) == TensorSpec((None,), np.int64)
    assert spec(Dataset.range(3), drop_remainder=True) == TensorSpec((4,), np.int64)
    table = Dataset.from_tensor_slices({"a": np.zeros((5, 2, 3), np.float32), "b": [b"x"] * 5})
    assert spec(table) == {"a": TensorSpec((None, 2, 3), np.float32), "b": TensorSpec((None,), object)}
    shaped = {"a": TensorSpec((4, None, 7), np.float32), "b": TensorSpec((4,), object)}
    assert spec(table, {"a": [-1, 7], "b": []}, drop_remainder=True) == shaped
    assert spec(table, {"a": [None, np.int64(7)], "b": None}, drop_remainder=True) == shaped
    assert spec(table, {"a": np.array([-1, 7]), "b": []}, drop_remainder=True) == shaped
    assert spec(ragged(1), [None]) is None
    empty = Dataset.from_tensors((np.zeros(2), None))
    assert spec(empty, ([3], None)) == (TensorSpec((None, 3), np.float64), NoneTensorSpec())


def test_the_spec_is_that_of_the_batches() -> None:
    table = Dataset.from_tensor_slices({"a": np.zeros((5, 2, 3), np.float32), "b": np.arange(5)})
    for shapes in (None, {"a": [3, 3], "b": []}, {"a": [None, 4], "b": None}):
        ds = table.padded_batch(2, shapes)
        known = flatten(ds.plan.element_spec())
        for batch in to_list(ds):
            assert all(one.is_compatible_with(leaf) for one, leaf in zip(known, flatten(batch), strict=True))


@pytest.mark.parametrize(
    "shapes", [[2], [[2, 3], []], {"a": [2, 3]}, {"a": [2, 3], "b": [1]}, {"a": [2], "b": []}, {"a": 2, "b": []}]
)
def test_shapes_that_cannot_fit_are_refused_at_the_call_where_the_elements_are_known(shapes: Any) -> None:
    table = Dataset.from_tensor_slices({"a": np.zeros((5, 2, 3), np.float32), "b": np.arange(5)})
    with pytest.raises((TypeError, ValueError), match="padded"):
        table.padded_batch(2, shapes)


def test_values_that_cannot_fit_are_refused_at_the_call_where_the_elements_are_known() -> None:
    with pytest.raises(ValueError, match="padded_batch: padding_values does not fit"):
        nested(3).padded_batch(2, padding_values=(1, 2))


def test_unequal_ranks_name_row_and_shapes() -> None:
    error = outcomes(rows_of(np.ones(2), np.ones((1, 2))).padded_batch(2))[0]
    for word in ("row 1", "(1, 2)", "(2,)", "adds none"):
        assert word in str(error)
    assert isinstance(outcomes(ragged(1, 2).padded_batch(2, [None, None]))[0], DataError)


def test_repr_and_name() -> None:
    ds = ragged(1).padded_batch(2, [None], -1, True, "pad")
    assert ds.plan.label == "padded_batch(2, drop_remainder=True, padded_shapes=[None], padding_values=-1)"
    assert ds.plan.title == "pad"
