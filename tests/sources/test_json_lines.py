"""`JsonLinesDataset`: JSON values line by line, columns of them, bad lines, places."""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, JsonLinesDataset, TensorSpec
from aiodata.errors import CorruptRecordError
from aiodata.structure import normalize
from tests.programs import arr, assert_gives, assert_outcomes, assert_same, first, objects, outcomes, to_list

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
each_compression = pytest.mark.parametrize("compression", PACKERS)
JSON = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.dictionaries(st.text(max_size=4), inner | st.none(), max_size=4),
    max_leaves=8,
)


def write(path: Path, data: bytes | str, compression: str = "") -> Path:
    path.write_bytes(PACKERS[compression](data.encode() if isinstance(data, str) else data))
    return path


def lines(values: list[Any]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def message(ds: Dataset[Any]) -> str:
    (error,) = outcomes(ds)
    assert isinstance(error, CorruptRecordError)
    return str(error)


# Values


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1", 1),
        ("-1.5e3", -1500.0),
        ("true", True),
        ('"tëxt\\n"', "tëxt\n"),
        ("[1, 2]", (1, 2)),
        ("[1, [2, 3]]", (1, arr([2, 3]))),
        ("[]", ()),
        ('{"a": null, "b": {"c": [1.5, 2]}}', {"a": None, "b": {"c": arr([1.5, 2], float)}}),
        ('{"a": ["x", "y"], "b": []}', {"a": objects("x", "y"), "b": arr([], np.float32)}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("NaN", float("nan")),
        ("[Infinity, -Infinity]", (float("inf"), float("-inf"))),
        (str(10**30), 10**30),
        (' \t{"a" : 1 } \r', {"a": 1}),
        ('"\u2028\x85"', "\u2028\x85"),
    ],
)
def test_a_line_is_what_pythons_json_says(line: str, expected: Any, tmp_path: Path) -> None:
    for end in ("", "\n", "\r\n"):
        path = write(tmp_path / "x", line + end)
        assert_same(to_list(JsonLinesDataset(path)), [expected])
        assert_same(to_list(JsonLinesDataset(path)), list(Dataset.from_generator(lambda: [line]).map(json.loads)))


@pytest.mark.parametrize("text", ["", "\n", " \t\r\n\n", "\ufeff", "\ufeff\n"])
def test_no_values(text: str, tmp_path: Path) -> None:
    assert_gives(JsonLinesDataset(write(tmp_path / "x", text)), [])


@pytest.mark.parametrize("size", [None, 1, 2, 3, 7, 64])
def test_blank_lines_and_a_byte_order_mark_are_left_out(size: int | None, tmp_path: Path) -> None:
    path = write(tmp_path / "x", "\ufeff\r\n1\n\n  \n2\n\t\n\n3")
    assert_gives(JsonLinesDataset(path, buffer_size=size), [1, 2, 3])
    places = [place.__notes__[0] for place in outcomes(JsonLinesDataset(path, buffer_size=size).map(len))]
    assert [note.rpartition(" ")[2] for note in places] == ["2", "5", "8"]
    assert_gives(JsonLinesDataset(write(tmp_path / "y", "\ufeff1\n2"), buffer_size=size), [1, 2])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(JSON, max_size=8), size=st.integers(1, 64), compression=st.sampled_from(sorted(PACKERS)))
def test_every_chunk_size_gives_what_json_gives(values: list[Any], size: int, compression: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x", lines(values), compression)
    expected = [normalize(json.loads(line)) for line in lines(values).split("\n")[:-1]]
    assert_same(to_list(JsonLinesDataset(path, compression, size)), expected)


@pytest.mark.parametrize("block", [1, 5, 40])
def test_much_text_makes_several_blocks(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiodata.formats.lines.BLOCK_BYTES", block)
    values = [{"n": n, "s": "x" * (n % 5)} for n in range(50)]
    ds = JsonLinesDataset(write(tmp_path / "x", lines(values)))
    with ds.iterate() as iterator:
        assert list(iterator) == values
        (counters,) = [entry for entry in iterator.statistics() if entry["stage"] == "json_lines"]
    assert counters["elements"] == 50
    assert counters["blocks"] >= 50 * 18 / max(2 * block, 25)


def test_many_files_in_order_and_at_once(tmp_path: Path) -> None:
    paths = [write(tmp_path / str(n), lines([10 * n + i for i in range(3)])) for n in range(3)]
    in_order = [10 * n + i for n in range(3) for i in range(3)]
    assert_gives(JsonLinesDataset(paths), in_order)
    assert_gives(JsonLinesDataset(Dataset.from_tensor_slices([str(path) for path in paths])), in_order)
    assert to_list(JsonLinesDataset(paths, num_parallel_reads=2))[:4] == [0, 10, 1, 11]


# Columns


def test_columns_are_scalars_of_their_dtypes(tmp_path: Path) -> None:
    text = lines(
        [
            {"n": 1, "x": 2, "t": "é", "b": "é", "f": True, "more": [[1], []]},
            {"f": False, "b": "", "t": "", "x": 0.5, "n": -1},
        ]
    )
    columns = {"t": str, "b": bytes, "n": np.int16, "x": "float32", "f": bool}
    ds = JsonLinesDataset(write(tmp_path / "x", text), columns=columns)
    expected = [
        {"t": "é", "b": "é".encode(), "n": np.int16(1), "x": np.float32(2), "f": np.True_},
        {"t": "", "b": b"", "n": np.int16(-1), "x": np.float32(0.5), "f": np.False_},
    ]
    assert_gives(ds, expected)
    assert list(to_list(ds)[1]) == list(columns)
    batch = {"t": objects("é", ""), "b": objects("é".encode(), b""), "n": arr([1, -1], np.int16)}
    batch |= {"x": arr([2, 0.5], np.float32), "f": arr([True, False], bool)}
    assert_gives(ds.batch(2), [batch])
    text_spec = TensorSpec((), object)
    assert ds.element_spec == {
        "t": text_spec,
        "b": text_spec,
        "n": TensorSpec((), np.int16),
        "x": TensorSpec((), np.float32),
        "f": TensorSpec((), bool),
    }


@pytest.mark.parametrize("line", ["{}", '{"n": null, "t": null}'])
def test_defaults_stand_for_missing_keys_and_null(line: str, tmp_path: Path) -> None:
    columns = {
        "n": (np.int8, -1),
        "x": (float, 2),
        "t": (str, "none"),
        "b": (bytes, b"none"),
        "any": (object, None),
        "list": (TensorSpec([None], np.int32), []),
        "array": (TensorSpec([2], np.float32), np.ones(2)),
    }
    expected = {
        "n": np.int8(-1),
        "x": np.float64(2),
        "t": "none",
        "b": b"none",
        "any": None,
        "list": arr([], np.int32),
        "array": arr([1, 1], np.float32),
    }
    assert_gives(JsonLinesDataset(write(tmp_path / "x", line), columns=columns), [expected])


def test_lists_of_known_and_of_unknown_length(tmp_path: Path) -> None:
    path = write(tmp_path / "x", lines([{"x": [1, 2], "y": [[1, 2]]}, {"x": [3, 4.5], "y": []}]))
    fixed = JsonLinesDataset(path, columns={"x": TensorSpec([2], np.float32)})
    assert_gives(fixed, [{"x": arr([1, 2], np.float32)}, {"x": arr([3, 4.5], np.float32)}])
    assert_gives(fixed.batch(2), [{"x": arr([[1, 2], [3, 4.5]], np.float32)}])
    assert fixed.element_spec == {"x": TensorSpec([2], np.float32)}
    loose = JsonLinesDataset(path, columns={"x": TensorSpec([None], float)})
    assert_gives(loose, [{"x": arr([1, 2], float)}, {"x": arr([3, 4.5], float)}])
    text = JsonLinesDataset(
        write(tmp_path / "y", '{"t": ["a", "bc"]}\n{"t": []}'), columns={"t": TensorSpec([None], str)}
    )
    assert_gives(text, [{"t": objects("a", "bc")}, {"t": objects()}])


def test_an_object_column_takes_any_value(tmp_path: Path) -> None:
    path = write(tmp_path / "x", lines([{"v": 1}, {"v": [1, 2]}, {"v": {"w": [3]}}, {"v": None}, {"v": "t"}]))
    expected = [1, arr([1, 2]), {"w": arr([3])}, None, "t"]
    assert_gives(JsonLinesDataset(path, columns={"v": object}), [{"v": value} for value in expected])


@pytest.mark.parametrize(
    ("line", "kind", "problem"),
    [
        ("{}", int, "the key 'k' is missing"),
        ("[1]", int, "the value is a list, not an object"),
        ("null", int, "the value is null, not an object"),
        ("3", int, "the value is a number, not an object"),
        ('{"k": null}', int, "the key 'k' does not fit: it is no int64: None"),
        ('{"k": "1"}', int, "the key 'k' does not fit: it is no int64: '1'"),
        ('{"k": 1.0}', int, "the key 'k' does not fit: it is no int64: 1.0"),
        ('{"k": true}', int, "the key 'k' does not fit: it is no int64: True"),
        ('{"k": 1}', bool, "the key 'k' does not fit: it is no bool: 1"),
        ('{"k": true}', float, "the key 'k' does not fit: it is no float64: True"),
        ('{"k": 1}', str, "the key 'k' does not fit: it is no text: 1"),
        ('{"k": 300}', np.int8, "the key 'k' does not fit: Python integer 300 out of bounds for int8: 300"),
        ('{"k": -1}', np.uint8, "out of bounds for uint8: -1"),
        ('{"k": 1' + "0" * 400 + "}", float, "the key 'k' does not fit"),
        ('{"k": [1]}', int, "the key 'k' does not fit: it has the shape [1], not []: [1]"),
        ('{"k": [1, 2, 3]}', TensorSpec([2], int), "it has the shape [3], not [2]: [1, 2, 3]"),
        ('{"k": 1}', TensorSpec([None], int), "it has the shape [], not [None]: 1"),
        ('{"k": [[1, 2], [3]]}', TensorSpec([None, None], int), "it has the shape [2], not [None, None]"),
        ('{"k": [1, "a"]}', TensorSpec([None], int), "it is no int64: [1, 'a']"),
        ('{"k": "\\ud800"}', bytes, "surrogates not allowed"),
    ],
)
def test_what_does_not_fit_a_column_is_named(line: str, kind: Any, problem: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x", line)
    found = message(JsonLinesDataset(path, columns={"k": kind}))
    assert found.startswith(f"{path}, byte 0: line 1: ")
    assert problem in found


@pytest.mark.parametrize("size", [1, 7, None])
def test_a_row_that_does_not_fit_is_an_error_in_its_place(size: int | None, tmp_path: Path) -> None:
    path = write(tmp_path / "x", '{"n": 1}\n{"n": true}\n{"m": 1}\n\n{"n": 2}\n')
    ds = JsonLinesDataset(path, buffer_size=size, columns={"n": np.int64})
    assert_outcomes(ds, [{"n": np.int64(1)}, CorruptRecordError, CorruptRecordError, {"n": np.int64(2)}])


# Bad lines


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "line 2, column 2: Expecting property name"),
        (b'{"a": 1}}', "line 2, column 9: Extra data"),
        (b'  {"a": tru}', "line 2, column 9: Expecting value"),
        (b"1 2", "line 2, column 3: Extra data"),
        (b"1],[2", "line 2, column 2: Extra data"),
        (b"'a'", "line 2, column 1: Expecting value"),
        (b'"\xff"', "line 2, column 2: this is no UTF-8: invalid start byte"),
        (b"null", "line 2: null cannot be an element"),
        (b'{"a": [[1], [1, 2]]}', "line 2: the list is ragged"),
        (b'{"a": ["x", 1]}', "line 2: the list mixes text"),
        (b"[" * 100_000 + b"]" * 100_000, "line 2: the value is nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "line 2: the value is nested too deeply"),
        (b"9" * 5000, "line 2: Exceeds the limit (4300 digits)"),
    ],
)
@pytest.mark.parametrize("small", [False, True])
def test_a_bad_line_is_an_error_in_its_place(line: bytes, problem: str, small: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"1\n" + line + b"\n3\n")
    one, error, three = outcomes(JsonLinesDataset(path, buffer_size=max(5, len(line) // 50) if small else None))
    assert (one, three) == (1, 3)
    assert isinstance(error, CorruptRecordError)
    assert str(error).startswith(f"{path}, byte 2: {problem}")
    assert error.offset == 2


@each_compression
def test_a_last_line_that_is_cut_short_anywhere(compression: str, tmp_path: Path) -> None:
    text = '{"a": 1}\n{"bc": [2, "é"]}'.encode()
    for size in range(10, len(text)):
        path = write(tmp_path / "x", text[:size], compression)
        good, error = outcomes(JsonLinesDataset(path, compression))
        assert good == {"a": 1}
        assert isinstance(error, CorruptRecordError)
        assert str(error).startswith(f"{path}, byte 9: line 2, ")
        assert str(error).endswith("the file ends there without an end of the line: it may be cut short")
        assert_gives(JsonLinesDataset(path, compression).ignore_errors(), [{"a": 1}])
        assert_gives(JsonLinesDataset(path, compression, on_truncated="skip"), [{"a": 1}])


def test_skipping_what_is_cut_short_skips_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "x", "1\n{\n2\n3")
    assert_outcomes(JsonLinesDataset(path, on_truncated="skip"), [1, CorruptRecordError, 2, 3])
    assert_gives(JsonLinesDataset(write(tmp_path / "y", '{"a'), on_truncated="skip"), [])


def test_the_wrong_compression_says_so(tmp_path: Path) -> None:
    assert "the file is not GZIP" in message(JsonLinesDataset(write(tmp_path / "x", "1\n"), "GZIP"))
    for size in (None, 1, 7):
        path = write(tmp_path / "x", lines(list(range(1000))), "GZIP")
        (error,) = outcomes(JsonLinesDataset(path, buffer_size=size))
        assert str(error).endswith("it looks GZIP-compressed: pass compression_type='GZIP'")
        (error,) = outcomes(JsonLinesDataset(write(path, lines([1, 2]), "ZLIB")))
        assert str(error).endswith("it looks ZLIB-compressed: pass compression_type='ZLIB'")


def test_one_damaged_file_of_a_hundred_is_named_and_the_rest_arrives(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n:02}", lines([n] * 5)) for n in range(100)]
    write(paths[41], b"\xff\n" + lines([41] * 4).encode())
    named: list[Exception] = []
    for reads in (None, 4):
        ds = JsonLinesDataset(paths, num_parallel_reads=reads).ignore_errors(on_error=named.append)
        assert sorted(to_list(ds)) == sorted(n for n in range(100) for _ in range(5 - (n == 41)))
    assert [str(paths[41]) in str(error) for error in named] == [True, True]


def test_a_missing_file_is_an_error_in_its_place(tmp_path: Path) -> None:
    good = write(tmp_path / "x", "1")
    assert_outcomes(JsonLinesDataset([tmp_path / "none", good]), [FileNotFoundError, 1])


# Places


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    texts=st.lists(st.sampled_from(["1", '{"n": 2}', "", " ", "[", '{"n": true}', '{"n": 5, "m": [1]}']), max_size=12),
    end=st.sampled_from(["", "\n", "\r\n"]),
    chosen=st.booleans(),
    compression=st.sampled_from(sorted(PACKERS)),
    data=st.data(),
)
def test_resume_at_any_line(
    texts: list[str], end: str, chosen: bool, compression: str, data: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "x", "\n".join(texts) + end, compression)
    columns = {"n": (int, 0)} if chosen else None
    ds = JsonLinesDataset(path, compression, data.draw(st.integers(1, 64)), columns=columns)
    whole = outcomes(JsonLinesDataset(path, compression, columns=columns))
    assert_same(outcomes(ds), whole)
    taken = data.draw(st.integers(0, len(whole)))
    with ds.iterate() as iterator:
        for _ in range(taken):
            with contextlib.suppress(CorruptRecordError):
                next(iterator)
        state = json.loads(json.dumps(iterator.state_dict()))
    with JsonLinesDataset(path, compression, columns=columns).iterate(state) as iterator:
        rest: list[Any] = []
        while len(rest) < len(whole) - taken:
            try:
                rest.append(next(iterator))
            except CorruptRecordError as error:
                rest.append(error)
        assert next(iterator, None) is None
    assert_same(rest, whole[taken:])


def test_errors_of_later_stages_name_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x", "1\n\n[]\n")
    one, error = outcomes(JsonLinesDataset(path).map(lambda *x: 1 // len(x)))
    assert one == 1
    assert error.__notes__ == [f"in map(<lambda>), element 1, from {path} line 3"]


def test_an_early_stop_and_a_second_pass(tmp_path: Path) -> None:
    ds = JsonLinesDataset(write(tmp_path / "x", lines(list(range(1, 1000)))))
    assert first(ds, 2) == [1, 2]
    assert first(ds, 2) == [1, 2]


# The call


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"compression_type": "BZIP2"}, ValueError, "compression_type"),
        ({"buffer_size": -1}, ValueError, "buffer_size"),
        ({"num_parallel_reads": 0}, ValueError, "num_parallel_reads"),
        ({"filenames": 5}, TypeError, "filenames"),
        ({"on_truncated": "drop"}, ValueError, "on_truncated must be 'error' or 'skip', not 'drop'"),
        ({"columns": {}}, ValueError, "columns is empty"),
        ({"columns": ["a"]}, TypeError, "columns must be a dict"),
        ({"columns": {1: int}}, TypeError, "columns must be a dict"),
        ({"columns": {"a": "what"}}, TypeError, r"columns\['a'\] must be a dtype or a TensorSpec"),
        ({"columns": {"a": "datetime64[s]"}}, TypeError, r"columns\['a'\] must be a dtype of numbers"),
        ({"columns": {"a": complex}}, TypeError, r"columns\['a'\] must be a dtype of numbers"),
        ({"columns": {"a": TensorSpec(None, int)}}, ValueError, r"columns\['a'\] must say how many axes"),
        ({"columns": {"a": (int, "x")}}, ValueError, r"the default of columns\['a'\] does not fit"),
        ({"columns": {"a": (int, None)}}, ValueError, r"the default of columns\['a'\] does not fit"),
        ({"columns": {"a": (TensorSpec([2], int), [1])}}, ValueError, r"the default of columns\['a'\] does not fit"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"JsonLinesDataset: {message}"):
        JsonLinesDataset(**({"filenames": "x"} | arguments))


def test_what_is_known_of_it() -> None:
    ds = JsonLinesDataset("x", "GZIP", name="mine", columns={"n": np.int8, "t": (str, "")}, on_truncated="skip")
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert "mine" in repr(ds)
    assert "json_lines(x, GZIP, {'n': int8, 't': (str, '')}, on_truncated='skip')" in repr(ds)
    assert JsonLinesDataset("x").element_spec is None
