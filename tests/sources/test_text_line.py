"""`TextLineDataset`: the lines of text files, as bytes, without their ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import os
import threading
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, TextLineDataset
from aiodata.engine import workers
from aiodata.errors import CorruptRecordError
from aiodata.storage.local import LocalFile
from tests.programs import assert_gives, assert_same, collect, first, outcomes, outcomes_async, pull_all, to_list

if TYPE_CHECKING:
    from pathlib import Path

THREE = b"one\ntwo\nthree\n"
LINES = [b"one", b"two", b"three"]


def write(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\n\nb\n\n", [b"a", b"", b"b", b""]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\rb\nc\r", [b"ab", b"c"]),
        (b"\r\n\r", [b"", b""]),
        (b" a \t\n\x00\n\xff", [b" a \t", b"\x00", b"\xff"]),
        ("é\u2028ü\x0b\n".encode(), ["é\u2028ü\x0b".encode()]),
    ],
)
def test_splits_at_newlines_and_drops_carriage_returns(content: bytes, lines: list[bytes], tmp_path: Path) -> None:
    path = write(tmp_path, "text", content)
    for size in (None, 1, 2, 3, 1000):
        assert_gives(TextLineDataset(path, buffer_size=size), lines)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.binary(max_size=80) | st.text("a\r\u2028\x0b", max_size=6).map(str.encode), max_size=12),
    end=st.sampled_from([b"\n", b"\r\n"]),
    is_closed=st.booleans(),
    size=st.integers(1, 64),
    packed=st.sampled_from(["", "GZIP", "ZLIB"]),
    taken=st.integers(0, 12),
)
def test_every_chunk_size_gives_what_python_splits(
    lines: list[bytes], end: bytes, is_closed: bool, size: int, packed: str, taken: int, tmp_path: Path
) -> None:
    content = end.join(lines) + end * is_closed
    assume(not content.startswith((b"\x1f\x8b\x08", b"x")))  # which may be taken for compressed data
    expected = [line.replace(b"\r", b"") for line in content.split(b"\n")]
    if not content or content.endswith(b"\n"):
        expected.pop()
    ds = TextLineDataset(write(tmp_path, "text", PACKS[packed](content)), packed, buffer_size=size)
    assert_same(to_list(ds), expected)
    with ds.iterate() as iterator:
        assert_same(list(islice(iterator, taken)), expected[:taken])
        state = iterator.state_dict()
    with ds.iterate(state) as iterator:
        assert_same(list(iterator), expected[taken:])


@pytest.mark.parametrize("size", range(1, 17))
@pytest.mark.parametrize("packed", [None, "GZIP", "ZLIB"])
def test_crlf_lines_are_the_same_at_every_chunk_size(size: int, packed: str | None, tmp_path: Path) -> None:
    lines = [b"x" * length for length in (0, 1, 7, 14, 15, 16, 17, 3)]
    content = b"\r\n".join(lines)
    pack: Any = {None: bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[packed]
    path = write(tmp_path, "text", pack(content))
    assert_same(to_list(TextLineDataset(path, packed, buffer_size=size)), lines)
    assert_same(asyncio.run(collect(TextLineDataset(path, packed, buffer_size=size))), lines)


def test_a_line_longer_than_the_buffer_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path, "text", b"a" * 100_000 + b"\nb")
    assert_same(to_list(TextLineDataset(path, buffer_size=64)), [b"a" * 100_000, b"b"])


@pytest.mark.parametrize(("packed", "pack"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress), ("", bytes)])
def test_compressed_files(packed: str, pack: Any, tmp_path: Path) -> None:
    assert_gives(TextLineDataset(write(tmp_path, "text", pack(THREE)), compression_type=packed), LINES)
    assert_gives(TextLineDataset(write(tmp_path, "empty", pack(b"")), compression_type=packed), [])


@pytest.mark.parametrize("size", [None, 1, 5, 40])
def test_joined_gzip_parts_are_all_read(size: int | None, tmp_path: Path) -> None:
    path = write(tmp_path, "text.gz", gzip.compress(THREE) + gzip.compress(THREE))
    assert_gives(TextLineDataset(path, "GZIP", buffer_size=size), LINES * 2)


@pytest.mark.parametrize("size", [None, 1, 2])
def test_empty_parts_lose_no_unfinished_line(size: int | None, tmp_path: Path) -> None:
    content = b"".join(map(gzip.compress, (b"12", b"", b"3\n", b"45", b"")))
    assert_gives(TextLineDataset(write(tmp_path, "text.gz", content), "GZIP", buffer_size=size), [b"123", b"45"])


@pytest.mark.parametrize(("packed", "pack"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_truncated_compressed_file_is_an_error_that_names_it(
    packed: str, pack: Any, cut: int, tmp_path: Path
) -> None:
    # tf.data ends quietly here; a file that is cut short must not look like a short file.
    lines = [b"line %d" % number for number in range(900)]
    path = write(tmp_path, "cut-short", pack(b"\n".join(lines))[:-cut])
    got = outcomes(TextLineDataset(path, packed))
    errors = [item for item in got if isinstance(item, Exception)]
    assert_same(errors, [CorruptRecordError])
    assert "cut-short" in str(errors[0])
    assert got[:-1] == lines[: len(got) - 1]


def test_what_is_not_compressed_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "plain-text", THREE)
    with pytest.raises(CorruptRecordError, match="plain-text"):
        to_list(TextLineDataset(path, "GZIP"))


@pytest.mark.parametrize("kind", ["text", "bytes", "path", "list", "mixed", "dataset", "dataset of text"])
def test_filenames_of_every_kind(kind: str, tmp_path: Path) -> None:
    one, two = write(tmp_path, "1", b"a\nb"), write(tmp_path, "2", b"c")
    names: Any = {
        "text": one,
        "bytes": os.fsencode(one),
        "path": tmp_path / "1",
        "list": [one, two],
        "mixed": [os.fsencode(one), tmp_path / "2"],
        "dataset": Dataset.list_files(str(tmp_path / "*"), shuffle=False),
        "dataset of text": Dataset.from_generator(lambda: [one, two]),
    }[kind]
    expected = [b"a", b"b"] if kind in ("text", "bytes", "path") else [b"a", b"b", b"c"]
    assert_gives(TextLineDataset(names), expected)


def test_no_files_give_no_lines() -> None:
    assert_gives(TextLineDataset([]), [])


def test_lines_do_not_run_from_one_file_into_the_next(tmp_path: Path) -> None:
    names = [write(tmp_path, str(at), content) for at, content in enumerate([b"a", b"", b"b\n", b"c"])]
    assert_gives(TextLineDataset(names), [b"a", b"b", b"c"])


def test_parallel_reads_alternate_line_by_line(tmp_path: Path) -> None:
    names = [write(tmp_path, str(at), content) for at, content in enumerate([b"a1\na2\na3", b"b1", b"c1\nc2"])]
    assert_gives(TextLineDataset(names, num_parallel_reads=2), [b"a1", b"b1", b"a2", b"a3", b"c1", b"c2"])


@pytest.mark.parametrize("reads", [1, 4, aiodata.AUTOTUNE])
def test_parallel_reads_lose_nothing(reads: int, tmp_path: Path) -> None:
    names = [write(tmp_path, str(at), b"%d\n" % at * at) for at in range(5)]
    got = to_list(TextLineDataset(names, num_parallel_reads=reads))
    assert sorted(got) == [b"%d" % at for at in range(5) for _ in range(at)]


def test_a_missing_file_is_an_error_when_it_is_reached(tmp_path: Path) -> None:
    ds = TextLineDataset([write(tmp_path, "text", THREE), str(tmp_path / "missing")])
    with ds.iterate() as iterator:
        assert [next(iterator) for _ in range(3)] == LINES
        with pytest.raises(FileNotFoundError, match="missing"):
            next(iterator)


def test_making_a_dataset_opens_nothing(tmp_path: Path) -> None:
    ds = TextLineDataset(str(tmp_path / "late")).batch(2)
    write(tmp_path, "late", b"a")
    assert len(to_list(ds)) == 1


@pytest.mark.parametrize("argument", [{"compression_type": "SNAPPY"}, {"buffer_size": -1}, {"num_parallel_reads": 0}])
def test_wrong_options_are_refused_at_the_call(argument: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(argument))):
        TextLineDataset("file", **argument)


@pytest.mark.parametrize("names", [3, None, [3], {"a": "b"}])
def test_wrong_filenames_are_refused_at_the_call(names: Any) -> None:
    with pytest.raises(TypeError):
        TextLineDataset(names)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_leaving_early_leaves_no_file_open(tmp_path: Path) -> None:
    ds = TextLineDataset(write(tmp_path, "text", THREE * 1000))
    first(ds, 1)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(300):
        for _line in ds:
            break
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_cardinality_is_unknown(tmp_path: Path) -> None:
    assert TextLineDataset(str(tmp_path)).cardinality() == aiodata.UNKNOWN_CARDINALITY


# Positions


def starts_of(content: bytes) -> list[int]:
    """Give the bytes of a file that its lines begin at."""
    return [0, *(at + 1 for at in range(len(content) - 1) if content[at : at + 1] == b"\n")]


RAGGED = b"\r\n".join(b"x" * length for length in (0, 1, 7, 0, 14, 15, 16, 17, 3, 40)) + b"\r\r\nlast\r"
RAGGED_LINES = [line.replace(b"\r", b"") for line in RAGGED.split(b"\n")]
PACKS: dict[str, Any] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


@pytest.mark.parametrize("size", [*range(1, 17), 1000])
@pytest.mark.parametrize("content", [RAGGED, RAGGED.replace(b"\r", b""), RAGGED + b"\n"])
def test_positions_are_bytes_and_lines_of_the_file(content: bytes, size: int, tmp_path: Path) -> None:
    ds = TextLineDataset(write(tmp_path, "text", content), buffer_size=size)
    starts = starts_of(content)
    with ds.iterate() as iterator:
        for taken in range(1, len(starts) + 1):
            assert next(iterator) == RAGGED_LINES[taken - 1]
            (offset, number, *_), skip = iterator.state_dict()["position"]
            assert offset == starts[number - 1]
            assert number - 1 + skip == taken


@pytest.mark.parametrize("packed", PACKS)
@pytest.mark.parametrize("size", [1, 5, 16, None])
@pytest.mark.parametrize("block", [1, 9, 30])
def test_goes_on_at_every_line(
    packed: str, size: int | None, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiodata.sources.text_line.BLOCK_BYTES", block)
    ds = TextLineDataset(write(tmp_path, "text", PACKS[packed](RAGGED)), packed, buffer_size=size)
    with ds.iterate() as iterator:
        for taken in range(len(RAGGED_LINES) + 1):
            with ds.iterate(iterator.state_dict()) as other:
                assert_same(list(other), RAGGED_LINES[taken:])
            assert next(iterator, None) == (RAGGED_LINES[taken] if taken < len(RAGGED_LINES) else None)


@pytest.mark.parametrize("block", [1, 2, 3, 10, 64])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_much_text_makes_several_blocks(
    block: int, end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiodata.sources.text_line.BLOCK_BYTES", block)
    lines = [b"x" * (length * 7 % 13) for length in range(200)]
    ds = TextLineDataset(write(tmp_path, "text", end.join(lines) + end))
    with ds.iterate() as iterator:
        assert_same(list(iterator), lines)
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "text_line"]
    assert counters["elements"] == 200
    assert counters["bytes_read"] == sum(map(len, lines)) + 200 * len(end)
    assert counters["blocks"] >= counters["bytes_read"] / max(block * 1.5, 12 + len(end))


# Errors


def kinds(outcome: list[Any]) -> list[Any]:
    return [type(item) if isinstance(item, Exception) else item for item in outcome]


@pytest.mark.parametrize("reads", [None, 1, 2])
def test_a_missing_file_takes_the_place_of_one_line(reads: int | None, tmp_path: Path) -> None:
    names = [write(tmp_path, "1", b"a"), str(tmp_path / "missing"), str(tmp_path), write(tmp_path, "2", b"b\nc")]
    ds = TextLineDataset(names, num_parallel_reads=reads)
    expected = [b"a", FileNotFoundError, IsADirectoryError, b"b", b"c"]
    assert kinds(outcomes(ds)) == expected
    assert kinds(asyncio.run(outcomes_async(ds))) == expected


def test_one_missing_file_is_one_error(tmp_path: Path) -> None:
    path = str(tmp_path / "missing")
    (error,) = outcomes(TextLineDataset(path))
    assert type(error) is FileNotFoundError
    assert error.filename == path
    assert error.__notes__ == [f"in text_line, element 0, from {path} line 1"]


def test_a_name_that_cannot_be_one_is_an_error_in_its_place(tmp_path: Path) -> None:
    assert kinds(outcomes(TextLineDataset(["a\0b", write(tmp_path, "2", b"b")]))) == [ValueError, b"b"]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_error_that_was_dealt_with_is_gone(way: str, tmp_path: Path) -> None:
    async def read() -> int:
        errors = 0
        iterator = TextLineDataset([tmp_path / "missing"] * 3).iterate()
        while True:
            try:
                _ = await anext(iterator) if way == "async" else next(iterator)
            except (StopIteration, StopAsyncIteration):
                return errors
            except FileNotFoundError:
                errors += 1

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(read()) == 3
        assert [one for one in gc.get_objects() if type(one) is FileNotFoundError] == []
    finally:
        gc.enable()


@pytest.mark.parametrize("packed", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("size", [None, 1, 7, 40])
def test_a_damaged_file_ends_and_the_next_one_follows(packed: str, size: int | None, tmp_path: Path) -> None:
    names = [
        write(tmp_path, "cut", PACKS[packed](THREE)[:-3]),
        write(tmp_path, "plain", THREE),
        write(tmp_path, "good", PACKS[packed](THREE)),
    ]
    ds = TextLineDataset(names, packed, buffer_size=size)
    expected = [*LINES, CorruptRecordError, CorruptRecordError, *LINES]
    with ds.iterate() as iterator:
        states = [iterator.state_dict()]
        found: list[Any] = []
        for _ in expected:
            try:
                found.append(next(iterator))
            except CorruptRecordError as error:
                found.append(error)
            states.append(iterator.state_dict())
        assert next(iterator, None) is None
    assert kinds(found) == expected
    assert [error.path for error in found if isinstance(error, CorruptRecordError)] == names[:2]
    assert found[3].__notes__ == [f"in text_line, element 3, from {names[0]} line 4"]
    for number, state in enumerate(states):
        with ds.iterate(state) as other:
            assert kinds(pull_all(other)) == expected[number:]


@pytest.mark.parametrize("size", [None, 1, 30, 40])
def test_what_comes_before_a_damaged_part_is_given(size: int | None, tmp_path: Path) -> None:
    names = [write(tmp_path, "garbage", gzip.compress(THREE) + b"garbage"), write(tmp_path, "2", gzip.compress(b"x"))]
    *lines, error, last = outcomes(TextLineDataset(names, "GZIP", buffer_size=size))
    assert_same([*lines, last], [*LINES, b"x"])
    assert str(error).endswith(
        "the GZIP data is damaged, or the file is not GZIP: Error -3 while decompressing data: incorrect header check"
    )


@pytest.mark.parametrize("size", [None, 1000])
def test_more_than_a_piece_of_decompressed_data(size: int | None, tmp_path: Path) -> None:
    content = b"x" * (1 << 20) + b"\n" + b"ab\n" * (1 << 19) + b"\n" * 1000
    path = write(tmp_path, "bomb", gzip.compress(content))
    lines = to_list(TextLineDataset(path, "GZIP", buffer_size=size))
    assert lines == content.split(b"\n")[:-1]


@pytest.mark.parametrize("size", [None, 1, 2, 7, 64])
@pytest.mark.parametrize(("looks_like", "pack"), [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_compressed_data_without_a_compression_is_an_error_that_says_so(
    looks_like: str, pack: Any, size: int | None, tmp_path: Path
) -> None:
    for content in (b"", b"x", THREE, bytes(range(256)) * 3000):
        names = [write(tmp_path, "packed", pack(content)), write(tmp_path, "plain", THREE)]
        error, *lines = outcomes(TextLineDataset(names, buffer_size=size))
        assert_same(lines, LINES)
        assert isinstance(error, CorruptRecordError)
        assert str(error) == (
            f"{names[0]}, byte 0: this is no text; it looks {looks_like}-compressed: "
            f"pass compression_type={looks_like!r}"
        )


@pytest.mark.parametrize(
    "content", [b"\x1f\x8b", b"x^2", b"x\x9c\xff\xff\xff", b"x", b"a\n\x1f\x8b\x08", b"\x1f\x8b\n\x08"]
)
def test_what_only_resembles_compressed_data_is_text(content: bytes, tmp_path: Path) -> None:
    for size in (None, 1, 2):
        assert_gives(TextLineDataset(write(tmp_path, "text", content), buffer_size=size), content.split(b"\n"))


# Files that are not plain ones, and what is left of them


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect what is handed to threads."""
    found: list[Any] = []
    submit = workers._Threads.submit

    def noting(pool: Any, function: Any, /, *args: Any, **named: Any) -> Any:
        found.append(function)
        return submit(pool, function, *args, **named)

    monkeypatch.setattr(workers._Threads, "submit", noting)
    return found


@pytest.mark.parametrize(("content", "hops"), [(b"", 1), (THREE, 1), (b"x" * 15, 1), (b"x" * 16, 1), (b"x" * 17, 4)])
async def test_a_small_file_is_one_call_in_a_thread(
    content: bytes, hops: int, calls: list[Any], tmp_path: Path
) -> None:
    path = write(tmp_path, "text", content)
    await collect(TextLineDataset(path, buffer_size=16))
    assert len(calls) == hops


async def test_a_small_compressed_file_is_two_calls(calls: list[Any], tmp_path: Path) -> None:
    path = write(tmp_path, "text", gzip.compress(THREE) * 5)
    assert_same(await collect(TextLineDataset(path, "GZIP")), LINES * 5)
    assert len(calls) == 2


def test_a_plain_for_reads_in_its_own_thread(tmp_path: Path) -> None:
    write(tmp_path, "one", THREE)
    write(tmp_path, "two", gzip.compress(THREE))
    files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    before = threading.active_count()
    with files.flat_map(lambda path: TextLineDataset(path, "GZIP" if path.endswith(b"two") else "")).iterate() as lines:
        for number, line in enumerate(lines):
            assert line == LINES[number % 3]
            assert threading.active_count() == before


def test_a_file_that_grows_is_read_to_its_last_end(tmp_path: Path) -> None:
    path = write(tmp_path, "text", b"one\ntwo\n")
    with TextLineDataset(path, buffer_size=4).iterate() as iterator:
        assert next(iterator) == b"one"
        with open(path, "ab") as file:
            file.write(b"three\nfour")
        assert list(iterator) == [b"two", b"three", b"four"]


@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="reads a file of /proc")
@pytest.mark.parametrize("size", [1, 16, None])
def test_a_file_that_says_it_is_empty_is_read(size: int | None) -> None:
    with open("/proc/version", "rb") as file:
        assert_same(to_list(TextLineDataset("/proc/version", buffer_size=size)), file.read().splitlines())


def test_a_size_that_is_too_small_cuts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "text", THREE * 9)
    monkeypatch.setattr("aiodata.storage.local._is_at_its_end", lambda file, position: True)
    for size in (1, 5, 64, 1000):
        assert_same(to_list(TextLineDataset(path, buffer_size=size)), LINES * 9)


def feed(path: str, *pieces: bytes) -> threading.Thread:
    """Write into a FIFO from a thread, which opening it for reading lets go on."""

    def work() -> None:
        with open(path, "wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    thread = feed(path, b"one\nt", b"wo\nthr", b"ee")
    assert_same(to_list(TextLineDataset(path)), LINES)
    thread.join()


def descriptors(path: str) -> int:
    """Count this process's open descriptors of a file."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{name}") == path
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
@pytest.mark.parametrize("way", ["cancel", "aclose"])
def test_an_opening_that_is_given_up_leaves_no_file_open(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    opening = threading.Event()
    begin = LocalFile._begin

    def noting(file: LocalFile, size: int, offset: int) -> bytes:
        opening.set()
        return begin(file, size, offset)

    monkeypatch.setattr(LocalFile, "_begin", noting)

    async def work() -> None:
        iterator = TextLineDataset(path).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        while not opening.is_set():  # which then waits for a writer
            await asyncio.sleep(0.001)
        if way == "cancel":
            pull.cancel()
        ending = asyncio.ensure_future(iterator.aclose())
        await asyncio.sleep(0.05)
        thread = feed(path)
        await asyncio.wait({pull, ending})
        assert pull.cancelled() or isinstance(pull.exception(), aiodata.errors.EndedEarlyError)
        await ending
        thread.join()
        assert descriptors(path) == 0

    asyncio.run(work())
    gc.collect()  # a file that were left to the collector would warn


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_a_file_is_not_closed_under_a_thread_that_reads(tmp_path: Path) -> None:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    written = threading.Event()

    def write_late() -> None:
        with open(path, "wb", buffering=0) as file:
            file.write(b"one\n")
            written.wait()

    async def work() -> None:
        thread = threading.Thread(target=write_late, daemon=True)
        thread.start()
        iterator = TextLineDataset(path).iterate()
        assert await anext(iterator) == b"one"
        pull = asyncio.ensure_future(anext(iterator))
        await asyncio.sleep(0.05)  # it waits for more by now
        pull.cancel()
        await asyncio.sleep(0.05)
        still_open = descriptors(path)
        written.set()
        assert still_open == 2  # the writer's and the reader's
        await asyncio.wait({pull})
        assert pull.cancelled()
        await iterator.aclose()
        thread.join()
        assert descriptors(path) == 0

    asyncio.run(work())


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
@pytest.mark.parametrize("how", ["task", "loop"])
def test_cancelling_at_any_moment_leaves_no_file_open(how: str, tmp_path: Path) -> None:
    path = write(tmp_path, "text", THREE * 200)

    async def work(delay: float) -> None:
        reading = asyncio.ensure_future(collect(TextLineDataset([path] * 3, buffer_size=256)))
        await asyncio.sleep(delay)
        if how == "loop":
            return  # asyncio.run cancels all tasks
        reading.cancel()
        await asyncio.wait({reading})
        assert descriptors(path) == 0

    for number in range(60):
        asyncio.run(work(number * 0.0003))
        assert descriptors(path) == 0
    gc.collect()


@pytest.mark.parametrize("size", [1, 2, 7, None])
def test_zeros_behind_gzip_data_are_ignored_at_every_chunk_size(size: int | None, tmp_path: Path) -> None:
    path = tmp_path / "padded.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n") + bytes(9) + gzip.compress(b"three") + bytes(600))
    assert_gives(TextLineDataset(path, "GZIP", size), [b"one", b"two", b"three"])
