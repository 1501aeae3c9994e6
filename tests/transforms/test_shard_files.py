"""`shard_files`: every process reads files of its own, whatever order they are listed in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, TextLineDataset
from aiodata.errors import DataError, StateError
from tests.programs import Boom, assert_gives, assert_same, plain, to_list

NAMES = [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]


def named(names: list[Any]) -> Dataset[Any]:
    return Dataset.from_tensor_slices(names)


def unsized(names: list[Any]) -> Dataset[Any]:
    return Dataset.from_generator(lambda: names)


@pytest.mark.parametrize("make", [named, unsized])
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_gives_every_nth_file(shards: int, make: Any) -> None:
    for index in range(shards):
        assert_gives(make(NAMES).shard_files(shards, index), NAMES[index::shards])


@given(names=st.lists(st.binary(max_size=3), min_size=1, max_size=12), data=st.data())
def test_each_file_is_in_one_shard_whatever_their_order(names: list[bytes], data: Any) -> None:
    shards = data.draw(st.integers(1, len(names)))
    parts = [to_list(unsized(data.draw(st.permutations(names))).shard_files(shards, index)) for index in range(shards)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_listing_in_random_order_is_parted_all_the_same(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
    shards = [Dataset.list_files(str(tmp_path / "*.txt")).shard_files(4, index) for index in range(4)]
    lines = [plain(to_list(shard.shuffle(9).flat_map(TextLineDataset))) for shard in shards]
    assert sorted(map(len, lines)) == [2, 2, 2, 3]
    assert sorted(line for part in lines for line in part) == [b"%d" % number for number in range(9)]


def test_names_of_each_kind_stay_what_they_are() -> None:
    assert_gives(named(["b", "a"]).shard_files(1, 0), ["a", "b"])
    mixed = [b"\xff", "b", Path("c"), np.str_("a")]
    assert_same(to_list(unsized(mixed).shard_files(1, 0)), [np.str_("a"), "b", Path("c"), b"\xff"])


def test_the_same_name_twice_counts_twice() -> None:
    assert_gives(named([b"a", b"b", b"a"]).shard_files(2, 1), [b"a"])
    assert_gives(named([b"a", b"b", b"a"]).shard_files(2, 0), [b"a", b"b"])


TOO_FEW = r"shard_files: 1 file cannot be parted into 2 shards; .* put shard\(2, {}\) behind the reader"


@pytest.mark.parametrize("index", [0, 1])
def test_fewer_files_than_shards_are_an_error_in_every_shard(index: int, tmp_path: Path) -> None:
    (tmp_path / "only").write_text("a\nb\nc\n")
    with pytest.raises(ValueError, match=TOO_FEW.format(index)):
        named([b"only"]).shard_files(2, index)
    listed = Dataset.list_files(str(tmp_path / "*"))
    with pytest.raises(DataError, match=TOO_FEW.format(index)):
        to_list(listed.shard_files(2, index).flat_map(TextLineDataset))
    assert_same(to_list(listed.flat_map(TextLineDataset).shard(2, index)), [[b"a", b"c"], [b"b"]][index])


def test_no_files_are_too_few() -> None:
    with pytest.raises(ValueError, match="shard_files: 0 files cannot be parted into 1 shards"):
        Dataset.range(0).shard_files(1, 0)
    with pytest.raises(DataError, match="0 files"):
        to_list(unsized([]).shard_files(1, 0))


@pytest.mark.parametrize(
    ("shards", "index", "error"),
    [(0, 0, ValueError), (2, 2, ValueError), (2, -1, ValueError), (1.5, 0, TypeError), (2, None, TypeError)],
)
def test_wrong_numbers_are_refused_at_the_call(shards: Any, index: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^shard_files: (num_shards|index) must be"):
        named(NAMES).shard_files(shards, index)


def test_endless_names_are_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match=r"endlessly many names; put repeat\(\) behind it"):
        named(NAMES).repeat().shard_files(2, 0)
    assert plain(to_list(named(NAMES).shard_files(2, 0).repeat().take(5))) == [b"a", b"c", b"e", b"g", b"a"]


def test_what_is_no_name_and_a_name_that_fails_end_the_run() -> None:
    with pytest.raises(TypeError, match=r"shard_files: an element is np\.int64\(0\), not the name of a file"):
        to_list(Dataset.range(3).shard_files(2, 1))

    def fail(name: Any) -> Any:
        raise Boom(1)

    with named(NAMES).map(fail).shard_files(2, 0).iterate() as iterator:
        with pytest.raises(Boom):
            next(iterator)
        assert list(iterator) == []


def test_cardinality_spec_and_repr() -> None:
    assert [named(NAMES).shard_files(3, index).cardinality() for index in range(3)] == [3, 2, 2]
    assert unsized(NAMES).shard_files(3, 0).cardinality() == aiodata.UNKNOWN_CARDINALITY
    ds = named(NAMES).shard_files(3, 1, "mine")
    assert ds.element_spec == named(NAMES).element_spec
    assert (ds.plan.label, ds.plan.title) == ("shard_files(3, 1)", "mine")


def test_other_files_are_noticed_by_a_restored_run(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).write_text("")
    ds = Dataset.list_files(str(tmp_path / "*")).shard_files(2, 1)
    with ds.iterate() as iterator:
        assert os.path.basename(next(iterator)) == b"b"
        state = iterator.state_dict()
    assert [os.path.basename(name) for name in ds.iterate(state)] == [b"d"]
    (tmp_path / "a").rename(tmp_path / "z")
    with pytest.raises(StateError, match="saved with 4 files, now there are 4 of other names"):
        list(ds.iterate(state))
    (tmp_path / "z").unlink()
    with pytest.raises(StateError, match=r"saved with 4 files, now there are 3$"):
        list(ds.iterate(state))
