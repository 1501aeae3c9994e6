"""What is written to a real S3 server."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

import aiodata
from aiodata import Dataset
from aiodata.storage import ObjectStorage
from tests.programs import Boom, assert_same, failing, to_list
from tests.servers.s3 import BUCKET, S3Server
from tests.storage.scripted import registered

MIB = 1 << 20


@pytest.fixture
def server(s3: S3Server) -> S3Server:
    return s3


@pytest.fixture
def folder(server: S3Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the URL of a folder of the test's own, in which nothing is left half-sent."""
    with registered("s3", partial(ObjectStorage, **server.settings)):
        yield f"s3://{BUCKET}/" + re.sub(r"\W", "-", request.node.name)
    assert server.uploads() == []


def keys(server: S3Server, url: str) -> list[str]:
    prefix = url.removeprefix(f"s3://{BUCKET}/")
    _, body = server.request("GET", f"/{BUCKET}", f"list-type=2&prefix={prefix}%2F")
    return [key.removeprefix(prefix + "/") for key in re.findall("<Key>(.*?)</Key>", body.decode())]


def test_a_saved_dataset_comes_back(server: S3Server, folder: str) -> None:
    small, large = Dataset.range(5), Dataset.range(30).map(lambda x: (x, bytes([x]) * MIB))
    large.save(folder, shard_func=lambda x, _: int(x) % 2)
    assert len(keys(server, folder)) == 3
    assert_same(sorted(Dataset.load(folder), key=lambda element: int(element[0])), to_list(large))
    small.save(folder, "GZIP")
    assert len(keys(server, folder)) == 2
    assert_same(to_list(Dataset.load(folder)), to_list(small))


async def test_on_a_loop(server: S3Server, folder: str) -> None:
    await Dataset.range(1000).asave(folder)
    assert [int(x) async for x in Dataset.load(folder)] == list(range(1000))


def test_an_error_leaves_what_was_there(server: S3Server, folder: str) -> None:
    Dataset.range(5).save(folder)
    before = keys(server, folder)
    with pytest.raises(Boom):
        failing(Dataset.range(40), 35).map(lambda x: (x, bytes([x]) * MIB)).save(folder)
    assert keys(server, folder) == before


@pytest.mark.parametrize("size", [0, 10, 9 * MIB, 40 * MIB])
async def test_records_come_back(server: S3Server, folder: str, size: int) -> None:
    url, records = f"{folder}/a.tfrecord", [bytes([number % 256]) * 65_536 for number in range(size // 65_536)]
    async with aiodata.TFRecordWriter(url) as writer:
        for record in records:
            await writer.awrite(record)
    assert [record async for record in aiodata.TFRecordDataset(url)] == records
    with aiodata.TFRecordWriter(url, "GZIP") as again:
        again.write(b"one")
    assert await aiodata.TFRecordDataset(url, "GZIP").aget_single_element() == b"one"


@pytest.mark.parametrize("size", [10, 40 * MIB])
def test_a_writer_that_is_discarded_leaves_nothing(server: S3Server, folder: str, size: int) -> None:
    with suppress(Boom), aiodata.TFRecordWriter(f"{folder}/a.tfrecord") as writer:
        writer.write(b"x" * size)
        raise Boom
    assert keys(server, folder) == []


PROGRAM = """
import sys
from functools import partial
from aiodata import Dataset
from aiodata.storage import ObjectStorage, register
register("s3", partial(ObjectStorage, endpoint=sys.argv[2], region=sys.argv[3], access_key_id=sys.argv[4],
                       secret_access_key=sys.argv[5]))
def slow(x):
    if x == 30:
        print("here", flush=True)
        sys.stdin.read()
    return x, bytes([x]) * (1 << 20)
Dataset.range(40).map(slow).save(sys.argv[1])
"""


def test_a_killed_process_leaves_the_old_dataset(server: S3Server, folder: str) -> None:
    Dataset.range(5).save(folder)
    before = keys(server, folder)
    command = [sys.executable, "-c", PROGRAM, folder, *server.settings.values()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGKILL)
    assert keys(server, folder) == before
    Dataset.range(7).save(folder)
    assert [int(x) for x in Dataset.load(folder)] == list(range(7))
    assert len(keys(server, folder)) == 2
    for key in server.uploads():  # what a lifecycle rule is for
        found = re.search("<UploadId>(.*?)</UploadId>", server.request("GET", f"/{BUCKET}", "uploads=")[1].decode())
        assert found is not None
        server.request("DELETE", f"/{BUCKET}/{key}", f"uploadId={found[1]}")
