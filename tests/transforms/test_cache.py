"""`cache`: the first complete pass is kept, in memory or in a file, and later passes read only that."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from tests.programs import (
    Boom,
    arr,
    assert_gives,
    assert_same,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    objects,
    outcomes,
    pull_all,
    to_list,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["memory", "file"])
def filename(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give a place for the cache: "" is memory."""
    return "" if request.param == "memory" else str(tmp_path / "kept")


@pytest.mark.parametrize("size", [0, 1, 2, 50])
def test_gives_the_input_in_every_pass(size: int, filename: str) -> None:
    assert_gives(Dataset.range(size).cache(filename), i64(*range(size)))


def test_structures_and_dtypes_are_kept(filename: str) -> None:
    ds = nested(3).cache(filename)
    assert_same(to_list(ds), nested_rows(0, 1, 2))
    assert_same(to_list(ds), nested_rows(0, 1, 2))


@pytest.mark.parametrize(
    "element",
    [b"a\x00", "é", objects(b"x", b"y\x00"), np.zeros((0, 2), np.float16), np.float32("nan"), arr([[True]], bool)],
    ids=repr,
)
def test_values_of_every_kind_are_kept(element: Any, filename: str) -> None:
    ds = Dataset.from_generator(lambda: [element, element]).cache(filename)
    assert_same(to_list(ds), [element, element])
    assert_same(to_list(ds), [element, element])


def test_a_complete_pass_is_the_last_that_reads_the_input(filename: str) -> None:
    ds, seen = counted(Dataset.range(4).filter(lambda x: True))
    cached = ds.cache(filename)
    for _ in range(3):
        assert_same(to_list(cached), i64(0, 1, 2, 3))
    assert seen == [0, 1, 2, 3]


def test_is_complete_when_the_known_number_was_read(filename: str) -> None:
    ds, seen = counted(Dataset.range(4))
    cached = ds.cache(filename)
    assert_same(first(cached, 4), i64(0, 1, 2, 3))
    assert_same(to_list(cached), i64(0, 1, 2, 3))
    assert seen == [0, 1, 2, 3]


def test_a_partial_pass_keeps_nothing(filename: str) -> None:
    ds, seen = counted(Dataset.range(4))
    cached = ds.cache(filename)
    assert_same(first(cached, 3), i64(0, 1, 2))
    assert_same(to_list(cached), i64(0, 1, 2, 3))
    assert seen == [0, 1, 2, 0, 1, 2, 3]


def test_take_behind_a_cache_repeats_rightly(filename: str) -> None:
    assert_same(to_list(Dataset.range(5).cache(filename).take(2).repeat(2)), i64(0, 1, 0, 1))


def test_repeat_behind_a_cache_reads_the_input_once(filename: str) -> None:
    ds, seen = counted(Dataset.range(3))
    assert_same(to_list(ds.cache(filename).repeat(3)), i64(*[0, 1, 2] * 3))
    assert seen == [0, 1, 2]


def test_all_derived_datasets_share_it() -> None:
    ds, seen = counted(Dataset.range(3))
    cached = ds.cache()
    to_list(cached.map(lambda x: x))
    assert_same(to_list(cached.batch(2)), [arr([0, 1]), arr([2])])
    assert seen == [0, 1, 2]


def test_two_cache_nodes_do_not_share() -> None:
    ds, seen = counted(Dataset.range(2))
    to_list(ds.cache())
    to_list(ds.cache())
    assert seen == [0, 1, 0, 1]


def test_errors_are_not_kept_but_the_elements_around_them_are(filename: str) -> None:
    cached = failing(Dataset.range(4), 2).cache(filename)
    assert_same(outcomes(cached), [*i64(0, 1), Boom(2), np.int64(3)])
    assert_same(outcomes(cached), i64(0, 1, 3))


def test_two_iterators_at_once_both_give_everything() -> None:
    cached = Dataset.range(4).map(lambda x: x).cache()
    with cached.iterate() as one, cached.iterate() as other:
        assert_same([(left, next(other)) for left in one], [*zip(i64(0, 1, 2, 3), i64(0, 1, 2, 3), strict=True)])
    assert_same(to_list(cached), i64(0, 1, 2, 3))


def test_two_unfinished_writers_of_one_file_are_right_or_refused(tmp_path: Path) -> None:
    cached = Dataset.range(4).cache(str(tmp_path / "kept"))
    with cached.iterate() as one, cached.iterate() as other:
        assert next(one) == 0
        refused = [item for item in pull_all(other, limit=10) if isinstance(item, Exception)]
        assert len(refused) <= 1
        assert all(isinstance(item, FileExistsError) for item in refused)
        assert_same(list(one), i64(1, 2, 3))
    assert_same(to_list(cached), i64(0, 1, 2, 3))


def test_in_place_steps_behind_the_cache_do_not_change_it(filename: str) -> None:
    def double(x: Any) -> Any:
        x *= 2
        return x

    cached = Dataset.range(4).batch(2).cache(filename)
    for _ in range(3):
        got = outcomes(cached.map(double))
        assert same_or_refused(got)
    assert_same(to_list(cached), [arr([0, 1]), arr([2, 3])])


def same_or_refused(got: list[Any]) -> bool:
    """Say whether each pass doubled once, or numpy refused to write."""
    if all(isinstance(item, ValueError) for item in got):
        return len(got) == 2
    return [item.tolist() for item in got] == [[0, 2], [4, 6]]


def test_file_outlives_the_dataset(tmp_path: Path) -> None:
    path = str(tmp_path / "kept")
    assert_same(to_list(Dataset.range(4).cache(path)), i64(0, 1, 2, 3))
    ds, seen = counted(Dataset.range(4))
    assert_same(to_list(ds.cache(path).batch(3)), [arr([0, 1, 2]), arr([3])])
    assert seen == []


def test_file_can_be_read_by_another_process(tmp_path: Path) -> None:
    path = str(tmp_path / "kept")
    to_list(Dataset.range(10).cache(path))
    program = (
        "import sys; from aiodata import Dataset\n"
        "ds = Dataset.range(10).map(lambda x: 1 // 0).cache(sys.argv[1]).map(lambda x: x + 1).batch(4)\n"
        "print([batch.tolist() for batch in ds])"
    )
    out = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]"


def test_making_a_dataset_writes_nothing(tmp_path: Path) -> None:
    Dataset.range(3).cache(str(tmp_path / "kept"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [3, None, [""]])
def test_wrong_filename_is_refused_at_the_call(name: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.range(3).cache(name)


def test_cardinality_is_that_of_the_input() -> None:
    assert Dataset.range(5).cache().cardinality() == 5
    assert Dataset.range(5).repeat().cache().cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(5).filter(lambda x: True).cache().cardinality() == aiodata.UNKNOWN_CARDINALITY
