"""Shards: each element in exactly one of them, wherever they are parted, and states that stay with their shard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiodata import Dataset, TextLineDataset
from aiodata.errors import StateError
from tests.programs import plain, to_list
from tests.resume.saving import FACES, drive, part

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = 5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    for number in range(FILES):
        (folder / f"{number}.txt").write_text("".join(f"{100 * number + line}\n" for line in range(7 * number % 9)))
    return str(folder / "*.txt")


def lines(path: Any) -> Dataset[Any]:
    return TextLineDataset(path).map(int)


def several(x: Any) -> Dataset[Any]:
    return Dataset.range(1000 * x, 1000 * x + x % 4)


def negative(x: Any) -> Any:
    return -x


SOURCES: dict[str, Callable[[str, int], Dataset[Any]]] = {
    "range": lambda _, n: Dataset.range(n),
    "rows": lambda _, n: Dataset.range(n).map(negative),
    "slices": lambda _, n: Dataset.from_tensor_slices(np.arange(n) * 3),
    "lines": lambda files, _: Dataset.list_files(files, seed=1).flat_map(lines),
    "interleaved lines": lambda files, n: Dataset.list_files(files, seed=n).interleave(
        lines, 2 + n % 3, 2, num_parallel_calls=1 + n % 2
    ),
}
STAGES: dict[str, Callable[[Dataset[Any], int], Dataset[Any]]] = {
    "map": lambda ds, _: ds.map(negative),
    "parallel map": lambda ds, n: ds.map(negative, num_parallel_calls=n),
    "shuffle": lambda ds, n: ds.shuffle(3 * n, seed=n),
    "shuffle once": lambda ds, n: ds.shuffle(n, seed=n, reshuffle_each_iteration=False),
    "interleave": lambda ds, n: ds.map(abs).map(lambda x: x % 50).interleave(several, n, 2),
    "parallel interleave": lambda ds, n: (
        ds.map(abs).map(lambda x: x % 50).interleave(several, n + 1, num_parallel_calls=2)
    ),
    "batch": lambda ds, n: ds.batch(n).unbatch(),
    "repeat": lambda ds, n: ds.repeat(n),
    "prefetch": lambda ds, n: ds.prefetch(n),
    "filter": lambda ds, n: ds.filter(lambda x: bool(x % (n + 1))),
}
CHAINS = {
    "source": st.tuples(st.sampled_from(sorted(SOURCES)), st.integers(0, 40)),
    "before": st.lists(st.tuples(st.sampled_from(sorted(STAGES)), st.integers(1, 5)), max_size=3),
    "after": st.lists(st.tuples(st.sampled_from(sorted(STAGES)), st.integers(1, 5)), max_size=3),
    "shards": st.integers(1, 5),
    "batch": st.none() | st.integers(1, 4),
    "stop": st.integers(0, 50),
    "face": st.sampled_from(FACES),
}


def chain(
    files: str, source: Any, before: Any, shard: tuple[int, int], after: Any, batch: int | None = None
) -> Dataset[Any]:
    ds = SOURCES[source[0]](files, source[1])
    for name, n in before:
        ds = STAGES[name](ds, n)
    ds = ds.shard(*shard)
    for name, n in after:
        ds = STAGES[name](ds, n)
    return ds if batch is None else ds.batch(batch)


def elements(given: list[Any], batched: bool) -> list[int]:
    return [int(x) for element in given for x in (element if batched else [element])]


@given(**CHAINS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_the_shards_together_hold_each_element_once_also_when_each_is_left_and_picked_up(
    source: Any, before: Any, after: Any, shards: int, batch: int | None, stop: int, face: str, files: str
) -> None:
    """A stage behind the shards changes each element for itself, so it matters not whose shard it is in."""

    async def work() -> list[int]:
        found: list[Any] = []
        for index in range(shards):
            make = partial(chain, files, source, before, (shards, index), after, batch)
            begun, state = await part(make(), face, None, stop)
            found += begun + (await part(make(), face, state))[0]
        return elements(found, batch is not None)

    whole = elements(to_list(chain(files, source, before, (1, 0), after)), False)
    assert sorted(drive(face, work())) == sorted(whole)


def sharded(where: str, files: str, shards: int, index: int) -> Dataset[Any]:
    numbers = Dataset.range(64)
    return {
        "before the shuffle": lambda: numbers.shard(shards, index).shuffle(8, seed=1).batch(2),
        "behind the shuffle": lambda: numbers.shuffle(8, seed=1).shard(shards, index).batch(2),
        "behind the batch": lambda: numbers.shuffle(8, seed=1).batch(2).shard(shards, index).prefetch(1),
        "of files": lambda: Dataset.list_files(files).shard_files(shards, index).interleave(lines, 2, 3).batch(2),
        "before the files' reader": lambda: (
            Dataset.list_files(files, seed=1).shard(shards, index).interleave(lines, 2, num_parallel_calls=2).batch(2)
        ),
    }[where]()


WHERE = ["before the shuffle", "behind the shuffle", "behind the batch", "of files", "before the files' reader"]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("shards", "index"), [(2, 1), (3, 0), (1, 0)])
def test_another_number_of_shards_is_refused_naming_the_stage(where: str, shards: int, index: int, files: str) -> None:
    with sharded(where, files, 2, 0).iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    stage = "shard_files" if where == "of files" else "shard"
    message = rf"stage \d was {stage}\(2, 0\), here it is {stage}\({shards}, {index}\)"
    with pytest.raises(StateError, match=message):
        sharded(where, files, shards, index).iterate(state)


def test_no_element_is_lost_by_a_restore_on_more_workers() -> None:
    def make(shards: int, index: int) -> Dataset[Any]:
        return Dataset.range(16).shard(shards, index).batch(4)

    with make(1, 0).iterate() as iterator:
        assert plain(next(iterator)) == [0, 1, 2, 3]
        state = iterator.state_dict()
    for index in range(2):
        with pytest.raises(StateError, match=rf"stage 1 was shard\(1, 0\), here it is shard\(2, {index}\)"):
            make(2, index).iterate(state)
    with make(1, 0).iterate(state) as iterator:
        assert plain(list(iterator)) == [[4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]


def square(x: Any) -> Any:
    return x * x


@pytest.mark.parametrize("face", FACES)
def test_batches_before_parallel_work_are_as_many(face: str) -> None:
    ds = Dataset.range(100).batch(32, drop_remainder=True).map(square, num_parallel_calls=4).prefetch(4)
    found = drive(face, part(ds, face))[0]
    assert [len(batch) for batch in found] == [32, 32, 32]
    assert plain(np.concatenate(found)) == [x * x for x in range(96)]
