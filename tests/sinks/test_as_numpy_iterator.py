"""`as_numpy_iterator`: numpy scalars, bytes and read-only arrays, in the structure of the elements."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import (
    Boom,
    assert_same,
    failing,
    i64,
    nested,
    nested_rows,
    pull_all,
    to_list,
)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_gives_the_elements(size: int) -> None:
    assert_same(list(Dataset.range(size).as_numpy_iterator()), i64(*range(size)))
    assert_same(list(nested(size).as_numpy_iterator()), nested_rows(*range(size)))


def test_async_gives_the_same() -> None:
    async def read() -> list[Any]:
        return [x async for x in Dataset.range(3).as_numpy_iterator()]

    assert_same(asyncio.run(read()), i64(0, 1, 2))


def test_next_is_a_method_too() -> None:
    iterator = Dataset.range(2).as_numpy_iterator()
    assert_same([iterator.next(), next(iterator)], i64(0, 1))
    with pytest.raises(StopIteration):
        iterator.next()


def test_bytes_stay_bytes() -> None:
    assert_same(list(Dataset.from_tensor_slices([b"a\x00", b""]).as_numpy_iterator()), [b"a\x00", b""])


def test_arrays_are_read_only() -> None:
    ds = Dataset.range(6).map(lambda x: (np.array([x, x]), {"a": np.array([x])}))
    for array, parts in ds.as_numpy_iterator():
        assert not array.flags.writeable
        assert not parts["a"].flags.writeable
    assert all(not batch.flags.writeable for batch in Dataset.range(6).batch(4).as_numpy_iterator())


def test_errors_keep_their_places() -> None:
    iterator = failing(Dataset.range(3), 1).as_numpy_iterator()
    assert_same(pull_all(iterator), [np.int64(0), Boom(1), np.int64(2)])


def test_two_iterators_are_independent() -> None:
    ds = Dataset.range(4).map(lambda x: x)
    one, other = ds.as_numpy_iterator(), ds.as_numpy_iterator()
    assert_same([next(one), next(one), next(other), next(one)], i64(0, 1, 0, 2))
    one.close()
    other.close()


def test_datasets_within_elements_are_refused() -> None:
    with pytest.raises(TypeError, match=r"[Dd]ataset"):
        next(Dataset.range(3).map(lambda x: Dataset.range(3)).as_numpy_iterator())


def test_the_dataset_itself_is_left_as_it_was() -> None:
    ds = Dataset.range(2)
    list(ds.as_numpy_iterator())
    assert_same(to_list(ds), i64(0, 1))
