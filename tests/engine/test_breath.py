"""The loop goes on while a pipeline works, at the speed of plain Python, and one killed run does not spoil the next."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from aiodata import Dataset, TextLineDataset
from tests.engine.observing import FLIGHTS, pipeline, write_files
from tests.programs import collect, to_list

MARCH = str(FLIGHTS / "flights-03.csv")


# Speed and breath


async def test_the_loop_breathes_while_files_are_opened_and_a_shuffle_is_filled(tmp_path: Path) -> None:
    write_files(tmp_path, count=200, lines=100)
    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    lines = files.interleave(lambda path: TextLineDataset(path), cycle_length=16, num_parallel_calls=16)
    ds = lines.map(lambda line: line.split()).shuffle(10_000, seed=1)
    gaps = []
    for _ in range(5):  # a busy machine makes gaps too: what counts is that there need be none
        gaps.append(await largest_gap_while_reading(ds, 20_000))
        if gaps[-1] < 0.1:
            return
    raise AssertionError(f"the loop stood still for {gaps} seconds")


async def largest_gap_while_reading(ds: Dataset[Any], expected: int) -> float:
    gaps: list[float] = []
    over = False

    async def heartbeat() -> None:
        last = time.monotonic()
        while not over:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            gaps.append(now - last - 0.01)
            last = now

    beating = asyncio.create_task(heartbeat())
    try:
        async with ds.iterate() as iterator:
            assert len([None async for _ in iterator]) == expected
    finally:
        over = True
        await beating
    return max(gaps)


def test_lines_come_about_as_fast_as_from_open(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes((b"x" * 99 + b"\n") * 10_000)

    def builtin() -> float:
        start = time.perf_counter()
        with path.open("rb") as file:
            assert sum(1 for _ in file) == 10_000
        return time.perf_counter() - start

    def ours() -> float:
        start = time.perf_counter()
        assert sum(1 for _ in TextLineDataset(str(path))) == 10_000
        return time.perf_counter() - start

    async def ours_async() -> float:
        start = time.perf_counter()
        count = 0
        async for _ in TextLineDataset(str(path)):
            count += 1
        assert count == 10_000
        return time.perf_counter() - start

    plain = min(builtin() for _ in range(5))
    allowed = 20 * plain + 0.02  # one thread hop a line would be 400,000 us
    assert min(ours() for _ in range(5)) < allowed
    assert min(asyncio.run(ours_async()) for _ in range(5)) < allowed


KILLED = """
import os, sys
from pathlib import Path
from tests.engine.observing import pipeline

count = 0
for line in pipeline(Path(sys.argv[1]), "threads"):
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
print(count)
"""


def test_runs_after_a_killed_one_work(folder: Path) -> None:
    def run(kill_at: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(folder), str(kill_at)]
        return subprocess.run(command, capture_output=True, text=True, timeout=50, cwd=Path(__file__).parents[2])

    assert run(kill_at=20).returncode == -9
    for _ in range(2):
        done = run(kill_at=-1)
        assert (done.returncode, done.stdout, done.stderr) == (0, "200\n", "")


def test_sync_and_async_faces_agree_in_a_thread_of_the_users(folder: Path) -> None:
    found: list[Any] = []

    def work() -> None:
        found.append([line.text for line in to_list(pipeline(folder, "threads"))])
        found.append([line.text for line in asyncio.run(collect(pipeline(folder, "coroutines")))])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(50)
    assert not thread.is_alive()
    assert found[0] == found[1]
    assert len(found[0]) == 200
