"""`TFRecordDataset` and `TFRecordWriter`: framing, checksums, damage, compression, places."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import struct
import sys
import threading
import time
import tracemalloc
import warnings
import zlib
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiodata import Dataset, TFRecordDataset, TFRecordWriter
from aiodata.engine.block import Block, Failure, pull
from aiodata.engine.position import Origin
from aiodata.errors import CorruptRecordError, StateError
from aiodata.formats.tfrecord import RecordSplitter, frame
from tests.programs import assert_gives, assert_outcomes, first, outcomes, to_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiodata.formats.cuts import Cut

pytest.importorskip("google_crc32c", reason="TFRecord's checksums need google-crc32c")

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "tfrecord"
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
each_compression = pytest.mark.parametrize("compression", PACKERS)


def content(*records: bytes) -> bytes:
    return b"".join(map(frame, records))


def write(path: Path, data: bytes, compression: str = "") -> Path:
    path.write_bytes(PACKERS[compression](data))
    return path


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, as RFC 3720 defines it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@cache
def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) % 2**32


# What TensorFlow wrote


@pytest.mark.parametrize(("name", "compression"), [("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")])
def test_files_that_tensorflow_wrote(name: str, compression: str) -> None:
    records = to_list(TFRecordDataset(GOLDEN / f"examples-{name}.tfrecord", compression))
    assert len(records) == 25
    assert records == to_list(TFRecordDataset(GOLDEN / "examples-plain.tfrecord"))
    assert content(*records) == (GOLDEN / "examples-plain.tfrecord").read_bytes()


def test_empty_and_large_records_that_tensorflow_wrote() -> None:
    expected = [base64.b64decode(x) for x in json.loads((GOLDEN / "expected.json").read_text())["odd_base64"]]
    assert list(map(len, expected)) == [0, 1, 5, 70_000]
    assert_gives(TFRecordDataset(GOLDEN / "odd.tfrecord"), expected)
    assert_gives(TFRecordDataset(GOLDEN / "odd.tfrecord", buffer_size=999), expected)


# Framing


@given(st.binary(max_size=300))
def test_a_record_is_framed_by_the_book(payload: bytes) -> None:
    length = struct.pack("<Q", len(payload))
    assert frame(payload) == length + struct.pack("<I", masked(length)) + payload + struct.pack("<I", masked(payload))


@given(st.lists(st.binary(max_size=90), max_size=12), st.integers(1, 64))
def test_every_size_of_piece_gives_the_same_records(records: list[bytes], size: int) -> None:
    data = content(*records)
    cuts, found = fed(data, [size])
    assert found == records
    assert sum(cut.size for cut in cuts) == len(data)


def fed(data: bytes, sizes: list[int], offset: int = 0, number: int = 0) -> tuple[list[Cut], list[Any]]:
    """Feed data in pieces of sizes that repeat; give the cuts, and all records with errors in their places."""
    splitter = RecordSplitter("x", offset, number)
    cuts: list[Cut] = []
    found: list[Any] = []

    def keep(some: Iterator[Cut]) -> None:
        for cut in some:
            cuts.append(cut)
            block: Block[Any] = Block(
                Origin(list), computed=cut.elements, columns=cut.columns, length=cut.length, clean=cut.clean
            )
            found.extend(pull(block.rows(), cut.length + 1))

    at = 0
    try:
        for size in cycle(sizes):
            if at >= len(data):
                break
            keep(splitter.feed(data[at : at + size]))
            at += size
        keep(splitter.finish())
    except CorruptRecordError as error:
        found.append(Failure(error))
    return cuts, [told(one.exception) if isinstance(one, Failure) else one for one in found]


def told(error: CorruptRecordError) -> tuple[int | None, int | None, str]:
    return error.record, error.offset, str(error)[:60]


def read_plainly(data: bytes) -> list[Any]:
    """Read records one by one, as the format's description says; errors are their record and byte."""
    found: list[Any] = []
    at = 0
    while at < len(data):
        head, begin = data[at : at + 12], at
        length, crc = struct.unpack("<QI", head.ljust(12, b"\0"))
        stop = at + 12 + length
        if (len(head) == 12 and masked(head[:8]) != crc) or stop + 4 > len(data):
            return [*found, (len(found), begin)]
        payload = data[at + 12 : stop]
        good = masked(payload) == int.from_bytes(data[stop : stop + 4], "little")
        found.append(payload if good else (len(found), begin))
        at = stop + 4
    return found


RUNS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 150)), max_size=5)


@given(RUNS, st.lists(st.tuples(st.integers(0), st.integers(1, 255)), max_size=3), st.data())
def test_runs_of_records_of_one_length_are_read_as_others_are(
    runs: list[tuple[int, int]], damage: list[tuple[int, int]], data: Any
) -> None:
    records = [bytes([n, length, 7, 0])[:length] for length, count in runs for n in range(count)]
    damaged = bytearray(content(*records))
    for at, bits in damage if damaged else ():
        damaged[at % len(damaged)] ^= bits
    whole = bytes(damaged[: len(damaged) - data.draw(st.sampled_from([0, 0, 1, 5]))])
    expected = read_plainly(whole)
    sizes = data.draw(st.lists(st.integers(1, 999), min_size=1, max_size=3))
    for some in ([len(whole) + 1], sizes):
        cuts, found = fed(whole, some)
        assert [one[:2] if isinstance(one, tuple) else one for one in found] == expected
        assert all(cut.clean == (cut.elements is None) for cut in cuts)
        # Begun at any cut, it goes on with the same.
        begun = read = 0
        for cut in cuts:
            assert fed(whole[begun:], sizes, begun, read)[1] == found[read:]
            begun, read = begun + cut.size, read + cut.length


@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 500, 899])
@pytest.mark.parametrize("part", ["length", "payload", "checksum"])
def test_damage_in_a_long_run_is_found_in_its_place(at: int, part: str, tmp_path: Path) -> None:
    records = [b"%08d" % n for n in range(900)]
    damaged = bytearray(content(*records))
    damaged[24 * at + {"length": 5, "payload": 14, "checksum": 21}[part]] ^= 16
    found = outcomes(TFRecordDataset(write(tmp_path / "x", bytes(damaged))))
    assert found[:at] == records[:at]
    assert (found[at].record, found[at].offset) == (at, 24 * at)
    assert found[at + 1 :] == ([] if part == "length" else records[at + 1 :])


def test_blocks_of_a_run_end_at_about_a_mebibyte_and_at_4096_records() -> None:
    for length, limit in ((0, 4096), (300, 3319), (2**20, 1), (2**21, 1)):
        cuts, found = fed(content(*[bytes(length)] * (limit * 2 + 1)), [2**30])
        assert [cut.length for cut in cuts] == [limit, limit, 1]
        assert found == [bytes(length)] * (limit * 2 + 1)


@each_compression
@pytest.mark.parametrize("size", [None, 1, 13, 64])
def test_reads_every_compression_at_every_chunk_size(compression: str, size: int | None, tmp_path: Path) -> None:
    records = [b"", b"a", b"\x00" * 30, b"bc" * 100]
    path = write(tmp_path / "x", content(*records), compression)
    assert_gives(TFRecordDataset(path, compression, size), records)


def test_large_files_make_several_blocks_of_bounded_size(tmp_path: Path) -> None:
    records = [bytes([n % 256]) * 50_000 for n in range(100)]
    ds = TFRecordDataset(write(tmp_path / "x", content(*records)))
    assert to_list(ds) == records
    with ds.iterate() as iterator:
        assert sum(1 for _ in iterator) == 100
        (counters,) = [entry for entry in iterator.statistics() if entry["stage"] == "tf_record"]
    assert counters["elements"] == 100
    assert 4 <= counters["blocks"] <= 30


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_records(count: int, tmp_path: Path) -> None:
    assert_gives(TFRecordDataset(write(tmp_path / "x", content(*[b"one"] * count))), [b"one"] * count)


def test_many_files_in_order_and_at_once(tmp_path: Path) -> None:
    paths = [write(tmp_path / str(n), content(*[b"%d %d" % (n, i) for i in range(3)])) for n in range(3)]
    in_order = [b"%d %d" % (n, i) for n in range(3) for i in range(3)]
    assert_gives(TFRecordDataset(paths), in_order)
    assert_gives(TFRecordDataset(Dataset.from_tensor_slices([str(path) for path in paths])), in_order)
    at_once = to_list(TFRecordDataset(paths, num_parallel_reads=2))
    assert at_once[:4] == [b"0 0", b"1 0", b"0 1", b"1 1"]
    assert sorted(at_once) == in_order


def test_wrong_arguments_are_refused_at_the_call() -> None:
    wrong: list[tuple[tuple[Any, ...], type[Exception]]] = [
        (("x", "BZIP2"), ValueError),
        (("x", None, -1), ValueError),
        (("x", None, None, 0), ValueError),
        ((5,), TypeError),
        (({"a": 1},), TypeError),
    ]
    for arguments, error in wrong:
        with pytest.raises(error, match="TFRecordDataset"):
            TFRecordDataset(*arguments)


# Damage


def test_a_flipped_bit_anywhere_is_an_error_that_names_file_record_and_byte(tmp_path: Path) -> None:
    records = [b"first", b"", b"third record"]
    data = content(*records)
    begins = [0, 21, 37]
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        path = write(tmp_path / "x", bytes(damaged))
        number = max(n for n, begin in enumerate(begins) if begin <= at)
        found = outcomes(TFRecordDataset(path))
        error = found[number]
        assert isinstance(error, CorruptRecordError)
        assert (error.path, error.record, error.offset) == (str(path), number, begins[number])
        assert found[:number] == records[:number]
        # Behind a damaged payload the file goes on, behind a damaged length it cannot.
        in_length = at - begins[number] < 12
        assert found[number + 1 :] == ([] if in_length else records[number + 1 :])


@each_compression
def test_a_file_that_is_cut_short_anywhere_is_an_error(compression: str, tmp_path: Path) -> None:
    records = [b"first", b"second"]
    data = content(*records)
    for size in range(1, len(data)):
        path = write(tmp_path / "x", data[:size], compression)
        found = outcomes(TFRecordDataset(path, compression))
        if size == 21:
            assert found == records[:1]
            continue
        whole = int(size > 21)
        assert found[:-1] == records[:whole]
        assert isinstance(found[-1], CorruptRecordError)
        assert (found[-1].record, found[-1].offset) == (whole, 21 * whole)
        assert "cut short" in str(found[-1])


@pytest.mark.parametrize("length", [2**25, 2**30, 2**50, 2**64 - 1])
def test_an_absurd_length_allocates_nothing(length: int, tmp_path: Path) -> None:
    header = struct.pack("<Q", length)
    path = write(tmp_path / "x", content(b"good") + header + struct.pack("<I", masked(header)) + b"rest")
    good, error = outcomes(TFRecordDataset(path))
    assert good == b"good"
    assert isinstance(error, CorruptRecordError)
    assert (error.record, error.offset) == (1, 20)
    assert ("it is absurd" if length > 2**31 else "beyond the end of the file: it is cut short") in str(error)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_an_absurd_length_in_compressed_data_allocates_nothing(compression: str, tmp_path: Path) -> None:
    header = struct.pack("<Q", 2**31)
    data = content(b"good") + header + struct.pack("<I", masked(header)) + b"rest" * 1000
    path = write(tmp_path / "x", data, compression)
    tracemalloc.start()
    try:
        good, error = outcomes(TFRecordDataset(path, compression))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert good == b"good"
    assert f"{path}, record 1, byte 20: the file ends 4012 bytes into a record of {2**31} bytes" in str(error)


def test_the_wrong_compression_says_so(tmp_path: Path) -> None:
    for packed, given_type, hint in [
        ("GZIP", "", "looks GZIP-compressed: pass compression_type='GZIP'"),
        ("ZLIB", "", "looks ZLIB-compressed: pass compression_type='ZLIB'"),
        ("", "GZIP", "the file is not GZIP"),
        ("", "ZLIB", "the file is not ZLIB"),
        ("ZLIB", "GZIP", "the file is not GZIP"),
    ]:
        path = write(tmp_path / "x", content(b"record"), packed)
        (error,) = outcomes(TFRecordDataset(path, given_type))
        assert isinstance(error, CorruptRecordError)
        assert hint in str(error)
        assert str(path) in str(error)


def test_one_damaged_file_of_a_hundred_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n:02}", content(*[b"%d" % n] * 5)) for n in range(100)]
    damaged = bytearray(paths[41].read_bytes())
    damaged[2] ^= 1  # in the first record's length
    paths[41].write_bytes(damaged)
    named: list[Exception] = []
    for reads in (None, 4):
        ds = TFRecordDataset(paths, num_parallel_reads=reads).ignore_errors(on_error=named.append)
        assert sorted(to_list(ds)) == sorted(b"%d" % n for n in range(100) for _ in range(5) if n != 41)
    assert [str(paths[41]) in str(error) for error in named] == [True, True]


def test_a_missing_file_is_an_error_in_its_place(tmp_path: Path) -> None:
    good = write(tmp_path / "x", content(b"record"))
    assert_outcomes(TFRecordDataset([tmp_path / "none", good]), [FileNotFoundError, b"record"])


def test_errors_of_later_stages_name_file_and_record(tmp_path: Path) -> None:
    path = write(tmp_path / "x", content(b"1", b"two"))
    one, error = outcomes(TFRecordDataset(path).map(int))
    assert one == 1
    assert error.__notes__ == [f"in map(int), element 1, from {path} record 1"]


def test_a_record_that_moved_is_refused_on_restore(tmp_path: Path) -> None:
    path = write(tmp_path / "x", content(b"first", b"second", b"third"))
    ds = TFRecordDataset(path, buffer_size=21)
    with ds.iterate() as iterator:
        assert [next(iterator), next(iterator)] == [b"first", b"second"]
        state = iterator.state_dict()
    write(path, content(b"longer first", b"second", b"third"))
    with ds.iterate(state) as iterator, pytest.raises(StateError, match="begins with other bytes"):
        next(iterator)


# Writing


@each_compression
def test_written_files_are_read_back(compression: str, tmp_path: Path) -> None:
    records = [b"", b"x" * 100_000, b"end"]
    path = tmp_path / "x"
    with TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    assert writer.records == 3
    assert_gives(TFRecordDataset(path, compression), records)
    packed = path.read_bytes()
    unpack: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}
    assert unpack[compression](packed) == content(*records)


def test_writing_in_a_thread(tmp_path: Path) -> None:
    async def main() -> None:
        async with TFRecordWriter(tmp_path / "x", "ZLIB", compression_level=1) as writer:
            for _ in range(30):
                await writer.awrite(b"y" * 100_000)

    asyncio.run(main())
    assert to_list(TFRecordDataset(tmp_path / "x", "ZLIB")) == [b"y" * 100_000] * 30
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_file_appears_when_it_is_complete_and_replaces_the_old_one_then(tmp_path: Path) -> None:
    path = write(tmp_path / "x", content(b"old"))
    writer = TFRecordWriter(path)
    writer.write(b"new")
    writer.flush()
    assert to_list(TFRecordDataset(path)) == [b"old"]
    writer.close()
    writer.close()
    assert to_list(TFRecordDataset(path)) == [b"new"]
    assert [found.name for found in tmp_path.iterdir()] == ["x"]
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"more")


def test_an_exception_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        with TFRecordWriter(tmp_path / "x") as writer:
            writer.write(b"a")
            raise KeyError("stop")

    async def fail_later() -> None:
        async with TFRecordWriter(tmp_path / "x") as writer:
            await writer.awrite(b"z" * 2_000_000)
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(KeyError):
        asyncio.run(fail_later())
    assert list(tmp_path.iterdir()) == []


def test_a_cancelled_write_loses_no_record_of_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with TFRecordWriter(tmp_path / "x", "GZIP") as writer:
            tasks = [asyncio.create_task(writer.awrite(bytes([n]) * 1_200_000)) for n in range(6)]
            await asyncio.sleep(0)
            for task in tasks[1::2]:
                task.cancel()
            await asyncio.wait(tasks)
            assert writer.records == 6

    asyncio.run(main())
    assert to_list(TFRecordDataset(tmp_path / "x", "GZIP")) == [bytes([n]) * 1_200_000 for n in range(6)]


class Slow:
    """A file whose first write waits for a gate."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self.begun.is_set():
            self.begun.set()
            self.gate.wait(30)
        self.written.append(data)
        self.file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@pytest.mark.parametrize("method", ["flush", "write", "close"])
def test_nothing_overtakes_a_write_in_the_thread(method: str, tmp_path: Path) -> None:
    records = [b"a" * 1_200_000, b"b" * (1_200_000 if method == "write" else 5)]

    async def main() -> None:
        writer = TFRecordWriter(tmp_path / "x")
        target: Any = writer._target
        target.file = slow = Slow(target.file)
        writing = asyncio.create_task(writer.awrite(records[0]))
        while not slow.begun.is_set():
            await asyncio.sleep(0)
        if method == "write":
            call = asyncio.create_task(asyncio.to_thread(writer.write, records[1]))
        else:
            await writer.awrite(records[1])
            call = asyncio.create_task(asyncio.to_thread(getattr(writer, method)))
        thread: Any = writer._thread
        while not slow.written and not thread._work_queue.qsize():
            await asyncio.sleep(0)
        slow.gate.set()
        await writing
        await call
        await writer.aclose()
        assert slow.written[:2] == [frame(record) for record in records]

    asyncio.run(main())
    assert to_list(TFRecordDataset(tmp_path / "x")) == records


def test_a_flush_reaches_the_operating_system(tmp_path: Path) -> None:
    with TFRecordWriter(tmp_path / "x") as writer:
        writer.write(b"one")
        writer.flush()
        (part,) = tmp_path.iterdir()
        assert part.read_bytes() == frame(b"one")


@pytest.mark.skipif(sys.platform == "win32", reason="is about links and modes")
def test_a_link_is_followed_and_the_mode_is_kept(tmp_path: Path) -> None:
    path, link = write(tmp_path / "x", content(b"old")), tmp_path / "link"
    path.chmod(0o640)
    link.symlink_to(path)
    with TFRecordWriter(link) as writer:
        writer.write(b"new")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert to_list(TFRecordDataset(path)) == [b"new"]


def test_a_writer_that_is_dropped_leaves_no_file(tmp_path: Path) -> None:
    held = [TFRecordWriter(tmp_path / name) for name in "xy"]
    held[0].write(b"one")
    asyncio.run(held[1].awrite(b"y" * 2_000_000))
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        held.clear()
        while any(tmp_path.iterdir()) or len(raised) < 2:  # the writing thread may be the last to let go of one
            time.sleep(0.001)
    assert [each.category for each in raised] == [ResourceWarning] * 2
    assert all("was not completed" in str(each.message) for each in raised)


def test_writes_behind_a_failed_one_fail_and_leave_no_file(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        writer = TFRecordWriter(tmp_path / "x")
        target: Any = writer._target
        target.file.close()
        target.file = slow = Slow(open("/dev/full", "wb", buffering=0))  # noqa: SIM115 - the writer closes it
        writes = [asyncio.create_task(writer.awrite(b"x" * 2_000_000)) for _ in range(3)]
        while not slow.begun.is_set():
            await asyncio.sleep(0)
        slow.gate.set()
        found = await asyncio.gather(*writes, return_exceptions=True)
        with pytest.raises(OSError, match="what was written before failed"):
            await writer.aclose()
        return found

    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    first, *rest = asyncio.run(main())
    assert "No space" in str(first)
    assert all("what was written before failed: [Errno 28]" in str(error) for error in rest)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    writer = TFRecordWriter(tmp_path / "x")
    target: Any = writer._target
    target.file.close()
    target.file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - the writer closes it
    with pytest.raises(OSError, match="No space"):
        writer.write(b"x" * 2_000_000)
    for again in (lambda: writer.write(b"more"), writer.close):
        with pytest.raises(OSError, match="what was written before failed"):
            again()
    assert list(tmp_path.iterdir()) == []


def test_cancelling_a_writer_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def work() -> None:
            async with TFRecordWriter(tmp_path / "x", "GZIP") as writer:
                begun.set()
                while True:
                    await writer.awrite(b"w" * 1_000_000)

        task = asyncio.create_task(work())
        await begun.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    for wrong in ("text", 5, None):
        with TFRecordWriter(tmp_path / "x") as writer:
            with pytest.raises(TypeError):
                writer.write(wrong)  # type: ignore[arg-type]
            writer.write(memoryview(b"view"))  # type: ignore[arg-type]
    assert to_list(TFRecordDataset(tmp_path / "x")) == [b"view"]


@pytest.mark.parametrize(("options", "level"), [("BZIP2", -1), ("GZIP", 10), ("GZIP", -2)])
def test_wrong_options_are_refused(options: str, level: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="TFRecordWriter"):
        TFRecordWriter(tmp_path / "x", options, compression_level=level)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        TFRecordWriter(tmp_path / "none" / "x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    records=st.lists(st.binary(max_size=200), max_size=20), compression=st.sampled_from(sorted(PACKERS)), data=st.data()
)
def test_resume_at_any_record(records: list[bytes], compression: str, data: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "x", content(*records), compression)
    ds = TFRecordDataset(path, compression, data.draw(st.integers(1, 64)))
    taken = data.draw(st.integers(0, len(records)))
    assert first(ds, taken) == records[:taken]
    with ds.iterate() as iterator:
        for _ in range(taken):
            next(iterator)
        state = json.loads(json.dumps(iterator.state_dict()))
    with TFRecordDataset(path, compression).iterate(state) as iterator:
        assert list(iterator) == records[taken:]
