"""Datasets that only a function knows, and that draw other orders each time they are opened: they go on exactly too."""

from __future__ import annotations

import gc
import weakref
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset
from tests.programs import Boom
from tests.resume.saving import FACES, along, check_rest, drive, part, relay, through_json

if TYPE_CHECKING:
    from collections.abc import Callable


def same(x: Any) -> Any:
    return x


def shuffled(start: int, count: int, *, fused: bool = False) -> Dataset[Any]:
    """Give a dataset with another order in each of its two epochs; a repeat that is not fused draws one pair more."""
    ds = Dataset.range(start, start + count).shuffle(3, seed=1)
    return (ds if fused else ds.map(same)).repeat(2)


def one(fused: bool) -> Dataset[Any]:
    shared = shuffled(0, 4, fused=fused)
    return Dataset.range(3).flat_map(lambda _: shared)


def batches(fused: bool) -> Dataset[Any]:
    """A batch that crosses from one epoch to the next has begun the next before it is given."""
    shared = shuffled(0, 7, fused=fused).batch(3).map(lambda x: x[-1] + 10 * len(x))
    return Dataset.range(3).flat_map(lambda _: shared)


def in_turn(fused: bool) -> Dataset[Any]:
    shared = shuffled(0, 5, fused=fused)
    return Dataset.range(4).interleave(lambda _: shared, cycle_length=2, block_length=3)


def two(fused: bool) -> Dataset[Any]:
    odd, even = shuffled(0, 5, fused=fused), shuffled(10, 3, fused=fused)
    return Dataset.range(5).interleave(lambda x: odd if x % 2 else even, cycle_length=3)


def fresh(fused: bool) -> Dataset[Any]:
    return Dataset.range(3).shuffle(3, seed=5).interleave(lambda x: shuffled(10 * int(x), 4, fused=fused), 2)


def under_epochs(fused: bool) -> Dataset[Any]:
    return one(fused).map(same).repeat(2)


PIPELINES: dict[str, Callable[[bool], Dataset[Any]]] = {
    "flat_map": one,
    "flat_map of batches": batches,
    "interleave": in_turn,
    "interleave of two": two,
    "interleave of fresh ones": fresh,
    "flat_map, repeated": under_epochs,
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", PIPELINES)
def test_goes_on_exactly_at_every_element_and_once_more(name: str, fused: bool, face: str) -> None:
    make = PIPELINES[name]

    async def check() -> None:
        straight, states = await along(make(fused), face)
        assert len({tuple(map(int, straight[at : at + 8])) for at in range(0, len(straight), 8)}) > 1
        for at, state in enumerate(states):
            found, again = await part(make(fused), face, state, 3)
            rest, _ = await part(make(fused), face, again)
            assert list(map(int, found + rest)) == list(map(int, straight[at:])), at

    drive(face, check())


def test_a_dataset_made_for_one_element_is_let_go_with_it() -> None:
    made: list[weakref.ref[Any]] = []

    def make(x: Any) -> Dataset[Any]:
        ds = shuffled(int(x), 2)
        made.append(weakref.ref(ds.plan))
        return ds

    gc.collect()
    gc.disable()
    try:
        with Dataset.range(50).flat_map(make).iterate() as iterator:
            for _ in range(150):
                next(iterator)
            assert sum(plan() is not None for plan in made) <= 2
            assert len(iterator.state_dict()["position"][0]["shared"]) <= 1
    finally:
        gc.enable()


def test_a_failing_function_does_not_keep_the_iterator_alive() -> None:
    def fail(x: Any) -> Dataset[Any]:
        raise Boom(int(x))

    gc.collect()
    gc.disable()
    try:
        for ds in (Dataset.range(3).flat_map(fail), Dataset.range(3).interleave(fail, 2)):
            iterator = ds.iterate()
            with pytest.raises(Boom):
                next(iterator)
            gone = weakref.ref(iterator)
            del iterator
            assert gone() is None
    finally:
        gc.enable()


def test_two_openings_of_a_chain_of_shuffles_go_on_exactly() -> None:
    def make() -> Dataset[Any]:
        ds = Dataset.range(4).shuffle(3, seed=2).shuffle(2, seed=1).repeat()
        return Dataset.sample_from_datasets([ds, ds], seed=3)

    with make().iterate() as iterator:
        straight = [int(x) for x in islice(iterator, 60)]
    with make().iterate() as iterator:
        for at in range(45):
            with make().iterate(through_json(iterator.state_dict())) as restored:
                assert [int(x) for x in islice(restored, 12)] == straight[at : at + 12], at
            next(iterator)


def shuffled_passes() -> Dataset[Any]:
    return Dataset.range(5).shuffle(4, seed=1).repeat(2)


def mixed() -> Dataset[Any]:
    parts = [Dataset.range(5).shuffle(4, seed=1), Dataset.range(100, 112)]
    return Dataset.sample_from_datasets(parts, [0.5, 0.5], seed=2)


def twice(ds: Dataset[Any]) -> Dataset[Any]:
    return Dataset.zip(ds, ds)


OPEN_AT_ONCE: dict[str, Callable[[], Dataset[Any]]] = {
    "windows": lambda: twice(Dataset.range(4).shuffle(4, seed=1).repeat(6).shuffle(5, seed=2)),
    "windows of windows": lambda: twice(shuffled_passes().shuffle(5, seed=2).repeat(2).shuffle(7, seed=9)),
    "sliding": lambda: twice(shuffled_passes().repeat(2).window(5, shift=2).flat_map(lambda window: window)),
    "batches": lambda: twice(shuffled_passes().batch_by_size(5, int).unbatch()),
    "groups": lambda: twice(
        shuffled_passes().group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3).unbatch()
    ),
    "captured": lambda: (lambda ds: Dataset.range(3).interleave(lambda x: ds, 2).shuffle(3, seed=9))(shuffled_passes()),
    "captured, unique": lambda: (
        lambda ds: Dataset.range(3).interleave(lambda x: ds, 2).enumerate().map(lambda n, x: 10 * (n // 4) + x).unique()
    )(shuffled_passes()),
    "mixed with itself": lambda: (lambda ds: Dataset.sample_from_datasets([ds, ds], [0.3, 0.7], seed=3))(
        shuffled_passes().shuffle(3, seed=2)
    ),
    "mixes that have ended": lambda: mixed().repeat(3).map(lambda x: x),
    "mixes, concatenated": lambda: (lambda ds: ds.concatenate(ds).batch(2))(mixed()),
    "chosen": lambda: (
        Dataset.choose_from_datasets(
            [Dataset.range(5).shuffle(3, seed=1), Dataset.range(10, 14)],
            Dataset.range(2).repeat().take(9).shuffle(4, seed=2),
            stop_on_empty_dataset=False,
        )
        .repeat(3)
        .cache()
    ),
    "resampled": lambda: shuffled_passes().repeat(2).rejection_resample(lambda x: x % 2, [0.5, 0.5], seed=4),
}


@pytest.mark.parametrize("name", OPEN_AT_ONCE)
def test_datasets_that_are_open_in_several_places_go_on_exactly(name: str) -> None:
    make = OPEN_AT_ONCE[name]
    straight, states = drive("sync", along(make(), "sync"))
    for number, state in enumerate(states):
        check_rest(f"before pull {number}", drive("sync", relay(make, "sync", state, (2,))), straight[number:])
