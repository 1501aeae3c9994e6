"""Readers take URLs of web servers as they take paths: the same elements, whatever stands around them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import aiodata
from aiodata import AUTOTUNE, Dataset, StorageOptions, TextLineDataset
from aiodata.errors import RemoteError
from tests.programs import assert_gives, assert_outcomes, assert_same, collect, to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import ResetBefore, Status
from tests.storage.remote_files import (
    KINDS,
    LINES,
    READERS,
    TEXT,
    counted,
    limited,
    lines_of,
    made,
    quick,
    read,
    read_all,
)

if TYPE_CHECKING:
    from tests.servers.http_connection import Connection

pytest.importorskip("aiohttp")


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        started.files["/a.txt"] = TEXT
        yield started
        started.wait_for_no_connections()


# Readers


@pytest.mark.parametrize(("name", "compression"), KINDS)
def test_a_reader_gives_what_it_gives_of_a_local_file(
    name: str, compression: str, server: HttpServer, tmp_path: Path
) -> None:
    data = made(name, compression)
    (tmp_path / "a").write_bytes(data)
    server.files["/a"] = data
    local = to_list(read(name, compression, str(tmp_path / "a")))
    assert len(local) > 7
    assert_gives(limited(read(name, compression, server.url + "/a")), local)
    assert_gives(limited(read(name, compression, server.url + "/a"), chunk_bytes=100, read_ahead_bytes=300), local)


@pytest.mark.parametrize("name", READERS)
def test_readers_behind_each_other_and_beside_each_other(name: str, server: HttpServer, tmp_path: Path) -> None:
    paths, urls = [], []
    for number in range(6):
        (tmp_path / str(number)).write_bytes(made(name, "")[: None if number % 2 or name == "tar" else 0])
        server.files[f"/{number}"] = (tmp_path / str(number)).read_bytes()
        paths.append(str(tmp_path / str(number)))
        urls.append(f"{server.url}/{number}")

    def pipelines(names: list[str]) -> list[Dataset[Any]]:
        files = Dataset.from_tensor_slices(names)
        return [
            limited(each)
            for each in (
                read(name, "", names),
                files.interleave(lambda path: read(name, "", path), 4, 2, num_parallel_calls=4),
                files.interleave(lambda path: read(name, "", path), 2, num_parallel_calls=AUTOTUNE).prefetch(3),
                files.flat_map(lambda path: read(name, "", path))
                .shuffle(10, seed=4, reshuffle_each_iteration=False)
                .batch(3)
                .prefetch(1),
            )
        ]

    for local, remote in zip(pipelines(paths), pipelines(urls), strict=True):
        expected = to_list(local)
        assert_same(to_list(remote), expected)
        assert_same(asyncio.run(collect(remote)), expected)


@pytest.mark.parametrize("parallel", [{}, {"num_parallel_reads": 3}])
def test_a_list_of_files_of_which_some_are_local(parallel: dict[str, Any], server: HttpServer, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"local\n")
    ds = TextLineDataset([server.url + "/a.txt", str(tmp_path / "b.txt"), (tmp_path / "b.txt").as_uri()], **parallel)
    assert sorted(to_list(ds)) == sorted([*LINES, b"local", b"local"])


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 200, 201, 1000])
@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("chunked", [True, False])
def test_files_about_as_long_as_a_chunk(size: int, ranges: bool, chunked: bool, server: HttpServer) -> None:
    server.files["/b"] = bytes(range(256)) * 4
    server.files["/b"] = server.files["/b"][:size]
    server.ranges, server.chunked = ranges, chunked
    assert aiodata.read_file(server.url + "/b", quick(chunk_bytes=100, read_ahead_bytes=250)) == server.files["/b"]


def test_chunks_are_as_many_requests_as_they_must_be(server: HttpServer) -> None:
    server.files["/b"] = b"\n" * 1000
    elements, requests, retries = read_all(lines_of(server.url + "/b", chunk_bytes=300, read_ahead_bytes=600))
    assert (len(elements), requests, retries) == (1000, 4, 0)
    assert sorted(request.range or () for request in server.requests) == [(0, 299), (300, 599), (600, 899), (900, 999)]


class Counting(HttpServer):
    """Counts connections."""

    made = 0

    def connected(self, connection: Connection) -> None:
        self.made += 1
        super().connected(connection)


def test_connections_are_used_again() -> None:
    with Counting() as server:
        server.files["/b"] = b"\n" * 1000
        read_all(lines_of(server.url + "/b", chunk_bytes=10, read_ahead_bytes=10))
        assert (len(server.requests), server.made) == (100, 1)


# Whole files, and lists


async def test_whole_files(server: HttpServer, tmp_path: Path) -> None:
    server.files["/b"] = bytes(range(256)) * 20_000
    (tmp_path / "c").write_bytes(b"local")
    assert await asyncio.to_thread(aiodata.read_file, server.url + "/b") == server.files["/b"]
    assert await aiodata.aread_file((server.url + "/b").encode()) == server.files["/b"]
    for path in (tmp_path / "c", str(tmp_path / "c"), (tmp_path / "c").as_uri()):
        assert (await aiodata.aread_file(path), aiodata.read_file(path)) == (b"local", b"local")
    for read_it in (aiodata.read_file, aiodata.aread_file):
        ds = Dataset.from_tensor_slices([server.url + "/b", server.url + "/a.txt"]).map(read_it, num_parallel_calls=2)
        assert [element async for element in ds] == [server.files["/b"], TEXT]


def test_a_whole_file_fails_in_its_place_among_others(server: HttpServer) -> None:
    ds = Dataset.from_tensor_slices([f"{server.url}/{name}" for name in ("a.txt", "none", "a.txt")])
    assert_outcomes(ds.map(aiodata.read_file), [TEXT, FileNotFoundError, TEXT])
    assert_outcomes(ds.map(aiodata.aread_file, num_parallel_calls=3), [TEXT, FileNotFoundError, TEXT])


async def test_options_of_a_whole_file_count(server: HttpServer) -> None:
    server.script("/a.txt", [Status(503)] * 3)
    with pytest.raises(RemoteError, match=r"a.txt, byte 0: the server answered 503 .* \(tried 2 times\)"):
        await aiodata.aread_file(server.url + "/a.txt", quick(max_attempts=2))
    assert len(server.requests) == 2


def test_a_list_is_the_file_itself_if_it_is_there(server: HttpServer, tmp_path: Path) -> None:
    url = server.url + "/a.txt"
    assert to_list(Dataset.list_files(url, shuffle=False)) == [url.encode()]
    assert to_list(Dataset.list_files([url, url.encode()])) == [url.encode()] * 2
    with pytest.raises(FileNotFoundError, match=r"list_files: no file matches 'http://.*/none'"):
        to_list(Dataset.list_files(server.url + "/none"))
    with pytest.raises(ValueError, match=r"HTTP has no listing of files, so a URL can have no wildcards"):
        to_list(Dataset.list_files(server.url + "/*.txt"))
    (tmp_path / "b.txt").touch()
    assert to_list(Dataset.list_files(f"{tmp_path.as_uri()}/*.txt", shuffle=False)) == [bytes(tmp_path / "b.txt")]


def test_looking_for_a_file_of_a_server_without_ranges_leaves_no_connection(server: HttpServer) -> None:
    server.ranges = False
    server.files["/big"] = bytes(50_000_000)
    with Dataset.list_files(server.url + "/big").iterate() as iterator:
        assert list(iterator) == [f"{server.url}/big".encode()]
        assert counted(iterator) == (1, 0)


def test_a_list_is_asked_for_again(server: HttpServer) -> None:
    server.script("/a.txt", [Status(503), ResetBefore()])
    elements, requests, retries = read_all(limited(Dataset.list_files(server.url + "/a.txt")))
    assert (len(elements), requests, retries) == (1, 3, 2)


def test_limits_are_checked_when_they_are_set() -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        StorageOptions(max_attempts=0)
