"""The footers of Parquet files, compared with what pyarrow says of them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="the tests write Parquet files")

from pyarrow import parquet  # noqa: E402

from aiodata.formats.parquet_footer import column_ranges, read_footer  # noqa: E402

ROWS = 25
TABLE = {
    "n": list(range(ROWS)),
    "s": [{"text": f"{n % 3}", "odd": {"x": n % 2 == 1}} for n in range(ROWS)],
    "list": [[0.5] * (n % 3) for n in range(ROWS)],
    "map": [[("a", n)] for n in range(ROWS)],
    "s2": ["text"] * ROWS,
}


def written(**options: Any) -> io.BytesIO:
    file = io.BytesIO()
    types: Any = pa.schema(
        {
            "n": pa.int64(),
            "s": pa.struct({"text": pa.string(), "odd": pa.struct({"x": pa.bool_()})}),
            "list": pa.list_(pa.float64()),
            "map": pa.map_(pa.string(), pa.int64()),
            "s2": pa.string(),
        }
    )
    parquet.write_table(pa.table(TABLE, types), file, row_group_size=10, **options)
    return file


def told(file: io.BytesIO, names: list[str] | None, group: int) -> list[tuple[int, int]]:
    """Give what pyarrow says."""
    metadata = parquet.ParquetFile(file).metadata.row_group(group)
    found = []
    for number in range(metadata.num_columns):
        column = metadata.column(number)
        if names is None or any(f"{column.path_in_schema}.".startswith(f"{name}.") for name in names):
            pages = [page for page in (column.dictionary_page_offset, column.data_page_offset) if page]
            found.append((min(pages), min(pages) + column.total_compressed_size))
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "compression": "none"},
        {"write_statistics": False, "store_schema": False},
        {"write_page_index": True, "write_page_checksum": True, "data_page_version": "2.0"},
    ],
)
@pytest.mark.parametrize("names", [None, ["n"], ["s"], ["s.odd", "map"], ["s.odd.x", "s2"], ["none"]])
@pytest.mark.parametrize("groups", [[0, 1, 2], [1], []])
def test_ranges_are_what_pyarrow_says(options: Any, names: list[str] | None, groups: list[int]) -> None:
    file = written(**options)
    footer = read_footer(file)
    assert file.tell() == 0
    assert list(column_ranges(footer, names, groups)) == [told(file, names, group) for group in groups]


def test_very_many_columns() -> None:
    file = io.BytesIO()
    parquet.write_table(pa.table({f"c{number}": [1, 2] for number in range(300)}), file)
    assert list(column_ranges(read_footer(file), None, [0])) == [told(file, None, 0)]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1\xff\xff\xff\xffPAR1", b"PAR1\0\0\0\0PARE", b"x" * 100])
def test_what_is_no_footer(content: bytes) -> None:
    assert read_footer(io.BytesIO(content)) == b""
    assert list(column_ranges(b"", None, [0])) == []


FOOTER = read_footer(written())


@given(st.lists(st.tuples(st.integers(0, len(FOOTER) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_damage_ends_it(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(FOOTER)
    for place, bits in flips:
        damaged[place] ^= bits
    assert len(list(column_ranges(bytes(damaged), None, range(3)))) <= 3


@given(st.integers(0, len(FOOTER)))
def test_cut_anywhere(length: int) -> None:
    found = list(column_ranges(FOOTER[:length], None, range(3)))
    assert found == list(column_ranges(FOOTER, None, range(3)))[: len(found)]


@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    list(column_ranges(content, None, range(3)))
