"""`batch`: consecutive elements stacked along a new first axis, exact in dtype and structure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import StructureError
from tests.programs import (
    Boom,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    first,
    global_seed,
    nested,
    nested_batch,
    objects,
    outcomes,
    to_list,
)


def from_list(elements: list[Any]) -> Dataset[Any]:
    return Dataset.from_generator(lambda: elements)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 6, 7, 8, 16])
def test_gives_consecutive_runs(count: int, size: int, drop: bool) -> None:
    expected = [arr(range(at, min(at + size, count))) for at in range(0, count, size)]
    if drop:
        expected = [batch for batch in expected if len(batch) == size]
    assert_gives(Dataset.range(count).batch(size, drop_remainder=drop), expected)


@pytest.mark.parametrize("calls", [1, 2, aiodata.AUTOTUNE])
def test_parallel_calls_change_nothing(calls: int) -> None:
    ds = Dataset.range(7).map(lambda x: x + 1).batch(3, num_parallel_calls=calls)
    assert_gives(ds, [arr([1, 2, 3]), arr([4, 5, 6]), arr([7])])


def test_textbook_batches_cross_epochs() -> None:
    rows = [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 0, 1, 2, 3], [4, 5, 6, 7, 8, 9, 0], [1, 2, 3, 4, 5, 6, 7]]
    assert_gives(Dataset.range(10).repeat(3).batch(7), [*map(arr, rows), arr([8, 9])])
    assert_gives(Dataset.range(10).repeat(3).batch(7, drop_remainder=True), [*map(arr, rows)])


def test_textbook_shuffled_batches() -> None:
    rows = [[0, 2, 3, 6, 7, 9, 4], [5, 0, 1, 1, 8, 6, 5], [4, 8, 7, 1, 2, 3, 0], [5, 4, 2, 7, 8, 9, 9], [3, 6]]
    with global_seed(None):
        ds = Dataset.range(10).repeat(3).shuffle(buffer_size=5, seed=42).batch(7)
        assert_same(to_list(ds), [*map(arr, rows)])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_nested_structures_are_batched_part_by_part(count: int) -> None:
    expected = [nested_batch(*range(at, min(at + 2, count))) for at in range(0, count, 2)]
    assert_gives(nested(count).batch(2), expected)


def test_batch_of_batches_has_one_more_axis() -> None:
    ds = Dataset.range(8).batch(2).batch(3)
    assert_gives(ds, [arr([[0, 1], [2, 3], [4, 5]]), arr([[6, 7]])])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float32", "complex64", "datetime64[s]"])
def test_dtype_is_kept(dtype: str) -> None:
    rows = np.arange(5).astype(dtype) if dtype != "bool" else np.arange(5) % 2 == 0
    assert_gives(Dataset.from_tensor_slices(rows).batch(3), [rows[:3], rows[3:]])
    assert_gives(Dataset.from_tensor_slices(rows).map(lambda x: x).batch(3), [rows[:3], rows[3:]])


def test_python_numbers_become_numpy_ones() -> None:
    assert_same(to_list(from_list([1, 2]).batch(2)), [arr([1, 2])])
    assert_same(to_list(from_list([1.5, 2.5]).batch(2)), [arr([1.5, 2.5], np.float64)])
    assert_same(to_list(from_list([True, False]).batch(2)), [arr([True, False], bool)])


def test_bytes_keep_their_trailing_zeros() -> None:
    ds = from_list([b"a\x00", b"", b"\x00\x00"]).batch(2)
    assert_gives(ds, [objects(b"a\x00", b""), objects(b"\x00\x00")])


def test_text_is_batched_as_objects() -> None:
    assert_gives(from_list(["é", "long text"]).batch(2), [objects("é", "long text")])


def test_rows_of_no_length_are_kept() -> None:
    ds = from_list([np.zeros((0, 2), np.float32)] * 3).batch(2)
    assert_gives(ds, [np.zeros((2, 0, 2), np.float32), np.zeros((1, 0, 2), np.float32)])


@pytest.mark.parametrize("size", [0, -1, -5, 2.5, "3", None])
def test_wrong_size_is_refused_at_the_call(size: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).batch(size)


@pytest.mark.parametrize("calls", [0, -2])
def test_wrong_parallelism_is_refused_at_the_call(calls: int) -> None:
    with pytest.raises(ValueError, match="num_parallel_calls"):
        Dataset.range(3).batch(2, num_parallel_calls=calls)


def test_unequal_shapes_are_an_error_for_that_batch_only() -> None:
    lengths = [2, 2, 3, 2, 2, 2, 1]
    ds = from_list([np.ones(length, np.float32) for length in lengths]).batch(3)
    assert_outcomes(ds, [StructureError, np.ones((3, 2), np.float32), np.ones((1, 1), np.float32)])


@pytest.mark.parametrize("bad", [0, 1, 2, 3])
def test_unequal_shape_error_names_key_row_shapes_and_the_way_out(bad: int) -> None:
    rows = [{"id": np.int64(i), "image": np.zeros(2 + (i == bad and bad > 0))} for i in range(4)]
    if bad == 0:
        rows[3]["image"] = np.zeros((2, 1))
    error = outcomes(from_list(rows).batch(4))[0]
    assert isinstance(error, StructureError)
    other = "(2, 1)" if bad == 0 else "(3,)"
    for word in ("image", f"row {bad or 3}", "(2,)", other, "padded_batch"):
        assert word in str(error)


def test_unequal_dtype_error_names_key_row_and_dtypes() -> None:
    rows = [{"image": np.zeros(2, np.float64 if i == 3 else np.int64), "id": i} for i in range(5)]
    error = outcomes(from_list(rows).batch(5))[0]
    assert isinstance(error, StructureError)
    for word in ("image", "row 3", "int64", "float64"):
        assert word in str(error)


def test_error_names_the_place_in_a_deep_structure() -> None:
    rows = [{"a": (np.int64(0), {"deep": np.zeros(1 + (i == 1))})} for i in range(2)]
    error = outcomes(from_list(rows).batch(2))[0]
    assert isinstance(error, StructureError)
    for word in ("a", "1", "deep", "row 1", "(1,)", "(2,)"):
        assert word in str(error)


@pytest.mark.parametrize(
    "rows",
    [[{"a": 1}, {"b": 1}], [{"a": 1}, {"a": 1, "b": 2}], [(1, 2), (1, 2, 3)], [{"a": 1}, (1,)], [(1, 2), 3]],
    ids=str,
)
def test_unequal_structures_are_an_error(rows: list[Any]) -> None:
    got = outcomes(from_list([*rows, rows[0], rows[0]]).batch(2))
    assert isinstance(got[0], StructureError)
    assert "row 1" in str(got[0])
    assert len(got) == 2


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (0, [Boom(0), arr([1, 2, 3]), arr([4, 5])]),
        (1, [Boom(1), arr([2, 3, 4]), arr([5])]),
        (2, [Boom(2), arr([3, 4, 5])]),
        (3, [arr([0, 1, 2]), Boom(3), arr([4, 5])]),
        (4, [arr([0, 1, 2]), Boom(4), arr([5])]),
        (5, [arr([0, 1, 2]), Boom(5)]),
    ],
)
def test_input_error_loses_what_was_read_for_that_batch(bad: int, expected: list[Any]) -> None:
    assert_outcomes(failing(Dataset.range(6), bad).batch(3), expected)


def test_reads_only_what_the_batches_need() -> None:
    ds, seen = counted(Dataset.range(100))
    first(ds.batch(3), 2)
    assert seen == [0, 1, 2, 3, 4, 5]


def test_batches_are_not_shared_between_passes() -> None:
    ds = Dataset.range(4).batch(2)
    batch = first(ds, 1)[0]
    if batch.flags.writeable:
        batch += 100
    assert_gives(ds, [arr([0, 1]), arr([2, 3])])


@pytest.mark.parametrize(("count", "size"), [(0, 3), (1, 3), (3, 3), (7, 3), (9, 3), (7, 10)])
def test_cardinality_is_rounded_up_or_down(count: int, size: int) -> None:
    assert Dataset.range(count).batch(size).cardinality() == -(-count // size)
    assert Dataset.range(count).batch(size, drop_remainder=True).cardinality() == count // size


def test_cardinality_of_endless_and_unknown_input_stays() -> None:
    assert Dataset.range(3).repeat().batch(2).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(3).filter(lambda x: True).batch(2).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_blocks_of_columns_that_do_not_fit_each_other_lose_one_batch() -> None:
    def rows(x: Any) -> Any:
        return np.full((3, 2 if x < 2 else 1), x)

    ds = Dataset.range(4).map(rows).unbatch().batch(4)
    first, second, third = outcomes(ds)
    assert_same(first, arr([[0, 0], [0, 0], [0, 0], [1, 1]]))
    assert isinstance(second, StructureError)
    assert (
        str(second)
        == "element: row 2 of the batch has shape (1,), row 0 has shape (2,); padded_batch pads rows to one shape"
    )
    assert_same(third, arr([[2], [3], [3], [3]]))


OBJECT_COLUMNS = {
    "numbers": [1] * 10,
    "dicts": [{"a": 1}] * 10,
    "tuples": [(1, 2)] * 10,
    "nothing": [None] * 10,
    "some nothing": ["a", None] * 5,
}


def column_of(name: str) -> Any:
    if name == "big-endian":
        return np.arange(10).astype(">i4")
    column = np.empty(10, object)
    column[:] = OBJECT_COLUMNS[name]
    return column


@pytest.mark.parametrize("name", [*OBJECT_COLUMNS, "big-endian"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_all_batches_of_a_column_are_alike(name: str, shuffled: bool) -> None:
    column = column_of(name)
    ds: Any = Dataset.from_tensor_slices({"x": column})
    ds = (ds.shuffle(5, seed=1, reshuffle_each_iteration=False) if shuffled else ds).batch(4)
    batches = [batch["x"] for batch in ds]
    assert [(batch.dtype, batch.shape) for batch in batches] == [(column.dtype, (size,)) for size in (4, 4, 2)]
    for taken in range(3):
        iterator = ds.iterate()
        for _ in range(taken):
            next(iterator)
        again = [batch["x"] for batch in ds.iterate(state=iterator.state_dict())]
        iterator.close()
        assert [batch.dtype for batch in again] == [column.dtype] * (3 - taken)
        assert [batch.tolist() for batch in again] == [batch.tolist() for batch in batches[taken:]]


def test_the_last_batch_can_be_written_to_and_leaves_its_source_alone() -> None:
    source = np.arange(6)
    source.flags.writeable = False
    *_, last = Dataset.from_tensor_slices(source).batch(4)
    last[:] = -1
    assert source.tolist() == [0, 1, 2, 3, 4, 5]
