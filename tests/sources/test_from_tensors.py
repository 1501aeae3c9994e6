"""`from_tensors`: one element, the structure itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import Pair, arr, assert_gives, assert_same, to_list


@pytest.mark.parametrize(
    "element",
    [
        np.int64(3),
        np.float32(1.5),
        b"a\x00",
        arr([1, 2]),
        np.zeros((0, 2), np.float32),
        (np.int64(1), arr([2.5], np.float32)),
        {"a": arr([1]), "b": (b"x", np.bool_(True))},
        Pair(np.int64(1), {"deep": arr([[1, 2]])}),
        (np.int64(1), None),
    ],
    ids=repr,
)
def test_gives_the_structure_once(element: Any) -> None:
    assert_gives(Dataset.from_tensors(element), [element])


def test_list_becomes_one_array() -> None:
    (element,) = to_list(Dataset.from_tensors([1, 2, 3]))
    assert isinstance(element, np.ndarray)
    assert element.tolist() == [1, 2, 3]
    assert_gives(Dataset.from_tensors([arr([1, 2]), arr([3, 4])]), [arr([[1, 2], [3, 4]])])


def test_list_within_a_structure_becomes_an_array() -> None:
    (element,) = to_list(Dataset.from_tensors({"a": [1, 2]}))
    assert isinstance(element["a"], np.ndarray)
    assert element["a"].tolist() == [1, 2]


def test_python_number_keeps_its_value() -> None:
    assert to_list(Dataset.from_tensors((5, 2.5, True))) == [(5, 2.5, True)]


def test_a_set_is_refused_at_the_call() -> None:
    value: Any = {1, 2}
    with pytest.raises((TypeError, ValueError)):
        Dataset.from_tensors(value)


def test_later_changes_of_the_array_are_not_seen() -> None:
    array = arr([1, 2, 3])
    ds = Dataset.from_tensors(array)
    array[0] = 100
    assert_gives(ds, [arr([1, 2, 3])])


def test_in_place_steps_do_not_change_the_next_pass() -> None:
    ds = Dataset.from_tensors(arr([1, 2, 3]))
    (element,) = to_list(ds)
    if element.flags.writeable:
        element += 100
    assert_gives(ds, [arr([1, 2, 3])])


def test_cardinality_is_one() -> None:
    assert Dataset.from_tensors(arr([1, 2, 3])).cardinality() == 1
    assert_same(len(Dataset.from_tensors(np.int64(1))), 1)


def test_a_later_step_that_changes_a_dict_does_not_change_the_element() -> None:
    def spoil(element: Any) -> Any:
        element["x"] += 1
        return element

    assert_gives(Dataset.from_tensors({"x": 1}).repeat(2).map(spoil), [{"x": 2}, {"x": 2}])
