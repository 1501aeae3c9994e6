"""`ParquetDataset`: rows, columns, filters, nulls, files that do not fit, damage, resume, closing."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, ParquetDataset
from aiodata.errors import CorruptRecordError, StateError, StructureError
from tests.programs import (
    arr,
    assert_gives,
    assert_same,
    first,
    i64,
    objects,
    outcomes,
    plain,
    to_list,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
from pyarrow import compute, parquet  # noqa: E402 - behind importorskip

from aiodata.formats.parquet import ParquetTable  # noqa: E402
from tests.arrow_files import damage, write_parquet  # noqa: E402

NUMBERS = list(range(20))
FLAT = {"n": NUMBERS, "half": [n / 2 for n in NUMBERS], "name": [f"name {n % 3}" for n in NUMBERS]}
CODECS = ["none", *filter(pa.Codec.is_available, ["snappy", "gzip", "brotli", "lz4", "zstd"])]


def row(n: int) -> dict[str, Any]:
    return {"n": np.int64(n), "half": np.float64(n / 2), "name": f"name {n % 3}"}


def kinds(outcome: list[Any]) -> list[Any]:
    return [type(item) if isinstance(item, Exception) else item["n"] for item in outcome]


def blocks_of(ds: Dataset[Any]) -> int:
    with ds.iterate() as iterator:
        list(iterator)
        return sum(one["blocks"] for one in iterator.statistics() if one["stage"] == "parquet")


# Rows


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_codec_and_version_of_pages(codec: str, version: str, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", FLAT, 7, compression=codec, data_page_version=version)
    assert_gives(ParquetDataset(path), [row(n) for n in NUMBERS])


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_rows(count: int, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", pa.table(FLAT).slice(0, count))
    assert_gives(ParquetDataset(path), [row(n) for n in range(count)])
    assert_gives(ParquetDataset(path, filter=[("n", ">", 0)]), [])


def test_empty_row_groups(tmp_path: Path) -> None:
    table = pa.table(FLAT)
    with parquet.ParquetWriter(tmp_path / "x", table.schema) as writer:
        for begin, end in ((0, 0), (0, 3), (3, 3), (3, 9), (9, 9)):
            writer.write_table(table.slice(begin, end - begin), row_group_size=100)
    assert_gives(ParquetDataset(tmp_path / "x"), [row(n) for n in range(9)])


def test_many_files_in_order_and_at_once(tmp_path: Path) -> None:
    paths = [str(write_parquet(tmp_path / str(k), pa.table(FLAT).slice(3 * k, 3))) for k in range(3)]
    assert_gives(ParquetDataset(paths), [row(n) for n in range(9)])
    assert_gives(ParquetDataset(Dataset.from_tensor_slices(paths)), [row(n) for n in range(9)])
    at_once = [element["n"] for element in to_list(ParquetDataset(paths, num_parallel_reads=2))]
    assert at_once[:4] == [0, 3, 1, 4]
    assert sorted(at_once) == list(range(9))


def test_rows_travel_as_columns(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "x", {"n": range(20_000), "x": pa.array([[1.5, 2.5]] * 20_000, pa.list_(pa.float32(), 2))}
    )
    batches = to_list(ParquetDataset(path).batch(8000))
    assert [len(batch["n"]) for batch in batches] == [8000, 8000, 4000]
    assert_same(batches[2]["n"], arr(range(16_000, 20_000)))
    assert_same(batches[2]["x"], arr([[1.5, 2.5]] * 4000, np.float32))
    assert batches[0]["n"].flags.writeable
    assert not first(ParquetDataset(path), 1)[0]["x"].flags.writeable
    assert blocks_of(ParquetDataset(path)) == 3


def test_wide_rows_are_read_few_at_a_time(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "x", {"n": range(300), "blob": [bytes([n % 256]) * 50_000 for n in range(300)]}, use_dictionary=False
    )
    assert 6 <= blocks_of(ParquetDataset(path)) <= 12
    assert blocks_of(ParquetDataset(path, ["n"])) == 1
    assert [element["blob"][:2] for element in ParquetDataset(path)] == [bytes([n % 256]) * 2 for n in range(300)]


def test_shuffled_and_batched(tmp_path: Path) -> None:
    ds = ParquetDataset(write_parquet(tmp_path / "x", FLAT, 6)).shuffle(8, seed=1).batch(5)
    batches = to_list(ds)
    assert sorted(np.concatenate([batch["n"] for batch in batches]).tolist()) == NUMBERS
    assert batches[0]["name"].dtype == object


def test_cardinality_spec_and_label(tmp_path: Path) -> None:
    ds = ParquetDataset(
        tmp_path / "none", ["a", "b"], filter=[("n", "in", {3, 1, 2})], null_values={"a": 0}, name="mine"
    )
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.element_spec is None
    assert "mine" in repr(ds)
    assert (
        ds.plan.detail
        == f"{tmp_path / 'none'}, columns=['a', 'b'], filter=[('n', 'in', [1, 2, 3])], null_values={{'a': 0}}"
    )
    expression = ParquetDataset([tmp_path / "1", tmp_path / "2"], filter=compute.field("n").isin([1, 2]))
    assert "\n" not in expression.plan.detail
    assert "is_in(n" in expression.plan.detail
    made = ParquetDataset(write_parquet(tmp_path / "x", FLAT))
    assert made.peek_sync() == row(0)
    assert plain(str(made.element_spec["half"])) == "TensorSpec(shape=(), dtype=float64)"


# Columns


def test_columns_are_chosen_and_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", FLAT)
    assert_gives(ParquetDataset(path, ("name", "n")), [{"name": row(n)["name"], "n": np.int64(n)} for n in NUMBERS])


def test_fields_of_structs_are_chosen_with_dots(tmp_path: Path) -> None:
    columns = {
        "s": [{"a": n, "t": {"b": n / 2, "c": "c"}} for n in range(3)],
        "d.e": [1, 2, 3],
        "l": [[{"x": 1, "y": 2}]] * 3,
    }
    path = write_parquet(tmp_path / "x", columns)

    def got(*names: str) -> Any:
        return first(ParquetDataset(path, names), 1)[0]

    assert_same(got("s.t.b", "d.e"), {"s": {"t": {"b": np.float64(0)}}, "d.e": np.int64(1)})
    assert_same(got("s.t.c", "s.a"), {"s": {"a": np.int64(0), "t": {"c": "c"}}})
    assert_same(got("s.t"), {"s": {"t": {"b": np.float64(0), "c": "c"}}})
    assert_same(got("l.list.element.y"), {"l": {"y": arr([2])}})


def test_a_column_that_is_missing_is_an_error_of_its_file(tmp_path: Path) -> None:
    bad, good = write_parquet(tmp_path / "bad", {"n": [1], "s": [{"a": 1}]}), write_parquet(tmp_path / "x", FLAT)
    error, *rest = outcomes(ParquetDataset([bad, good], ["n", "name"]))
    assert type(error) is StructureError
    assert str(error) == f"{bad}: there is no column 'name'; the columns are 'n', 's', 's.a'"
    assert len(rest) == 20


def test_files_of_a_list_have_the_types_of_the_first_one(tmp_path: Path) -> None:
    table = pa.table(FLAT)
    tables = {
        "first": table,
        "text": table.set_column(2, "name", table["name"].cast(pa.large_string()).dictionary_encode()),
        "float": table.set_column(0, "n", table["n"].cast(pa.float64())),
        "more": table.append_column("more", table["n"]),
        "less": table.select(["n", "name"]),
        "order": table.select(["name", "half", "n"]),
    }
    paths = [write_parquet(tmp_path / name, made.slice(0, 2)) for name, made in tables.items()]
    found = outcomes(ParquetDataset([tmp_path / "missing", *paths]))
    assert [str(item).partition(": ")[2] for item in found if type(item) is StructureError] == [
        f"column 'n' is double, but int64 in {paths[0]}",
        f"column 'more' is int64, but absent in {paths[0]}",
        f"column 'half' is absent, but double in {paths[0]}",
    ]
    assert kinds(found) == [FileNotFoundError, 0, 1, 0, 1, *[StructureError] * 3, 0, 1]
    chosen = ParquetDataset(paths, ["name"])
    assert len(to_list(chosen)) == 12
    # A run that begins behind the first file holds the others to it all the same.
    with ParquetDataset([*paths]).iterate() as iterator:
        for _ in range(4):
            next(iterator)
        with (
            ParquetDataset([*paths]).iterate(iterator.state_dict()) as other,
            pytest.raises(StructureError, match="double"),
        ):
            next(other)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (lambda: [pa.array([1]), pa.array([2])], "its columns cannot be the keys of a dict: 'a', 'a'"),
        (lambda: [], "its columns cannot be the keys of a dict"),
    ],
)
def test_columns_that_make_no_dict_are_refused(columns: Callable[[], Any], message: str, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", pa.table(columns(), names=["a"] * len(columns())))
    (error,) = outcomes(ParquetDataset(path))
    assert type(error) is StructureError
    assert message in str(error)


# Filters


def test_filters_keep_exactly_the_rows(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", FLAT, 6)
    field = compute.field
    for given_filter, check in [
        ([("n", ">", 7)], lambda n: n > 7),
        ([("n", ">", 7), ("name", "=", "name 1")], lambda n: n > 7 and n % 3 == 1),
        ([[("n", "<", 2)], [("n", ">=", 18)]], lambda n: n < 2 or n >= 18),
        ([("n", "not in", {3, 4})], lambda n: n not in (3, 4)),
        (field("half") * 4 > field("n") + 10, lambda n: 2 * n > n + 10),
        (~(field("n") > 3) | (field("name") == "name 0"), lambda n: n <= 3 or n % 3 == 0),
        ([("n", ">", 100)], lambda n: False),
    ]:
        expected = [row(n) for n in NUMBERS if check(n)]
        assert_gives(ParquetDataset(path, filter=given_filter), expected)
        assert_same(
            to_list(ParquetDataset(path, ["half"], filter=given_filter)), [{"half": item["half"]} for item in expected]
        )


def test_row_groups_that_hold_nothing_are_not_read(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", FLAT, 5, use_dictionary=False, compression="none")
    damage(damage(path, np.int64(2).tobytes() + np.int64(3).tobytes()), np.int64(17).tobytes() + np.int64(18).tobytes())
    assert kinds(outcomes(ParquetDataset(path))) == [CorruptRecordError, *range(5, 15), CorruptRecordError]
    assert kinds(outcomes(ParquetDataset(path, filter=[("n", ">", 6), ("n", "<", 13)]))) == list(range(7, 13))


def test_only_the_columns_that_the_filter_needs_are_read(tmp_path: Path) -> None:
    columns = {"name": ["a", "b"], "im": ["image 1", "image 2"], "time": [1, 2]}
    path = write_parquet(tmp_path / "x", columns, use_dictionary=False, compression="none")
    damage(path, b"\x07\0\0\0image 2")  # in the page itself, with its length
    assert_gives(ParquetDataset(path, ["name"], filter=[("time", ">", 1)]), [{"name": "b"}])
    assert kinds(outcomes(ParquetDataset(path, ["im"]))) == [CorruptRecordError]


def test_nulls_pass_no_comparison(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", {"n": [1, None, 3], "m": [None, 2, 3]})
    assert_gives(ParquetDataset(path, ["n"], filter=[("n", ">", 0), ("m", ">", 0)]), [{"n": np.int64(3)}])
    assert_gives(ParquetDataset(path, ["m"], filter=compute.field("n").is_null()), [{"m": np.int64(2)}])


def test_filters_inside_structs(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", {"s": [{"a": n, "b": -n} for n in range(9)], "n": range(9)}, 3)
    condition = compute.field("s", "a") > 6
    assert_gives(ParquetDataset(path, ["n"], filter=condition), [{"n": np.int64(n)} for n in (7, 8)])
    assert_gives(ParquetDataset(path, ["s.a"], filter=condition), [{"s": {"a": np.int64(n)}} for n in (7, 8)])
    (error,) = outcomes(ParquetDataset(path, ["s.b"], filter=condition))
    assert "does not fit" in str(error)


@pytest.mark.parametrize("columns", [None, ["name"]])
@pytest.mark.parametrize(("condition", "message"), [(("zzz", ">", 1), "zzz"), (("name", ">", 1), "greater")])
def test_filters_that_do_not_fit_are_errors_of_the_file(
    columns: Any, condition: Any, message: str, tmp_path: Path
) -> None:
    (error,) = outcomes(ParquetDataset(write_parquet(tmp_path / "x", FLAT), columns, filter=[condition]))
    assert type(error) is StructureError
    assert f"{tmp_path / 'x'}: the filter [{condition!r}] does not fit: " in str(error)
    assert message in str(error).partition("fit: ")[2]


# Nulls


def test_a_null_that_nothing_stands_for_is_an_error_of_its_row(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", {"n": [0, 1, None, 3, 4], "ok": [True, None, None, True, False]}, 2)
    found = outcomes(ParquetDataset(path))
    assert kinds(found) == [0, StructureError, StructureError, 3, 4]
    hint = "is null, which its dtype cannot tell; choose a value for it with null_values"
    assert str(found[1]) == f"{path}: row group 0, row 1: 'ok' {hint}={{'ok': ...}}"
    assert str(found[2]) == f"{path}: row group 1, row 0: 'n' {hint}={{'n': ...}}"
    values = {"n": -1, "ok": False}
    assert_same(to_list(ParquetDataset(path, null_values=values).batch(5))[0]["n"], arr([0, 1, -1, 3, 4]))
    assert [element["n"] for element in ParquetDataset(path).ignore_errors()] == [0, 3, 4]
    (error,) = outcomes(ParquetDataset(path, filter=[("n", "=", 1)]))
    assert "row group 0, row 1: 'ok'" in str(error)


def test_none_batches_with_none_only_wherever_the_blocks_begin(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", {"name": ["a", "b", None, "d"]}, 2)
    good, error = outcomes(ParquetDataset(path).batch(2))
    assert_same(good, {"name": objects("a", "b")})
    assert "['name']" in str(error)
    assert_same(
        to_list(ParquetDataset(path, null_values={"name": ""}).batch(4)), [{"name": objects("a", "b", "", "d")}]
    )


def test_lists_batch_as_rows_do(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", {"l": [[1, 2], [3, 4], [5], [6, 7]]})
    good, error = outcomes(ParquetDataset(path).batch(2))
    assert_same(good, {"l": arr([[1, 2], [3, 4]])})
    assert "padded_batch" in str(error)
    assert_same(to_list(ParquetDataset(path).padded_batch(4))[0]["l"], arr([[1, 2], [3, 4], [5, 0], [6, 7]]))


@pytest.mark.parametrize("values", [{"zzz": 1}, {"n": "text"}])
def test_values_for_nulls_that_do_not_fit_are_errors_of_the_file(values: Any, tmp_path: Path) -> None:
    (error,) = outcomes(ParquetDataset(write_parquet(tmp_path / "x", FLAT), null_values=values))
    assert type(error) is StructureError
    assert f"{tmp_path / 'x'}: null_values" in str(error)


# Arguments

WRONG: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"columns": "n"}, TypeError),
    ({"columns": [1]}, TypeError),
    ({"columns": []}, ValueError),
    ({"columns": ["n", "n"]}, ValueError),
    ({"filter": lambda element: True}, TypeError),
    ({"filter": "n > 3"}, TypeError),
    ({"filter": []}, ValueError),
    ({"filter": [("n", "~", 1)]}, ValueError),
    ({"filter": [("n", ">")]}, ValueError),
    ({"filter": compute.field(0) > 1}, ValueError),
    ({"null_values": 0}, TypeError),
    ({"null_values": {0: 0}}, TypeError),
    ({"null_values": {"n": None}}, ValueError),
    ({"num_parallel_reads": 0}, ValueError),
    ({"filenames": 5}, TypeError),
    ({"filenames": {"a": "b"}}, TypeError),
]


@pytest.mark.parametrize(("arguments", "error"), WRONG)
def test_wrong_arguments_are_refused_at_the_call(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="ParquetDataset"):
        ParquetDataset(**{"filenames": "x", **arguments})


def test_without_pyarrow_the_call_says_what_to_install() -> None:
    code = """
import sys
sys.modules["pyarrow"] = None
import aiodata
for reader in (aiodata.ParquetDataset, aiodata.ArrowDataset):
    try:
        reader("x")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    install = "needs pyarrow: pip install 'aiodata-pipeline[arrow]'"
    assert done.stdout == f"ParquetDataset {install}\nArrowDataset {install}\n", done.stderr


# Damage


def test_what_is_no_parquet_file_is_an_error(tmp_path: Path) -> None:
    good = write_parquet(tmp_path / "x", FLAT)
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no table " * 100)
    (tmp_path / "cut").write_bytes(good.read_bytes()[:-9])
    names = ["empty", "text", "cut", "missing", "", "x"]
    found = outcomes(ParquetDataset([tmp_path / name for name in names], ["n"]))
    assert kinds(found) == [*[CorruptRecordError] * 3, FileNotFoundError, IsADirectoryError, *NUMBERS]
    assert [error.path for error in found[:3]] == [str(tmp_path / name) for name in names[:3]]
    assert found[0].__notes__ == [f"in parquet, element 0, from {tmp_path / 'empty'} row group 0 row 0"]


def test_a_damaged_page_ends_its_row_group(tmp_path: Path) -> None:
    texts = {"n": NUMBERS, "text": [f"number {n:02}" for n in NUMBERS]}
    path = write_parquet(tmp_path / "x", texts, 8, use_dictionary=False, compression="none")
    damage(path, b"number 09")
    found = outcomes(ParquetDataset(path))
    assert kinds(found) == [*range(8), CorruptRecordError, *range(16, 20)]
    assert str(found[8]).startswith(f"{path}: row group 1 is damaged, or cannot be read: ")
    assert found[8].path == str(path)
    assert kinds(outcomes(ParquetDataset(path, ["n"]))) == NUMBERS


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_file_that_is_cut_short_or_damaged_anywhere_gives_errors_only(codec: str, tmp_path: Path) -> None:
    content = write_parquet(tmp_path / "x", pa.table(FLAT).slice(0, 9), 5, compression=codec).read_bytes()
    expected = [row(n) for n in range(9)]
    path = tmp_path / "bad"
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at])
        assert kinds(outcomes(ParquetDataset(path))) == [CorruptRecordError]
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        found = outcomes(ParquetDataset(path))
        if not any(isinstance(item, Exception) for item in found):
            assert_same([item["n"] for item in found], [item["n"] for item in expected])


def test_one_damaged_file_of_a_hundred_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    paths = [write_parquet(tmp_path / f"{k:02}", {"n": [k] * 3}, compression="none") for k in range(100)]
    content = bytearray(paths[41].read_bytes())
    content[-6] ^= 255  # in the length of the footer
    paths[41].write_bytes(content)
    named: list[Exception] = []
    for reads in (None, 4):
        ds = ParquetDataset(paths, num_parallel_reads=reads).ignore_errors(on_error=named.append)
        assert sorted(element["n"] for element in ds) == sorted(k for k in range(100) for _ in range(3) if k != 41)
    assert [str(paths[41]) in str(error) for error in named] == [True, True]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_error_that_was_dealt_with_is_gone(way: str, tmp_path: Path) -> None:
    texts = {"n": NUMBERS, "text": [f"number {n:02}" for n in NUMBERS]}
    path = write_parquet(tmp_path / "x", texts, 8, use_dictionary=False, compression="none")
    damage(path, b"number 09")
    (tmp_path / "text").write_text("no table")

    async def read() -> int:
        errors = 0
        iterator = ParquetDataset([path, tmp_path / "text", tmp_path / "missing", path]).iterate()
        while True:
            try:
                _ = await anext(iterator) if way == "async" else next(iterator)
            except (StopIteration, StopAsyncIteration):
                return errors
            except (CorruptRecordError, FileNotFoundError):
                errors += 1

    def alive() -> dict[int, Exception]:
        return {id(one): one for one in gc.get_objects() if isinstance(one, (CorruptRecordError, OSError))}

    gc.collect()
    gc.disable()
    try:
        before = alive()
        assert asyncio.run(read()) == 4
        assert [one for key, one in alive().items() if key not in before] == []
    finally:
        gc.enable()


def test_errors_of_later_stages_name_file_and_row(tmp_path: Path) -> None:
    def refuse(element: Any) -> Any:
        if element["n"] == 13:
            raise KeyError(13)
        return element

    path = write_parquet(tmp_path / "x", FLAT, 6)
    for ds in (ParquetDataset(path), ParquetDataset(path, filter=[("n", "not in", [3, 12])])):
        (error,) = [item for item in outcomes(ds.map(refuse)) if isinstance(item, Exception)]
        assert f"from {path} row group 2 row 1" in error.__notes__[0]


# Resume


def states_of(ds: Dataset[Any], count: int) -> list[Any]:
    with ds.iterate() as iterator:
        states = [iterator.state_dict()]
        for _ in range(count):
            next(iterator)
            states.append(json.loads(json.dumps(iterator.state_dict())))
    return states


def test_positions_are_row_groups_and_rows_before_the_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiodata.formats.parquet.BLOCK_ROWS", 3)
    ds = ParquetDataset(write_parquet(tmp_path / "x", FLAT, 8), filter=[("n", "not in", [1, 9, 10])])
    found = [[*state["position"][0][:2], state["position"][1]] for state in states_of(ds, 17)[1:]]
    assert found[:8] == [[0, 0, 1], [0, 0, 2], [0, 3, 1], [0, 3, 2], [0, 3, 3], [0, 6, 1], [0, 6, 2], [1, 0, 1]]
    assert found[8] == [1, 3, 1]


def test_restoring_does_not_read_earlier_row_groups(tmp_path: Path) -> None:
    columns = {"n": np.arange(3000)}
    path = write_parquet(tmp_path / "x", columns, 1000, use_dictionary=False, compression="none")
    states = states_of(ParquetDataset(path), 2500)
    damage(path, np.int64(802).tobytes() + np.int64(803).tobytes())  # behind what tells the file from another
    with ParquetDataset(path).iterate(states[2500]) as iterator:
        assert_same([row["n"] for row in iterator], i64(*range(2500, 3000)))


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("change", ["rows", "types", "gone", "damaged"])
def test_a_file_that_has_changed_is_refused(change: str, files: int, tmp_path: Path) -> None:
    paths = [write_parquet(tmp_path / str(number), FLAT, 5) for number in range(files)]
    ds = ParquetDataset(paths if files > 1 else paths[0])
    state = states_of(ds, 20 * files - 8)[-1]
    table, path = pa.table(FLAT), paths[-1]
    if change == "rows":
        write_parquet(path, table.slice(0, 15), 5)
    elif change == "types":
        write_parquet(path, table.set_column(0, "n", table["n"].cast(pa.int8())), 5)
    elif change == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-5])
    errors = {"rows": StateError, "types": StateError, "gone": FileNotFoundError, "damaged": StateError}
    with ds.iterate(state) as iterator:
        with pytest.raises(errors[change], match=str(path)):
            next(iterator)
        assert next(iterator, None) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_any_table_is_read_as_pyarrow_reads_it_and_resumed_anywhere(data: st.DataObject, tmp_path: Path) -> None:
    count = data.draw(st.integers(0, 25))

    def column(values: Any, kind: Any, nulls: bool) -> Any:
        given_values = st.none() | values if nulls else values
        return pa.array(data.draw(st.lists(given_values, min_size=count, max_size=count)), kind)

    table = pa.table(
        {
            "id": pa.array(range(count), pa.uint16()),
            "i": column(st.integers(-128, 127), pa.int8(), False),
            "f": column(st.floats(width=32, allow_nan=False), pa.float32(), True),
            "s": column(st.text(max_size=3), pa.string(), True),
            "d": column(st.sampled_from(["x", "y"]), pa.string(), True).dictionary_encode(),
            "l": column(st.lists(st.integers(0, 9), max_size=3), pa.list_(pa.int64()), True),
            "t": column(st.tuples(*[st.floats(0, 1)] * 2).map(list), pa.list_(pa.float64(), 2), False),
        }
    )
    codec = data.draw(st.sampled_from(CODECS))
    path = write_parquet(tmp_path / "x", table, data.draw(st.integers(1, 9)), compression=codec)
    limit = data.draw(st.integers(0, 30))
    expected = []
    for element in parquet.read_table(path).to_pylist():
        element["f"] = np.float32("nan" if element["f"] is None else element["f"])
        element["l"] = None if element["l"] is None else arr(element["l"])
        element |= {"id": np.uint16(element["id"]), "i": np.int8(element["i"]), "t": arr(element["t"], float)}
        expected += [element] if element["id"] < limit else []
    ds = ParquetDataset(path, filter=[("id", "<", limit)])
    assert_same(to_list(ds), expected)
    taken = data.draw(st.integers(0, len(expected)))
    with ds.iterate(states_of(ds, taken)[-1]) as iterator:
        assert_same(list(iterator), expected[taken:])


# Closing


def test_leaving_early_leaves_no_file_open(tmp_path: Path, open_descriptors: Callable[[], dict[int, str]]) -> None:
    path = write_parquet(tmp_path / "x", FLAT, 5)
    for ds in (
        ParquetDataset(path),
        ParquetDataset([path] * 5, num_parallel_reads=3),
        ParquetDataset(path).prefetch(1),
    ):
        for _ in range(10):
            for _element in ds:
                break
        assert str(path) not in open_descriptors().values()


def test_a_file_is_closed_when_the_next_one_is_read(
    tmp_path: Path, open_descriptors: Callable[[], dict[int, str]]
) -> None:
    paths = [str(write_parquet(tmp_path / str(k), FLAT)) for k in range(3)]
    paths.insert(2, str(write_parquet(tmp_path / "other", {"z": [1]})))
    with ParquetDataset(paths).ignore_errors().iterate() as iterator:
        for number in range(60):
            next(iterator)
            opened = [path for path in open_descriptors().values() if path in paths]
            assert set(opened) <= {[path for path in paths if "other" not in path][number // 20]}


async def test_cancelling_waits_for_the_call_under_way_and_closes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_descriptors: Callable[[], dict[int, str]]
) -> None:
    path = write_parquet(tmp_path / "x", FLAT)
    reading, go_on = threading.Event(), threading.Event()
    read = ParquetTable.read

    def late(table: ParquetTable) -> Any:
        reading.set()
        go_on.wait()
        return read(table)

    monkeypatch.setattr(ParquetTable, "read", late)
    iterator = ParquetDataset(path).iterate()
    pull = asyncio.ensure_future(anext(iterator))
    while not reading.is_set():
        await asyncio.sleep(0.001)
    pull.cancel()
    await asyncio.sleep(0.02)
    assert not pull.done()
    assert str(path) in open_descriptors().values() or not open_descriptors()
    go_on.set()
    await asyncio.wait({pull})
    assert pull.cancelled()
    await iterator.aclose()
    assert str(path) not in open_descriptors().values()


async def test_the_loop_goes_on_while_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticked = threading.Event()
    read = ParquetTable.read

    def waiting(table: ParquetTable) -> Any:
        assert ticked.wait(20)
        return read(table)

    monkeypatch.setattr(ParquetTable, "read", waiting)
    asyncio.get_running_loop().call_later(0.01, ticked.set)
    async with ParquetDataset(write_parquet(tmp_path / "x", FLAT)).iterate() as iterator:
        assert_same([(await anext(iterator))["n"]], i64(0))
