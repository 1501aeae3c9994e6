"""`range`: Python's range as numpy scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from tests.programs import arr, assert_gives, assert_same, first, i64, to_list


@pytest.mark.parametrize("stop", [-3, 0, 1, 2, 10, np.int32(4), 3000])
def test_stop_alone_counts_from_zero(stop: Any) -> None:
    assert_gives(Dataset.range(stop), i64(*range(int(stop))))


@pytest.mark.parametrize(("start", "stop"), [(0, 3), (2, 5), (-2, 2), (5, 5), (5, 2), (2**40, 2**40 + 2)])
def test_start_and_stop(start: int, stop: int) -> None:
    assert_gives(Dataset.range(start, stop), i64(*range(start, stop)))


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 10, 3), (0, 9, 3), (10, 0, -3), (0, 10, -1), (5, -5, -5), (0, 1, 7), (1, 5, 2**40)]
)
def test_steps_are_pythons(start: int, stop: int, step: int) -> None:
    ds = Dataset.range(start, stop, step)
    assert_gives(ds, i64(*range(start, stop, step)))
    assert ds.cardinality() == len(range(start, stop, step))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.float32, np.float64])
def test_output_type(dtype: Any) -> None:
    assert_gives(Dataset.range(3, output_type=dtype), [dtype(0), dtype(1), dtype(2)])
    assert_gives(Dataset.range(0, 5, 2, output_type=np.dtype(dtype)), [dtype(0), dtype(2), dtype(4)])
    assert_gives(Dataset.range(2, output_type=dtype).batch(2), [arr([0, 1], dtype)])


def test_elements_are_int64_scalars_and_batches_int64_arrays() -> None:
    assert {type(x) for x in to_list(Dataset.range(5))} == {np.int64}
    assert_gives(Dataset.range(5).batch(5), [arr([0, 1, 2, 3, 4])])


@pytest.mark.parametrize("arguments", [(0, 5, 0), (5, 0, 0)])
def test_step_zero_is_refused_at_the_call(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="step"):
        Dataset.range(*arguments)


@pytest.mark.parametrize("arguments", [(), (1.5,), (0, 2.5), (0, 5, 0.5), ("3",), (None,), (1, 2, 3, 4)])
def test_wrong_arguments_are_refused_at_the_call(arguments: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(*arguments)


@pytest.mark.parametrize("dtype", ["not a type", np.dtype("S3"), object])
def test_output_type_must_be_numeric(dtype: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3, output_type=dtype)


def test_a_huge_range_is_not_made_in_memory() -> None:
    assert_same(first(Dataset.range(2**60), 3), i64(0, 1, 2))
    assert Dataset.range(2**60).cardinality() == 2**60


def test_cardinality_is_the_length() -> None:
    assert Dataset.range(0).cardinality() == 0
    assert Dataset.range(7).cardinality() == 7
    assert Dataset.range(7).repeat().cardinality() == aiodata.INFINITE_CARDINALITY
