"""`AtomicUpload`: remote files that are there whole or not at all."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiodata.engine.statistics import Counters
from aiodata.errors import RemoteError
from aiodata.storage import Trouble
from aiodata.storage.transfer.upload import PIECE_BYTES, AtomicUpload
from tests.storage.scripted import Scripted, fast, files, registered

URL = "folder://a/file.bin"


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Scripted]:
    made = Scripted(tmp_path)
    with registered("folder", lambda: made):
        yield made


def test_a_file_appears_when_it_is_complete(storage: Scripted, tmp_path: Path) -> None:
    upload = AtomicUpload(URL)
    assert upload.file.write(b"abc") == 3
    upload.file.write(memoryview(b"def"))
    upload.file.flush()
    assert files(tmp_path) == []
    upload.commit()
    assert (tmp_path / "a/file.bin").read_bytes() == b"abcdef"
    assert files(tmp_path) == ["a/file.bin"]
    upload.discard()
    assert files(tmp_path) == ["a/file.bin"]


def test_an_empty_file_is_a_file(storage: Scripted, tmp_path: Path) -> None:
    AtomicUpload(URL).commit()
    assert (tmp_path / "a/file.bin").read_bytes() == b""


def test_bytes_are_handed_over_by_the_megabyte(storage: Scripted, tmp_path: Path) -> None:
    content = os.urandom(3 * PIECE_BYTES + 5)
    upload = AtomicUpload(URL)
    upload.file.write(content[:10])
    upload.file.write(content[10:-1])
    upload.file.write(content[-1:])
    upload.commit()
    assert (tmp_path / "a/file.bin").read_bytes() == content
    assert all(size < 2 * PIECE_BYTES for size in storage.sizes)
    assert len(storage.sizes) <= 4


def test_a_zip_file_can_be_written(storage: Scripted, tmp_path: Path) -> None:
    upload = AtomicUpload(URL)
    with zipfile.ZipFile(upload.file, "w") as archive:
        archive.writestr("x.txt", b"content" * 100)
    upload.commit()
    with zipfile.ZipFile(tmp_path / "a/file.bin") as archive:
        assert archive.testzip() is None
        assert archive.read("x.txt") == b"content" * 100


def test_what_is_discarded_leaves_what_was_there(storage: Scripted, tmp_path: Path) -> None:
    first = AtomicUpload(URL)
    first.file.write(b"first")
    first.commit()
    second = AtomicUpload(URL)
    second.file.write(b"x" * PIECE_BYTES)
    assert len(files(tmp_path)) == 2
    second.discard()
    assert files(tmp_path) == ["a/file.bin"]
    assert (tmp_path / "a/file.bin").read_bytes() == b"first"
    second.discard()


@pytest.mark.parametrize("method", ["create", "write", "commit"])
def test_trouble_is_waited_out(
    storage: Scripted, tmp_path: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage.faults[method] = [Trouble("the server is busy"), ConnectionResetError("reset")]
    counters = Counters("x")
    upload = AtomicUpload("folder://a/file.bin?key=hidden", fast(), counters)
    with caplog.at_level(logging.WARNING, "aiodata"):
        upload.file.write(b"x" * PIECE_BYTES)
        upload.file.write(b"rest")
        upload.commit()
    assert counters.retries == 2
    assert [path.stat().st_size for path in tmp_path.rglob("*.bin*")] == [PIECE_BYTES + 4]
    assert [record.message.partition(";")[0] for record in caplog.records] == [
        "folder://a/file.bin?key=***: the server is busy",
        "folder://a/file.bin?key=***: reset",
    ]


@pytest.mark.parametrize("method", ["create", "write", "commit"])
def test_trouble_that_stays_is_an_error_and_leaves_nothing(storage: Scripted, tmp_path: Path, method: str) -> None:
    storage.faults[method] = [Trouble("the server is busy")] * 3
    upload = AtomicUpload(URL, fast())

    def write() -> None:
        upload.file.write(b"x" * PIECE_BYTES)
        upload.commit()

    with pytest.raises(RemoteError) as error:
        write()
    upload.discard()
    assert (error.value.url, error.value.attempts) == (URL, 3)
    assert files(tmp_path) == []


def test_what_will_not_pass_is_not_repeated(storage: Scripted, tmp_path: Path) -> None:
    storage.faults["commit"] = [PermissionError(13, "no", URL)]
    upload = AtomicUpload(URL, fast())
    upload.file.write(b"abc")
    with pytest.raises(PermissionError):
        upload.commit()
    assert storage.calls["commit"] == 1
    assert files(tmp_path) == []


def test_a_dropped_one_is_discarded(storage: Scripted, tmp_path: Path) -> None:
    upload = AtomicUpload(URL)
    upload.file.write(b"x" * PIECE_BYTES)
    with pytest.warns(ResourceWarning, match="'folder://a/file.bin' was not completed"):
        del upload
    assert files(tmp_path) == []


async def test_one_that_is_dropped_on_a_loop_does_not_hold_it(storage: Scripted, tmp_path: Path) -> None:
    upload = AtomicUpload(URL)
    await asyncio.to_thread(upload.file.write, b"x" * PIECE_BYTES)
    storage.faults["discard"] = [gate := asyncio.Event()]
    network = upload._transfer._network
    with pytest.warns(ResourceWarning):
        del upload
    assert len(files(tmp_path)) == 1  # and here we are, while it waits
    network._loop.call_soon_threadsafe(gate.set)
    while files(tmp_path):
        await asyncio.sleep(0.01)


def test_another_thread_can_end_it(storage: Scripted, tmp_path: Path) -> None:
    storage.faults["commit"] = [asyncio.Event()]
    upload = AtomicUpload(URL)
    upload.file.write(b"abc")
    errors: list[BaseException] = []

    def commit() -> None:
        try:
            upload.commit()
        except RemoteError as error:
            errors.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    while not storage.reached.is_set():
        time.sleep(0.01)
    upload.abort()
    thread.join()
    assert [str(error) for error in errors] == [f"{URL}: it was given up before it was complete"]
    assert files(tmp_path) == []
    with pytest.raises(ValueError, match=f"{URL}: the file is closed"):
        upload.file.write(b"x")


def test_a_server_that_is_gone_does_not_hold_a_discard(
    storage: Scripted, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage.faults["discard"] = [ConnectionResetError("gone")] * 9
    upload = AtomicUpload(URL, fast())
    upload.file.write(b"x" * PIECE_BYTES)
    upload.discard()
    assert storage.calls["discard"] == 3
    assert "what was written of it may be left" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_has_nothing_to_do_with_it(storage: Scripted, tmp_path: Path) -> None:
    upload = AtomicUpload(URL)
    upload.file.write(b"x" * PIECE_BYTES)
    child = os.fork()
    if not child:
        try:
            upload.file.write(b"y")
        except ValueError:
            upload.discard()
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    upload.commit()
    assert (tmp_path / "a/file.bin").stat().st_size == PIECE_BYTES


def test_memory_is_bounded(storage: Scripted) -> None:
    piece = b"x" * 100_000
    upload = AtomicUpload(URL)
    tracemalloc.start()
    try:
        for _ in range(500):
            upload.file.write(piece)
        upload.commit()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4.5 * PIECE_BYTES


def test_at_the_end_of_the_program_it_is_given_up(tmp_path: Path) -> None:
    program = f"""
from tests.storage.folder_storage import FolderStorage
from aiodata.storage import register
from aiodata.storage.transfer.upload import AtomicUpload
register("folder", lambda: FolderStorage({str(tmp_path)!r}))
upload = AtomicUpload("folder://a/file.bin")
upload.file.write(b"x" * 5_000_000)
"""
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0
    assert "ResourceWarning: 'folder://a/file.bin' was not completed" in done.stderr
    assert not (tmp_path / "a/file.bin").exists()
