"""`FsspecStorage`: whatever fsspec knows, and file systems that are there already."""

from __future__ import annotations

import asyncio
import errno
import ftplib
import io
import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import RemoteError
from aiodata.options import StorageOptions
from aiodata.storage import FsspecStorage, Trouble
from aiodata.storage.kinds.bridge_faults import fault, tag_of
from tests.programs import to_list
from tests.servers.ftp import PASSWORD, FtpServer
from tests.storage.scripted import fast, files, registered

fsspec = pytest.importorskip("fsspec")
from fsspec.asyn import AsyncFileSystem, get_loop  # noqa: E402 - it is there

get_loop()  # its thread stays from here on

CONTENT = os.urandom(5_000_000)


@pytest.fixture
def memory() -> Iterator[Any]:
    found = fsspec.filesystem("memory")
    found.store.clear()
    found.pseudo_dirs[:] = [""]
    yield found
    found.store.clear()
    found.pseudo_dirs[:] = [""]


@pytest.fixture
def ftp(tmp_path: Path) -> Iterator[FtpServer]:
    pytest.importorskip("pyftpdlib")
    with FtpServer(tmp_path) as server:
        yield server


def read(url: str, **options: Any) -> bytes:
    from aiodata.whole_file import read_file

    return read_file(url, StorageOptions(**options))


def options(**limits: Any) -> aiodata.Options:
    found = aiodata.Options()
    found.storage = fast(**limits)
    return found


# Reading


def test_lines_of_a_file_in_memory(memory: Any) -> None:
    memory.pipe_file("/a/b.txt", b"one\ntwo\n")
    assert to_list(aiodata.TextLineDataset("memory://a/b.txt")) == [b"one", b"two"]


def test_a_large_file_is_read_in_ranges(memory: Any) -> None:
    memory.pipe_file("/a.bin", CONTENT)
    assert read("memory://a.bin", chunk_bytes=100_000) == CONTENT


def test_an_empty_file(memory: Any) -> None:
    memory.pipe_file("/a.bin", b"")
    assert read("memory://a.bin") == b""


def test_a_state_is_restored_by_a_range(memory: Any) -> None:
    memory.pipe_file("/a.txt", b"".join(b"%d\n" % number for number in range(100_000)))
    iterator = aiodata.TextLineDataset("memory://a.txt").iterate()
    with iterator:
        for _ in range(70_000):
            next(iterator)
        state = iterator.state_dict()
    with aiodata.TextLineDataset("memory://a.txt").iterate(state) as restored:
        assert [int(x) for x in restored] == list(range(70_000, 100_000))


def test_what_is_missing_or_a_folder(memory: Any) -> None:
    memory.pipe_file("/a/b.txt", b"one")
    with pytest.raises(FileNotFoundError) as missing:
        read("memory://none.txt")
    assert missing.value.filename == "memory://none.txt"
    with pytest.raises(IsADirectoryError, match="memory://a is a folder"):
        read("memory://a")


@pytest.mark.parametrize("size", [len(CONTENT), len(CONTENT) - 500_000, len(CONTENT) + 500_000])
def test_a_file_that_is_replaced_meanwhile_is_an_error(memory: Any, size: int) -> None:
    """The next file may have the same size; what has been read by then is of the first one."""
    memory.pipe_file("/a.bin", CONTENT)
    other = bytes(size)
    dataset = aiodata.FixedLengthRecordDataset("memory://a.bin", 1000)
    limits = aiodata.Options()
    limits.storage = StorageOptions(chunk_bytes=100_000, read_ahead_bytes=100_000)
    with dataset.with_options(limits).iterate() as iterator:
        assert next(iterator) == CONTENT[:1000]
        memory.pipe_file("/a.bin", other)
        with pytest.raises(RemoteError, match="replaced"):
            for _ in iterator:
                pass


def test_few_look_ups() -> None:
    """A file is looked up when it is opened and when its end is reached, not for each range."""
    small = Recording({"/a.bin": CONTENT})
    with registered("own", partial(FsspecStorage, small)):
        assert read("own://a.bin", chunk_bytes=100_000) == CONTENT
        assert small.calls.count("info") <= 3
        assert small.calls.count("cat_file") == 50
        small.calls.clear()
        assert read("own://a.bin", chunk_bytes=10_000_000) == CONTENT
        assert small.calls == ["info", "cat_file"]


class Recording:
    """What looks like a file system of fsspec's: one that a user has."""

    protocol = ("something",)

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.calls: list[str] = []
        self.threads: set[str] = set()
        self.faults: list[Exception] = []

    def info(self, path: str) -> dict[str, Any]:
        self._called("info")
        return {"name": path, "size": len(self.files["/" + path]), "type": "file", "etag": "1"}

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        self._called("cat_file")
        return self.files["/" + path][start:end]

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self.threads.add(threading.current_thread().name)
        if self.faults:
            raise self.faults.pop()


def test_one_that_is_there_is_taken_and_called_in_threads() -> None:
    mine = Recording({"/a.txt": b"one\ntwo"})
    with registered("own", partial(FsspecStorage, mine)):
        assert to_list(aiodata.TextLineDataset("own://a.txt")) == [b"one", b"two"]
    assert mine.threads == {"aiodata-fsspec"}


def test_trouble_is_waited_out() -> None:
    mine = Recording({"/a.txt": b"one\ntwo"})
    mine.faults = [ConnectionResetError("reset"), OSError(errno.EBUSY, "slow down"), EOFError()]
    with registered("own", partial(FsspecStorage, mine)):
        dataset = aiodata.TextLineDataset("own://a.txt").with_options(options(max_attempts=4))
        assert to_list(dataset) == [b"one", b"two"]


def test_a_file_of_unknown_size_is_read_to_its_end() -> None:
    class Unknown(Recording):
        def info(self, path: str) -> dict[str, Any]:
            return super().info(path) | {"size": None}

        def open(self, path: str, mode: str) -> io.BytesIO:
            assert mode == "rb"
            return io.BytesIO(self.files["/" + path])

    with registered("own", partial(FsspecStorage, Unknown({"/a.bin": CONTENT}))):
        assert read("own://a.bin") == CONTENT


class Asynchronous(AsyncFileSystem):  # type: ignore[misc, unused-ignore]
    """One whose methods are coroutines."""

    protocol = "asynchronous"
    cachable = False

    def __init__(self, **storage: Any) -> None:
        super().__init__(**storage)
        self.at_once = self.most = 0
        self.files: dict[str, bytes] = {}

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        if path not in self.files:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.files[path]), "type": "file", "ETag": str(id(self.files[path]))}

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(0.05)
            return self.files[path][start:end]
        finally:
            self.at_once -= 1

    async def _put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        self.files[rpath] = Path(lpath).read_bytes()

    async def _rm_file(self, path: str, **_: Any) -> None:
        del self.files[path]


def test_an_asynchronous_one_has_many_requests_under_way_and_needs_no_threads() -> None:
    mine = Asynchronous()
    mine.files = {f"{number}.txt": b"%d" % number for number in range(64)}
    with registered("asynchronous", partial(FsspecStorage, mine, threads=1)):
        names = Dataset.from_tensor_slices([f"asynchronous://{number}.txt" for number in range(64)])
        dataset = names.interleave(aiodata.TextLineDataset, cycle_length=64, num_parallel_calls=64)
        assert to_list(dataset) == [b"%d" % number for number in range(64)]
    assert mine.most > 32


def test_an_asynchronous_one_is_written_to() -> None:
    mine = Asynchronous()
    with registered("asynchronous", partial(FsspecStorage, mine)), aiodata.TFRecordWriter("asynchronous://a") as writer:
        writer.write(b"one")
    assert list(mine.files) == ["a"]


def test_arguments() -> None:
    with pytest.raises(ValueError, match="threads must be at least 1, not 0"):
        FsspecStorage(threads=0)
    with pytest.raises(TypeError, match="settings are for a file system that is made"):
        FsspecStorage(Recording({}), host="x")
    with pytest.raises(ValueError, match="asynchronous=True belongs to the loop"):
        FsspecStorage(Asynchronous(asynchronous=True))


# Schemes


def test_an_unknown_scheme_is_named_without_secrets() -> None:
    with pytest.raises(ValueError, match=r"nix://\*\*\*@host/a: nothing is known of the scheme 'nix'") as error:
        read("nix://ann:secret@host/a")
    assert "aiodata.storage.register" in str(error.value)
    assert "secret" not in str(error.value)


def test_without_fsspec_the_scheme_and_the_extra_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"hf:// needs fsspec: pip install 'aiodata-pipeline\[fsspec\]'"):
        read("hf://datasets/a")


def test_a_file_within_another_one(memory: Any) -> None:
    with io.BytesIO() as content:
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("a/1.txt", "one")
            archive.writestr("a/2.txt", "two")
            archive.writestr("b/3.txt", "three")
        memory.pipe_file("/x.zip", content.getvalue())
    names = Dataset.list_files("zip://a/*.txt::memory://x.zip", shuffle=False)
    assert to_list(names) == [b"zip://a/1.txt::memory://x.zip", b"zip://a/2.txt::memory://x.zip"]
    assert to_list(names.flat_map(aiodata.TextLineDataset)) == [b"one", b"two"]
    assert read("simplecache::memory://x.zip") == memory.cat_file("/x.zip")


# Listing


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.txt", "deep", "x[1].txt"]),
        ("*.txt", ["a.txt", "x[1].txt"]),
        ("**", ["a.txt", "deep", "x[1].txt"]),
        ("deep/*", ["deep/.hidden", "deep/b.txt", "deep/c.csv", "deep/er"]),
        ("*/*.txt", ["deep/b.txt"]),
        ("deep/[^b]*", ["deep/.hidden", "deep/c.csv", "deep/er"]),
        ("deep/?.txt", ["deep/b.txt"]),
        ("*/er/*", ["deep/er/d.txt"]),
        ("d*/er/d.txt", ["deep/er/d.txt"]),
        ("x\\[1].txt", ["x[1].txt"]),
        ("deep/b.txt", ["deep/b.txt"]),
        ("a.txt/*", []),
        ("none/*", []),
        ("none", []),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "ftp"])
def test_patterns(memory: Any, ftp: FtpServer, tmp_path: Path, kind: str, pattern: str, found: list[str]) -> None:
    names = ["a.txt", "x[1].txt", "deep/.hidden", "deep/b.txt", "deep/c.csv", "deep/er/d.txt"]
    for name in names:
        memory.pipe_file(f"/root/{name}", b"")
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).touch()
    start = "memory://root/" if kind == "memory" else ftp.url("root/")

    async def listed() -> list[str]:
        storage = FsspecStorage()
        try:
            return await storage.list(start + pattern)
        finally:
            await storage.aclose()

    assert asyncio.run(listed()) == [start + name for name in found]


# FTP


def test_a_large_file_by_ftp(ftp: FtpServer, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(CONTENT)
    assert read(ftp.url("a.bin"), chunk_bytes=500_000) == CONTENT


def test_errors_by_ftp_have_no_password(ftp: FtpServer) -> None:
    with pytest.raises(FileNotFoundError) as error:
        read(ftp.url("none"))
    assert PASSWORD not in str(error.value)
    with pytest.raises(RemoteError, match="530") as refused:
        read(ftp.url("none").replace(PASSWORD, "wrong-password"))
    assert "wrong-password" not in str(refused.value)


@pytest.mark.parametrize("command", ["PASS", "MLSD", "RETR"])
def test_a_connection_that_breaks_is_made_anew(ftp: FtpServer, tmp_path: Path, command: str) -> None:
    (tmp_path / "a.bin").write_bytes(CONTENT)
    ftp.cut.add(command)
    dataset = aiodata.FixedLengthRecordDataset(ftp.url("a.bin"), 1000).with_options(options())
    assert b"".join(to_list(dataset)) == CONTENT
    assert ftp.cut == set()


def test_a_file_of_a_user_s_own_by_ftp(ftp: FtpServer, tmp_path: Path) -> None:
    """One connection serves one thread."""
    (tmp_path / "a.bin").write_bytes(CONTENT)
    from tests.servers.ftp import USER

    mine = fsspec.filesystem("ftp", host="127.0.0.1", port=ftp.port, username=USER, password=PASSWORD)
    with registered("own", partial(FsspecStorage, mine, threads=1)):
        assert read("own://a.bin", chunk_bytes=500_000) == CONTENT


@pytest.mark.parametrize("command", ["", "STOR", "RNTO", "MKD", "DELE"])
def test_a_dataset_is_saved_by_ftp(ftp: FtpServer, tmp_path: Path, command: str) -> None:
    Dataset.range(10).save(ftp.url("sets/a"))
    if command:
        ftp.cut.add(command)
    Dataset.range(5).with_options(options()).save(ftp.url("sets/a"))
    assert ftp.cut == set()
    assert [int(x) for x in Dataset.load(tmp_path / "sets/a")] == list(range(5))
    assert len(files(tmp_path)) == 2
    assert len(list((tmp_path / "sets/a").iterdir())) == 2  # no empty folder


# Writing


def test_a_saved_dataset_in_memory(memory: Any) -> None:
    dataset = Dataset.range(1000).map(lambda x: {"x": x, "t": b"t" * (x % 7)})
    dataset.save("memory://sets/a")
    assert to_list(Dataset.load("memory://sets/a")) == to_list(dataset)
    Dataset.range(5).save("memory://sets/a", "GZIP")
    assert [int(x) for x in Dataset.load("memory://sets/a")] == list(range(5))
    assert len(memory.find("/sets")) == 2


def test_what_is_discarded_is_not_sent(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with suppress(KeyError), aiodata.TFRecordWriter("memory://a.tfrecord") as writer:
        for _ in range(9):
            writer.write(b"x" * (1 << 20))
        assert len(files(tmp_path)) == 1
        raise KeyError
    assert memory.find("/") == []
    assert files(tmp_path) == []


# What errors and details mean


class Response:
    def __init__(self, status: int, **headers: str) -> None:
        self.status_code = status
        self.headers = headers


class HubError(OSError):
    def __init__(self, response: Response) -> None:
        super().__init__(f"status {response.status_code} for fs://ann:secret@host/a")
        self.response = response


class ReadTimeout(Exception):
    """Named as a client of networks would."""


def missing(cause: Exception) -> Exception:
    """Give what a file system says that calls everything that fails a missing file."""
    error = FileNotFoundError("http://host/a")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("a"), FileNotFoundError),
        (missing(KeyError("a")), FileNotFoundError),
        (missing(HubError(Response(404))), FileNotFoundError),
        (missing(HubError(Response(429))), Trouble),
        (missing(HubError(Response(403))), PermissionError),
        (missing(ConnectionRefusedError()), ConnectionRefusedError),
        (PermissionError(13, "no"), PermissionError),
        (HubError(Response(404)), FileNotFoundError),
        (HubError(Response(403)), PermissionError),
        (HubError(Response(503)), Trouble),
        (HubError(Response(400)), RemoteError),
        (ReadTimeout("slow"), Trouble),
        (EOFError(), Trouble),
        (OSError(errno.ECONNRESET, "reset"), ConnectionResetError),
        (OSError(errno.ENOSPC, "full"), RemoteError),
        (ftplib.error_temp("421 too many"), Trouble),
        (ftplib.error_perm("550 No such file"), FileNotFoundError),
        (ftplib.error_perm("530 who?"), RemoteError),
        (NotImplementedError(), io.UnsupportedOperation),
        (TypeError("a fault in a program"), TypeError),
    ],
)
def test_errors(error: Exception, kind: type[Exception]) -> None:
    found = fault(error, "fs://ann:secret@host/a")
    assert type(found) is kind
    assert "secret" not in str(found)


def test_the_server_s_wait_is_kept() -> None:
    found = fault(HubError(Response(429, **{"Retry-After": "7"})), "fs://a")
    assert isinstance(found, Trouble)
    assert found.wait_seconds == 7


@pytest.mark.parametrize(
    ("details", "tag"),
    [
        ({"ETag": '"1"', "mtime": 1.5}, '"1"'),
        ({"mtime": 1.5}, "1.5"),
        ({"LastModified": datetime(2026, 1, 2, tzinfo=UTC)}, "2026-01-02T00:00:00+00:00"),
        ({"CRC": 0}, "0"),
        ({"etag": None, "size": 1}, ""),
    ],
)
def test_tags(details: dict[str, Any], tag: str) -> None:
    assert tag_of(details) == tag


@pytest.mark.parametrize("kind", ["simplecache", "blockcache"])
def test_a_web_server_behind_a_cache_that_fails_for_a_while(kind: str) -> None:
    pytest.importorskip("aiohttp")
    from tests.servers.http import HttpServer
    from tests.servers.http_faults import Status

    with HttpServer() as server:
        server.files["/a.txt"] = b"one\n"
        server.script("/a.txt", [Status(503)] * 4)
        assert read(f"{kind}::{server.url}/a.txt", first_wait_seconds=0.01, max_wait_seconds=0.01) == b"one\n"
    with pytest.raises((RemoteError, ConnectionError)):
        read(f"{kind}::{server.url}/b.txt", first_wait_seconds=0.01, max_wait_seconds=0.01, max_attempts=2)
