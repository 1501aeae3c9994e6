"""`rebatch`: the rows of batches in batches of other sizes, which may be cycled."""

from __future__ import annotations

from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, TextLineDataset
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
    nested_batch,
    objects,
    outcomes,
    to_list,
)


def from_list(elements: list[Any]) -> Dataset[Any]:
    return Dataset.from_generator(lambda: elements)


def plainly(lengths: list[int], sizes: list[int], drop: bool) -> list[list[int]]:
    """Rebatch numbers as tf.data does: an input is read only when a row is missing."""
    rows = [*range(sum(lengths))]
    batches: list[list[int]] = []
    for size in cycle(sizes):
        if size and not rows:
            return batches
        if len(rows) < size:
            return batches if drop else [*batches, rows]
        batches.append(rows[:size])
        rows = rows[size:]
    return batches


def split(lengths: list[int]) -> list[Any]:
    ends = np.cumsum([0, *lengths])
    return [np.arange(begin, end) for begin, end in pairwise(ends)]


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize(
    "sizes", [2, 1, 3, 4, 100, [2, 1], [2, 0], [0, 2], [0, 0, 3, 0], np.array([1, 3]), (5,), np.int8(2)]
)
@pytest.mark.parametrize("count", [0, 1, 2, 4, 5, 7])
def test_cuts_rows_into_the_sizes(count: int, sizes: Any, drop: bool) -> None:
    listed = [int(size) for size in np.atleast_1d(sizes)]
    expected = [arr(batch) for batch in plainly([count], listed, drop)]
    assert_gives(Dataset.range(count).batch(3).rebatch(sizes, drop_remainder=drop), expected)


SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any)


@given(st.lists(st.integers(0, 12), max_size=30), SIZES, st.booleans(), st.booleans())
def test_is_the_plain_reference(lengths: list[int], sizes: list[int], drop: bool, single: bool) -> None:
    elements = split(lengths)
    given_sizes: Any = max(sizes) if single else sizes
    expected = [arr(batch) for batch in plainly(lengths, [max(sizes)] if single else sizes, drop)]
    if not lengths:
        expected = []  # with no element and no spec, nothing tells what an empty batch would be
    assert_same(to_list(from_list(elements).rebatch(given_sizes, drop)), expected)


@given(st.integers(0, 300), st.integers(1, 20), st.integers(1, 50), st.booleans())
def test_columns_are_cut_as_rows_are(count: int, size: int, new: int, drop: bool) -> None:
    ds = Dataset.range(count).batch(size)
    expected = to_list(Dataset.range(count).batch(new, drop_remainder=drop))
    assert_same(to_list(ds.rebatch(new, drop)), expected)
    assert_same(to_list(ds.map(lambda x: x).rebatch(new, drop)), expected)
    assert_same(to_list(ds.rebatch([new, new], drop)), expected)


def test_structures() -> None:
    batches = [nested_batch(0, 1, 2), nested_batch(3, 4, 5), nested_batch(6)]
    assert_gives(nested(7).batch(2).rebatch(3), batches)
    assert_gives(nested(7).batch(2).map(lambda x: x).rebatch([3]), batches)
    pairs = Dataset.from_tensors(Pair(np.arange(3), (objects("a", b"b", "c"), None)))
    assert_gives(
        pairs.rebatch(2), [Pair(arr([0, 1]), (objects("a", b"b"), None)), Pair(arr([2]), (objects("c"), None))]
    )


@pytest.mark.parametrize("many", [True, False])
def test_never_touches_single_rows(many: bool) -> None:
    class Numbers(np.ndarray):
        def __iter__(self) -> Any:
            assert self.ndim > 1, "a row was asked for"
            return super().__iter__()

    batches = [np.arange(begin, begin + 10).view(Numbers) for begin in range(0, 100, 10)]
    got = to_list(from_list(batches).rebatch(4 if many else [4, 21]))
    assert sum(map(len, got)) == 100


def test_batches_are_writable_and_do_not_change_the_input() -> None:
    ds = Dataset.from_tensors(np.arange(6)).rebatch(3)
    for _ in range(2):
        for number, batch in enumerate(ds):
            assert_same(batch, arr([0, 1, 2]) + 3 * number)
            batch += 1


def test_empty_batches_have_the_spec_of_their_rows_as_in_tf_data() -> None:
    ds = Dataset.from_tensors({"x": np.zeros((4, 3)), "y": np.zeros((4,), np.int8)}).rebatch([0, 3])
    empty = {"x": np.zeros((0, 3)), "y": np.zeros(0, np.int8)}
    got = to_list(ds)
    assert_same([got[0], got[2]], [empty, empty])
    assert [len(batch["x"]) for batch in got] == [0, 3, 0, 1]
    assert_gives(Dataset.range(0).batch(2).rebatch([0, 0, 2]), [arr([])] * 2)
    assert_gives(Dataset.range(0).batch(2).map(lambda x: x).rebatch([0, 2]), [])


def test_empty_batches_without_a_spec_have_the_rows_before() -> None:
    ds = from_list([np.zeros((2, 3)), np.zeros((2, 5), np.int8)]).rebatch([0, 2])
    assert_gives(
        ds, [np.zeros((0, 3)), np.zeros((2, 3)), np.zeros((0, 3)), np.zeros((2, 5), np.int8), np.zeros((0, 5), np.int8)]
    )


def grown(x: Any) -> Any:
    if x == 2:
        raise Boom(2)
    return np.arange(x * 10, x * 10 + x % 3 + 1)


def test_an_error_of_the_input_loses_the_rows_read_for_that_batch_as_in_tf_data() -> None:
    ds = Dataset.range(6).map(grown)
    expected = [arr([0, 10]), Boom(2), arr([30, 40]), arr([41, 50]), arr([51, 52])]
    assert_outcomes(ds.rebatch(2), expected)
    assert_outcomes(ds.rebatch([1, 3]), [arr([0]), Boom(2), arr([30, 40, 41]), arr([50]), arr([51, 52])])
    assert_outcomes(
        failing(Dataset.range(3), 0).map(lambda x: np.full(2, x)).rebatch(3), [Boom(0), arr([1, 1, 2]), arr([2])]
    )


def test_components_of_unequal_lengths_are_an_error_at_that_element_as_in_tf_data() -> None:
    def two(x: Any) -> Any:
        return np.arange(x % 3 + 1), np.arange(x % 3 + 1 if x != 2 else 7)

    ds = Dataset.range(6).map(two).rebatch(2)
    rows = [[0, 0], [0, 0], [1, 0], [1, 2]]
    expected: list[Any] = [(arr(row), arr(row)) for row in rows]
    assert_outcomes(ds, [expected[0], StructureError, *expected[1:]])
    error = outcomes(ds)[1]
    assert "component [0] has 3 rows, component [1] has 7" in str(error)
    assert error.__notes__ == ["in rebatch(2), element 2"]


def test_rows_that_do_not_fit_lose_their_batch_as_in_tf_data() -> None:
    ds = Dataset.range(5).map(lambda x: np.full((2, 1 if x != 2 else 3), x)).rebatch(3)
    expected = [arr([[0], [0], [1]]), StructureError, arr([[3], [3], [4]]), arr([[4]])]
    assert_outcomes(ds, expected)
    assert outcomes(ds)[1].__notes__ == ["in rebatch(3), element 1"]
    ds = from_list([arr([1]), arr([1.5], float), arr([2]), arr([3])]).rebatch([2])
    assert_outcomes(ds, [StructureError, arr([2, 3])])


def test_scalars_have_no_rows() -> None:
    with pytest.raises(ValueError, match="rebatch: a component is a single value"):
        Dataset.range(3).rebatch(2)
    assert_outcomes(Dataset.range(2).map(lambda x: x).rebatch(2), [StructureError, StructureError])


@pytest.mark.parametrize("sizes", [0, -2, [], [0], [0, 0], [2, -1], np.zeros(3, int), np.array([], int)], ids=repr)
def test_sizes_that_would_never_end_are_refused_at_the_call(sizes: Any) -> None:
    with pytest.raises(ValueError, match="rebatch: "):
        Dataset.range(3).batch(2).rebatch(sizes)


@pytest.mark.parametrize(
    "sizes", [None, 1.5, "2", b"2", True, [1.5], [True], [[1, 2]], np.ones((2, 2), int), {2}], ids=repr
)
def test_what_is_no_size_is_refused_at_the_call(sizes: Any) -> None:
    with pytest.raises(TypeError, match="rebatch: "):
        Dataset.range(3).batch(2).rebatch(sizes)


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(to_list(ds.map(lambda x: np.full(3, x)).rebatch(2).take(2)), [arr([0, 0]), arr([0, 1])])
    assert seen == [0, 1]
    seen.clear()
    assert_same(to_list(ds.map(lambda x: np.full(2, x)).rebatch([2, 0]).take(2)), [arr([0, 0]), arr([])])
    assert seen == [0]


def test_an_endless_input() -> None:
    ds = Dataset.range(3).batch(2).repeat().rebatch([4, 1]).take(3)
    assert_gives(ds, [arr([0, 1, 2, 0]), arr([1]), arr([2, 0, 1, 2])])


def test_cardinality_is_unknown() -> None:
    assert Dataset.range(4).batch(2).rebatch(2).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(4).batch(2).repeat().rebatch(2).cardinality() == aiodata.UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    ("sizes", "drop", "length"),
    [(2, False, 2), (3, False, None), (3, True, 3), ([2, 2], False, 2), ([2, 1], True, None), ([0, 2], True, None)],
)
def test_spec_is_tf_datas(sizes: Any, drop: bool, length: int | None) -> None:
    ds = Dataset.range(12).batch(4, drop_remainder=True).rebatch(sizes, drop)
    assert ds.element_spec == aiodata.TensorSpec((length,), np.int64)
    assert Dataset.range(4).batch(2).map(lambda x: x).rebatch(2).element_spec is None


def test_repr_shows_the_sizes_and_the_name() -> None:
    ds = Dataset.range(4).batch(2)
    assert "rebatch([2, 1], drop_remainder=True) 'cut': int64[None]" in repr(ds.rebatch([2, 1], True, name="cut"))
    assert "rebatch(3): int64[None]" in repr(ds.rebatch(3))


@pytest.mark.parametrize("sizes", [2, [2, 4]])
def test_an_error_behind_it_names_the_place_of_the_batchs_first_row(sizes: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{number}\n" for number in range(9)))

    def check(batch: Any) -> Any:
        if batch[0] == 4:
            raise Boom(4)
        return batch

    rows = TextLineDataset(tmp_path / "a.txt").map(lambda line: np.full(3, int(line)))
    notes = [error.__notes__[0] for error in outcomes(rows.rebatch(sizes).map(check)) if isinstance(error, Boom)]
    assert notes
    assert all(note.endswith("a.txt line 5") for note in notes)
    singly = outcomes(rows.unbatch().batch(1).map(check))
    assert [error.__notes__[0][-6:] for error in singly if isinstance(error, Boom)] == ["line 5"] * 3
