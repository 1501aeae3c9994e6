"""Answers with ranges that are not quite what was asked for: other marks, other forms, fewer bytes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from aiodata import Dataset
from aiodata.errors import RemoteError
from tests.programs import outcomes, to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import CutAt, Fault, Headers, IgnoreRange, Normal
from tests.storage.remote_files import LINES, TEXT, counted, limited, lines_of

if TYPE_CHECKING:
    from tests.servers.http_answers import Answer

pytest.importorskip("aiohttp")


class Capped(Fault):
    """No more than a few bytes of a range."""

    def spoil(self, answer: Answer) -> None:
        if answer.status == 206:
            span, _, size = str(answer.headers["content-range"]).partition("/")
            first = int(span.removeprefix("bytes ").partition("-")[0])
            answer.body = answer.body[:100]
            answer.headers["content-range"] = f"bytes {first}-{first + len(answer.body) - 1}/{size}"
            answer.headers["content-length"] = str(len(answer.body))


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        started.files["/a"] = TEXT
        yield started
        started.wait_for_no_connections()


@pytest.mark.parametrize("other", [(), (IgnoreRange(),)])
def test_content_without_its_tag_is_not_taken_for_the_same(other: tuple[Fault, ...], server: HttpServer) -> None:
    server.script("/a", [Normal(), *[(*other, Headers({"etag": None}))] * 3])
    *lines, error = outcomes(limited(lines_of(server.url + "/a"), chunk_bytes=200, read_ahead_bytes=0, max_attempts=3))
    assert isinstance(error, RemoteError)
    assert "the server does not say any more whether this is the same file (tried 3 times)" in str(error)
    assert lines == LINES[: len(lines)]


def test_a_tag_may_come_again(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script("/a", [Normal(), Headers({"etag": None})])
    ds = limited(lines_of(server.url + "/a"), chunk_bytes=len(TEXT) // 2)
    assert to_list(ds) == LINES
    assert "does not say any more" in caplog.text


def test_from_http_asks_for_all_where_a_range_has_no_tag(server: HttpServer) -> None:
    server.script("/a", [CutAt(300), Headers({"etag": None})])
    assert to_list(limited(Dataset.from_http(server.url + "/a"))) == [TEXT]
    assert len(server.requests) == 3


@pytest.mark.parametrize("told", [{}, {"content-range": None}])
def test_several_parts_are_of_no_use(told: dict[str, str | None], server: HttpServer) -> None:
    parts = Headers({"content-type": "multipart/byteranges; boundary=x", **told})
    server.script("/a", [parts, Normal()])
    assert to_list(limited(lines_of(server.url + "/a"))) == LINES
    assert len(server.requests) == 2


def test_a_part_where_all_was_asked_for_is_an_error(server: HttpServer) -> None:
    parts = Headers({"content-type": "multipart/byteranges; boundary=x"})
    server.script("/a", [parts, (IgnoreRange(), parts)])
    assert to_list(limited(lines_of(server.url + "/a"))) == LINES


def test_fewer_bytes_than_asked_for_are_no_failure(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    requests = -(-len(TEXT) // 100)
    server.script("/a", [Capped()] * requests)
    with caplog.at_level(logging.WARNING), limited(lines_of(server.url + "/a"), max_attempts=1).iterate() as iterator:
        assert list(iterator) == LINES
        assert counted(iterator) == (requests, 0)
    assert caplog.text == ""


def test_a_cap_is_no_excuse_for_a_cut(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script("/a", [Capped(), (Capped(), CutAt(50))])
    with limited(lines_of(server.url + "/a")).iterate() as iterator:
        assert list(iterator) == LINES
        assert counted(iterator) == (3, 1)
    assert "byte 150: the answer ended before it was complete" in caplog.text
