"""`Dataset.from_http`: whole answers, lines, records; headers, trouble, going on, states, closing, secrets."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import ssl
import sys
import tracemalloc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import aiodata
from aiodata import AUTOTUNE, Dataset, Options, StorageOptions
from aiodata.errors import CorruptRecordError, RemoteError, StateError
from aiodata.formats.event_stream import ServerSentEvent
from aiodata.spec import TensorSpec
from tests.programs import assert_gives, assert_outcomes, assert_same, collect, first, outcomes, to_list
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
    OtherRange,
    Replace,
    ResetAt,
    ResetBefore,
    SilentAt,
    SilentBefore,
    Slowly,
    Status,
)
from tests.sources.test_from_socket import contexts, sending, serving

if TYPE_CHECKING:
    from tests.servers.http_answers import Request
    from tests.servers.http_connection import Body

pytest.importorskip("aiohttp", reason="HTTP needs aiohttp")

LINES = [b"line %d%s" % (number, b"!" * (number % 50)) for number in range(3000)]
TEXT = b"".join(line + b"\n" for line in LINES)
QUICK = Options(
    storage=StorageOptions(first_wait_seconds=0.001, max_wait_seconds=0.01, max_attempts=4, idle_seconds=10)
)
IMPATIENT = Options(storage=StorageOptions(idle_seconds=0.3))


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as made:
        made.files["/lines"] = TEXT
        for number in range(5):
            made.files[f"/{number}"] = b"answer %d" % number
        yield made


def lines(server: HttpServer, path: str = "/lines", **options: Any) -> Dataset[bytes]:
    return Dataset.from_http(server.url + path, "lines", **options).with_options(QUICK)


def answers(server: HttpServer, *paths: str, **options: Any) -> Dataset[bytes]:
    return Dataset.from_http([server.url + path for path in paths], **options).with_options(QUICK)


def counters(iterator: Any) -> dict[str, int]:
    (found,) = (each for each in iterator.statistics() if each["stage"] == "from_http")
    return {name: found.get(name, 0) for name in ("requests", "retries", "elements")}


def read(ds: Dataset[Any]) -> tuple[list[Any], dict[str, int]]:
    with ds.iterate() as iterator:
        found = list(iterator)
        return found, counters(iterator)


def asked(server: HttpServer, *headers: str) -> list[list[str | None]]:
    return [[request.headers.get(header) for header in headers] for request in server.requests]


def names(faults: tuple[Fault, ...]) -> str:
    """Give a test's name that is the same in each process."""
    return "-".join(str(getattr(fault, "status", type(fault).__name__)) for fault in faults)


# Whole answers


def test_a_url_gives_its_answer(server: HttpServer) -> None:
    ds = Dataset.from_http(server.url + "/3")
    assert_gives(ds, [b"answer 3"])
    assert ds.cardinality() == 1


@pytest.mark.parametrize("calls", [None, 1, 2, 7, AUTOTUNE])
def test_the_answers_are_in_the_order_of_the_urls(server: HttpServer, calls: int | None) -> None:
    server.script("/0", [Slowly(2, 0.01)] * 20)
    ds = answers(server, *(f"/{n}" for n in range(5)), num_parallel_calls=calls)
    assert_gives(ds, [b"answer %d" % n for n in range(5)])
    assert ds.cardinality() == 5


def test_urls_may_be_a_dataset(server: HttpServer) -> None:
    paths = Dataset.range(7).map(lambda n: f"{server.url}/{n % 5}")
    assert_gives(Dataset.from_http(paths), [b"answer %d" % (n % 5) for n in range(7)])
    ds = Dataset.from_http(paths.map(str.encode), num_parallel_calls=3)
    assert_gives(ds, [b"answer %d" % (n % 5) for n in range(7)])
    assert ds.cardinality() == 7


def test_no_urls(server: HttpServer) -> None:
    for calls in (None, 2):
        assert_gives(Dataset.from_http([], num_parallel_calls=calls), [])
        assert_gives(Dataset.from_http([], "lines", calls), [])


async def test_as_many_requests_are_under_way_as_may_be(server: HttpServer) -> None:
    server.holding = True
    ds = answers(server, *(f"/{n % 5}" for n in range(100)), num_parallel_calls=64)
    async with ds.iterate() as iterator:
        task = asyncio.create_task(anext(iterator))
        await asyncio.to_thread(server.wait_for_requests_at_once, 64)
        server.holding = False
        assert await task == b"answer 0"
        assert [element async for element in iterator] == [b"answer %d" % (n % 5) for n in range(1, 100)]
    assert server.most_requests_at_once == 64


def test_a_connection_is_kept_for_the_next_url(server: HttpServer) -> None:
    most = 0

    async def handle(body: Body, request: Request) -> None:
        nonlocal most
        most = max(most, server.open_connections)
        await body(b"x")

    server.streams["/x"] = handle
    assert to_list(answers(server, *["/x"] * 9)) == [b"x"] * 9
    assert most == 1


def test_an_answer_that_is_not_there_is_an_error_in_its_place(server: HttpServer) -> None:
    server.needs["Authorization"] = "yes"
    server.streams["/gone"] = answering(410)
    server.streams["/teapot"] = answering(418)
    for calls in (None, 4):
        ds = answers(
            server, "/0", "/no", "/gone", "/teapot", "/1", num_parallel_calls=calls, headers={"authorization": "yes"}
        )
        found = outcomes(ds)
        assert_same(found, [b"answer 0", FileNotFoundError, FileNotFoundError, RemoteError, b"answer 1"])
        assert str(found[1]) == f"[Errno 2] the server answered 404 Not Found: '{server.url}/no'"
        assert str(found[3]) == f"{server.url}/teapot: the server answered 418 I'm a Teapot"
        assert any(f"from {server.url}/no" in note for note in found[1].__notes__)
        assert to_list(ds.ignore_errors()) == [b"answer 0", b"answer 1"]
    assert_outcomes(answers(server, "/0"), [PermissionError])
    assert read(answers(server, "/no").ignore_errors())[1] == {"requests": 1, "retries": 0, "elements": 0}


def answering(status: int, *parts: bytes, **headers: str | None) -> Any:
    async def handle(body: Body, request: Request) -> None:
        body.answer.status, body.answer.chunked = status, status != 204
        body.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        for part in parts:
            await body(part)

    return handle


def test_any_status_of_success_is_one(server: HttpServer) -> None:
    server.streams["/made"] = answering(201, b"made")
    server.streams["/nothing"] = answering(204)
    assert to_list(answers(server, "/made", "/nothing")) == [b"made", b""]


def test_what_is_compressed_in_transfer_is_uncompressed(server: HttpServer) -> None:
    server.compresses = True
    assert to_list(answers(server, "/lines")) == [TEXT]
    assert "gzip" in server.requests[0].headers["accept-encoding"]
    assert to_list(lines(server)) == LINES
    assert server.requests[1].headers["accept-encoding"] == "identity"


def test_an_answer_may_be_too_long(server: HttpServer) -> None:
    assert to_list(answers(server, "/1", max_record_bytes=8)) == [b"answer 1"]
    with pytest.raises(CorruptRecordError, match=r"/1: the answer is longer than 7 bytes, which max_record_bytes"):
        to_list(answers(server, "/1", max_record_bytes=7))


def test_what_is_sent(server: HttpServer) -> None:
    found: list[Any] = []

    async def handle(body: Body, request: Request) -> None:
        found.append((request.method, request.path, request.body, request.headers.get("x-a")))
        await body(request.body)

    server.streams["/a b"] = handle
    url = f"{server.url}/a%20b?q=%2F&r=a+b"
    assert to_list(Dataset.from_http(url, body=b"data", headers={"X-A": "1"})) == [b"data"]
    assert to_list(Dataset.from_http(url, method="PUT", body=b"d")) == [b"d"]
    assert to_list(Dataset.from_http(url, method="DELETE")) == [b""]
    path = "/a%20b?q=%2F&r=a+b"
    assert found == [("POST", path, b"data", "1"), ("PUT", path, b"d", None), ("DELETE", path, b"", None)]


def test_redirects_are_followed(server: HttpServer) -> None:
    server.redirects["/old"] = "/1"
    server.redirects["/round"] = "/round"
    assert_outcomes(answers(server, "/old", "/round"), [b"answer 1", RemoteError])


# Headers


def test_headers_may_be_a_function_which_is_asked_again(server: HttpServer) -> None:
    keys = ["old", "new"]
    server.needs["X-Key"] = "new"
    ds = answers(server, "/0", "/1", "/2", headers=lambda: {"X-Key": keys[0] if len(keys) == 1 else keys.pop(0)})
    assert read(ds) == ([b"answer 0", b"answer 1", b"answer 2"], {"requests": 4, "retries": 1, "elements": 3})
    server.needs["X-Key"] = "newer"
    assert_outcomes(ds, [PermissionError] * 3)
    assert len(server.requests) == 4 + 2 * 6


async def test_headers_may_come_from_a_coroutine_on_the_callers_loop(server: HttpServer) -> None:
    loop = asyncio.get_running_loop()
    calls = 0

    async def headers() -> dict[str, str]:
        nonlocal calls
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        calls += 1
        return {"X-Key": str(calls)}

    server.needs["X-Key"] = "2"
    ds = answers(server, *["/0"] * 9, num_parallel_calls=9, headers=headers).prefetch(2)
    assert await collect(ds) == [b"answer 0"] * 9
    assert calls == 2  # however many were refused
    calls = 1
    assert await collect(Dataset.from_http(server.url + "/0", headers=headers).prefetch(2)) == [b"answer 0"]


def test_a_key_that_runs_out_in_the_middle_is_renewed(server: HttpServer) -> None:
    keys = iter(["1", "2"])
    server.needs["X-Key"] = "1"

    def headers() -> dict[str, str]:
        server.needs["X-Key"] = key = next(keys)
        return {"X-Key": key}

    server.script("/lines", [CutAt(5000), Status(401)])
    assert read(lines(server, headers=headers)) == (LINES, {"requests": 3, "retries": 2, "elements": 3000})


# Trouble


PASSING: list[tuple[Fault, ...]] = [
    (Status(429, {"Retry-After": "0"}),),
    *((Status(status),) for status in (408, 425, 500, 502, 503, 504)),
    (SilentBefore(),),
    (Garbage(),),
    (ResetAt(4000),),
    (CutAt(4000),),
    (CutAt(4000), Chunked()),
    (SilentAt(4000),),
]


@pytest.mark.parametrize("fault", PASSING, ids=names)
def test_trouble_that_passes_changes_nothing(
    server: HttpServer, fault: tuple[Fault, ...], caplog: pytest.LogCaptureFixture
) -> None:
    expected = {"requests": 2, "retries": 1, "elements": 3000}
    options = IMPATIENT if isinstance(fault[0], SilentBefore | SilentAt) else QUICK
    for headers in ({"etag": '"a"'}, {"etag": None}):
        server.script("/lines", [(*fault, Headers(headers)), Headers(headers)])
        with caplog.at_level(logging.WARNING, "aiodata"):
            assert read(lines(server).with_options(options)) == (LINES, expected)
        assert len(caplog.messages) == 1
        assert f"{server.url}/lines, byte " in caplog.messages[0]
        assert "attempt 2 of 4 follows" in caplog.messages[0]
        server.script("/lines", [(*fault, Headers(headers)), Headers(headers)])
        assert read(answers(server, "/lines").with_options(options)) == ([TEXT], expected | {"elements": 1})
        caplog.clear()


@pytest.mark.parametrize("fault", [ResetBefore(), CloseBefore()], ids=["reset", "close"])
def test_a_connection_that_breaks_before_the_answer_changes_nothing(server: HttpServer, fault: Fault) -> None:
    server.script("/lines", [fault])
    assert read(lines(server)) == (LINES, {"requests": 2, "retries": 1, "elements": 3000})
    server.streams["/post"] = answering(200)
    server.script("/post", [fault])
    assert read(lines(server, "/post", method="POST"))[1] == {"requests": 2, "retries": 1, "elements": 0}
    server.stop()
    with pytest.raises(RemoteError, match=r"/lines, byte 0: ClientConnectorError: .*\(tried 4 times\)"):
        to_list(lines(server))


def test_the_servers_hint_is_waited_for(server: HttpServer) -> None:
    server.script("/0", [Status(429, {"Retry-After": "1"}), Status(504), Normal()])
    assert read(answers(server, "/0")) == ([b"answer 0"], {"requests": 3, "retries": 2, "elements": 1})
    times = [request.time for request in server.requests]
    assert times[1] - times[0] >= 1
    assert times[2] - times[1] < 1
    server.script("/0", [Status(503, {"Retry-After": "1000"})])
    with pytest.raises(RemoteError, match=r"503 Service Unavailable, and asks to wait 1000 s"):
        to_list(answers(server, "/0"))


def test_the_limit_of_attempts_is_kept(server: HttpServer) -> None:
    server.script("/0", [Status(500)] * 9)
    with pytest.raises(RemoteError, match=r"/0, byte 0: the server answered 500 .* \(tried 4 times\)") as caught:
        to_list(answers(server, "/0"))
    assert (caught.value.attempts, server.scripted("/0")) == (4, 5)
    server.script("/lines", [CutAt(5000), *[Status(500)] * 4])
    with lines(server).iterate() as iterator, pytest.raises(RemoteError, match=r"/lines, byte 5000: "):
        assert list(iterator) == []
    assert counters(iterator)["requests"] == 5 - 1


def test_each_piece_that_comes_is_progress(server: HttpServer) -> None:
    server.script("/lines", [CutAt(2000)] * 10)
    assert read(lines(server)) == (LINES, {"requests": 11, "retries": 10, "elements": 3000})


# Going on


def test_a_range_is_asked_for_where_there_is_an_etag(server: HttpServer) -> None:
    server.script("/lines", [CutAt(5000), CutAt(0), ResetAt(1000), Normal()])
    assert to_list(lines(server)) == LINES
    (tag,) = {request.headers.get("if-range") for request in server.requests[1:]}
    assert tag == server._etags[TEXT]
    ranges = [request.headers.get("range") for request in server.requests]
    assert ranges == [None, "bytes=5000-", "bytes=5000-", "bytes=6000-"]


@pytest.mark.parametrize(
    "later",
    [(IgnoreRange(),), (IgnoreRange(), Chunked()), (Compressed(), Headers({"etag": '"a"'})), (OtherRange(7),)],
    ids=names,
)
def test_a_server_that_ignores_ranges_gives_the_right_bytes(server: HttpServer, later: tuple[Fault, ...]) -> None:
    tag = Headers({"etag": '"a"'})
    server.script("/lines", [(CutAt(5000), tag), (*later, tag), tag])
    assert to_list(lines(server)) == LINES


def test_without_an_etag_the_same_bytes_have_to_come_again(server: HttpServer) -> None:
    server.etags = False
    server.script("/lines", [CutAt(5000), CutAt(3000), Normal()])
    assert to_list(lines(server)) == LINES
    assert asked(server, "range", "if-range") == [[None, None]] * 3
    server.etags = True
    server.script("/lines", [(CutAt(5000), Headers({"etag": 'W/"a"'})), Normal()])
    assert to_list(lines(server)) == LINES
    assert server.requests[-1].headers.get("range") is None


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize(
    "other",
    [TEXT.replace(b"line 20!", b"line 20?"), TEXT.replace(b"line 150", b"LINE 150"), TEXT[:4999], b"", b"x" * 90000],
)
def test_other_content_is_never_mixed_in(server: HttpServer, etags: bool, other: bytes) -> None:
    server.etags = etags
    message = r"/lines, byte 5000: what has been given cannot be gone on with: asked again, the server gives other"
    server.script("/lines", [CutAt(5000), Replace(other)])
    with lines(server).ignore_errors().iterate() as iterator:
        found: list[bytes] = []
        with pytest.raises(RemoteError, match=message):
            found.extend(iterator)
    assert found == LINES[: TEXT[:5000].count(b"\n")]


def test_content_that_grows_behind_what_was_given_is_gone_on_with(server: HttpServer) -> None:
    server.etags = False
    server.script("/lines", [CutAt(5000), Replace(TEXT + b"more\n")])
    assert to_list(lines(server)) == [*LINES, b"more"]


def test_a_break_behind_the_last_byte_is_the_end(server: HttpServer) -> None:
    server.script("/lines", [(Chunked(), CutAt(len(TEXT))), Normal()])
    assert to_list(lines(server)) == LINES
    assert [request.headers.get("range") for request in server.requests] == [None, f"bytes={len(TEXT)}-"]


def test_a_whole_answer_begins_again_when_it_has_changed(server: HttpServer) -> None:
    server.script("/lines", [CutAt(5000), Replace(b"new")])
    assert to_list(answers(server, "/lines")) == [b"new"]
    server.files["/lines"] = TEXT
    server.script("/lines", [ResetAt(5000), Normal()])
    assert to_list(answers(server, "/lines")) == [TEXT]
    assert server.requests[-1].headers["range"] == "bytes=5000-"


def test_a_post_is_sent_again(server: HttpServer) -> None:
    async def handle(body: Body, request: Request) -> None:
        body.headers["etag"] = '"a"'
        for line in LINES[: int(request.body)]:
            await body(line + b"\n")

    server.streams["/made"] = handle
    server.script("/made", [CutAt(4000), Normal()])
    assert to_list(lines(server, "/made", body=b"900")) == LINES[:900]
    assert asked(server, "range") == [[None], [None]]


async def test_the_server_may_be_killed_and_come_back(server: HttpServer) -> None:
    server.script("/lines", [SilentAt(50_000)])
    options = Options(storage=StorageOptions(first_wait_seconds=0.05, max_wait_seconds=0.05, max_attempts=1000))
    async with Dataset.from_http(server.url + "/lines", "lines").with_options(options).iterate() as iterator:
        found = [await anext(iterator) for _ in range(500)]
        await asyncio.to_thread(server.stop)
        rest = asyncio.create_task(collect_rest(iterator))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(server.start)
        assert found + await rest == LINES
    give_up = Options(storage=StorageOptions(first_wait_seconds=0.01, give_up_seconds=0.2, max_attempts=1000))
    server.script("/lines", [SilentAt(50_000)])
    async with Dataset.from_http(server.url + "/lines", "lines").with_options(give_up).iterate() as iterator:
        found = [await anext(iterator) for _ in range(500)]
        await asyncio.to_thread(server.stop)
        with pytest.raises(RemoteError, match=r"/lines, byte 50000: .*tried \d+ times"):
            await collect_rest(iterator)


async def collect_rest(iterator: Any) -> list[Any]:
    return [element async for element in iterator]


# Lines and records


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"", {}, []),
        (b"a", {}, [b"a"]),
        (b"a\r\n\nb\rc\r", {}, [b"a", b"", b"b\rc"]),
        (b"a\r\n\nb", {"separator": b"\r\n"}, [b"a", b"\nb"]),
        (b"a--b--", {"separator": b"--"}, [b"a", b"b"]),
    ],
)
def test_lines(server: HttpServer, content: bytes, options: Any, expected: list[bytes]) -> None:
    server.files["/x"] = content
    assert_gives(lines(server, "/x", **options), expected)
    server.script("/x", [(Chunked(), Slowly(1, 0.0))])
    assert to_list(lines(server, "/x", **options)) == expected


def test_records_stand_behind_their_length(server: HttpServer) -> None:
    words = [b"one", b"", b"x" * 300]
    server.files["/x"] = b"".join(len(word).to_bytes(2, "little") + word for word in words)
    ds = Dataset.from_http(server.url + "/x", "records", length_bytes=2, byte_order="little")
    assert_gives(ds, words)
    server.files["/x"] += b"\5\0abc"
    assert_outcomes(ds, [*words, CorruptRecordError])
    ds = Dataset.from_http(server.url + "/x", "records", length_bytes=2, byte_order="little", max_record_bytes=299)
    assert_outcomes(ds, [*words[:2], CorruptRecordError])


def test_a_line_that_is_too_long_is_an_error_in_its_place(server: HttpServer) -> None:
    server.files["/x"] = b"a\nbb\nccc\nd\n"
    ds = Dataset.from_http([f"{server.url}/x", f"{server.url}/1"], "lines", max_record_bytes=8).with_options(QUICK)
    assert to_list(ds) == [b"a", b"bb", b"ccc", b"d", b"answer 1"]
    ds = Dataset.from_http([f"{server.url}/x", f"{server.url}/no", f"{server.url}/x"], "lines", max_record_bytes=2)
    found = outcomes(ds)
    assert_same(found, [b"a", b"bb", CorruptRecordError, FileNotFoundError, b"a", b"bb", CorruptRecordError])
    assert f"{server.url}/x, record 2, byte 5: the record is longer than 2 bytes" in str(found[2])
    assert any(f"from {server.url}/x record 2" in note for note in found[2].__notes__)


def test_the_lines_of_several_streams_come_in_turn(server: HttpServer) -> None:
    server.files |= {"/a": b"a\n" * 3, "/b": b"b\n" * 2, "/c": b"c\n"}
    urls = [server.url + path for path in ("/a", "/b", "/c")]
    assert_gives(Dataset.from_http(urls, "lines"), [b"a", b"a", b"a", b"b", b"b", b"c"])
    assert_gives(Dataset.from_http(urls, "lines", 2), [b"a", b"b", b"a", b"b", b"a", b"c"])


async def test_lines_are_given_as_they_come(server: HttpServer) -> None:
    go_on = asyncio.Event()

    async def handle(body: Body, request: Request) -> None:
        await body(b"one\ntw")
        await go_on.wait()
        await body(b"o\n")

    server.streams["/x"] = handle
    async with Dataset.from_http(server.url + "/x", "lines").iterate() as iterator:
        assert await anext(iterator) == b"one"
        server._loop.call_soon_threadsafe(go_on.set)
        assert await anext(iterator) == b"two"
        with pytest.raises(StopAsyncIteration):
            await anext(iterator)


def test_a_slow_reader_slows_the_server_down_and_holds_little(server: HttpServer) -> None:
    sent = 0

    async def handle(body: Body, request: Request) -> None:
        nonlocal sent
        for _ in range(200_000):
            await body(b"x" * 999 + b"\n")
            sent += 1000

    server.streams["/x"] = handle
    with Dataset.from_http(server.url + "/x", "lines").iterate() as iterator:
        next(iterator)
        tracemalloc.start()
        try:
            for _ in range(20_000):
                next(iterator)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert 20_000_000 < sent < 60_000_000
        assert peak < 2_000_000


# States


@pytest.mark.parametrize("etags", [True, False])
@pytest.mark.parametrize("ranges", [True, False])
def test_a_state_goes_on_at_each_element(server: HttpServer, etags: bool, ranges: bool) -> None:
    server.etags, server.ranges = etags, ranges
    server.files["/lines"] = TEXT * 9
    with lines(server).iterate() as iterator:
        for taken in range(27_001):
            if taken in (0, 1, 17, 1500, 26_990, 26_999, 27_000):
                state = json.loads(json.dumps(iterator.state_dict()))
                for _ in range(2):
                    with lines(server).iterate(state) as again:
                        assert list(again) == (LINES * 9)[taken:]
            if taken < 27_000:
                next(iterator)
    assert any(request.headers.get("range") for request in server.requests) == etags


@pytest.mark.parametrize("etags", [True, False])
def test_a_state_of_other_content_is_refused(server: HttpServer, etags: bool) -> None:
    server.etags = etags
    server.script("/lines", [Slowly(1000, 0.001)])
    with lines(server).iterate() as iterator:
        for line in LINES[:1500]:
            assert next(iterator) == line
        state = iterator.state_dict()
    for other in (TEXT.replace(b"line 3", b"LINE 3"), TEXT[:9000]):
        server.files["/lines"] = other
        with lines(server).ignore_errors().iterate() as iterator:
            pass
        with lines(server).iterate(state) as iterator:
            with pytest.raises(StateError, match=r"the state does not fit any more: .*the server gives other content"):
                next(iterator)
            assert list(iterator) == []


def test_a_state_from_before_an_error_goes_on_there(server: HttpServer) -> None:
    server.script("/lines", [CutAt(5000), *[Status(500)] * 4])
    with lines(server).iterate() as iterator:
        found: list[bytes] = []
        with pytest.raises(RemoteError):
            found.extend(iterator)
        state = iterator.state_dict()
    with lines(server).iterate(state) as iterator:
        assert found + list(iterator) == LINES


def test_a_state_at_each_of_several_answers(server: HttpServer) -> None:
    ds = answers(server, "/0", "/no", "/2", num_parallel_calls=2)
    states, expected = [], [b"answer 0", FileNotFoundError, b"answer 2"]
    with ds.iterate() as iterator:
        for outcome in expected:
            states.append(iterator.state_dict())
            if outcome is FileNotFoundError:
                with pytest.raises(FileNotFoundError):
                    next(iterator)
            else:
                assert next(iterator) == outcome
        states.append(iterator.state_dict())
    for taken, state in enumerate(states):
        with ds.iterate(state) as iterator:
            assert_same(rest_of(iterator), expected[taken:])


def rest_of(iterator: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:
            found.append(error)


def test_a_state_knows_urls_without_their_secrets(server: HttpServer) -> None:
    def signed(signature: str) -> Dataset[bytes]:
        return Dataset.from_http([f"{server.url}/{n}?X-Amz-Signature={signature}" for n in range(3)], "lines")

    with signed("hush").iterate() as iterator:
        assert next(iterator) == b"answer 0"
        state = iterator.state_dict()
    with signed("other").iterate(state) as iterator:
        assert list(iterator) == [b"answer 1", b"answer 2"]
    assert "hush" not in json.dumps(state)
    with pytest.raises(StateError, match="the state is of another pipeline"):
        Dataset.from_http([f"{server.url}/{n}" for n in range(3)], "lines").iterate(state)


# Secrets


def test_secrets_of_urls_are_nowhere(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    url = f"http://ann:hush@127.0.0.1:{server.port}/{{}}?token=hush&X-Amz-Signature=hush"
    server.streams["/418"] = answering(418)
    server.redirects["/round"] = "/round?token=hush"
    server.script("/500", [Status(500)] * 4)
    server.script("/garbage", [Garbage()] * 4)
    server.script("/reset", [ResetBefore()] * 9)
    server.script("/0", [(CutAt(3), Headers({"etag": None})), Replace(b"other")])
    told: list[str] = []
    paths = ("no", "418", "round", "500", "garbage", "reset", "0")
    for format in ("response", "lines", "events"):
        for path in paths:
            ds = Dataset.from_http(url.format(path), format, headers={"X-Key": "hush"}).with_options(QUICK)
            told.append(repr(ds))
            for each in outcomes_or_end(ds):
                assert isinstance(each, Exception | bytes | ServerSentEvent)
                while isinstance(each, Exception):
                    told += [str(each), repr(each), *getattr(each, "__notes__", ())]
                    each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    with Dataset.from_http(url.format("1")).map(len).iterate() as iterator:
        next(iterator)
        told += [json.dumps(iterator.state_dict()), json.dumps(iterator.statistics())]
    told += [caplog.text]
    assert len(caplog.messages) > 9
    assert "hush" not in "\n".join(told)


def outcomes_or_end(ds: Dataset[Any]) -> list[Any]:
    """Give what each pull gave, up to an error that ends the run."""
    with ds.iterate() as iterator:
        return rest_of(iterator)


@pytest.mark.parametrize("url", ["http://ann:hush@[::1/x", "http://ann:hush@host:99999999/x"])
def test_what_is_no_url_after_all_is_an_error(url: str) -> None:
    (error,) = outcomes(Dataset.from_http(url))
    assert isinstance(error, ValueError)
    assert "cannot be asked for" in str(error)
    assert "hush" not in str(error)


# Closing


def endless(server: HttpServer) -> None:
    async def handle(body: Body, request: Request) -> None:
        await body(b"a\n" * 10)
        await asyncio.Event().wait()

    server.streams["/endless"] = handle


async def test_a_break_closes_the_connections(server: HttpServer) -> None:
    endless(server)
    urls = [server.url + "/endless"] * 64
    async for line in Dataset.from_http(urls, "lines", 64):
        assert line == b"a"
        break
    gc.collect()
    await asyncio.to_thread(server.wait_for_no_connections)
    for line in Dataset.from_http(urls, "lines", 64):
        assert line == b"a"
        break
    await asyncio.to_thread(server.wait_for_no_connections)


async def test_a_break_while_requests_are_under_way_closes_the_connections(server: HttpServer) -> None:
    server.holding = True
    ds = answers(server, *["/0"] * 64, num_parallel_calls=64)
    async with ds.iterate() as iterator:
        task = asyncio.create_task(anext(iterator))
        await asyncio.to_thread(server.wait_for_requests_at_once, 64)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await asyncio.to_thread(server.wait_for_no_connections)


async def test_a_break_while_waiting_ends_at_once(server: HttpServer) -> None:
    server.script("/0", [Status(503, {"Retry-After": "60"})])
    async with Dataset.from_http(server.url + "/0").iterate() as iterator:
        task = asyncio.create_task(anext(iterator))
        await asyncio.to_thread(server.wait_for_requests, 1)
        await asyncio.sleep(0.05)
        async with asyncio.timeout(2):
            await iterator.aclose()
        with pytest.raises(aiodata.EndedEarlyError if hasattr(aiodata, "EndedEarlyError") else RuntimeError):
            await task
    await asyncio.to_thread(server.wait_for_no_connections)


async def test_two_iterators_and_a_prefetch_have_connections_of_their_own(server: HttpServer) -> None:
    ds = lines(server).prefetch(4)
    async with ds.iterate() as one, ds.iterate() as other:
        for line in LINES:
            assert (await anext(one), await anext(other)) == (line, line)
    await asyncio.to_thread(server.wait_for_no_connections)


async def test_a_host_by_name_leaves_no_thread(server: HttpServer) -> None:
    assert await collect(Dataset.from_http(f"http://localhost:{server.port}/1")) == [b"answer 1"]
    assert await asyncio.to_thread(to_list, Dataset.from_http(f"http://localhost:{server.port}/1")) == [b"answer 1"]


async def test_a_certificate_that_is_refused_is_not_asked_for_again() -> None:
    with serving(sending(b""), contexts()[0]) as tls:
        ds = Dataset.from_http(f"https://127.0.0.1:{tls.port}/", "lines").with_options(QUICK)
        with pytest.raises(RemoteError, match="the server's certificate is refused: ") as caught:
            await collect(ds)
        assert caught.value.attempts == 1


# Arguments


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((7,), {}, TypeError, "urls must be a URL, a list or a dataset of them: 'int' object is not iterable"),
        (([7],), {}, TypeError, "urls must be .*: from_http: a URL must be a string, not int"),
        (({"http://a"},), {}, TypeError, "urls must be a URL, a list or a dataset of them, not set"),
        (("ftp://ann:hush@a/b",), {}, ValueError, r"a URL must begin with http:// or https://, not 'ftp://\*\*\*@a/b'"),
        ((["http://a", "a.txt"],), {}, ValueError, "a URL must begin with http:// or https://, not 'a.txt'"),
        (("http:///a",), {}, ValueError, "a URL must begin with http:// or https://, not 'http:///a'"),
        (("http://a", "line"), {}, ValueError, r"format must be one of \('events', 'lines', .*\), not 'line'"),
        (("http://a", "lines", 0), {}, ValueError, "num_parallel_calls must be at least 1, or AUTOTUNE, not 0"),
        (("http://a",), {"headers": "a: b"}, TypeError, "headers must be a mapping, or a function, not str"),
        (("http://a",), {"method": "get it"}, ValueError, "method must be a name such as 'POST', not 'get it'"),
        (("http://a",), {"body": "x"}, TypeError, "body must be bytes, not str"),
        (("http://a",), {"max_record_bytes": 0}, ValueError, "max_record_bytes must be at least 1, not 0"),
        (("http://a", "lines"), {"separator": b""}, ValueError, "separator must not be empty"),
        (("http://a", "records"), {"length_bytes": 5}, ValueError, "length_bytes must be 1, 2, 4 or 8, not 5"),
        (("http://a", "lines"), {"reconnect": True}, ValueError, "reconnect is for events"),
    ],
)
def test_wrong_arguments(arguments: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^from_http: {message}"):
        Dataset.from_http(*arguments, **options)


def test_what_a_dataset_gives_must_be_urls() -> None:
    ds = Dataset.from_http(Dataset.from_list(["no", "ftp://a"]))
    assert_outcomes(ds, [ValueError, ValueError])
    assert_outcomes(Dataset.from_http(Dataset.range(2), num_parallel_calls=2), [TypeError, TypeError])


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(ImportError, match=r"from_http needs aiohttp: pip install 'aiodata-pipeline\[http\]'"):
        Dataset.from_http("http://a")


def test_what_is_known() -> None:
    text = TensorSpec((), object)
    ds = Dataset.from_http("http://a/b?key=hush", name="feed")
    assert repr(ds) == "<Dataset\nfrom_http(http://a/b?key=***, response) 'feed': object>"
    assert (ds.cardinality(), ds.element_spec) == (1, text)
    ds = Dataset.from_http(["http://a"] * 3, "lines", 2, body=b"hush", headers=ssl.get_default_verify_paths)
    assert repr(ds).splitlines()[2] == (
        "from_http(lines, separator=b'\\n', POST, headers=get_default_verify_paths): object>"
    )
    assert (ds.cardinality(), ds.element_spec) == (aiodata.UNKNOWN_CARDINALITY, text)
    ds = Dataset.from_http("http://a", "events", reconnect=True)
    assert ds.element_spec == ServerSentEvent(text, text, text)  # type: ignore[arg-type]
    assert Dataset.from_http(Dataset.from_list(["http://a"] * 3)).cardinality() == 3
    assert first(ds, 0) == []
