"""The contract of exact resume for what is read from servers, at every element, alone and within other stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset
from tests.resume.saving import FACES, along, check_rest, drive, relay
from tests.servers.http import HttpServer
from tests.sources.test_from_socket import Server, ask, numbered, serving

if TYPE_CHECKING:
    from tests.servers.http_answers import Request
    from tests.servers.http_connection import Body

Make = Callable[[HttpServer], Dataset[Any]]
WAYS = [(0,), (1, 2)]


async def send_events(body: Body, request: Request) -> None:
    """Send twelve events, from the one behind the last id that the client has; every third has an id."""
    body.headers["content-type"] = "text/event-stream"
    last = int(request.headers.get("last-event-id", -1))
    for number in range(last + 1, 12):
        await body((f"id: {number}\n" if number % 3 == 0 else "").encode() + b"data: event %d\n\n" % number)


async def send_lines(body: Body, request: Request) -> None:
    """Send lines in pieces that end anywhere, without an ETag."""
    text = b"".join(b"line %d%s\n" % (number, b"." * number * 30) for number in range(25))
    for begin in range(0, len(text), 777):
        await body(text[begin : begin + 777])


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with HttpServer() as made:
        for number in range(4):
            made.files[f"/{number}"] = b"".join(b"%d.%d\n" % (number, line) for line in range(3 * number))
        made.files["/records"] = b"\1a\0\3ccc\2bb\0\5dd"
        made.streams["/events"] = send_events
        made.streams["/lines"] = send_lines
        yield made


def urls(server: HttpServer, *paths: str) -> list[str]:
    return [server.url + path for path in paths]


ALL_FILES = ("/0", "/1", "/2", "/no", "/3")
HTTP: dict[str, Make] = {
    "response": lambda server: Dataset.from_http(server.url + "/3"),
    "response: missing": lambda server: Dataset.from_http(server.url + "/no"),
    "response: several": lambda server: Dataset.from_http(urls(server, *ALL_FILES)),
    "response: parallel": lambda server: Dataset.from_http(urls(server, *ALL_FILES), num_parallel_calls=3),
    "lines": lambda server: Dataset.from_http(server.url + "/3", "lines"),
    "lines: no ETag": lambda server: Dataset.from_http(server.url + "/lines", "lines"),
    "lines: several": lambda server: Dataset.from_http(urls(server, *ALL_FILES), "lines"),
    "lines: parallel": lambda server: Dataset.from_http(urls(server, *ALL_FILES, "/lines"), "lines", 2),
    "lines: too long": lambda server: Dataset.from_http(urls(server, "/lines", "/2"), "lines", max_record_bytes=400),
    "records: cut short": lambda server: Dataset.from_http(urls(server, "/records") * 2, "records", length_bytes=1),
    "events": lambda server: Dataset.from_http(server.url + "/events", "events"),
    "events: several": lambda server: Dataset.from_http(urls(server, "/events", "/no", "/events"), "events", 2),
}
AROUND: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "itself": lambda ds: ds,
    "batch": lambda ds: ds.batch(3),
    "flat_map": lambda ds: Dataset.range(2).flat_map(lambda _: ds),
    "interleave": lambda ds: Dataset.range(3).interleave(lambda _: ds, 2, 3),
    "prefetch": lambda ds: ds.prefetch(3),
    "repeat": lambda ds: ds.repeat(2),
    "shuffle": lambda ds: ds.shuffle(3, seed=1),
    "zip": lambda ds: Dataset.zip(Dataset.range(100), ds),
}


def check(make: Callable[[], Dataset[Any]], face: str) -> None:
    async def work() -> None:
        straight, states = await along(make(), face)
        assert straight
        for number, state in enumerate(states):
            way = WAYS[(number + FACES.index(face)) % 2]
            found = await relay(make, face, state, way)
            check_rest(f"restored before pull {number}, then after {way} more", found, straight[number:])

    drive(face, work())


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("form", HTTP)
def test_http(server: HttpServer, form: str, face: str) -> None:
    pytest.importorskip("aiohttp", reason="HTTP needs aiohttp")
    check(lambda: HTTP[form](server), face)


@pytest.mark.slow
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("form", HTTP)
def test_http_within_other_stages(server: HttpServer, form: str, around: str) -> None:
    pytest.importorskip("aiohttp", reason="HTTP needs aiohttp")
    check(lambda: AROUND[around](HTTP[form](server)), "sync")


@pytest.fixture(scope="module")
def tcp() -> Iterator[Server]:
    with serving(numbered(10, [])) as made:
        yield made


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("around", AROUND)
def test_socket(tcp: Server, around: str, face: str) -> None:
    check(lambda: AROUND[around](tcp.dataset(hello=ask)), face)
