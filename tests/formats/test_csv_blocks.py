"""Many records at once: exactly what Python's csv module, `float` and `int` give, whichever way is taken."""

from __future__ import annotations

import csv
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aiodata.errors import DataError
from aiodata.formats.csv import compile_columns, decode_csv
from aiodata.formats.csv_blocks import decode_records
from tests.formats.test_csv import fails, same

CODES = "efdbhilqBHILQ"
DIGITS = st.text("0123456789", max_size=17)
SIGN = st.sampled_from(["", "-", "+"])
FIELDS = st.one_of(
    st.builds(lambda sign, whole: sign + whole, SIGN, DIGITS),
    st.builds(lambda sign, whole, rest: f"{sign}{whole}.{rest}", SIGN, DIGITS, DIGITS),
    st.integers(-(2**64), 2**64).map(str),
    st.floats().map(repr),
    st.sampled_from(["", "NA", "-", "-.", ".", "+1", "1e5", "nan", "-inf", " 1", "1 ", "1_0", "\u0661", "00", "\x1c1"]),
)


def expected(lines: list[bytes], dtypes: list[Any], defaults: list[Any], na_value: str) -> list[Any] | None:
    """Decode with the csv module, `float` and `int`; give None if a field is bad."""
    columns: list[list[Any]] = [[] for _ in dtypes]
    for row in csv.reader([line.decode() for line in lines], strict=True):
        for column, dtype, default, field in zip(columns, dtypes, defaults, row or [""], strict=True):
            if field in ("", na_value):
                column.append(default)
                continue
            try:
                if "_" in field or not field.isascii():
                    return None
                value: Any = float(field) if dtype.kind == "f" else int(field)
            except ValueError:
                return None
            if dtype.kind != "f" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
                return None
            column.append(value)
    with np.errstate(over="ignore"):
        return [
            np.array(column, np.float64 if dtype.kind == "f" else dtype).astype(dtype)
            for dtype, column in zip(dtypes, columns, strict=True)
        ]


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS, FIELDS), min_size=1, max_size=6),
    codes=st.tuples(*[st.sampled_from(CODES)] * 3),
    default=st.sampled_from([1, 0, -0.0]),
    na_value=st.sampled_from(["", "NA", "7", "missing it", "\u00e9"]),
    times=st.sampled_from([1, 11, 34, 150]),
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
    quote=st.sampled_from(["", '"']),
)
@example([("1.5", "2", "NA")], ("f", "b", "q"), 1, "NA", 150, b"", "")
@example([("", "10000000000", "0"), ("1", "2147483648", "1"), ("2", "-2147483648", "")], "eiI", 1, "", 150, b"", "")
@example([("1234567890", "12345678", "300")], ("L", "h", "B"), 1, "", 150, b"", "")
@example([("-0.12345", "12345678901", "5.")], ("d", "q", "d"), 1, "", 150, b"\r\n", '"')
def test_the_values_of_float_and_int(
    rows: Any, codes: Any, default: Any, na_value: str, times: int, end: bytes, quote: str
) -> None:
    lines = [",".join([f"{quote}{field}{quote}" for field in row]).encode() + end for row in rows]
    dtypes = list(map(np.dtype, codes))
    defaults = [dtype.type(default) for dtype in dtypes]
    # Fields that cannot be decoded are left out, so that they do not hide the others: each is tried alone first.
    good = [line for line in lines if expected([line.rstrip(b"\r\n")], dtypes, defaults, na_value) is not None]
    for line in lines:
        if line not in good:
            with pytest.raises(DataError):
                decode_csv([line] * times, defaults, na_value=na_value)
    records = good * times
    arrays = decode_csv(records, defaults, na_value=na_value)
    others = expected([record.rstrip(b"\r\n") for record in records], dtypes, defaults, na_value)
    assert others is not None
    for array, other in zip(arrays, others, strict=True):
        assert same(array, other), (array, other)
        assert array.flags.c_contiguous
        assert array.flags.owndata
    for array, text in zip(
        arrays, decode_csv([one.decode() for one in records], defaults, na_value=na_value), strict=True
    ):
        assert same(array, text)


@pytest.mark.parametrize("count", [0, 1, 2, 11, 12, 13, 31, 32, 909, 910, 911, 1820, 4097])
@pytest.mark.parametrize("kind", [bytes, str])
def test_any_number_of_records(count: int, kind: Any) -> None:
    rows = [[f"{(number * place) % 1000 - 300}.{number % 10}" for place in range(9)] for number in range(count)]
    lines = [",".join(row) if kind is str else ",".join(row).encode() for row in rows]
    arrays = decode_csv(lines, [np.float32(0)] * 9)
    for place, array in enumerate(arrays):
        assert same(array, np.array([float(row[place]) for row in rows], np.float32))
    shaped = decode_csv(np.array([lines, lines], object), [np.float32(0)] * 9)
    for array, other in zip(arrays, shaped, strict=True):
        assert same(np.array([array, array]), other)


@pytest.mark.parametrize("select_cols", [None, [0, 2], [1], [1, 2, 3]])
def test_some_columns(select_cols: Any) -> None:
    dtypes = [np.float64, np.int16, object, np.uint8]
    lines = [f"{number}.25,{-number},t{number},{number % 256}".encode() for number in range(5000)]
    columns: list[Any] = [
        np.arange(5000) + 0.25,
        -np.arange(5000, dtype=np.int16),
        np.array([b"t%d" % number for number in range(5000)], object),
        np.arange(5000).astype(np.uint8),
    ]
    wanted = range(4) if select_cols is None else select_cols
    arrays = decode_csv(lines, [dtypes[at] for at in wanted], select_cols=select_cols)
    for at, array in zip(wanted, arrays, strict=True):
        assert same(array, columns[at])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"1,2,3", "record 300: expected 2 fields, got 3, in '1,2,3'"),
        (b"1", "record 300: expected 2 fields, got 1, in '1'"),
        (b"", "record 300: expected 2 fields, got 1, in ''"),
        (b"1,2\n3,4", "record 300: line break outside quotes, in '1,2\\n3,4'"),
        (b"1,2\r3,4", "record 300: line break outside quotes, in '1,2\\r3,4'"),
        (b'"1,2', "record 300: quoted field without its closing quote, in '\"1,2'"),
        (b'"1"x,2', "record 300: quoted field that goes on after its closing quote, in '\"1\"x,2'"),
        (b"1.5.,2", "record 300, column 0: '1.5.' is not a valid float32, in '1.5.,2'"),
        (b"-,2", "record 300, column 0: '-' is not a valid float32, in '-,2'"),
        (b".,2", "record 300, column 0: '.' is not a valid float32, in '.,2'"),
        (b"\xff,2", "record 300, column 0: '\\udcff' is not a valid float32, in '\\udcff,2'"),
        (b"1_0,2", "record 300, column 0: '1_0' is not a valid float32, in '1_0,2'"),
        (b"1,2.", "record 300, column 1: '2.' is not a valid int8, in '1,2.'"),
        (b"1,128", "record 300, column 1: '128' is out of range for int8, in '1,128'"),
        (b"1,", "record 300, column 1: required but missing, in '1,'"),
    ],
)
def test_the_first_bad_record_is_named(bad: bytes, words: str) -> None:
    good = [b"1.5,2"] * 300
    assert fails([*good, bad, *good, b"x,y"], [[np.float32(0)], np.int8]) == words
    assert fails([*good, bad, *good, b"x,y"] * 30, [[np.float32(0)], np.int8]) == words
    text = bad.decode("utf-8", "surrogateescape")
    assert fails([*["1.5,2"] * 300, text], [[np.float32(0)], np.int8]) == words


def test_ends_within_quotes_and_around_records() -> None:
    lines = [b'1,"a\nb"', b'2,"c\r\nd"\r\n', b"3,e\n", b"\r\n4,f"] * 100
    with pytest.raises(DataError, match=r"^record 3: "):
        decode_csv(lines, [0, b""])
    numbers, texts = decode_csv([line for line in lines if line[:1] != b"\r"], [0, b""])
    assert numbers.tolist() == [1, 2, 3] * 100
    assert texts.tolist() == [b"a\nb", b"c\r\nd", b"e"] * 100


@pytest.mark.parametrize("delim", [";", "-", ".", "5", " ", "e", "\u00e9"])
def test_any_delimiter(delim: str) -> None:
    lines = [f"{row[0]}{delim}{row[1]}" for row in [("1", "2"), ("", "3"), ("4", ""), ("", "")] * 50]
    for records in (lines, [line.encode() for line in lines]):
        arrays = decode_csv(records, [[9.0], [8]], field_delim=delim)
        assert [array.tolist() for array in arrays] == [[1, 9, 4, 9] * 50, [2, 3, 8, 8] * 50]


def test_defaults_that_no_float_is() -> None:
    lines = [b",1,", b"2,,x"] * 100
    arrays = decode_csv(lines, [2**63 - 1, np.uint64(2**64 - 1), b""])
    assert arrays[0].tolist() == [2**63 - 1, 2] * 100
    assert arrays[1].tolist() == [1, 2**64 - 1] * 100
    reals, others = decode_csv([b",", b"1,2"] * 100, [-0.0, np.float32(np.nan)])
    assert np.signbit(reals[::2]).all()
    assert np.isnan(others[::2]).all()


@pytest.mark.parametrize("na_value", ["\ud800", "\udcc3\udca9", "x" * 9, "12345678", "-", "n.a.", "nan"])
def test_texts_of_missing_fields(na_value: str) -> None:
    lines = ["1.5,2", "\u00e9,3"] * 100
    with pytest.raises(DataError, match=r"^record 1, column 0: '\u00e9' is not a valid float64"):
        decode_csv([line.encode() for line in lines], [9.0, 8], na_value=na_value)
    reals, texts = decode_csv([b"1.5,\xc3\xa9"] * 200, [9.0, b""], na_value=na_value)
    assert (reals.tolist(), texts.tolist()) == ([1.5] * 200, [b"\xc3\xa9"] * 200)
    if na_value.isascii():
        reals, whole = decode_csv(
            [b"%b,2" % na_value.encode(), b"1.5,%b" % na_value.encode()] * 100, [9.0, 8], na_value=na_value
        )
        assert reals.tolist() == [9, 1.5] * 100
        assert whole.tolist() == [2, 8] * 100


def test_no_warnings_whatever_the_values_are() -> None:
    lines = [b"99999999,70000,0.0000001", b"x,1,1"] * 100
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        arrays = decode_csv(lines[::2], [np.float32, np.float16, np.float16])
        assert fails(lines, [np.int8, np.int8, float]).startswith("record 0, column 0: '99999999' is out of range for")
    assert [array[0] for array in arrays] == [np.float32(1e8), np.inf, np.float16(1e-7)]


def test_what_takes_the_fast_way() -> None:
    """It must not be lost unseen: the other way gives the same."""
    columns = compile_columns([np.float32(0), 0, b""])
    for lines in ([b"1.5,2,x"] * 40, [b'"1.5",2,"x""y"'] * 5000, [b"1,,\n"] * 40, [b"1.5,-3,\xff\r\n"] * 40):
        arrays = decode_records(columns, lines)
        assert arrays is not None
        assert [array.dtype for array in arrays] == [np.float32, np.int64, object]
        assert list(map(len, arrays)) == [len(lines)] * 3
