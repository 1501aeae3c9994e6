"""`split`: parts that never overlap, in any epoch, and together hold everything."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, Options, TextLineDataset
from aiodata.philox import WordStream
from aiodata.transforms._parts import PORTION, Parts, exact_sizes
from tests.programs import (
    Boom,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    failing,
    first,
    global_seed,
    i64,
    nested,
    nested_rows,
    outcomes,
    plain,
    pull_all,
    to_list,
)
from tests.resume.saving import through_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hypothesis.strategies import DrawFn

NUMBERS = list(range(10))


def read(*parts: Dataset[Any]) -> list[list[Any]]:
    """Read the parts, one after the other, as plain lists."""
    return [plain(to_list(part)) for part in parts]


def joined(parts: list[list[Any]]) -> list[Any]:
    return sorted(x for part in parts for x in part)


def rows(count: int) -> Dataset[Any]:
    """Numbers as rows whose number is not known to the stage that reads them."""
    return Dataset.range(count).map(lambda x: x).filter(lambda x: True)


def check_in_every_epoch(parts: tuple[Dataset[Any], ...], everything: list[Any], epochs: int = 3) -> list[list[Any]]:
    """Check that the parts are the same in all epochs, on both faces, and hold everything once."""
    once = read(*parts)
    assert joined(once) == sorted(everything)
    for _ in range(epochs - 1):
        assert read(*parts) == once
    assert [plain(asyncio.run(collect(part))) for part in parts] == once
    return once


# Parts of a fixed order


def test_parts_hold_everything_once() -> None:
    train, test = Dataset.range(10).split([0.7, 0.3], seed=2)
    assert_gives(train, i64(0, 1, 2, 4, 5, 6, 8))
    assert_gives(test, i64(3, 7, 9))


def test_sizes_may_leave_elements_over() -> None:
    parts = read(*Dataset.range(10).split([4, 3], seed=1))
    assert [len(part) for part in parts] == [4, 3]
    assert len(set(joined(parts))) == 7


def test_fractions_may_leave_elements_over() -> None:
    parts = read(*Dataset.range(10).split([0.5, 0.2], seed=1))
    assert [len(part) for part in parts] == [5, 2]
    assert len(set(joined(parts))) == 7


@pytest.mark.parametrize("given", [[1.0], [10], (np.float32(0.5), np.float64(0.5)), np.array([4, 6]), [0.1] * 10])
def test_all_that_are_numbers_are_taken(given: Any) -> None:
    parts = Dataset.range(10).split(given)
    assert len(parts) == len(given)
    assert joined(read(*parts)) == NUMBERS


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_elements(count: int) -> None:
    parts = Dataset.range(count).split([0.5, 0.3, 0.2])
    assert [len(part) for part in parts] == [[0, 0, 0], [1, 0, 0], [1, 1, 0]][count]
    assert joined(read(*parts)) == NUMBERS[:count]


def test_nothing_of_nothing_is_left_for_sizes() -> None:
    with pytest.raises(ValueError, match=r"split: the sizes \[1\] add up to 1, but there are 0 elements"):
        Dataset.range(0).split([1])


def test_structures_are_kept() -> None:
    one, two = nested(9).split([0.5, 0.5], seed=3)
    numbers = [[int(element["id"]) for element in to_list(part)] for part in (one, two)]
    assert joined(numbers) == list(range(9))
    assert_gives(one, nested_rows(*numbers[0]))
    assert_gives(two, nested_rows(*numbers[1]))


def test_rows_and_columns_are_parted_alike() -> None:
    columns = Dataset.range(1000).split([0.7, 0.2], seed=1)
    for other in (Dataset.range(1000).map(lambda x: x), Dataset.range(1000).batch(8, True).unbatch()):
        assert read(*other.split([700, 200], seed=1)) == read(*columns)
    by_themselves = rows(1000).split([0.7, 0.2], seed=1)
    assert read(*Dataset.range(1000).batch(7).unbatch().split([0.7, 0.2], seed=1)) == read(*by_themselves)


def test_one_side_can_be_left_early() -> None:
    one, two = Dataset.range(3).repeat().split([0.5, 0.5], seed=1)
    assert len(first(one, 7) + first(two, 7)) == 14


@given(data=st.data(), count=st.integers(0, 600), seed=st.integers(0, 2**31 - 2), as_rows=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_fractions_of_any_size(data: Any, count: int, seed: int, as_rows: bool) -> None:
    weights = data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=5))
    rest = data.draw(st.integers(0, 30))
    fractions = [weight / (sum(weights) + rest) for weight in weights]
    ds = rows(count) if as_rows else Dataset.range(count)
    parts = read(*ds.split(fractions, seed))
    everything = joined(parts)
    assert len(set(everything)) == len(everything)
    if not rest:
        assert everything == list(range(count))
    if not as_rows:
        sizes = [len(part) for part in parts]
        assert all(abs(size - fraction * count) < 1 for size, fraction in zip(sizes, fractions, strict=True))
    assert all(part == sorted(part) for part in parts)


@st.composite
def sizes_of(draw: DrawFn) -> tuple[int, list[int]]:
    sizes = draw(st.lists(st.integers(1, 200), min_size=1, max_size=4))
    return sum(sizes) + draw(st.integers(0, 100)), sizes


@given(given=sizes_of(), seed=st.integers(0, 2**31 - 2))
@settings(max_examples=30, deadline=None)
def test_any_sizes(given: tuple[int, list[int]], seed: int) -> None:
    count, sizes = given
    parts = Dataset.range(count).split(sizes, seed)
    found = read(*parts)
    assert [len(part) for part in found] == sizes == [len(part) for part in parts]
    assert len(set(joined(found))) == sum(sizes)


# How parts are drawn


@pytest.mark.parametrize(
    ("fractions", "count", "sizes"),
    [
        ([0.7, 0.3], 10, [7, 3]),
        ([0.29, 0.71], 100, [29, 71]),
        ([1 / 3] * 3, 10, [4, 3, 3]),
        ([0.1] * 10, 1000, [100] * 10),
        ([0.9, 0.1], 1, [1, 0]),
        ([0.5, 0.3, 0.2], 11, [6, 3, 2]),
        ([0.7, 0.2], 10, [7, 2]),
        ([0.5, 0.25], 2, [1, 1]),
        ([1.0], 7, [7]),
    ],
)
def test_sizes_are_the_largest_remainders(fractions: list[float], count: int, sizes: list[int]) -> None:
    assert exact_sizes(fractions, count) == sizes


@pytest.mark.parametrize("fractions", [[0.5, 0.5 - 5e-10], [0.5, 0.5 + 5e-10], [0.1] * 10])
def test_fractions_that_almost_add_up_to_one_leave_nothing_over(fractions: list[float]) -> None:
    assert sum(exact_sizes(fractions, 10**13)) == 10**13
    assert len(Dataset.range(10).split(fractions)) == len(fractions)


def test_every_arrangement_is_as_likely() -> None:
    drawn = Counter(tuple(Parts((87654321, seed), 0, [2, 3, 1], []).take(6).tolist()) for seed in range(12_000))
    assert len(drawn) == 60
    assert sum((count - 200) ** 2 / 200 for count in drawn.values()) < 110  # chi square of 59 degrees of freedom


def test_draws_are_a_function_of_the_number() -> None:
    """Draw by the rule itself: two words a number, the first one high, of which 53 bits count."""
    pair, left, expected = (3, 5), [300, 200, 100], []
    stream = WordStream(*pair)
    for total in range(600, 0, -1):
        word = stream.next_word() << 32 | stream.next_word()
        place, part = int((word >> 11) * 2.0**-53 * total), 0
        while place >= left[part]:
            place -= left[part]
            part += 1
        left[part] -= 1
        expected.append(part)
    assert Parts(pair, 0, [300, 200, 100], []).take(600).tolist() == expected


@pytest.mark.parametrize("left", [None, [200, 150, 50]])
def test_drawing_goes_on_from_any_mark(left: list[int] | None) -> None:
    shares = [0.5, 0.25]
    straight = Parts((1, 2), 0, left, shares).take(700).tolist()
    parts = Parts((1, 2), 0, left, shares)
    found: list[int] = []
    for step in (0, 1, 5, PORTION, 3, 0, 300):
        number, places = through_json(parts.mark())
        assert number == len(found)
        assert Parts((1, 2), number, places, shares).take(40).tolist() == straight[len(found) : len(found) + 40]
        if step == 5:
            parts.refill()
        found += parts.take(step).tolist()
    assert found == straight[: len(found)]


def test_elements_beyond_the_known_number_are_in_no_part() -> None:
    parts = Parts((1, 2), 0, [3, 2, 0], [])
    parts.refill()
    assert sorted(parts.take(5).tolist()) == [0, 0, 0, 1, 1]
    assert set(parts.take(9).tolist()) == {-1}
    assert parts.mark() == (14, [0, 0, 0])


def test_shares_of_an_unknown_number_come_out_right() -> None:
    one, two = rows(20_000).split([0.7, 0.1], seed=5)
    found = read(one, two)
    assert abs(len(found[0]) - 14_000) < 300
    assert abs(len(found[1]) - 2_000) < 200
    assert len(set(joined(found))) == len(joined(found))


def test_parts_do_not_depend_on_the_words_of_an_input_with_the_same_seed() -> None:
    one, two = Dataset.random(seed=1).take(20_000).filter(lambda x: True).split([0.5, 0.5], seed=1)
    low, high = (float(np.mean(to_list(part))) for part in (one, two))
    assert abs(low - high) < 2**32 * 0.02


# Nothing changes from epoch to epoch


def test_taking_and_skipping_behind_a_shuffle_mixes_but_splitting_does_not() -> None:
    ds = Dataset.range(10).shuffle(10, seed=1)
    train, test = ds.take(7), ds.skip(7)
    seen = [read(train, test) for _ in range(2)]
    assert {x for epoch in seen for x in epoch[0]} & {x for epoch in seen for x in epoch[1]}

    train, test = Dataset.range(10).shuffle(10, seed=1).split([0.7, 0.3], seed=1)
    seen = [read(train, test) for _ in range(5)]
    assert not {x for epoch in seen for x in epoch[0]} & {x for epoch in seen for x in epoch[1]}
    assert all(joined(epoch) == NUMBERS for epoch in seen)


def is_odd(x: Any) -> Any:
    return np.int32(x % 2)


def several(count: int) -> Dataset[Any]:
    return Dataset.range(count).interleave(lambda x: Dataset.range(10 * x, 10 * x + 3).shuffle(3), 2)


SHUFFLED_ONCE = Dataset.range(4).shuffle(4)
"""A dataset outside, which functions make nothing new of: its orders go on from pass to pass."""

INPUTS: dict[str, Callable[[], Dataset[Any]]] = {
    "shuffle": lambda: Dataset.range(10).shuffle(10),
    "shuffle of rows": lambda: rows(10).shuffle(4),
    "shuffle, repeat": lambda: Dataset.range(5).shuffle(5).repeat(2),
    "shuffle, batch, repeat": lambda: Dataset.range(6).shuffle(6).batch(2).unbatch().repeat(3),
    "shuffle, shuffle": lambda: Dataset.range(10).shuffle(4).shuffle(5),
    "concatenate": lambda: Dataset.range(4).shuffle(4).concatenate(Dataset.range(4, 9).shuffle(5)).repeat(2),
    "itself twice": lambda: (lambda ds: ds.concatenate(ds))(Dataset.range(5).shuffle(5)),
    "sample": lambda: Dataset.sample_from_datasets(
        [Dataset.range(6), Dataset.range(6, 10)], rerandomize_each_iteration=True
    ),
    "resample": lambda: Dataset.range(40).shuffle(40).rejection_resample(is_odd, [0.5, 0.5], [0.5, 0.5]).take(9),
    "resample more": lambda: Dataset.range(90).shuffle(90).rejection_resample(is_odd, [0.3, 0.7]).take(9),
    "resample one class": lambda: Dataset.range(40).shuffle(40).rejection_resample(is_odd, [0.0, 1.0], [0.5, 0.5]),
    "groups": lambda: (
        Dataset.range(12)
        .shuffle(12)
        .group_by_window(lambda x: np.int64(x % 2), lambda key, group: group.shuffle(3), window_size=3)
    ),
    "random_map": lambda: Dataset.range(10).random_map(lambda x, rng: rng.integers(1 << 40)),
    "random_map, parallel": lambda: Dataset.range(10).random_map(lambda x, rng: rng.integers(1 << 40), None, 2),
    "random": lambda: Dataset.random(rerandomize_each_iteration=True).take(10),
    "cache": lambda: Dataset.range(10).shuffle(10).cache(),
    "cache, repeat": lambda: Dataset.range(5).shuffle(5).cache().repeat(2),
    "prefetch": lambda: Dataset.range(10).shuffle(10).prefetch(3),
    "parallel map": lambda: Dataset.range(10).shuffle(10).map(lambda x: x, num_parallel_calls=2),
    "inner shuffles": lambda: several(4),
    "inner shuffles in parallel": lambda: Dataset.range(4).interleave(
        lambda x: Dataset.range(10 * x, 10 * x + 4).shuffle(4), 2, num_parallel_calls=2
    ),
    "inner shuffles in inner datasets": lambda: Dataset.range(2).flat_map(lambda x: several(3)),
    "an inner dataset from outside": lambda: Dataset.range(3).flat_map(lambda x: SHUFFLED_ONCE),
}
each_input = pytest.mark.parametrize("name", INPUTS)


@each_input
@pytest.mark.parametrize("seed", [None, 4])
def test_parts_are_the_same_in_every_epoch(name: str, seed: int | None) -> None:
    ds = INPUTS[name]()
    parts = ds.split([0.5, 0.3, 0.2], seed)
    once = read(*parts)
    to_list(ds)
    assert check_in_every_epoch(parts, joined(once)) == once
    merged = [x for part in once for x in part]
    assert len(merged) == len(to_list(ds))
    if not name.startswith(("random", "resample")):
        assert sorted(merged) == sorted(plain(to_list(ds)))


@each_input
def test_parts_that_are_read_at_once_do_not_disturb_each_other(name: str) -> None:
    ds = INPUTS[name]()
    parts = ds.split([0.5, 0.5], seed=3)
    once = read(*parts)
    iterators = [part.iterate() for part in (*parts, ds, *parts)]
    found: list[list[Any]] = [[] for _ in iterators]
    for _ in range(30):
        for iterator, into in zip(iterators, found, strict=True):
            into += plain([x for x in [next(iterator, None)] if x is not None])
    for iterator in iterators:
        iterator.close()
    assert [found[0], found[1], *found[3:]] == once * 2


@each_input
def test_parts_in_one_pipeline_do_not_disturb_each_other(name: str) -> None:
    one, two = INPUTS[name]().split([0.5, 0.5], seed=3)
    once = read(one, two)
    assert plain(to_list(one.concatenate(two).repeat(2))) == (once[0] + once[1]) * 2
    expected = [list(pair) for pair in zip(*once, strict=False)]
    assert plain(to_list(Dataset.zip(one, two))) == expected
    mixed = Dataset.sample_from_datasets([one, two], seed=1)
    assert sorted(plain(to_list(mixed))) == joined(once)


@each_input
def test_parts_of_parts(name: str) -> None:
    one, two = INPUTS[name]().split([0.6, 0.4], seed=3)
    inner = one.split([0.5, 0.5], seed=3)
    once = check_in_every_epoch(one.split([0.5, 0.5], seed=3), read(one)[0])
    assert once == read(*inner)
    assert joined([*once, *read(two)]) == joined(read(one, two))


def test_parts_have_the_order_that_the_input_would_have_had() -> None:
    def make() -> Dataset[Any]:
        return Dataset.range(20).shuffle(20, seed=1)

    ds = make()
    orders = [plain(to_list(ds)) for _ in range(3)]
    ds = make()
    to_list(ds)
    one, two = ds.split([0.5, 0.5], seed=1)
    for part in read(one, two) * 2:
        assert part == [x for x in orders[1] if x in part]
    assert plain(to_list(ds)) == orders[1]  # the parts have drawn nothing from it
    assert plain(to_list(ds)) == orders[2]


def test_the_epochs_of_a_repeat_inside_differ_as_they_would_have() -> None:
    orders = plain(to_list(Dataset.range(9).shuffle(9, seed=1).repeat(3)))
    one, two = Dataset.range(9).shuffle(9, seed=1).repeat(3).enumerate().split([0.4, 0.6], seed=1)
    numbered = sorted(to_list(one) + to_list(two))
    assert [int(x) for _, x in numbered] == orders
    assert orders[:9] != orders[9:18]


def test_shuffling_behind_a_split_gives_new_orders() -> None:
    train, _ = Dataset.range(10).shuffle(10, seed=1).split([0.7, 0.3], seed=1)
    again = train.shuffle(7, seed=1)
    one, two = read(again)[0], read(again)[0]
    assert one != two
    assert sorted(one) == sorted(two) == sorted(read(train)[0])


def test_a_cache_that_is_full_is_shared() -> None:
    ds = Dataset.range(10).shuffle(10, seed=1).cache()
    order = plain(to_list(ds))
    one, two = ds.split([0.5, 0.5], seed=1)
    for part in read(one, two):
        assert part == [x for x in order if x in part]


def test_a_cache_in_the_input_is_filled_once_for_all_parts() -> None:
    calls: list[int] = []

    def note(x: Any) -> Any:
        calls.append(int(x))
        return x

    one, two = Dataset.range(10).map(note).cache().split([0.5, 0.5], seed=1)
    read(one, two, one, two)
    assert sorted(calls) == NUMBERS


def test_listed_files_are_parted(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text("".join(f"{number}{line}\n" for line in range(4)))
    files = Dataset.list_files(f"{tmp_path}/*.txt")
    parts = files.flat_map(lambda path: TextLineDataset(path).shuffle(4)).split([0.5, 0.5])
    once = [to_list(part) for part in parts]
    assert [to_list(part) for part in parts] == once
    assert sorted(once[0] + once[1]) == sorted(f"{n}{line}".encode() for n in range(6) for line in range(4))


# Seeds


def test_a_seed_fixes_the_parts_in_every_process() -> None:
    code = (
        "import aiodata; parts = aiodata.Dataset.range(30).shuffle(5, seed=2).split([0.5, 0.5], seed=7);"
        "print([[int(x) for x in part] for part in parts])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == read(*Dataset.range(30).shuffle(5, seed=2).split([0.5, 0.5], seed=7))


def test_without_a_seed_splits_differ_and_each_stays() -> None:
    ds = Dataset.range(100)
    splits = [ds.split([0.5, 0.5]) for _ in range(2)]
    assert read(*splits[0]) == read(*splits[0])
    assert read(*splits[0]) != read(*splits[1])


def test_the_global_seed_fixes_parts_without_one() -> None:
    found = []
    for _ in range(2):
        with global_seed(7):
            found.append([read(*Dataset.range(50).split([0.5, 0.5])) for _ in range(2)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_inner_shuffles_with_a_seed_keep_it() -> None:
    def make() -> Dataset[Any]:
        return Dataset.range(3).flat_map(lambda x: Dataset.range(5 * x, 5 * x + 5).shuffle(5, seed=1))

    whole = plain(to_list(make()))
    numbered = to_list(make().enumerate().split([1.0])[0])
    assert [int(x) for _, x in numbered] == whole


# Errors


def test_an_error_counts_and_raises_in_its_own_part_only() -> None:
    good = read(*Dataset.range(10).split([0.7, 0.3], seed=2))
    for part, numbers in zip(failing(Dataset.range(10), 3, 4, 9).split([0.7, 0.3], seed=2), good, strict=True):
        assert_outcomes(part, [Boom(x) if x in (3, 4, 9) else np.int64(x) for x in numbers])


def test_an_error_among_elements_that_are_drawn_by_themselves() -> None:
    good = read(*rows(10).split([0.5, 0.5], seed=2))
    for part, numbers in zip(failing(rows(10), 0, 3, 9).split([0.5, 0.5], seed=2), good, strict=True):
        assert_outcomes(part, [Boom(x) if x in (0, 3, 9) else np.int64(x) for x in numbers])


def test_an_error_behind_a_part_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{n}\n" for n in range(9)))

    def bad(line: bytes) -> Any:
        raise Boom(int(line))

    for part in TextLineDataset(path).split([0.5, 0.5], seed=1):
        for error in outcomes(part.map(bad)):
            assert f"line {error.args[0] + 1}" in error.__notes__[-1]


# Options and orders


def test_an_input_without_a_fixed_order_is_refused() -> None:
    ds = Dataset.range(9)
    for input_ in (
        ds.map(abs, num_parallel_calls=2, deterministic=False),
        ds.batch(2, num_parallel_calls=2, deterministic=False).unbatch(),
        ds.interleave(Dataset.range, 2, num_parallel_calls=2, deterministic=False).filter(bool),
        ds.random_map(lambda x, rng: x, 1, 2, deterministic=False),
    ):
        with pytest.raises(ValueError, match="may give its elements in another order each time"):
            input_.split([0.5])
    assert len(ds.map(abs, deterministic=False).split([0.5])) == 1


def test_an_inner_dataset_without_a_fixed_order_fails() -> None:
    ds = Dataset.range(2).flat_map(lambda x: Dataset.range(3).map(abs, num_parallel_calls=2, deterministic=False))
    assert_outcomes(ds.split([1.0])[0], [ValueError, ValueError])


async def backwards(x: Any) -> Any:
    for _ in range(20 - int(x)):
        await asyncio.sleep(0)
    return x


def test_the_input_keeps_its_order_whatever_the_options_say() -> None:
    def make(ds: Dataset[Any]) -> Dataset[Any]:
        return ds.map(backwards, num_parallel_calls=4).with_options(Options(deterministic=False))

    assert plain(to_list(make(Dataset.range(20)))) != list(range(20))
    parts = make(Dataset.range(20)).split([0.5, 0.5], seed=1)
    once = check_in_every_epoch(parts, list(range(20)))
    assert all(part == sorted(part) for part in once)


# The description


def test_cardinalities() -> None:
    ds = Dataset.range(10)
    assert [part.cardinality() for part in ds.split([0.7, 0.2])] == [7, 2]
    assert [part.cardinality() for part in ds.split([7, 2])] == [7, 2]
    assert [part.cardinality() for part in rows(9).split([0.7, 0.2])] == [UNKNOWN_CARDINALITY] * 2
    assert [part.cardinality() for part in ds.repeat().split([0.7])] == [INFINITE_CARDINALITY]


def test_the_description() -> None:
    ds = Dataset.range(10)
    one, two = ds.split([0.7, 0.3], seed=5, name="halves")
    assert one.plan.label == "split(0 of [0.7, 0.3], seed=5)"
    assert two.plan.label == "split(1 of [0.7, 0.3], seed=5)"
    assert one.plan.title == "halves"
    assert ds.split([3])[0].plan.label == "split(0 of [3])"
    assert one.element_spec == ds.element_spec


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ([], ValueError, "split: fractions_or_sizes is empty"),
        (0.5, TypeError, "split: fractions_or_sizes must be a list of numbers, not float"),
        ("ab", TypeError, "not str"),
        ({0.5: 1}, TypeError, "not dict"),
        ([1, 0.5], TypeError, r"split: give fractions or sizes, not both: \[1, 0.5\]"),
        ([True], TypeError, "split: each size must be an integer, not bool"),
        (["a"], TypeError, "split: each size must be an integer, not str"),
        ([0], ValueError, "split: each size must be at least 1, not 0"),
        ([-1, 5], ValueError, "split: each size must be at least 1, not -1"),
        ([0.5, 0.0], ValueError, "split: fractions must be above 0, not 0.0"),
        ([-0.1, 0.5], ValueError, "split: fractions must be above 0, not -0.1"),
        ([float("nan")], ValueError, "split: fractions must be above 0, not nan"),
        ([0.7, 0.4], ValueError, "split: fractions must add up to at most 1"),
        ([float("inf")], ValueError, "split: fractions must add up to at most 1"),
        ([8, 3], ValueError, r"split: the sizes \[8, 3\] add up to 11, but there are 10 elements"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(given: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        Dataset.range(10).split(given)
    with pytest.raises(TypeError):
        Dataset.range(10).split([0.5], seed=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("ds", [rows(9), Dataset.range(3).repeat()])
def test_sizes_need_a_known_number(ds: Dataset[Any]) -> None:
    with pytest.raises(ValueError, match=r"split: sizes need a known number of elements.*assert_cardinality"):
        ds.split([3])


# Resuming


@each_input
def test_a_state_goes_on_in_a_dataset_with_other_random_seeds(name: str) -> None:
    """A split without seeds, made anew as another process would make it, gives the saved one's elements."""
    for number in range(2):
        part = INPUTS[name]().split([0.6, 0.4])[number]
        with part.iterate() as iterator:
            whole = pull_all(iterator)
        for taken in range(len(whole) + 1):
            with part.iterate() as iterator:
                [next(iterator) for _ in range(taken)]
                state = through_json(iterator.state_dict())
            parts = INPUTS[name]().split([0.6, 0.4])
            with parts[number].iterate(state) as iterator:
                found = pull_all(iterator)
            if "outside" not in name:  # whose seeds a state cannot know of
                assert_same(found, whole[taken:])
            if taken == 0:
                assert_same(to_list(parts[number]), found)


def test_restoring_a_part_leaves_the_input_alone() -> None:
    ds = Dataset.range(9).shuffle(9, seed=1)
    orders = [plain(to_list(ds)) for _ in range(3)]
    ds = Dataset.range(9).shuffle(9, seed=1)
    part = ds.split([0.5, 0.5], seed=1)[0]
    with part.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    assert plain(to_list(ds)) == orders[0]
    with part.iterate(state) as iterator:
        assert plain(to_list(ds)) == orders[1]
        rest = list(iterator)
    assert plain(to_list(ds)) == orders[2]
    assert_same(rest, to_list(part)[1:])


def test_the_parts_of_a_restored_split_fit_each_other() -> None:
    one = Dataset.range(40).shuffle(40).split([0.5, 0.5])[0]
    with one.iterate() as iterator:
        next(iterator)
        state = through_json(iterator.state_dict())
    whole = plain(to_list(one))
    again = Dataset.range(40).shuffle(40).split([0.5, 0.5])
    with again[0].iterate(state) as iterator:
        assert plain(list(iterator)) == whole[1:]
    assert joined(read(*again)) == list(range(40))
    assert read(again[0])[0] == whole


def test_a_state_of_one_part_is_not_one_of_another() -> None:
    one, two = Dataset.range(9).split([0.5, 0.5], seed=1)
    with one.iterate() as iterator:
        state = iterator.state_dict()
    with pytest.raises(aiodata.errors.StateError, match="stage 1 was split"):
        two.iterate(state)


@pytest.mark.parametrize("how", [[0.5, 0.5], [1, 1]])
def test_what_an_error_makes_more_than_is_known_is_in_the_last_part(how: Any) -> None:
    ds = failing(Dataset.range(4), 0).batch(2)  # an error, then [1, 2] and [3]; two are known
    found = [outcomes(part) for part in ds.split(how, seed=1)]
    assert sum(map(len, found)) == 3
    assert found[1][-1].tolist() == [3]


def test_datasets_that_map_makes_do_not_overlap() -> None:
    def decade(i: Any) -> Dataset[Any]:
        return Dataset.range(int(i) * 10, int(i) * 10 + 10).shuffle(10)

    def same(ds: Any) -> Any:
        return ds

    for ds in (
        Dataset.range(10).map(decade).flat_map(same),
        Dataset.range(10).map(decade, num_parallel_calls=2).interleave(same, 3),
        Dataset.range(100).window(10).map(lambda window: window.shuffle(10)).flat_map(same),
    ):
        for _ in range(2):
            one, other = ({int(x) for x in to_list(part)} for part in ds.split([0.5, 0.5], seed=1))
            assert one.isdisjoint(other)
            assert one | other == set(range(100))
        first, _ = ds.split([0.5, 0.5], seed=1)
        assert sorted(map(int, to_list(first))) == sorted(map(int, to_list(first)))
