"""`FixedLengthRecordDataset`: records of one length, headers and footers, sizes that do not fit, places."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, FixedLengthRecordDataset, TensorSpec, decode_raw
from aiodata.errors import CorruptRecordError
from aiodata.formats.fixed_length import FixedLengthSplitter
from tests.programs import assert_gives, assert_outcomes, assert_same, first, outcomes, to_list

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
each_compression = pytest.mark.parametrize("compression", PACKERS)


def write(path: Path, data: bytes, compression: str = "") -> Path:
    path.write_bytes(PACKERS[compression](data))
    return path


def cut_up(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


# Cutting


@each_compression
@pytest.mark.parametrize("size", [None, 1, 2, 3, 5, 16, 64])
@pytest.mark.parametrize(("header", "footer"), [(0, 0), (4, 0), (0, 3), (5, 7), (40, 40)])
def test_headers_and_footers_are_left_out(
    compression: str, size: int | None, header: int, footer: int, tmp_path: Path
) -> None:
    body = bytes(range(30))
    path = write(tmp_path / "x", b"h" * header + body + b"f" * footer, compression)
    assert_same(to_list(FixedLengthRecordDataset(path, 5, header, footer, size, compression)), cut_up(body, 5))


@each_compression
@pytest.mark.parametrize("count", [0, 1, 2])
def test_hardly_any_records(count: int, compression: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"head" + b"one" * count + b"end", compression)
    ds = FixedLengthRecordDataset(path, 3, 4, 3, compression_type=compression)
    assert_gives(ds, [b"one"] * count)


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    assert_gives(FixedLengthRecordDataset(write(tmp_path / "x", b""), 3), [])


@given(
    st.binary(max_size=200),
    st.integers(1, 9),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(1, 64),
)
def test_every_size_of_piece_gives_the_same_records(
    data: bytes, record: int, header: int, footer: int, size: int
) -> None:
    body = len(data) - header - footer
    splitter = FixedLengthSplitter("x", 0, 0, record, header, footer)
    cuts = [cut for at in range(0, len(data), size) for cut in splitter.feed(data[at : at + size])]
    if body < 0 or body % record:
        with pytest.raises(CorruptRecordError, match=r"^x, "):
            cuts.extend(splitter.finish())
    else:
        cuts.extend(splitter.finish())
    records = [element for cut in cuts for element in cut.elements or ()]
    count = max(0, body // record)
    assert records == cut_up(data[header : header + count * record], record)
    assert sum(cut.size for cut in cuts) == (header + count * record if count else 0)


@pytest.mark.parametrize("record", [1, 100, 70_000, 3_000_000])
def test_large_files_make_several_blocks_of_bounded_size(record: int, tmp_path: Path) -> None:
    body = np.random.default_rng(0).bytes(6_000_000 // record * record if record > 1 else 50_000)
    ds = FixedLengthRecordDataset(write(tmp_path / "x", body), record)
    with ds.iterate() as iterator:
        assert list(iterator) == cut_up(body, record)
        (counters,) = [entry for entry in iterator.statistics() if entry["stage"] == "fixed_length_record"]
    assert counters["elements"] == len(body) // record
    assert counters["bytes_read"] == len(body)
    assert counters["blocks"] >= max(len(body) / max(record, 1 << 20), len(body) / record / 4096)


def test_many_files_in_order_and_at_once(tmp_path: Path) -> None:
    paths = [write(tmp_path / str(n), b"".join(b"%d%d" % (n, i) for i in range(3))) for n in range(3)]
    in_order = [b"%d%d" % (n, i) for n in range(3) for i in range(3)]
    assert_gives(FixedLengthRecordDataset(paths, 2), in_order)
    assert_gives(FixedLengthRecordDataset(Dataset.from_tensor_slices([str(path) for path in paths]), 2), in_order)
    at_once = to_list(FixedLengthRecordDataset(paths, 2, num_parallel_reads=2))
    assert at_once[:4] == [b"00", b"10", b"01", b"11"]
    assert sorted(at_once) == in_order


def test_batches_become_arrays(tmp_path: Path) -> None:
    values = np.arange(12, dtype=">i4").reshape(6, 2)
    path = write(tmp_path / "x", b"magic" + values.tobytes())
    ds = FixedLengthRecordDataset(path, 8, 5).batch(4).map(lambda batch: decode_raw(batch, np.int32, False))
    assert_gives(ds, [values[:4].astype(np.int32), values[4:].astype(np.int32)])


# Sizes that do not fit


def test_an_uncompressed_file_is_refused_before_its_first_record(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"h" + b"abc" * 3 + b"de")
    (error,) = outcomes(FixedLengthRecordDataset(path, 3, 1))
    assert isinstance(error, CorruptRecordError)
    assert (error.path, error.record, error.offset) == (str(path), 0, 0)
    assert str(error) == (
        f"{path}, record 0, byte 0: the content has 11 bytes without its header (1) and footer (0), which is no "
        "multiple of record_bytes (3): 2 bytes are left"
    )


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("size", [None, 1, 4])
def test_a_compressed_file_gives_what_it_has_and_then_the_error(
    compression: str, size: int | None, tmp_path: Path
) -> None:
    path = write(tmp_path / "x", b"h" + b"abc" * 3 + b"de", compression)
    *records, error = outcomes(FixedLengthRecordDataset(path, 3, 1, None, size, compression))
    assert records == [b"abc"] * 3
    assert isinstance(error, CorruptRecordError)
    assert (error.path, error.record, error.offset) == (str(path), 3, 10)
    assert "2 bytes are left" in str(error)


@each_compression
@pytest.mark.parametrize("size", range(1, 9))
def test_a_file_too_short_for_header_and_footer(size: int, compression: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"x" * size, compression)
    (error,) = outcomes(FixedLengthRecordDataset(path, 1, 4, 5, compression_type=compression))
    assert isinstance(error, CorruptRecordError)
    assert f"the header of 4 bytes and the footer of 5 are longer than the content, which has {size} bytes" in str(
        error
    )


def test_an_empty_file_is_too_short_for_a_header(tmp_path: Path) -> None:
    assert_outcomes(FixedLengthRecordDataset(write(tmp_path / "x", b""), 1, 1), [CorruptRecordError])


def test_a_length_beyond_the_file_allocates_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"x" * 100)
    for lengths in ((1 << 62,), (1, 1 << 62), (1, 0, 1 << 62)):
        assert_outcomes(FixedLengthRecordDataset(path, *lengths), [CorruptRecordError])


def test_a_file_that_is_no_regular_one_is_read_to_its_end(tmp_path: Path) -> None:
    if not os.path.exists("/proc/self/comm"):
        pytest.skip("reads /proc")
    name = to_list(FixedLengthRecordDataset("/proc/self/comm", 1))
    assert b"".join(name).endswith(b"\n")


def test_the_wrong_compression_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"plain text")
    (error,) = outcomes(FixedLengthRecordDataset(path, 5, compression_type="GZIP"))
    assert isinstance(error, CorruptRecordError)
    assert "the file is not GZIP" in str(error)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("size", [None, 1, 3])
def test_compressed_data_without_a_compression_is_told_where_it_does_not_fit(
    compression: str, size: int | None, tmp_path: Path
) -> None:
    packed = PACKERS[compression](b"abc" * 20)
    path = write(tmp_path / "x", packed)
    (error,) = outcomes(FixedLengthRecordDataset(path, 2 * len(packed) // 3, buffer_size=size))
    assert str(error).endswith(f"it looks {compression}-compressed: pass compression_type='{compression}'")
    assert_gives(FixedLengthRecordDataset(path, len(packed), buffer_size=size), [packed])


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_compressed_file_that_is_cut_short_is_an_error_that_names_it(compression: str, tmp_path: Path) -> None:
    packed = PACKERS[compression](b"abc" * 50)
    for size in range(1, len(packed)):
        path = write(tmp_path / "x", packed[:size])
        *records, error = outcomes(FixedLengthRecordDataset(path, 3, compression_type=compression))
        assert records == [b"abc"] * len(records)
        assert isinstance(error, CorruptRecordError)
        assert str(path) in str(error)


def test_one_damaged_file_of_a_hundred_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n:02}", b"%02d" % n * (5 if n != 41 else 3) + b"x" * (n == 41)) for n in range(100)]
    named: list[Exception] = []
    for reads in (None, 4):
        ds = FixedLengthRecordDataset(paths, 2, num_parallel_reads=reads).ignore_errors(on_error=named.append)
        assert sorted(to_list(ds)) == sorted(b"%02d" % n for n in range(100) for _ in range(5) if n != 41)
    assert [str(paths[41]) in str(error) for error in named] == [True, True]


def test_a_missing_file_is_an_error_in_its_place(tmp_path: Path) -> None:
    good = write(tmp_path / "x", b"good")
    ds = FixedLengthRecordDataset([tmp_path / "none", tmp_path, good], 2)
    assert_outcomes(ds, [FileNotFoundError, IsADirectoryError, b"go", b"od"])


def test_errors_of_later_stages_name_file_and_record(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"1x")
    one, error = outcomes(FixedLengthRecordDataset(path, 1).map(int))
    assert one == 1
    assert error.__notes__ == [f"in map(int), element 1, from {path} record 1"]


# Places


def test_positions_are_bytes_and_records_of_the_file(tmp_path: Path) -> None:
    ds = FixedLengthRecordDataset(write(tmp_path / "x", b"head" + b"abc" * 5 + b"end"), 3, 4, 3, 6)
    with ds.iterate() as iterator:
        for taken in range(1, 6):
            next(iterator)
            (offset, number, *_), skip = iterator.state_dict()["position"]
            assert offset == (4 + 3 * number if number else 0)
            assert number + skip == taken


def test_a_file_that_has_changed_its_size_is_refused_on_restore(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"abc" * 4)
    ds = FixedLengthRecordDataset(path, 3, buffer_size=3)
    with ds.iterate() as iterator:
        assert [next(iterator), next(iterator), next(iterator)] == [b"abc"] * 3
        state = iterator.state_dict()
    write(path, b"abc" * 4 + b"x")
    with ds.iterate(state) as iterator, pytest.raises(CorruptRecordError, match="1 bytes are left"):
        next(iterator)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    count=st.integers(0, 30),
    lengths=st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)),
    compression=st.sampled_from(sorted(PACKERS)),
    data=st.data(),
)
def test_resume_at_any_record(
    count: int, lengths: tuple[int, int, int], compression: str, data: Any, tmp_path: Path
) -> None:
    record, header, footer = lengths
    body = bytes(n % 251 for n in range(count * record))
    path = write(tmp_path / "x", b"h" * header + body + b"f" * footer, compression)
    ds = FixedLengthRecordDataset(path, *lengths, data.draw(st.integers(1, 64)), compression)
    taken = data.draw(st.integers(0, count))
    records = cut_up(body, record)
    assert first(ds, taken) == records[:taken]
    with ds.iterate() as iterator:
        for _ in range(taken):
            next(iterator)
        state = json.loads(json.dumps(iterator.state_dict()))
    with FixedLengthRecordDataset(path, *lengths, compression_type=compression).iterate(state) as iterator:
        assert list(iterator) == records[taken:]


# The call


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("x", 0), ValueError, "record_bytes must be at least 1, not 0"),
        (("x", -1), ValueError, "record_bytes"),
        (("x", 2.5), TypeError, "record_bytes must be an integer"),
        (("x", None), TypeError, "record_bytes"),
        (("x", 1, -1), ValueError, "header_bytes must be at least 0, not -1"),
        (("x", 1, 0, -1), ValueError, "footer_bytes"),
        (("x", 1, 0, 0, -1), ValueError, "buffer_size"),
        (("x", 1, 0, 0, 0, "BZIP2"), ValueError, "compression_type"),
        (("x", 1, 0, 0, 0, "", 0), ValueError, "num_parallel_reads"),
        ((5, 1), TypeError, "filenames"),
        (({"a": 1}, 1), TypeError, "filenames"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"FixedLengthRecordDataset: {message}"):
        FixedLengthRecordDataset(*arguments)


def test_what_is_known_of_it() -> None:
    ds = FixedLengthRecordDataset("x", 3, 1, compression_type="GZIP", name="mine")
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.element_spec == TensorSpec((), object)
    assert "fixed_length_record(x, 3, 1, 0, GZIP)" in repr(ds)
    assert "mine" in repr(ds)
