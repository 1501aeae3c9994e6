"""Word streams against the specification's numbers and a plain model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata import philox
from aiodata.philox import WordStream

EXAMPLE_PAIR = (2985944072, 4132877644)
EXAMPLE_WORDS = [1632911145, 3351202991, 521718116, 340051048, 2363257233, 1129447164]


def model_block(seed: int, seed2: int, number: int) -> list[int]:
    """One Philox4x32-10 block, straight from its definition."""
    c = [number % 2**32, number >> 32, seed2 % 2**32, seed2 % 2**64 >> 32]
    k = [seed % 2**32, seed % 2**64 >> 32]
    for i in range(10):
        if i:
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b % 2**32, (a >> 32) ^ c[3] ^ k[1], a % 2**32]
    return c


def model_words(seed: int, seed2: int, start: int, count: int) -> list[int]:
    first = start // 4
    last = (start + count + 3) // 4
    words = [word for number in range(first, last) for word in model_block(seed, seed2, number)]
    return words[start - 4 * first :][:count]


def test_words_check_vector() -> None:
    expected = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert model_block(0, 0, 0) == expected
    assert WordStream(0, 0).take(4).tolist() == expected
    assert WordStream(0, 0).take(4000)[:4].tolist() == expected
    stream = WordStream(0, 0)
    assert [stream.next_word() for _ in range(4)] == expected


def test_words_worked_examples() -> None:
    assert WordStream(*EXAMPLE_PAIR).take(6).tolist() == EXAMPLE_WORDS
    assert WordStream(87654321, 42).take(4).tolist() == [2985944072, 4132877644, 929418493, 249609589]
    assert WordStream(87654321, 5).take(4).tolist() == [3568415791, 2798973839, 2476249224, 2816106479]
    assert WordStream(87654321, 5, 4 * 256).next_word() == 4280848172
    assert WordStream(87654321, 5, 4 * 512).next_word() == 3233213402
    assert WordStream(87654321, 5, 4 * 768).take(1000)[0] == 1241956412


@pytest.mark.parametrize("pair", [(-1, -2), (2**64 - 1, 2**64 - 2), (-(2**63), 2**63), (2**40 + 3, 2**50 + 9)])
@pytest.mark.parametrize("start", [0, 1, 63, 64, 4 * 2**32 - 270, 4 * 2**32 - 6, 4 * 2**33 + 1, 2**65])
def test_words_wide_seeds_and_far_positions(pair: tuple[int, int], start: int) -> None:
    expected = model_words(*pair, start, 300)
    assert WordStream(*pair, start).take(300).tolist() == expected
    stream = WordStream(*pair, drawn=start)
    assert [stream.next_word() for _ in range(300)] == expected
    assert stream.drawn == start + 300


def test_words_long_stream() -> None:
    stream = WordStream(3, 4)
    words = np.concatenate([stream.take(70_000), stream.take(3)])
    assert words.dtype == np.uint32
    for start in (0, 60, 250, 1270, 5366, 21_750, 38_000, 69_990):
        assert words[start : start + 13].tolist() == model_words(3, 4, start, 13)


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(0, 400),
    takes=st.lists(st.one_of(st.just(-1), st.integers(0, 90), st.sampled_from([255, 256, 700, 5000])), max_size=30),
)
def test_words_any_mixture(start: int, takes: list[int]) -> None:
    stream = WordStream(7, 8, start)
    got: list[int] = []
    for count in takes:
        if count < 0:
            got.append(stream.next_word())
        else:
            got += stream.take(count).tolist()
        assert stream.drawn == start + len(got)
    assert got == WordStream(7, 8).take(start + len(got))[start:].tolist()


def test_words_refuse_negative_counts() -> None:
    with pytest.raises(ValueError, match="negative"):
        WordStream(0, 0, -1)
    with pytest.raises(ValueError, match="-1 words"):
        WordStream(0, 0).take(-1)


def test_blocks_of_many_keys_and_counters() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (6, 50), np.uint64)
    c0, c1, c2, c3, k0, k1 = words
    columns = zip(*philox.philox((c0, c1, c2, c3), (k0, k1)), strict=True)
    for one, got in zip(words.T.tolist(), columns, strict=True):
        number, seed2, seed = (one[i] + (one[i + 1] << 32) for i in (0, 2, 4))
        assert list(got) == model_block(seed, seed2, number)


def test_blocks_with_single_words() -> None:
    zeros = np.zeros(3, np.uint64)
    check = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    for counter, key in (((0, 0, 0, zeros), (0, 0)), ((0, 0, 0, 0), (zeros, 0))):
        assert [word.tolist() for word in philox.philox(counter, key)] == [[word] * 3 for word in check]


def test_public_names() -> None:
    assert philox.__all__ == ["WordStream", "philox"]
