"""`make_csv_dataset`: batches of columns by name, with names and types from the files."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset, TensorSpec, make_csv_dataset
from aiodata.errors import DataError
from tests.programs import arr, assert_gives, assert_same, first, objects, outcomes, to_list
from tests.servers.http import HttpServer

FLIGHTS = Path(__file__).parents[2] / "examples/data/flights"


def write(folder: Path, *contents: str | bytes) -> str:
    """Write files, and give the pattern of their names."""
    for number, content in enumerate(contents):
        data = content if isinstance(content, bytes) else content.encode()
        (folder / f"{number}.csv").write_bytes(data)
    return f"{folder}/*.csv"


def once(pattern: Any, batch_size: int = 10, **options: Any) -> Dataset[Any]:
    """Read the files once and in order."""
    return make_csv_dataset(pattern, batch_size, **{"num_epochs": 1, "shuffle": False, **options})


def values_of(dataset: Dataset[Any], name: str) -> list[Any]:
    return [value for batch in to_list(dataset) for value in batch[name].tolist()]


def test_batches_of_named_columns(tmp_path: Path) -> None:
    pattern = write(tmp_path, 'id,name\n1,a\n2,"b\nc"\n', "id,name\n3,\n")
    expected = [
        {"id": arr([1, 2], np.int32), "name": objects(b"a", b"b\nc")},
        {"id": arr([3], np.int32), "name": objects(b"")},
    ]
    assert_gives(once(pattern, 2), expected)


def test_a_label(tmp_path: Path) -> None:
    pattern = write(tmp_path, "id,name\n1,a\n2,b\n")
    expected = [({"id": arr([1, 2], np.int32)}, objects(b"a", b"b"))]
    assert_gives(once(pattern, label_name="name"), expected)


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        (["1", "-2147483648"], np.int32),
        (["2147483648", "1"], np.int64),
        (["1", "9223372036854775808"], np.float32),
        (["1", "0.1"], np.float32),
        (["1e38", " 2 "], np.float32),
        (["1e39", "1"], np.float64),
        (["-inf", "1"], np.float32),
        (["inf", "1"], object),
        (["1", "nan"], object),
        (["1", "x", "2"], object),
        (["0x10", "1"], object),
        (["1_0", "1"], object),
        (["", "NA", "7"], np.int32),
        (["", "NA"], object),
        ([], object),
    ],
)
def test_types_are_found_out(fields: list[str], dtype: Any, tmp_path: Path) -> None:
    pattern = write(tmp_path, "\n".join(["a,b", *[f"{field},x" for field in fields]]))
    ds = once(pattern, na_value="NA")
    assert ds.element_spec["a"] == TensorSpec((None,), dtype)
    for batch in to_list(ds):
        assert batch["a"].dtype == dtype


def test_types_are_found_out_from_the_first_rows_of_all_files(tmp_path: Path) -> None:
    pattern = write(tmp_path, "a\n1\n2\n", "a\n0.5\n6\n")
    assert once(pattern, num_rows_for_inference=2).element_spec["a"].dtype == np.int32
    assert once(pattern, num_rows_for_inference=3).element_spec["a"].dtype == np.float32
    assert once(pattern, num_rows_for_inference=None).element_spec["a"].dtype == np.float32
    assert once(pattern, num_rows_for_inference=0).element_spec["a"].dtype == object
    found = outcomes(once(pattern, 1, num_rows_for_inference=2))
    assert_same(found, [{"a": arr([1], np.int32)}, {"a": arr([2], np.int32)}, DataError, {"a": arr([6], np.int32)}])


def test_missing_fields_become_zero_or_no_text(tmp_path: Path) -> None:
    pattern = write(tmp_path, "i,f,s\n1,0.5,x\n,,\nNA,NA,NA\n")
    expected = {"i": arr([1, 0, 0], np.int32), "f": arr([0.5, 0, 0], np.float32), "s": objects(b"x", b"", b"")}
    assert_gives(once(pattern, na_value="NA"), [expected])


def test_defaults_that_are_given(tmp_path: Path) -> None:
    pattern = write(tmp_path, "a,b\n1,2\n,3\n")
    ds = once(pattern, 1, column_defaults=[np.float64, [np.int16(5)]])
    assert_same(outcomes(ds), [{"a": arr([1.0], np.float64), "b": arr([2], np.int16)}, DataError])


@pytest.mark.parametrize("select", [["c", "a"], ["c", 0], [2, 0], [0, 2]])
def test_selected_columns_come_in_the_files_order(select: list[Any], tmp_path: Path) -> None:
    pattern = write(tmp_path, "a,b,c\n1,x,2\n")
    given = list(select)
    expected: list[Any] = [{"a": arr([1], np.int32), "c": arr([2], np.int32)}]
    assert_gives(once(pattern, select_columns=select), expected)
    assert_gives(once(pattern, select_columns=select, label_name="a"), [({"c": expected[0]["c"]}, expected[0]["a"])])
    assert select == given
    (batch,) = to_list(once(pattern, select_columns=select, column_defaults=[[0.5], b""]))
    assert_same(batch, {"a": arr([1.0], np.float64), "c": objects(b"2")})


def test_names_that_are_given(tmp_path: Path) -> None:
    pattern = write(tmp_path, "1,a\n2,b\n")
    expected = {"n": arr([1, 2], np.int32), "s": objects(b"a", b"b")}
    assert_gives(once(pattern, column_names=["n", "s"], header=False), [expected])
    expected = {"n": arr([2], np.int32), "s": objects(b"b")}
    assert_gives(once(pattern, column_names=["n", "s"]), [expected])


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", [b"id", b'"id"'])
def test_the_byte_order_mark_is_no_part_of_the_first_name(mark: bytes, name: bytes, tmp_path: Path) -> None:
    pattern = write(tmp_path, mark + name + b",x\n1,a\n")
    assert_gives(once(pattern), [{"id": arr([1], np.int32), "x": objects(b"a")}])


def test_quoted_names_and_other_delimiters(tmp_path: Path) -> None:
    pattern = write(tmp_path, '"a;\n""b""";c\r\n1;2\r\n')
    assert_gives(once(pattern, field_delim=";"), [{'a;\n"b"': arr([1], np.int32), "c": arr([2], np.int32)}])
    pattern = write(tmp_path, '"a",b\n"1",2\n')
    expected = {'"a"': objects(b'"1"'), "b": arr([2], np.int32)}
    assert_gives(once(pattern, use_quote_delim=False), [expected])


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "latin-1"])
def test_the_encoding_of_names(encoding: str, tmp_path: Path) -> None:
    pattern = write(tmp_path, "é\nü\n".encode(encoding))
    assert_gives(once(pattern, encoding=encoding), [{"é": objects("ü".encode(encoding))}])


def test_compressed_files(tmp_path: Path) -> None:
    pattern = write(tmp_path, gzip.compress(b"a,b\n1,x\n"))
    expected = {"a": arr([1], np.int32), "b": objects(b"x")}
    assert_gives(once(pattern, compression_type="GZIP"), [expected])
    pattern = write(tmp_path, zlib.compress(b"a,b\n1,x\n"))
    given: dict[str, Any] = {"column_names": ["a", "b"], "column_defaults": [np.int32, bytes]}
    assert_gives(once(pattern, compression_type="ZLIB", **given), [expected])
    for name in given:
        with pytest.raises(ValueError, match="column_names and column_defaults must be given for ZLIB"):
            once(pattern, compression_type="ZLIB", **{**given, name: None})


# Epochs, order, stages


def test_by_default_it_repeats_for_ever_and_drops_no_row(tmp_path: Path) -> None:
    pattern = write(tmp_path, "a\n1\n2\n3\n")
    ds = make_csv_dataset(pattern, 2, shuffle=False)
    assert [batch["a"].tolist() for batch in first(ds, 4)] == [[1, 2], [3, 1], [2, 3], [1, 2]]
    assert ds.element_spec == {"a": TensorSpec((2,), np.int32)}
    assert first(make_csv_dataset(pattern, 2, shuffle=False, num_epochs=-1), 2)[1]["a"].tolist() == [3, 1]


def test_batches_reach_over_epochs_and_the_last_one_is_smaller(tmp_path: Path) -> None:
    pattern = write(tmp_path, "a\n1\n2\n3\n")
    ds = once(pattern, 2, num_epochs=3)
    assert [batch["a"].tolist() for batch in to_list(ds)] == [[1, 2], [3, 1], [2, 3], [1, 2], [3]]
    assert ds.element_spec == {"a": TensorSpec((None,), np.int32)}


def test_the_stages(tmp_path: Path) -> None:
    pattern = write(tmp_path, "a\n1\n", "a\n2\n")

    def stages(**options: Any) -> list[str]:
        chain = make_csv_dataset(pattern, 3, shuffle_seed=7, **options)
        return [f"{plan.name}({plan.detail})".partition(",")[0] for plan in chain.plan.walk()][1:]

    reading = ["shuffle(2", "interleave(rows"]
    assert stages() == [*reading, "shuffle(10000", "repeat()", "batch(3", "map(a)", "prefetch(-1)"]
    assert stages(num_epochs=1, shuffle_buffer_size=5, prefetch_buffer_size=0) == [
        *reading,
        "shuffle(5",
        "batch(3)",
        "map(a)",
        "prefetch(0)",
    ]
    assert stages(num_epochs=2, shuffle=False) == ["interleave(rows", "repeat(2)", "batch(3)", "map(a)", "prefetch(-1)"]


def test_shuffled_by_seed(tmp_path: Path) -> None:
    pattern = write(tmp_path, *["a\n" + "".join(f"{10 * n + at}\n" for at in range(10)) for n in range(4)])
    orders = [values_of(make_csv_dataset(pattern, 7, num_epochs=1, shuffle_seed=3), "a") for _ in range(2)]
    assert orders[0] == orders[1] != sorted(orders[0])
    files = Dataset.from_tensor_slices([f"{tmp_path}/{n}.csv" for n in range(4)]).shuffle(4, 3)
    by_hand = aiodata.CsvDataset(files, [np.int32], header=True).shuffle(10000, 3)
    assert orders[0] == [int(value) for (value,) in to_list(by_hand)]


@pytest.mark.parametrize("sloppy", [False, True])
@pytest.mark.parametrize("reads", [2, 3, aiodata.AUTOTUNE])
def test_several_files_at_once(reads: int, sloppy: bool, tmp_path: Path) -> None:
    pattern = write(tmp_path, *["a\n" + f"{n}\n" * 3 for n in range(3)])
    found = values_of(once(pattern, num_parallel_reads=reads, sloppy=sloppy), "a")
    assert sorted(found) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    if not sloppy and reads > 0:
        assert found == {2: [0, 1, 0, 1, 0, 1, 2, 2, 2], 3: [0, 1, 2, 0, 1, 2, 0, 1, 2]}[reads]


def test_files_are_sorted_and_patterns_joined(tmp_path: Path) -> None:
    write(tmp_path, "a\n0\n", "a\n1\n", "a\n2\n")
    patterns = [tmp_path / "2.csv", f"{tmp_path}/[01].csv".encode()]
    assert values_of(once(patterns), "a") == [0, 1, 2]


def test_real_flights() -> None:
    ds = once(f"{FLIGHTS}/*.csv", 5000, label_name="arr_delay", select_columns=["carrier", "arr_delay", "dep_delay"])
    batches = to_list(ds)
    assert sum(len(label) for _, label in batches) == 24_000
    features, label = batches[0]
    assert list(features) == ["dep_delay", "carrier"]
    assert [features["dep_delay"].dtype, features["carrier"].dtype, label.dtype] == [np.int32, object, np.int32]


# Errors


def test_headers_that_differ_are_named(tmp_path: Path) -> None:
    pattern = write(tmp_path, "a,b\n1,2\n", "a,c\n1,2\n")
    with pytest.raises(DataError, match=r"1\.csv: column 1 is named 'c', but 'b' in .*0\.csv$"):
        once(pattern)
    pattern = write(tmp_path, "a,b\n1,2\n", "a\n1\n")
    with pytest.raises(DataError, match=r"1\.csv: the header has 1 columns, that of .*0\.csv has 2$"):
        once(pattern)
    pattern = write(tmp_path, "a,b\n1,2\n", "")
    with pytest.raises(DataError, match=r"1\.csv: the file is empty, but should begin with a header$"):
        once(pattern)


def test_bad_rows_that_types_would_be_found_out_from(tmp_path: Path) -> None:
    pattern = write(tmp_path, 'a,b\n1,"x\n"\n3\n4,y\n')
    with pytest.raises(DataError, match=r"0\.csv line 4: expected 2 fields, got 1$"):
        once(pattern)
    expected = {"a": arr([1, 4], np.int32), "b": objects(b"x\n", b"y")}
    assert_gives(once(pattern, ignore_errors=True), [expected])
    pattern = write(tmp_path, 'a,b\n1,x\n"3"3,y\n4,z\n')
    with pytest.raises(DataError, match=r"0\.csv line 3: quoted field that goes on after its closing quote$"):
        once(pattern)
    assert values_of(once(pattern, ignore_errors=True), "a") == [1, 4]


def test_damaged_files_that_types_would_be_found_out_from(tmp_path: Path) -> None:
    good = gzip.compress(b"a\n1\n")
    pattern = write(tmp_path, good)
    for column_names in (None, ["a"]):
        with pytest.raises(aiodata.errors.CorruptRecordError, match="it looks GZIP-compressed: pass"):
            once(pattern, column_names=column_names)
    (error,) = outcomes(once(pattern, column_names=["a"], column_defaults=[0]))
    assert "pass compression_type='GZIP'" in str(error)
    pattern = write(tmp_path, good, "a\n1\n")
    assert values_of(once(pattern, column_names=["a"], ignore_errors=True), "a") == [1]
    for bad in (good[:-9], good[:-8], b"a\n1\n", good[:11] + b"\xff\xff" + good[13:]):
        pattern = write(tmp_path, good, bad)
        with pytest.raises(aiodata.errors.CorruptRecordError, match=r"1\.csv: the GZIP data is damaged or cut short"):
            once(pattern, compression_type="GZIP", column_names=["a"])
        found = values_of(once(pattern, compression_type="GZIP", column_names=["a"], ignore_errors=True), "a")
        assert found in ([1], [1, 1])


def test_one_damaged_file_of_a_hundred(tmp_path: Path) -> None:
    contents = [gzip.compress(b"a\n" + b"".join(b"%d\n" % (10 * n + at) for at in range(10))) for n in range(100)]
    contents[41] = contents[41][:-8]  # its rows can be read, but not checked
    pattern = write(tmp_path, *contents)
    options: Any = {"compression_type": "GZIP", "column_names": ["a"], "column_defaults": [int]}
    with pytest.raises(aiodata.errors.CorruptRecordError, match=r"41\.csv"):
        to_list(once(pattern, **options))
    found = values_of(once(pattern, ignore_errors=True, **options), "a")
    assert sorted(found) == list(range(1000))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, "make_csv_dataset: batch_size must be at least 1"),
        ({"file_pattern": []}, ValueError, "make_csv_dataset: file_pattern is empty"),
        ({"file_pattern": "/none/*.csv"}, FileNotFoundError, "make_csv_dataset: no file matches '/none/"),
        ({"header": False}, ValueError, "make_csv_dataset: column_names must be given where header is False"),
        ({"column_names": ["a", "a"]}, ValueError, "make_csv_dataset: names of columns must be unique"),
        ({"select_columns": ["c"]}, ValueError, "make_csv_dataset: select_columns must be names or indexes"),
        ({"select_columns": [2]}, ValueError, "make_csv_dataset: select_columns must be names or indexes"),
        ({"select_columns": [-1]}, ValueError, "make_csv_dataset: select_columns must be names or indexes"),
        ({"select_columns": [0, "a"]}, ValueError, "make_csv_dataset: select_columns must be different"),
        ({"select_columns": []}, ValueError, "make_csv_dataset: select_columns must be different"),
        ({"select_columns": ["a"], "label_name": "b"}, ValueError, "make_csv_dataset: label_name must be one of"),
        ({"column_defaults": [int]}, ValueError, "make_csv_dataset: column_defaults must have 2 entries, not 1"),
        ({"compression_type": "ZIP"}, ValueError, "make_csv_dataset: compression_type must be"),
        ({"num_parallel_reads": 0}, ValueError, "make_csv_dataset: num_parallel_reads must be"),
        ({"num_rows_for_inference": -1}, ValueError, "make_csv_dataset: num_rows_for_inference must be"),
        ({"column_defaults": [bool, int]}, TypeError, r"record_defaults\[0\]"),
        ({"field_delim": "::"}, ValueError, "field_delim must be one character"),
        ({"shuffle_buffer_size": 0}, ValueError, "buffer_size"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, error: Any, words: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"file_pattern": write(tmp_path, "a,b\n1,2\n"), "batch_size": 1, **arguments}
    with pytest.raises(error, match=words):
        make_csv_dataset(**given)


def test_reads_what_web_servers_have(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="web servers are read by aiohttp")
    content = b"a,b,c\n" + b"".join(b"%d,%d.5,x%d\n" % (number, number, number) for number in range(1000))
    (tmp_path / "local.csv").write_bytes(content)
    expected = list(make_csv_dataset(str(tmp_path / "local.csv"), 32, shuffle=False, num_epochs=1))
    with HttpServer() as server:
        server.files |= {"/a.csv": content, "/a.csv.gz": gzip.compress(content), "/bad.csv": b"a,b\n1,2\n3\n"}
        for name, compression in [("a.csv?token=mine", ""), ("a.csv.gz", "GZIP")]:
            url = f"{server.url}/{name}"
            found = make_csv_dataset(url, 32, shuffle=False, num_epochs=1, compression_type=compression)
            assert str(list(found)) == str(expected)
        with pytest.raises(FileNotFoundError, match=r"no file matches 'http://.*/none\.csv\?token=\*\*\*'$"):
            make_csv_dataset(f"{server.url}/none.csv?token=mine", 32)
        with pytest.raises(DataError, match=r"/bad\.csv\?token=\*\*\* line 3: expected 2 fields, got 1"):
            make_csv_dataset(f"{server.url}/bad.csv?token=mine", 32)
