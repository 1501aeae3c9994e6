"""`TFRecordWriter` to a URL: by both faces, and neither holds the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import aiodata
from aiodata.errors import RemoteError
from aiodata.storage import Trouble
from aiodata.storage.transfer import network
from tests.programs import Boom, to_list
from tests.storage.scripted import Scripted, fast, files, registered

pytest.importorskip("google_crc32c")
URL = "folder://a.tfrecord"
RECORD = b"x" * (1 << 20)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Scripted]:
    made = Scripted(tmp_path)
    with registered("folder", lambda: made):
        yield made


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_come_back(storage: Scripted, tmp_path: Path, compression: str) -> None:
    records = [b"", b"one", *[bytes([number]) * 100_000 for number in range(100)]]
    with aiodata.TFRecordWriter(URL, compression) as writer:
        for record in records:
            writer.write(record)
        writer.flush()
        assert not (tmp_path / "a.tfrecord").exists()
    assert files(tmp_path) == ["a.tfrecord"]
    assert to_list(aiodata.TFRecordDataset(URL, compression)) == records


async def test_on_a_loop(storage: Scripted, tmp_path: Path) -> None:
    async with aiodata.TFRecordWriter(URL) as writer:
        await asyncio.gather(*[writer.awrite(bytes([number]) * 100_000) for number in range(100)])
    found = [record async for record in aiodata.TFRecordDataset(URL)]
    assert found == [bytes([number]) * 100_000 for number in range(100)]


def test_the_same_bytes_as_in_a_local_file(storage: Scripted, tmp_path: Path) -> None:
    for path in (URL, str(tmp_path / "local")):
        with aiodata.TFRecordWriter(path) as writer:
            writer.write(b"one")
            writer.write(b"two")
    assert (tmp_path / "a.tfrecord").read_bytes() == (tmp_path / "local").read_bytes()


async def test_the_loop_goes_on_meanwhile(storage: Scripted, tmp_path: Path) -> None:
    async def until_reached() -> None:
        while not storage.reached.is_set():
            await asyncio.sleep(0.001)
        storage.reached.clear()
        assert network._network is not None
        network._network._loop.call_soon_threadsafe(gates.pop(0).set)

    gates = [asyncio.Event() for _ in range(4)]
    for method, gate in zip(("create", "write", "commit", "discard"), gates, strict=True):
        storage.faults[method] = [gate]
    async with aiodata.TFRecordWriter(URL) as writer:
        writing = asyncio.gather(*[writer.awrite(RECORD) for _ in range(9)])
        await until_reached()
        await until_reached()
        await writing
        closing = asyncio.create_task(writer.aclose())
        await until_reached()
        await closing
    opening = aiodata.TFRecordWriter(URL)
    for _ in range(9):
        await opening.awrite(RECORD)
    ending = asyncio.create_task(opening.__aexit__(Boom, Boom(), None))
    await until_reached()
    await ending
    assert files(tmp_path) == ["a.tfrecord"]


@pytest.mark.parametrize("method", ["create", "write", "commit"])
async def test_cancelling_does_not_wait_for_the_network(storage: Scripted, tmp_path: Path, method: str) -> None:
    storage.faults[method] = [asyncio.Event()]

    async def write() -> None:
        async with aiodata.TFRecordWriter(URL) as writer:
            for _ in range(9):
                await writer.awrite(RECORD)

    writing = asyncio.create_task(write())
    while not storage.reached.is_set():
        await asyncio.sleep(0.001)
    writing.cancel()
    begun = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert time.monotonic() - begun < 5
    assert files(tmp_path) == []


async def test_a_cancelled_record_is_written_all_the_same(storage: Scripted, tmp_path: Path) -> None:
    gate = asyncio.Event()
    storage.faults["create"] = [gate]
    async with aiodata.TFRecordWriter(URL) as writer:
        for _ in range(3):
            await writer.awrite(RECORD)
        fourth = asyncio.create_task(writer.awrite(RECORD))
        while not storage.reached.is_set():
            await asyncio.sleep(0.001)
        fourth.cancel()
        await asyncio.gather(fourth, return_exceptions=True)
        assert network._network is not None
        network._network._loop.call_soon_threadsafe(gate.set)
        await writer.awrite(b"last")
    assert [len(record) async for record in aiodata.TFRecordDataset(URL)] == [len(RECORD)] * 4 + [4]


def test_discarding_leaves_what_was_there(storage: Scripted, tmp_path: Path) -> None:
    with aiodata.TFRecordWriter(URL) as writer:
        writer.write(b"one")
    with suppress(Boom), aiodata.TFRecordWriter(URL) as writer:
        for _ in range(9):
            writer.write(RECORD)
        raise Boom
    assert to_list(aiodata.TFRecordDataset(URL)) == [b"one"]
    assert files(tmp_path) == ["a.tfrecord"]


def test_trouble(storage: Scripted, tmp_path: Path) -> None:
    storage.faults["write"] = [Trouble("busy")] * 2
    with aiodata.TFRecordWriter(URL, storage=fast()) as writer:
        for _ in range(9):
            writer.write(RECORD)
    assert len(to_list(aiodata.TFRecordDataset(URL))) == 9
    storage.faults["commit"] = [Trouble("busy")] * 3
    last = aiodata.TFRecordWriter(URL, storage=fast())
    last.write(RECORD)
    with pytest.raises(RemoteError, match=r"folder://a.tfrecord: busy \(tried 3 times\)"):
        last.close()
    assert len(to_list(aiodata.TFRecordDataset(URL))) == 9
    assert files(tmp_path) == ["a.tfrecord"]


async def test_an_error_while_nobody_waits_is_told_later(storage: Scripted, tmp_path: Path) -> None:
    storage.faults["create"] = [PermissionError(13, "no")]
    writer = aiodata.TFRecordWriter(URL)
    for _ in range(3):
        await writer.awrite(RECORD)
    with pytest.raises(PermissionError):
        await writer.awrite(RECORD)
    with pytest.raises(OSError, match="what was written before failed"):
        await writer.awrite(RECORD)
    assert files(tmp_path) == []


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    with aiodata.TFRecordWriter(f"file://{tmp_path}/x.tfrecord") as writer:
        writer.write(b"one")
    assert to_list(aiodata.TFRecordDataset(str(tmp_path / "x.tfrecord"))) == [b"one"]
