"""Worker processes are there for the next epoch, and not for longer than somebody could want them."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset
from aiodata.engine.serving import REST_SECONDS
from tests.engine.observing import Watch
from tests.programs import pull_all

pytestmark = pytest.mark.timeout(80)  # a process takes a while to start where many do
HOUSE = Path(__file__).parents[2]


def process_id(x: Any) -> int:
    return os.getpid()


def slow_process_id(x: Any) -> int:
    """Take so long that each of two workers gets some."""
    time.sleep(0.3)
    return os.getpid()


class Scaled:
    """A function that the user may change between two epochs."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> tuple[int, int]:
        return int(x) * self.factor, os.getpid()


def process_ids(ds: Dataset[Any]) -> set[int]:
    return set(ds)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def all_gone(pids: set[int], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(is_alive, pids))


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("limit", [None, 60])
def test_the_next_epoch_has_the_same_workers(limit: float | None, face: str) -> None:
    ds = Dataset.range(4).map(slow_process_id, 2, executor="process", timeout_seconds=limit)

    async def read() -> set[int]:
        return {pid async for pid in ds}

    epochs = [process_ids(ds) if face == "sync" else asyncio.run(read()) for _ in range(3)]
    assert os.getpid() not in epochs[0]
    assert len(set.union(*epochs)) <= 2


def test_behind_other_stages_and_ahead_of_the_reader() -> None:
    ds = Dataset.range(4).map(process_id, 1, executor="process").batch(2).prefetch(1)
    found = {int(pid) for _ in range(3) for batch in ds for pid in batch}
    assert len(found) == 1


def test_each_repetition_has_the_same_workers() -> None:
    ds = Dataset.range(2).map(process_id, 1, executor="process").repeat(3)
    assert len(set(pull_all(ds.iterate()))) == 1


def test_inner_datasets_share_workers() -> None:
    ds = Dataset.range(3).flat_map(lambda x: Dataset.range(2).map(process_id, 1, executor="process"))
    found = [*ds, *ds]
    assert len(found) == 12
    assert len(set(found)) == 1


def test_two_stages_have_workers_of_their_own() -> None:
    ds = Dataset.range(2).map(process_id, 1, executor="process").map(beside_process_id, 1, executor="process")
    epochs = [list(ds), list(ds)]
    assert epochs[0] == epochs[1]
    assert len({pid for pair in epochs[0] for pid in pair}) == 2


def beside_process_id(x: int) -> tuple[int, int]:
    return x, os.getpid()


def test_two_iterators_at_once_do_not_wait_for_each_other() -> None:
    ds = Dataset.range(2).map(process_id, 1, executor="process")
    one, other = ds.iterate(), ds.iterate()
    assert [next(one), next(other)] == [next(one), next(other)]
    one.close()
    other.close()


def test_a_worker_that_was_stopped_in_the_middle_of_a_call_is_not_kept(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "pid")
    ds = Dataset.from_tensor_slices([b"", path]).map(stuck_at_a_path, 1, executor="process")
    with ds.iterate() as iterator:
        first = next(iterator)
        while not os.path.exists(path):
            time.sleep(0.005)
    assert all_gone({first})


def stuck_at_a_path(path: bytes) -> int:
    if path:
        with open(path, "w"):
            time.sleep(600)
    return os.getpid()


def test_a_function_that_has_changed_gets_fresh_workers() -> None:
    function = Scaled(2)
    ds = Dataset.range(3).map(function, 1, executor="process")
    first = list(ds)
    function.factor = 5
    second = list(ds)
    third = list(ds)
    assert [x for x, _ in first + second + third] == [0, 2, 4, 0, 5, 10, 0, 5, 10]
    old, new, same = ({pid for _, pid in found} for found in (first, second, third))
    assert new == same != old
    assert all_gone(old)


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs to wait for a process without reaping it")
def test_what_dies_between_two_epochs_is_replaced_in_silence() -> None:
    ds = Dataset.range(2).map(process_id, 1, executor="process")
    (first,) = process_ids(ds)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    (second,) = process_ids(ds)
    assert first != second
    assert process_ids(ds) == {second}


def test_killed_just_before_it_is_asked() -> None:
    """The parent may not have noticed yet: it is either replaced or the error that it is, and nothing hangs."""
    ds = Dataset.range(1).map(process_id, 1, executor="process")
    for _ in range(3):
        (pid,) = process_ids(ds)
        os.kill(pid, signal.SIGKILL)
        with ds.iterate() as iterator:
            (found,) = pull_all(iterator)
        assert isinstance(found, (int, RuntimeError))


def test_they_end_with_the_dataset(child_processes: Callable[[], dict[int, str]]) -> None:
    watch = Watch(child_processes)
    ds = Dataset.range(4).map(slow_process_id, 2, executor="process")
    pids = process_ids(ds)
    assert all(map(is_alive, pids))
    batched = ds.batch(2)
    del ds
    list(batched)
    del batched
    gc.collect()  # a run that has ended refers to itself
    watch.nothing_left_soon(seconds=1)


@pytest.mark.slow
def test_nobody_waits_for_long(child_processes: Callable[[], dict[int, str]]) -> None:
    ds = Dataset.range(4).map(process_id, 1, executor="process")
    (first,) = process_ids(ds)
    assert not all_gone({first}, REST_SECONDS / 2)
    assert all_gone({first}, REST_SECONDS)
    (second,) = process_ids(ds)
    assert first != second
    del ds


@pytest.mark.slow
def test_within_a_run_they_wait_as_long_as_it_takes() -> None:
    async def source() -> Any:
        yield 0
        await asyncio.sleep(1.5 * REST_SECONDS)
        yield 1

    async def main() -> list[int]:
        return [pid async for pid in Dataset.from_generator(source).map(process_id, 1, executor="process")]

    first, second = asyncio.run(main())
    assert first == second


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_fork_has_workers_of_its_own() -> None:
    ds = Dataset.range(2).map(process_id, 1, executor="process")
    (ours,) = process_ids(ds)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        found = process_ids(ds)
        os.write(writer, " ".join(map(str, found)).encode())
        del ds
        os._exit(0)
    os.waitpid(child, 0)
    theirs = {int(pid) for pid in os.read(reader, 1000).split()}
    os.close(reader)
    os.close(writer)
    assert len(theirs) == 1
    assert ours not in theirs
    assert process_ids(ds) == {ours}
    assert all_gone(theirs)


# How the interpreter ends

SCRIPT = """
import os, sys, time
import numpy as np
from aiodata import Dataset
from aiodata.engine import worker_process

def work(x):
    time.sleep(0.3 if x < 4 else 600)
    return os.getpid(), np.zeros(100_000)

if __name__ == "__main__":
    ds = Dataset.range(COUNT).map(work, 2, executor="process", timeout_seconds=LIMIT)
    for _ in range(2):
        for pid, _ in ds.take(4):
            print(pid, flush=True)
    for worker in worker_process._alive:
        if worker._record is not None:
            print(worker._record.name, flush=True)
    END
"""


def started(folder: Path, count: int, limit: float | None, end: str) -> subprocess.Popen[str]:
    code = SCRIPT.replace("COUNT", str(count)).replace("LIMIT", str(limit)).replace("END", end)
    (folder / "script.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(HOUSE)}
    return subprocess.Popen(
        [sys.executable, folder / "script.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def assert_nothing_left(words: list[str]) -> None:
    """Check that the processes and the shared memory that a script has named are gone."""
    __tracebackhide__ = True
    pids = {int(word) for word in words if word.isdigit()}
    names = [word for word in words if not word.isdigit()]
    assert 1 <= len(pids) <= 6
    assert all_gone(pids)
    if os.path.isdir("/dev/shm"):
        assert not set(names) & set(os.listdir("/dev/shm"))


@pytest.mark.parametrize("limit", [None, 60])
@pytest.mark.parametrize("count", [4, 9])
@pytest.mark.parametrize("end", ["pass", "raise SystemExit(0)"])
def test_the_interpreters_end_is_theirs(count: int, limit: float | None, end: str, tmp_path: Path) -> None:
    script = started(tmp_path, count, limit, end)
    out, error = script.communicate(timeout=60)
    assert (script.returncode, error) == (0, "")
    assert_nothing_left(out.split())
    if count == 4:  # else both workers are in a call when the run ends
        assert bool(re.search("[a-z]", out)) == (limit is not None)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_or_interrupted_nothing_is_left(how: signal.Signals, tmp_path: Path) -> None:
    script = started(tmp_path, 4, None, "print('ready', flush=True); time.sleep(600)")
    assert script.stdout is not None
    words = []
    while (line := script.stdout.readline()) != "ready\n":
        words.append(line.strip())
    if how == signal.SIGINT:
        os.killpg(script.pid, how)  # as a terminal does
    else:
        script.kill()
    _, error = script.communicate(timeout=30)
    assert_nothing_left(words)
    assert "leaked" not in error
    assert error.count("Traceback") == (1 if how == signal.SIGINT else 0)
