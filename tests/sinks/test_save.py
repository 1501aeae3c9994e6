"""`save`, `asave`: all elements in files, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, TensorSpec
from aiodata.errors import CorruptRecordError
from aiodata.storage.saved.dataset import MANIFEST, locked, read_manifest
from tests.formats.elements import KINDS, assert_exact, elements
from tests.programs import Boom, arr, assert_same, failing, i64, nested, nested_rows, outcomes, to_list


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "saved"


def listed(values: list[Any]) -> Dataset[Any]:
    return Dataset.from_generator(lambda: values)


def loaded(path: Path) -> list[Any]:
    return to_list(Dataset.load(path))


def entries(path: Path) -> list[str]:
    return sorted(name.partition("-")[0] for name in os.listdir(path))


# What comes back


def test_elements_come_back_in_order_with_their_number_and_spec(path: Path) -> None:
    assert nested(9).save(path) is None
    ds = Dataset.load(path)
    assert_same(to_list(ds), nested_rows(*range(9)))
    assert (len(ds), ds.element_spec) == (9, nested(9).element_spec)


def test_the_awaited_form_is_the_same(path: Path) -> None:
    asyncio.run(nested(9).asave(path, "GZIP"))
    assert_same(loaded(path), nested_rows(*range(9)))
    assert Dataset.load(path, compression="GZIP").cardinality() == 9


@pytest.mark.parametrize("count", [0, 1, 256, 4096, 4097, 9000])
def test_any_number_of_elements(path: Path, count: int) -> None:
    for ds in (Dataset.range(count), Dataset.range(count).map(lambda x: x)):
        ds.save(path)
        assert_same(loaded(path), i64(*range(count)))
        assert len(Dataset.load(path)) == count


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_every_kind_of_element_comes_back_exactly(path: Path, compression: str | None) -> None:
    ds = Dataset.range(len(KINDS)).map(lambda n: (n, KINDS[n]))
    ds.save(path, compression)
    assert_exact(loaded(path), to_list(ds))


@given(st.lists(elements, max_size=6), st.integers(1, 3))
def test_any_elements_come_back_exactly(tmp_path_factory: Any, rows: list[Any], shards: int) -> None:
    path = tmp_path_factory.mktemp("any") / "saved"
    ds = Dataset.range(len(rows)).map(lambda n: (n, rows[n]))
    expected = to_list(ds)
    ds.save(path, shard_func=lambda n, _: n % shards)
    assert_exact(loaded(path), expected)


def test_what_is_not_known_before_is_known_after(path: Path) -> None:
    Dataset.range(6).filter(lambda x: x % 2 == 0).map(lambda x: {"x": np.zeros(x, np.float32), "t": "é"}).save(path)
    ds = Dataset.load(path)
    assert len(ds) == 3
    assert ds.element_spec == {"x": TensorSpec((None,), "float32"), "t": TensorSpec((), object)}


def test_a_huge_element(path: Path) -> None:
    huge = np.arange(1 << 20)
    listed([1, huge, 2]).save(path)
    assert_exact(loaded(path), [1, huge, 2])


# Shards


def test_shards_are_files_by_their_numbers(path: Path) -> None:
    Dataset.range(10).save(path, shard_func=lambda x: x % 3 + 5)
    saved = read_manifest(str(path))
    assert saved.shards == (("00000005.npz", 4), ("00000006.npz", 3), ("00000007.npz", 3))
    with np.load(path / saved.token / "00000006.npz") as file:
        assert_same(file["00000000/element"], arr([1, 4, 7]))
    assert_same(loaded(path), i64(*range(10)))


def test_many_shards(path: Path) -> None:
    Dataset.range(500).map(lambda x: (x, b"t")).save(path, shard_func=lambda x, text: x % 100)
    assert len(read_manifest(str(path)).shards) == 100
    found = loaded(path)
    assert sorted(int(x) for x, _ in found) == list(range(500))


def test_shard_func_is_called_as_map_calls_its_function(path: Path) -> None:
    Dataset.zip(Dataset.range(4), Dataset.range(4)).save(path, shard_func=lambda a, b: np.int32(a + b) % 2)
    nested(4).save(path, shard_func=lambda element: element["id"] // 2)
    assert [count for _, count in read_manifest(str(path)).shards] == [2, 2]


@pytest.mark.parametrize(
    ("shard_func", "error", "message"),
    [
        (lambda x: -1, ValueError, "what shard_func gives must be at least 0, not -1"),
        (lambda x: 1.5, TypeError, "what shard_func gives must be an integer, not float"),
        (lambda x: (x, x), TypeError, "not tuple"),
        (lambda x: next(iter(())), RuntimeError, "the function raised StopIteration"),
    ],
)
def test_a_wrong_shard_is_an_error(path: Path, shard_func: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        Dataset.range(3).save(path, shard_func=shard_func)
    assert any("in save(" in note and "element 0" in note for note in caught.value.__notes__)
    assert not path.exists()


# What goes wrong leaves what was there


def test_an_element_that_fails_ends_the_save(path: Path) -> None:
    with pytest.raises(Boom):
        failing(Dataset.range(5000), 4500).save(path)
    assert not path.exists()
    Dataset.range(3).save(path)
    with pytest.raises(Boom):
        failing(Dataset.range(5000), 4500).save(path, shard_func=lambda x: x % 2)
    assert_same(loaded(path), i64(0, 1, 2))
    assert entries(path) == [MANIFEST, "elements"]
    failing(Dataset.range(5), 2).ignore_errors().save(path)
    assert_same(loaded(path), i64(0, 1, 3, 4))


class Thing:
    """Nothing that is kept."""


def test_what_is_not_kept_is_refused(path: Path) -> None:
    with pytest.raises(TypeError, match=r"element 3: component \['x'\] is a Thing, which save\(.*saved'\) cannot hold"):
        Dataset.range(5).map(lambda x: {"x": Thing() if x == 3 else x}).save(path)
    with pytest.raises(TypeError, match="element is a dataset"):
        Dataset.range(5).window(2).save(path)
    assert not path.exists()


def test_cancelling_leaves_what_was_there(path: Path) -> None:
    Dataset.range(3).save(path)

    async def work() -> None:
        begun = asyncio.Event()

        async def slow(x: Any) -> Any:
            if x == 3:
                begun.set()
                await asyncio.sleep(3600)
            return x

        task = asyncio.create_task(Dataset.range(10).map(slow).asave(path))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert_same(loaded(path), i64(0, 1, 2))
    assert entries(path) == [MANIFEST, "elements"]


def test_a_full_disk_is_an_error_of_its_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    Dataset.range(3).save(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            Dataset.range(4).save(path)
    assert_same(loaded(path), i64(0, 1, 2))
    assert entries(path) == [MANIFEST, "elements"]


# Where it is put


def test_saving_again_replaces_all(path: Path) -> None:
    Dataset.range(100).save(path, shard_func=lambda x: x % 7)
    Dataset.range(3).map(str).save(path, "GZIP")
    assert loaded(path) == ["0", "1", "2"]
    assert entries(path) == [MANIFEST, "elements"]
    assert os.listdir(path / read_manifest(str(path)).token) == ["00000000.npz"]


def test_a_folder_of_something_else_is_refused(path: Path) -> None:
    path.mkdir()
    Dataset.range(3).save(path)
    other = path.parent / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"'.*other' is not empty, and no saved dataset: it has 'notes.txt'"):
        Dataset.range(3).save(other)
    (other / "notes.txt").unlink()
    (other / MANIFEST).write_text("{}")
    with pytest.raises(FileExistsError, match=r"dataset\.json"):
        Dataset.range(3).save(other)
    assert os.listdir(other) == [MANIFEST]
    with pytest.raises(FileExistsError):
        Dataset.range(3).save(other / MANIFEST)


def test_folders_are_made_and_removed_again(path: Path) -> None:
    deep = path / "a" / "b"
    with pytest.raises(Boom):
        failing(Dataset.range(3), 1).save(deep)
    assert not path.exists()
    Dataset.range(3).save(os.fsencode(deep))
    assert_same(loaded(deep), i64(0, 1, 2))


def test_what_killed_saves_left_is_removed_but_not_what_is_under_way(path: Path) -> None:
    Dataset.range(3).save(path)
    for name in ("elements-0123456789abcdef", "elements-00000000ffffffff"):
        (path / name).mkdir()
        (path / name / "00000000.npz").write_bytes(b"cut sho")
    (path / f".{MANIFEST}.0123456789ab.part").write_bytes(b"{")
    with locked(str(path / "elements-00000000ffffffff"), wait=False) as got:
        assert got
        Dataset.range(4).save(path)
    assert entries(path) == [MANIFEST, "elements", "elements"]
    assert not (path / "elements-0123456789abcdef").exists()
    Dataset.range(5).save(path)
    assert entries(path) == [MANIFEST, "elements"]
    assert_same(loaded(path), i64(*range(5)))


def test_two_saves_at_once_do_not_mix(path: Path) -> None:
    both = threading.Barrier(2)

    def saved(number: int) -> None:
        def meet(x: Any) -> Any:
            if x == 2:
                both.wait()
            return x + 100 * number

        Dataset.range(5).map(meet).save(path)

    threads = [threading.Thread(target=saved, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(x) for x in loaded(path)] in (list(range(5)), list(range(100, 105)))
    assert entries(path) == [MANIFEST, "elements"]


SAVING = """
import sys
import aiodata.sinks._saving
from aiodata import Dataset
path, number, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
while True:
    Dataset.range(size).map(lambda x: (x, number)).save(path, shard_func=lambda x, number: x % 3)
    if len(sys.argv) > 4:
        break
    number += 2
"""


def start(*arguments: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SAVING, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def whole(path: Path, size: int) -> int:
    """Check that one save is there, whole, and give its number."""
    found = loaded(path)
    numbers = {number for _, number in found}
    assert len(numbers) == 1
    assert sorted(int(x) for x, _ in found) == list(range(size))
    return numbers.pop()


KILLING = """
import os, signal, sys, time
import aiodata.sinks._saving
from aiodata import Dataset
for line in sys.stdin:
    child = os.fork()
    if not child:
        for number in range(1, 1000):
            Dataset.range(300).map(lambda x: (x, number)).save(sys.argv[1], shard_func=lambda x, number: x % 3)
    time.sleep(float(line))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("killed", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment_what_was_saved_is_there_whole(path: Path) -> None:
    Dataset.range(300).map(lambda x: (x, 0)).save(path)
    rng = random.Random(1)
    numbers: list[int] = []
    command = [sys.executable, "-c", KILLING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while len(numbers) < 25 or len(set(numbers)) < 2:
            print(rng.random() * 0.1, file=process.stdin, flush=True)
            assert process.stdout.readline() == "killed\n"
            numbers.append(whole(path, 300))
    Dataset.range(5).save(path)
    assert entries(path) == [MANIFEST, "elements"]


def test_two_processes_that_save_and_one_that_reads(path: Path) -> None:
    Dataset.range(300).map(lambda x: (x, 0)).save(path)
    processes = [start(path, number, 300) for number in (1, 2)]
    for process in processes:
        go(process)
    numbers: list[int] = []
    while len(numbers) < 40 or len(set(numbers)) < 3:
        numbers.append(whole(path, 300))
    for process in processes:
        process.kill()
        process.communicate()
    Dataset.range(5).save(path)
    assert entries(path) == [MANIFEST, "elements"]


@pytest.mark.parametrize("interrupt", [signal.SIGINT])
def test_interrupting_removes_what_was_written(path: Path, interrupt: signal.Signals) -> None:
    process = start(path, 1, 3_000_000, "once")
    go(process)
    while not path.exists() or not list(path.glob("*/*.npz")):
        time.sleep(0.01)
    process.send_signal(interrupt)
    process.communicate()
    assert process.returncode != 0
    assert not path.exists()


# Arguments, and what it costs


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"path": ""}, ValueError, "save: path must not be empty"),
        ({"path": 3}, TypeError, "int"),
        ({"compression": "SNAPPY"}, ValueError, "save: compression must be None or one of 'GZIP', 'NONE', '', not 'SN"),
        ({"shard_func": 3}, TypeError, "save: shard_func must be callable, not int"),
        ({"shard_func": asyncio.sleep}, TypeError, "save: shard_func must be a plain function"),
        ({"checkpoint_args": None}, TypeError, "checkpoint_args"),
    ],
)
def test_wrong_arguments(path: Path, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Dataset.range(3).save(**{"path": path} | arguments)
    assert not path.exists()


def test_an_endless_dataset_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=r"save: the dataset is endless; put take\(n\) before"):
        Dataset.range(3).repeat().save(path)
    Dataset.range(3).repeat().take(4).save(path)
    assert_same(loaded(path), i64(0, 1, 2, 0))


@pytest.mark.slow
def test_memory_does_not_grow(path: Path) -> None:
    ds = Dataset.range(200).map(lambda x: np.full(1 << 17, x))
    tracemalloc.start()
    try:
        ds.save(path)
        for number, row in enumerate(Dataset.load(path)):
            assert row[-1] == number
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


# Damage


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_a_flipped_bit_gives_an_error_or_changes_nothing(path: Path, compression: str | None) -> None:
    Dataset.range(3).save(path, compression, lambda x: x % 2)

    def loaded(path: Path) -> list[Any]:
        return outcomes(Dataset.load(path, reader_func=lambda shards: shards.flat_map(lambda shard: shard)))

    expected = loaded(path)
    assert_same(expected, i64(0, 2, 1))
    for file in sorted(path.rglob("*.*")):
        if file.is_dir():
            continue
        good = file.read_bytes()
        for place in range(len(good)):
            file.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
            try:
                found = loaded(path)
            except CorruptRecordError:
                assert file.name == MANIFEST
                continue
            failed = [each for each in found if isinstance(each, Exception)]
            assert all(isinstance(each, CorruptRecordError) for each in failed)
            if not failed:
                assert_same(found, expected)
        file.write_bytes(good)
    assert_same(loaded(path), expected)


def test_what_is_saved_is_json_and_files_that_numpy_reads(path: Path) -> None:
    nested(3).save(path)
    facts = json.loads((path / MANIFEST).read_text())
    assert (facts["format"], facts["version"], facts["count"]) == ("aiodata dataset", 1, 3)
    with np.load(path / facts["token"] / "00000000.npz") as file:
        assert_same(file["00000000/parts.1.x"], arr([True, False, True], bool))


def test_names_of_folders_do_not_come_from_the_pipelines_seeds(path: Path) -> None:
    tokens = []
    for _ in range(2):
        random.seed(1)
        aiodata.set_seed(1)
        Dataset.range(3).save(path)
        tokens.append(read_manifest(str(path)).token)
    aiodata.set_seed(None)
    assert tokens[0] != tokens[1]
