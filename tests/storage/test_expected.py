"""What is expected of a file, cut into requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata.storage.transfer.expected import FORWARD_BYTES, cut, forward

Ranges = list[tuple[int, int]]


@st.composite
def apart(draw: st.DrawFn) -> Ranges:
    """Ranges that do not overlap, in any order."""
    bounds = sorted(draw(st.sets(st.integers(0, 3_000_000), min_size=2, max_size=12)))
    return draw(st.permutations([(low, high) for low, high in zip(bounds[::2], bounds[1::2], strict=False)]))


def joined(ranges: Ranges) -> Ranges:
    found: Ranges = []
    for low, high in sorted(ranges):
        if found and found[-1][1] == low:
            low = found.pop()[0]
        found.append((low, high))
    return found


@given(apart(), st.integers(0, 4_000_000), st.integers(1000, 3_000_000))
def test_parts_are_all_of_it_and_no_more(ranges: Ranges, most: int, chunk: int) -> None:
    cutting = cut(ranges, most, chunk)
    assert joined(list(cutting.parts)) == joined(ranges)
    assert max(high - low for low, high in cutting.parts) <= chunk
    assert 0 < cutting.first <= cutting.most
    assert cutting.most >= most


@given(apart(), st.integers(0, 4_000_000))
def test_each_range_is_cut_in_its_own_order(ranges: Ranges, most: int) -> None:
    parts = cut(ranges, most, 100_000).parts
    for low, high in ranges:
        begins = [begin for begin, _ in parts if low <= begin < high]
        assert begins == sorted(begins)


def test_a_few_bytes_are_asked_for_together() -> None:
    cutting = cut([(50, 60), (0, 20), (20, 40)], 1000, 1000)
    assert cutting.parts == ((0, 40), (50, 60))
    assert (cutting.first, cutting.most) == (50, 1000)


def test_of_many_bytes_each_range_has_a_piece() -> None:
    columns = [(number << 22, (number + 1) << 22) for number in range(20)]
    cutting = cut(columns, 8 << 20, 2 << 20)
    assert list(cutting.parts[:20]) == [(low, low + (1 << 20)) for low, _ in columns]
    assert (cutting.first, cutting.most) == (20 << 20, 20 << 20)


def test_of_very_many_ranges_each_has_a_small_piece() -> None:
    columns = [(number << 22, (number + 1) << 22) for number in range(1000)]
    assert cut(columns, 8 << 20, 2 << 20).parts[0] == (0, 64 << 10)


def test_one_long_range_is_asked_for_in_chunks() -> None:
    cutting = cut([(5, 10 << 20)], 4 << 20, 1 << 20)
    assert cutting.parts[:2] == ((5, 5 + (1 << 20)), (5 + (1 << 20), 5 + (2 << 20)))
    assert (cutting.first, cutting.most) == (1 << 20, 4 << 20)


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (5, 5), (0, 1), (3, FORWARD_BYTES + 3), (3, 2 * FORWARD_BYTES + 9)])
def test_forward_is_all_of_it(begin: int, end: int) -> None:
    assert joined([each for group in forward(begin, end) for each in group]) == ([(begin, end)] if begin < end else [])
