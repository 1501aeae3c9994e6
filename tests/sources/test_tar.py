"""`TarDataset`: samples and files of archives, compression, damage, places, resume."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiodata import Dataset, TarDataset, TensorSpec
from aiodata.errors import CorruptRecordError
from tests.programs import assert_gives, assert_outcomes, assert_same, objects, outcomes, to_list

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
each_compression = pytest.mark.parametrize("compression", PACKERS)


def archive(*files: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def samples(*numbers: int) -> list[dict[str, Any]]:
    return [{"__key__": f"{n:03}", "txt": b"text %d" % n * n, "cls": b"%d" % n} for n in numbers]


def packed(*numbers: int) -> bytes:
    return archive(
        *((f"{n:03}.{e}", s[e]) for n, s in zip(numbers, samples(*numbers), strict=True) for e in s if e[0] != "_")
    )


def write(path: Path, data: bytes, compression: str = "") -> Path:
    path.write_bytes(PACKERS[compression](data))
    return path


@each_compression
@pytest.mark.parametrize("size", [None, 13, 64, 5000])
def test_reads_every_compression_at_every_chunk_size(compression: str, size: int | None, tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", packed(0, 1, 90), compression)
    assert_gives(TarDataset(path, compression, size), samples(0, 1, 90))


@each_compression
def test_reads_every_compression_byte_by_byte(compression: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", packed(1, 2)[: 10 * 512], compression)  # without what tar pads the file with
    assert_same(to_list(TarDataset(path, compression, 1)), samples(1, 2))


def test_joined_gzip_members_and_joined_archives(tmp_path: Path) -> None:
    data = packed(0, 1, 2)
    path = tmp_path / "x.tar.gz"
    path.write_bytes(gzip.compress(data[:700]) + gzip.compress(data[700:]) + gzip.compress(packed(3)))
    assert_gives(TarDataset(path, "GZIP"), samples(0, 1, 2, 3))


def test_an_empty_archive_gives_nothing(tmp_path: Path) -> None:
    assert_gives(TarDataset(write(tmp_path / "x.tar", archive())), [])


def test_files_one_by_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", archive(("a.x", b"1"), (".b", b""), ("c", b"3")))
    ds = TarDataset(path, group=False)
    assert_gives(ds, [("a.x", b"1"), (".b", b""), ("c", b"3")])
    assert ds.element_spec == (TensorSpec((), object), TensorSpec((), object))
    assert_gives(ds.batch(2).take(1), [(objects("a.x", ".b"), objects(b"1", b""))])
    assert_gives(TarDataset(path, group=False, select=["x"]), [("a.x", b"1")])


def test_chosen_extensions(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", archive(("a.jpg", b"J"), ("a.CLS", b"1"), ("b.jpg", b"J"), ("c.cls", b"3")))
    expected = [{"__key__": "a", "cls": b"1"}, {"__key__": "c", "cls": b"3"}]
    assert_gives(TarDataset(path, select=["Cls"]), expected)
    assert_gives(TarDataset(path, select={"cls", "txt"}), expected)


def test_many_archives_in_order_and_at_once(tmp_path: Path) -> None:
    paths = [write(tmp_path / str(n), packed(*range(3 * n, 3 * n + 3))) for n in range(3)]
    assert_gives(TarDataset(paths), samples(*range(9)))
    assert_gives(TarDataset(Dataset.from_tensor_slices([str(path) for path in paths])), samples(*range(9)))
    assert_gives(TarDataset(paths, num_parallel_reads=2), samples(0, 3, 1, 4, 2, 5, 6, 7, 8))
    assert_gives(
        Dataset.list_files(f"{tmp_path}/*", False).interleave(TarDataset, 3), samples(0, 3, 6, 1, 4, 7, 2, 5, 8)
    )


def test_facts(tmp_path: Path) -> None:
    ds = TarDataset("a.tar", "GZIP", name="mine", select=["b", "A"])
    assert "mine" in repr(ds)
    assert "a.tar, GZIP, select=['a', 'b']" in repr(ds)
    assert "group=False" in repr(TarDataset("a.tar", group=False))
    assert ds.element_spec is None
    assert ds.cardinality() == -2


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("x", "BZIP2"), {}, ValueError),
        (("x", None, -1), {}, ValueError),
        (("x", None, None, 0), {}, ValueError),
        ((5,), {}, TypeError),
        (("x",), {"select": "jpg"}, TypeError),
        (("x",), {"select": b"jpg"}, TypeError),
        (("x",), {"select": [1]}, TypeError),
        (("x",), {"select": []}, ValueError),
        (("x",), {"select": [".jpg"]}, ValueError),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="TarDataset"):
        TarDataset(*arguments, **options)


# Damage


def test_a_bad_sample_is_an_error_in_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", archive(("0.a", b"0"), ("1.a", b""), ("1.a", b""), ("2.a", b"2")))
    first, twice, last = outcomes(TarDataset(path))
    assert (first, last) == ({"__key__": "0", "a": b"0"}, {"__key__": "2", "a": b"2"})
    assert str(twice) == f"{path}, record 1, byte 1536: the sample '1' has two files with the extension 'a'"


def test_a_late_half_is_a_sample_wherever_the_reading_begins(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", archive(("0.a", b"0"), ("1.a", b"1"), ("0.b", b"2"), ("1.b", b"3")))
    expected = [{"__key__": "01"[n % 2], "ab"[n // 2]: b"%d" % n} for n in range(4)]
    assert_gives(TarDataset(path), expected)
    for size in (1, 600, None):
        with TarDataset(path, buffer_size=size).iterate() as iterator:
            for taken in range(5):
                with TarDataset(path).iterate(iterator.state_dict()) as other:
                    assert list(other) == expected[taken:]
                assert next(iterator, None) == (expected[taken] if taken < 4 else None)


def test_a_member_beyond_the_end_is_found_before_the_rest_is_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("b.bin")
    info.size = 60_000_000
    head = archive(("a.bin", b"1"))[:1024]
    path = write(tmp_path / "x.tar", head + info.tobuf() + bytes(50_000_000))
    with TarDataset([path, write(tmp_path / "y.tar", packed(1))], group=False).iterate() as iterator:
        assert next(iterator) == ("a.bin", b"1")
        with pytest.raises(CorruptRecordError, match=r"record 1, byte 1024: 'b\.bin' has 60000000 bytes"):
            next(iterator)
        (counters,) = [entry for entry in iterator.statistics() if entry["stage"] == "tar"]
        assert counters["bytes_read"] < 3_000_000
        assert next(iterator) == ("001.txt", b"text 1")


@each_compression
def test_an_archive_that_is_cut_short_is_an_error(compression: str, tmp_path: Path) -> None:
    data = packed(0, 1, 2)
    for size in (0, 1, 511, 512, 1024, 2047, 2048, 3072, 3584):
        found = outcomes(TarDataset(write(tmp_path / "x.tar", data[:size], compression), compression))
        assert found[:-1] == samples(0, 1, 2)[: len(found) - 1]
        assert isinstance(found[-1], CorruptRecordError)
        assert found[-1].path == str(tmp_path / "x.tar")
        assert found[-1].record == len(found) - 1


def test_the_wrong_compression_says_so(tmp_path: Path) -> None:
    for packer, given_type, hint in [
        ("GZIP", "", "looks GZIP-compressed: pass compression_type='GZIP'"),
        ("ZLIB", "", "looks ZLIB-compressed: pass compression_type='ZLIB'"),
        ("", "GZIP", "the file is not GZIP"),
    ]:
        (error,) = outcomes(TarDataset(write(tmp_path / "x", packed(0, 1), packer), given_type))
        assert isinstance(error, CorruptRecordError)
        assert hint in str(error)


def test_one_damaged_archive_of_a_hundred_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n:02}.tar", packed(2 * n, 2 * n + 1)) for n in range(100)]
    damaged = bytearray(paths[41].read_bytes())
    damaged[2] ^= 1
    paths[41].write_bytes(damaged)
    named: list[Exception] = []
    for reads in (None, 4):
        ds = TarDataset(paths, num_parallel_reads=reads).ignore_errors(on_error=named.append)
        found = sorted(to_list(ds), key=lambda sample: sample["__key__"])
        assert found == samples(*(n for n in range(200) if n not in (82, 83)))
    assert [f"{paths[41]}, record 0, byte 0" in str(error) for error in named] == [True, True]


def test_a_missing_file_is_an_error_in_its_place(tmp_path: Path) -> None:
    good = write(tmp_path / "x.tar", packed(1))
    assert_outcomes(TarDataset([tmp_path / "none", good]), [FileNotFoundError, *samples(1)])


def test_errors_of_later_stages_name_archive_and_sample(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", archive(("0.n", b"1"), ("1.n", b"two")))

    def number(sample: dict[str, Any]) -> int:
        return int(sample["n"])

    one, error = outcomes(TarDataset(path).map(number))
    assert one == 1
    assert error.__notes__ == [f"in map({number.__name__}), element 1, from {path} sample 1"]


# Resume


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    numbers=st.integers(0, 9), compression=st.sampled_from(sorted(PACKERS)), size=st.integers(1, 3000), data=st.data()
)
def test_resume_at_any_sample(numbers: int, compression: str, size: int, data: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "x", packed(*range(numbers)), compression)
    taken = data.draw(st.integers(0, numbers))
    with TarDataset(path, compression, size).iterate() as iterator:
        assert [next(iterator) for _ in range(taken)] == samples(*range(taken))
        state = json.loads(json.dumps(iterator.state_dict()))
    with TarDataset(path, compression).iterate(state) as iterator:
        assert list(iterator) == samples(*range(taken, numbers))


def test_a_plain_archive_is_restored_without_reading_what_came_before(tmp_path: Path) -> None:
    path = write(tmp_path / "x", archive(*((f"{n}.bin", bytes(200_000)) for n in range(20))))
    with TarDataset(path, buffer_size=50_000).iterate() as iterator:
        for _ in range(15):
            next(iterator)
        state = iterator.state_dict()
    with TarDataset(path, buffer_size=50_000).iterate(state) as iterator:
        assert next(iterator)["__key__"] == "15"
        (counters,) = [entry for entry in iterator.statistics() if entry["stage"] == "tar"]
    assert counters["bytes_read"] < 1_000_000


def test_samples_flow_into_arrays(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", archive(*((f"{n}.bin", bytes([n] * 4)) for n in range(3))))
    ds = TarDataset(path).map(lambda sample: np.frombuffer(sample["bin"], np.uint8)).batch(3)
    assert_gives(ds, [np.array([[n] * 4 for n in range(3)], np.uint8)])
