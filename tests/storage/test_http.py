"""Readers take URLs of web servers as they take paths: the same elements, whatever stands around them."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aiodata
from aiodata import AUTOTUNE, Dataset, StorageOptions, TextLineDataset
from aiodata.errors import RemoteError
from tests.programs import assert_gives, assert_outcomes, assert_same, collect, to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import Garbage, Headers, ResetBefore, Status
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
        (tmp_path / str(number)).write_bytes(made(name, "")[: None if number % 2 else 0])
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
                files.flat_map(lambda path: read(name, "", path)).shuffle(10, seed=4, reshuffle_each_iteration=False).batch(3).prefetch(1),
            )
        ]

    for local, remote in zip(pipelines(paths), pipelines(urls), strict=True):
        expected = to_list(local)
        assert_same(to_list(remote), expected)
        assert_same(asyncio.run(collect(remote)), expected)


@pytest.mark.parametrize("parallel", [{}, {"num_parallel_reads": 3}])
def test_a_list_of_files_of_which_some_are_local(parallel: dict[str, int], server: HttpServer, tmp_path: Path) -> None:
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


def test_connections_are_used_again(server: HttpServer) -> None:
    with HttpServer() as other:
        other.files["/b"] = b"\n" * 1000
        made_connections = []
        connected = other.connected
        other.connected = lambda connection: (made_connections.append(1), connected(connection))[1]  # type: ignore[method-assign, assignment, func-returns-value]
        read_all(lines_of(other.url + "/b", chunk_bytes=10, read_ahead_bytes=10))
        assert len(other.requests) == 100
        assert len(made_connections) == 1


# URLs


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("/d/a%2Fb.txt?x=%2F%20+&y=a/b", "/d/a%2Fb.txt?x=%2F%20+&y=a/b"),
        ("/a b.txt?q=a b", "/a%20b.txt?q=a%20b"),
        ("/é.txt?%2F=ü", "/%C3%A9.txt?%2F=%C3%BC"),
        ("/a.txt#part", "/a.txt"),
        ("/a.txt?", "/a.txt?"),
        ("/a%zz.txt", "/a%zz.txt"),
        ("?x=1", "/?x=1"),
        ("", "/"),
        ("/~a/(b)'c!;d=$e,f*:@", "/~a/(b)'c!;d=$e,f*:@"),
        ('/"<>|\\^`{}', "/%22%3C%3E%7C%5C%5E%60%7B%7D"),
        ("/line\r\nX-Bad: 1", "/line%0D%0AX-Bad:%201"),
    ],
)
def test_a_url_is_sent_as_it_is_but_for_what_must_be_quoted(url: str, sent: str, server: HttpServer) -> None:
    with pytest.raises(FileNotFoundError) if url not in ("/a.txt#part", "/a.txt?") else _nothing():
        aiodata.read_file(server.url + url, quick())
    assert [request.path for request in server.requests] == [sent.removesuffix("?") if sent == "/a.txt?" else sent]
    assert "x-bad" not in server.requests[0].headers


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


@pytest.mark.parametrize("scheme", ["http", "HTTP", "Http"])
@pytest.mark.parametrize("as_bytes", [True, False])
def test_urls_as_text_and_bytes(scheme: str, as_bytes: bool, server: HttpServer) -> None:
    url: Any = f"{scheme}://127.0.0.1:{server.port}/a.txt"
    url = url.encode() if as_bytes else url
    assert to_list(TextLineDataset(url)) == LINES
    assert to_list(TextLineDataset([url])) == LINES
    assert aiodata.read_file(url) == TEXT


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://", "http://:80/", "http:///a", "http://ex ample/", "http://a:b/"]
)
def test_what_is_no_url_is_an_error_at_once(url: str) -> None:
    with pytest.raises((ValueError, OSError)) as caught:
        aiodata.read_file(url, quick(max_attempts=1))
    assert not isinstance(caught.value, UnicodeError)


def test_bytes_that_are_no_text_are_quoted(server: HttpServer) -> None:
    with pytest.raises(FileNotFoundError):
        aiodata.read_file(server.url.encode() + b"/\xff", quick())
    assert server.requests[0].path == "/%FF"


# Redirects


def test_redirects_are_followed(server: HttpServer) -> None:
    server.redirects |= {"/x": "/y?a=%2F", "/y": "/a.txt", "/loop": "/loop", "/out": "ftp://127.0.0.1/a"}
    assert to_list(TextLineDataset(server.url + "/x")) == LINES
    assert [request.path for request in server.requests] == ["/x", "/y?a=%2F", "/a.txt"]
    with pytest.raises(RemoteError, match="too many redirects"):
        aiodata.read_file(server.url + "/loop")
    with pytest.raises(RemoteError, match="it redirects to what is no URL that can be read"):
        aiodata.read_file(server.url + "/out")


def test_a_redirect_to_another_server_takes_no_login_along(server: HttpServer) -> None:
    with HttpServer() as other:
        other.files["/b.txt"] = b"there\n"
        server.redirects["/x"] = f"http://localhost:{other.port}/b.txt?X-Amz-Signature=12%2F34"
        assert to_list(TextLineDataset(f"http://ann:secret@127.0.0.1:{server.port}/x")) == [b"there"]
        assert "authorization" in server.requests[0].headers
        assert "authorization" not in other.requests[0].headers
        assert other.requests[0].path == "/b.txt?X-Amz-Signature=12%2F34"


# Secrets

SECRETS = ("pass-word", "sig-nature", "to%2Fken", "to/ken")
SIGNED = "http://user:pass-word@127.0.0.1:{port}/{name}?part=1&X-Amz-Signature=sig-nature&token=to%2Fken"


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + str(pickle.dumps(error))


@pytest.mark.parametrize(
    "fault",
    [Status(500), Status(404), Status(403), Status(418), ResetBefore(), Garbage(), Headers({"content-encoding": "br"})],
)
def test_secrets_are_shown_nowhere(fault: Any, server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "aiodata")
    server.script("/a.txt", [fault] * 9)
    url = SIGNED.format(port=server.port, name="a.txt")
    ds = lines_of(url, max_attempts=2)
    with ds.iterate() as iterator:
        with pytest.raises(OSError) as caught:
            next(iterator)
        texts = [shown(caught.value), repr(iterator.state_dict()), repr(iterator.statistics())]
    with pytest.raises(OSError) as caught:
        aiodata.read_file(url, quick(max_attempts=2))
    texts += [shown(caught.value), repr(ds), caplog.text, repr(Dataset.list_files(url))]
    assert not [(secret, text) for secret in SECRETS for text in texts if secret in text]
    assert "part=1" in shown(caught.value)


def test_secrets_of_a_redirect_are_shown_nowhere(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    there = SIGNED.format(port=1, name="b")
    server.redirects |= {"/x": there, "/y": there.replace("http:", "gopher:"), "/z": SIGNED.format(port="no", name="")}
    for name in "xyz":
        with pytest.raises(OSError) as caught:
            aiodata.read_file(f"{server.url}/{name}", quick(max_attempts=2))
        assert not [secret for secret in SECRETS if secret in shown(caught.value) + caplog.text]


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
