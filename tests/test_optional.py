"""`Optional`: a value or none, and the spec of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aiodata import Dataset, Optional, TensorSpec
from tests.programs import Pair, arr, assert_same


@pytest.mark.parametrize("value", [np.int64(3), 3, b"text", arr([1, 2]), (arr([1]), {"a": np.float32(1)}), Pair(1, 2)])
def test_gives_its_value_back(value: Any) -> None:
    optional = Optional.from_value(value)
    assert optional.has_value() is True
    assert_same(optional.get_value(), value)
    assert_same(optional.get_value(name="again"), value)


def test_a_value_may_be_none_or_false() -> None:
    for value in (None, False, 0, ()):
        assert Optional.from_value(value).has_value(name="ask") is True
        assert_same(Optional.from_value(value).get_value(), value)


def test_an_empty_one_refuses_to_give_a_value() -> None:
    optional = Optional.empty()
    assert optional.has_value() is False
    assert optional.element_spec is None
    for _ in range(2):
        with pytest.raises(ValueError, match="get_value: the optional is empty"):
            optional.get_value()


def test_knows_the_spec() -> None:
    spec = TensorSpec((None,), np.int32)
    assert Optional.empty(spec).element_spec == spec
    assert Optional.from_value({"a": arr([1, 2])}).element_spec == {"a": TensorSpec((2,), np.int64)}


def test_takes_values_as_from_tensors_does() -> None:
    given = arr([1, 2])
    optional = Optional.from_value(given)
    given[0] = 9
    assert_same(optional.get_value(), arr([1, 2]))
    assert_same(Optional.from_value([[1], [2]]).get_value(), arr([[1], [2]]))
    with pytest.raises(ValueError, match="ragged"):
        Optional.from_value([[1], [2, 3]])
    with pytest.raises(TypeError, match="set"):
        Optional.from_value({1, 2})


def test_shows_what_it_holds() -> None:
    assert repr(Optional.from_value(1)) == "Optional.from_value(1)"
    assert repr(Optional.empty()) == "Optional.empty()"
    assert repr(Optional.empty(TensorSpec((), bool))) == "Optional.empty(TensorSpec(shape=(), dtype=bool))"


def test_may_be_an_element() -> None:
    ds = Dataset.range(3).map(lambda x: Optional.from_value(x) if x % 2 else Optional.empty())
    assert [optional.has_value() for optional in ds] == [False, True, False]
