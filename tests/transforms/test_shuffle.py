"""`shuffle`: tf.data's order bit for bit, a bounded buffer, and nothing lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.engine.block import Block
from aiodata.engine.position import Origin
from aiodata.engine.run import Run
from aiodata.random import PairSource, get_seed
from aiodata.shuffle_ring import ShuffleRing
from aiodata.transforms import _shuffle_store, _shuffle_window
from tests.programs import (
    Boom,
    assert_same,
    collect,
    counted,
    failing,
    first,
    global_seed,
    i64,
    nested,
    nested_rows,
    outcomes,
    plain,
    repeated,
    to_list,
)
from tests.transforms.blocks import PIECES, Piece, check, dataset_of, outcomes_of, read

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCHS = [[0, 1, 2, 3], [0, 3, 2, 1], [0, 1, 3, 2], [0, 3, 2, 1], [1, 3, 2, 0], [2, 3, 0, 1]]


@pytest.fixture(autouse=True)
def _no_global_seed() -> Iterator[None]:
    with global_seed(None):
        yield


def four() -> Dataset[Any]:
    return Dataset.range(4).shuffle(4, seed=3)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6, 100])
@pytest.mark.parametrize("buffer", [1, 2, 5, 100])
def test_every_element_comes_once(count: int, buffer: int) -> None:
    ds = Dataset.range(count).shuffle(buffer)
    assert_same(sorted(to_list(ds)), i64(*range(count)))
    assert_same(sorted(asyncio.run(collect(ds))), i64(*range(count)))


def test_buffer_of_one_keeps_the_order() -> None:
    assert_same(to_list(Dataset.range(9).shuffle(1)), i64(*range(9)))


def test_worked_example_of_two_passes() -> None:
    passes = repeated(lambda: Dataset.range(6).shuffle(3, seed=42), 2)
    assert passes == [[0, 3, 4, 2, 5, 1], [0, 1, 4, 2, 3, 5]]


def test_without_reshuffling_every_pass_is_the_same() -> None:
    passes = repeated(lambda: Dataset.range(6).shuffle(3, seed=42, reshuffle_each_iteration=False), 3)
    assert passes == [[2, 0, 3, 4, 5, 1]] * 3


def test_six_epochs() -> None:
    assert repeated(four, 6) == EPOCHS


def test_async_passes_have_the_same_order() -> None:
    ds = four()
    assert [plain(asyncio.run(collect(ds))) for _ in range(6)] == EPOCHS


def test_structures_move_whole() -> None:
    assert_same(to_list(nested(6).shuffle(3, seed=42)), nested_rows(0, 3, 4, 2, 5, 1))


def test_directly_repeated_shuffle_wastes_no_order() -> None:
    passes = repeated(lambda: four().repeat(2).batch(2), 2)
    assert passes == [[[0, 1], [2, 3], [0, 3], [2, 1]], [[0, 1], [3, 2], [0, 3], [2, 1]]]


def test_repeat_with_something_between_wastes_one_order() -> None:
    passes = repeated(lambda: four().batch(2).repeat(2), 2)
    assert passes == [[[0, 1], [2, 3], [0, 3], [2, 1]], [[0, 3], [2, 1], [1, 3], [2, 0]]]


def test_repeat_zero_is_empty() -> None:
    assert to_list(four().repeat(0)) == []


def test_endless_repeat_gives_epoch_after_epoch() -> None:
    assert plain(first(four().repeat(), 24)) == [value for epoch in EPOCHS for value in epoch]


def test_iterators_take_orders_as_they_are_made() -> None:
    ds = four()
    with ds.iterate() as one, ds.iterate() as other:
        assert plain(list(other)) == EPOCHS[1]
        assert plain(list(one)) == EPOCHS[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda ds: to_list(ds.take(0)),
        lambda ds: to_list(ds.skip(-1)),
        lambda ds: ds.cardinality(),
        len,
        bool,
        lambda ds: ds.repeat(2).batch(2),
    ],
    ids=["take(0)", "skip(-1)", "cardinality", "len", "bool", "making"],
)
def test_what_opens_no_iterator_takes_no_order(use: Any) -> None:
    ds = four()
    use(ds)
    assert plain(to_list(ds)) == EPOCHS[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda ds: ds.reduce(0, lambda state, x: state + x),
        lambda ds: first(ds, 1),
        lambda ds: to_list(ds.take(2)),
        lambda ds: to_list(ds.map(lambda x: x)),
    ],
    ids=["reduce", "left early", "take", "map"],
)
def test_each_iterator_takes_one_order(use: Any) -> None:
    ds = four()
    use(ds)
    assert plain(to_list(ds)) == EPOCHS[1]


def test_full_cache_takes_no_further_order() -> None:
    ds = four()
    cached = ds.cache()
    assert [plain(to_list(cached)) for _ in range(3)] == [EPOCHS[0]] * 3
    assert plain(to_list(ds)) == EPOCHS[1]


def test_global_seed_gives_implicit_seeds_in_building_order() -> None:
    for _ in range(2):
        aiodata.set_seed(7)
        one, other = Dataset.range(4).shuffle(4).repeat(2), Dataset.range(4).shuffle(4)
        assert [plain(to_list(one)) for _ in range(2)] == [[0, 3, 2, 1, 2, 1, 3, 0], [0, 2, 1, 3, 3, 2, 1, 0]]
        assert sorted(plain(to_list(other))) == [0, 1, 2, 3]


@pytest.mark.parametrize(("seed", "equal"), [(2**31 - 1, 0), (2**31, 1), (-1, 2**31 - 2), (np.int64(5), 5), (True, 1)])
def test_seeds_are_taken_modulo(seed: Any, equal: int) -> None:
    assert_same(to_list(Dataset.range(50).shuffle(50, seed=seed)), to_list(Dataset.range(50).shuffle(50, seed=equal)))


def test_seeds_give_different_orders_without_reshuffling() -> None:
    def passes(seed: int) -> list[Any]:
        return repeated(lambda: Dataset.range(100).shuffle(100, seed, reshuffle_each_iteration=False), 2)

    zero, one = passes(0), passes(1)
    assert zero[0] == zero[1]
    assert one[0] == one[1]
    assert zero[0] != one[0]


def test_without_a_seed_passes_differ_unless_told_not_to() -> None:
    first_pass, second_pass = repeated(lambda: Dataset.range(100).shuffle(100), 2)
    assert first_pass != second_pass
    first_pass, second_pass = repeated(lambda: Dataset.range(100).shuffle(100, reshuffle_each_iteration=False), 2)
    assert first_pass == second_pass


def test_take_and_skip_split_cleanly_without_reshuffling() -> None:
    ds = Dataset.range(10).shuffle(10, seed=1, reshuffle_each_iteration=False)
    for _ in range(2):
        assert sorted(plain(to_list(ds.take(7)) + to_list(ds.skip(7)))) == [*range(10)]


@pytest.mark.parametrize("buffer", [7, 8, 1000, aiodata.UNKNOWN_CARDINALITY])
def test_buffers_that_hold_the_whole_input_give_one_order(buffer: int) -> None:
    ds = Dataset.range(7).filter(lambda x: True)
    assert_same(to_list(ds.shuffle(buffer, seed=4)), to_list(Dataset.range(7).shuffle(7, seed=4)))


@pytest.mark.parametrize("buffer", [0, -1, -3, 2.5, None, "5"])
def test_wrong_buffer_size_is_refused_at_the_call(buffer: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Dataset.range(3).shuffle(buffer)


@pytest.mark.parametrize("seed", [1.0, "1"])
def test_wrong_seed_is_refused_at_the_call(seed: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.range(3).shuffle(3, seed=seed)


@pytest.mark.parametrize("bad", [0, 1, 2, 3, 4])
def test_input_error_surfaces_once_and_the_others_keep_their_order(bad: int) -> None:
    got = outcomes(failing(Dataset.range(5), bad).shuffle(3, seed=9))
    good = Dataset.range(5).filter(lambda x: x != bad)
    assert_same([item for item in got if isinstance(item, Exception)], [Boom(bad)])
    assert_same([item for item in got if not isinstance(item, Exception)], to_list(good.shuffle(3, seed=9)))


@pytest.mark.parametrize("bad", [2, 3])
def test_each_repeated_pass_gives_every_good_element(bad: int) -> None:
    got = [x for x in outcomes(failing(Dataset.range(5), bad).shuffle(3).repeat(3)) if not isinstance(x, Exception)]
    for at in (0, 4, 8):
        assert_same(sorted(got[at : at + 4]), [x for x in i64(*range(5)) if x != bad])


def test_buffer_is_filled_before_the_first_and_topped_up_by_one() -> None:
    ds, seen = counted(Dataset.range(1000))
    with ds.shuffle(10, seed=1).iterate() as iterator:
        for taken in range(1, 20):
            next(iterator)
            assert 9 + taken <= len(seen) <= 10 + taken


def test_order_does_not_depend_on_the_hash_seed() -> None:
    program = "from aiodata import Dataset; print(*Dataset.range(50).shuffle(9, seed=5).repeat(2))"
    orders = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(orders) == 1


def test_cardinality_is_that_of_the_input() -> None:
    assert Dataset.range(5).shuffle(2).cardinality() == 5
    assert Dataset.range(5).repeat().shuffle(2).cardinality() == aiodata.INFINITE_CARDINALITY


# Elements in bulk


def one_by_one(outcomes: list[Any], capacity: int | None) -> list[Any]:
    """Say the order in plain Python: an error comes where it is met, and counts as no element."""
    ring = ShuffleRing(PairSource(*get_seed(5), False).draw(), capacity)
    out: list[Any] = []
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, str):
            out.append(outcome)
            continue
        ring.push(number)
        if ring.full:
            out.append(outcomes[ring.pop()])
    return out + [outcomes[ring.pop()] for _ in range(len(ring))]


def shuffled(pieces: list[Piece], capacity: int | None) -> Dataset[Any]:
    size = aiodata.UNKNOWN_CARDINALITY if capacity is None else capacity
    return dataset_of(pieces).shuffle(size, seed=5, reshuffle_each_iteration=False)


@settings(max_examples=80, deadline=None)
@given(
    pieces=st.lists(PIECES, max_size=7),
    capacity=st.sampled_from([1, 2, 3, 8, 40, None]),
    portion=st.sampled_from([1, 4, 4096]),
    snapshot=st.sampled_from([1, 6, 4096]),
    small=st.sampled_from([0, 3, 64]),
)
def test_any_blocks_give_the_order_places_and_positions_of_single_elements(
    pieces: list[Piece], capacity: int | None, portion: int, snapshot: int, small: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_shuffle_window, "PORTION", portion)
        patch.setattr(_shuffle_window, "SNAPSHOT_LEAST", snapshot)
        patch.setattr(_shuffle_store, "SMALL", small)
        check(lambda: shuffled(pieces, capacity), one_by_one(outcomes_of(pieces), capacity))


@pytest.mark.parametrize("kind", ["list", "columns"])
def test_long_blocks_that_are_computed_stay_so(kind: str) -> None:
    pieces = [Piece(kind, 3000)] * 4 + [Piece(kind, 9000)]
    reading = read(shuffled(pieces, 1000))
    expected = one_by_one(outcomes_of(pieces), 1000)
    assert reading.outcomes == expected
    assert all(reading.computed)
    assert [place() for place in reading.places] == [f"place {x}" for x in expected]
    for number in (0, 1, 5000, 12_345, 20_999):
        assert read(shuffled(pieces, 1000), reading.cursors[number]()).outcomes == expected[number:]


@pytest.mark.parametrize("capacity", [7, 40, None])
def test_rows_that_come_again_are_not_taken_for_those_in_the_window(capacity: int | None) -> None:
    values = np.arange(30) * 10
    size = aiodata.UNKNOWN_CARDINALITY if capacity is None else capacity
    ds = Dataset.from_tensor_slices({"x": values}).repeat(3).shuffle(size, seed=5, reshuffle_each_iteration=False)
    expected = [10 * (number % 30) for number in one_by_one(list(range(90)), capacity)]
    assert [int(element["x"]) for element in ds] == expected
    iterator = ds.iterate()
    for number in range(60):
        assert int(next(iterator)["x"]) == expected[number]
    again = ds.iterate(state=iterator.state_dict())
    assert [int(element["x"]) for element in again] == expected[60:]
    iterator.close()


@pytest.mark.parametrize("kind", ["columns", "columns within others"])
def test_large_rows_are_copied_a_few_at_a_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shuffle_window, "PORTION_BYTES", 24)  # three rows
    ds = shuffled([Piece(kind, 40)], 10)
    run = Run(ds.plan)
    run.stepped = True
    blocks: Any = run.open(ds.plan)
    lengths = []
    found: list[int] = []
    while True:
        try:
            anext(blocks).__await__().send(None)
        except StopIteration as stop:
            lengths.append(stop.value.length)
            found += stop.value.columns.tolist()
        except StopAsyncIteration:
            break
    run.close()
    assert max(lengths) == 3
    assert found == one_by_one(list(range(40)), 10)


def test_rows_in_memory_are_copied_once() -> None:
    values = np.arange(10_000)
    store = _shuffle_store.IndexStore(Block(Origin(int), columns=values[:5], length=5, within=(values, 0)), 100)
    ids = store.add(None, 0, 3, 100)
    values[1] = -1  # seen when it is taken, so nothing was copied before
    assert store.take(ids).tolist() == [0, -1, 2]
    assert store.numbers(ids).tolist() == [100, 101, 102]


def test_elements_are_computed_one_by_one_where_they_are_not_yet() -> None:
    ds, seen = counted(dataset_of([Piece("list", 50), Piece("rows", 50), Piece("list", 50)]))
    assert len(first(ds.shuffle(10, seed=1), 60)) == 60
    assert len(seen) in (69, 70)


def test_it_can_have_a_name_and_keeps_the_spec() -> None:
    ds = nested(3).shuffle(2, name="mixed")
    assert ds.plan.title == "mixed"
    assert ds.element_spec == nested(3).element_spec
