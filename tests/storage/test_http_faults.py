"""Each kind of trouble that a web server may have, as scripted: the same bytes in the end, or a clear error in time."""

from __future__ import annotations

import datetime
import email.utils
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import RemoteError
from aiodata.storage import HttpStorage
from tests.programs import outcomes, to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import (
    Chunked,
    CloseBefore,
    Compressed,
    CutAt,
    Fault,
    Garbage,
    Headers,
    IgnoreRange,
    Normal,
    ResetAt,
    ResetBefore,
    SilentAt,
    SilentBefore,
    Slowly,
    Status,
)
from tests.storage.remote_files import LINES, TEXT, assert_heals, counted, limited, lines_of, read_all
from tests.storage.scripted import registered

pytest.importorskip("aiohttp")
HALF = len(TEXT) // 2


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        started.files["/a"] = TEXT
        yield started
        started.wait_for_no_connections()


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize(
    "fault",
    [
        ResetBefore(),
        CloseBefore(),
        ResetAt(0),
        ResetAt(1),
        ResetAt(HALF),
        ResetAt(len(TEXT) - 1),
        CutAt(0),
        CutAt(HALF),
        CutAt(len(TEXT) - 1),
        Status(408),
        Status(425),
        Status(429),
        Status(500),
        Status(502),
        Status(503, body=b"busy" * 10_000),
        Status(504),
        Garbage(),
        Garbage(b"HTTP/1.1 banana\r\n\r\n"),
        Garbage(b""),
        (Chunked(), ResetAt(HALF)),
        (Chunked(), CutAt(HALF)),
        (IgnoreRange(), CutAt(HALF)),
        (Compressed(), CutAt(HALF // 3)),
        (Compressed(), Chunked(), ResetAt(HALF // 3)),
        (Headers({"content-encoding": "gzip"})),
        (Headers({"content-encoding": "deflate"})),
    ],
    ids=repr,
)
def test_one_fault_is_one_retry(fault: Any, ranges: bool, server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    if isinstance(fault, Headers) and ranges:
        pytest.skip("a range of what is compressed is asked for anew as a whole, which is no fault")
    server.ranges = ranges
    assert_heals(server, [fault], 1, caplog)


@pytest.mark.parametrize("fault", [ResetBefore(), CloseBefore()], ids=repr)
def test_a_used_connection_that_breaks_is_not_asked_twice_uncounted(
    fault: Fault, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "aiodata")
    server.script("/a", [Normal(), fault, fault, Normal(), fault])
    step = len(TEXT) // 3 + 1
    ds = lines_of(server.url + "/a", chunk_bytes=step, read_ahead_bytes=step)
    elements, requests, retries = read_all(ds)
    assert (elements, requests, retries) == (LINES, 6, 3)
    assert (len(server.requests), len(caplog.records)) == (6, 3)


def test_reading_goes_on_behind_the_last_byte_that_came(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    assert_heals(server, [ResetAt(100), CutAt(HALF), ResetAt(7), CutAt(1)], 4, caplog)
    begins = [(request.range or (0,))[0] for request in server.requests]
    assert begins == [0, 100, 100 + HALF, 107 + HALF, 108 + HALF]


def test_attempts_count_from_the_last_byte_on(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    assert_heals(server, [Status(500), CutAt(9)] * 6, 12, caplog, max_attempts=3)
    server.script("/a", [CutAt(50), Status(500), Status(502), Status(503), Normal()])
    with pytest.raises(RemoteError) as caught:
        read_all(lines_of(server.url + "/a", max_attempts=3))
    assert caught.value.attempts == 3


def test_the_error_after_the_limit_tells_all(server: HttpServer) -> None:
    server.script("/a", [CutAt(50), Status(500), Status(502)])
    with lines_of(server.url + "/a", max_attempts=3).iterate() as iterator:
        got = outcomes_of(iterator)
        assert counted(iterator) == (3, 2)
    error = got[-1]
    assert got[:-1] == LINES[: len(got) - 1]
    assert isinstance(error, RemoteError)
    assert isinstance(error, OSError)
    assert (error.url, error.offset, error.attempts) == (server.url + "/a", 50, 3)
    assert str(error) == f"{server.url}/a, byte 50: the server answered 502 Bad Gateway (tried 3 times)"
    assert "502" in str(error.__cause__)


def outcomes_of(iterator: Any) -> list[Any]:
    got: list[Any] = []
    while True:
        try:
            got.append(next(iterator))
        except StopIteration:
            return got
        except Exception as error:
            got.append(error)


def test_an_error_takes_a_place_and_the_next_file_follows(server: HttpServer) -> None:
    server.files["/b"] = b"b\n"
    server.script("/a", [CutAt(30)] + [Status(500)] * 9)
    urls = [server.url + "/a", server.url + "/none", server.url + "/b"]
    assert_outcomes_once = outcomes(limited(TextLineDataset(urls), max_attempts=2))
    kinds = [each if isinstance(each, bytes) else type(each) for each in assert_outcomes_once]
    assert kinds == [*LINES[:3], RemoteError, FileNotFoundError, b"b"]
    server.script("/a", [CutAt(30)] + [Status(500)] * 9)
    assert to_list(limited(TextLineDataset(urls).ignore_errors(), max_attempts=2)) == [*LINES[:3], b"b"]
    server.script("/a", [Status(500)] * 9)
    parallel = Dataset.from_tensor_slices(urls).interleave(TextLineDataset, 3, num_parallel_calls=3)
    got = outcomes(limited(parallel, max_attempts=2))
    assert sorted(type(each).__name__ for each in got) == ["FileNotFoundError", "RemoteError", "bytes"]


# Waits


def test_the_server_says_how_long_to_wait(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "aiodata")
    server.script("/a", [Status(429, {"Retry-After": "0.3"}), Status(503, {"Retry-After": "0.2"}), Status(504)])
    elements, requests, retries = read_all(lines_of(server.url + "/a"))
    assert (elements, requests, retries) == (LINES, 4, 3)
    first, second, third, fourth = (request.time for request in server.requests)
    assert second - first >= 0.3
    assert third - second >= 0.2
    assert fourth - third >= 0.001
    assert "the server answered 429 Too Many Requests; attempt 2 of 10 follows in 0.30 s" in caplog.text
    assert "the server answered 504 Gateway Timeout" in caplog.text


def test_the_server_says_until_when_to_wait(server: HttpServer) -> None:
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1.2)
    until = until.replace(microsecond=0)
    server.script("/a", [Status(429, {"Retry-After": email.utils.format_datetime(until, usegmt=True)})])
    assert to_list(lines_of(server.url + "/a")) == LINES
    assert datetime.datetime.now(datetime.UTC) >= until


def test_a_server_that_asks_for_too_long_a_wait_is_not_asked_again(server: HttpServer) -> None:
    server.script("/a", [Status(429, {"Retry-After": "3600"})])
    started = time.monotonic()
    with pytest.raises(RemoteError, match=r"429 Too Many Requests, and asks to wait 3600 s"):
        to_list(lines_of(server.url + "/a"))
    assert time.monotonic() - started < 20
    assert len(server.requests) == 1


def test_giving_up_by_time(server: HttpServer) -> None:
    server.script("/a", [Status(500)] * 1000)
    with pytest.raises(RemoteError, match="the server answered 500") as caught:
        to_list(
            lines_of(
                server.url + "/a", max_attempts=1000, first_wait_seconds=0.05, max_wait_seconds=1, give_up_seconds=0.3
            )
        )
    assert 2 <= caught.value.attempts < 30


# Silence


@pytest.mark.parametrize("fault", [SilentBefore(), SilentAt(0), SilentAt(HALF)], ids=repr)
@pytest.mark.parametrize("ranges", [True, False])
def test_silence_ends_a_request(
    fault: Fault, ranges: bool, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.ranges = ranges
    assert_heals(server, [fault], 1, caplog, idle_seconds=0.15)
    assert "there was silence for 0.15 s instead of" in caplog.text
    first, second = server.requests
    assert second.time - first.time >= 0.1


def test_a_slow_answer_is_not_cut(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    started = time.monotonic()
    assert_heals(server, [Slowly(len(TEXT) // 15, 0.1)], 0, caplog, idle_seconds=0.6)
    assert time.monotonic() - started > 1.4


def test_looking_for_a_file_does_not_wait_for_ever(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiodata.storage.kinds.http.IDLE_SECONDS", 0.1)
    server.script("/a", [SilentBefore()])
    _, requests, retries = read_all(limited(Dataset.list_files(server.url + "/a")))
    assert (requests, retries) == (2, 1)


# Refusals


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RemoteError),
        (401, PermissionError),
        (403, PermissionError),
        (404, FileNotFoundError),
        (407, PermissionError),
        (410, FileNotFoundError),
        (405, RemoteError),
        (418, RemoteError),
        (501, RemoteError),
    ],
)
def test_what_will_not_pass_is_not_tried_again(status: int, kind: type[OSError], server: HttpServer) -> None:
    server.script("/a", [Status(status)] * 5)
    with lines_of(server.url + "/a").iterate() as iterator:
        with pytest.raises(kind, match=f"the server answered {status} ") as caught:
            next(iterator)
        assert counted(iterator) == (1, 0)
    assert server.url + "/a" in str(caught.value)


class Keys:
    """Gives a new key each time."""

    def __init__(self, server: HttpServer, wait: bool) -> None:
        self.given = 0
        self.server = server
        self.wait = wait

    def __call__(self) -> Any:
        self.given += 1
        headers = {"X-Key": str(self.given)}

        async def later() -> dict[str, str]:
            return headers

        return later() if self.wait else headers


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("wait", [True, False])
def test_keys_that_run_out_are_asked_for_once(status: int, wait: bool, server: HttpServer) -> None:
    keys = Keys(server, wait)
    server.needs["X-Key"] = "1"
    names = [f"/{number}" for number in range(12)]
    server.files |= dict.fromkeys(names, TEXT)
    with registered(server.url, lambda: HttpStorage(headers=keys)):
        ds = Dataset.from_tensor_slices([server.url + name for name in names])
        ds = limited(ds.interleave(TextLineDataset, 6, num_parallel_calls=6), chunk_bytes=200, read_ahead_bytes=200)
        with ds.iterate() as iterator:
            got = [next(iterator) for _ in range(20)]
            server.needs["X-Key"] = "2"
            got += iterator
            requests, retries = counted(iterator)
    assert sorted(got) == sorted(LINES * 12)
    assert keys.given == 2
    assert retries == sum(request.headers["x-key"] == "1" for request in server.requests) - (requests - retries) + sum(
        request.headers["x-key"] == "2" for request in server.requests
    )
    assert requests == len(server.requests)


def test_a_key_that_is_refused_after_three_reads_is_renewed(server: HttpServer) -> None:
    keys = Keys(server, False)
    step = len(TEXT) // 8 + 1
    server.script("/a", [Normal(), Normal(), Normal(), Status(403)])
    with registered(server.url, lambda: HttpStorage(headers=keys)):
        elements, requests, retries = read_all(lines_of(server.url + "/a", chunk_bytes=step, read_ahead_bytes=step))
    assert (elements, requests, retries, keys.given) == (LINES, 9, 1, 2)
    assert [request.headers["x-key"] for request in server.requests] == ["1"] * 4 + ["2"] * 5


def test_a_key_that_is_refused_again_is_an_error(server: HttpServer) -> None:
    keys = Keys(server, True)
    server.needs["X-Key"] = "other"
    refused = pytest.raises(PermissionError, match=r"the server answered 403 Forbidden: 'http://.*/a'")
    with registered(server.url, lambda: HttpStorage(headers=keys)), refused:
        to_list(lines_of(server.url + "/a"))
    assert (keys.given, len(server.requests)) == (2, 2)


def test_a_function_that_gives_no_headers_but_an_error(server: HttpServer) -> None:
    def none() -> None:
        raise LookupError("no key")

    with registered(server.url, lambda: HttpStorage(headers=none)):
        with pytest.raises(LookupError, match="no key"):
            to_list(lines_of(server.url + "/a"))
        with registered(server.url, lambda: HttpStorage(headers={"X-Key": "1"})):
            server.needs["X-Key"] = "1"
            assert to_list(lines_of(server.url + "/a")) == LINES
