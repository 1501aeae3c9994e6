"""`Dataset.from_http` with events: what a stream gives, going on by the last id, states, ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset, Options, StorageOptions
from aiodata.errors import CorruptRecordError, RemoteError, StateError
from aiodata.formats.event_stream import ServerSentEvent
from tests.programs import assert_gives, outcomes, to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import CutAt, Fault, Headers, Normal, ResetAt, SilentAt, Status

if TYPE_CHECKING:
    from tests.servers.http_answers import Request
    from tests.servers.http_connection import Body

pytest.importorskip("aiohttp", reason="HTTP needs aiohttp")

QUICK = Options(
    storage=StorageOptions(first_wait_seconds=0.001, max_wait_seconds=0.01, max_attempts=4, idle_seconds=10)
)
Written = tuple[str, str]
"""An id, or "", and the data."""


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as made:
        yield made


def text(events: list[Written]) -> bytes:
    return "".join((f"id: {id}\n" if id else "") + f"data: {data}\n\n" for id, data in events).encode()


def serve(
    server: HttpServer, events: list[Written], then: Callable[[], list[Written]] | None = None, **headers: str | None
) -> None:
    """Serve events, those behind the last id that a client names; `then` gives other ones for all later requests."""
    history = list(events)

    async def handle(body: Body, request: Request) -> None:
        body.headers.update({"content-type": "text/event-stream; charset=utf-8"} | headers)
        last = request.headers.get("last-event-id", "")
        begin = 1 + max((place for place, (id, _) in enumerate(history) if id == last), default=-1) if last else 0
        sent = history[begin:]
        if then is not None:
            history[:] = then()
        await body(text(sent))

    server.streams["/events"] = handle


def events(server: HttpServer, **options: Any) -> Dataset[Any]:
    return Dataset.from_http(server.url + "/events", "events", **options).with_options(QUICK)


def expected(written: list[Written]) -> list[ServerSentEvent]:
    found: list[ServerSentEvent] = []
    for id, data in written:
        found.append(ServerSentEvent("message", data, id or (found[-1].id if found else "")))
    return found


def read(ds: Dataset[Any]) -> tuple[list[Any], int, int]:
    with ds.iterate() as iterator:
        found = list(iterator)
        (counters,) = (each for each in iterator.statistics() if each["stage"] == "from_http")
        return found, counters["requests"], counters.get("retries", 0)


def last_ids(server: HttpServer) -> list[str | None]:
    return [request.headers.get("last-event-id") for request in server.requests]


NUMBERED = [(str(n), f"event {n}") for n in range(1, 21)]
SOME = [(str(n) if n % 4 == 1 else "", f"event {n}") for n in range(1, 21)]
NONE = [("", f"event {n}" * 30) for n in range(1, 21)]


@pytest.mark.parametrize("written", [NUMBERED, SOME, NONE, []])
def test_events_are_given(server: HttpServer, written: list[Written]) -> None:
    serve(server, written)
    assert_gives(events(server), expected(written))
    headers = server.requests[0].headers
    assert (headers["accept"], headers["cache-control"]) == ("text/event-stream", "no-store")


def test_events_are_functions_arguments_and_batches(server: HttpServer) -> None:
    serve(server, NUMBERED[:3])
    assert to_list(events(server).map(lambda event: event.data + event.id)) == ["event 11", "event 22", "event 33"]
    (batch,) = to_list(events(server).batch(5))
    assert isinstance(batch, ServerSentEvent)
    assert list(batch.data) == ["event 1", "event 2", "event 3"]


async def test_events_are_given_as_they_come(server: HttpServer) -> None:
    go_on = asyncio.Event()

    async def handle(body: Body, request: Request) -> None:
        body.headers["content-type"] = "text/event-stream"
        await body(b": hello\n\ndata: a\n\ndata: b")
        await go_on.wait()
        await body(b"\n\n")

    server.streams["/events"] = handle
    async with events(server).iterate() as iterator:
        assert await anext(iterator) == ("message", "a", "")
        server._loop.call_soon_threadsafe(go_on.set)
        assert await anext(iterator) == ("message", "b", "")


@pytest.mark.parametrize("written", [NUMBERED, SOME, NONE])
@pytest.mark.parametrize("fault", [ResetAt(0), CutAt(100), ResetAt(101), CutAt(300), SilentAt(150)], ids=repr)
def test_a_stream_that_breaks_is_gone_on_with(server: HttpServer, fault: Fault, written: list[Written]) -> None:
    serve(server, written)
    server.script("/events", [fault, Normal()])
    options = Options(storage=StorageOptions(idle_seconds=0.3 if isinstance(fault, SilentAt) else 10))
    assert read(events(server).with_options(options)) == (expected(written), 2, 1)


def test_the_last_id_that_came_is_named(server: HttpServer) -> None:
    serve(server, NUMBERED)
    size = len(text(NUMBERED[:3]))
    server.script("/events", [CutAt(size), CutAt(0), Status(503), CutAt(size - 1), Normal()])
    assert read(events(server)) == (expected(NUMBERED), 5, 4)
    assert last_ids(server) == [None, "3", "3", "3", "5"]


def test_events_without_ids_may_be_left_out_where_one_with_an_id_follows(server: HttpServer) -> None:
    pinged = [("1", "a"), ("", "ping"), ("", "ping"), ("2", "b"), ("3", "c")]
    serve(server, pinged, lambda: [event for event in pinged if event[0]])
    server.script("/events", [CutAt(len(text(pinged[:3])))])
    assert to_list(events(server)) == expected(pinged)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (NONE, NONE[1:]),
        (NONE, [("", "other" * 400), *NONE]),
        (NONE, NONE[:1]),
        (SOME, [*SOME[:1], ("", "other"), *SOME[2:]]),
    ],
)
def test_what_cannot_be_gone_on_with_is_an_error(
    server: HttpServer, before: list[Written], after: list[Written]
) -> None:
    serve(server, before, lambda: after)
    server.script("/events", [CutAt(len(text(before[:3])))])
    with events(server).ignore_errors().iterate() as iterator:
        assert [next(iterator) for _ in range(3)] == expected(before[:3])
        with pytest.raises(RemoteError, match="the stream cannot be gone on with: asked again, the server gives other"):
            next(iterator)


def test_the_servers_wait_is_kept(server: HttpServer) -> None:
    serve(server, NUMBERED)

    async def handle(body: Body, request: Request) -> None:
        body.headers["content-type"] = "text/event-stream"
        await body(b"retry: 300\nid: 1\ndata: a\n\n")

    server.streams["/events"] = handle
    server.script("/events", [ResetAt(30), Normal()])
    assert to_list(events(server)) == [("message", "a", "1")] * 2  # this server does not care for ids
    assert server.requests[1].time - server.requests[0].time >= 0.3


def test_an_end_may_be_gone_on_from_until_the_server_says_no_more(server: HttpServer) -> None:
    left = [NUMBERED[:3], [], NUMBERED[3:5]]

    async def handle(body: Body, request: Request) -> None:
        body.headers["content-type"] = "text/event-stream"
        if not left:
            body.answer.status, body.answer.chunked = 204, False
            return
        await body(b"retry: 1\n\n" + text(left.pop(0)))

    server.streams["/events"] = handle
    assert read(events(server, reconnect=True)) == (expected(NUMBERED[:5]), 4, 0)
    assert last_ids(server) == [None, "3", "3", "5"]
    left[:] = [NONE[:2], NONE[5:7], NONE[:1]]
    assert to_list(events(server, reconnect=True)) == expected([*NONE[:2], *NONE[5:7], *NONE[:1]])
    assert read(events(server)) == ([], 1, 0)


@pytest.mark.parametrize("written", [NUMBERED, SOME, NONE])
def test_a_state_goes_on_at_each_event(server: HttpServer, written: list[Written]) -> None:
    serve(server, written)
    ds = events(server).map(lambda event: event.data).prefetch(2)
    states = []
    with ds.iterate() as iterator:
        for _ in written:
            states.append(json.loads(json.dumps(iterator.state_dict())))
            next(iterator)
        states.append(iterator.state_dict())
    for taken, state in enumerate(states):
        with ds.iterate(state) as iterator:
            assert list(iterator) == [data for _, data in written[taken:]]


def test_a_state_asks_for_what_follows_the_last_id(server: HttpServer) -> None:
    serve(server, NUMBERED)
    with events(server).iterate() as iterator:
        for _ in range(7):
            next(iterator)
        state = iterator.state_dict()
    server.requests.clear()
    with events(server).iterate(state) as iterator:
        assert next(iterator).id == "8"
    assert last_ids(server) == ["7"]


def test_a_state_of_other_events_is_refused(server: HttpServer) -> None:
    serve(server, NONE)
    with events(server).iterate() as iterator:
        for _ in range(3):
            next(iterator)
        state = iterator.state_dict()
    serve(server, NONE[1:])
    with events(server).iterate(state) as iterator, pytest.raises(StateError, match=r"and they have no ids"):
        next(iterator)


@pytest.mark.parametrize("calls", [None, 2])
def test_a_state_of_several_streams_loses_nothing(server: HttpServer, calls: int | None) -> None:
    serve(server, NUMBERED)
    ds = Dataset.from_http([server.url + "/events"] * 3, "events", calls).map(lambda event: event.data)
    whole = to_list(ds)
    states = []
    with ds.iterate() as iterator:
        for _ in whole:
            states.append(iterator.state_dict())
            next(iterator)
        states.append(iterator.state_dict())
    for taken, state in enumerate(states):
        with ds.iterate(state) as iterator:
            assert list(iterator) == whole[taken:]
    serve(server, [(id, "other") for id, _ in NUMBERED])  # some are asked for again, to be left out
    with ds.iterate(states[9]) as iterator, pytest.raises((StateError, RemoteError), match="the server gives other"):
        list(iterator)


def test_what_is_no_event_stream_is_refused(server: HttpServer) -> None:
    server.files["/events"] = b"data: x\n\n"
    with pytest.raises(RemoteError, match="the answer is application/octet-stream, not text/event-stream"):
        to_list(events(server))
    del server.files["/events"]
    (error,) = outcomes(events(server))
    assert isinstance(error, FileNotFoundError)
    assert any(f"from {server.url}/events event 0" in note for note in error.__notes__)


def test_an_event_that_is_too_long_is_an_error_in_its_place(server: HttpServer) -> None:
    serve(server, [("", "ab"), ("", "x" * 9)])
    found = outcomes(events(server, max_record_bytes=12))
    assert found[0] == ("message", "ab", "")
    assert isinstance(found[1], CorruptRecordError)
    assert len(found) == 2


def test_the_limit_of_attempts_is_kept(server: HttpServer) -> None:
    serve(server, NUMBERED)
    server.script("/events", [CutAt(100), *[Status(502)] * 4])
    with events(server).iterate() as iterator:
        found: list[Any] = []
        with pytest.raises(RemoteError, match=r"/events, event 4: .* 502 .*tried 4 times"):
            found.extend(iterator)
        state = iterator.state_dict()
    with events(server).iterate(state) as iterator:
        assert found + list(iterator) == expected(NUMBERED)


def test_compression_does_not_matter(server: HttpServer) -> None:
    serve(server, NUMBERED)
    server.script("/events", [Headers({"content-encoding": "identity"})])
    assert to_list(events(server)) == expected(NUMBERED)


async def test_a_break_closes_the_connection(server: HttpServer) -> None:
    async def handle(body: Body, request: Request) -> None:
        body.headers["content-type"] = "text/event-stream"
        await body(b"data: a\n\n")
        await asyncio.Event().wait()

    server.streams["/events"] = handle
    async with events(server).iterate() as iterator:
        assert (await anext(iterator)).data == "a"
    await asyncio.to_thread(server.wait_for_no_connections)
