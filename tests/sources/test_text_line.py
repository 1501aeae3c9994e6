"""`TextLineDataset`: the lines of text files, as bytes, without their ends."""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib
from typing import TYPE_CHECKING, Any

import pytest

import aiodata
from aiodata import Dataset, TextLineDataset
from aiodata.errors import CorruptRecordError
from tests.programs import assert_gives, assert_same, collect, first, outcomes, to_list

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
