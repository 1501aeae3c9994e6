"""URLs are sent as they are, redirects are followed, and secrets are shown nowhere."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

import aiodata
from aiodata import Dataset, TextLineDataset
from aiodata.errors import RemoteError
from tests.programs import to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import Garbage, Headers, ResetBefore, Status
from tests.storage.remote_files import (
    LINES,
    TEXT,
    lines_of,
    quick,
)

pytest.importorskip("aiohttp")


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        started.files["/a.txt"] = TEXT
        yield started
        started.wait_for_no_connections()


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
        with pytest.raises(OSError, match=r"127\.0\.0\.1") as caught:
            next(iterator)
        texts = [shown(caught.value), repr(iterator.state_dict()), repr(iterator.statistics())]
    with pytest.raises(OSError, match=r"127\.0\.0\.1") as caught:
        aiodata.read_file(url, quick(max_attempts=2))
    texts += [shown(caught.value), repr(ds), caplog.text, repr(Dataset.list_files(url))]
    assert not [(secret, text) for secret in SECRETS for text in texts if secret in text]
    assert "part=1" in shown(caught.value)


def test_secrets_of_a_redirect_are_shown_nowhere(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    there = SIGNED.format(port=1, name="b")
    server.redirects |= {"/x": there, "/y": there.replace("http:", "gopher:"), "/z": SIGNED.format(port="no", name="")}
    for name in "xyz":
        with pytest.raises(OSError, match=r"127\.0\.0\.1") as caught:
            aiodata.read_file(f"{server.url}/{name}", quick(max_attempts=2))
        assert not [secret for secret in SECRETS if secret in shown(caught.value) + caplog.text]
