"""Going on in a list of files of which one is not what it was: an error that names it, never a silent loss."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sqlite3
import tarfile
import zlib
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from aiodata import (
    ArrowDataset,
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    NpyDataset,
    ParquetDataset,
    SqlDataset,
    TarDataset,
    TextLineDataset,
    TFRecordDataset,
    make_csv_dataset,
)
from aiodata.errors import DataError, StateError
from tests.programs import assert_same
from tests.resume.saving import FACES, along, drive, part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FIRST, SECOND = range(8), range(8, 12)
"""The numbers that the records of the two files hold."""


class Reader(NamedTuple):
    """A reader under test.

    Args:
        write: Writes a file of so many records from their numbers.
        read: Makes the dataset of paths, with `num_parallel_reads`.
        grows: Records behind the others may be added in place.
        marked: Its states tell a file that is shorter, or has other records; else they count those behind a position.
        needs: What has to be installed.
        named: What errors name; "" for the file.
    """

    write: Callable[[Path, Sequence[int]], object]
    read: Callable[[list[str], int | None], Dataset[Any]]
    grows: bool = False
    marked: bool = True
    needs: str = "numpy"
    named: str = ""


def lines(numbers: Sequence[int]) -> bytes:
    return "".join(f"{number:04}\n" for number in numbers).encode()


def write_lines(path: Path, numbers: Sequence[int], pack: Callable[[bytes], bytes] = bytes) -> None:
    path.write_bytes(pack(lines(numbers)))


def write_json(path: Path, numbers: Sequence[int]) -> None:
    path.write_text("".join(f'{{"n": "{number:04}"}}\n\n' for number in numbers))


def write_fixed(path: Path, numbers: Sequence[int]) -> None:
    path.write_bytes(b"head" + b"".join(b"%04d" % number for number in numbers) + b"the footer")


def write_records(path: Path, numbers: Sequence[int]) -> None:
    from aiodata.formats.tfrecord import frame

    path.write_bytes(b"".join(frame(b"%04d" % number) for number in numbers))


def write_tar(path: Path, numbers: Sequence[int]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number in numbers:
            for extension in ("txt", "cls"):
                info = tarfile.TarInfo(f"{number:04}.{extension}")
                info.size = 4
                archive.addfile(info, io.BytesIO(b"%04d" % number))
    path.write_bytes(buffer.getvalue())


def write_npy(path: Path, numbers: Sequence[int]) -> None:
    with path.open("wb") as file:  # not by its name, to which numpy adds
        np.save(file, np.array(numbers, np.int64).reshape(-1, 1))


def write_npz(path: Path, numbers: Sequence[int]) -> None:
    with path.open("wb") as file:
        np.savez(file, x=np.array(numbers, np.int64), y=np.array(numbers, np.float64))


def write_table(path: Path, numbers: Sequence[int]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY)")
        connection.execute("DELETE FROM t")
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in numbers])


def write_parquet(path: Path, numbers: Sequence[int]) -> None:
    from tests.arrow_files import write_parquet

    write_parquet(path, {"n": np.array(numbers, np.int64)}, 3, use_dictionary=False, compression="none")


def write_arrow(path: Path, numbers: Sequence[int]) -> None:
    from tests.arrow_files import write_arrow

    write_arrow(path, {"n": np.array(numbers, np.int64)}, 3, stream=True)


def one_of_each(read: Callable[[str], Dataset[Any]], paths: list[str], reads: int | None) -> Dataset[Any]:
    names = Dataset.from_tensor_slices(paths)
    return names.flat_map(read) if reads is None else names.interleave(read, reads, num_parallel_calls=reads)


def read_csv(paths: list[str], reads: int | None) -> Dataset[Any]:
    return CsvDataset(paths, [np.int32], num_parallel_reads=reads)


def read_batches(paths: list[str], reads: int | None) -> Dataset[Any]:
    return make_csv_dataset(
        paths, 1, ["n"], ["x"], header=False, num_epochs=1, shuffle=False, num_parallel_reads=reads, ignore_errors=True
    )


def packed(pack: Callable[[bytes], bytes], kind: str) -> Reader:
    def read(paths: list[str], reads: int | None) -> Dataset[Any]:
        return TextLineDataset(paths, kind, 16, reads)

    return Reader(partial(write_lines, pack=pack), read, grows=kind == "GZIP")


READERS = {
    "text": Reader(write_lines, lambda paths, reads: TextLineDataset(paths, num_parallel_reads=reads), grows=True),
    "text in pieces": Reader(write_lines, lambda paths, reads: TextLineDataset(paths, None, 7, reads), grows=True),
    "gzip": packed(partial(gzip.compress, mtime=0), "GZIP"),
    "zlib": packed(zlib.compress, "ZLIB"),
    "csv": Reader(write_lines, read_csv, grows=True),
    "make_csv": Reader(write_lines, read_batches, grows=True),
    "json": Reader(
        write_json, lambda paths, reads: JsonLinesDataset(paths, num_parallel_reads=reads, buffer_size=9), grows=True
    ),
    "fixed": Reader(
        write_fixed, lambda paths, reads: FixedLengthRecordDataset(paths, 4, 4, 10, 5, num_parallel_reads=reads)
    ),
    "tfrecord": Reader(
        write_records,
        lambda paths, reads: TFRecordDataset(paths, num_parallel_reads=reads),
        grows=True,
        needs="google_crc32c",
    ),
    "tar": Reader(write_tar, lambda paths, reads: TarDataset(paths, num_parallel_reads=reads)),
    "npy": Reader(write_npy, lambda paths, reads: NpyDataset(paths, reads)),
    "npz": Reader(write_npz, lambda paths, reads: NpyDataset(paths, reads)),
    "sql": Reader(
        write_table,
        partial(one_of_each, lambda path: SqlDataset("sqlite", path, "SELECT n FROM t ORDER BY n", (np.int64,))),
        grows=True,
        marked=False,
    ),
    "from_sql": Reader(
        write_table,
        partial(one_of_each, lambda path: Dataset.from_sql(f"sqlite:///{path}", "SELECT n FROM t ORDER BY n")),
        grows=True,
        marked=False,
        needs="aiosqlite",
        named="SELECT n FROM t",
    ),
    "from_sql by key": Reader(
        write_table,
        partial(one_of_each, lambda path: Dataset.from_sql(f"sqlite:///{path}", "SELECT n FROM t", key="n")),
        grows=True,
        marked=False,
        needs="aiosqlite",
        named="SELECT n FROM t",
    ),
    "parquet": Reader(
        write_parquet,
        lambda paths, reads: ParquetDataset(paths, num_parallel_reads=reads),
        needs="pyarrow",
    ),
    "parquet, filtered": Reader(
        write_parquet,
        lambda paths, reads: ParquetDataset(paths, num_parallel_reads=reads, filter=[("n", ">=", 0)]),
        needs="pyarrow",
    ),
    "arrow": Reader(write_arrow, lambda paths, reads: ArrowDataset(paths, num_parallel_reads=reads), needs="pyarrow"),
}
HERE = [name for name, reader in READERS.items() if find_spec(reader.needs)]
each_reader = pytest.mark.parametrize("name", HERE)
in_order_and_at_once = pytest.mark.parametrize("reads", [None, 2])


class Files:
    """Two files, the dataset of both, what it gives, and its states, one before each element and one at the end."""

    def __init__(self, reader: Reader, folder: Path, make: Callable[[list[str]], Dataset[Any]]) -> None:
        self.reader = reader
        self.first, self.second = folder / "a", folder / "b"
        reader.write(self.first, FIRST)
        reader.write(self.second, SECOND)
        self.make = partial(make, [str(self.first), str(self.second)])
        self.ds = self.make()
        self.all, self.states = drive("async", along(self.ds, "async"))
        assert not any(isinstance(element, Exception) for element in self.all)

    def restored(self, number: int) -> list[Any]:
        """Give what comes from a state on, an error in its place, through one face or the other."""
        face = FACES[number % 2]
        return drive(face, part(self.ds, face, self.states[number]))[0]

    def assert_refused(self, kind: type[Exception] = StateError, kept: int = 0) -> None:
        """Check that states within the first file are refused, and that the others are exact.

        Without a mark of the file those are not refused whose records are all among the `kept` ones.
        """
        refused = 0
        self.reader.write(self.second.with_name("lost"), FIRST[kept:])
        lost = list(map(repr, self.reader.read([str(self.second.with_name("lost"))], None)))
        for number in range(1, len(self.states)):
            found = self.restored(number)
            if found and isinstance(found[-1], Exception):
                assert isinstance(found[-1], kind)
                told = str(found[-1]) + str(getattr(found[-1], "__notes__", ""))
                assert (self.reader.named or str(self.first)) in told
                assert_same(found[:-1], self.all[number : number + len(found) - 1])
                refused += 1
            elif not self.reader.marked:
                rest = [element for element in self.all[number:] if repr(element) not in lost]
                assert_same(sorted(found, key=repr), sorted(rest, key=repr))
            else:
                assert_same(found, self.all[number:])
        assert refused >= len(FIRST) - (0 if self.reader.marked else kept)

    def assert_exact(self, rest: Callable[[int], list[Any]] | None = None) -> None:
        for number in range(len(self.states)):
            assert_same(self.restored(number), self.all[number:] if rest is None else rest(number))


def reader_of(name: str, reads: int | None, folder: Path) -> Files:
    return Files(READERS[name], folder, lambda paths: READERS[name].read(paths, reads))


@in_order_and_at_once
@each_reader
@pytest.mark.parametrize("kept", [0, 1, 5, 7])
def test_a_file_that_has_lost_records_is_refused(kept: int, name: str, reads: int | None, tmp_path: Path) -> None:
    files = reader_of(name, reads, tmp_path)
    files.reader.write(files.first, FIRST[:kept])
    files.assert_refused(kept=kept)


@in_order_and_at_once
@each_reader
def test_a_file_that_is_empty_now_is_refused(name: str, reads: int | None, tmp_path: Path) -> None:
    files = reader_of(name, reads, tmp_path)
    files.first.write_bytes(b"")
    files.assert_refused(StateError if files.reader.marked else Exception)


@in_order_and_at_once
@each_reader
def test_a_file_that_is_gone_is_refused(name: str, reads: int | None, tmp_path: Path) -> None:
    files = reader_of(name, reads, tmp_path)
    files.first.unlink()
    files.assert_refused(Exception if name.startswith("from_sql") else FileNotFoundError)


@in_order_and_at_once
@pytest.mark.parametrize("name", [name for name in HERE if READERS[name].marked])
def test_another_file_of_the_same_size_is_refused(name: str, reads: int | None, tmp_path: Path) -> None:
    files = reader_of(name, reads, tmp_path)
    size = files.first.stat().st_size
    files.reader.write(files.first, [number + 1000 for number in FIRST])
    assert files.first.stat().st_size == size or name in {"gzip", "zlib"}
    files.assert_refused()


@in_order_and_at_once
@each_reader
def test_a_copy_goes_on(name: str, reads: int | None, tmp_path: Path) -> None:
    files = reader_of(name, reads, tmp_path)
    for path in (files.first, files.second):
        copy = shutil.copyfile(path, tmp_path / "copy")
        path.unlink()
        copy.rename(path)
    files.assert_exact()


@pytest.mark.parametrize("name", [name for name in HERE if READERS[name].grows])
def test_what_was_added_at_the_end_is_read(name: str, tmp_path: Path) -> None:
    files = reader_of(name, None, tmp_path)
    if name == "gzip":
        files.first.write_bytes(files.first.read_bytes() + gzip.compress(lines([77, 78])))
    else:
        files.reader.write(files.first, [*FIRST, 77, 78])
    longer = drive("async", part(files.ds, "async"))[0]
    assert len(longer) == len(files.all) + 2
    files.assert_exact(lambda number: longer[number:] if number <= len(FIRST) else files.all[number:])


# Chains: where a state's position lies in the first file, however many stages lie between


def text(path: Any) -> Dataset[Any]:
    return TextLineDataset(path)


def both(paths: list[str]) -> Dataset[Any]:
    return TextLineDataset(paths, buffer_size=16)


CHAINS: dict[str, Callable[[list[str]], Dataset[Any]]] = {
    "map, filter": lambda paths: both(paths).map(int).filter(lambda n: n % 2 == 1),
    "batch": lambda paths: both(paths).batch(3),
    "unbatch": lambda paths: both(paths).batch(3).unbatch(),
    "shuffle": lambda paths: both(paths).shuffle(3, seed=1),
    "repeat": lambda paths: both(paths).repeat(2),
    "skip, take": lambda paths: both(paths).skip(1).take(9),
    "prefetch": lambda paths: both(paths).prefetch(2),
    "parallel map": lambda paths: both(paths).map(int, num_parallel_calls=2).prefetch(1),
    "ignore_errors": lambda paths: both(paths).ignore_errors(),
    "concatenate": lambda paths: text(paths[0]).concatenate(text(paths[1])),
    "zip": lambda paths: Dataset.zip(both(paths), both(paths[::-1])),
    "interleave": lambda paths: Dataset.from_tensor_slices(paths).interleave(text, 2, 3),
    "interleave, parallel": lambda paths: Dataset.from_tensor_slices(paths).interleave(text, 2, 3, 2),
    "interleave, as ready": lambda paths: Dataset.from_tensor_slices(paths).interleave(text, 2, 3, 2, False),
    "interleave of batches": lambda paths: Dataset.from_tensor_slices(paths).interleave(lambda p: text(p).batch(2), 2),
    "nested": lambda paths: Dataset.range(2).flat_map(lambda _: both(paths)),
}


FROM_ITS_BEGINNING = {"repeat", "nested", "zip", "interleave, as ready"}
"""Chains in which the first file may be read from its beginning behind a state, as it is now."""


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("kept", [0, 5])
def test_chains_notice(kept: int, chain: str, tmp_path: Path) -> None:
    files = Files(READERS["text"], tmp_path, CHAINS[chain])
    write_lines(files.first, FIRST[:kept])
    least = 3 if "batch" in chain or "filter" in chain else 4
    refused = 0
    for number in range(1, len(files.states)):
        found = files.restored(number)
        if any(isinstance(element, StateError) and str(files.first) in str(element) for element in found):
            refused += 1
        elif chain not in FROM_ITS_BEGINNING:
            assert sorted(map(str, found)) == sorted(map(str, files.all[number:]))
    assert refused >= least


@pytest.mark.parametrize("kept", [0, 5])
@pytest.mark.parametrize("size", [3, 12, 100])
def test_a_shuffle_notices_a_file_between_those_that_it_reads_again(size: int, kept: int, tmp_path: Path) -> None:
    files = [tmp_path / name for name in "abc"]
    for file in files:
        write_lines(file, FIRST)
    paths = list(map(str, files))
    ds = TextLineDataset(paths).map(lambda line: line).shuffle(size, seed=1)
    straight, states = drive("sync", along(ds, "sync"))
    write_lines(files[1], FIRST[:kept])
    refused = 0
    for number, state in enumerate(states):
        found = drive("sync", part(ds, "sync", state))[0]
        if isinstance(found[-1] if found else None, StateError):
            assert any(path in str(found[-1]) for path in paths)
            refused += 1
        else:  # it has come to the file as it is now
            assert sorted([*straight[:number], *found, *lines(FIRST[kept:]).splitlines()]) == sorted(straight)
    assert refused >= 3


@pytest.mark.parametrize("kept", [0, 5])
def test_a_state_of_a_restored_run_notices_too(kept: int, tmp_path: Path) -> None:
    files = Files(READERS["text"], tmp_path, both)
    for number in range(1, 7):
        _, state = drive("async", part(files.make(), "async", files.states[number], 2))
        content = files.first.read_bytes()
        write_lines(files.first, FIRST[:kept])
        (found, _) = drive("async", part(files.make(), "async", state))
        assert [type(element) for element in found] == [StateError]
        files.first.write_bytes(content)
        assert_same(drive("async", part(files.make(), "async", state))[0], files.all[number + 2 :])


# What the mark does not tell: the records are counted, and must end where they did


@pytest.mark.parametrize("name", ["text", "csv", "tfrecord", "tar", "npz"])
def test_records_are_counted_where_the_mark_is_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name not in HERE:
        pytest.skip(f"{name} needs {READERS[name].needs}")
    monkeypatch.setattr("aiodata.storage.marks.HEAD_BYTES", 0)
    files = reader_of(name, None, tmp_path)
    size = files.first.stat().st_size
    if name in {"text", "csv"}:
        files.first.write_bytes(b"0" * (size - 1) + b"\n")
    else:
        files.reader.write(files.first, FIRST[:5])
        files.first.write_bytes(files.first.read_bytes().ljust(size, b"\0"))
    found = [files.restored(number)[-1] for number in range(1, len(FIRST) + 1)]
    assert all(str(files.first) in str(error) for error in found)
    assert {type(error) for error in found} <= {StateError} or name not in {"text", "csv", "tar", "npz"}


@pytest.mark.parametrize("kind", ["text", "csv", "json"])
@pytest.mark.parametrize("size", [1, 5, None])
def test_a_last_line_that_goes_on_now_is_refused(kind: str, size: int | None, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n22\n3")
    ds: Dataset[Any] = {
        "text": lambda: TextLineDataset([path], buffer_size=size),
        "csv": lambda: CsvDataset([path], [int], buffer_size=size),
        "json": lambda: JsonLinesDataset([path], buffer_size=size),
    }[kind]()
    everything, states = drive("async", along(ds, "async"))
    path.write_bytes(b"1\n22\n34\n5\n")
    (error,) = drive("async", part(ds, "async", states[3]))[0]
    assert isinstance(error, StateError)
    assert f"{path}, byte 6: no record ends there" in str(error)
    path.write_bytes(b"1\n22\n3\n5\n")
    for number, state in enumerate(states):
        found = drive("async", part(ds, "async", state))[0]
        assert_same(found[:-1], everything[number:])
        assert found[-1] in (b"5", (5,), 5)


def test_a_line_that_was_left_out_as_it_was_not_complete_comes_when_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text('{"n": 1}\n{"n')
    ds = JsonLinesDataset([path], on_truncated="skip")
    everything, states = drive("async", along(ds, "async"))
    assert everything == [{"n": 1}]
    path.write_text('{"n": 1}\n{"n": 2}\n{"n": 3}\n')
    assert drive("async", part(ds, "async", states[-1]))[0] == [{"n": 2}, {"n": 3}]


# Records that could not be read: the file may be repaired


@pytest.mark.skipif("tfrecord" not in HERE, reason="TFRecordDataset needs google_crc32c")
def test_what_failed_keeps_its_place_when_the_file_is_repaired(tmp_path: Path) -> None:
    files = Files(READERS["tfrecord"], tmp_path, lambda paths: TFRecordDataset(paths))
    whole = files.first.read_bytes()
    record = len(whole) // len(FIRST)
    files.first.write_bytes(whole[:-3])
    damaged, states = drive("async", along(files.ds, "async"))
    last = len(FIRST) - 1
    assert isinstance(damaged[last], DataError)
    files.first.write_bytes(whole)
    for number in range(len(states)):
        assert_same(drive("async", part(files.ds, "async", states[number]))[0], files.all[number:])
    files.first.write_bytes(whole[: last * record])  # what was damaged has been cut off
    assert_same(drive("async", part(files.ds, "async", states[last + 1]))[0], files.all[last + 1 :])
    position, _ = states[last + 1]["position"]
    failed = {**states[last + 1], "position": [position, 0]}  # before it is asked for, as a stage behind may have it
    error, *rest = drive("async", part(files.ds, "async", failed))[0]
    assert type(error) is DataError
    assert f"{files.first} record 7: it could not be read when the state was saved, and is not there now" in str(error)
    assert_same(rest, files.all[last + 1 :])


def test_a_file_that_could_not_be_opened_may_be_there_later(tmp_path: Path) -> None:
    files = Files(READERS["text"], tmp_path, both)
    content = files.first.read_bytes()
    files.first.unlink()
    found, states = drive("async", along(files.ds, "async"))
    assert isinstance(found[0], FileNotFoundError)
    files.first.write_bytes(content)
    assert_same(drive("async", part(files.ds, "async", states[0]))[0], files.all)
    assert_same(drive("async", part(files.ds, "async", states[1]))[0], files.all[1:])


def test_states_stay_small(tmp_path: Path) -> None:
    files = Files(READERS["text"], tmp_path, both)
    assert len(json.dumps(files.states[3])) < 600
