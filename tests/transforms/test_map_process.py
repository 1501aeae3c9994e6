"""`map` in worker processes: what cannot be pickled is an element's error."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from aiodata import Dataset
from tests.programs import pull_all


def identity(x: Any) -> Any:
    return x


def lock_of_two(x: Any) -> Any:
    return threading.Lock() if x == 2 else x


def test_an_element_that_cannot_be_pickled_fails_alone() -> None:
    elements = [1, threading.Lock(), 3]
    ds = Dataset.from_generator(lambda: elements).map(identity, num_parallel_calls=2, executor="process")
    with ds.iterate() as iterator:
        one, error, three = pull_all(iterator)
    assert (one, three) == (1, 3)
    assert isinstance(error, TypeError)
    assert error.__notes__[0].startswith("in map(identity), element 1")


def test_a_result_that_cannot_be_pickled_fails_alone() -> None:
    ds = Dataset.range(5).map(lock_of_two, num_parallel_calls=1, executor="process")
    with ds.iterate() as iterator:
        found = pull_all(iterator)
    assert [x for x in found if not isinstance(x, Exception)] == [0, 1, 3, 4]
    assert found[2].__notes__[-1].startswith("in map(lock_of_two), element 2")


@pytest.mark.parametrize("calls", [None, 2])
def test_an_executor_that_would_not_be_used_is_refused(calls: int | None) -> None:
    async def later(x: Any) -> Any:
        return x

    with pytest.raises(ValueError, match="executor='process' would not be used"):
        Dataset.range(3).map(later if calls else identity, calls, executor="process")
