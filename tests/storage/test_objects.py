"""`ObjectStorage`, against a real S3 server."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import tarfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset, FixedLengthRecordDataset, Options, StorageOptions, TextLineDataset
from aiodata.errors import RemoteError
from aiodata.storage import ObjectStorage, Trouble
from aiodata.whole_file import aread_file, read_file
from tests.programs import assert_same, collect, to_list
from tests.servers.proxy import Break, Good, Proxy, Say
from tests.servers.s3 import BUCKET, OPEN, S3Server
from tests.storage.conftest import counted
from tests.storage.scripted import registered

pytestmark = pytest.mark.usefixtures("no_standard_places")
LINES = [b"%07d" % number + b"." * 92 for number in range(20_000)]


def quick(**limits: Any) -> Options:
    return Options(storage=StorageOptions(first_wait_seconds=0.01, max_wait_seconds=0.02, **limits))


def tf_records(path: Path) -> None:
    pytest.importorskip("google_crc32c")
    with aiodata.TFRecordWriter(str(path)) as writer:
        for number in range(5000):
            writer.write(b"%d" % number * 50)


def tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for number in range(300):
            for kind in ("txt", "json"):
                content = b"%d" % number * 500
                member = tarfile.TarInfo(f"{number:04}.{kind}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def parquet(path: Path) -> None:
    pytest.importorskip("pyarrow")
    from tests.arrow_files import write_parquet

    write_parquet(path, {"a": list(range(20_000)), "b": [str(number) * 20 for number in range(20_000)]}, 3000)


READERS: dict[str, tuple[Callable[[Path], Any], Callable[[str], Dataset[Any]]]] = {
    "text": (lambda path: path.write_bytes(b"\n".join(LINES)), TextLineDataset),
    "tfrecord": (tf_records, lambda name: aiodata.TFRecordDataset(name)),
    "fixed": (
        lambda path: path.write_bytes(os.urandom(999 * 3000)),
        partial(FixedLengthRecordDataset, record_bytes=999),
    ),
    "csv": (
        lambda path: path.write_text("".join(f"{number},{number / 7},text {number}\n" for number in range(20_000))),
        lambda name: aiodata.CsvDataset(name, [np.int64, np.float64, ""]),
    ),
    "json": (
        lambda path: path.write_text("".join(json.dumps({"a": number}) + "\n" for number in range(20_000))),
        lambda name: aiodata.JsonLinesDataset(name),
    ),
    "tar": (tar, lambda name: aiodata.TarDataset(name)),
    "npy": (lambda path: np.save(path, np.arange(200_000).reshape(-1, 10)), lambda name: aiodata.NpyDataset(name)),
    "parquet": (parquet, lambda name: aiodata.ParquetDataset(name)),
}


@pytest.mark.parametrize("kind", READERS)
def test_elements_are_those_of_the_local_file(
    s3: S3Server, proxy: Proxy, folder: str, tmp_path: Path, kind: str
) -> None:
    write, read = READERS[kind]
    path = tmp_path / "file.npy"
    write(path)
    url = s3.put(f"{folder}/file.npy", path.read_bytes())
    local = to_list(read(str(path)))
    assert local
    assert_same(to_list(read(url).with_options(quick(chunk_bytes=100_000))), local)
    proxy.script([Good(), Say("503 Slow Down"), Break(50_000), Good(), Break(70_000, "close"), Break()])
    assert_same(asyncio.run(collect(read(url).with_options(quick(chunk_bytes=100_000)))), local)


def test_a_file_goes_on_at_a_position_by_a_range(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    dataset = TextLineDataset(url).with_options(quick(chunk_bytes=100_000))
    with dataset.iterate() as iterator:
        assert list(islice(iterator, 15_000)) == LINES[:15_000]
        state = json.loads(json.dumps(iterator.state_dict()))
    before, sent = len(proxy.ranges("lines")), proxy.sent_bytes
    with dataset.iterate() as iterator:
        iterator.load_state_dict(state)
        assert list(iterator) == LINES[15_000:]
    first = int(proxy.ranges("lines")[before].partition("-")[0])
    assert 1_390_000 < first <= 1_500_000
    assert proxy.sent_bytes - sent < 620_000


def test_a_state_is_refused_when_the_object_is_another_one(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"a\nb\nc\n")
    with TextLineDataset(url).iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    s3.put(f"{folder}/lines", b"a\nB\nc\n")
    with TextLineDataset(url).iterate() as iterator:
        iterator.load_state_dict(state)
        with pytest.raises(aiodata.errors.StateError, match="another one"):
            next(iterator)


def test_an_object_that_is_replaced_is_never_mixed(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    dataset = TextLineDataset(url).with_options(quick(chunk_bytes=100_000, read_ahead_bytes=0))
    with dataset.iterate() as iterator:
        found = list(islice(iterator, 5000))
        s3.put(f"{folder}/lines", b"\n".join(LINES[::-1]))
        with pytest.raises(RemoteError, match="replaced while it was being read"):
            found.extend(iterator)
    assert found == LINES[: len(found)]


@pytest.mark.parametrize("content", [b"", b"x", b"\n"])
def test_small_objects(s3: S3Server, proxy: Proxy, folder: str, content: bytes) -> None:
    url = s3.put(f"{folder}/small", content)
    assert read_file(url) == content
    assert to_list(TextLineDataset(url)) == content.splitlines()
    assert counted_requests(proxy, "small") == (4 if not content else 2)  # of an empty one, a second for its size


def counted_requests(proxy: Proxy, end: str) -> int:
    return len([head for head in proxy.requests if head.partition(" HTTP")[0].endswith(end)])


@pytest.mark.parametrize("key", ["a b", "a%20b", "q?x=1", "h#y", "ü/日本", '~*[a]{b}|^`"<>', "a+b=c&d", "%zz", "a\\b"])
def test_keys_are_what_the_url_says(s3: S3Server, proxy: Proxy, folder: str, key: str) -> None:
    url = s3.put(f"{folder}/{key}", key.encode())
    assert read_file(url) == key.encode()
    if "\\" not in key:  # the server lists a slash instead
        pattern = f"s3://{BUCKET}/{folder}/*" + "/*" * key.count("/")
        assert to_list(Dataset.list_files(pattern)) == [url.encode()]
    if "*" not in key:
        assert to_list(Dataset.list_files(url)) == [url.encode()]


@pytest.mark.parametrize("key", ["a//b", "./a", "a/..", "/a", "a/", "a\nb", ""])
def test_keys_that_cannot_be_asked_for(proxy: Proxy, key: str) -> None:
    with pytest.raises(
        ValueError, match="obstore cannot ask for" if key else "the URL of an object is s3://bucket/key"
    ):
        read_file(f"s3://{BUCKET}/{key}")
    assert proxy.requests == []


def test_there_is_no_such_object(s3: S3Server, proxy: Proxy) -> None:
    keys = ("missing", "latest/api/token", "for path External AWS credential provider: x")
    for url in (*(f"s3://{BUCKET}/{key}" for key in keys), "s3://no-bucket/x"):
        with pytest.raises(FileNotFoundError, match="404 Not Found") as caught:
            to_list(TextLineDataset(url))
        assert caught.value.filename == url
    assert len(proxy.requests) == 4


def test_a_bucket_for_everybody(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/x", b"open", OPEN)
    anyone = partial(ObjectStorage, endpoint=s3.url, region="us-east-1", skip_signature=True)
    with registered("s3", anyone):
        assert read_file(url) == b"open"
        with pytest.raises(PermissionError, match="403 Forbidden"):
            read_file(s3.put(f"{folder}/x", b"closed"))


def test_what_a_bucket_is_registered_with(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/x", b"here")
    with registered("s3", ObjectStorage), registered(f"s3://{BUCKET}", partial(ObjectStorage, **s3.settings)):
        assert read_file(url) == b"here"


PATTERNS = {
    "*": ["a.txt", "b.txt", "c[1].txt", "é.txt"],
    "*.txt": ["a.txt", "b.txt", "c[1].txt", "é.txt"],
    "[ab].txt": ["a.txt", "b.txt"],
    "[!a].txt": ["b.txt", "é.txt"],
    "[^ab].txt": ["é.txt"],
    "?.txt": ["a.txt", "b.txt", "é.txt"],
    "c\\[1].txt": ["c[1].txt"],
    "a.txt": ["a.txt"],
    "a": [],
    "sub/*": ["sub/a.txt", "sub/empty"],
    "*/a.txt": ["sub/a.txt"],
    "*/*": ["sub/a.txt", "sub/empty"],
    "*/*/*": ["sub/deep/d.txt"],
    "**": ["a.txt", "b.txt", "c[1].txt", "é.txt"],
    "su*": [],
    "nothing/*": [],
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(s3: S3Server, proxy: Proxy, pattern: str) -> None:
    base = f"s3://{BUCKET}/patterns/"
    for key in ("a.txt", "b.txt", "c[1].txt", "é.txt", "sub/a.txt", "sub/empty", "sub/deep/d.txt"):
        s3.put(f"patterns/{key}", b"" if "empty" in key else b"x")
    for mark in ("sub", "sub/deep", "marked"):  # as consoles make folders
        assert s3.request("PUT", f"/{BUCKET}/patterns/{mark}/")[0] == 200
    files = Dataset.list_files(base + pattern, shuffle=False)
    if PATTERNS[pattern]:
        assert to_list(files) == [(base + key).encode() for key in PATTERNS[pattern]]
    else:
        with pytest.raises(FileNotFoundError, match="no file matches"):
            to_list(files)


def test_long_listings_come_in_pages(s3: S3Server, proxy: Proxy) -> None:
    for number in range(1005):
        s3.put(f"pages/{number:04}", b"x")
    proxy.script([Good(), Say("503 Slow Down")])
    with Dataset.list_files(f"s3://{BUCKET}/pages/*", shuffle=False).with_options(quick()).iterate() as iterator:
        assert list(iterator) == [f"s3://{BUCKET}/pages/{number:04}".encode() for number in range(1005)]
        assert (counted(iterator, "retries"), len(proxy.requests)) == (1, 4)


async def test_pieces_are_larger_where_bytes_come_fast(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/x", b"x" * 2_000_000)
    storage = ObjectStorage(**{**s3.settings, "endpoint": proxy.url})

    async def sizes() -> list[int]:
        return [len(piece) async for piece in (await storage.open(url, 0, None)).pieces]

    assert max((await sizes())[:2]) < 1_000_000
    for _ in range(20):
        last = await sizes()
    assert last[0] >= 1 << 20
    proxy.script([Break(300_000)])
    with pytest.raises(Trouble):
        await sizes()
    assert (await sizes())[0] < 1_000_000  # what is lost with a connection is little
    await storage.aclose()


def test_secrets_are_shown_nowhere(s3: S3Server) -> None:
    storage = ObjectStorage(**s3.settings, session_token="hidden token")
    assert repr(storage) == (
        f"ObjectStorage(endpoint='{s3.url}', region='us-east-1', access_key_id=***, secret_access_key=***, "
        "session_token=***)"
    )
    with pytest.raises(TypeError, match="is not pickled, as it may have secrets"):
        pickle.dumps(storage)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_is_told_that_obstore_does_not_work_there(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/x", b"x")
    assert read_file(url) == b"x"
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            read_file(url)
        except BaseException as error:
            os.write(tell, str(error).encode())
        os._exit(0)
    os.close(tell)
    assert os.waitpid(child, 0)[1] == 0
    with open(told, "rb") as answer:
        assert b"obstore does not work in a fork" in answer.read()


async def test_cancelling_ends_the_requests_at_once(s3: S3Server, proxy: Proxy, folder: str) -> None:
    urls = [s3.put(f"{folder}/{number}", b"x" * 200_000) for number in range(64)]
    proxy.holding = True
    reading = asyncio.gather(*map(aread_file, urls))
    await asyncio.to_thread(proxy.wait, lambda: len(proxy.requests) == 64)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.to_thread(proxy.wait, lambda: not proxy.open_connections, 2.0)


async def test_leaving_the_loop_with_64_requests_ends_all_connections(s3: S3Server, proxy: Proxy, folder: str) -> None:
    urls = [s3.put(f"{folder}/{number}", b"x" * 200_000) for number in range(64)]
    first = s3.put(f"{folder}/first", b"y" * 10)
    proxy.judge = lambda head: None if "first" in head else Break(how="hold")
    read = partial(FixedLengthRecordDataset, record_bytes=10)
    files = Dataset.from_tensor_slices([first, *urls]).interleave(read, cycle_length=65, num_parallel_calls=65)
    async with files.iterate() as iterator:
        async for record in iterator:
            assert record == b"y" * 10
            await asyncio.to_thread(proxy.wait, lambda: len(proxy.requests) == 65)
            break
    await asyncio.to_thread(proxy.wait, lambda: not proxy.open_connections, 2.0)
