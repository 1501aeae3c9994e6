"""`sample_from_datasets`: the next element comes from an input drawn by weight, as tf.data draws."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.spec import TensorSpec
from tests.programs import (
    Boom,
    assert_same,
    collect,
    failing,
    first,
    global_seed,
    i64,
    nested,
    nested_rows,
    outcomes,
    plain,
    to_list,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = [0, 1, 2, 10, 11, 12]


@pytest.fixture(autouse=True)
def _no_global_seed() -> Iterator[None]:
    with global_seed(None):
        yield


def two(**arguments: Any) -> Dataset[Any]:
    inputs = [Dataset.range(3), Dataset.range(10, 13)]
    return Dataset.sample_from_datasets(inputs, **{"weights": [0.3, 0.7], "seed": 5, **arguments})


def test_worked_example() -> None:
    assert_same(to_list(two()), i64(*EXAMPLE))
    assert_same(asyncio.run(collect(two())), i64(*EXAMPLE))


def test_seeded_passes_repeat() -> None:
    ds = two()
    assert [plain(to_list(ds)) for _ in range(3)] == [EXAMPLE] * 3


def test_rerandomized_passes_differ() -> None:
    inputs = [Dataset.range(30), Dataset.range(100, 130)]
    ds = Dataset.sample_from_datasets(inputs, seed=5, rerandomize_each_iteration=True)
    one, other = to_list(ds), to_list(ds)
    assert_same(sorted(one), sorted(other))
    assert one != other


def test_stops_at_the_first_empty_input_if_told_so() -> None:
    assert_same(to_list(two(stop_on_empty_dataset=True)), i64(0, 1, 2, 10, 11))


def test_without_weights_all_inputs_have_a_share() -> None:
    ds = Dataset.sample_from_datasets([Dataset.range(50), Dataset.range(100, 150)], seed=1)
    got = plain(to_list(ds))
    assert sorted(got) == [*range(50), *range(100, 150)]
    assert [x for x in got if x < 100] == [*range(50)]
    assert any(x >= 100 for x in got[:20])
    assert any(x < 100 for x in got[:20])


def test_structures_are_kept() -> None:
    assert_same(to_list(Dataset.sample_from_datasets([nested(2)], weights=[1.0])), nested_rows(0, 1))


def test_an_input_of_weight_zero_is_left_out_and_not_waited_for() -> None:
    endless = Dataset.range(5).repeat()
    assert_same(to_list(two(weights=[1.0, 0.0])), i64(0, 1, 2))
    assert_same(to_list(Dataset.sample_from_datasets([Dataset.range(3), endless], weights=[1.0, 0.0])), i64(0, 1, 2))


@pytest.mark.parametrize("weights", [[1.0, 0.0], np.array([1.0, 0.0]), [1.0, -0.5], [0.5, np.nan]])
@pytest.mark.parametrize("size", [0, 1, 200])
def test_a_mix_with_a_weight_of_zero_ends_and_loses_nothing(size: int, weights: Any) -> None:
    inputs = [Dataset.range(size), Dataset.range(1000, 1003)]
    for ds in (
        Dataset.sample_from_datasets(inputs, weights, seed=5),
        Dataset.sample_from_datasets(inputs[::-1], weights[::-1], seed=5),
        Dataset.sample_from_datasets([*inputs, Dataset.range(500, 500 + size)], [*weights, 1.0], seed=5).filter(
            lambda x: bool(x < 500)
        ),
    ):
        assert_same(to_list(ds), i64(*range(size)))


def test_rows_with_a_weight_of_zero_end_with_the_rows_and_lose_nothing() -> None:
    rows = Dataset.from_tensors(np.array([1, 0], np.float32)).repeat(9)
    assert_same(to_list(two(weights=rows)), i64(0, 1, 2))
    assert_same(to_list(two(weights=rows, stop_on_empty_dataset=True)), i64(0, 1, 2))


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, 0.0], np.array([np.nan, 0.0])])
def test_no_positive_weight_gives_nothing(weights: Any) -> None:
    assert to_list(two(weights=weights)) == []


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0)])
def test_empty_inputs_are_passed_over(sizes: tuple[int, int]) -> None:
    ds = Dataset.sample_from_datasets([Dataset.range(size) for size in sizes], seed=1)
    assert_same(to_list(ds), i64(*range(max(sizes))))


def test_weights_may_be_a_dataset() -> None:
    rows = Dataset.from_tensor_slices(np.array([[1, 0], [0, 1], [0, 1], [1, 0]], np.float32))
    assert_same(to_list(two(weights=rows)), i64(0, 10, 11, 1))


@pytest.mark.parametrize("weights", [[1, 2], np.array([1, 2])])
def test_integer_weights_are_refused_at_the_call(weights: Any) -> None:
    with pytest.raises(TypeError):
        two(weights=weights)


@pytest.mark.parametrize("weights", [[1.0], [0.2, 0.3, 0.5], [[0.5, 0.5]]])
def test_weights_of_another_length_are_refused_at_the_call(weights: Any) -> None:
    with pytest.raises(ValueError, match="weights"):
        two(weights=weights)


@pytest.mark.parametrize("datasets", [[], [1, 2], None])
def test_what_is_no_list_of_datasets_is_refused_at_the_call(datasets: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Dataset.sample_from_datasets(datasets)


def test_an_input_error_loses_nothing_else() -> None:
    ds = Dataset.sample_from_datasets([failing(Dataset.range(3), 1), Dataset.range(10, 13)], [0.3, 0.7], seed=5)
    got = outcomes(ds)
    assert_same([x for x in got if isinstance(x, Exception)], [Boom(1)])
    assert_same(sorted(x for x in got if not isinstance(x, Exception)), i64(0, 2, 10, 11, 12))


def test_endless_inputs_can_be_left() -> None:
    assert len(first(Dataset.sample_from_datasets([Dataset.range(2).repeat()] * 2, seed=1), 20)) == 20


def test_cardinality_is_infinite_only_if_all_inputs_are_endless() -> None:
    finite, endless = Dataset.range(2), Dataset.range(2).repeat()
    cardinality = aiodata.UNKNOWN_CARDINALITY
    assert Dataset.sample_from_datasets([finite, finite]).cardinality() == cardinality
    assert Dataset.sample_from_datasets([finite, endless]).cardinality() == cardinality
    assert Dataset.sample_from_datasets([endless, endless]).cardinality() == aiodata.INFINITE_CARDINALITY


def test_the_spec_holds_for_all_datasets() -> None:
    short, long = (Dataset.from_tensor_slices(np.zeros((3, size))) for size in (2, 5))
    rows = Dataset.from_tensors(np.array([1, 0], np.float32))
    for weights in (None, [0.3, 0.7], rows):
        ds = Dataset.sample_from_datasets([short, long], weights)
        assert ds.element_spec == TensorSpec((None,), float)
        assert Dataset.sample_from_datasets([short, short], weights).element_spec == TensorSpec((2,), float)
    assert Dataset.sample_from_datasets([short, long], [0.0, 1.0]).element_spec == TensorSpec((5,), float)


@pytest.mark.parametrize(
    "other", [Dataset.from_tensors(1.0), Dataset.from_tensors((1, 2)), Dataset.from_tensors({"x": 1})]
)
@pytest.mark.parametrize("weights", [None, [0.3, 0.3, 0.4]])
def test_datasets_that_are_known_not_to_fit_each_other_are_refused_at_the_call(
    other: Dataset[Any], weights: Any
) -> None:
    unknown = Dataset.range(3).map(lambda x: x)
    with pytest.raises(TypeError, match="sample_from_datasets: dataset 2 does not fit"):
        Dataset.sample_from_datasets([Dataset.range(3), unknown, other], weights)
    assert_same(to_list(Dataset.sample_from_datasets([Dataset.range(3), other], [1.0, 0.0])), i64(0, 1, 2))


def test_repr_shows_what_was_said() -> None:
    assert "sample_from_datasets(weights=[0.3, 0.7], seed=5) 'mix': int64" in repr(two(name="mix"))
