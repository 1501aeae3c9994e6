"""Signals, forks, threads and ends of programs leave nothing of what reads URLs."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.storage.transfer import network as networks
from tests.programs import to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import Slowly
from tests.storage.remote_files import LINES, TEXT, limited, lines_of

pytest.importorskip("aiohttp")
AT_ONCE_SECONDS = 10.0
COUNT = 64


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        for number in range(COUNT):
            started.files[f"/{number}"] = TEXT
        yield started
        started.wait_for_no_connections(AT_ONCE_SECONDS)


def many(server: HttpServer) -> Dataset[bytes]:
    urls = Dataset.from_tensor_slices([f"{server.url}/{number}" for number in range(COUNT)])
    return limited(urls.interleave(TextLineDataset, COUNT, num_parallel_calls=COUNT))


# Processes, threads, signals

PROGRAM = """
import asyncio, sys, aiodata
urls = aiodata.Dataset.from_tensor_slices([f"{sys.argv[1]}/{number}" for number in range(64)])
ds = urls.interleave(aiodata.TextLineDataset, 64, num_parallel_calls=64)
"""


def start(server: HttpServer, program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM + program, server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
def test_ctrl_c_ends_the_requests(plain: bool, server: HttpServer) -> None:
    server.holding = True
    source = "aiodata.TextLineDataset(sys.argv[1] + '/0')" if plain else "ds"
    program = f"""
try:
    for line in {source}:
        pass
except KeyboardInterrupt:
    print("interrupted")
    sys.stdout.flush()
    sys.stdin.readline()
"""
    with start(server, program) as process:
        try:
            server.wait_for_requests_at_once(1 if plain else COUNT, 30)
            process.send_signal(signal.SIGINT)
            server.wait_for_no_connections(10)
            out, error = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (out, error, process.returncode) == ("interrupted\n", "", 0)


OPEN = [
    "iterator = iter(ds)\nnext(iterator)",
    "iterator = iter(aiodata.TextLineDataset(sys.argv[1] + '/1'))\nnext(iterator)",
    "iterator = iter(aiodata.TextLineDataset(sys.argv[1] + '/1').prefetch(2))\nnext(iterator)",
    """
async def main():
    global iterator
    iterator = aiter(ds)
    await anext(iterator)
asyncio.run(main())
""",
    """
async def main():
    async for line in ds:
        break
asyncio.run(main())
""",
    """
loop = asyncio.new_event_loop()
iterator = aiter(ds)
loop.run_until_complete(iterator.__anext__())
loop.close()
""",
]


@pytest.mark.parametrize("program", OPEN, ids=["sync", "stepped", "ahead", "async", "break", "closed loop"])
def test_an_iterator_that_is_open_at_the_end_of_the_program(program: str, server: HttpServer) -> None:
    for number in range(1, COUNT):
        server.script(f"/{number}", [Slowly(100, 0.1)])
    with start(server, program + "\nprint('done')\n") as process:
        try:
            out, error = process.communicate(timeout=40)
        finally:
            process.kill()
    assert (out, error, process.returncode) == ("done\n", "", 0)


def in_child(work: Callable[[], Any]) -> str:
    """Run `work` in a forked child, which must end in time; give what it returned or raised in words."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = repr(work())
        except BaseException as error:
            text = repr(error)
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(pid, 0)
    return text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("prefetch", [True, False])
def test_a_fork_reads_while_its_parent_reads(prefetch: bool, server: HttpServer) -> None:
    ds = lines_of(server.url + "/0", chunk_bytes=100, read_ahead_bytes=100)
    ds = ds.prefetch(1) if prefetch else ds
    with ds.iterate() as iterator:
        got = [next(iterator) for _ in range(3)]
        assert in_child(lambda: to_list(ds)) == repr(LINES)
        assert in_child(lambda: asyncio.run(_collect(ds))) == repr(LINES)
        assert "before the process forked" in in_child(lambda: outcomes_of(iterator))
        assert in_child(iterator.close) == "None"
        got += iterator
    assert got == LINES


def outcomes_of(iterator: Any) -> list[Any]:
    got: list[Any] = []
    while len(got) < 100:
        try:
            got.append(next(iterator))
        except StopIteration:
            return got
        except Exception as error:
            got.append(error)
    raise AssertionError("no end")


async def _collect(ds: Dataset[Any]) -> list[Any]:
    return [element async for element in ds]


def test_several_loops_in_several_threads_at_once(server: HttpServer) -> None:
    results: list[Any] = []

    def work(number: int) -> None:
        for _ in range(5):
            if number % 2:
                results.append(asyncio.run(_collect(lines_of(server.url + "/0", chunk_bytes=200))))
            else:
                results.append(to_list(lines_of(server.url + "/1", chunk_bytes=200)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [LINES] * 30
    assert networks._network is None


def test_loops_that_have_ended_are_not_held(server: HttpServer) -> None:
    import weakref

    seen: list[weakref.ref[Any]] = []

    async def read() -> list[Any]:
        seen.append(weakref.ref(asyncio.get_running_loop()))
        return await _collect(lines_of(server.url + "/0"))

    for _ in range(3):
        assert asyncio.run(read()) == LINES
    gc.collect()
    assert [loop() for loop in seen] == [None, None, None]
