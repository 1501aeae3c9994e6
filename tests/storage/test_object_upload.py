"""New objects in a real S3 server."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from aiodata import StorageOptions
from aiodata.errors import RemoteError
from aiodata.storage import ObjectStorage, Trouble
from aiodata.storage.kinds.object_upload import PART_BYTES, PARTS_AT_ONCE
from tests.servers.proxy import Break, Good, Proxy, Say
from tests.servers.s3 import BUCKET, S3Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.usefixtures("no_standard_places")
MIB = 1 << 20
URL = f"s3://{BUCKET}/uploads/x"
CONTENT = os.urandom(PART_BYTES * 3 + 5)


@pytest.fixture
async def storage(s3: S3Server, proxy: Proxy) -> AsyncIterator[ObjectStorage]:
    """Give a way to the server; at the end no upload may be half-sent."""
    s3.request("DELETE", f"/{BUCKET}/uploads/x")
    made = ObjectStorage(**{**s3.settings, "endpoint": proxy.url})
    yield made
    await made.aclose()
    assert s3.uploads() == []


@pytest.mark.parametrize("size", [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, len(CONTENT)])
@pytest.mark.parametrize("piece", [MIB, 5 * MIB + 7, 100 * MIB])
async def test_an_object_is_seen_when_it_is_complete(
    s3: S3Server, proxy: Proxy, storage: ObjectStorage, size: int, piece: int
) -> None:
    upload = await storage.create(URL, StorageOptions())
    for start in range(0, size, piece):
        await upload.write(CONTENT[start : min(start + piece, size)])
    assert s3.get("uploads/x") is None
    await upload.commit()
    assert s3.get("uploads/x") == CONTENT[:size]
    assert len([head for head in proxy.requests if head.startswith("PUT")]) == max(1, -(-size // PART_BYTES))


@pytest.mark.parametrize("size", [0, 1, len(CONTENT)])
async def test_nothing_is_left_of_what_is_given_up(s3: S3Server, storage: ObjectStorage, size: int) -> None:
    s3.put("uploads/x", b"before")
    upload = await storage.create(URL, StorageOptions())
    await upload.write(CONTENT[:size])
    await upload.discard()
    assert s3.get("uploads/x") == b"before"
    await upload.discard()


async def test_a_part_is_sent_again(s3: S3Server, proxy: Proxy, storage: ObjectStorage) -> None:
    proxy.script([Good(), Say("503 Slow Down"), Break(), Say("500 Internal Server Error")], "PUT")
    upload = await storage.create(URL, StorageOptions())
    await upload.write(CONTENT)
    await upload.commit()
    assert s3.get("uploads/x") == CONTENT


async def test_a_small_object_may_be_sent_again(s3: S3Server, proxy: Proxy, storage: ObjectStorage) -> None:
    proxy.script([Say("503 Slow Down"), Break()], "PUT")
    upload = await storage.create(URL, StorageOptions())
    await upload.write(b"abc")
    with pytest.raises(Trouble, match="503 Service Unavailable"):
        await upload.commit()
    with pytest.raises(Trouble, match="Connection reset"):
        await upload.commit()
    await upload.commit()
    assert s3.get("uploads/x") == b"abc"


async def test_parts_that_are_refused_end_the_upload(s3: S3Server, proxy: Proxy, storage: ObjectStorage) -> None:
    proxy.script([Good(), Say("400 Bad Request", "<Error><Code>InvalidRequest</Code></Error>")], "PUT")
    upload = await storage.create(URL, StorageOptions())

    async def write() -> None:
        await upload.write(CONTENT)
        await upload.commit()

    with pytest.raises(RemoteError, match=r"400 Bad Request \(InvalidRequest\)"):
        await write()
    with pytest.raises(RemoteError):
        await upload.commit()
    await upload.discard()
    assert s3.get("uploads/x") is None


async def test_writing_waits_for_the_store(s3: S3Server, proxy: Proxy, storage: ObjectStorage) -> None:
    upload = await storage.create(URL, StorageOptions())
    written = 0

    async def write() -> None:
        nonlocal written
        while True:
            await upload.write(CONTENT[:MIB])
            written += MIB

    proxy.judge = lambda head: Break(how="hold") if head.startswith("PUT") else None
    writing = asyncio.ensure_future(write())
    await asyncio.to_thread(proxy.wait, lambda: sum(head.startswith("PUT") for head in proxy.requests) == PARTS_AT_ONCE)
    before = -1
    while before != written:
        before = written
        await asyncio.sleep(0.2)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert PARTS_AT_ONCE * PART_BYTES <= written <= (PARTS_AT_ONCE + 4) * PART_BYTES
    proxy.judge = lambda head: None
    await asyncio.to_thread(proxy.stop)
    await asyncio.to_thread(proxy.start)
    await upload.discard()
    assert s3.uploads() == []


async def test_what_is_left_of_an_upload_is_told(s3: S3Server, proxy: Proxy, storage: ObjectStorage) -> None:
    upload = await storage.create(URL, StorageOptions())
    await upload.write(CONTENT)
    proxy.judge = lambda head: Say("403 Forbidden") if head.startswith("DELETE") else None
    with pytest.raises(RemoteError, match="could not be given up: parts of it may be left"):
        await upload.discard()
    proxy.judge = lambda head: None
    s3.give_up()


async def test_an_object_is_removed(s3: S3Server, storage: ObjectStorage) -> None:
    s3.put("uploads/x", b"x")
    await storage.delete(URL)
    assert s3.get("uploads/x") is None
    await storage.delete(URL)


async def test_what_may_not_be_written(s3: S3Server, proxy: Proxy) -> None:
    anyone = ObjectStorage(endpoint=proxy.url, region="us-east-1", skip_signature=True)
    upload = await anyone.create(URL, StorageOptions())
    await upload.write(b"x")
    with pytest.raises(PermissionError, match="403 Forbidden"):
        await upload.commit()
    with pytest.raises(PermissionError):
        await anyone.delete(URL)
    with pytest.raises(ValueError, match="obstore cannot ask for"):
        await anyone.create(f"s3://{BUCKET}/a//b", StorageOptions())
    await anyone.aclose()
