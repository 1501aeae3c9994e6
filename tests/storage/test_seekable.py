"""Remote files that are read by seeking, in the thread that reads them."""

from __future__ import annotations

import contextlib
import io
import random
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from aiodata.engine.statistics import Counters
from aiodata.errors import EndedEarlyError, RemoteError
from aiodata.options import StorageOptions
from aiodata.storage import Answer, FileInfo, Storage, register, schemes
from aiodata.storage.transfer.network import Lease
from aiodata.storage.transfer.parts import WINDOW_BYTES
from aiodata.storage.transfer.seekable import SeekableFile
from tests.servers.http import HttpServer
from tests.servers.http_faults import (
    Chunked,
    CutAt,
    IgnoreRange,
    Normal,
    Replace,
    ResetAt,
    SilentAt,
    Status,
    WrongByteAt,
)

if TYPE_CHECKING:
    from aiodata.storage.transfer.expected import Range

pytest.importorskip("aiohttp", reason="it reads URLs")

CONTENT = random.Random(1).randbytes(1_000_000)
PATIENCE_SECONDS = 10.0


def limits(**given: Any) -> StorageOptions:
    return StorageOptions(**{"first_wait_seconds": 0.001, "max_wait_seconds": 0.01, "max_attempts": 4, **given})


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as made:
        made.files["/a"] = CONTENT
        yield made


class Opened:
    """A file that has been started, and what it counts."""

    def __init__(self, url: str, **options: Any) -> None:
        self.lease = Lease()
        self.counters = Counters("test")
        self.file = SeekableFile(self.lease.network, url, limits(**options), self.counters)

    def __enter__(self) -> Opened:
        try:
            self.file.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        held = self.lease.network.limits.held
        self.lease.close()
        assert held == 0

    def read(self, begin: int, end: int) -> bytes:
        self.file.seek(begin)
        return self.file.read(end - begin)


def ranges(server: HttpServer) -> list[Any]:
    """Give what was asked for, each as its first byte and the one behind the last."""
    return [None if each.range is None else (each.range[0], (each.range[1] or 0) + 1) for each in server.requests]


# As a file


def test_it_is_read_like_any_other(server: HttpServer) -> None:
    chance = random.Random(2)
    groups: list[list[Range]] = [[(0, 200_000), (300_000, 500_000)], [(500_000, 500_001)], [(600_000, 1_000_000)]]
    for chunk, ahead, expects in [
        (1000, 0, True),
        (90_000, 300_000, True),
        (1 << 21, 1 << 23, True),
        (70_000, 0, False),
    ]:
        plain = io.BytesIO(CONTENT)
        with Opened(server.url + "/a", chunk_bytes=chunk, read_ahead_bytes=ahead) as opened:
            file = opened.file
            if expects:
                file.expect(groups)
            for _ in range(60):
                if chance.random() < 0.6:
                    place = chance.randrange(1_100_000)
                    assert file.seek(place) == plain.seek(place)
                size = chance.choice([0, 1, 100, 5000, 70_000, 250_000])
                assert file.read(size) == plain.read(size)
                assert file.tell() == plain.tell()
            assert (file.seek(-5, 2), file.read()) == (999_995, CONTENT[-5:])
            assert (file.seek(10), file.seek(5, 1), file.readall()) == (10, 15, CONTENT[15:])


def test_reading_into_memory(server: HttpServer) -> None:
    with Opened(server.url + "/a") as opened:
        buffer = bytearray(10)
        opened.file.seek(-4, 2)
        assert opened.file.readinto(buffer) == 4
        assert bytes(buffer) == CONTENT[-4:] + bytes(6)
        assert opened.file.readinto(buffer) == 0
        assert (opened.file.readable(), opened.file.seekable(), opened.file.writable()) == (True, True, False)


def test_there_is_nothing_before_the_start(server: HttpServer) -> None:
    with Opened(server.url + "/a") as opened, pytest.raises(OSError, match="nothing before the start") as error:
        opened.file.seek(-1)
    assert error.value.errno == 22


def test_an_empty_file(server: HttpServer) -> None:
    server.files["/empty"] = b""
    with Opened(server.url + "/empty") as opened:
        assert (opened.file.size, opened.file.read(), opened.file.seek(0, 2)) == (0, b"", 0)


# Requests


def test_the_first_request_tells_the_size_and_has_all_of_a_small_file(server: HttpServer) -> None:
    server.files["/small"] = b"content"
    with Opened(server.url + "/small") as opened:
        assert opened.file.size == 7
        assert [opened.read(0, 7), opened.read(3, 5), opened.read(6, 100)] == [b"content", b"te", b"t"]
    assert len(server.requests) == 1
    assert (opened.counters.requests, opened.counters.bytes_read, opened.counters.retries) == (1, 7, 0)


def test_what_is_not_expected_is_asked_for_as_it_is_read(server: HttpServer) -> None:
    with Opened(server.url + "/a", chunk_bytes=200_000) as opened:
        assert opened.read(500_000, 500_010) == CONTENT[500_000:500_010]
        assert opened.read(500_010, 500_500) == CONTENT[500_010:500_500]  # is there already
        assert opened.read(999_990, 1_000_000) == CONTENT[-10:]
        assert opened.read(940_000, 940_010) == CONTENT[940_000:940_010]  # so is what comes before the end
        assert opened.read(100_000, 400_000) == CONTENT[100_000:400_000]
    window = WINDOW_BYTES
    assert ranges(server)[:3] == [(0, window), (500_000, 500_000 + window), (1_000_000 - window, 1_000_000)]
    assert sorted(ranges(server)[3:]) == [(100_000, 300_000), (300_000, 400_000)]
    assert opened.counters.bytes_read == 3 * window + 300_000


def test_what_is_expected_is_asked_for_at_once(server: HttpServer) -> None:
    with Opened(server.url + "/a", chunk_bytes=100_000, read_ahead_bytes=400_000) as opened:
        server.holding = True
        opened.file.expect([[(500_000, 600_000), (700_000, 800_000)], [(800_000, 1_000_000)]])
        server.wait_for_requests_at_once(2)
        server.holding = False
        for begin in (500_000, 700_000, 550_000, 750_000, 800_000, 900_000):
            end = begin + (50_000 if begin < 800_000 else 100_000)
            assert opened.read(begin, end) == CONTENT[begin:end]
    asked = [(500_000, 600_000), (700_000, 800_000), (800_000, 900_000), (900_000, 1_000_000)]
    assert sorted(ranges(server)[1:]) == asked
    assert opened.counters.requests == 5


def test_no_more_is_asked_for_than_the_limit(server: HttpServer) -> None:
    with Opened(server.url + "/a", chunk_bytes=50_000, read_ahead_bytes=150_000) as opened:
        opened.file.expect([[(100_000, 1_000_000)]])
        for begin in range(100_000, 1_000_000, 10_000):
            assert opened.read(begin, begin + 10_000) == CONTENT[begin : begin + 10_000]
            assert opened.lease.network.limits.held <= 3 * 50_000 + 50_000 + WINDOW_BYTES
    assert server.most_requests_at_once <= 3
    assert len(server.requests) == 1 + 18


@pytest.mark.parametrize("limit", [{"memory_bytes": 0}, {"read_ahead_bytes": 0}])
def test_where_nothing_may_be_read_ahead_it_is_read_nevertheless(server: HttpServer, limit: dict[str, int]) -> None:
    with Opened(server.url + "/a", chunk_bytes=50_000, **limit) as opened:
        opened.file.expect([[(100_000, 1_000_000)]])
        for begin in range(100_000, 1_000_000, 50_000):
            assert opened.read(begin, begin + 50_000) == CONTENT[begin : begin + 50_000]
    assert server.most_requests_at_once == 1
    assert len(server.requests) == 1 + 18


def test_what_is_skipped_does_not_stop_the_reading_ahead(server: HttpServer) -> None:
    with Opened(server.url + "/a", chunk_bytes=50_000, read_ahead_bytes=100_000) as opened:
        opened.file.expect([[(begin, begin + 100_000)] for begin in range(100_000, 900_000, 100_000)])
        assert opened.read(300_000, 310_000) == CONTENT[300_000:310_000]
        server.wait_for_requests(4)  # the first ones, the expected ones, and this one
        server.requests.clear()
        assert opened.read(310_000, 500_000) == CONTENT[310_000:500_000]
        server.wait_for_requests(4)  # what follows
    assert all(begin >= 300_000 for begin, _ in ranges(server))


def test_expecting_anew_drops_what_was_expected(server: HttpServer) -> None:
    with Opened(server.url + "/a", chunk_bytes=100_000) as opened:
        server.holding = True
        opened.file.expect([[(100_000, 200_000)]])
        server.wait_for_requests_at_once(1)
        opened.file.expect([[(700_000, 800_000)]])
        server.wait_for_requests(3)
        server.holding = False
        assert opened.read(700_000, 800_000) == CONTENT[700_000:800_000]
        assert opened.read(100_000, 100_005) == CONTENT[100_000:100_005]


@pytest.mark.parametrize("groups", [[[(-5, 10)]], [[(5, 5)]], [[(10, 5)]], [[(999_999, 1_000_001)]], [[]], []])
def test_what_cannot_be_is_not_expected(server: HttpServer, groups: Any) -> None:
    with Opened(server.url + "/a") as opened:
        opened.file.expect(groups)
        assert opened.read(999_999, 1_000_001) == CONTENT[-1:]


# Faults


@pytest.mark.parametrize(
    ("entries", "retries"),
    [
        ([Status(503), Normal()], 1),
        ([Status(429, {"Retry-After": "0"}), Status(500), Normal()], 2),
        ([ResetAt(0), ResetAt(10_000), CutAt(5000), Normal()], 3),
        ([SilentAt(30_000), Normal()], 1),
    ],
)
def test_faults_are_healed_from_the_last_byte(server: HttpServer, entries: Any, retries: int) -> None:
    with Opened(server.url + "/a", idle_seconds=0.3) as opened:
        server.script("/a", entries)
        assert opened.read(200_000, 400_000) == CONTENT[200_000:400_000]
    assert opened.counters.retries == retries
    assert opened.counters.requests == retries + 2
    assert len(server.requests) == retries + 2


def test_damage_that_a_checksum_shows_is_healed(server: HttpServer) -> None:
    server.digests = "content-digest"
    with Opened(server.url + "/a") as opened:
        server.script("/a", [WrongByteAt(250_000)])
        assert opened.read(200_000, 400_000) == CONTENT[200_000:400_000]
    assert opened.counters.retries == 1


def test_a_fault_that_stays_is_an_error_and_is_tried_again_when_read_again(server: HttpServer) -> None:
    with Opened(server.url + "/a?token=secret") as opened:
        server.script("/a", [Status(503)] * 4)
        with pytest.raises(RemoteError) as error:
            opened.read(200_000, 300_000)
        assert str(error.value) == (
            f"{server.url}/a?token=***, byte 200000: the server answered 503 Service Unavailable (tried 4 times)"
        )
        assert opened.read(200_000, 300_000) == CONTENT[200_000:300_000]
    assert opened.counters.retries == 3


@pytest.mark.parametrize(("status", "kind"), [(404, FileNotFoundError), (403, PermissionError)])
def test_what_will_not_pass_is_not_tried_again(server: HttpServer, status: int, kind: type[OSError]) -> None:
    server.script("/a", [Status(status)])
    with pytest.raises(kind), Opened(server.url + "/a"):
        pass
    assert len(server.requests) == 1


@pytest.mark.parametrize("expects", [False, True])
def test_a_file_that_is_replaced_is_an_error(server: HttpServer, expects: bool) -> None:
    with Opened(server.url + "/a") as opened:
        server.script("/a", [Replace(CONTENT[::-1])])
        if expects:
            opened.file.expect([[(200_000, 300_000)]])
        with pytest.raises(RemoteError, match="has been replaced while it was being read"):
            opened.read(200_000, 300_000)
        with pytest.raises(RemoteError, match="has been replaced while it was being read"):
            opened.read(500_000, 500_001)
        assert opened.read(0, 5) == CONTENT[:5]  # is still that of before


class Vague(Storage):
    """Its errors say nothing."""

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        if offset:
            raise OSError("out of order")
        return Answer(FileInfo(10**6, "1"), self._pieces(), 0)

    async def _pieces(self) -> Any:
        yield CONTENT[:WINDOW_BYTES]


def test_what_a_read_raised_can_be_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemes, "_registered", dict(schemes._registered))
    register("vague", Vague)
    with Opened("vague://host/a") as opened:
        for begin in (200_000, 0):
            with contextlib.suppress(OSError):
                opened.read(begin, begin + 10)
            if begin:
                with pytest.raises(OSError, match="out of order"):
                    opened.file.raise_failure()
            opened.file.raise_failure()


# Servers without ranges


@pytest.mark.parametrize("how", ["no ranges", "compressed", "chunked", "both", "ignored once"])
def test_without_ranges_the_file_is_read_once(server: HttpServer, how: str) -> None:
    server.ranges = how in ("compressed", "ignored once")
    server.compresses = how in ("compressed", "both")
    server.chunked = how in ("chunked", "both")
    if how == "ignored once":
        server.script("/a", [IgnoreRange()])
    with Opened(server.url + "/a") as opened:
        assert opened.file.size == 1_000_000
        opened.file.expect([[(0, 1_000_000)]])
        for begin in (999_990, 0, 500_000, 70_000, 70_000):
            assert opened.read(begin, begin + 100_000) == CONTENT[begin : begin + 100_000]
        spool = opened.file.spooled()
        assert spool is opened.file.spooled()
    assert spool.closed
    assert len(server.requests) <= 4
    assert sum(each.method == "GET" for each in server.requests) == len(server.requests)


def test_a_copy_is_healed_as_well(server: HttpServer) -> None:
    server.ranges = False
    server.script("/a", [Normal(), CutAt(300_000), Chunked(), Normal()])
    with Opened(server.url + "/a") as opened:
        assert opened.file.read() == CONTENT
    assert opened.counters.retries == 1


def test_a_copy_of_another_file_is_an_error(server: HttpServer) -> None:
    server.ranges = False
    server.script("/a", [Normal(), Replace(CONTENT[::-1])])
    with pytest.raises(RemoteError, match="has been replaced"), Opened(server.url + "/a"):
        pass


def test_a_copy_that_is_asked_for_is_read_in_ranges(server: HttpServer) -> None:
    with Opened(server.url + "/a", chunk_bytes=100_000) as opened:
        assert opened.file.spooled().seek(0, 2) == 1_000_000
        assert opened.read(3, 700_000) == CONTENT[3:700_000]
    assert len(server.requests) == 11


# The end


@pytest.mark.parametrize("expects", [False, True])
def test_an_interrupt_wakes_what_reads(server: HttpServer, expects: bool) -> None:
    found: list[BaseException] = []

    def read() -> None:
        try:
            opened.read(200_000, 300_000)
        except EndedEarlyError as error:
            found.append(error.with_traceback(None))

    with Opened(server.url + "/a") as opened:
        server.holding = True
        if expects:
            opened.file.expect([[(200_000, 300_000)]])
        reader = threading.Thread(target=read)
        reader.start()
        server.wait_for_requests_at_once(1)
        opened.file.interrupt()
        reader.join(PATIENCE_SECONDS)
        assert not reader.is_alive()
        server.wait_for_requests(2)
        with pytest.raises(EndedEarlyError, match="the pipeline was closed"):
            opened.read(500_000, 500_001)
    assert len(found) == 1
    server.wait_for_no_connections()
    server.holding = False


def test_closing_ends_what_was_asked_for_ahead(server: HttpServer) -> None:
    opened = Opened(server.url + "/a", chunk_bytes=50_000, read_ahead_bytes=500_000)
    with opened:
        server.holding = True
        opened.file.expect([[(500_000, 950_000)]])
        server.wait_for_requests_at_once(9)
    server.wait_for_no_connections()
    server.holding = False
    opened.file.close()
    with pytest.raises(ValueError, match="closed"):
        opened.file.flush()
