"""`list_files`: the paths that match, as bytes, sorted or shuffled as tf.data does."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

import aiodata
from aiodata import Dataset
from tests.programs import assert_gives, assert_same, collect, first, global_seed, to_list

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["c.txt", "a.txt", "z.csv", "b.txt", "10.txt", "9.txt"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "d.txt").write_bytes(b"")
    return tmp_path


def paths(folder: Path, *names: str) -> list[bytes]:
    return [os.fsencode(folder / name) for name in names]


def test_without_shuffling_the_order_is_that_of_the_names(folder: Path) -> None:
    expected = paths(folder, "10.txt", "9.txt", "a.txt", "b.txt", "c.txt")
    assert_gives(Dataset.list_files(str(folder / "*.txt"), shuffle=False), expected)


def test_seed_is_ignored_without_shuffling(folder: Path) -> None:
    pattern = str(folder / "?.txt")
    expected = paths(folder, "9.txt", "a.txt", "b.txt", "c.txt")
    assert_gives(Dataset.list_files(pattern, shuffle=False, seed=5), expected)


def test_one_match(folder: Path) -> None:
    assert_gives(Dataset.list_files(str(folder / "z*"), shuffle=False), paths(folder, "z.csv"))


def test_a_path_object_is_a_pattern(folder: Path) -> None:
    assert_gives(Dataset.list_files(folder / "z*", shuffle=False), paths(folder, "z.csv"))


def test_several_patterns_are_sorted_together_and_doubles_stay(folder: Path) -> None:
    patterns = [str(folder / "z*"), str(folder / "a*"), str(folder / "*.csv"), str(folder / "none*")]
    assert_gives(Dataset.list_files(patterns, shuffle=False), paths(folder, "a.txt", "z.csv", "z.csv"))


def test_star_does_not_cross_folders(folder: Path) -> None:
    assert_gives(Dataset.list_files(str(folder / "*" / "*.txt"), shuffle=False), paths(folder, "sub/d.txt"))


def test_folders_and_dot_files_match(folder: Path) -> None:
    (folder / ".hidden").write_bytes(b"")
    assert_gives(Dataset.list_files(str(folder / "s*"), shuffle=False), paths(folder, "sub"))
    assert paths(folder, ".hidden")[0] in to_list(Dataset.list_files(str(folder / "*"), shuffle=False))


@pytest.mark.parametrize("shuffle", [None, True, False])
def test_no_match_is_an_error_when_read_that_names_the_pattern(folder: Path, shuffle: bool | None) -> None:
    ds = Dataset.list_files(str(folder / "nothing-*"), shuffle=shuffle)
    with pytest.raises(FileNotFoundError, match="nothing-"):
        to_list(ds)
    with pytest.raises(FileNotFoundError, match="nothing-"):
        asyncio.run(collect(ds))


def test_files_are_looked_for_when_read(folder: Path) -> None:
    ds = Dataset.list_files(str(folder / "late*"), shuffle=False)
    (folder / "late.txt").write_bytes(b"")
    assert_same(to_list(ds), paths(folder, "late.txt"))


def test_shuffles_by_default_and_anew_in_each_pass(folder: Path) -> None:
    for number in range(60):
        (folder / f"many-{number:02}").write_bytes(b"")
    with global_seed(None):
        ds = Dataset.list_files(str(folder / "many-*"))
        one, other = to_list(ds), to_list(ds)
    assert one != other
    assert sorted(one) == sorted(other) == paths(folder, *(f"many-{number:02}" for number in range(60)))


def test_seeded_order_is_that_of_shuffle_over_the_sorted_names(folder: Path) -> None:
    pattern = str(folder / "*.txt")
    with global_seed(None):
        ds = Dataset.list_files(pattern, seed=3)
        model = Dataset.list_files(pattern, shuffle=False).shuffle(5, seed=3)
        for _ in range(3):
            assert_same(to_list(ds), to_list(model))


def test_early_stop(folder: Path) -> None:
    assert_same(first(Dataset.list_files(str(folder / "*.txt"), shuffle=False), 1), paths(folder, "10.txt"))


@pytest.mark.parametrize("pattern", [3, None, [3], {"a": 1}])
def test_wrong_pattern_is_refused_at_the_call(pattern: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.list_files(pattern)


def test_wrong_seed_is_refused_at_the_call() -> None:
    seed: Any = 1.5
    with pytest.raises(TypeError):
        Dataset.list_files("*", seed=seed)


def test_cardinality_is_the_number_of_matches_or_unknown(folder: Path) -> None:
    known = Dataset.list_files(str(folder / "*.txt")).cardinality()
    assert known in (5, aiodata.UNKNOWN_CARDINALITY)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("[^a].txt", ["b.txt", "ä.txt"]),
        ("[!a].txt", ["b.txt", "ä.txt"]),
        ("[ab].txt", ["a.txt", "b.txt"]),
        ("?.txt", ["a.txt", "b.txt", "ä.txt"]),
        ("\\*.txt", ["*.txt"]),
        ("x\\[1].txt", ["x[1].txt"]),
    ],
)
def test_patterns_are_those_of_the_c_library(pattern: str, names: list[str], tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "ä.txt", "*.txt", "x[1].txt"):
        (tmp_path / name).touch()
    if pattern.startswith(("[^", "[!", "?")):
        names = sorted([*names, "*.txt"], key=os.fsencode)
    found = to_list(Dataset.list_files(f"{tmp_path}/{pattern}", shuffle=False))
    assert [os.path.basename(os.fsdecode(path)) for path in found] == names
