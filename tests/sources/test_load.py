"""`load`: what `save` has written."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from aiodata import Dataset, TensorSpec
from aiodata.errors import CorruptRecordError, DataError, StateError
from aiodata.storage.saved.dataset import MANIFEST, SavedDataset, manifest_of, read_manifest
from tests.programs import arr, assert_gives, assert_same, i64, nested, nested_rows, outcomes, pull_all, to_list
from tests.resume.saving import FACES, along, check_rest, drive, part


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "saved"


def flat(shards: Any) -> Any:
    return shards.flat_map(lambda shard: shard)


def files(path: Path) -> list[Path]:
    return sorted(path.glob("*/*.npz"))


def damage(path: Path) -> None:
    """Change a byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("count", [0, 1, 5, 300])
def test_gives_what_was_saved(path: Path, count: int) -> None:
    nested(count).save(path)
    assert_gives(Dataset.load(path), nested_rows(*range(count)))
    assert len(Dataset.load(path)) == count
    assert_gives(Dataset.load(os.fsencode(path)), nested_rows(*range(count)))


def test_elements_are_columns_where_they_can_be(path: Path) -> None:
    Dataset.range(10).save(path)
    assert_gives(Dataset.load(path).batch(4), [arr([0, 1, 2, 3]), arr([4, 5, 6, 7]), arr([8, 9])])


def test_shows_where_it_reads(path: Path) -> None:
    Dataset.range(3).save(path)
    assert repr(Dataset.load(path)) == (
        "<Dataset\nshards(): Dataset[int64]\nflat_map(_elements): ?\n" + f"load('{path}'): int64>"
    )


def test_elements_are_the_readers_own(path: Path) -> None:
    Dataset.from_tensors(np.zeros(3)).save(path)
    ds = Dataset.load(path)
    for element in ds:
        element[0] = 7
    assert_same(to_list(ds), [np.zeros(3)])


# Shards


def test_shards_give_an_element_each_in_turn(path: Path) -> None:
    Dataset.range(10).save(path, shard_func=lambda x: int(x >= 3) + int(x >= 5))
    assert_gives(Dataset.load(path), i64(0, 3, 5, 1, 4, 6, 2, 7, 8, 9))


def test_a_reader_func_decides(path: Path) -> None:
    Dataset.range(10).save(path, shard_func=lambda x: x % 3)
    assert_gives(Dataset.load(path, reader_func=flat), i64(0, 3, 6, 9, 1, 4, 7, 2, 5, 8))
    ds = Dataset.load(path, reader_func=lambda shards: flat(shards.skip(1).take(1)))
    assert_gives(ds, i64(1, 4, 7))
    ds = Dataset.load(path, reader_func=lambda shards: flat(shards.shuffle(3, seed=1)).shuffle(10, seed=2))
    assert sorted(to_list(ds)) == list(range(10))
    sizes = Dataset.load(path, reader_func=lambda shards: shards.map(lambda shard: shard.cardinality()))
    assert to_list(sizes) == [4, 3, 3]


@pytest.mark.parametrize(
    ("reader_func", "message"),
    [
        (3, "load: reader_func must be callable, not int"),
        (lambda shards: 3, "load: reader_func must give a dataset of the elements"),
        (asyncio.sleep, "load: reader_func must be a plain function"),
    ],
)
def test_a_wrong_reader_func_is_refused(path: Path, reader_func: Any, message: str) -> None:
    Dataset.range(3).save(path)
    with pytest.raises(TypeError, match=message):
        Dataset.load(path, reader_func=reader_func)


# Arguments


def test_no_saved_dataset_is_an_error_at_once(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=MANIFEST):
        Dataset.load(path)
    path.mkdir()
    with pytest.raises(FileNotFoundError, match=MANIFEST):
        Dataset.load(path)


def test_waits_if_it_is_told_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            Dataset.range(3).save(path)

    monkeypatch.setattr("aiodata.sources._loading.time.sleep", sleep)
    assert_same(to_list(Dataset.load(path, wait=True)), i64(0, 1, 2))
    assert len(slept) == 3


def test_the_compression_is_known_and_another_is_refused(path: Path) -> None:
    for compression, other in (("GZIP", ""), (None, "GZIP")):
        Dataset.range(3).save(path, compression)
        assert_same(to_list(Dataset.load(path)), i64(0, 1, 2))
        assert_same(to_list(Dataset.load(path, compression=compression)), i64(0, 1, 2))
        with pytest.raises(ValueError, match=f"load: compression is '{other}', but what is saved in .* has "):
            Dataset.load(path, compression=other)
    with pytest.raises(ValueError, match="load: compression must be None or one of"):
        Dataset.load(path, compression="SNAPPY")


def test_a_spec_may_say_less_but_nothing_else(path: Path) -> None:
    Dataset.from_tensors({"x": np.zeros((2, 3))}).save(path)
    loose = {"x": TensorSpec((None, 3), "float64")}
    assert Dataset.load(path, loose).element_spec == loose
    for wrong in ({"x": TensorSpec((2, 3), "int64")}, {"y": loose["x"]}, loose["x"], {"x": TensorSpec((5, 3), "f8")}):
        with pytest.raises(ValueError, match=r"load: element_spec is .*, but that of what is saved in .* is \{'x': fl"):
            Dataset.load(path, wrong)


def test_elements_with_nothing_in_common_have_no_spec(path: Path) -> None:
    Dataset.range(3).map(lambda x: "text" if x == 1 else x).save(path)
    assert Dataset.load(path).element_spec is None
    assert Dataset.load(path, TensorSpec((), object)).element_spec == TensorSpec((), object)


def test_a_class_of_named_tuples_may_be_given(path: Path) -> None:
    code = """
import sys
from typing import NamedTuple
from aiodata import Dataset
class Box(NamedTuple):
    left: int
Dataset.range(2).map(Box).save(sys.argv[1])
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)

    class Box(NamedTuple):
        left: Any

    Box.__module__, Box.__qualname__ = "__main__", "Box"
    spec = Box(TensorSpec((), "int64"))
    assert_same(to_list(Dataset.load(path, spec)), [Box(x) for x in i64(0, 1)])
    assert Dataset.load(path).element_spec == spec


# Replaced


def test_what_is_replaced_meanwhile_is_still_read_whole(path: Path) -> None:
    Dataset.range(10_000).save(path, shard_func=lambda x: x // 5000)
    ds = Dataset.load(path, reader_func=flat)
    with ds.iterate() as iterator:
        found = [next(iterator)]
        Dataset.range(10_000).map(lambda x: -x).save(path, shard_func=lambda x: 0)
        assert len(list(path.glob("elements-*"))) == 2
        found += list(iterator)
    assert_same(found, i64(*range(10_000)))
    assert_same(to_list(ds), i64(*[-x for x in range(10_000)]))
    Dataset.range(3).save(path)
    assert len(list(path.glob("elements-*"))) == 1


def test_what_was_replaced_by_something_else_is_refused(path: Path) -> None:
    Dataset.range(3).save(path)
    ds = Dataset.load(path)
    Dataset.range(4).save(path)
    with pytest.raises(DataError, match=r"replaced since it was loaded: it has 4 elements int64, and had 3 int64"):
        to_list(ds)
    Dataset.range(3).map(float).save(path)
    with pytest.raises(DataError, match=r"it has 3 elements float64, and had 3 int64"):
        to_list(ds)
    (path / MANIFEST).unlink()
    with pytest.raises(FileNotFoundError):
        to_list(ds)


# Damage


def test_a_damaged_chunk_is_one_error_and_the_rest_is_given(path: Path) -> None:
    Dataset.range(10_000).save(path)
    damage(files(path)[0])
    with Dataset.load(path).iterate() as iterator:
        found = pull_all(iterator, 10_000)
    error = found.pop(4096)
    assert_same(found, i64(*range(4096), *range(8192, 10_000)))
    assert isinstance(error, CorruptRecordError)
    assert "00000000.npz, record 4096: member '00000001/element.npy'" in str(error)
    assert error.__notes__ == [f"in load, element 4096, from {files(path)[0]} element 4096"]


def test_a_damaged_shard_does_not_end_the_others(path: Path) -> None:
    Dataset.range(9).save(path, shard_func=lambda x: x % 3)
    files(path)[1].write_bytes(b"text")
    assert_same(outcomes(Dataset.load(path)), [*i64(0), CorruptRecordError, *i64(2, 3, 5, 6, 8)])
    files(path)[1].unlink()
    assert_same(outcomes(Dataset.load(path)), [*i64(0), FileNotFoundError, *i64(2, 3, 5, 6, 8)])


def test_a_shard_of_another_save_is_refused(path: Path) -> None:
    Dataset.range(9).save(path, shard_func=lambda x: x % 2)
    first, second = files(path)
    first.write_bytes(second.read_bytes())
    found = outcomes(Dataset.load(path, reader_func=flat))
    assert_same(found, [CorruptRecordError, *i64(1, 3, 5, 7)])
    assert "not the file that the manifest says" in str(found[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 4}, "checksum"),
        ({"shards": [["../../x.npz", 3]]}, "checksum"),
        ({"version": 2}, "the version 2 of saved datasets is not known"),
        ({"format": "x"}, "no manifest"),
    ],
)
def test_a_damaged_manifest_is_an_error_at_once(path: Path, change: Any, message: str) -> None:
    Dataset.range(3).save(path)
    manifest = path / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    with pytest.raises(CorruptRecordError, match=message):
        Dataset.load(path)
    manifest.write_text("[")
    with pytest.raises(CorruptRecordError):
        Dataset.load(path)


def test_a_manifest_cannot_name_files_elsewhere(path: Path) -> None:
    path.mkdir()
    token, shard = "elements-0123456789abcdef", "00000000.npz"
    for wrong in (("..", (shard, 3)), (token, ("../" + shard, 3)), (token, (shard, -1))):
        (path / MANIFEST).write_bytes(manifest_of(SavedDataset(str(path), wrong[0], "", (wrong[1],), None)))
        with pytest.raises(CorruptRecordError, match="what the manifest says of its files cannot be"):
            read_manifest(str(path))


# States


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("reader_func", [None, flat, lambda shards: flat(shards.shuffle(3, seed=4)).repeat(2)])
def test_goes_on_at_every_element(path: Path, face: str, reader_func: Any) -> None:
    Dataset.range(9).map(lambda x: {"x": x, "t": str(x)}).save(path, shard_func=lambda x: x["x"] % 3)

    def make() -> Dataset[Any]:
        return Dataset.load(path, reader_func=reader_func)

    async def work() -> None:
        straight, states = await along(make(), face)
        for number, state in enumerate(states):
            found, _ = await part(make(), face, state)
            check_rest(f"restored before pull {number}", found, straight[number:])

    drive(face, work())


def test_goes_on_across_chunks(path: Path) -> None:
    Dataset.range(10_000).save(path)
    with Dataset.load(path).iterate() as iterator:
        states = {n: iterator.state_dict() for n, _ in enumerate(iterator, 1) if n in (1, 4096, 4097, 9_999, 10_000)}
    for number, state in states.items():
        with Dataset.load(path).iterate(state) as iterator:
            assert_same(list(iterator), i64(*range(number, 10_000)))


def test_goes_on_in_a_new_process(path: Path) -> None:
    Dataset.range(10).save(path, shard_func=lambda x: x % 2)
    with Dataset.load(path).iterate() as iterator:
        for _ in range(4):
            next(iterator)
        state = iterator.state_dict()
    code = """
import json, sys
from aiodata import Dataset
with Dataset.load(sys.argv[1]).iterate(json.loads(sys.argv[2])) as iterator:
    print([int(x) for x in iterator])
"""
    command = [sys.executable, "-c", code, str(path), json.dumps(state)]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"[4, 5, 6, 7, 8, 9]\n"


def test_a_state_is_refused_when_it_was_replaced(path: Path) -> None:
    Dataset.range(10).save(path)
    ds = Dataset.load(path)
    with ds.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    Dataset.range(10).save(path)
    with ds.iterate(state) as iterator, pytest.raises(StateError, match="the saved dataset is another one than when"):
        next(iterator)
    (path / MANIFEST).unlink()
    with ds.iterate(state) as iterator, pytest.raises(StateError, match="the saved dataset is not there, as it was"):
        next(iterator)


def test_a_state_is_refused_where_what_is_behind_it_cannot_be_read(path: Path) -> None:
    Dataset.range(10).save(path)
    ds = Dataset.load(path)
    with ds.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    damage(files(path)[0])
    with ds.iterate(state) as iterator, pytest.raises(CorruptRecordError):
        next(iterator)


# Ends


def test_many_iterators_at_once_and_in_threads(path: Path) -> None:
    Dataset.range(5000).save(path, shard_func=lambda x: x % 3)
    ds = Dataset.load(path)
    sums: list[int] = []
    threads = [threading.Thread(target=lambda: sums.append(sum(map(int, ds)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(5000))] * 4


def test_an_early_stop_closes_all(path: Path) -> None:
    Dataset.range(5000).save(path, shard_func=lambda x: x % 3)
    for _ in Dataset.load(path):
        break

    async def work() -> None:
        async for _ in Dataset.load(path):
            break

    asyncio.run(work())
