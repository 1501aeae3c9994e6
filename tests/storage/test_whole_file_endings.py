"""A pipeline that maps `read_file` ends at once, although its threads wait for the network."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, read_file
from aiodata.errors import EndedEarlyError
from aiodata.storage.transfer import network as networks
from tests.servers.http import HttpServer
from tests.servers.http_faults import Slowly
from tests.storage.remote_files import LINES, TEXT

pytest.importorskip("aiohttp")
AT_ONCE_SECONDS = 10.0
COUNT = 16


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """Serve the files."""
    with HttpServer() as started:
        started.files = {f"/{number}": TEXT for number in range(COUNT)}
        yield started
        started.wait_for_no_connections(AT_ONCE_SECONDS)


def names(server: HttpServer) -> Dataset[Any]:
    return Dataset.from_tensor_slices([f"{server.url}/{number}" for number in range(COUNT)])


def check(server: HttpServer) -> None:
    """Make sure that all connections are closed, although nothing was answered."""
    server.wait_for_no_connections(AT_ONCE_SECONDS)
    assert server.holding
    assert len(server.requests) <= COUNT
    assert networks._network is None


async def read_rest(iterator: Any) -> None:
    async for content in iterator:
        assert content == TEXT


@pytest.mark.parametrize("how", ["aclose", "cancel"])
@pytest.mark.parametrize("limits", [{}, {"timeout_seconds": 600.0}])
async def test_what_ends_an_async_loop(how: str, limits: Any, server: HttpServer) -> None:
    iterator = names(server).map(read_file, num_parallel_calls=COUNT, **limits).iterate()
    assert await anext(iterator) == TEXT  # the first call tells the cost
    server.holding = True
    pulling = asyncio.create_task(read_rest(iterator))
    await asyncio.to_thread(server.wait_for_requests, COUNT)
    if how == "aclose":
        await iterator.aclose()
        with pytest.raises(EndedEarlyError):
            await pulling
    else:
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling
    await asyncio.to_thread(check, server)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_break(asynchronous: bool, server: HttpServer) -> None:
    for number in range(1, COUNT):
        server.script(f"/{number}", [Slowly(10, 0.5)])
    ds = names(server).map(read_file, num_parallel_calls=COUNT).prefetch(1)

    async def read_async() -> None:
        iterator = ds.iterate()
        async for content in iterator:
            assert content == TEXT
            await asyncio.to_thread(server.wait_for_requests_at_once, COUNT - 1)
            break
        await iterator.aclose()

    def read() -> None:
        for content in ds:
            assert content == TEXT
            server.wait_for_requests_at_once(COUNT - 1)
            break

    asyncio.run(read_async()) if asynchronous else read()
    server.wait_for_no_connections(AT_ONCE_SECONDS)
    assert networks._network is None


PROGRAM = """
import asyncio, sys, aiodata
urls = aiodata.Dataset.from_tensor_slices([f"{sys.argv[1]}/{number}" for number in range(16)])
ds = urls.map(aiodata.read_file%s)%s
async def main():
    async for _ in ds:
        pass
def plain():
    for _ in ds:
        pass
try:
    %s
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("read", ["asyncio.run(main())", "plain()"])
@pytest.mark.parametrize("parallel", [", num_parallel_calls=16", ""])
@pytest.mark.parametrize("then", ["", ".prefetch(2)"])
def test_ctrl_c(parallel: str, then: str, read: str, server: HttpServer) -> None:
    if not parallel and not then and "asyncio" in read:
        pytest.skip("the function holds the loop")
    server.holding = True
    process = start(server, PROGRAM % (parallel, then, read))
    with process:
        server.wait_for_requests_at_once(1, 50.0)
        process.send_signal(signal.SIGINT)
        check(server)
        out, errors = process.communicate(timeout=50)
    assert (errors, out, process.returncode) == ("", "interrupted\n", 0)


def start(server: HttpServer, program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


# Iterators that are open when the program ends


@pytest.mark.parametrize("place", ["http", "memory"])
@pytest.mark.parametrize("kind", ["text", "parquet"])
def test_an_iterator_that_is_open_when_the_program_ends(place: str, kind: str, server: HttpServer) -> None:
    program = "import aiodata, sys; "
    content = b"".join(line + b"\n" for line in LINES) * 1000
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"a": list(range(50_000))}), sink, row_group_size=1000)
        content = sink.getvalue().to_pybytes()
    server.files["/a"] = content
    url = server.url + "/a"
    if place == "memory":
        pytest.importorskip("fsspec")
        url = "memory://a"
        program += (
            "import urllib.request, fsspec; "
            "fsspec.filesystem('memory').pipe_file('/a', urllib.request.urlopen(sys.argv[1] + '/a').read()); "
        )
    reader = "ParquetDataset" if kind == "parquet" else "TextLineDataset"
    program += f"iterator = iter(aiodata.{reader}({url!r})); next(iterator); print('done')"
    with start(server, program) as process:
        out, errors = process.communicate(timeout=50)
    assert (errors, out, process.returncode) == ("", "done\n", 0)
