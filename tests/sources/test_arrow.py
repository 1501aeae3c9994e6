"""`ArrowDataset`: Arrow's file and stream formats, Feather, damage, resume, closing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import ArrowDataset
from aiodata.errors import CorruptRecordError, StateError, StructureError
from tests.programs import arr, assert_gives, assert_same, objects, outcomes, to_list

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pa = pytest.importorskip("pyarrow", reason="Arrow's files need pyarrow")
from pyarrow import feather  # noqa: E402 - behind importorskip

from tests.arrow_files import write_arrow  # noqa: E402

NUMBERS = list(range(20))
FLAT = {"n": NUMBERS, "half": [n / 2 for n in NUMBERS], "name": [f"name {n % 3}" for n in NUMBERS]}
each_format = pytest.mark.parametrize("stream", [False, True])


def row(n: int) -> dict[str, Any]:
    return {"n": np.int64(n), "half": np.float64(n / 2), "name": f"name {n % 3}"}


def kinds(outcome: list[Any]) -> list[Any]:
    return [type(item) if isinstance(item, Exception) else item["n"] for item in outcome]


# Rows


@each_format
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_every_codec(codec: str | None, stream: bool, tmp_path: Path) -> None:
    path = write_arrow(tmp_path / "x", FLAT, 7, stream=stream, codec=codec)
    assert_gives(ArrowDataset(path), [row(n) for n in NUMBERS])
    assert_gives(ArrowDataset(str(path), ["name", "n"]), [{"name": row(n)["name"], "n": np.int64(n)} for n in NUMBERS])
    assert_gives(
        ArrowDataset(path, ["half"], filter=[("n", ">", 15)]), [{"half": np.float64(n / 2)} for n in (16, 17, 18, 19)]
    )


@pytest.mark.parametrize("codec", ["uncompressed", "lz4", "zstd"])
def test_feather(codec: str, tmp_path: Path) -> None:
    feather.write_feather(pa.table(FLAT), str(tmp_path / "x"), compression=codec, chunksize=6)
    assert_gives(ArrowDataset(tmp_path / "x"), [row(n) for n in NUMBERS])


@each_format
def test_hardly_any_rows(stream: bool, tmp_path: Path) -> None:
    table = pa.table(FLAT)
    assert_gives(ArrowDataset(write_arrow(tmp_path / "0", table.slice(0, 0), stream=stream)), [])
    assert_gives(ArrowDataset(write_arrow(tmp_path / "1", table.slice(4, 1), stream=stream)), [row(4)])
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(tmp_path / "gaps", table.schema) as writer:
        for begin, end in ((0, 0), (0, 3), (3, 3), (3, 9)):
            writer.write_batch(pa.record_batch(table.slice(begin, end - begin).to_pydict(), table.schema))
    assert_gives(ArrowDataset(tmp_path / "gaps"), [row(n) for n in range(9)])


@each_format
def test_large_record_batches_travel_in_blocks(stream: bool, tmp_path: Path) -> None:
    columns = {"n": range(20_000), "l": [[n] * (n % 3) for n in range(20_000)]}
    path = write_arrow(tmp_path / "x", columns, stream=stream)
    with ArrowDataset(path).iterate() as iterator:
        for n, element in enumerate(iterator):
            assert element["n"] == n
            assert element["l"].tolist() == [n] * (n % 3)
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "arrow"]
    assert counters["elements"] == 20_000
    assert counters["blocks"] == 3
    assert_same(to_list(ArrowDataset(path, ["n"]).batch(20_000))[0]["n"], arr(range(20_000)))


@each_format
def test_dictionaries_that_grow(stream: bool, tmp_path: Path) -> None:
    batches = [
        pa.record_batch({"s": pa.array(words).dictionary_encode()}) for words in (["a", "b"], ["c", "a"], ["b", "d"])
    ]
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(unify_dictionaries=not stream)
    with new(tmp_path / "x", batches[0].schema, options=options) as writer:
        writer.write_table(pa.Table.from_batches(batches)) if not stream else [
            writer.write_batch(one) for one in batches
        ]
    assert_gives(ArrowDataset(tmp_path / "x"), [{"s": letter} for letter in "abcabd"])


def test_nulls(tmp_path: Path) -> None:
    path = write_arrow(tmp_path / "x", {"n": [0, None, 2], "name": [None, "b", "c"]}, 2)
    found = outcomes(ArrowDataset(path))
    assert kinds(found) == [0, StructureError, 2]
    assert str(found[1]).startswith(f"{path}: record batch 0, row 1: 'n' is null")
    whole = {"n": arr([0, 7, 2]), "name": objects("-", "b", "c")}
    assert_same(to_list(ArrowDataset(path, null_values={"n": 7, "name": "-"}).batch(3)), [whole])


def test_a_column_that_is_missing_or_of_another_type(tmp_path: Path) -> None:
    paths = [write_arrow(tmp_path / "a", {"n": [1]}), write_arrow(tmp_path / "b", {"n": [1.5], "m": [2]}, stream=True)]
    found = outcomes(ArrowDataset([*paths, paths[0]]))
    assert kinds(found) == [1, StructureError, 1]
    assert str(found[1]) == f"{paths[1]}: column 'n' is double, but int64 in {paths[0]}"
    missing = outcomes(ArrowDataset(paths, ["m"]))[0]
    assert str(missing) == f"{paths[0]}: there is no column 'm'; the columns are 'n'"


def test_arguments_cardinality_and_label(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="ArrowDataset: columns"):
        ArrowDataset("x", "n")
    with pytest.raises(ValueError, match="ArrowDataset: num_parallel_reads"):
        ArrowDataset("x", num_parallel_reads=0)
    ds = ArrowDataset("x", ["n"], name="mine")
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert "mine" in repr(ds)
    assert ds.plan.label == "arrow(x, columns=['n'])"


# Damage


def test_what_is_no_arrow_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no table " * 100)
    (tmp_path / "1").write_bytes(b"FEA1" + bytes(100))
    write_arrow(tmp_path / "x", FLAT)
    found = outcomes(ArrowDataset([tmp_path / name for name in ("empty", "text", "1", "none", "", "x")]))
    assert kinds(found) == [*[CorruptRecordError] * 3, FileNotFoundError, IsADirectoryError, *NUMBERS]
    assert "Feather version 1" in str(found[2])


@each_format
@pytest.mark.parametrize("codec", [None, "zstd"])
def test_a_file_that_is_cut_short_or_damaged_anywhere_gives_errors_only(
    codec: str | None, stream: bool, tmp_path: Path
) -> None:
    columns = {"n": range(9), "s": ["text"] * 9, "l": [[1]] * 9, "d": pa.array(["a", "b", "c"] * 3).dictionary_encode()}
    content = write_arrow(tmp_path / "x", columns, 5, stream=stream, codec=codec).read_bytes()
    path = tmp_path / "bad"
    whole = 0
    for at in range(0, len(content), 13):
        path.write_bytes(content[:at])
        found = outcomes(ArrowDataset(path))
        numbers = [item["n"] for item in found if not isinstance(item, Exception)]
        assert numbers == list(range(len(numbers)))
        whole += len(found) == 9
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        for item in outcomes(ArrowDataset(path)):
            assert isinstance(item, (dict, CorruptRecordError, StructureError))
    assert whole <= 1  # only the mark at the end of a stream may be missing


def test_a_damaged_record_batch_is_one_error(tmp_path: Path) -> None:
    path = write_arrow(tmp_path / "x", {"n": range(9), "s": ["text"] * 9}, 3)
    content = bytearray(path.read_bytes())
    offsets = arr([0, 4, 8, 12], np.int32).tobytes()
    second = content.index(offsets, content.index(offsets) + 1)
    content[second + 4 : second + 8] = b"\xff" * 4
    path.write_bytes(content)
    assert kinds(outcomes(ArrowDataset(path))) == [0, 1, 2, CorruptRecordError, 6, 7, 8]
    assert kinds(outcomes(ArrowDataset(path, ["n"]))) == list(range(9))
    stream = write_arrow(tmp_path / "y", {"n": range(9), "s": ["text"] * 9}, 3, stream=True)
    stream.write_bytes(stream.read_bytes().replace(offsets, offsets[:4] + b"\xff" * 4 + offsets[8:]))
    assert kinds(outcomes(ArrowDataset(stream))) == [CorruptRecordError] * 3


def test_one_damaged_file_of_a_hundred_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    paths = [write_arrow(tmp_path / f"{k:02}", {"n": [k] * 3}, stream=k % 2 == 1) for k in range(100)]
    paths[41].write_bytes(paths[41].read_bytes()[:90])
    named: list[Exception] = []
    for reads in (None, 4):
        ds = ArrowDataset(paths, num_parallel_reads=reads).ignore_errors(on_error=named.append)
        assert sorted(element["n"] for element in ds) == sorted(k for k in range(100) for _ in range(3) if k != 41)
    assert [str(paths[41]) in str(error) for error in named] == [True, True]


# Resume


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    count=st.integers(0, 25), batch=st.integers(1, 9), stream=st.booleans(), limit=st.integers(0, 30), data=st.data()
)
def test_goes_on_at_every_row(
    count: int, batch: int, stream: bool, limit: int, data: st.DataObject, tmp_path: Path
) -> None:
    path = write_arrow(tmp_path / "x", pa.table(FLAT).slice(0, count), batch, stream=stream)
    ds = ArrowDataset(path, filter=[("n", "<", limit)])
    expected = [row(n) for n in range(min(count, limit, 20))]
    taken = data.draw(st.integers(0, len(expected)))
    with ds.iterate() as iterator:
        assert_same([next(iterator) for _ in range(taken)], expected[:taken])
        state = json.loads(json.dumps(iterator.state_dict()))
    with ds.iterate(state) as iterator:
        assert_same(list(iterator), expected[taken:])


@each_format
@pytest.mark.parametrize("columns", [{"n": range(12)}, {"n": range(9), "half": [0.5] * 9, "name": ["x"] * 9}])
def test_a_file_that_has_changed_is_refused(columns: Any, stream: bool, tmp_path: Path) -> None:
    path = write_arrow(tmp_path / "x", FLAT, 5, stream=stream)
    ds = ArrowDataset(path)
    with ds.iterate() as iterator:
        for _ in range(12):
            next(iterator)
        state = iterator.state_dict()
    write_arrow(path, columns, 5, stream=stream)
    with ds.iterate(state) as iterator, pytest.raises(StateError, match=str(path)):
        next(iterator)


@each_format
def test_leaving_early_leaves_no_file_open(
    stream: bool, tmp_path: Path, open_descriptors: Callable[[], dict[int, str]]
) -> None:
    path = write_arrow(tmp_path / "x", FLAT, 5, stream=stream)
    for ds in (ArrowDataset(path), ArrowDataset([path] * 5, num_parallel_reads=3), ArrowDataset(path).prefetch(1)):
        for _ in range(10):
            for _element in ds:
                break
        assert str(path) not in open_descriptors().values()
