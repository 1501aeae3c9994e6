"""`ElementArchive`: what was written comes back exactly; what is damaged is an error, never another value."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata import Dataset, TensorSpec
from aiodata.columns import iterate
from aiodata.errors import CorruptRecordError
from aiodata.formats.element_archive import ElementArchive
from aiodata.formats.element_archive_writer import CHUNK_BYTES, ElementArchiveWriter
from aiodata.formats.element_encoding import LARGEST_CHUNK
from aiodata.spec import NoneTensorSpec
from tests.formats.elements import KINDS, assert_exact, columns, elements
from tests.programs import Pair, arr, assert_same, objects


def write(path: Path, *parts: Any, compression: str = "", extra: Any = None) -> ElementArchiveWriter:
    """Write lists of elements, and columns, which are anything else."""
    with path.open("wb") as file:
        writer = ElementArchiveWriter(file, compression, "the file")
        try:
            for part in parts:
                (writer.write if isinstance(part, list) else writer.write_columns)(part)
            writer.finish(extra)
        finally:
            writer.discard()
    return writer


def read(path: Path) -> list[Any]:
    archive = ElementArchive(str(path))
    try:
        archive.open()
        found: list[Any] = []
        for number in range(len(archive.starts)):
            chunk = archive.read(number)
            assert len(found) == archive.starts[number]
            rows = list(iterate(chunk.columns)) if chunk.elements is None else chunk.elements
            assert len(rows) == chunk.length
            found += rows
        assert len(found) == archive.count
        return found
    finally:
        archive.close()


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("element", KINDS, ids=lambda element: type(element).__name__)
def test_an_element_of_each_kind_comes_back_exactly(tmp_path: Path, element: Any, compression: str) -> None:
    for count in (1, 3):
        write(tmp_path / "a.npz", [element] * count, compression=compression)
        assert_exact(read(tmp_path / "a.npz"), [element] * count)


def test_elements_need_nothing_in_common(tmp_path: Path) -> None:
    write(tmp_path / "a.npz", KINDS * 3, KINDS)
    assert_exact(read(tmp_path / "a.npz"), KINDS * 4)


@given(st.lists(elements, max_size=8), st.sampled_from(["", "GZIP"]))
def test_any_elements_come_back_exactly(tmp_path_factory: Any, rows: list[Any], compression: str) -> None:
    path = tmp_path_factory.mktemp("any") / "a.npz"
    write(path, rows, compression=compression)
    assert_exact(read(path), rows)


@given(st.lists(columns, max_size=3))
def test_the_rows_of_any_columns_come_back_exactly(tmp_path_factory: Any, parts: list[Any]) -> None:
    path = tmp_path_factory.mktemp("any") / "a.npz"
    write(path, *parts)
    assert_exact(read(path), [row for part in parts for row in iterate(part)])


def test_numpy_reads_it_as_it_is(tmp_path: Path) -> None:
    rows = {"image": np.arange(6, dtype=np.uint8).reshape(3, 2), "label": objects(b"a", b"", b"bc")}
    write(tmp_path / "a.npz", rows, compression="GZIP", extra={"more": 1})
    with np.load(tmp_path / "a.npz") as found:
        assert_same(found["00000000/image"], rows["image"])
        assert found["00000000/label"].tobytes() == b"abc"
        assert found["00000000/label.lengths"].tolist() == [1, 0, 2]
        assert json.loads(found["index.json"])["extra"] == {"more": 1}
    assert zipfile.ZipFile(tmp_path / "a.npz").testzip() is None


def test_columns_are_given_where_elements_can_be_rows(tmp_path: Path) -> None:
    rows = {"x": arr([1, 2]), "y": (objects(b"a", b"b"), np.zeros((2, 3)), None), "z": arr([1, 2], "M8[s]")}
    write(tmp_path / "a.npz", list(iterate(rows)))
    archive = ElementArchive(str(tmp_path / "a.npz"))
    archive.open()
    chunk = archive.read(0)
    archive.close()
    assert chunk.elements is None
    assert chunk.length == 2
    assert_same(chunk.columns, rows)
    assert chunk.columns["x"].flags.writeable


@pytest.mark.parametrize("rows", [[1, 2], [arr(1)], [None, None], [()], [arr([1]), arr([1, 2])], [2**70]])
def test_elements_that_are_no_rows_come_one_by_one(tmp_path: Path, rows: list[Any]) -> None:
    write(tmp_path / "a.npz", rows)
    archive = ElementArchive(str(tmp_path / "a.npz"))
    archive.open()
    assert archive.read(0).columns is None
    archive.close()


def test_a_class_of_a_named_tuple_that_is_not_there_is_made_once(tmp_path: Path) -> None:
    code = """
import sys
from typing import NamedTuple
from tests.formats.test_element_archive import write
from pathlib import Path
class Box(NamedTuple):
    left: int
    right: int
write(Path(sys.argv[1]), [Box(1, 2)], [Box(3, 4), 5, Box(6, 7)])
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.npz")], check=True)
    first, *others = read(tmp_path / "a.npz")
    assert type(first).__name__ == "Box"
    assert (first._fields, tuple(first)) == (("left", "right"), (1, 2))
    assert type(others[0]) is type(others[2]) is type(first)


def test_a_local_class_of_a_named_tuple_is_found_again(tmp_path: Path) -> None:
    class Local(NamedTuple):
        x: int

    write(tmp_path / "a.npz", [Local(1)])
    assert type(read(tmp_path / "a.npz")[0]) is Local


# Specs


@pytest.mark.parametrize(
    ("parts", "spec"),
    [
        ([[np.int64(1)]], TensorSpec((), "int64")),
        ([[1], [2.5]], None),
        ([[1, np.int64(1)]], TensorSpec((), "int64")),
        ([[1, 2.5]], None),
        ([[{"a": arr([1, 2]), "b": None}]], {"a": TensorSpec((2,), "int64"), "b": NoneTensorSpec()}),
        ([[arr([1, 2]), arr([1])], np.zeros((2, 7), np.int64)], TensorSpec((None,), "int64")),
        ([[arr([1, 2]), arr([[1]])]], TensorSpec(None, "int64")),
        ([[(b"a", "b")], [(b"", "")]], (TensorSpec((), object), TensorSpec((), object))),
        ([[objects(1, 2)], [objects(1)]], TensorSpec((None,), object)),
        ([[Pair(1, ())]], Pair(TensorSpec((), "int64"), ())),
        ([[arr([1], ">i4")]], TensorSpec((1,), ">i4")),
        ([[arr([1], "M8[s]")]], TensorSpec((1,), "M8[s]")),
        ([[np.zeros(2, [("a", "i2"), ("b", "f4", (3,))])]], TensorSpec((2,), [("a", "i2"), ("b", "f4", (3,))])),
        ([], None),
    ],
)
def test_the_spec_is_what_all_elements_have_in_common(tmp_path: Path, parts: Any, spec: Any) -> None:
    wide = [part * LARGEST_CHUNK if isinstance(part, list) else part for part in parts]
    assert write(tmp_path / "a.npz", *wide).spec == spec
    archive = ElementArchive(str(tmp_path / "a.npz"))
    archive.open()
    archive.close()
    assert archive.spec == spec
    assert type(archive.spec) is type(spec)


# Chunks


def starts(path: Path) -> list[int]:
    archive = ElementArchive(str(path))
    archive.open()
    archive.close()
    return archive.starts


def test_chunks_are_about_a_mebibyte_or_some_thousands_of_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write(path, list(range(10_000)))
    assert starts(path) == [0, 4096, 8192]
    write(path, *[np.arange(n * 1000, n * 1000 + 1000) for n in range(10)])
    assert starts(path) == [0, 4096, 8192]
    assert_exact(read(path), list(np.arange(10_000)))
    write(path, np.zeros((100, CHUNK_BYTES // 40), np.float32))
    assert starts(path) == list(range(0, 100, 10))
    write(path, [b"x" * (CHUNK_BYTES // 3)] * 4)
    assert starts(path) == [0, 2]


def test_a_large_element_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    large = np.arange(CHUNK_BYTES)
    write(path, [arr([1]), large, arr([2]), arr([3])], np.arange(CHUNK_BYTES)[None])
    assert starts(path) == [0, 1, 2, 4]
    assert_exact(read(path), [arr([1]), large, arr([2]), arr([3]), large])


def test_an_element_is_found(tmp_path: Path) -> None:
    write(tmp_path / "a.npz", list(range(10_000)))
    archive = ElementArchive(str(tmp_path / "a.npz"))
    archive.open()
    assert [archive.find(n) for n in (0, 4095, 4096, 9_999)] == [(0, 0), (0, 4095), (1, 0), (2, 1807)]
    assert archive.read(2).elements == list(range(8192, 10_000))
    assert archive.read(0).elements == list(range(4096))
    archive.close()


def test_empty(tmp_path: Path) -> None:
    write(tmp_path / "a.npz", [], arr([]))
    assert (read(tmp_path / "a.npz"), starts(tmp_path / "a.npz")) == ([], [])


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    tracemalloc.start()
    try:
        with path.open("wb") as file:
            writer = ElementArchiveWriter(file, "", "the file")
            for number in range(200):
                writer.write([np.full(1 << 17, number)])
            writer.finish()
        archive = ElementArchive(str(path))
        archive.open()
        for number in range(200):
            chunk = archive.read(number)
            assert [chunk.columns[0, -1]] == [number]
        archive.close()
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


# What is refused


class Thing:
    """No number and no text."""


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (Thing(), "element 2: element is a Thing, which the file cannot hold"),
        ({"x": (1, Thing())}, "element 2: component ['x'][1] is a Thing"),
        (Pair(1, {2}), "element 2: component .y is a set"),
        (objects(1, [2]), "element 2: component .items is a list"),
        (Dataset.range(3), "element 2: element is a dataset, which"),
        (np.ma.masked_array([1]), "is a MaskedArray of dtype int64"),
        (np.zeros(2, np.dtype([("a", object)])), "is a ndarray of dtype [('a', 'O')]"),
        ({Thing: 1}, "a key is a type"),
    ],
)
def test_what_would_need_pickle_is_refused(tmp_path: Path, element: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        write(tmp_path / "a.npz", [1, 2, element, 4])
    assert message in str(caught.value)


def test_a_writer_that_is_given_up_writes_nothing_more(tmp_path: Path) -> None:
    file = io.BytesIO()
    writer = ElementArchiveWriter(file, "", "the file")
    writer.write([1] * 5000)
    size = len(file.getvalue())
    writer.discard()
    del writer
    assert len(file.getvalue()) == size


# What is damaged


ROWS = [{"x": arr([n, n + 1]), "t": b"ab" * n, "o": objects("é", n, None)} for n in range(4)]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.npz"
    write(path, ROWS, np.arange(3), compression=compression)
    expected = read(path)
    good = path.read_bytes()
    harmless = 0
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        try:
            found = read(path)
        except CorruptRecordError:
            continue
        harmless += 1
        assert_same(found, expected)
    assert harmless < len(good) / 2  # dates, versions, attributes


def test_a_file_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write(path, ROWS)
    good = path.read_bytes()
    for size in range(0, len(good), 7):
        path.write_bytes(good[:size])
        with pytest.raises(CorruptRecordError, match=r"a\.npz"):
            read(path)


def changed(path: Path, change: dict[str, bytes | None], index: dict[str, Any] | None = None) -> None:
    """Write an archive again with other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["index.json"] = json.dumps(json.loads(members["index.json"]) | (index or {})).encode()
    for name, content in change.items():
        if content is None:
            del members[name]
        else:
            members[name] = content
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED if b" " * 1000 in content else None)


def npy(array: Any, shape: Any = None) -> bytes:
    """Give a `.npy` file, whose header may say another shape."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | {"shape": shape or array.shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


HUGE = 1 << 50


@pytest.mark.parametrize(
    ("change", "index", "message"),
    [
        ({"00000000/x.npy": None}, {}, "record 0: member '00000000/x.npy': the member '00000000/x.npy' is missing"),
        ({"index.json": None}, {}, "'index.json' is missing"),
        ({"index.json": b"{"}, {}, "Expecting"),
        ({"index.json": b" " * 9000}, {}, "the index of 9000 bytes is larger than the file"),
        ({"index.json": b"[" * 500_000}, {}, "recursion"),
        ({}, {"version": 2}, "the version 2 of the format is not known"),
        ({}, {"format": "x"}, "no archive of elements"),
        ({}, {"chunks": [[0, 9]]}, "list index"),
        ({}, {"chunks": [[1, 0]]}, "do not follow"),
        ({}, {"count": 5}, "there are 4 values where 5 are expected"),
        ({}, {"count": HUGE}, "do not follow"),
        ({}, {"count": "4"}, ""),
        ({}, {"layouts": [{"kind": "odd", "arrays": ["x"]}]}, "'odd'"),
        ({}, {"layouts": [{"kind": "none", "arrays": []}]}, ""),
        ({}, {"layouts": [{"tuple": [], "named": ["x", "x", ["y"]]}]}, ""),
        ({}, {"layouts": [{"tuple": [], "named": ["os", "path", ["1 + 1"]]}]}, ""),
        ({"00000000/x.npy": npy(np.zeros((4, 2)), (4, HUGE))}, {}, "cannot be in"),
        ({"00000000/x.npy": npy(np.zeros((4, 2)), (HUGE, 0))}, {}, "cannot be in"),
        ({"00000000/x.npy": npy(np.zeros((0, 2)), (HUGE, 0))}, {}, "without content"),
        ({"00000000/x.npy": npy(np.zeros((4, 2)))[:-8]}, {}, "cannot be in"),
        ({"00000000/x.npy": npy(np.zeros((4, 2))) + b" "}, {}, "cannot be in"),
        ({"00000000/x.npy": npy(objects(1, 2, 3, 4))}, {}, "dtype object"),
        ({"00000000/x.npy": b"text"}, {}, "no .npy data"),
        ({"00000000/t.lengths.npy": npy(arr([1, 2, 3, HUGE]))}, {}, "do not add up"),
        ({"00000000/t.lengths.npy": npy(arr([-1, 2, 3, 8]))}, {}, "do not add up"),
        ({"00000000/o.shapes.npy": npy(arr([[3]] * 3 + [[HUGE]]))}, {}, "values where"),
        ({"00000000/o.shapes.npy": npy(arr([[3]] * 3 + [[-3]]))}, {}, "no shapes"),
    ],
)
def test_an_absurd_file_is_an_error_and_takes_no_memory(tmp_path: Path, change: Any, index: Any, message: str) -> None:
    path = tmp_path / "a.npz"
    write(path, ROWS)
    changed(path, change, index)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError) as caught:
            read(path)
        assert message in str(caught.value)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_member_that_says_it_is_larger_than_it_can_be_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write(path, np.zeros(1000), compression="GZIP")
    good = path.read_bytes()
    size = (128 + 8000).to_bytes(4, "little")
    assert good.count(size) == 2
    path.write_bytes(good.replace(size, (1 << 31).to_bytes(4, "little")))
    with pytest.raises(CorruptRecordError, match="is said to have 2147483648 bytes"):
        read(path)


def test_no_file_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.npz")
