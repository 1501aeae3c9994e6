"""`CheckpointManager`: the last states on disk, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import CheckpointManager, Dataset
from aiodata.errors import CorruptRecordError, StateError
from tests.programs import plain

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def numbers(manager: CheckpointManager) -> list[int]:
    return [int(re.findall(r"-(\d+)\.json$", path)[0]) for path in manager.checkpoints]


def pipeline() -> Dataset[Any]:
    return Dataset.range(100).shuffle(10, seed=1).batch(3)


def test_nothing_to_begin_with(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path / "new")
    assert manager.restore() is None
    assert manager.checkpoints == []
    assert manager.latest_checkpoint is None
    assert names(tmp_path) == []


def test_saves_what_a_job_needs_and_gives_it_back(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path / "of" / "job")
    iterator, other = pipeline().iterate(), Dataset.range(9).iterate()
    state: dict[str, Any] = {}
    for step in range(1, 4):
        next(iterator), next(other)
        state = {"data": iterator.state_dict(), "other": other.state_dict(), "epoch": 0, "best": 0.1, "model": "é"}
        path = manager.save(step, state)
        assert path == manager.latest_checkpoint == str(tmp_path / "of" / "job" / f"ckpt-{step}.json")
    rest = plain(list(iterator))
    other.close()
    fresh = CheckpointManager(tmp_path / "of" / "job")
    found = fresh.restore()
    assert found is not None
    assert found == (3, json.loads(json.dumps(state)))
    assert plain(list(pipeline().iterate(found[1]["data"]))) == rest
    assert plain(list(Dataset.range(9).iterate(found[1]["other"]))) == [3, 4, 5, 6, 7, 8]
    first = fresh.restore(1)
    assert first is not None
    assert first[0] == 1
    with pytest.raises(FileNotFoundError, match="ckpt-7"):
        fresh.restore(7)


def test_a_file_is_json_that_says_what_it_is(tmp_path: Path) -> None:
    path = CheckpointManager(str(tmp_path)).save(5, [1, (2, "a")])
    content = json.loads(Path(path).read_text())
    assert content.pop("crc32") > 0
    assert abs(content.pop("time") - time.time()) < 60
    assert content == {"version": 1, "number": 5, "state": [1, [2, "a"]]}
    Path(path).write_text(json.dumps(json.loads(Path(path).read_text()), indent=2))  # looks different, is the same
    assert CheckpointManager(os.fsencode(tmp_path)).restore() == (5, [1, [2, "a"]])


@given(state=JSON)
def test_any_json_comes_back(state: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    manager = CheckpointManager(tmp_path_factory.mktemp("any"))
    manager.save(0, state)
    found = manager.restore()
    assert found is not None
    assert repr(found[1]) == repr(state)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"step": np.int64(3)}, TypeError, r"state\['step'\] is of type int64"),
        ([{"a": [1, np.zeros(2)]}], TypeError, r"state\[0\]\['a'\]\[1\] is of type ndarray"),
        ({"a": {1: 2}}, TypeError, r"state\['a'\] has the key 1"),
        (b"x", TypeError, "state is of type bytes"),
        ({"loss": float("nan")}, ValueError, r"state\['loss'\] is nan"),
        ([0.5, float("-inf")], ValueError, r"state\[1\] is -inf"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(
    state: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=f"CheckpointManager.save: {message}"):
        CheckpointManager(tmp_path).save(1, state)
    assert names(tmp_path) == []


# How many are kept


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path, max_to_keep=3)
    for step in (1, 5, 10, 100, 1000):
        manager.save(step, step)
    assert numbers(manager) == [10, 100, 1000]
    assert names(tmp_path) == ["ckpt-10.json", "ckpt-100.json", "ckpt-1000.json"]
    assert numbers(CheckpointManager(tmp_path, 1)) == [10, 100, 1000], "only saving removes"
    everything = CheckpointManager(tmp_path, max_to_keep=None)
    for _ in range(7):
        everything.save(None, None)
    assert numbers(everything) == [10, 100, *range(1000, 1008)]
    CheckpointManager(tmp_path, 1).save(1008, None)
    assert numbers(manager) == [1008]


def test_some_old_ones_are_kept_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for hour in range(40):
        monkeypatch.setattr("aiodata.checkpoint.time.time", lambda hour=hour: 1e9 + 1800 * hour)
        # A job that is begun again each time: what is kept for good does not depend on who saves.
        CheckpointManager(tmp_path, 2, keep_checkpoint_every_n_hours=4).save(hour, hour)
    assert numbers(CheckpointManager(tmp_path)) == [0, 8, 16, 24, 32, 38, 39]


def test_other_files_stay(tmp_path: Path) -> None:
    others = ["model-1.npz", "ckpt-01.json", "ckpt-x.json", "ckpt-1.json.bak", "other-1.json", "my-ckpt-1.json"]
    for name in others:
        (tmp_path / name).write_text("mine")
    manager = CheckpointManager(tmp_path, 1)
    manager.save(None, None)
    manager.save(None, None)
    assert names(tmp_path) == sorted([*others, "ckpt-1.json"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"max_to_keep": 0}, ValueError),
        ({"max_to_keep": -1}, ValueError),
        ({"max_to_keep": 1.5}, TypeError),
        ({"keep_checkpoint_every_n_hours": 0}, ValueError),
        ({"keep_checkpoint_every_n_hours": float("nan")}, ValueError),
        ({"checkpoint_name": ""}, ValueError),
        ({"checkpoint_name": "a/b"}, ValueError),
        ({"checkpoint_name": ".hidden"}, ValueError),
        ({"checkpoint_name": "x" * 65}, ValueError),
        ({"checkpoint_name": 3}, TypeError),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], tmp_path: Path) -> None:
    (argument,) = arguments
    with pytest.raises(error, match=f"CheckpointManager: {argument} must be"):
        CheckpointManager(tmp_path, **arguments)


# Numbers, and who saves


def test_numbers_grow(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    manager.save(3, "three")
    for number in (2, 0):
        with pytest.raises(
            ValueError, match=rf"checkpoint_number must be above 3, not {number}: .*ckpt-3\.json is there"
        ):
            manager.save(number, None)
    with pytest.raises(ValueError, match="at least 0, not -1"):
        manager.save(-1, None)
    with pytest.raises(TypeError, match="checkpoint_number must be an integer, not float"):
        manager.save(3.5, None)  # type: ignore[arg-type]
    assert manager.restore() == (3, "three")
    assert manager.save(np.int64(4), None) == str(tmp_path / "ckpt-4.json")  # type: ignore[arg-type]


def test_its_own_last_checkpoint_may_be_written_again(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    manager.save(3, "three")
    manager.save(3, "end of the epoch")
    fresh = CheckpointManager(tmp_path)
    assert fresh.restore() == (3, "end of the epoch")
    fresh.save(3, "again")
    assert manager.restore() == (3, "again")


def test_two_ranks_with_one_name_are_told(tmp_path: Path) -> None:
    one, other = CheckpointManager(tmp_path), CheckpointManager(tmp_path)
    one.save(1, "one")
    with pytest.raises(ValueError, match="ranks that share a folder need a checkpoint_name each"):
        other.save(1, "other")
    assert one.restore() == (1, "one")


def test_two_ranks_with_names_of_their_own_share_a_folder(tmp_path: Path) -> None:
    ranks = [CheckpointManager(tmp_path, 2, checkpoint_name=f"rank{rank}") for rank in range(2)]
    ranks.append(CheckpointManager(tmp_path, 2, checkpoint_name="rank0-1"))
    for step in range(4):
        for rank, manager in enumerate(ranks):
            manager.save(step, [rank, step])
    assert [numbers(manager) for manager in ranks] == [[2, 3]] * 3
    assert [manager.restore() for manager in ranks] == [(3, [rank, 3]) for rank in range(3)]


def test_only_one_of_many_threads_gets_a_number(tmp_path: Path) -> None:
    managers = [CheckpointManager(tmp_path) for _ in range(8)]
    refused: list[int] = []
    together = threading.Barrier(len(managers))

    def save(number: int) -> None:
        together.wait()
        try:
            managers[number].save(1, number)
        except ValueError:
            refused.append(number)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(len(managers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (saved,) = set(range(8)) - set(refused)
    assert managers[0].restore() == (1, saved)


# Damage, and ends


@pytest.mark.parametrize("first", [False, True])
def test_a_damaged_checkpoint_is_an_error_that_names_it(first: bool, tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    if not first:
        manager.save(1, "one")
    path = Path(manager.save(2, {"epoch": 17, "text": "two"}))
    content = path.read_bytes()
    damaged = [content[:length] for length in (0, 1, len(content) // 2, len(content) - 3)]
    damaged += [
        content.replace(b"17", b"18"),
        content.replace(b"two", b"tw\xff"),
        content.replace(b"number", b"numbed"),
    ]
    damaged += [content.replace(b'"number": 2', b'"number": 1'), b"[]", b"7", b"{}", b"[" * 100_000, b'{"crc32": 0}']
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(CorruptRecordError, match=r"ckpt-2\.json: the checkpoint is damaged") as caught:
            CheckpointManager(tmp_path).restore()
        assert caught.value.path == str(path)
        assert ("ckpt-1.json" in str(caught.value)) is not first
    path.unlink()
    assert manager.restore() == (None if first else (1, "one"))


def test_a_file_of_another_version_or_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = CheckpointManager(tmp_path)
    path = Path(manager.save(1, "one"))
    path.rename(tmp_path / "ckpt-2.json")
    with pytest.raises(StateError, match=r"ckpt-2\.json: the file holds checkpoint 1"):
        manager.restore()
    monkeypatch.setattr("aiodata.checkpoint.VERSION", 2)
    manager.save(3, "later")
    monkeypatch.undo()
    with pytest.raises(StateError, match=r"ckpt-3\.json: the checkpoint has version 2; this library reads 1"):
        manager.restore()


def test_a_save_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = CheckpointManager(tmp_path, 1)
    manager.save(1, "one")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        manager.save(2, "two")
    monkeypatch.undo()
    assert names(tmp_path) == ["ckpt-1.json"]
    assert manager.restore() == (1, "one")
    manager.save(2, "two")


KILLED = """
import os, signal, sys
import aiodata.checkpoint as checkpoint

manager = checkpoint.CheckpointManager(sys.argv[1])
manager.save(1, "one")
sync = os.fsync
def killed(descriptor):
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = killed
manager.save(2, "x" * 100_000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no signal 9")
def test_a_process_that_is_killed_while_saving_leaves_the_one_before(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(names(tmp_path)) == 2
    assert names(tmp_path)[0].endswith(".part")
    manager = CheckpointManager(tmp_path)
    assert manager.restore() == (1, "one")
    manager.save(5, "five")
    assert names(tmp_path) == ["ckpt-1.json", "ckpt-5.json"], "what the killed process left is removed"


# On a loop


async def test_asave_lets_the_loop_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, going, written = CheckpointManager(tmp_path), threading.Event(), threading.Event()
    sync = os.fsync

    def slow(descriptor: int) -> None:
        going.set()
        assert written.wait(10)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    state = {"step": 1}
    saving = asyncio.create_task(manager.asave(1, state))
    while not going.is_set():
        await asyncio.sleep(0.001)
    state["step"] = 2  # too late: it was copied
    assert manager.restore() is None
    written.set()
    assert await saving == manager.latest_checkpoint
    assert manager.restore() == (1, {"step": 1})


async def test_asave_that_is_cancelled_writes_to_the_end_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, going, written = CheckpointManager(tmp_path), threading.Event(), threading.Event()
    sync = os.fsync

    def slow(descriptor: int) -> None:
        going.set()
        assert written.wait(10)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    saving = asyncio.create_task(manager.asave(1, "one"))
    while not going.is_set():
        await asyncio.sleep(0.001)
    saving.cancel()
    await asyncio.sleep(0.01)
    assert not saving.done()
    written.set()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert manager.restore() == (1, "one")


async def test_asave_raises_as_save_does(tmp_path: Path) -> None:
    manager = CheckpointManager(tmp_path)
    await manager.asave(2, None)
    with pytest.raises(ValueError, match="must be above 2, not 1"):
        await manager.asave(1, None)
    with pytest.raises(TypeError, match="state is of type set"):
        await manager.asave(3, set())
