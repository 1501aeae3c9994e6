"""Answers with other bytes than were asked for: the right ones in the end, or an error, never a mix."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import aiodata
from aiodata import TextLineDataset
from aiodata.errors import RemoteError
from tests.programs import assert_outcomes, outcomes, to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import (
    Chunked,
    Compressed,
    CutAt,
    Headers,
    IgnoreRange,
    Normal,
    OtherRange,
    Replace,
    Status,
    WrongByteAt,
)
from tests.storage.remote_files import LINES, TEXT, assert_heals, counted, limited, lines_of, quick, read_all

if TYPE_CHECKING:
    from tests.servers.http_answers import Digest

pytest.importorskip("aiohttp")
HALF = len(TEXT) // 2


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        started.files["/a"] = TEXT
        yield started
        started.wait_for_no_connections()


# Servers without ranges, with others, and with more than was asked for


def test_a_server_that_ignores_ranges_gives_the_right_bytes(server: HttpServer) -> None:
    server.ranges = False
    with lines_of(server.url + "/a").iterate() as iterator:
        got = [next(iterator) for _ in range(9)]
        state = iterator.state_dict()
    with lines_of(server.url + "/a").iterate(state) as iterator:
        got += iterator
        assert counted(iterator) == (1, 0)
    assert got == LINES


@pytest.mark.parametrize("size", [1000, 100_000, 3_000_000])
def test_a_server_that_forgets_what_ranges_are(size: int, server: HttpServer) -> None:
    data = server.files["/a"] = bytes(range(250)) * (size // 250)
    server.script("/a", [CutAt(size // 3), (IgnoreRange(), CutAt(size // 2)), (IgnoreRange(), Chunked()), Normal()])
    assert aiodata.read_file(server.url + "/a", quick()) == data


def test_another_range_is_asked_for_again(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    assert_heals(server, [OtherRange(5), OtherRange(7, 9), Headers({"content-range": "bytes 5-9/100"})], 3, caplog)
    server.script("/a", [OtherRange(5)] * 5)
    with pytest.raises(RemoteError, match="the answer is for another range, which begins at byte 5"):
        to_list(lines_of(server.url + "/a", max_attempts=5))


def test_shorter_ranges_than_were_asked_for(server: HttpServer) -> None:
    server.script("/a", [OtherRange(0, 99), OtherRange(100, 300)])
    assert read_all(lines_of(server.url + "/a")) == (LINES, 3, 0)


@pytest.mark.parametrize("value", [None, "bytes 0-9/*", "bytes */5", "nonsense", "items 0-9/10"])
def test_a_range_that_tells_too_little_is_asked_for_as_a_whole(value: str | None, server: HttpServer) -> None:
    server.script("/a", [Headers({"content-range": value})])
    assert to_list(lines_of(server.url + "/a")) == LINES
    assert [request.range is None for request in server.requests] == [False, True]


def test_a_refused_range_whose_size_is_not_told(server: HttpServer) -> None:
    server.script("/a", [Status(416)])
    assert to_list(lines_of(server.url + "/a")) == LINES


# Compression in transfer


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("chunked", [True, False])
def test_compression_in_transfer_is_undone(ranges: bool, chunked: bool, server: HttpServer) -> None:
    data = server.files["/a"] = b"".join(b"%d\n" % number for number in range(200_000))
    fault = (Compressed(ranges), *((Chunked(),) if chunked else ()))
    server.script("/a", [fault] * 50)
    assert aiodata.read_file(server.url + "/a", quick(chunk_bytes=10_000)) == data
    with lines_of(server.url + "/a").iterate() as iterator:
        got = [next(iterator) for _ in range(150_000)]
        state = iterator.state_dict()
    with lines_of(server.url + "/a").iterate(state) as iterator:
        got += iterator
    assert got == data.split()


def test_several_compressed_members_in_transfer(server: HttpServer) -> None:
    server.files["/a"] = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    server.script("/a", [Headers({"content-encoding": "gzip"})] * 2)
    assert aiodata.read_file(server.url + "/a") == b"one\ntwo\n"


def test_a_bomb_is_taken_in_small_pieces(server: HttpServer) -> None:
    server.files["/a"] = gzip.compress(bytes(50_000_000), 1)
    server.script("/a", [Headers({"content-encoding": "gzip"})] * 2)
    ds = limited(aiodata.FixedLengthRecordDataset(server.url + "/a", 1000), read_ahead_bytes=1_000_000)
    with ds.iterate() as iterator:
        assert next(iterator) == bytes(1000)
        from aiodata.storage.transfer import network

        assert network._network is not None
        assert network._network.limits.held <= 4 * 1024 * 1024


def test_a_compressed_file_stays_compressed(server: HttpServer) -> None:
    data = server.files["/a.txt.gz"] = gzip.compress(TEXT)
    server.script("/a.txt.gz", [Headers({"content-encoding": "gzip"})] * 2)
    assert aiodata.read_file(server.url + "/a.txt.gz") == data
    assert to_list(TextLineDataset(server.url + "/a.txt.gz", "GZIP")) == LINES


def test_a_compression_that_nobody_asked_for(server: HttpServer) -> None:
    server.script("/a", [Headers({"content-encoding": "br"})] * 2)
    with pytest.raises(RemoteError, match="the server compresses by 'br', which was not asked for"):
        to_list(lines_of(server.url + "/a"))


# Damage


DIGESTS: list[Digest] = ["content-digest", "repr-digest", "content-md5", "x-goog-hash"]


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("digest", DIGESTS)
def test_a_damaged_answer_is_asked_for_again(
    digest: Digest, ranges: bool, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    if digest == "x-goog-hash":
        pytest.importorskip("google_crc32c")  # for the server
    server.digests, server.ranges = digest, ranges
    if ranges and digest == "content-md5":
        server.script("/a", [Normal()])  # of an answer with a range it says nothing
        assert to_list(lines_of(server.url + "/a")) == LINES
        return
    assert_heals(server, [WrongByteAt(70), WrongByteAt(0), WrongByteAt(len(TEXT) - 1)], 3, caplog)
    assert caplog.text.count("the answer is damaged") == 3
    server.script("/a", [WrongByteAt(70)] * 3)
    with pytest.raises(RemoteError, match=r"byte 0: the answer is damaged: it has another checksum than the server"):
        to_list(lines_of(server.url + "/a", max_attempts=3))


def test_damage_in_the_middle_of_a_file_of_several_chunks(server: HttpServer, caplog: pytest.LogCaptureFixture) -> None:
    server.digests = "content-digest"
    caplog.set_level(logging.WARNING, "aiodata")
    data = server.files["/a"] = bytes(range(256)) * 40
    server.script("/a", [Normal(), WrongByteAt(3001), Normal(), (WrongByteAt(6000), CutAt(2500))])
    assert aiodata.read_file(server.url + "/a", quick(chunk_bytes=3000, read_ahead_bytes=3000)) == data
    assert caplog.text.count("byte 3000: the answer is damaged") == 1
    assert len(server.requests) == 6


@pytest.mark.parametrize("digest", ["repr-digest", "content-md5"])
def test_damage_that_is_noticed_when_what_came_has_been_given_is_an_error(digest: Digest, server: HttpServer) -> None:
    server.digests, server.ranges = digest, False
    server.files["/a"] = bytes(range(256)) * 400
    server.script("/a", [WrongByteAt(3001)])
    with pytest.raises(RemoteError, match="it has another checksum than the server says, and what came has been read"):
        aiodata.read_file(server.url + "/a", quick(chunk_bytes=3000, read_ahead_bytes=3000))
    assert len(server.requests) == 1


def test_a_file_that_is_compressed_where_it_is_stored_has_another_checksum(server: HttpServer) -> None:
    server.ranges = False
    server.script(
        "/a", [Headers({"x-goog-hash": "md5=AAAAAAAAAAAAAAAAAAAAAA==", "x-goog-stored-content-encoding": "gzip"})]
    )
    assert to_list(lines_of(server.url + "/a")) == LINES


# Another file


@pytest.mark.parametrize("marks", ["etag", "last-modified", "size"])
def test_a_file_that_is_replaced_while_it_is_read_is_an_error(marks: str, server: HttpServer) -> None:
    server.etags = marks == "etag"
    if marks == "last-modified":
        server.last_modified = "Mon, 30 Nov 2026 07:00:00 GMT"
    other = TEXT.swapcase() + (b"more\n" if marks == "size" else b"")
    headers = Headers({"last-modified": "Mon, 30 Nov 2026 07:00:01 GMT"} if marks == "last-modified" else {})
    server.script("/a", [CutAt(HALF), (Replace(other), headers)])
    got = outcomes(lines_of(server.url + "/a"))
    assert got[:-1] == LINES[: len(got) - 1]
    assert isinstance(got[-1], RemoteError)
    assert f"byte {HALF}: the file has been replaced while it was being read" in str(got[-1])


def test_a_file_that_is_replaced_between_two_chunks(server: HttpServer) -> None:
    server.script("/a", [Normal(), Replace(TEXT.swapcase())])
    step = len(TEXT) // 2
    got = outcomes(lines_of(server.url + "/a", chunk_bytes=step, read_ahead_bytes=step))
    assert isinstance(got[-1], RemoteError)
    assert set(got[:-1]) <= set(LINES)


def test_a_server_that_tells_neither_ranges_nor_versions_gives_no_mix(server: HttpServer) -> None:
    server.etags = server.ranges = False
    server.files["/a"] = bytes(range(250)) * 40
    other = server.files["/a"][:10] + b"?" + server.files["/a"][11:]
    server.script("/a", [CutAt(5000), Replace(other)])
    with pytest.raises(RemoteError, match="byte 5000: the file has been replaced while it was being read"):
        aiodata.read_file(server.url + "/a", quick(chunk_bytes=3000, read_ahead_bytes=9000))
    server.script("/a", [CutAt(5000), (Chunked(), CutAt(4000)), Chunked()])
    assert aiodata.read_file(server.url + "/a", quick(chunk_bytes=3000, read_ahead_bytes=9000)) == other


def test_errors_in_their_places_are_the_same_on_both_faces(server: HttpServer) -> None:
    urls = [server.url + "/none", server.url + "/a", server.url + "/neither"]
    assert_outcomes(limited(TextLineDataset(urls)), [FileNotFoundError, *LINES, FileNotFoundError])
