"""The CSV splitter: the records that Python's csv module finds, whatever the pieces are, and exact sizes and lines."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aiodata.engine.block import Failure
from aiodata.errors import DataError
from aiodata.formats import csv_records
from aiodata.formats.csv import compile_columns
from aiodata.formats.csv_records import CsvRecords
from tests.programs import same

TWO = compile_columns([b"", b""])


class Bad:
    """Stands for an error in a record's place."""

    def __repr__(self) -> str:
        return "BAD"


BAD = Bad()


def rows_of(cut: Any) -> list[Any]:
    """Give the elements of a cut."""
    if cut.elements is None:
        return list(zip(*cut.columns, strict=True))
    return [BAD if isinstance(element, Failure) else element for element in cut.elements]


def split(content: bytes, size: int, columns: Any = TWO, header: bool = False) -> list[tuple[int, Any]]:
    """Feed pieces of a size, and give each record with the line that it begins at."""
    splitter = CsvRecords(columns, header, "a.csv", 0, 1)
    cuts = [cut for at in range(0, len(content), size) for cut in splitter.feed(content[at : at + size])]
    before = sum(cut.size for cut in cuts)
    assert before <= len(content)
    cuts += splitter.finish()
    found: list[tuple[int, Any]] = []
    line = 1
    for cut in cuts:
        rows = rows_of(cut)
        assert len(rows) == cut.length
        begins = cut.begins if cut.begins is not None else range(len(rows))
        found += [(line + begin, row) for begin, row in zip(begins, rows, strict=True)]
        for begin, element in zip(begins, cut.elements or [], strict=False):
            if isinstance(element, Failure):
                assert str(element.exception).startswith(f"a.csv line {line + begin}")
        line += cut.numbers
    return found


def by_csv(content: bytes, width: int = 2, delim: str = ",", quoting: bool = True) -> list[tuple[int, Any]]:
    """Do the same with the csv module: where it is lenient it tells where records end, strict which are bad."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    options: Any = {"delimiter": delim, "quoting": csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE}
    lines = list(io.StringIO(text, newline=""))
    rows = csv.reader(lines, **options)
    found: list[tuple[int, Any]] = []
    begin = 0
    for row in rows:
        value: Any = tuple([field.encode("utf-8", "surrogateescape") for field in row or [""]])
        try:
            list(csv.reader(lines[begin : rows.line_num], strict=True, **options))
        except csv.Error:
            value = BAD
        found.append((begin + 1, value if value is BAD or len(value) == width else BAD))
        begin = rows.line_num
    return found


CONTENT = st.lists(
    st.sampled_from(
        [b",", b'"', b'""', b"\n", b"\r\n", b"\r", b"a", b"b,c\n", b'"x,\n"', b'"x"', b"\xc3\xa9", b"\xff", b"\0"]
    ),
    max_size=30,
).map(b"".join)


@settings(max_examples=500, deadline=None)
@given(CONTENT, st.integers(1, 64), st.sampled_from([1, 7, 30, 1 << 17]))
@example(b'"a\r\nb"\r\n,2', 1, 1 << 17)
@example(b'a,"b', 3, 1 << 17)
@example(b'"a"b,"c\nd"\n', 4, 1)
@example(b'a"b,c\n"a""b",c\n', 4, 1)
@example(b'\xef\xbb\xbf"a",b', 1, 1)
def test_the_records_of_the_csv_module(content: bytes, size: int, block: int) -> None:
    before = csv_records.BLOCK_BYTES
    csv_records.BLOCK_BYTES = block
    try:
        assert split(content, size) == by_csv(content)
    finally:
        csv_records.BLOCK_BYTES = before


@settings(max_examples=200, deadline=None)
@given(CONTENT, st.integers(1, 64))
def test_the_records_of_the_csv_module_without_quoting(content: bytes, size: int) -> None:
    columns = compile_columns([b"", b""], use_quote_delim=False)
    assert split(content, size, columns) == by_csv(content, quoting=False)


@settings(max_examples=200, deadline=None)
@given(CONTENT, st.integers(1, 64), st.sampled_from(["§", ";", "|", "]", "^", "\\", "-", " "]))
def test_the_records_of_the_csv_module_with_other_delimiters(content: bytes, size: int, delim: str) -> None:
    content = content.replace(b",", delim.encode())
    assert split(content, size, compile_columns([b"", b""], delim)) == by_csv(content, delim=delim)


NUMBERS = st.one_of(
    st.integers(-(10**10), 10**10).map(str),
    st.floats().map(repr),
    st.decimals(-(10**6), 10**6, places=3, allow_nan=False).map(str),
    st.sampled_from(
        ["", "-", " 1", "1 ", "+1", "1_0", "-0", "0.0", "1e3", ".5", "5.", "NA", "\u0661", "\x1c1", "7", "300"]
    ),
)


@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8),
    dtypes=st.tuples(*[st.sampled_from("efdbhilqBHILQO")] * 3),
    options=st.sampled_from([{}, {"na_value": "NA"}, {"na_value": "7"}, {"na_value": "300"}]),
    quote=st.sampled_from(["", '"']),
    required=st.booleans(),
)
def test_blocks_are_decoded_as_their_records_are(
    rows: Any, dtypes: Any, options: Any, quote: str, required: bool
) -> None:
    """The fast way must give what decoding each record alone gives, in type, dtype and value."""
    defaults: list[Any] = [
        np.dtype(code) if required else (b"-" if code == "O" else np.ones(1, code)) for code in dtypes
    ]
    columns = compile_columns(defaults, **options)
    lines = [",".join([f"{quote}{field}{quote}" for field in row]) for row in rows]
    expected: list[Any] = []
    for line in lines:
        try:
            expected.append(columns.decode_line(line))
        except DataError:
            expected.append(BAD)
    found = [row for _, row in split("\n".join(lines).encode(), 1 << 20, columns)]
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert row is other if other is BAD else same(row, other), (row, other)


# What stands where


def test_lines_are_counted_through_quotes() -> None:
    content = b'a,b\r\n"1\n2\r\n3\r4",x\r\n\r\ny,z\r"\n",\n'
    assert split(content, 5) == [
        (1, (b"a", b"b")),
        (2, (b"1\n2\r\n3\r4", b"x")),
        (6, BAD),
        (7, (b"y", b"z")),
        (8, (b"\n", b"")),
    ]


@pytest.mark.parametrize("size", [*range(1, 17), 100])
def test_cuts_take_up_the_content(size: int) -> None:
    content = b'\xef\xbb\xbfn,m\r\n1,"a\r\nb"\r\n2,c\r"q",\xc3\xa9\r\nbad\r\n3,d'
    splitter = CsvRecords(TWO, True, "a.csv", 0, 1)
    offset, line = 0, 1
    starts = {0: 1, 8: 2, 18: 4, 22: 5, 30: 6, 35: 7}
    for at in range(0, len(content), size):
        for cut in splitter.feed(content[at : at + size]):
            assert starts[offset] == line
            again = CsvRecords(TWO, True, "a.csv", offset, line)
            rest = [*again.feed(content[offset:]), *again.finish()]
            assert [row for other in rest for row in rows_of(other)][: cut.length] == rows_of(cut)
            offset += cut.size
            line += cut.numbers
    assert starts[offset] == line


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", [b"a", b'"a"', b'"a\nb"', b'"a,""b"'])
def test_the_byte_order_mark_is_no_part_of_the_first_field(size: int, mark: bytes, name: bytes) -> None:
    content = mark + name + b",b\n1,2\n"
    (first,) = next(csv.reader(io.StringIO(name.decode(), newline="")))
    lines = 1 + name.count(b"\n")
    assert split(content, size) == [(1, (first.encode(), b"b")), (1 + lines, (b"1", b"2"))]
    assert split(content, size, header=True) == [(1 + lines, (b"1", b"2"))]


def test_the_mark_is_text_anywhere_else() -> None:
    assert split(b"a,b\n\xef\xbb\xbfc,d", 4) == [(1, (b"a", b"b")), (2, (b"\xef\xbb\xbfc", b"d"))]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_nothing_is_no_record(content: bytes) -> None:
    assert split(content, 2) == []
    with pytest.raises(DataError, match=r"^a.csv: the file is empty, but should begin with a header$"):
        split(content, 2, header=True)


@pytest.mark.parametrize("content", [b"a,b", b"a,b\n", b"\n", b"\r", b'"a\n",b\r\n'])
def test_a_header_alone(content: bytes) -> None:
    for size in range(1, 5):
        assert split(content, size, header=True) == []


def test_a_damaged_header_ends_the_file() -> None:
    with pytest.raises(DataError, match=r"^a.csv line 1: quoted field that goes on after its closing quote, in "):
        split(b'"a"b,c\n1,2\n', 3, header=True)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_quote_that_is_not_closed_is_one_error(size: int) -> None:
    splitter = CsvRecords(TWO, False, "a.csv", 0, 1)
    content = b'1,2\n"3,4\n5,6\n'
    cuts = [cut for at in range(0, len(content), size) for cut in splitter.feed(content[at : at + size])]
    cuts += splitter.finish()
    (failure,) = cuts[-1].elements or []
    assert str(failure.exception) == "a.csv line 2: quoted field without its closing quote, in '\"3,4\\n5,6'"
    assert [row for cut in cuts for row in rows_of(cut)] == [(b"1", b"2"), BAD]


def test_a_record_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LARGEST_RECORD", 1000)
    for begin in (b'1,2\n"', b"1,2\n"):
        splitter = CsvRecords(TWO, False, "a.csv", 0, 1)
        assert [row for cut in splitter.feed(begin) for row in rows_of(cut)] == [(b"1", b"2")]
        for _ in range(10):
            assert list(splitter.feed(b"x" * 101)) == []
        with pytest.raises(DataError, match=r"^a.csv line 2: no record ends within 1000 bytes; "):
            list(splitter.feed(b"x"))


def test_an_open_quote_is_not_looked_for_in_every_piece() -> None:
    splitter = CsvRecords(TWO, False, "a.csv", 0, 1)
    looked = 0
    original = splitter._split

    def counting(block: bytes) -> Any:
        nonlocal looked
        looked += len(block)
        return original(block)

    splitter._split = counting  # type: ignore[method-assign]
    pieces = [b'"', *[b'""\n'] * 20_000]
    for piece in pieces:
        assert list(splitter.feed(piece)) == []
    assert looked < 20 * 60_001
    (cut,) = [*splitter.feed(b'",x\n'), *splitter.finish()]
    assert rows_of(cut) == [(b'"\n' * 20_000, b"x")]


@pytest.mark.parametrize("size", [1000, 4096, 1 << 20])
def test_long_records(size: int) -> None:
    """Records that are looked at in several parts, or take up several blocks."""
    fields = [f'"{number}\n,""x"""' if number % 3 else f'{number}"' for number in range(2000)]
    content = (",".join(fields) + "\r\n").encode() * 2
    expected = by_csv(content, 2000)
    assert [len(row) for _, row in expected] == [2000, 2000]
    assert split(content, size, compile_columns([b""] * 2000)) == expected
    many = [*[b"x" * 100_000] * 3, b'"a\n"', b"y" * 100_000, b'"%b"' % (b"\n" * 100_000)]
    content = b"".join([b"%b,%b,%b,%b\n" % (one, one, one, one) for one in many])
    assert split(content, size, compile_columns([b""] * 4)) == by_csv(content, 4)


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_fields_beyond_the_csv_modules_limit(size: int) -> None:
    large = b"x" * (csv.field_size_limit() + 1)
    content = b'%b,a\n"%b",b\n"c",%b\n"%b",d\n' % (large, large, large, large[2:])
    expected: list[Any] = [(1, (large, b"a")), (2, BAD), (3, BAD), (4, (large[2:], b"d"))]
    assert split(content, size) == expected
    assert [row for line in content.splitlines() for _, row in split(line, size)] == [row for _, row in expected]
