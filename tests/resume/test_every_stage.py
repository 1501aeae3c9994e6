"""The contract of exact resume, for every source and transformation by itself, at every element."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import aiodata
from aiodata import Dataset
from tests.programs import failing
from tests.resume.saving import ALL, FACES, along, check_rest, drive, part, relay
from tests.resume.stages import LEFT_OUT, NEEDS, STAGES, awaited, double, few, write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("files"))


def public_stages() -> set[str]:
    """Find the sources and transformations that users can call."""
    bound = {
        name
        for name in dir(Dataset)
        if str(getattr(getattr(Dataset, name), "__module__", "")).startswith(
            ("aiodata.sources.", "aiodata.transforms.")
        )
    }
    values = {name: getattr(aiodata, name) for name in aiodata.__all__}
    classes = {name for name, value in values.items() if isinstance(value, type) and issubclass(value, Dataset)}
    return bound | classes - {"Dataset"}


def test_no_stage_is_forgotten() -> None:
    assert {key.partition(":")[0] for key in STAGES} == public_stages() - LEFT_OUT.keys()


@pytest.mark.parametrize("stage", NEEDS)
def test_stages_of_extras_are_left_out_for_a_reason(stage: str) -> None:
    if stage in LEFT_OUT:
        pytest.skip(LEFT_OUT[stage])
    assert stage in STAGES


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("stage", STAGES)
def test_asking_for_states_does_not_change_the_stream(stage: str, face: str, files: Path) -> None:
    async def work() -> None:
        straight, _ = await part(STAGES[stage](files), face)
        for every in (1, 3):
            found, _ = await along(STAGES[stage](files), face, every)
            check_rest(f"with a state every {every} elements", found, straight)

    drive(face, work())


WAYS = [(0,), (1, 2)]
"""What is read from a state before the next one is saved, and from that: saved again at once, and on the way."""


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("stage", STAGES)
def test_restores_at_every_element(stage: str, face: str, files: Path) -> None:
    """Go on from each state in one of two ways on one face, and in the other way on the other face."""
    make = partial(STAGES[stage], files)

    async def work() -> None:
        straight, states = await along(make(), face)
        assert straight or "nothing" in stage, "the stream itself has lost its elements"
        for number, state in enumerate(states):
            way = WAYS[(number + FACES.index(face)) % 2]
            found = await relay(make, face, state, way)
            check_rest(f"restored before pull {number}, then after {way} more", found, straight[number:])

    drive(face, work())


@pytest.mark.parametrize("stage", ["batch: failing", "interleave: parallel, failing", "shuffle: failing", "prefetch"])
def test_a_state_of_one_face_is_one_of_the_other(stage: str, files: Path) -> None:
    make = partial(STAGES[stage], files)
    for face, other in (FACES, FACES[::-1]):
        straight, states = drive(face, along(make(), face))
        for number, state in enumerate(states):
            found, _ = drive(other, part(make(), other, state))
            check_rest(f"saved {face}, restored {other} before pull {number}", found, straight[number:])


@pytest.mark.parametrize("face", FACES)
def test_without_a_fixed_order_nothing_is_lost_or_repeated(face: str) -> None:
    def make() -> Dataset[Any]:
        ds = Dataset.range(9).interleave(few, 3, num_parallel_calls=3, deterministic=False)
        return ds.map(awaited, num_parallel_calls=3, deterministic=False).prefetch(2)

    async def work() -> list[list[str]]:
        whole, states = await along(make(), face)
        read = [whole[:number] + await relay(make, face, state, (2,)) for number, state in enumerate(states)]
        return [sorted(map(repr, one)) for one in (whole, *read)]

    whole, *read = drive(face, work())
    assert read == [whole] * len(read)


AROUND: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "zip": lambda ds: Dataset.zip(Dataset.range(ALL), ds),
    "zip of rows": lambda ds: Dataset.zip(ds.map(lambda *x: x), Dataset.range(ALL).map(double)),
    "flat_map": lambda ds: Dataset.range(2).flat_map(lambda x: ds),
    "interleave": lambda ds: Dataset.range(3).interleave(lambda x: ds, 2, 3),
    "concatenate": lambda ds: ds.concatenate(ds),
    "repeat": lambda ds: ds.repeat(2),
    "shuffle": lambda ds: ds.shuffle(3, seed=1),
    "enumerate": lambda ds: ds.enumerate(),
    "cache": lambda ds: ds.cache(),
    "take": lambda ds: ds.take(50),
    "skip": lambda ds: ds.skip(2),
    "shard": lambda ds: ds.shard(2, 1),
    "batch": lambda ds: ds.batch(2).unbatch(),
    "filter": lambda ds: ds.enumerate().filter(lambda n, x: bool(n % 3)),
    "prefetch": lambda ds: ds.prefetch(3),
}


def check_within(stage: str, around: str, files: Path, places: Callable[[int], Iterable[int]]) -> None:
    """Restore a stage within another one before the pulls that `places` chooses of so many, and twice each."""

    def make() -> Dataset[Any]:
        return AROUND[around](STAGES[stage](files))

    straight, states = drive("sync", along(make(), "sync"))
    for number in places(len(states)):
        found = drive("sync", relay(make, "sync", states[number], (2,)))
        check_rest(f"within {around}, before pull {number}", found, straight[number:])


def some_places(turn: int, count: int) -> set[int]:
    """Choose the last place and up to two others, which of up to 30 places are all, in the course of the turns."""
    step = -(-count // 2)
    return {*range(turn * step // len(AROUND), count, step), count - 1}


def test_the_turns_choose_all_places() -> None:
    for count in range(1, 31):
        turns = [some_places(turn, count) for turn in range(len(AROUND))]
        assert set().union(*turns) == set(range(count))
        assert max(map(len, turns)) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_restores_within_another_stage(stage: str, files: Path) -> None:
    for turn, around in enumerate(AROUND):
        check_within(stage, around, files, partial(some_places, turn))


@pytest.mark.exhaustive
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("stage", STAGES)
def test_restores_at_every_element_within_another_stage(stage: str, around: str, files: Path) -> None:
    check_within(stage, around, files, range)


@pytest.mark.slow
def test_processes_restore_at_every_element() -> None:
    def make() -> Dataset[Any]:
        return failing(Dataset.range(5), 3).map(abs, num_parallel_calls=2, executor="process")

    straight, states = drive("sync", along(make(), "sync"))
    for number, state in enumerate(states):
        check_rest(f"before pull {number}", drive("sync", part(make(), "sync", state))[0], straight[number:])
