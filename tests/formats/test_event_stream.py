"""Event streams as the HTML standard has them, in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata.errors import CorruptRecordError
from aiodata.formats.event_stream import EventStream, ServerSentEvent


def parse(*pieces: bytes, most: int = 1000, last_id: str = "") -> list[tuple[str, str, str, bool]]:
    stream = EventStream("feed", 0, most, last_id)
    return [(*event, has_id) for piece in pieces for event, has_id in stream.feed(piece)]


def message(data: str, id: str = "", has_id: bool = False) -> tuple[str, str, str, bool]:
    return "message", data, id, has_id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The standard's own examples.
        (
            "data: YHOO\ndata: +2\ndata: 10\n\n",
            [message("YHOO\n+2\n10")],
        ),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [message("first event", "1", True), message("second event"), message(" third event")],
        ),
        ("data\n\ndata\ndata\n\ndata:", [message(""), message("\n")]),
        ("data:test\n\ndata: test\n\n", [message("test"), message("test")]),
        (
            "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n",
            [("add", "73857293", "", False), ("remove", "2153", "", False)],
        ),
        # An event's kind lasts for one event, and one without data is none.
        ("event: a\n\ndata: x\n\n", [message("x")]),
        ("event: a\nevent: b\ndata: x\n\n", [("b", "x", "", False)]),
        ("event:\ndata: x\n\n", [message("x")]),
        ("event: a\ndata:\n\n", [("a", "", "", False)]),
        # An id lasts; one without data counts for the next event; one with a NULL is ignored; an empty one resets it.
        ("id: 7\ndata: x\n\ndata: y\n\n", [message("x", "7", True), message("y", "7")]),
        ("id: 7\n\ndata: y\n\n", [message("y", "7", True)]),
        ("id: 7\ndata: x\n\nid: 8\0\ndata: y\n\n", [message("x", "7", True), message("y", "7")]),
        ("id: 7\ndata: x\n\nid:\ndata: y\n\n", [message("x", "7", True), message("y")]),
        # Fields without a colon, unknown ones, those in other cases and with spaces around.
        ("data\nfoo: x\nData: y\n data: z\ndata : w\n\n", [message("")]),
        ("data:a:b: c\n\n", [message("a:b: c")]),
        # What is not complete is no event.
        ("data: x\n", []),
        ("data: x", []),
        ("", []),
        ("\n\n\n", []),
        # One byte-order mark at the start belongs to nothing; elsewhere it does.
        ("\ufeffdata: x\n\n\ufeffdata: y\n\ndata: \ufeffz\n\n", [message("x"), message("\ufeffz")]),
        ("\ufeff\ufeffdata: x\n\n", []),
        ("data: ä€😀\n\n", [message("ä€😀")]),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_stream(text: str, expected: list[tuple[str, str, str, bool]], end: str, size: int) -> None:
    data = text.replace("\n", end).encode()
    assert parse(*(data[at : at + size] for at in range(0, len(data), size))) == expected


def test_ends_of_lines_may_differ() -> None:
    assert parse(b"data: a\rdata: b\r\ndata: c\n\r\r\n") == [message("a\nb\nc")]
    assert parse(b"data: a\r", b"\ndata: b\n\r", b"", b"\n\ndata: c\r\r") == [message("a\nb"), message("c")]


def test_an_event_is_given_with_its_last_byte() -> None:
    assert parse(b"data: a\r\r") == [message("a")]
    stream = EventStream("feed", 0, 100)
    assert list(stream.feed(b"data: a\r\n\r")) == [(ServerSentEvent("message", "a", ""), False)]
    assert list(stream.feed(b"\n")) == []


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert parse(b"data: \xff\xc3\n\n") == [message("\ufffd\ufffd")]


def test_an_id_from_before_lasts() -> None:
    assert parse(b"data: x\n\n", last_id="6") == [message("x", "6")]


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("retry: 10", 0.01),
        ("retry:0", 0.0),
        ("retry: 1.5", None),
        ("retry: -1", None),
        ("retry", None),
        ("retry: 1٢", None),
        ("retry: " + "9" * 99, None),
        ("retry: 5\nretry: x", 0.005),
    ],
)
def test_retry_takes_digits_only(line: str, seconds: float | None) -> None:
    stream = EventStream("feed", 0, 100)
    assert list(stream.feed(line.encode() + b"\n")) == []
    assert stream.retry_seconds == seconds


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_longest_event_has_the_length_that_is_allowed(size: int) -> None:
    def cut(data: bytes) -> list[tuple[str, str, str, bool]]:
        return parse(*(data[at : at + size] for at in range(0, len(data), size)), most=12)

    assert cut(b"data:1234567\n\n" * 3 + b":comment 123\n") == [message("1234567")] * 3
    for long in (b"data:12345678\n\n", b"data:1\ndata:2\n\n" + b"x" * 20, b"data:1\ndata:2\ndata:3\n\n", b":" * 13):
        with pytest.raises(CorruptRecordError, match=r"feed, record \d: the event is longer than 12 bytes, which max_"):
            cut(long)


texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=9)


@given(st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3))), st.lists(st.integers(1, 9), min_size=1))
def test_pieces_of_any_size_are_cut_alike(events: list[tuple[str, list[str]]], sizes: list[int]) -> None:
    data = "".join(
        f"event: {kind}\n" + "".join(f"data: {line}\n" for line in lines) + "\n" for kind, lines in events
    ).encode()
    pieces: list[bytes] = []
    while data:
        pieces.append(data[: sizes[len(pieces) % len(sizes)]])
        data = data[len(pieces[-1]) :]
    expected = [(kind or "message", "\n".join(lines), "", False) for kind, lines in events]
    assert parse(*pieces) == expected
