"""`apply`: the function gets the dataset at once and must give one back."""

from __future__ import annotations

from typing import Any

import pytest

from aiodata import Dataset
from tests.programs import arr, assert_gives, counted, i64, nested, nested_rows


@pytest.mark.parametrize("size", [0, 1, 4])
def test_gives_what_the_function_gives(size: int) -> None:
    ds = Dataset.range(size).apply(lambda d: d.map(lambda x: x + 1))
    assert_gives(ds, i64(*range(1, size + 1)))


def test_same_dataset_may_come_back() -> None:
    ds = nested(2)
    assert ds.apply(lambda d: d) is ds
    assert_gives(ds.apply(lambda d: d), nested_rows(0, 1))


def test_function_runs_at_the_call_but_no_element_is_read() -> None:
    ds, seen = counted(Dataset.range(4))
    given: list[Any] = []

    def pairs(d: Dataset[Any]) -> Dataset[Any]:
        given.append(d)
        return d.batch(2)

    out = ds.apply(pairs)
    assert given == [ds]
    assert seen == []
    assert_gives(out, [arr([0, 1]), arr([2, 3])])


@pytest.mark.parametrize("answer", [None, 3, [1, 2], iter(())])
def test_what_is_no_dataset_is_refused_at_the_call(answer: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.range(3).apply(lambda d: answer)


def test_what_cannot_be_called_is_refused_at_the_call() -> None:
    function: Any = 3
    with pytest.raises(TypeError):
        Dataset.range(3).apply(function)


def test_error_of_the_function_arrives_as_itself() -> None:
    def broken(d: Dataset[Any]) -> Dataset[Any]:
        raise KeyError("oh")

    with pytest.raises(KeyError, match="oh"):
        Dataset.range(3).apply(broken)


def test_cardinality_is_that_of_the_result() -> None:
    assert Dataset.range(4).apply(lambda d: d.take(3)).cardinality() == 3
