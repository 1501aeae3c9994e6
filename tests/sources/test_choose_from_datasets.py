"""`choose_from_datasets`: the next element comes from the input whose number a dataset gives."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError, StructureError
from aiodata.spec import TensorSpec
from tests.programs import (
    Boom,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    outcomes,
    to_list,
)


def numbers(*values: Any) -> Dataset[Any]:
    return Dataset.from_tensor_slices(arr(values))


def chosen(choices: Any, *sizes: int, **arguments: Any) -> Dataset[Any]:
    """Choose from datasets of so many elements: 0, 1, ... and 100, 101, ... and so on."""
    inputs = [Dataset.range(100 * i, 100 * i + size) for i, size in enumerate(sizes)]
    return Dataset.choose_from_datasets(inputs, choices, **arguments)


def test_elements_come_as_chosen() -> None:
    assert_gives(chosen(numbers(0, 1, 2, 0, 1, 2, 1, 1), 4, 4, 4), i64(0, 100, 200, 1, 101, 201, 102, 103))


def test_arguments_have_tensorflows_names_and_order() -> None:
    inputs = [Dataset.range(1), Dataset.range(5, 9)]
    choices = numbers(0, 0, 1)
    assert_same(to_list(Dataset.choose_from_datasets(inputs, choices, False, "mix")), i64(0, 5))
    found = Dataset.choose_from_datasets(
        datasets=tuple(inputs), choice_dataset=choices, stop_on_empty_dataset=True, name="mix"
    )
    assert_same(to_list(found), i64(0))


def test_no_choices_give_nothing() -> None:
    assert_gives(chosen(Dataset.range(0), 3, 3), [])


def test_one_dataset_is_still_read_by_the_choices() -> None:
    assert_gives(chosen(numbers(0, 0), 4), i64(0, 1))
    assert_outcomes(chosen(numbers(0, 1, 0), 4), [np.int64(0), DataError, np.int64(1)])


def test_an_empty_dataset_in_the_middle_ends_it_or_is_passed_over() -> None:
    choices = numbers(0, 1, 2, 0, 1)
    assert_gives(chosen(choices, 3, 0, 3), i64(0))
    assert_gives(chosen(choices, 3, 0, 3, stop_on_empty_dataset=True), i64(0))
    assert_gives(chosen(choices, 3, 0, 3, stop_on_empty_dataset=False), i64(0, 200, 1))


def test_by_default_the_first_choice_of_an_ended_dataset_ends_it() -> None:
    assert_gives(chosen(numbers(0, 0, 0, 1), 2, 2), i64(0, 1))


def test_choices_of_ended_datasets_are_passed_over_until_all_have_ended() -> None:
    endless = numbers(0, 1).repeat()
    assert_gives(chosen(endless, 2, 4, stop_on_empty_dataset=False), i64(0, 100, 1, 101, 102, 103))
    assert_gives(chosen(endless, 0, 0, stop_on_empty_dataset=False), [])


def test_the_end_of_the_choices_is_the_end() -> None:
    assert_gives(chosen(numbers(1, 0), 9, 9, stop_on_empty_dataset=False), i64(100, 0))


def test_one_dataset_may_be_given_twice() -> None:
    one = Dataset.range(3)
    assert_gives(Dataset.choose_from_datasets([one, one], numbers(0, 1, 0)), i64(0, 0, 1))


def test_structures_are_kept() -> None:
    ds = Dataset.choose_from_datasets([nested(2), nested(3)], numbers(1, 0, 1))
    assert_gives(ds, nested_rows(0, 0, 1))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_integers_of_every_dtype_choose(dtype: Any) -> None:
    assert_gives(chosen(Dataset.from_tensor_slices(arr([1, 0], dtype)), 2, 2), i64(100, 0))


def test_python_integers_and_arrays_without_axes_choose() -> None:
    assert_gives(chosen(Dataset.from_generator(lambda: iter([1, np.array(0), np.int8(1)])), 2, 2), i64(100, 0, 101))


@given(st.lists(st.integers(0, 5), max_size=3), st.lists(st.integers(0, 2), max_size=100), st.booleans())
def test_it_does_as_a_plain_loop(sizes: list[int], choices: list[int], stop: bool) -> None:
    sizes = [*sizes, 70][-3:]
    left = [list(range(100 * i, 100 * i + size)) for i, size in enumerate(sizes)]
    expected = []
    for choice in (choice % len(sizes) for choice in choices):
        if left[choice]:
            expected.append(np.int64(left[choice].pop(0)))
        elif stop:
            break
    found = chosen(numbers(*(choice % len(sizes) for choice in choices)), *sizes, stop_on_empty_dataset=stop)
    assert_same(to_list(found), expected)


# Errors


@pytest.mark.parametrize("wrong", [-1, 2, 2**62])
def test_a_choice_out_of_range_is_an_error_in_its_place(wrong: int) -> None:
    assert_outcomes(chosen(numbers(0, wrong, 1, 0), 3, 3), [np.int64(0), DataError, *i64(100, 1)])


def test_the_error_says_which_choice_it_was_and_what_there_is() -> None:
    error = outcomes(chosen(numbers(0, 7), 3, 3))[1]
    assert str(error) == "choose_from_datasets: choice 7 is out of range: datasets are numbered 0 to 1"
    assert error.__notes__ == ["in choose_from_datasets(), element 1"]


@pytest.mark.parametrize("wrong", [1.0, True, np.bool_(1), "1", (0,), np.array([1])])
def test_a_choice_that_is_no_integer_is_an_error_in_its_place(wrong: Any) -> None:
    choices = Dataset.range(3).map(lambda i: {"choice": wrong} if i == 1 else {"choice": 0}).map(lambda x: x["choice"])
    assert_outcomes(chosen(choices, 3, 3), [np.int64(0), StructureError, np.int64(1)])


def test_a_choice_that_fails_is_an_error_in_its_place() -> None:
    choices = failing(Dataset.range(4), 1).map(lambda x: x % 2)
    assert_outcomes(chosen(choices, 3, 3), [np.int64(0), Boom(1), *i64(1, 100)])


def test_an_element_that_fails_uses_up_its_choice() -> None:
    inputs = [failing(Dataset.range(3), 1), Dataset.range(100, 103)]
    ds = Dataset.choose_from_datasets(inputs, numbers(0, 0, 1, 0, 0))
    assert_outcomes(ds, [np.int64(0), Boom(1), *i64(100, 2)])


# Laziness and time


def test_choices_and_elements_are_computed_only_when_they_are_wanted() -> None:
    choices, seen_choices = counted(Dataset.range(4))
    one, seen = counted(Dataset.range(100, 109))
    ds = Dataset.choose_from_datasets([one] * 4, choices)
    assert_same(first(ds, 2), i64(100, 100))
    assert seen_choices == [0, 1]
    assert seen == [100, 100]


async def test_choices_of_an_ended_dataset_leave_the_loop_alive() -> None:
    ds = chosen(numbers(0).repeat(), 1, 1, stop_on_empty_dataset=False)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await collect(ds)


# What is known at the call


def test_cardinality_is_infinite_only_if_everything_is_endless() -> None:
    finite, endless = Dataset.range(2), numbers(0, 1).repeat()
    for inputs, choices in (([finite] * 2, endless), ([endless] * 2, finite), ([endless, finite], endless)):
        ds = Dataset.choose_from_datasets(inputs, choices)
        assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.choose_from_datasets([endless] * 2, endless).cardinality() == aiodata.INFINITE_CARDINALITY


def test_the_spec_holds_for_all_datasets() -> None:
    short, long = (Dataset.from_tensor_slices(np.zeros((3, size))) for size in (2, 5))
    assert Dataset.choose_from_datasets([short, long], numbers(0)).element_spec == TensorSpec((None,), float)
    assert Dataset.choose_from_datasets([short, short], numbers(0)).element_spec == TensorSpec((2,), float)


def test_repr_shows_what_was_said() -> None:
    assert "choose_from_datasets(): int64" in repr(chosen(numbers(0), 3))
    shown = repr(chosen(numbers(0), 3, stop_on_empty_dataset=False, name="mix"))
    assert "choose_from_datasets(stop_on_empty_dataset=False) 'mix'" in shown


@pytest.mark.parametrize("datasets", [1, None, Dataset.range(3), [1], [Dataset.range(3), 1]])
def test_what_is_no_list_of_datasets_is_refused_at_the_call(datasets: Any) -> None:
    with pytest.raises(TypeError, match="choose_from_datasets: "):
        Dataset.choose_from_datasets(datasets, numbers(0))


def test_no_datasets_are_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match="choose_from_datasets: "):
        Dataset.choose_from_datasets([], numbers(0))


@pytest.mark.parametrize("choices", [[0, 1], None, 0])
def test_choices_that_are_no_dataset_are_refused_at_the_call(choices: Any) -> None:
    with pytest.raises(TypeError, match="choice_dataset must be a dataset"):
        chosen(choices, 3)


@pytest.mark.parametrize("values", [[0.0], [True], [[0, 1]], ([0], [1]), [b"0"]])
def test_choices_that_are_known_to_be_no_integers_are_refused_at_the_call(values: Any) -> None:
    with pytest.raises(TypeError, match="choice_dataset must give integers"):
        chosen(Dataset.from_tensor_slices(values), 3)


@pytest.mark.parametrize(
    "other", [Dataset.from_tensors(1.0), Dataset.from_tensors((1, 2)), Dataset.from_tensors({"x": 1})]
)
def test_datasets_that_are_known_not_to_fit_each_other_are_refused_at_the_call(other: Dataset[Any]) -> None:
    unknown = Dataset.range(3).map(lambda x: x)
    with pytest.raises(TypeError, match="choose_from_datasets: dataset 2 does not fit"):
        Dataset.choose_from_datasets([Dataset.range(3), unknown, other], numbers(0))
