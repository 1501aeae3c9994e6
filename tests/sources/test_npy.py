"""`NpyDataset`: rows of `.npy` and `.npz` files, as numpy has them."""

from __future__ import annotations

import json
import os
import pickle
import struct
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import aiodata
from aiodata import Dataset, NpyDataset
from aiodata.errors import CorruptRecordError, StateError, StructureError
from tests.programs import arr, assert_gives, assert_outcomes, assert_same, first, objects, outcomes, to_list

if TYPE_CHECKING:
    from pathlib import Path

Array = np.ndarray[Any, Any]


def save(path: Path, array: Array) -> Path:
    with open(path, "wb") as file, warnings.catch_warnings(action="ignore"):
        np.save(file, array)
    return path


def pack(path: Path, compressed: bool = False, **members: Any) -> Path:
    with open(path, "wb") as file:
        (np.savez_compressed if compressed else np.savez)(file, **members)
    return path


def message(ds: Dataset[Any]) -> str:
    (error,) = outcomes(ds)
    assert isinstance(error, CorruptRecordError), error
    return str(error)


# Rows


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5),
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(24, dtype=">i2").reshape(2, 3, 4),
        np.arange(24).reshape(2, 3, 4).T,
        np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["2020-01-01", "1970-01-01"], "datetime64[D]"),
        np.zeros((0, 3)),
        np.zeros(0, np.int8),
        np.zeros((3, 0)),
        np.zeros((3, 0), order="F"),
        np.zeros((1, 1, 1)),
        np.arange(10)[::2],
    ],
)
def test_rows_are_those_of_numpy(array: Array, tmp_path: Path) -> None:
    path = save(tmp_path / "x.npy", array)
    assert_gives(NpyDataset(path), list(np.load(path)))
    assert_gives(NpyDataset(pack(tmp_path / "x.npz", a=array)), [{"a": row} for row in np.load(path)])


@pytest.mark.parametrize("name", ["b", "bé", "b☃"])
def test_structured_rows(name: str, tmp_path: Path) -> None:
    array = np.array([(1, [0.5, 2]), (2, [3, 4])], [("a", ">i4"), (name, np.float64, (2,))])
    path = save(tmp_path / "x", array)
    found = to_list(NpyDataset(path))
    assert [row.dtype for row in found] == [array.dtype] * 2
    assert [(row["a"], row[name].tolist()) for row in found] == [(1, [0.5, 2]), (2, [3, 4])]
    (batch,) = to_list(NpyDataset(path).batch(2))
    assert batch.dtype == array.dtype


def test_text_becomes_objects(tmp_path: Path) -> None:
    assert_gives(NpyDataset(save(tmp_path / "x", np.array(["a", "bé"]))), ["a", "bé"])
    assert_gives(NpyDataset(save(tmp_path / "x", np.array([[b"a", b"bc"]]))), [objects(b"a", b"bc")])


def test_members_are_components(tmp_path: Path) -> None:
    path = pack(tmp_path / "x", x=np.arange(6).reshape(3, 2), y=np.array(["a", "b", "c"]))
    rows = [{"x": arr([2 * n, 2 * n + 1]), "y": "abc"[n]} for n in range(3)]
    assert_gives(NpyDataset(path), rows)
    assert_gives(NpyDataset(path, members=["y"]), [{"y": text} for text in "abc"])
    assert list(to_list(NpyDataset(path, members=["y", "x"]))[0]) == ["y", "x"]
    (batch,) = to_list(NpyDataset(path).batch(3))
    assert_same(batch, {"x": np.arange(6).reshape(3, 2), "y": objects("a", "b", "c")})


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    assert_gives(NpyDataset(pack(tmp_path / "x.npy", a=np.arange(2))), [{"a": np.int64(0)}, {"a": np.int64(1)}])
    assert_gives(NpyDataset(save(tmp_path / "x.npz", np.arange(2))), [np.int64(0), np.int64(1)])


def test_an_archive_without_arrays_has_no_rows(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    assert_gives(NpyDataset(tmp_path / "x"), [])
    with zipfile.ZipFile(tmp_path / "y", "w"):
        pass
    assert_gives(NpyDataset(tmp_path / "y"), [])


def test_rows_are_writable_and_ones_own(tmp_path: Path) -> None:
    for order in ("C", "F"):
        path = save(tmp_path / "x", np.ones((2, 2), order=order))
        for row in to_list(NpyDataset(path)):
            row[:] = 9
        assert_same(np.load(path), np.ones((2, 2)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["npy", "npz", "compressed"])
def test_large_files_make_several_blocks_of_bounded_size(order: Any, kind: str, tmp_path: Path) -> None:
    array = np.asarray(np.random.default_rng(0).random((6000, 100)), order=order)
    path = save(tmp_path / "x", array) if kind == "npy" else pack(tmp_path / "x", kind == "compressed", a=array)
    rows = to_list(NpyDataset(path).map(lambda row: row if kind == "npy" else row["a"]))
    assert_same(np.stack(rows), np.ascontiguousarray(array))
    with NpyDataset(path).iterate() as iterator:
        assert sum(1 for _ in iterator) == 6000
        (counters,) = [entry for entry in iterator.statistics() if entry["stage"] == "npy"]
    assert counters["elements"] == 6000
    assert counters["blocks"] == 3
    assert counters["bytes_read"] == array.nbytes


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    array=arrays.arrays(
        st.one_of(
            arrays.scalar_dtypes().filter(lambda dtype: dtype.kind not in "mM"),  # NaT is not itself
            arrays.unicode_string_dtypes(max_len=3),
            arrays.byte_string_dtypes(max_len=3),
        ),
        arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    ),
    fortran=st.booleans(),
    data=st.data(),
)
def test_any_array_and_resume_at_any_row(array: Array, fortran: bool, data: Any, tmp_path: Path) -> None:
    stored = np.asfortranarray(array) if fortran else array
    path = data.draw(
        st.sampled_from(
            [save(tmp_path / "x", stored), pack(tmp_path / "y", a=stored), pack(tmp_path / "z", True, a=stored)]
        )
    )
    loaded = np.load(tmp_path / "x")
    loaded = loaded.astype(object) if loaded.dtype.kind in "SU" else loaded
    expected = list(loaded) if path.name == "x" else [{"a": row} for row in loaded]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aiodata.formats.npy.BLOCK_BYTES", data.draw(st.integers(1, 64)))
        assert_same(to_list(NpyDataset(path)), expected)
        taken = data.draw(st.integers(0, len(expected)))
        with NpyDataset(path).iterate() as iterator:
            for _ in range(taken):
                next(iterator)
            state = json.loads(json.dumps(iterator.state_dict()))
    with NpyDataset(path).iterate(state) as iterator:
        assert_same(list(iterator), expected[taken:])


def test_many_files_in_order_and_at_once(tmp_path: Path) -> None:
    paths = [save(tmp_path / str(n), np.arange(10 * n, 10 * n + 3)) for n in range(3)]
    in_order = [np.int64(10 * n + i) for n in range(3) for i in range(3)]
    assert_gives(NpyDataset(paths), in_order)
    assert_gives(NpyDataset(Dataset.from_tensor_slices([str(path) for path in paths])), in_order)
    assert to_list(NpyDataset(paths, num_parallel_reads=2))[:4] == [0, 10, 1, 11]


# What is refused


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save(path, np.array([{}, None]))
    assert "holds Python objects, which are not read" in message(NpyDataset(path))
    save(path, np.array([(1, None)], [("a", int), ("b", object)]))
    assert "holds Python objects" in message(NpyDataset(path))
    assert "member 'a': the array holds Python objects" in message(NpyDataset(pack(path, a=np.array([None]))))
    path.write_bytes(pickle.dumps([1, 2]))
    assert "this is no .npy data" in message(NpyDataset(path))


def test_single_values_have_no_rows(tmp_path: Path) -> None:
    assert "is a single value, which has no rows" in message(NpyDataset(save(tmp_path / "x", np.array(5))))
    path = pack(tmp_path / "y", a=np.arange(2), b=5)
    assert message(NpyDataset(path)) == (
        f"{path}, record 0: member 'b': the array is a single value, which has no rows"
    )
    assert_gives(NpyDataset(path, members=["a"]), [{"a": np.int64(0)}, {"a": np.int64(1)}])


def test_members_of_unequal_length(tmp_path: Path) -> None:
    path = pack(tmp_path / "x", a=np.arange(2), b=np.arange(3))
    assert message(NpyDataset(path)) == f"{path}, record 0: member 'b': it has 3 rows, 'a' has 2"


def test_members_that_are_not_there(tmp_path: Path) -> None:
    path = pack(tmp_path / "x", a=np.arange(2), b=np.arange(2))
    assert "member 'c': there is no such member; there are 'a', 'b'" in message(NpyDataset(path, members=["a", "c"]))
    path = save(tmp_path / "y", np.arange(2))
    assert "this is no .npz file, so it has no members" in message(NpyDataset(path, members=["a"]))


@pytest.mark.parametrize(
    ("other", "types"),
    [
        (np.zeros((2, 4)), "float64[4], but float64[3] in"),
        (np.zeros((2, 3), np.float32), "float32[3], but float64[3] in"),
        (np.zeros(2), "float64, but float64[3] in"),
    ],
)
@pytest.mark.parametrize("reads", [None, 2])
def test_files_that_differ_from_the_first(other: Array, types: str, reads: int | None, tmp_path: Path) -> None:
    paths = [save(tmp_path / "a", np.ones((1, 3))), save(tmp_path / "b", other), save(tmp_path / "c", np.ones((1, 3)))]
    ds = NpyDataset(paths, reads)
    assert_outcomes(ds, [arr([1, 1, 1], float), StructureError, arr([1, 1, 1], float)])
    error = next(error for error in outcomes(ds) if isinstance(error, Exception))
    assert str(error) == f"{paths[1]}: column 'rows' is {types} {paths[0]}"


def test_archives_that_differ_from_the_first(tmp_path: Path) -> None:
    paths = [pack(tmp_path / "a", x=np.zeros(1), y=np.zeros(1)), pack(tmp_path / "b", x=np.zeros(1), z=np.zeros(1))]
    _, error = outcomes(NpyDataset(paths))
    assert str(error) == f"{paths[1]}: column 'y' is absent, but float64 in {paths[0]}"


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_that_is_cut_short_anywhere(order: Any, tmp_path: Path) -> None:
    data = save(tmp_path / "x", np.ones((2, 3), order=order)).read_bytes()
    path = tmp_path / "y"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        assert str(path) in message(NpyDataset(path))
    path.write_bytes(data + b"more")
    assert_gives(NpyDataset(path), [arr([1, 1, 1], float)] * 2)


@pytest.mark.parametrize("compressed", [False, True])
def test_an_archive_that_is_cut_short_or_damaged_anywhere(compressed: bool, tmp_path: Path) -> None:
    array = np.arange(64, dtype=np.int32).reshape(16, 4)
    data = pack(tmp_path / "x", compressed, a=array).read_bytes()
    path = tmp_path / "y"
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        assert str(path) in message(NpyDataset(path))
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        found = outcomes(NpyDataset(path))
        for error in (item for item in found if isinstance(item, Exception)):
            assert isinstance(error, CorruptRecordError), error
            assert str(path) in str(error)
        # zipfile reads past what it does not need; but no row is wrong.
        rows = [row for row in found if not isinstance(row, Exception)]
        assert not rows or not any(
            set(row) == {"a"} and row["a"].tolist() != array[n].tolist() for n, row in enumerate(rows)
        )


def test_any_bytes_are_an_error_and_nothing_worse(tmp_path: Path) -> None:
    data = save(tmp_path / "x", np.ones((2, 3))).read_bytes()
    path = tmp_path / "y"
    for at in range(128):
        for bit in (0, 3, 6):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            with warnings.catch_warnings(action="ignore"):
                found = outcomes(NpyDataset(path))
            assert not any(isinstance(item, Exception) and not isinstance(item, CorruptRecordError) for item in found)


@pytest.mark.parametrize(
    "shape", ["(2305843009213693951,)", "(1, 2305843009213693951)", "(-1,)", "(9" + "9" * 400 + ",)"]
)
@pytest.mark.parametrize("fortran", [False, True])
def test_absurd_shapes_allocate_nothing(shape: str, fortran: bool, tmp_path: Path) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 64
    path = tmp_path / "x"
    path.write_bytes(data)
    assert str(path) in message(NpyDataset(path))
    with zipfile.ZipFile(tmp_path / "y", "w") as archive:
        archive.writestr("a.npy", data)
    assert "member 'a'" in message(NpyDataset(tmp_path / "y"))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", "the header is said to have 2147483647 bytes"),
        (b"\x93NUMPY\x03\x00\x04\x00\x00\x00\xff\xff\xff\xff", "y"),
        (b"\x93NUMPY\x04\x00", "the .npy version 4.0 is not known"),
        (b"\x93NUMPY\x01\x00\x05\x00[[[[[", "y"),
        (b"\x93NUMPY\x01\x00\x02\x00{}", "y"),
        (b"", "this is no .npy data"),
        (b"hello world, this is text", "this is no .npy data"),
    ],
)
def test_headers_that_are_none(header: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "y"
    path.write_bytes(header)
    assert problem in message(NpyDataset(path))


def test_one_damaged_file_of_a_hundred_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{n:02}", np.full(5, n)) for n in range(100)]
    paths[41].write_bytes(paths[41].read_bytes()[:-1])
    named: list[Exception] = []
    for reads in (None, 4):
        ds = NpyDataset(paths, reads).ignore_errors(on_error=named.append)
        assert sorted(to_list(ds)) == sorted(n for n in range(100) for _ in range(5) if n != 41)
    assert [str(paths[41]) in str(error) for error in named] == [True, True]


def test_a_missing_file_is_an_error_in_its_place(tmp_path: Path) -> None:
    good = save(tmp_path / "x", np.arange(1))
    ds = NpyDataset([tmp_path / "none", tmp_path, good])
    assert_outcomes(ds, [FileNotFoundError, IsADirectoryError, np.int64(0)])


# Places and endings


def test_errors_of_later_stages_name_file_and_row(tmp_path: Path) -> None:
    path = save(tmp_path / "x", np.array([1, 0]))
    one, error = outcomes(NpyDataset(path).map(lambda x: 1 // int(x)))
    assert one == 1
    assert error.__notes__ == [f"in map(<lambda>), element 1, from {path} row 1"]


def test_a_file_that_has_become_shorter_is_refused_on_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiodata.formats.npy.BLOCK_BYTES", 8)
    path = save(tmp_path / "x", np.arange(5))
    with NpyDataset(path).iterate() as iterator:
        for _ in range(4):
            next(iterator)
        state = iterator.state_dict()
    save(path, np.arange(2))
    with NpyDataset(path).iterate(state) as iterator, pytest.raises(StateError, match="has 144 bytes, but had 168"):
        next(iterator)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_leaving_early_leaves_no_file_open(tmp_path: Path) -> None:
    for path in (save(tmp_path / "x", np.asfortranarray(np.ones((3, 3)))), pack(tmp_path / "y", a=np.arange(9))):
        ds = NpyDataset(path)
        first(ds, 1)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            for _row in ds:
                break
        assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_a_row_that_is_damaged_ends_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiodata.formats.npy.BLOCK_BYTES", 800)
    path = pack(tmp_path / "x", a=np.arange(3000).reshape(300, 10))
    data = bytearray(path.read_bytes())
    at = bytes(data).index(struct.pack("<q", 2999))
    data[at] ^= 1
    path.write_bytes(data)
    *rows, error = outcomes(NpyDataset(path))
    assert [row["a"][0] for row in rows] == list(range(0, 10 * len(rows), 10))
    assert 100 <= len(rows) < 300
    assert isinstance(error, CorruptRecordError)
    assert error.record == len(rows)
    assert "member 'a': Bad CRC-32" in str(error)


# The call


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"num_parallel_reads": 0}, ValueError, "num_parallel_reads"),
        ({"filenames": 5}, TypeError, "filenames"),
        ({"members": "a"}, TypeError, "members must be a list of names, not 'a'"),
        ({"members": [1]}, TypeError, "members must be a list of names"),
        ({"members": []}, ValueError, "members is empty"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=f"NpyDataset: {problem}"):
        NpyDataset(**({"filenames": "x"} | arguments))


def test_what_is_known_of_it() -> None:
    ds = NpyDataset("x", name="mine", members=["a"])
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.element_spec is None
    assert "npy(x, ['a'])" in repr(ds)
    assert "mine" in repr(ds)
