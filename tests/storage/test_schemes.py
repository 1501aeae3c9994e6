"""What is a URL, and which storage reads it."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import aiodata
from aiodata.storage import FsspecStorage, HttpStorage, ObjectStorage, Storage, register
from aiodata.storage.schemes import is_remote, local_path, new_storage
from aiodata.storage.transfer.network import Lease
from tests.storage.folder_storage import FolderStorage
from tests.storage.scripted import registered


@pytest.mark.parametrize("url", ["http://a", "S3://b/c", "my-scheme+1.x://a", "zip://a::http://b", "a://"])
def test_urls(url: str) -> None:
    assert is_remote(url)


@pytest.mark.parametrize(
    "path",
    ["", "a", "/a/b", "a:b", "://a", "1a://b", "/a://b", "./http://a", "file:///a", "FILE:///a", "a b://c", "é://a"],
)
def test_paths(path: str) -> None:
    assert not is_remote(path)


def test_files_as_urls(tmp_path: Path) -> None:
    path = tmp_path / "a b%é.txt"
    assert local_path(path.as_uri()) == str(path)
    assert local_path(path.as_uri().replace("file://", "FILE://localhost")) == str(path)
    assert local_path(str(path)) == str(path)
    with pytest.raises(ValueError, match="a file:// URL must name a file of this machine"):
        local_path("file://elsewhere/a")


def test_the_storages_that_are_built_in() -> None:
    known: dict[Any, Storage] = {}
    for package, url, kind in (
        ("aiohttp", "https://a/b", "HttpStorage"),
        ("obstore", "s3://a/b", "ObjectStorage"),
        ("fsspec", "memory://a/b", "FsspecStorage"),
    ):
        pytest.importorskip(package)
        found = new_storage(url, known)
        assert type(found).__name__ == kind
        assert new_storage(url.upper(), known) is found
    assert {FsspecStorage.__name__, HttpStorage.__name__, ObjectStorage.__name__} == {
        type(s).__name__ for s in known.values()
    }


class One(FolderStorage):
    """One of several."""

    def __init__(self, name: str = "") -> None:
        super().__init__("/")
        self.name = name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("mine://a/b", "scheme"),
        ("MINE://a/b", "scheme"),
        ("mine://data", "bucket"),
        ("mine://data/b", "bucket"),
        ("mine://data?x", "bucket"),
        ("mine://database/b", "scheme"),
        ("mine://data/deep/er", "folder"),
        ("mine://data/deep", "bucket"),
    ],
)
def test_the_longest_beginning_that_fits(url: str, name: str) -> None:
    with registered("mine", lambda: One("scheme")):
        register("mine://data", lambda: One("bucket"))
        register("mine://data/deep/", lambda: One("folder"))
        found: Any = new_storage(url, {})
        assert found.name == name


def test_what_is_registered_again_is_replaced_for_what_begins_from_then_on() -> None:
    with closing(Lease()) as lease, registered("mine", lambda: One("first")):

        async def name() -> str:
            found: Any = lease.network.storage("mine://a")
            return str(found.name)

        assert lease.network.wait(name()) == "first"
        register("mine", lambda: One("second"))
        assert lease.network.wait(name()) == "second"


def test_registering_while_others_read() -> None:
    stop = threading.Event()
    with registered("mine", One):

        def add() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                register(f"mine://bucket-{number % 1000}", One)

        thread = threading.Thread(target=add)
        thread.start()
        try:
            known: dict[Any, Storage] = {}
            for _ in range(300):
                new_storage("mine://x/y", known)
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    ("prefix", "error"), [("", ValueError), ("a b", ValueError), ("1x", ValueError), ("://", ValueError)]
)
def test_wrong_prefixes(prefix: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="register: prefix must be a scheme or begin with one"):
        register(prefix, One)


def test_wrong_storages() -> None:
    storage: Any = One()
    with pytest.raises(TypeError, match="register: storage must be a class of storages, or make one, not <tests"):
        register("mine", storage)


def test_a_local_file_by_a_registered_scheme(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n")
    with registered("mine", lambda: FolderStorage(tmp_path)):
        assert list(aiodata.TextLineDataset("mine://a.txt")) == [b"one", b"two"]
        assert aiodata.read_file("MINE://a.txt") == b"one\ntwo\n"


def test_what_gives_no_storage_is_refused_when_it_is_made() -> None:
    wrong: Any = lambda: 3  # noqa: E731
    known: dict[Any, Storage] = {}
    with registered("mine", wrong):
        with pytest.raises(TypeError, match="what is registered for 'mine://' must give a Storage, and gave 3"):
            new_storage("mine://a", known)
        assert known == {}
