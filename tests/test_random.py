"""Seeds and seed pairs against the specification's numbers."""

from __future__ import annotations

import os
import random as std_random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aiodata import random as aio_random
from aiodata.philox import WordStream
from aiodata.random import PairSource, Seeds, get_inner_seed, get_seed, implicit_seeds, set_seed

MAX31 = 2**31 - 1
EXAMPLE_PAIR = (2985944072, 4132877644)


@pytest.fixture(autouse=True)
def no_global_seed() -> Iterator[None]:
    """Leave every test, and whatever runs after it, without a global seed."""
    set_seed(None)
    yield
    set_seed(None)


# --- seeds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op_seed", "expected"),
    [
        (0, 0),
        (42, 42),
        (MAX31 - 1, MAX31 - 1),
        (MAX31, 0),
        (2**31, 1),
        (-1, MAX31 - 1),
        (-MAX31, 0),
        (2**63 - 1, (2**63 - 1) % MAX31),
        (-(2**63), -(2**63) % MAX31),
        (10**30, 10**30 % MAX31),
        (True, 1),
        (np.int64(-3), MAX31 - 3),
        (np.uint8(200), 200),
    ],
)
def test_seed_of_op_only(op_seed: int, expected: int) -> None:
    pair = get_seed(op_seed)
    assert pair == (87654321, expected)
    assert [type(seed) for seed in pair] == [int, int]


@pytest.mark.parametrize(
    ("global_seed", "op_seed", "expected"),
    [
        (7, 5, (7, 5)),
        (-1, -2, (MAX31 - 1, MAX31 - 2)),
        (2**31, MAX31, (1, 0)),
        (0, 0, (0, MAX31)),
        (MAX31, 0, (0, MAX31)),
        (0, MAX31, (0, MAX31)),
        (-MAX31, 5 * MAX31, (0, MAX31)),
        (0, 1, (0, 1)),
        (1, 0, (1, 0)),
        (10**25, 2**64, (10**25 % MAX31, 2**64 % MAX31)),
        (np.int32(9), np.int64(-1), (9, MAX31 - 1)),
        (False, True, (0, 1)),
    ],
)
def test_seed_of_both(global_seed: int, op_seed: int, expected: tuple[int, int]) -> None:
    set_seed(global_seed)
    assert get_seed(op_seed) == expected


@pytest.mark.parametrize("global_seed", [7, np.int64(7), -5, 2**70, True])
def test_seed_implicit(global_seed: int) -> None:
    generator = std_random.Random(int(global_seed))
    set_seed(global_seed)
    expected = [(int(global_seed) % MAX31, generator.randint(0, MAX31) % MAX31) for _ in range(3)]
    assert get_seed(None) == expected[0]
    assert get_seed(11) == (int(global_seed) % MAX31, 11)  # takes none
    assert [get_seed(None), get_seed(None)] == expected[1:]
    set_seed(global_seed)
    assert get_seed(None) == expected[0]


def test_seed_implicit_worked_example() -> None:
    set_seed(7)
    assert [get_seed(None), get_seed(None)] == [(7, 1390851128), (7, 647892279)]


def test_seed_of_an_inner_node_takes_no_implicit_one() -> None:
    set_seed(7)
    assert get_inner_seed(None) == get_inner_seed(None) == (7, 0)
    assert get_inner_seed(3) == (7, 3)
    implicit = get_seed(None)
    set_seed(7)
    assert get_seed(None) == implicit
    set_seed(0)
    assert get_inner_seed(None) == (0, MAX31)
    set_seed(None)
    assert get_inner_seed(3) == (87654321, 3)
    assert get_inner_seed(None) != get_inner_seed(None)
    with implicit_seeds(9):
        assert get_inner_seed(None) == (9, 0)
        assert get_seed(None) == (9, 0)
        assert get_inner_seed(None) == (9, 0)
        assert get_seed(None) == (9, 1)


def test_seed_entropy() -> None:
    pairs = {get_seed(None) for _ in range(20)}
    assert len(pairs) == 20
    assert all(0 <= seed < 2**63 for pair in pairs for seed in pair)
    set_seed(3)
    set_seed(None)
    assert get_seed(None)[0] != 3
    assert get_seed(1) == (87654321, 1)


@pytest.mark.parametrize("bad", [1.0, np.float64(2), "3", [4]])
def test_seed_refuses_what_is_no_integer(bad: Any) -> None:
    set_seed(5)
    with pytest.raises(TypeError):
        set_seed(bad)
    with pytest.raises(TypeError):
        get_seed(bad)
    assert get_seed(6) == (5, 6)


# --- pair source ------------------------------------------------------------------------------------------------


def test_pairs_that_no_seed_has_made_can_be_told() -> None:
    for _ in range(20):
        fresh = get_seed(None)
        assert all(2**62 <= half < 2**63 for half in fresh)
        assert not PairSource(*fresh, True).seeded
    set_seed(2**40 + 7)
    pairs = [get_seed(None), get_seed(3), get_seed(2**70), get_inner_seed(None)]
    set_seed(None)
    for pair in (*pairs, get_seed(0), get_seed(-1), get_seed(2**70)):
        assert PairSource(*pair, False).seeded


def test_pairs_reshuffling() -> None:
    source = PairSource(87654321, 42, True)
    pairs = [source.draw() for _ in range(40)]
    assert pairs[:2] == [EXAMPLE_PAIR, (929418493, 249609589)]
    words = WordStream(87654321, 42).take(80).tolist()
    assert pairs == list(zip(words[::2], words[1::2], strict=True))
    assert source.drawn == 40


def test_pairs_not_reshuffling() -> None:
    source = PairSource(87654321, 42, False)
    assert [source.draw() for _ in range(3)] == [(87654321, 42)] * 3
    assert source.drawn == 3


def test_pairs_restored() -> None:
    first = PairSource(1, 2, True)
    pairs = [first.draw() for _ in range(9)]
    second = PairSource(5, 6, True)
    second.draw()
    second.seeds, second.drawn = first.seeds, 4
    assert [second.draw() for _ in range(5)] == pairs[4:]
    assert (second.drawn, second.seeds) == (9, (1, 2))


def test_seeds_saved_and_loaded() -> None:
    first = Seeds(1, 2, True)
    pairs = [first.draw() for _ in range(5)]
    second = Seeds(3, 4, True)
    second.load([1, 2, 3])
    assert second.save() == [1, 2, 3]
    assert [second.draw(), second.draw()] == pairs[3:]
    assert second.save() == first.save() == [1, 2, 5]


def test_seeds_restored_from_several_positions_keep_all_draws() -> None:
    seeds, restored = Seeds(3, 4, True), set[int]()
    for _ in range(9):
        seeds.draw()
    seeds.restore(restored, [1, 2, 3])  # the first position of a run counts, whatever was drawn before
    assert seeds.save() == [1, 2, 3]
    seeds.restore(restored, [1, 2, 2])
    assert seeds.save() == [1, 2, 3]
    seeds.restore(restored, [1, 2, 4])
    assert seeds.save() == [1, 2, 4]


def test_public_names() -> None:
    assert aio_random.__all__ == [
        "PairSource",
        "Seeds",
        "get_inner_seed",
        "get_seed",
        "implicit_seeds",
        "seeded",
        "set_seed",
    ]


# --- processes --------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from aiodata import Dataset

names = Dataset.list_files([f"{sys.argv[1]}/*.b", f"{sys.argv[1]}/*.a"], seed=3)
words = Dataset.random(seed=5).take(30)
mixed = Dataset.sample_from_datasets([Dataset.range(50), words.shuffle(9, seed=2)], [0.3, 0.7], seed=1)
classes = Dataset.range(60).rejection_resample(lambda x: x % 2, [0.2, 0.8], seed=4)
print(*names.repeat(2), *words, *mixed.shuffle(20, seed=7).repeat(2), *classes)
"""


def test_seeded_pipelines_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.{'ab'[number % 2]}").touch()
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert len(printed[0].split()) > 250
