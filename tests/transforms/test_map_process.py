"""`map` in worker processes: which functions and elements can go there and back, and what cannot be pickled."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import assert_gives, pull_all

HOUSE = Path(__file__).parents[2]


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


# Functions


def in_a_process(function: Callable[..., Any]) -> Dataset[Any]:
    return Dataset.range(3).map(function, 2, executor="process")


def test_functions_that_cannot_be_imported() -> None:
    pytest.importorskip("cloudpickle")
    factor = 3

    def closure(x: Any) -> Any:
        return int(x) * factor, os.getpid()

    class Local:
        def __call__(self, x: Any) -> Any:
            return closure(x)

    for function in (closure, Local(), lambda x: closure(x), Local().__call__):
        found = list(in_a_process(function))
        assert [x for x, _ in found] == [0, 3, 6]
        assert os.getpid() not in {pid for _, pid in found}


def test_a_lambdas_workers_serve_the_next_epoch() -> None:
    pytest.importorskip("cloudpickle")
    ds = Dataset.range(2).map(lambda x: os.getpid(), 1, executor="process")
    assert len({*ds, *ds}) == 1


def test_a_function_that_nothing_can_pickle_ends_the_run() -> None:
    lock = threading.Lock()
    (error,) = pull_all(in_a_process(lambda x: lock).iterate())
    assert isinstance(error, (TypeError, pickle.PicklingError, AttributeError))
    assert error.__notes__[-1].startswith("in map(<lambda>): ")


def run(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(HOUSE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert done.stderr == ""
    return done.stdout


MAIN = """
import sys
import aiodata

def double(x):
    return 2 * int(x)

print(list(aiodata.Dataset.range(3).map(double, 2, executor="process")))
"""


def test_a_function_of_a_main_module_that_has_no_file() -> None:
    pytest.importorskip("cloudpickle")
    assert run(MAIN) == "[0, 2, 4]\n"


def test_without_cloudpickle_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["cloudpickle"] = None
import aiodata
assert list(aiodata.Dataset.range(3).map(abs, 2, executor="process")) == [0, 1, 2]
def double(x):
    return x
for function in (lambda x: x, double):
    try:
        list(aiodata.Dataset.range(3).map(function, 2, executor="process"))
    except Exception as error:
        print(type(error).__name__, *error.__notes__)
"""
    assert run(code) == (
        "PicklingError in map(<lambda>): worker processes import the function; one that they cannot import needs "
        "cloudpickle: pip install 'aiodata-pipeline[process]'\n"
        "PicklingError in map(double): worker processes import the function; one that they cannot import needs "
        "cloudpickle: pip install 'aiodata-pipeline[process]'\n"
    )


def test_what_can_be_imported_does_not_load_cloudpickle() -> None:
    code = """
import sys
import aiodata
list(aiodata.Dataset.range(3).map(abs, 2, executor="process"))
print("cloudpickle" in sys.modules)
"""
    assert run(code) == "False\n"


# Arrays


def grown(x: Any) -> Any:
    """Give an array that goes through memory, one that does not, and a large string of bytes."""
    return np.full((100, 1000), x), np.full(3, x), bytes([x]) * 100_000


def negated(large: Any, small: Any, text: bytes) -> Any:
    large *= -1  # what a worker gets is its own
    return large, -small, text[:2]


def scaled(x: Any) -> Any:
    return x * 2.5


def test_large_elements_go_there_and_back() -> None:
    ds = Dataset.range(9).map(grown, 2, executor="process").map(negated, 3, executor="process")
    expected = [(np.full((100, 1000), -x), np.full(3, -x), bytes([x]) * 2) for x in range(9)]
    assert_gives(ds, expected)


def test_large_results_that_are_kept_stay_and_can_be_written_to() -> None:
    ds = Dataset.range(20).map(grown, 2, executor="process")
    kept = [large for large, _, _ in ds]
    kept[7][:] = 0
    for number, array in enumerate(kept):
        assert (array == (0 if number == 7 else number)).all()


def test_large_columns_of_a_vectorized_function() -> None:
    rows = np.arange(400_000.0).reshape(400, 1000)
    ds = Dataset.from_tensor_slices(rows).map(scaled, 2, executor="process", vectorized=True)
    assert np.array_equal(np.stack(list(ds)), rows * 2.5)
