"""`CsvDataset`: the records of CSV files as tuples of numpy values."""

from __future__ import annotations

import asyncio
import csv
import gc
import gzip
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import CsvDataset, Dataset, TensorSpec
from aiodata.errors import CorruptRecordError, DataError
from tests.programs import (
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    first,
    objects,
    outcomes,
    outcomes_async,
    pull_all,
    to_list,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

FLIGHTS = Path(__file__).parents[2] / "examples/data/flights"
PACKS: dict[str, Any] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


def write(folder: Path, content: bytes | str, name: str = "a.csv") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def row(*values: Any) -> tuple[Any, ...]:
    """Give a row of int64, float64 and bytes."""
    kinds: dict[type, Any] = {int: np.int64, float: np.float64, bytes: bytes}
    return tuple([kinds[type(value)](value) for value in values])


# Records


@pytest.mark.parametrize("size", [None, 1, 2, 3, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_records_of_every_kind_of_column(size: int | None, end: str, last: str, tmp_path: Path) -> None:
    lines = ["1,0.5,one", "-20,-1e3,", ' 7 ,.5,"a, ""b"""', ',"",x"y']
    path = write(tmp_path, end.join(lines) + (end if last else ""))
    expected = [row(1, 0.5, b"one"), row(-20, -1000.0, b"-"), row(7, 0.5, b'a, "b"'), row(9, 9.5, b'x"y')]
    assert_gives(CsvDataset(path, [[9], [9.5], b"-"], buffer_size=size), expected)


def test_a_newline_inside_quotes_then_a_number(tmp_path: Path) -> None:
    assert_gives(
        CsvDataset(write(tmp_path, '"two\nlines",7\n"b",8'), [bytes, int]), [row(b"two\nlines", 7), row(b"b", 8)]
    )


@pytest.mark.parametrize("size", range(1, 17))
@pytest.mark.parametrize("packed", PACKS)
def test_crlf_records_are_the_same_at_every_chunk_size(size: int, packed: str, tmp_path: Path) -> None:
    texts = [b"x" * length for length in (0, 1, 7, 14, 15, 16, 17, 3)]
    content = b"".join(b'%d,"%b\r\n"\r\n' % (at, text) for at, text in enumerate(texts))
    ds = CsvDataset(write(tmp_path, PACKS[packed](content)), [int, bytes], packed, size)
    expected = [row(at, text + b"\r\n") for at, text in enumerate(texts)]
    assert_same(to_list(ds), expected)
    assert_same(asyncio.run(collect(ds)), expected)


@pytest.mark.parametrize("size", [None, 1, 2])
def test_empty_chunks_lose_no_unfinished_record(size: int | None, tmp_path: Path) -> None:
    content = b"".join(map(gzip.compress, (b"12", b"", b"3\n", b"45", b"")))
    assert_gives(CsvDataset(write(tmp_path, content), [int], "GZIP", size), [row(123), row(45)])


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("value", [b"1", b'"1"'])
def test_the_byte_order_mark_is_no_part_of_the_first_field(mark: bytes, value: bytes, tmp_path: Path) -> None:
    assert_gives(CsvDataset(write(tmp_path, mark + value + b",a"), [int, bytes]), [row(1, b"a")])
    path = write(tmp_path, mark + b'"n",x\n' + value + b",a")
    assert_gives(CsvDataset(path, [int, bytes], header=True), [row(1, b"a")])


def test_a_blank_line_is_a_record_of_one_empty_field(tmp_path: Path) -> None:
    assert_gives(CsvDataset(write(tmp_path, "1\n\n2\n\n"), [[7]]), [row(1), row(7), row(2), row(7)])
    (one, error, two) = outcomes(CsvDataset(write(tmp_path, "1,2\n\n3,4\n"), [int, int]))
    assert_same([one, two], [row(1, 2), row(3, 4)])
    assert str(error) == f"{tmp_path}/a.csv line 2: expected 2 fields, got 1, in ''"


def test_empty_files_have_no_records(tmp_path: Path) -> None:
    empty, other = write(tmp_path, "", "0.csv"), write(tmp_path, "1\n", "1.csv")
    assert_gives(CsvDataset([empty, other, empty], [int]), [row(1)])
    assert_gives(CsvDataset([], [int]), [])


def test_every_file_has_a_header(tmp_path: Path) -> None:
    contents = ["n,x\n1,a\n2,b", '"n\nn",x\r\n3,c', "n,x\n"]
    paths = [write(tmp_path, content, f"{at}.csv") for at, content in enumerate(contents)]
    assert_gives(CsvDataset(paths, [int, bytes], header=True), [row(1, b"a"), row(2, b"b"), row(3, b"c")])


def test_a_missing_header_is_an_error_and_the_next_file_follows(tmp_path: Path) -> None:
    empty, other = write(tmp_path, "", "0.csv"), write(tmp_path, "n\n1\n", "1.csv")
    (error, found) = outcomes(CsvDataset([empty, other], [int], header=True))
    assert type(error) is DataError
    assert str(error) == f"{empty}: the file is empty, but should begin with a header"
    assert_same(found, row(1))


def test_na_value_and_empty_fields_are_missing(tmp_path: Path) -> None:
    path = write(tmp_path, 'NA,NA\n,""\n"NA",NAN\n')
    assert_gives(CsvDataset(path, [[5], b"-"], na_value="NA"), [row(5, b"-"), row(5, b"-"), row(5, b"NAN")])


def test_select_cols_and_exclude_cols(tmp_path: Path) -> None:
    path = write(tmp_path, "1,a,0.5,x\n2,b,1.5,y\n")
    assert_gives(CsvDataset(path, [bytes, float], select_cols=[1, 2]), [row(b"a", 0.5), row(b"b", 1.5)])
    assert_gives(CsvDataset(path, [bytes, float], exclude_cols=[0, 3]), [row(b"a", 0.5), row(b"b", 1.5)])
    assert_gives(CsvDataset(path, [bytes], select_cols=[3]), [row(b"x"), row(b"y")])


def test_what_follows_the_last_selected_column_is_not_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "1,a,5,6\n2,b\n3\n4,d,\n")
    ds = CsvDataset(path, [int, bytes], select_cols=[0, 1])
    assert_outcomes(ds, [row(1, b"a"), row(2, b"b"), DataError, row(4, b"d")])


def test_other_delimiters_and_no_quoting(tmp_path: Path) -> None:
    path = write(tmp_path, '"1;a\n2;b"\n')
    assert_gives(CsvDataset(path, [bytes, bytes], None, None, False, ";", False), [row(b'"1', b"a"), row(b"2", b'b"')])
    assert_gives(CsvDataset(write(tmp_path, "1§2\n"), [int, int], field_delim="§"), [row(1, 2)])


def test_text_stays_the_bytes_that_it_was(tmp_path: Path) -> None:
    content = b'\xff\0,\xc3\xa9\n\0\0,"\xff\0"\n'
    assert_gives(
        CsvDataset(write(tmp_path, content), [b"", b""]), [row(b"\xff\0", b"\xc3\xa9"), row(b"\0\0", b"\xff\0")]
    )


@pytest.mark.parametrize("reads", [None, 2, aiodata.AUTOTUNE])
def test_several_files(reads: int | None, tmp_path: Path) -> None:
    paths = [write(tmp_path, content, f"{at}.csv") for at, content in enumerate(["1\n2\n3", "10\n", "20\n21"])]
    found = to_list(CsvDataset(paths, [int], num_parallel_reads=reads))
    expected = {None: [1, 2, 3, 10, 20, 21], 2: [1, 10, 2, 3, 20, 21]}
    assert_same(found if reads in expected else sorted(found), [row(n) for n in expected.get(reads, expected[None])])


def test_filenames_may_be_a_dataset_or_path(tmp_path: Path) -> None:
    write(tmp_path, "1\n", "a.csv")
    write(tmp_path, "2\n", "b.csv")
    assert_gives(CsvDataset(Dataset.list_files(f"{tmp_path}/*", shuffle=False), [int]), [row(1), row(2)])
    assert_gives(CsvDataset(tmp_path / "b.csv", [int]), [row(2)])


def test_spec_cardinality_and_repr(tmp_path: Path) -> None:
    path = write(tmp_path, "1,2,3\n")
    ds = CsvDataset(path, [np.int32, [np.float16(0)], bytes], header=True, name="mine")
    assert ds.element_spec == (TensorSpec((), np.int32), TensorSpec((), np.float16), TensorSpec((), object))
    assert CsvDataset([path, path], [bytes]).element_spec == (TensorSpec((), object),)
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert f"csv({path}, int32, float16, object, header)" in repr(ds)
    assert "mine" in repr(ds)


def test_batches_are_made_of_whole_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "1,a\n2,b\n,c\n")
    (batch,) = to_list(CsvDataset(path, [[np.int16(9)], bytes]).batch(5))
    assert_same(batch, (arr([1, 2, 9], np.int16), objects(b"a", b"b", b"c")))


def test_real_flights_as_the_csv_module_reads_them() -> None:
    paths = sorted(FLIGHTS.glob("*.csv"))[:3]
    expected = []
    for path in paths:
        with path.open(newline="") as file:
            expected += [row(float(r["dep_delay"] or "nan"), r["carrier"].encode()) for r in csv.DictReader(file)]
    ds = CsvDataset(paths, [[np.nan], bytes], header=True, select_cols=[5, 9])
    assert len(expected) > 5000
    assert_same(to_list(ds), expected)


TEXTS = st.text(st.sampled_from('ab,"\n\r é'), max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(TEXTS, st.integers(-(2**63), 2**63 - 1), st.none() | st.floats()), max_size=8),
    size=st.integers(1, 64),
    packed=st.sampled_from(["", "GZIP"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_what_the_csv_module_wrote_comes_back(rows: Any, size: int, packed: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "written.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        # Before Python 3.13 it leaves a line's end that is not its own without quotes.
        csv.writer(file, lineterminator=end, quoting=0 if end == "\r\n" else csv.QUOTE_ALL).writerows(rows)
    path.write_bytes(PACKS[packed](path.read_bytes()))
    expected = [row(text.encode(), number, 0.25 if real is None else real) for text, number, real in rows]
    assert_same(to_list(CsvDataset(path, [b"", int, 0.25], packed, size)), expected)


# Errors


@pytest.mark.parametrize("size", [None, 1, 4, 30])
def test_a_bad_record_is_an_error_in_its_place_and_reading_goes_on(size: int | None, tmp_path: Path) -> None:
    path = write(tmp_path, 'n,s\n1,a\n2\n"3\n","b\n"\n4,c,d\nx,e\n,f\n"6"7,g\n8,h\n')
    ds = CsvDataset(path, [int, bytes], None, size, True)
    found = outcomes(ds)
    assert_same([item for item in found if isinstance(item, tuple)], [row(1, b"a"), row(3, b"b\n"), row(8, b"h")])
    assert [str(item).removeprefix(f"{path} ") for item in found if isinstance(item, DataError)] == [
        "line 3: expected 2 fields, got 1, in '2'",
        "line 7: expected 2 fields, got 3, in '4,c,d'",
        "line 8, column 0: 'x' is not a valid int64, in 'x,e'",
        "line 9, column 0: required but missing, in ',f'",
        "line 10: quoted field that goes on after its closing quote, in '\"6\"7,g'",
    ]
    kinds = [tuple, DataError, tuple, DataError, DataError, DataError, DataError, tuple]
    assert [type(item) for item in found] == kinds
    assert [type(item) for item in asyncio.run(outcomes_async(ds))] == kinds


def test_a_zero_byte_in_a_number_is_an_error_and_in_text_it_is_kept(tmp_path: Path) -> None:
    lines = [b"%d,text" % number for number in range(1, 11)]
    lines[6] = b"7\0,text"
    path = write(tmp_path, b"\n".join(lines))
    found = outcomes(CsvDataset(path, [int, bytes]))
    assert str(found[6]) == f"{path} line 7, column 0: '7\\x00' is not a valid int64, in '7\\x00,text'"
    assert_same(found[:6] + found[7:], [row(n, b"text") for n in range(1, 11) if n != 7])
    lines[6] = b"7,te\0xt"
    expected = [row(n, b"te\0xt" if n == 7 else b"text") for n in range(1, 11)]
    assert_gives(CsvDataset(write(tmp_path, b"\n".join(lines)), [int, bytes]), expected)
    lines[6] = b'7,"te\0xt"'
    assert_gives(CsvDataset(write(tmp_path, b"\n".join(lines)), [int, bytes]), expected)


def test_an_error_that_was_dealt_with_is_gone(tmp_path: Path) -> None:
    ds = CsvDataset(write(tmp_path, "1\nx\n2\ny\n"), [int])
    errors = 0
    gc.collect()
    gc.disable()
    try:
        with ds.iterate() as iterator:
            for _ in range(4):
                try:
                    next(iterator)
                except DataError:
                    errors += 1
        assert errors == 2
        assert [one for one in gc.get_objects() if type(one) is DataError] == []
    finally:
        gc.enable()


def test_notes_of_later_stages_name_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path, 'n,s\n1,"a\nb"\n2,c\n3,d\n')

    def fail(number: Any, text: bytes) -> Any:
        raise KeyError(text)

    found = outcomes(CsvDataset(path, [int, bytes], header=True).map(fail))
    assert [error.__notes__[0].partition("from ")[2] for error in found] == [f"{path} line {n}" for n in (2, 4, 5)]


def test_a_missing_file_is_an_error_and_the_next_file_follows(tmp_path: Path) -> None:
    names = [write(tmp_path, "1\n", "1.csv"), str(tmp_path / "missing"), write(tmp_path, "2\n", "2.csv")]
    assert_outcomes(CsvDataset(names, [int]), [row(1), FileNotFoundError, row(2)])


def test_one_damaged_file_of_a_hundred(tmp_path: Path) -> None:
    names = []
    for number in range(100):
        content = gzip.compress(b"".join(b"%d,%d\n" % (number, at) for at in range(5)))
        names.append(write(tmp_path, content[:-9] if number == 41 else content, f"{number}.gz"))
    for reads in (None, 4):
        ds = CsvDataset(names, [int, int], "GZIP", num_parallel_reads=reads)
        found = outcomes(ds)
        (error,) = [item for item in found if isinstance(item, Exception)]
        assert type(error) is CorruptRecordError
        assert error.path == names[41]
        rest = to_list(ds.ignore_errors())
        assert len(rest) == len(found) - 1
        assert len([pair for pair in rest if pair[0] != 41]) == 495


@pytest.mark.parametrize("size", [None, 1, 9, 64])
@pytest.mark.parametrize("packed", ["GZIP", "ZLIB"])
def test_compressed_data_without_a_compression_is_an_error_that_says_so(
    packed: str, size: int | None, tmp_path: Path
) -> None:
    for content in (b"", b"1\n", b"1\n" * 5000):
        names = [write(tmp_path, PACKS[packed](content), "1.csv"), write(tmp_path, "2\n", "2.csv")]
        error, *rest = outcomes(CsvDataset(names, [int], buffer_size=size))
        assert_same(rest, [row(2)])
        assert type(error) is CorruptRecordError
        assert str(error).startswith(f"{names[0]}, byte 0: this is no text; it looks {packed}-compressed: pass")
        (error,) = outcomes(CsvDataset(names[0], [int], header=True))
        assert "is no text" in str(error)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"record_defaults": []}, ValueError, "CsvDataset: record_defaults must"),
        ({"record_defaults": [bool]}, TypeError, r"CsvDataset: record_defaults\[0\] must"),
        ({"field_delim": ",,"}, ValueError, "CsvDataset: field_delim must"),
        ({"na_value": None}, TypeError, "CsvDataset: na_value must"),
        ({"select_cols": [1, 0]}, ValueError, "CsvDataset: select_cols"),
        ({"exclude_cols": [1, 0]}, ValueError, "CsvDataset: exclude_cols"),
        ({"exclude_cols": [0], "select_cols": [0]}, ValueError, "CsvDataset: give select_cols or exclude_cols"),
        ({"compression_type": "ZIP"}, ValueError, "CsvDataset: compression_type"),
        ({"buffer_size": -1}, ValueError, "CsvDataset: buffer_size"),
        ({"num_parallel_reads": 0}, ValueError, "CsvDataset: num_parallel_reads"),
        ({"filenames": 3}, TypeError, "CsvDataset: filenames"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, error: Any, words: str) -> None:
    given: dict[str, Any] = {"filenames": "file", "record_defaults": [int], **arguments}
    with pytest.raises(error, match=words):
        CsvDataset(**given)


def test_making_a_dataset_opens_nothing(tmp_path: Path) -> None:
    ds = CsvDataset(str(tmp_path / "late.csv"), [int])
    write(tmp_path, "1\n", "late.csv")
    assert_same(to_list(ds), [row(1)])


# Positions


RAGGED = '\ufeffn,s\r\n1,"a\r\nb"\r\n2,c\r\nx,d\r\n3,"e\n\n"\r\n4\r\n"5",f'
RAGGED_OUTCOMES = [row(1, b"a\r\nb"), row(2, b"c"), DataError, row(3, b"e\n\n"), DataError, row(5, b"f")]


@pytest.mark.parametrize("packed", PACKS)
@pytest.mark.parametrize("size", [1, 5, 16, None])
@pytest.mark.parametrize("block", [1, 9, 30])
def test_goes_on_at_every_record(
    packed: str, size: int | None, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiodata.formats.csv_records.BLOCK_BYTES", block)
    path = write(tmp_path, PACKS[packed](RAGGED.encode()))
    ds = CsvDataset(path, [int, bytes], packed, size, True)
    messages = [str(item) for item in outcomes(ds) if isinstance(item, DataError)]
    assert [words.removeprefix(f"{path} line ")[0] for words in messages] == ["5", "9"]
    with ds.iterate() as iterator:
        for taken in range(len(RAGGED_OUTCOMES) + 1):
            with ds.iterate(iterator.state_dict()) as other:
                found = pull_all(other)
            assert_same(found, RAGGED_OUTCOMES[taken:])
            rest = [str(item) for item in found if isinstance(item, DataError)]
            assert rest == messages[len(messages) - len(rest) :]
            with suppress(DataError):
                next(iterator, None)


@pytest.mark.parametrize("size", [*range(1, 17), 1000])
def test_positions_are_bytes_and_lines_of_the_file(size: int, tmp_path: Path) -> None:
    content = RAGGED.encode()
    starts = {content.index(text): line for text, line in [(b"1,", 2), (b"2,", 4), (b"x,", 5), (b"3,", 6), (b"4\r", 9)]}
    starts[content.index(b'"5"')] = 10
    ds = CsvDataset(write(tmp_path, content), [int, bytes], buffer_size=size, header=True)
    with ds.iterate() as iterator:
        for taken in range(1, 1 + len(RAGGED_OUTCOMES)):
            with suppress(DataError):
                next(iterator)
            (offset, line, *_), skip = iterator.state_dict()["position"]
            assert starts[offset] == line
            assert sorted(starts).index(offset) + skip == taken


def test_leaving_early(tmp_path: Path) -> None:
    path = write(tmp_path, "1\n" * 100_000)
    for _ in range(20):
        assert_same(first(CsvDataset(path, [int], buffer_size=100), 2), [row(1), row(1)])


def test_much_makes_several_blocks(tmp_path: Path) -> None:
    lines = [f"{number},{number * 7 % 1000},{'x' * (number % 50)}" for number in range(30_000)]
    content = "\n".join(lines)
    assert len(content) > 1_000_000
    expected: Sequence[Any] = [row(n, n * 7 % 1000, b"x" * (n % 50)) for n in range(30_000)]
    for size in (None, 1000, 100_001):
        with CsvDataset(write(tmp_path, content), [int, int, b""], buffer_size=size).iterate() as iterator:
            assert list(iterator) == expected
            (counters,) = [one for one in iterator.statistics() if one["stage"] == "csv"]
        assert counters["elements"] == 30_000
        assert counters["bytes_read"] == len(content)
