"""decode_csv: exact values and dtypes, the words of every error, and agreement with Python's own csv module."""

from __future__ import annotations

import copy
import csv
import io
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata.errors import DataError
from aiodata.formats.csv import compile_columns, decode_csv

if TYPE_CHECKING:
    from aiodata.formats.csv_columns import CsvColumns

FLIGHTS = Path(__file__).parents[2] / "examples/data/flights/flights-01.csv"
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def same(left: Any, right: Any) -> bool:
    """Equal in type, dtype, shape and value, nan being equal to nan and -0.0 not to 0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, bytes):
        return bool(left == right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype == object:
        return bool(left.tolist() == right.tolist())
    return left.tobytes() == right.tobytes() or bool(np.array_equal(left, right, equal_nan=True))


def assert_agree(lines: list[Any], defaults: list[Any], **options: Any) -> tuple[Any, ...]:
    """Decode all lines at once, and check that each line alone gives its row of that."""
    arrays = decode_csv(lines, defaults, **options)
    for row, line in enumerate(lines):
        alone = decode_csv(line, defaults, **options)
        assert len(alone) == len(arrays)
        for value, array in zip(alone, arrays, strict=True):
            assert same(value, array[row]), (value, array[row])
    return arrays


def fails(records: Any, defaults: list[Any], **options: Any) -> str:
    """Return the words of the error; nothing may be chained to it, which would only confuse."""
    with pytest.raises(DataError) as caught:
        decode_csv(records, defaults, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


# Values and dtypes


def test_one_line_gives_scalars() -> None:
    number, real, text = decode_csv(b"7,2.5,abc", [np.int32, np.float32, bytes])
    assert (type(number), type(real), type(text)) == (np.int32, np.float32, bytes)
    assert (number, real, text) == (7, 2.5, b"abc")


@pytest.mark.parametrize("records", [["1,a", "2,b"], [b"1,a", b"2,b"], ("1,a", b"2,b")])
def test_lines_give_arrays(records: Any) -> None:
    numbers, texts = decode_csv(records, [np.int16, str])
    assert (numbers.dtype, texts.dtype) == (np.dtype(np.int16), np.dtype(object))
    assert (numbers.tolist(), texts.tolist()) == ([1, 2], [b"a", b"b"])


@pytest.mark.parametrize("dtype", [object, "S", "U"])
def test_arrays_of_any_text_dtype_and_shape(dtype: Any) -> None:
    records = np.array([["1,a", "2,b", "3,c"], ["4,d", "5,e", "6,f"]]).astype(dtype)
    numbers, texts = decode_csv(records, [[0], b""])
    assert numbers.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert texts.tolist() == [[b"a", b"b", b"c"], [b"d", b"e", b"f"]]
    assert same(decode_csv(records[1, 2], [[0], b""])[0], np.int64(6))
    assert decode_csv(np.array("7,g", dtype), [[0], b""]) == (7, b"g")


@pytest.mark.parametrize("records", [[], (), np.array([], object), np.empty((0, 3), object)])
def test_no_records_give_empty_arrays(records: Any) -> None:
    shape = np.shape(records)
    numbers, texts, large = decode_csv(records, [np.float32, bytes, np.uint64])
    assert (numbers.dtype, texts.dtype, large.dtype) == (np.dtype(np.float32), np.dtype(object), np.dtype(np.uint64))
    assert numbers.shape == texts.shape == large.shape == shape


@pytest.mark.parametrize(
    ("default", "dtype", "value"),
    [
        ([0.5], np.float64, 0.5),
        ((2,), np.int64, 2),
        (3, np.int64, 3),
        (2**63, np.uint64, 2**63),
        (np.longlong(4), np.int64, 4),
        (-0.0, np.float64, -0.0),
        (math.inf, np.float64, math.inf),
        (math.nan, np.float64, math.nan),
        (np.float32(0.1), np.float32, np.float32(0.1)),
        (np.float16(0.1), np.float16, np.float16(0.1)),
        (np.array([9], np.uint8), np.uint8, 9),
        (np.array(-5, np.int16), np.int16, -5),
        (np.array([1.5], ">f4"), np.float32, 1.5),
        ([np.int8(-128)], np.int8, -128),
    ],
)
def test_number_defaults_keep_value_and_dtype(default: Any, dtype: Any, value: Any) -> None:
    decode_csv("1", [abs(default) if default == 0 else 0.0])  # must not be mistaken for the same schema
    (filled,) = assert_agree(["", '""', "1"], [default])
    assert filled.dtype == dtype
    assert filled.dtype.isnative
    assert same(filled[0], dtype(value))
    assert same(filled[0], filled[1])
    assert filled[2] == 1


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (b"", b""),
        ("", b""),
        ("''", b"''"),
        ([b"x\0"], b"x\0"),
        ("\u00e9", b"\xc3\xa9"),
        (b"\xff", b"\xff"),
        (["int64"], b"int64"),
        ("i8", b"i8"),
        (np.array(["x"]), b"x"),
        (np.array([b"y"], object), b"y"),
        (np.bytes_(b"z"), b"z"),
    ],
)
def test_text_defaults(default: Any, value: bytes) -> None:
    (filled,) = assert_agree(["", '""', "given"], [default])
    assert filled.dtype == object
    assert filled.tolist() == [value, value, b"given"]


@pytest.mark.parametrize(
    ("default", "dtype"),
    [
        (float, np.float64),
        (int, np.int64),
        ("int64", np.int64),
        ("float", np.float64),
        (np.float16, np.float16),
        (np.dtype("uint8"), np.uint8),
        (np.array([], np.float32), np.float32),
        ([], np.float64),
        (str, object),
        (bytes, object),
        (object, object),
        (np.bytes_, object),
        (np.dtype(object), object),
        (np.array([], object), object),
        (np.array([], str), object),
    ],
)
def test_required_columns(default: Any, dtype: Any) -> None:
    (values,) = assert_agree(["1", "2"], [default])
    assert values.dtype == dtype
    assert fails(["1", ""], [default]) == "record 1, column 0: required but missing, in ''"
    assert fails('""', [default]) == "record 0, column 0: required but missing, in '\"\"'"


def test_equal_defaults_of_other_types_are_not_confused() -> None:
    results = [decode_csv("", [default])[0] for default in (0, 0.0, -0.0, np.float32(0), np.int8(0), "", "0", b"0")]
    assert [repr(value) for value in results] == [
        *["np.int64(0)", "np.float64(0.0)", "np.float64(-0.0)", "np.float32(0.0)", "np.int8(0)", "b''", "b'0'", "b'0'"]
    ]


def test_a_changed_list_of_defaults_is_seen() -> None:
    defaults: list[Any] = [[1.0]]
    assert decode_csv("", defaults) == (1.0,)
    defaults[0][0] = 2.0
    assert decode_csv("", defaults) == (2.0,)
    defaults[0] = np.array([3], np.int8)
    assert same(decode_csv("", defaults)[0], np.int8(3))
    defaults[0][0] = 4
    assert same(decode_csv("", defaults)[0], np.int8(4))


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        (0.0, -0.0, np.float64(-0.0)),
        (1, 1.0, np.float64(1)),
        (1.0, np.float32(1), np.float32(1)),
        (np.int16(1), np.int8(1), np.int8(1)),
        ("1", b"2", b"2"),
        (["int64"], "x", b"x"),
        (["int64"], ["int32"], b"int32"),
        ([0.0], [-0.0], np.float64(-0.0)),
        ([0.0], 1.0, np.float64(1)),
        (1.0, [2.0], np.float64(2)),
        ((1.0,), [2], np.int64(2)),
        ([np.float32(1)], [np.float32(2)], np.float32(2)),
        ([1], np.array([2], np.int8), np.int8(2)),
    ],
)
@pytest.mark.parametrize("container", [list, tuple])
def test_an_entry_put_in_anothers_place_is_seen(before: Any, after: Any, value: Any, container: Any) -> None:
    defaults = [b"-", before]
    for _ in range(3):
        decode_csv(",", container(defaults))
        decode_csv(",", defaults)
    defaults[1] = after
    for _ in range(3):
        assert same(decode_csv(",", defaults)[1], value)
        assert same(decode_csv(",", container(defaults))[1], value)
    defaults[1] = before
    decode_csv(",", defaults)
    if type(before) is list and type(after) is list:
        before[:] = after
        assert same(decode_csv(",", defaults)[1], value)


def test_a_changed_inner_list_is_seen_whatever_it_becomes() -> None:
    inner: list[Any] = ["int64"]
    defaults = [inner, bytes]
    assert decode_csv(",a", defaults) == decode_csv(",a", defaults) == (b"int64", b"a")
    defaults[0] = "int64"
    assert same(decode_csv("1,a", defaults)[0], np.int64(1))
    defaults[0] = inner
    inner.append("x")
    with pytest.raises(ValueError, match=r"record_defaults\[0\] must hold one default or none, not 2"):
        decode_csv(",a", defaults)
    inner.clear()
    assert same(decode_csv("1,a", defaults)[0], np.float64(1))
    defaults.append(bytes)
    assert decode_csv("1,a,b", defaults) == (1.0, b"a", b"b")


def test_changed_other_arguments_are_seen() -> None:
    defaults, select = [[0], b""], [0, 1]
    assert decode_csv("1,a,b", defaults, select_cols=select) == (1, b"a")
    select[1] = 2
    assert decode_csv("1,a,b", defaults, select_cols=select) == (1, b"b")
    assert fails("1,a,b", defaults) == "record 0: expected 2 fields, got 3, in '1,a,b'"
    assert decode_csv("1;a,b", defaults, ";") == (1, b"a,b")
    assert decode_csv('1,"a"', defaults) == (1, b"a")
    assert decode_csv('1,"a"', defaults, use_quote_delim=False) == (1, b'"a"')
    assert decode_csv("NA,NA", defaults, na_value="NA") == (0, b"")
    assert decode_csv("1,NA", defaults) == (1, b"NA")


def test_threads_with_lists_of_their_own_and_one_that_changes() -> None:
    shared: list[Any] = [[0]]

    def decode(number: int) -> bool:
        own: list[Any] = [[number], np.float32(number)]
        for step in range(300):
            own[0][0] = number + step
            if decode_csv(",", own) != (number + step, number):
                return False
            shared[0][0] = step  # another thread may change it before it is read: any of the values will do
            if not 0 <= decode_csv("", shared)[0] < 300:
                return False
            if decode_csv("", [[step]]) != (step,):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(decode, [1000, 2000, 3000, 4000]))


# Numbers


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_limits(dtype: Any) -> None:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    (values,) = assert_agree([str(low), str(high), " +1 ", "007"], [dtype])
    assert values.tolist() == [low, high, 1, 7]
    assert values.dtype == dtype
    for value in (low - 1, high + 1, 10**30, -(10**30)):
        words = f"record 1, column 0: '{value}' is out of range for {np.dtype(dtype).name}, in '{value}'"
        assert fails(["1", str(value)], [dtype]) == words
        assert fails(str(value), [dtype]) == words.replace("record 1", "record 0")
    assert "is out of range for" in fails("9" * 5000, [dtype])


@pytest.mark.parametrize(
    "value", ["1.0", "1e5", "0x10", "1_0", "abc", " ", "1 2", "\u0661", "1\0", "--1", "nan", "\xa01"]
)
def test_not_an_integer(value: str) -> None:
    words = f"record 2, column 1: {value!r} is not a valid int32, in {'x,' + value!r}"
    assert fails(["a,1", "b,2", "x," + value, "c,?"], [bytes, np.int32]) == words
    assert fails("x," + value, [bytes, [np.int32(1)]]) == words.replace("record 2", "record 0")


@pytest.mark.parametrize("value", ["1_0.5", "0x1p3", "abc", " ", "1,5", "\u0661", "1\0", "1.5f", "\xa01", "\u20031"])
def test_not_a_float(value: str) -> None:
    words = f"record 1, column 0: {value!r} is not a valid float32, in {value!r}"
    assert fails(["1", value], [np.float32], field_delim=";") == words
    assert fails(value, [np.float32], field_delim=";") == words.replace("record 1", "record 0")


def test_float_forms() -> None:
    lines = [" 1.5 ", "\t2", "1e5", "-1E-3", ".5", "5.", "inf", "-Infinity", "nan", "+4", "-0", "0.1"]
    (values,) = assert_agree(lines, [float])
    np.testing.assert_array_equal(values, [1.5, 2, 1e5, -1e-3, 0.5, 5, np.inf, -np.inf, np.nan, 4, 0, 0.1])
    assert math.copysign(1, values[10]) == -1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_out_of_range_become_infinite_or_zero_without_a_warning(dtype: Any) -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        (values,) = assert_agree(["1e400", "-1e400", "1e-400", "1e39", "1e-46", "65519", "65520"], [dtype])
    assert values[:3].tolist() == [np.inf, -np.inf, 0]
    assert values[3] == (1e39 if dtype is np.float64 else np.inf)
    assert values[4] == (1e-46 if dtype is np.float64 else 0)
    assert values[5:].tolist() == ([65504, np.inf] if dtype is np.float16 else [65519, 65520])


def test_columns_of_few_values_and_many_records() -> None:
    fields = ["1.5", "-0", "0", "", "nan", "1e39", " 2 ", "NA"]
    lines = [f"{fields[row % 8]},{row},{row % 2}" for row in range(400)]
    arrays = assert_agree(lines, [[np.float32(7)], float, np.float16], na_value="NA")
    expected = np.array([1.5, -0.0, 0, 7, np.nan, np.inf, 2, 7] * 50, np.float32)
    assert arrays[0].tobytes() == expected.tobytes()
    assert arrays[1].tolist() == list(range(400))
    lines[300] = "1_0,1,1"
    assert fails(lines, [[0.0], float, float], na_value="NA").startswith("record 300, column 0: '1_0' is not a valid")
    lines[300] = ",1,x"
    assert fails(lines, [[0.0], float, float], na_value="NA").startswith("record 300, column 2: 'x' is not a valid")
    assert fails(lines, [float, float, float], na_value="N").startswith("record 3, column 0: required but missing")


@pytest.mark.parametrize("text", ["a_b", "\u00e9", "", "x"])
def test_text_beside_numbers_may_be_anything(text: str) -> None:
    defaults = ["\u00e9_\udcff", [7], [0.5]]
    arrays = assert_agree([f"{text},1,2.5", f"{text},,"], defaults)
    expected = text.encode() or b"\xc3\xa9_\xff"
    assert [array.tolist() for array in arrays] == [[expected, expected], [1, 7], [2.5, 0.5]]
    assert "column 1: '1_0' is not a valid int64" in fails(f"{text},1_0,1", defaults)
    assert "column 2: '\u0661' is not a valid float64" in fails(f"{text},1,\u0661", defaults)


# Fields


def test_quoted_fields() -> None:
    line = b'"a,b","say ""hi""","two\r\nlines","",plain, "x"'
    expected = [b"a,b", b'say "hi"', b"two\r\nlines", b"-", b"plain", b' "x"']
    arrays = assert_agree([line, b"1,2,3,4,5,6"], [bytes, bytes, bytes, b"-", bytes, bytes])
    assert [array[0] for array in arrays] == expected
    assert decode_csv('"1"," 2 "', [int, float]) == (1, 2.0)


def test_quotes_are_ordinary_when_told_so() -> None:
    arrays = assert_agree(['"a,b"', 'c"",d'], [bytes, bytes], use_quote_delim=False)
    assert [array.tolist() for array in arrays] == [[b'"a', b'c""'], [b'b"', b"d"]]
    assert decode_csv('1"2', [[0], [0]], field_delim='"', use_quote_delim=False) == (1, 2)
    assert fails('"a\nb"', [bytes], use_quote_delim=False).startswith("record 0: line break outside quotes, in ")


def test_line_ends_are_ignored() -> None:
    arrays = assert_agree([b"1,a\r\n", b"2,b\n", b"3,c\r", b"4,d", b'5,"e\n"\r\n', b"6,f\r\r\n\n"], [int, bytes])
    assert [array.tolist() for array in arrays] == [[1, 2, 3, 4, 5, 6], [b"a", b"b", b"c", b"d", b"e\n", b"f"]]


@pytest.mark.parametrize("delim", ["\t", ";", "|", " ", "_", "\u00a7"])
def test_other_delimiters(delim: str) -> None:
    lines = [delim.join(["1", f'"a{delim}b"', "2.5"]), delim.join(["2", "c", "3"]), delim.join(["", "d", ""])]
    arrays = assert_agree(lines, [[0], bytes, [0.5]], field_delim=delim)
    assert [array.tolist() for array in arrays] == [[1, 2, 0], [f"a{delim}b".encode(), b"c", b"d"], [2.5, 3.0, 0.5]]
    assert_agree(lines[1:], [[0], bytes, [0.5]], field_delim=delim)


def test_na_value_counts_as_missing() -> None:
    lines = ["NA,1,NA", ",2,", "3,NA,NA ", '"NA",4,x']
    arrays = assert_agree(lines, [[-1], [0.5], b"?"], na_value="NA")
    assert [array.tolist() for array in arrays] == [[-1, -1, 3, -1], [1, 2, 0.5, 4], [b"?", b"?", b"NA ", b"x"]]
    assert assert_agree(["-999", "1_0", "1"], [[0]], na_value="1_0")[0].tolist() == [-999, 0, 1]
    assert assert_agree(["-999", "1"], [[np.nan]], na_value="-999")[0].tolist()[1] == 1
    assert fails(["1", "NA"], [int], na_value="NA") == "record 1, column 0: required but missing, in 'NA'"
    assert fails("NA", [[0]]) == "record 0, column 0: 'NA' is not a valid int64, in 'NA'"


def test_an_empty_record_is_one_empty_field() -> None:
    assert assert_agree(["", "\n", "5"], [[7]])[0].tolist() == [7, 7, 5]
    assert assert_agree(["", '"a"'], [b"x"])[0].tolist() == [b"x", b"a"]
    assert fails(["1,2", ""], [int, int]) == "record 1: expected 2 fields, got 1, in ''"
    assert fails(['"1",2', ""], [int, int]) == "record 1: expected 2 fields, got 1, in ''"


def test_bytes_that_are_not_utf8_come_back_as_they_were() -> None:
    every = bytes(range(1, 256)).replace(b"\n", b"").replace(b"\r", b"").replace(b'"', b"").replace(b",", b"")
    arrays = assert_agree([every + b",1", b'"\xff,\xc3",2', b"\xc3,3", b"\xa9\0,4"], [bytes, int])
    assert arrays[0].tolist() == [every, b"\xff,\xc3", b"\xc3", b"\xa9\0"]
    assert fails([b"\xff,x"], [bytes, int]) == "record 0, column 1: 'x' is not a valid int64, in '\\udcff,x'"
    assert fails(["a", "\ud800"], [bytes]) == "record 1, column 0: '\\ud800' has no UTF-8 form, in '\\ud800'"


# select_cols


def test_select_cols() -> None:
    lines = ["1,a,2.5,x", "2,b,3.5,y"]
    arrays = assert_agree(lines, [bytes, [0.0]], select_cols=[1, 2])
    assert [array.tolist() for array in arrays] == [[b"a", b"b"], [2.5, 3.5]]
    arrays = assert_agree(["1,a", "2,b,3,4", '3,"c"'], [bytes], select_cols=np.array([1]))
    assert arrays[0].tolist() == [b"a", b"b", b"c"]
    assert fails(["1,a,3", "1"], [bytes], select_cols=(1,)) == "record 1: expected at least 2 fields, got 1, in '1'"
    assert fails(["1", "2"], [bytes], select_cols=(1,)) == "record 0: expected at least 2 fields, got 1, in '1'"
    wide = ["1" + ",x" * 20, "2" + ",y" * 3, ",z" * 9]
    arrays = assert_agree(wide, [[0], b""], select_cols=[0, 1])
    assert [array.tolist() for array in arrays] == [[1, 2, 0], [b"x", b"y", b"z"]]
    words = "record 3: expected at least 2 fields, got 1, in '5'"
    assert fails([*wide, "5"], [[0], b""], select_cols=[0, 1]) == words
    words = "record 1, column 2: 'y' is not a valid int64, in 'c,d,y'"
    assert fails(["a,b,1", "c,d,y"], [int], select_cols=[2]) == words


@pytest.mark.parametrize("select_cols", [[1, 0], [0, 0], [-1, 0], [0], [0, 1, 2]])
def test_wrong_select_cols(select_cols: list[int]) -> None:
    with pytest.raises(ValueError, match="select_cols"):
        decode_csv([], [float, float], select_cols=select_cols)


# Errors


def test_wrong_number_of_fields() -> None:
    assert fails("1,2,3", [int, int]) == "record 0: expected 2 fields, got 3, in '1,2,3'"
    assert fails(["1,2", "1"], [int, int]) == "record 1: expected 2 fields, got 1, in '1'"
    assert fails(["1,2", "1,2,3"], [int, int]) == "record 1: expected 2 fields, got 3, in '1,2,3'"
    assert fails(["1", "2"], [int, int]) == "record 0: expected 2 fields, got 1, in '1'"
    assert fails(["1,2,3", "1"], [int, int]) == "record 0: expected 2 fields, got 3, in '1,2,3'"
    ragged = ["a,b", "c,d,e", "f"]  # as many fields in all as three records of two
    assert fails(ragged, [bytes, bytes]) == "record 1: expected 2 fields, got 3, in 'c,d,e'"
    assert fails(ragged, [bytes], select_cols=[1]) == "record 2: expected at least 2 fields, got 1, in 'f'"


def test_bad_quoting() -> None:
    assert fails(["a", '"b'], [bytes]) == "record 1: quoted field without its closing quote, in '\"b'"
    assert fails(['"a', 'b"'], [bytes]) == "record 0: quoted field without its closing quote, in '\"a'"
    assert fails(["x", '"a"b'], [bytes]) == "record 1: quoted field that goes on after its closing quote, in '\"a\"b'"
    assert fails(["a", "b\nc"], [bytes]) == "record 1: line break outside quotes, in 'b\\nc'"
    assert fails("b\rc", [bytes]) == "record 0: line break outside quotes, in 'b\\rc'"


def test_the_first_bad_record_is_named_whatever_is_wrong_with_it() -> None:
    assert fails(["1,1", "1,x", "x,1"], [int, int]).startswith("record 1, column 1: 'x'")
    assert fails(["1,1", "1,x", '"'], [int, int]).startswith("record 1, column 1: 'x'")
    assert fails(["1,1", "1", "x,x"], [int, int]).startswith("record 1: expected 2 fields")
    assert fails(["x,y"], [int, int]).startswith("record 0, column 0: 'x'")


def test_long_records_are_cut_in_messages() -> None:
    words = fails("x" * 1000 + ",1", [int, int])
    assert words.count("x" * 77 + "...") == 2
    assert len(words) < 250


def test_fields_beyond_the_csv_modules_limit() -> None:
    large = "x" * (csv.field_size_limit() + 1)
    assert decode_csv(large, [bytes]) == (large.encode(),)
    assert assert_agree([large, '"a,"'], [bytes])[0].tolist() == [large.encode(), b"a,"]
    assert "csv.field_size_limit() can raise it" in fails(f'"{large}"', [bytes])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"field_delim": ""}, ValueError, "field_delim"),
        ({"field_delim": ",,"}, ValueError, "field_delim"),
        ({"field_delim": "\n"}, ValueError, "field_delim"),
        ({"field_delim": '"'}, ValueError, "field_delim"),
        ({"field_delim": b","}, TypeError, "field_delim must be str"),
        ({"na_value": None}, TypeError, "na_value must be str"),
        ({"record_defaults": []}, ValueError, "at least one column"),
        ({"record_defaults": "int64"}, TypeError, "record_defaults must be a list"),
        ({"record_defaults": [float, [1.0, 2.0]]}, ValueError, r"record_defaults\[1\] must hold one default or none"),
        ({"record_defaults": [bool]}, TypeError, r"record_defaults\[0\] must be a float, integer or text"),
        ({"record_defaults": [True]}, TypeError, "not True"),
        ({"record_defaults": [[None]]}, TypeError, r"not \[None\]"),
        ({"record_defaults": [None]}, TypeError, "not None"),
        ({"record_defaults": [1j]}, TypeError, "not 1j"),
        ({"record_defaults": [2**64]}, TypeError, "not 18446744073709551616"),
        ({"record_defaults": [dict]}, TypeError, "dict"),
        ({"record_defaults": [{}]}, TypeError, r"not \{\}"),
        ({"record_defaults": [np.longdouble]}, TypeError, "longdouble"),
        ({"record_defaults": [np.datetime64]}, TypeError, "datetime64"),
        ({"select_cols": ["0"]}, TypeError, "integer"),
        ({"select_cols": [0.0]}, TypeError, "integer"),
    ],
)
def test_arguments_are_checked_before_the_data(arguments: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        decode_csv(["not", "looked,at"], **{"record_defaults": [float], **arguments})
    assert not isinstance(caught.value, DataError)


@pytest.mark.parametrize("records", [5, None, [1], ["a", None], np.array([1.5]), bytearray(b"1"), {"1": 2}, [["1"]]])
def test_records_that_are_no_text(records: Any) -> None:
    with pytest.raises(TypeError, match="must be bytes"):
        decode_csv(records, [float])


def test_name_is_accepted_and_ignored() -> None:
    assert decode_csv("1", [float], ",", True, "", None, "parse") == (1.0,)


# The parts, for readers of whole files


def test_compiled_columns_survive_copies_and_name_the_place_that_they_are_told() -> None:
    columns = pickle.loads(pickle.dumps(copy.deepcopy(compile_columns([int, b"-"], select_cols=[0, 2]))))
    assert [array.tolist() for array in columns.decode_lines(["1,x,a", "2,y,"])] == [[1, 2], [b"a", b"-"]]
    assert columns.decode_line("1,x,") == (1, b"-")
    with pytest.raises(DataError, match=r"^a.csv line 8, column 0: 'b' is not a valid int64, in 'b,x,y'$"):
        columns.decode_line("b,x,y", "a.csv line 8")
    with pytest.raises(DataError, match=r"^a.csv line 8: expected at least 3 fields, got 1, in '1'$"):
        columns.decode_line("1", "a.csv line 8")
    with pytest.raises(DataError, match=r"^a.csv line 8: quoted field without"):
        columns.decode_line('"', "a.csv line 8")


def test_excluded_columns() -> None:
    columns = compile_columns([int, b"-"], exclude_cols=[0, 2])
    assert [array.tolist() for array in columns.decode_lines(["x,1,y,a", "x,2,y,"])] == [[1, 2], [b"a", b"-"]]
    assert fails_alone(columns, "x,1,y") == "record 0: expected 4 fields, got 3, in 'x,1,y'"
    assert fails_alone(columns, "x,1,y,a,b") == "record 0: expected 4 fields, got 5, in 'x,1,y,a,b'"


def fails_alone(columns: CsvColumns, line: str) -> str:
    with pytest.raises(DataError) as caught:
        columns.decode_line(line)
    return str(caught.value)


@pytest.mark.parametrize("exclude_cols", [[1, 0], [0, 0], [-1], [3], [0, 4]])
def test_wrong_exclude_cols(exclude_cols: list[int]) -> None:
    with pytest.raises(ValueError, match="exclude_cols must be strictly increasing column indexes"):
        compile_columns([float, float], exclude_cols=exclude_cols)


def test_select_cols_and_exclude_cols_are_not_given_together() -> None:
    with pytest.raises(ValueError, match="give select_cols or exclude_cols, not both"):
        compile_columns([float], select_cols=[0], exclude_cols=[1])


def test_the_store_of_compiled_columns_stays_small() -> None:
    from aiodata.formats import csv as module

    for number in range(600):
        assert decode_csv("", [[number]]) == (number,)
    assert len(module._compiled_columns) <= 256


# Against Python's csv module

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from(',;"\r\n _é'), max_size=8)


def written(rows: list[list[Any]], delim: str) -> list[str]:
    lines = []
    for row in rows:
        out = io.StringIO()
        csv.writer(out, delimiter=delim, lineterminator="\r\n").writerow(row)
        lines.append(out.getvalue())
    return lines


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.lists(TEXTS, min_size=3, max_size=3), max_size=6), delim=st.sampled_from(",;\t|é"))
def test_text_written_by_csv_comes_back(rows: list[list[str]], delim: str) -> None:
    arrays = assert_agree(written(rows, delim), [b"", b"", b""], field_delim=delim)
    assert [list(row) for row in zip(*arrays, strict=True)] == [[text.encode() for text in row] for row in rows]


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.floats(),
            st.none() | st.floats(width=32),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.integers(0, 2**64 - 1),
            st.none() | st.integers(-128, 127),
            TEXTS,
        ),
        max_size=6,
    )
)
def test_numbers_written_by_csv_come_back(rows: list[tuple[Any, ...]]) -> None:
    dtypes = [np.float64, np.float32, np.int64, np.uint64, np.int8]
    arrays = assert_agree(written([list(row) for row in rows], ","), [*[[dtype(5)] for dtype in dtypes], b""])
    for array, dtype, column in zip(arrays, dtypes, zip(*rows, strict=True), strict=False):
        assert same(array, np.array([5 if value is None else value for value in column], dtype))


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(st.text('01.-,"\n\r xA_é', max_size=8) | st.binary(max_size=6), max_size=5),
    select=st.none() | st.just([1, 2]),
)
def test_any_lines_decode_or_fail_alone_as_together(lines: list[Any], select: list[int] | None) -> None:
    defaults = [[1.5], b"-"]
    for number, line in enumerate(lines):
        words = None
        try:
            decode_csv(line, defaults, select_cols=select, na_value="A")
        except DataError as error:
            words = str(error).replace("record 0", f"record {number}", 1)
        if words is not None:
            assert fails(lines, defaults, select_cols=select, na_value="A") == words
            return
    assert_agree(lines, defaults, select_cols=select, na_value="A")


def test_real_flights() -> None:
    lines = FLIGHTS.read_bytes().splitlines(keepends=True)
    with FLIGHTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    select = [list(rows[0]).index(name) for name in ("dep_delay", "arr_delay", "carrier")]
    late, later, carrier = assert_agree(lines[1:], [[np.float32(np.nan)], [np.nan], bytes], select_cols=select)
    expected = [[float(row[name] or "nan") for row in rows] for name in ("dep_delay", "arr_delay")]
    assert same(late, np.array(expected[0], np.float32))
    assert same(later, np.array(expected[1]))
    assert np.isnan(later).any()
    assert carrier.tolist() == [row["carrier"].encode() for row in rows]
    words = fails(lines, [[0.0]], select_cols=select[:1])
    assert words.startswith("record 0, column 5: 'dep_delay' is not a valid float64, in 'year,month,day,")
