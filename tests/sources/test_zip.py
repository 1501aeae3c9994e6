"""`zip`: one element of every input together, to the end of the shortest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, TextLineDataset
from tests.programs import (
    Boom,
    Pair,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    outcomes,
    to_list,
)

if TYPE_CHECKING:
    from pathlib import Path


def pairs(*rows: tuple[int, ...]) -> list[Any]:
    return [(*i64(*row),) for row in rows]


@pytest.mark.parametrize("left", [0, 1, 2, 5])
@pytest.mark.parametrize("right", [0, 1, 2, 5])
def test_ends_with_the_shortest(left: int, right: int) -> None:
    expected = pairs(*zip(range(left), range(10, 10 + right), strict=False))
    assert_gives(Dataset.zip(Dataset.range(left), Dataset.range(10, 10 + right)), expected)


def test_a_tuple_is_the_same_as_arguments() -> None:
    a, b = Dataset.range(2), Dataset.range(5, 7)
    assert_gives(Dataset.zip((a, b)), pairs((0, 5), (1, 6)))
    assert_gives(Dataset.zip(datasets=(a, b)), pairs((0, 5), (1, 6)))


def test_a_single_dataset_is_not_wrapped() -> None:
    assert_gives(Dataset.zip(Dataset.range(2)), i64(0, 1))
    assert_gives(Dataset.zip(datasets=Dataset.range(2)), i64(0, 1))


def test_a_one_tuple_stays_one() -> None:
    assert_gives(Dataset.zip((Dataset.range(2),)), pairs((0,), (1,)))


def test_structures_of_datasets_give_structures_of_elements() -> None:
    a, b = Dataset.range(2), Dataset.range(5, 7)
    assert_gives(Dataset.zip({"k": a, "l": (b, a)}), [{"k": x, "l": (x + 5, x)} for x in i64(0, 1)])
    assert_gives(Dataset.zip(Pair(a, b)), [Pair(*i64(0, 5)), Pair(*i64(1, 6))])
    assert_gives(Dataset.zip((a, {"b": b})), [(x, {"b": x + 5}) for x in i64(0, 1)])


def test_elements_keep_their_structure() -> None:
    rows = nested_rows(0, 1)
    assert_gives(Dataset.zip(nested(2), Dataset.range(2)), [(rows[0], np.int64(0)), (rows[1], np.int64(1))])


def test_may_take_one_dataset_twice() -> None:
    ds = Dataset.range(3)
    assert_gives(Dataset.zip(ds, ds), pairs((0, 0), (1, 1), (2, 2)))


def test_an_error_uses_up_the_others_elements_of_that_position() -> None:
    ds = Dataset.zip(failing(Dataset.range(4), 1), Dataset.range(10, 14))
    assert_outcomes(ds, [*pairs((0, 10)), Boom(1), *pairs((2, 12), (3, 13))])
    swapped = Dataset.zip(Dataset.range(10, 14), failing(Dataset.range(4), 1))
    assert_outcomes(swapped, [*pairs((10, 0)), Boom(1), *pairs((12, 2), (13, 3))])


def mixed(*parts: int) -> Dataset[Any]:
    """Return numbers from 0 whose blocks are columns, rows, columns and so on."""
    ds, start = Dataset.range(0), 0
    for number, length in enumerate(parts):
        part = Dataset.range(start, start + length)
        ds = ds.concatenate(part.map(lambda x: x) if number % 2 else part)
        start += length
    return ds


def test_inputs_may_change_between_columns_and_rows() -> None:
    assert_gives(Dataset.zip(mixed(0, 1, 1, 1), Dataset.range(3)), pairs((0, 0), (1, 1), (2, 2)))
    assert_gives(Dataset.zip(Dataset.range(3), mixed(0, 1, 1, 1)), pairs((0, 0), (1, 1), (2, 2)))


PARTS = st.lists(st.integers(0, 3), max_size=6)


@given(PARTS, PARTS, st.sets(st.integers(0, 12)))
def test_any_blocks_stay_in_step(one: list[int], other: list[int], bad: set[int]) -> None:
    left, right = Dataset.range(10), mixed(*other)
    ds = Dataset.zip({"a": failing(mixed(*one), *bad), "b": (left, right), "c": Pair(right, left)})
    end = min(sum(one), sum(other), 10)
    expected: list[Any] = [
        Boom(n) if n in bad else {"a": np.int64(n), "b": (*i64(n, n),), "c": Pair(*i64(n, n))} for n in range(end)
    ]
    if end in bad and end < sum(one):
        expected.append(Boom(end))  # the others end there, but this one comes first
    assert_outcomes(ds, expected)
    assert_outcomes(Dataset.zip(mixed(*one), right), pairs(*((n, n) for n in range(min(sum(one), sum(other))))))


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    assert_same(first(Dataset.zip(ds, Dataset.range(3).repeat()), 2), pairs((0, 0), (1, 1)))
    assert seen == [0, 1]


@pytest.mark.parametrize("datasets", [[Dataset.range(2)], [Dataset.range(2), Dataset.range(2)], 3, None, (1, 2), {}])
def test_what_is_no_structure_of_datasets_is_refused_at_the_call(datasets: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Dataset.zip(datasets)


def test_nothing_and_both_forms_are_refused_at_the_call() -> None:
    with pytest.raises((TypeError, ValueError)):
        Dataset.zip()
    with pytest.raises((TypeError, ValueError)):
        Dataset.zip(Dataset.range(2), datasets=Dataset.range(2))


def test_cardinality_is_the_least_known_and_unknown_beats_infinite() -> None:
    finite, endless = Dataset.range(3), Dataset.range(3).repeat()
    unknown = finite.filter(lambda x: True)
    assert Dataset.zip(finite, Dataset.range(5)).cardinality() == 3
    assert Dataset.zip(finite, endless).cardinality() == 3
    assert Dataset.zip(endless, endless).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.zip(endless, unknown).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.zip(finite, unknown).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_a_place_is_that_of_the_first_input_that_knows_one(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("one\ntwo\n")

    def fail(number: Any, line: bytes) -> Any:
        raise Boom(line)

    one, two = outcomes(Dataset.zip(Dataset.range(2), TextLineDataset(path)).map(fail))
    assert one.__notes__ == [f"in map(fail), element 0, from {path} line 1"]
    assert two.__notes__ == [f"in map(fail), element 1, from {path} line 2"]


def test_inputs_are_opened_by_their_sorted_keys() -> None:
    """As in TensorFlow: it shows where they share the seeds of a shuffle."""
    ds = Dataset.range(4).shuffle(4, seed=3)
    found = to_list(Dataset.zip({"b": ds, "a": ds}))
    assert [list(row) for row in found] == [["b", "a"]] * 4
    assert [int(row["a"]) for row in found] == [0, 1, 2, 3]
    assert [int(row["b"]) for row in found] == [0, 3, 2, 1]
    mixed = Dataset.zip({1: Dataset.range(2), "x": Dataset.range(3)})
    assert_gives(mixed, [{1: np.int64(x), "x": np.int64(x)} for x in range(2)])


@pytest.mark.parametrize("count", [0, 2, 70])
def test_an_error_where_a_later_input_ends_is_raised_before_the_end(count: int) -> None:
    shorter = Dataset.range(count)
    expected = [*pairs(*((x, x) for x in range(count))), Boom(count)]
    assert_outcomes(Dataset.zip(failing(Dataset.range(90), count), shorter), expected)
    assert_outcomes(Dataset.zip(failing(Dataset.range(90), count), shorter.map(lambda x: x)), expected)
    through = failing(Dataset.range(90), count).filter(lambda x: x % 2 == 0 or x == count)
    half = through.map(lambda x: x // 2)
    ended = Dataset.range((count + 1) // 2).filter(lambda x: True)
    assert_outcomes(Dataset.zip(half, ended), [*pairs(*((x, x) for x in range((count + 1) // 2))), Boom(count)])
    # An input that has ended is found first where it comes first.
    assert_outcomes(Dataset.zip(shorter, failing(Dataset.range(90), count)), expected[:-1])


def test_constructors_may_be_called_on_a_readers_class() -> None:
    assert_gives(TextLineDataset.zip(TextLineDataset.range(2), Dataset.range(2)), pairs((0, 0), (1, 1)))
