"""State across epochs: the rest of a pass after restoring, and the complete passes that follow it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset, TextLineDataset
from tests.programs import assert_same, counted, failing, global_seed, i64, plain, to_list
from tests.resume.saving import FACES, along, check_rest, drive, part, pull, through_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLLOWING = 2


def add_one(x: Any) -> Any:
    return x + 1


def shuffled(seed: int | None = 5) -> Dataset[Any]:
    return Dataset.range(8).shuffle(3, seed=seed)


def twice(ds: Dataset[Any]) -> Dataset[Any]:
    return Dataset.zip((ds, ds))


def opened_late(x: Any) -> Dataset[Any]:
    return Dataset.range(3 * x, 3 * x + 3)


PROGRAMS: dict[str, Callable[[], Dataset[Any]]] = {
    "shuffle": shuffled,
    "shuffle without a seed": lambda: shuffled(None),
    "shuffle of rows": lambda: Dataset.range(8).map(add_one).shuffle(3, seed=2),
    "shuffle with errors": lambda: failing(Dataset.range(8), 2, 6).shuffle(3, seed=2),
    "shuffle once": lambda: Dataset.range(8).shuffle(3, seed=5, reshuffle_each_iteration=False),
    "shuffle once without a seed": lambda: Dataset.range(8).shuffle(9, reshuffle_each_iteration=False),
    "shuffle.repeat": lambda: shuffled().repeat(2),
    "shuffle.repeat without a seed": lambda: shuffled(None).repeat(2),
    "shuffle.map.repeat": lambda: shuffled().map(add_one).repeat(2),
    "shuffle.take.repeat": lambda: shuffled().take(3).repeat(3),
    "shuffle.batch.repeat.prefetch": lambda: shuffled().batch(3).repeat(2).prefetch(2),
    "shuffle.prefetch.repeat": lambda: shuffled().prefetch(2).repeat(2),
    "repeat.shuffle": lambda: Dataset.range(5).repeat(2).shuffle(4, seed=3),
    "shuffle.repeat.shuffle": lambda: shuffled().repeat(2).shuffle(4, seed=3),
    "two shuffles": lambda: shuffled().map(add_one).shuffle(4, seed=3).map(add_one).repeat(2),
    "zip of itself": lambda: twice(shuffled()),
    "zip of itself, without a seed": lambda: twice(shuffled(None)),
    "zip of itself, repeated": lambda: twice(shuffled().map(add_one)).repeat(2),
    "zip of repeats": lambda: twice(shuffled().repeat(2)),
    "zip of two": lambda: Dataset.zip(shuffled(), Dataset.range(20).shuffle(6, seed=1)).repeat(2),
    "concatenate": lambda: Dataset.range(4).concatenate(shuffled()),
    "concatenate, repeated": lambda: Dataset.range(2).concatenate(shuffled()).repeat(2),
    "concatenate of two": lambda: shuffled().concatenate(Dataset.range(5).shuffle(5, seed=8)),
    "concatenate with itself": lambda: (lambda ds: ds.concatenate(ds))(shuffled()),
    "concatenate with itself, no seed": lambda: (lambda ds: ds.concatenate(ds))(shuffled(None)),
    "zip of concatenates": lambda: (lambda ds: Dataset.zip(ds.skip(4), ds))(Dataset.range(3).concatenate(shuffled())),
    "interleave behind": lambda: shuffled().interleave(opened_late, 2, num_parallel_calls=2),
    "parallel map behind": lambda: shuffled().map(add_one, num_parallel_calls=2).repeat(2),
    "cache": lambda: shuffled().cache(),
    "cache without a seed": lambda: shuffled(None).cache(),
    "cache, repeated": lambda: shuffled().cache().repeat(2),
    "cache of rows, repeated": lambda: shuffled().map(add_one).cache().repeat(2),
    "cache, shuffled behind": lambda: shuffled().cache().shuffle(4, seed=9).repeat(2),
}


def check_passes(make: Callable[[], Dataset[Any]], face: str, passes_before: int, step: int = 1) -> None:
    """Leave a pass at every element; a fresh dataset goes on with it, and with the passes behind it."""

    async def work() -> None:
        number = 0
        while True:
            ds = make()
            for _ in range(passes_before):
                await part(ds, face)
            iterator_part, state = await part(ds, face, None, number)
            if len(iterator_part) < number:
                break
            rest, _ = await part(ds, face, state)
            following = [(await part(ds, face))[0] for _ in range(FOLLOWING)]

            fresh = make()
            check_rest(f"rest from {number}", (await part(fresh, face, state))[0], rest)
            for index, expected in enumerate(following):
                check_rest(f"pass {index} behind, left at {number}", (await part(fresh, face))[0], expected)
            number += step

    drive(face, work())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_rest_and_the_passes_behind_are_those_of_the_saved_dataset(program: str) -> None:
    check_passes(PROGRAMS[program], "sync", 0)


@pytest.mark.parametrize("program", PROGRAMS)
def test_also_when_left_in_a_later_pass(program: str) -> None:
    check_passes(PROGRAMS[program], "async", 2, step=3)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("passes_before", [0, 1])
def test_an_undisturbed_dataset_gives_the_same(program: str, passes_before: int) -> None:
    """Read the pass to its end *without* restoring, then compare: the saved run itself is what counts."""
    ds = PROGRAMS[program]()
    for _ in range(passes_before):
        drive("sync", part(ds, "sync"))
    whole, states = drive("sync", along(ds, "sync"))
    following = [drive("sync", part(ds, "sync"))[0] for _ in range(FOLLOWING)]
    for number, state in enumerate(states):
        fresh = PROGRAMS[program]()
        check_rest(f"rest from {number}", drive("sync", part(fresh, "sync", state))[0], whole[number:])
        for index, expected in enumerate(following):
            found = drive("sync", part(fresh, "sync"))[0]
            check_rest(f"pass {index} behind, left at {number}", found, expected)


def test_a_shuffled_dataset_that_only_a_function_knows_goes_on_within_a_pass() -> None:
    """Its seed generator is in the positions of its readers, but not in the pipeline that a state describes."""

    def make() -> Dataset[Any]:
        inner = shuffled()
        return Dataset.range(3).interleave(lambda x: inner, 2)

    whole, states = drive("sync", along(make(), "sync"))
    for number, state in enumerate(states):
        check_rest(f"rest from {number}", drive("sync", part(make(), "sync", state))[0], whole[number:])


def test_implicit_seeds_of_the_global_one_are_restored() -> None:
    with global_seed(3):
        ds = Dataset.range(9).shuffle(4)
        whole, states = drive("sync", along(ds, "sync"))
        following = to_list(ds)
    other = Dataset.range(9).shuffle(4)
    check_rest("rest", drive("sync", part(other, "sync", states[4]))[0], whole[4:])
    assert_same(to_list(other), following)


@pytest.mark.parametrize("seed", [None, 4])
def test_a_shuffled_listing_goes_on_in_its_order(seed: int | None, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text(f"{number}")
    pattern = f"{tmp_path}/*.txt"
    check_passes(lambda: Dataset.list_files(pattern, seed=seed), "sync", 1)
    check_passes(lambda: Dataset.list_files(pattern, seed=seed).flat_map(TextLineDataset).repeat(2), "async", 0)


def test_cached_epochs_have_the_first_ones_order_after_restoring_too() -> None:
    ds = shuffled().cache().repeat(3)
    whole, states = drive("sync", along(ds, "sync"))
    assert_same(whole, whole[:8] * 3)
    for number in (0, 3, 8, 11, 16, 23, 24):
        fresh = shuffled().cache().repeat(3)
        check_rest(f"from {number}", drive("sync", part(fresh, "sync", states[number]))[0], whole[number:])
    ds = shuffled(None).cache()
    first_pass, first_states = drive("sync", along(ds, "sync"))
    second_pass, second_states = drive("sync", along(ds, "sync"))
    assert_same(second_pass, first_pass)
    for states in (first_states, second_states):
        fresh = shuffled(None).cache()
        assert_same(drive("sync", part(fresh, "sync", states[5]))[0], first_pass[5:])
        assert_same([to_list(fresh), to_list(fresh)], [first_pass, first_pass])


def test_e05_a_part_of_a_cache_repeated() -> None:
    """tensorflow/tensorflow#42773: cache, take, repeat gives the right four elements, from each state too."""

    def make() -> Dataset[Any]:
        return Dataset.range(5).cache().take(2).repeat(2)

    for face in FACES:
        whole, states = drive(face, along(make(), face))
        assert_same(whole, i64(0, 1, 0, 1))
        for number, state in enumerate(states):
            assert_same(drive(face, part(make(), face, state))[0], whole[number:])


def test_f01_the_next_element_after_a_map_is_the_next_one() -> None:
    """huggingface/datasets#8145: restoring after a map must not jump to the next block."""
    with Dataset.range(5000).map(add_one).iterate() as iterator:
        assert len(list(islice(iterator, 200))) == 200
        state = through_json(iterator.state_dict())
    ds, seen = counted(Dataset.range(5000))
    assert_same(drive("sync", part(ds.map(add_one), "sync", None, 1))[0], i64(1))
    with Dataset.range(5000).map(add_one).iterate(state) as iterator:
        assert_same(list(iterator), i64(*range(201, 5001)))
    assert seen == [0]


@pytest.mark.parametrize("make", [lambda: Dataset.range(6).map(add_one), shuffled, lambda: shuffled().cache().batch(2)])
def test_f03_a_state_from_the_end_of_an_epoch_leads_to_a_full_one(make: Callable[[], Dataset[Any]]) -> None:
    """meta-pytorch/data#1437: read all, save, restore, loop again: a full epoch, and the one that is due."""
    ds = make()
    whole, states = drive("sync", along(ds, "sync"))
    behind = to_list(ds)
    assert len(behind) == len(whole) > 0
    for state in states[-2:]:  # the end is not known yet, and known
        fresh = make()
        assert_same(drive("sync", part(fresh, "sync", state))[0], [])
        assert_same(to_list(fresh), behind)


@pytest.mark.parametrize("program", PROGRAMS)
def test_f05_very_early_states(program: str) -> None:
    """meta-pytorch/data#1445: a state from before the first element starts at it, one from behind it at the second."""
    ds = PROGRAMS[program]()
    iterator = ds.iterate()
    try:
        before = through_json(iterator.state_dict())
        first = drive("sync", pull(iterator, "sync", 1))
        after = through_json(iterator.state_dict())
        rest = drive("sync", pull(iterator, "sync"))
    finally:
        iterator.close()
    assert_same(drive("sync", part(PROGRAMS[program](), "sync", before))[0], first + rest)
    assert_same(drive("sync", part(PROGRAMS[program](), "sync", after))[0], rest)


PROGRAM = """
import json, sys
import aiodata

ds = aiodata.Dataset.range(300).map(lambda x: x * 2).shuffle(100, seed=42).batch(3).repeat(2)
state = json.load(sys.stdin)
with ds.iterate(state) as iterator:
    rest = [x.tolist() for x in iterator]
print(json.dumps([rest, [x.tolist() for x in ds]]))
"""


def test_f07_a_shuffle_goes_on_in_another_process() -> None:
    """tensorflow/tensorflow#34020: the same continuation, nothing lost or doubled."""
    ds = Dataset.range(300).map(lambda x: x * 2).shuffle(100, seed=42).batch(3).repeat(2)
    with ds.iterate() as iterator:
        begun = list(islice(iterator, 37))
        state = json.dumps(iterator.state_dict())
        rest = list(iterator)
    assert sorted(x for batch in begun + rest for x in batch.tolist()) == sorted([*range(0, 600, 2)] * 2)
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, input=state, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == [plain(rest), plain(to_list(ds))]
