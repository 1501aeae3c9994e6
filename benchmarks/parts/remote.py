"""Reading many remote objects that each take a while to begin, beside bare concurrent requests by the same clients."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import Row, interleaved, row_of

from aiodata import Dataset, FixedLengthRecordDataset, aread_file, storage
from aiodata.storage.transfer.download import MEMORY_BYTES
from aiodata.transforms._parallel_cycle import AHEAD_BYTES

OBJECTS, SIZE, LATENCY, AT_ONCE = 200, 1_000_000, 0.05, 64
RECORD = 100_000


def measure(rounds: int) -> list[Row]:
    """Read 200 objects of 1 MB, 50 ms to the first byte of each, 64 at once."""
    command = [
        sys.executable,
        str(Path(__file__).with_name("latency_server.py")),
        str(OBJECTS),
        str(SIZE),
        str(LATENCY),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        try:
            return _measured(address, rounds)
        finally:
            assert server.stdin is not None
            server.stdin.close()


def _measured(address: str, rounds: int) -> list[Row]:
    plain = {"endpoint": address, "skip_signature": True, "region": "local"}
    storage.register("s3", partial(storage.ObjectStorage, **plain, client_options={"allow_http": True}))
    web = [f"{address}/bucket/{number}" for number in range(OBJECTS)]
    store = [f"s3://bucket/{number}" for number in range(OBJECTS)]
    competitors: dict[str, Callable[[], Any]] = {
        "aiohttp, bare": lambda: asyncio.run(_bare_aiohttp(web)),
        "https, interleave 64": lambda: asyncio.run(_interleaved(web)),
        "https, interleave 64, for": lambda: _count(_records(web)),
        "https, map(aread_file) 64": lambda: asyncio.run(_mapped(web)),
        "obstore, bare": lambda: asyncio.run(_bare_obstore(address)),
        "s3, interleave 64": lambda: asyncio.run(_interleaved(store)),
    }
    seconds = interleaved(competitors, rounds)
    rows = [row_of(seconds, "aiohttp, bare", OBJECTS)]
    rows += [row_of(seconds, name, OBJECTS, "aiohttp, bare", 1.3) for name in competitors if name.startswith("https")]
    rows += [row_of(seconds, "obstore, bare", OBJECTS)]
    rows += [row_of(seconds, "s3, interleave 64", OBJECTS, "obstore, bare", 1.3)]
    cap = (MEMORY_BYTES + AT_ONCE * AHEAD_BYTES) / 1e6  # what the network may hold, and what interleave may
    return [*rows, Row("https, interleave 64: peak memory", _peak(web, rounds), "MB", limit=cap)]


def _peak(web: list[str], rounds: int) -> list[float]:
    """Give how much memory reading them took, in MB, beyond what the process had when all was imported."""
    command = [sys.executable, __file__, *web]
    return [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(min(rounds, 3))]


def _records(names: list[str]) -> Dataset[Any]:
    read = partial(FixedLengthRecordDataset, record_bytes=RECORD)
    files = Dataset.from_tensor_slices(names)
    return files.interleave(read, cycle_length=AT_ONCE, num_parallel_calls=AT_ONCE).batch(10)


async def _interleaved(names: list[str]) -> None:
    count = 0
    async for batch in _records(names):
        count += len(batch)
    assert count == OBJECTS * SIZE // RECORD


def _count(records: Dataset[Any]) -> None:
    assert sum(len(batch) for batch in records) == OBJECTS * SIZE // RECORD


async def _mapped(names: list[str]) -> None:
    count = 0
    async for content in Dataset.from_tensor_slices(names).map(aread_file, num_parallel_calls=AT_ONCE):
        count += len(content)
    assert count == OBJECTS * SIZE


async def _bare_aiohttp(names: list[str]) -> None:
    import aiohttp

    turns = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def read(url: str) -> int:
            async with turns, session.get(url) as response:
                return len(await response.read())

        assert sum(await asyncio.gather(*map(read, names))) == OBJECTS * SIZE


async def _bare_obstore(address: str) -> None:
    import obstore
    from obstore.store import S3Store

    turns = asyncio.Semaphore(AT_ONCE)
    store = S3Store(
        "bucket", endpoint=address, skip_signature=True, region="local", client_options={"allow_http": True}
    )

    async def read(number: int) -> int:
        async with turns:
            response = await obstore.get_async(store, str(number))
            return len(await response.bytes_async())

    assert sum(await asyncio.gather(*map(read, range(OBJECTS)))) == OBJECTS * SIZE


if __name__ == "__main__":
    import aiohttp  # noqa: F401 - imported before memory is measured
    from benchmarks.parts.memory_use import resident

    before = resident()[0]
    asyncio.run(_interleaved(sys.argv[1:]))
    print(resident()[0] - before)
