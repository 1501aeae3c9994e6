"""A worker process that is killed, or never comes back, ends with an error and leaves no process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest

from aiodata import Dataset
from tests.engine.observing import Watch
from tests.engine.working import stuck
from tests.programs import pull_all

pytestmark = pytest.mark.timeout(20)
FACES = ["sync", "async"]


# Worker processes


async def named_process(path: Path) -> int:
    async with asyncio.timeout(10):
        while not path.exists():
            await asyncio.sleep(0.005)
    return int(path.read_text())


async def test_a_killed_worker_is_an_error_within_a_second(
    tmp_path: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    path = tmp_path / "pid"
    ds = Dataset.from_tensors(os.fsencode(path)).map(stuck, num_parallel_calls=1, executor="process")
    iterator = ds.prefetch(1).iterate()
    reader = asyncio.create_task(anext(iterator))
    os.kill(await named_process(path), signal.SIGKILL)
    done, _ = await asyncio.wait({reader}, timeout=1)
    assert done
    with pytest.raises((BrokenExecutor, RuntimeError)) as caught:
        await reader
    assert any("in map(stuck)" in note for note in caught.value.__notes__)
    await asyncio.wait_for(iterator.aclose(), 3)
    del reader, done
    await watch.nothing_left(seconds=1)


@pytest.mark.parametrize("face", FACES)
def test_closing_ends_a_worker_that_never_comes_back(
    face: str, tmp_path: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    path = tmp_path / "pid"
    ds = Dataset.from_tensors(os.fsencode(path)).map(stuck, num_parallel_calls=1, executor="process")

    async def main() -> float:
        iterator = ds.iterate()
        reader = asyncio.create_task(anext(iterator))
        await named_process(path)
        start = time.monotonic()
        await iterator.aclose()
        with contextlib.suppress(RuntimeError):
            await reader
        return time.monotonic() - start

    if face == "async":
        assert asyncio.run(main()) < 3
    else:
        iterator = ds.iterate()
        reader = threading.Thread(target=lambda: pull_all(iterator))
        reader.start()
        asyncio.run(named_process(path))
        start = time.monotonic()
        iterator.close()
        reader.join(5)
        assert not reader.is_alive()
        assert time.monotonic() - start < 3
    watch.nothing_left_soon(seconds=1)
