"""A state of a pipeline over URLs is restored by a range read from its place, in any process, of the same file only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import StateError
from tests.programs import assert_same, to_list
from tests.servers.http import HttpServer
from tests.servers.http_faults import Compressed, Fault, Headers, IgnoreRange, Status
from tests.storage.remote_files import KINDS, LINES, READERS, TEXT, counted, limited, lines_of, made, read

pytest.importorskip("aiohttp")


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as started:
        started.files["/a"] = TEXT
        yield started
        started.wait_for_no_connections()


def states(ds: Dataset[Any]) -> tuple[list[Any], list[Any]]:
    """Give all elements, and the states before each of them and at the end."""
    elements, found = [], []
    with ds.iterate() as iterator:
        while True:
            found.append(json.loads(json.dumps(iterator.state_dict())))
            try:
                elements.append(next(iterator))
            except StopIteration:
                return elements, found


@pytest.mark.parametrize(("name", "compression"), KINDS)
@pytest.mark.parametrize("limits", [{}, {"chunk_bytes": 500, "read_ahead_bytes": 1000}], ids=["one", "many"])
def test_every_element_is_where_a_state_leads_to(
    name: str, compression: str, limits: dict[str, int], server: HttpServer
) -> None:
    server.files["/a"] = made(name, compression)
    ds = limited(read(name, compression, server.url + "/a"), **limits)
    elements, found = states(ds)
    for number, state in enumerate(found):
        with ds.iterate(state) as iterator:
            again = iterator.state_dict()
            rest = list(iterator)
        assert_same(rest, elements[number:])
        assert again == state
    with ds.iterate(found[3]) as second:
        assert_same(next(second), elements[3])
        with ds.iterate(second.state_dict()) as third:
            assert_same(next(third), elements[4])
            with ds.iterate(third.state_dict()) as fourth:
                assert_same(list(fourth), elements[5:])


def test_a_restore_reads_from_its_place(server: HttpServer) -> None:
    server.files["/a"] = b"".join(b"line %6d\n" % number for number in range(5000))
    ds = lines_of(server.url + "/a", chunk_bytes=6000, read_ahead_bytes=6000)
    elements, found = states(ds)
    for number in (0, 1, 2499, 4998, 5000):
        server.requests.clear()
        with ds.iterate(found[number]) as iterator:
            assert list(iterator) == elements[number:]
            requests, _ = counted(iterator)
            got = sum(stage.get("bytes_read", 0) for stage in iterator.statistics())
        first = min((request.range or (0,))[0] for request in server.requests)
        missing = 12 * (5000 - number)
        assert 12 * number - 6001 <= first <= 12 * number
        assert got <= missing + 6001
        assert requests == len(server.requests) <= missing // 6000 + 3


@pytest.mark.parametrize("ahead", ["prefetch", "interleave", "shuffle"])
def test_a_state_of_what_reads_ahead(ahead: str, server: HttpServer) -> None:
    urls = []
    for number in range(3):
        server.files[f"/{number}"] = b"".join(b"%d %d\n" % (number, line) for line in range(8))
        urls.append(f"{server.url}/{number}")

    def pipeline() -> Dataset[Any]:
        files = Dataset.from_tensor_slices(urls)
        if ahead == "interleave":
            return limited(files.interleave(TextLineDataset, 2, 2, num_parallel_calls=2))
        ds = files.flat_map(TextLineDataset)
        return limited(ds.prefetch(5) if ahead == "prefetch" else ds.shuffle(6, seed=3))

    elements, found = states(pipeline())
    assert len(elements) == 24
    for number, state in enumerate(found):
        with pipeline().iterate(state) as iterator:
            assert_same(list(iterator), elements[number:])


def test_a_state_is_restored_in_another_process(server: HttpServer) -> None:
    program = (
        "import json, sys, aiodata\n"
        "with aiodata.TextLineDataset(sys.argv[1]).iterate(json.loads(sys.argv[2])) as iterator:\n"
        "    print([line.decode() for line in iterator])\n"
    )
    ds = TextLineDataset(server.url + "/a")
    with ds.iterate() as iterator:
        for _ in range(33):
            next(iterator)
        state = json.dumps(iterator.state_dict())
    arguments = [sys.executable, "-W", "error", "-c", program, server.url + "/a", state]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=50, cwd=Path(__file__).parents[2])
    assert (done.stderr, done.stdout) == ("", f"{[line.decode() for line in LINES[33:]]}\n")


# Of the same file only


def saved(server: HttpServer, number: int = 20) -> Any:
    with lines_of(server.url + "/a", chunk_bytes=200, read_ahead_bytes=200).iterate() as iterator:
        for _ in range(number):
            next(iterator)
        state = iterator.state_dict()
    server.wait_for_no_connections()  # else a request that was given up may take what is scripted next
    return state


@pytest.mark.parametrize("number", [20, 39])
@pytest.mark.parametrize("other", [TEXT.swapcase(), TEXT + b"more\n", TEXT[:-20], TEXT[:100], b""])
@pytest.mark.parametrize("ranges", [True, False])
def test_another_file_is_refused(other: bytes, number: int, ranges: bool, server: HttpServer) -> None:
    server.ranges = ranges
    state = saved(server, number)
    server.files["/a"] = other
    with (
        lines_of(server.url + "/a").iterate(state) as iterator,
        pytest.raises(StateError, match="the file is another one than when the state was saved, by its size or its"),
    ):
        list(iterator)


def test_another_file_of_the_same_size_without_a_tag_is_not_noticed(server: HttpServer) -> None:
    server.etags = False
    state = saved(server)
    server.files["/a"] = TEXT.swapcase()
    with lines_of(server.url + "/a").iterate(state) as iterator:
        assert list(iterator) == [line.swapcase() for line in LINES[20:]]


@pytest.mark.parametrize("name", READERS)
def test_the_end_of_a_file_is_a_place_in_it(name: str, server: HttpServer) -> None:
    server.files["/a"] = made(name, "")
    server.files["/b"] = made(name, "")
    ds = limited(READERS[name][1]([server.url + "/a", server.url + "/b"]))
    elements, found = states(ds)
    for number in (len(elements) // 2, len(elements)):
        with ds.iterate(found[number]) as iterator:
            assert_same(list(iterator), elements[number:])


def test_what_a_server_does_not_tell_is_not_compared(server: HttpServer) -> None:
    ds = lines_of(server.url + "/a")
    server.script("/a", [Compressed()])
    state = saved(server)
    for fault in (Compressed(), IgnoreRange()):
        server.script("/a", [fault])
        with ds.iterate(state) as iterator:
            assert list(iterator) == LINES[20:]


@pytest.mark.parametrize("faults", [(), (IgnoreRange(),), (Compressed(),)])
def test_a_tag_that_is_told_no_more_is_an_error(faults: tuple[Fault, ...], server: HttpServer) -> None:
    state = saved(server)
    server.script("/a", [(*faults, Headers({"etag": None}))])
    with (
        lines_of(server.url + "/a").iterate(state) as iterator,
        pytest.raises(StateError, match="does not say any more whether this is the file that the state is of"),
    ):
        list(iterator)


def test_the_state_of_another_url_is_refused(server: HttpServer) -> None:
    state = saved(server)
    with pytest.raises(StateError):
        lines_of(server.url + "/b").iterate(state)


def test_restoring_heals_as_well(server: HttpServer) -> None:
    state = saved(server)
    server.script("/a", [Status(503), Status(500)])
    with lines_of(server.url + "/a").iterate(state) as iterator:
        assert list(iterator) == LINES[20:]
        assert counted(iterator) == (3, 2)


def test_a_new_pass_begins_at_the_start(server: HttpServer) -> None:
    ds = lines_of(server.url + "/a").repeat(2)
    elements, found = states(ds)
    assert elements == LINES * 2
    with ds.iterate(found[60]) as iterator:
        assert list(iterator) == LINES[20:]
    assert to_list(ds) == LINES * 2
