"""What no other server gets, and no error has: headers that are secrets, tokens in URLs, logins."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset, SqlDataset, TextLineDataset, text_dataset_from_directory
from aiodata.errors import RemoteError
from aiodata.storage import HttpStorage
from tests.programs import to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import Fault, Garbage, Status
from tests.storage.remote_files import LINES, TEXT, limited
from tests.storage.scripted import registered

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("aiohttp")
SECRETS = ("PASSWORD", "SIGNATURE", "TOKEN")
QUERY = "?sig=SIGNATURE&x=1&token=TOKEN"
HEADERS = {"Authorization": "Bearer TOKEN", "X-Api-Key": "TOKEN", "Cookie": "a=TOKEN", "Accept": "text/plain"}
READ: list[Callable[[str], Dataset[Any]]] = [TextLineDataset, Dataset.from_http]


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        started.files["/a"] = TEXT
        yield started


def with_secrets(server: HttpServer) -> str:
    return server.url.replace("//", "//ann:PASSWORD@") + "/a" + QUERY


def told(error: BaseException | None) -> list[str]:
    """Give all that an error and those behind it say, also those that no traceback shows."""
    texts: list[str] = []
    while error is not None:
        texts += [*traceback.format_exception_only(error), repr(error), repr(error.args), repr(vars(error))]
        error = error.__cause__ or error.__context__
    return texts


def assert_no_secrets(texts: list[str]) -> None:
    assert [text for text in texts if any(secret in text for secret in SECRETS)] == []


@pytest.mark.parametrize("reader", ["storage", "from_http"])
def test_headers_go_to_their_own_origin_only(reader: str, server: HttpServer) -> None:
    with HttpServer() as other:
        other.files["/b"] = TEXT
        server.script("/a", [Status(302, {"Location": other.url + "/b"})])
        if reader == "storage":
            with registered(server.url, partial(HttpStorage, headers=HEADERS)):
                assert to_list(TextLineDataset(server.url + "/a")) == LINES
        else:
            assert to_list(Dataset.from_http(server.url + "/a", headers=HEADERS)) == [TEXT]
        first, second = server.requests[0].headers, other.requests[0].headers
    for name in ("Authorization", "X-Api-Key", "Cookie"):
        assert first[name.lower()] == HEADERS[name]
        assert name.lower() not in second
    assert second["accept"] == "text/plain"
    assert ("range" in second) == (reader == "storage")


@pytest.mark.parametrize("reader", ["storage", "from_http"])
def test_headers_stay_on_a_way_within_their_origin(reader: str, server: HttpServer) -> None:
    server.files["/b"] = TEXT
    server.script("/a", [Status(302, {"Location": "/b"})])
    if reader == "storage":
        with registered(server.url, partial(HttpStorage, headers=HEADERS)):
            assert to_list(TextLineDataset(server.url + "/a")) == LINES
    else:
        assert to_list(Dataset.from_http(server.url + "/a", headers=HEADERS)) == [TEXT]
    assert [request.headers["x-api-key"] for request in server.requests] == ["TOKEN", "TOKEN"]


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize(
    "fault",
    [
        Garbage(b"GET /a" + QUERY.encode() + b" HTTP/1.1\r\n\r\n"),
        Garbage(b"HTTP/1.1 503 no /a" + QUERY.encode() + b"\r\nContent-Length: 0\r\n\r\n"),
        Garbage(b"HTTP/1.1 404 no /a" + QUERY.encode() + b"\r\nContent-Length: 0\r\n\r\n"),
        Status(302, {"Location": "gopher://ann:PASSWORD@host/x" + QUERY}),
        Status(302, {"Location": "http://ann:PASSWORD@127.0.0.1:1/x" + QUERY}),
    ],
)
def test_no_error_has_secrets(
    fault: Fault, read: Callable[[str], Dataset[Any]], server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.script("/a", [fault] * 4)
    ds = limited(read(with_secrets(server)), max_attempts=2)
    with caplog.at_level(logging.DEBUG, "aiodata"), pytest.raises(OSError, match=r"127\.0\.0\.1") as caught:
        to_list(ds)
    assert_no_secrets([*told(caught.value), repr(ds), caplog.text])


@pytest.mark.parametrize("read", READ)
def test_what_is_no_http_is_called_so(read: Callable[[str], Dataset[Any]], server: HttpServer) -> None:
    server.script("/a", [Garbage()] * 2)
    with pytest.raises(RemoteError, match=r"the answer is no HTTP \(tried 2 times\)"):
        to_list(limited(read(server.url + "/a"), max_attempts=2))


@pytest.mark.parametrize("read", READ)
def test_a_redirect_to_another_scheme_is_not_tried_again(
    read: Callable[[str], Dataset[Any]], server: HttpServer
) -> None:
    server.script("/a", [Status(302, {"Location": "gopher://host/x"})])
    with pytest.raises(RemoteError, match="it redirects to what is no URL that can be read"):
        to_list(read(server.url + "/a"))
    assert len(server.requests) == 1


def test_an_unquoted_password_is_not_shown() -> None:
    ds = limited(TextLineDataset("http://ann:PASSWORD/more@127.0.0.1:1/a"), max_attempts=1)
    with pytest.raises((OSError, ValueError)) as caught:
        to_list(ds)
    assert_no_secrets([*told(caught.value), repr(ds)])


def test_what_must_be_local_does_not_show_secrets(tmp_path: Path) -> None:
    url = "http://ann:PASSWORD@host/a" + QUERY
    with pytest.raises(ValueError, match="text_dataset_from_directory: directory must be local, not http:") as caught:
        text_dataset_from_directory(url)
    assert_no_secrets(told(caught.value))
    with pytest.raises(ValueError, match="SqlDataset: data_source_name must be local, not http:") as caught:
        SqlDataset("sqlite", url, "SELECT 1", (int,))
    assert_no_secrets(told(caught.value))
