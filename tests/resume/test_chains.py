"""Random chains of stages, left at random elements and picked up again by fresh datasets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiodata import AUTOTUNE, Dataset, TextLineDataset
from tests.programs import Boom
from tests.resume.saving import FACES, along, check_rest, drive, part, relay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MOST = 60


def number(*element: Any) -> int:
    """Boil any element down to a number."""
    total = len(element)
    for leaf in element:
        if isinstance(leaf, dict):
            total += number(*leaf.values())
        elif isinstance(leaf, (tuple, list)) or (isinstance(leaf, np.ndarray) and leaf.ndim):
            total += 3 * number(*leaf)
        elif isinstance(leaf, (bytes, str)):
            total += len(leaf)
        else:
            total += int(leaf)
    return total


def count_up(size: int) -> Iterator[tuple[int, bytes]]:
    for x in range(size):
        yield x, b"x" * x


def as_number(*element: Any) -> Any:
    return np.int64(number(*element))


def as_dict(*element: Any) -> Any:
    return {"n": np.int32(number(*element) % 50), "row": np.arange(3) + number(*element)}


def ragged(*element: Any) -> Any:
    return np.arange(number(*element) % 4), np.int64(number(*element))


def failing(*element: Any) -> Any:
    value = number(*element)
    if value % 7 == 3:
        raise Boom(value)
    return np.int64(value)


async def awaited(*element: Any) -> Any:
    return failing(*element)


def keep(*element: Any) -> bool:
    return number(*element) % 3 != 1


def few(*element: Any) -> Dataset[Any]:
    return Dataset.range(number(*element), number(*element) + number(*element) % 4)


def few_awaited(*element: Any) -> Dataset[Any]:
    return few(*element).map(awaited)


def tupled(size: int) -> Dataset[Any]:
    return Dataset.from_tensor_slices((np.arange(size), np.arange(2.0 * size).reshape(size, 2)))


def mapped_dict(size: int) -> Dataset[Any]:
    return Dataset.from_tensor_slices({"a": np.arange(size), "b": np.arange(size) % 2 == 0})


def lines(size: int, path: Path) -> Dataset[Any]:
    return TextLineDataset([path, path], buffer_size=size + 1)


SOURCES: dict[str, Callable[[int, Path], Dataset[Any]]] = {
    "range": lambda n, _: Dataset.range(n),
    "many": lambda n, _: Dataset.range(10 * n),
    "tuples": lambda n, _: tupled(n),
    "dicts": lambda n, _: mapped_dict(n),
    "generator": lambda n, _: Dataset.from_generator(count_up, args=[n]),
    "lines": lines,
}

STAGES: dict[str, Callable[[Dataset[Any], int, Path], Dataset[Any]]] = {
    "map": lambda ds, n, _: ds.map([as_number, as_dict, failing][n % 3]),
    "map parallel": lambda ds, n, _: ds.map([as_number, failing][n % 2], num_parallel_calls=1 + n % 3),
    "map async": lambda ds, n, _: ds.map(awaited, num_parallel_calls=[None, 2, AUTOTUNE][n % 3]),
    "filter": lambda ds, n, _: ds.filter(keep),
    "batch": lambda ds, n, _: ds.map(as_dict).batch(n, drop_remainder=n % 2 == 0),
    "batch parallel": lambda ds, n, _: ds.map(as_number).batch(n, num_parallel_calls=2),
    "padded_batch": lambda ds, n, _: ds.map(ragged).padded_batch(n),
    "unbatch": lambda ds, n, _: ds.map(as_number).batch(n).unbatch(),
    "unbatch rows": lambda ds, n, _: ds.map(ragged).map(lambda row, _: row).unbatch(),
    "shuffle": lambda ds, n, _: ds.shuffle(n, seed=n),
    "shuffle once": lambda ds, n, _: ds.shuffle(2 * n, seed=7, reshuffle_each_iteration=False),
    "repeat": lambda ds, n, _: ds.take(20).repeat(1 + n % 3),
    "take": lambda ds, n, _: ds.take(3 * n),
    "skip": lambda ds, n, _: ds.skip(n - 1),
    "shard": lambda ds, n, _: ds.shard(2, n % 2),
    "enumerate": lambda ds, n, _: ds.enumerate(n),
    "zip": lambda ds, n, _: Dataset.zip(ds, Dataset.range(4 * n).shuffle(n, seed=1)),
    "zip itself": lambda ds, n, _: Dataset.zip({"a": ds, "b": ds.skip(n % 2)}),
    "concatenate": lambda ds, n, path: (
        ds.take(12).map(as_number).concatenate(SOURCES["range"](n, path).shuffle(3, seed=n))
    ),
    "interleave": lambda ds, n, _: ds.take(15).interleave([few, few_awaited][n % 2], 1 + n % 3, n),
    "interleave parallel": lambda ds, n, _: ds.take(15).interleave(
        [few, few_awaited][n % 2], 2 + n % 3, n, num_parallel_calls=1 + n % 2
    ),
    "flat_map": lambda ds, n, _: ds.take(15).flat_map([few, few_awaited][n % 2]),
    "prefetch": lambda ds, n, _: ds.prefetch(n % 5),
    "cache": lambda ds, n, _: ds.cache(),
}

recipes = st.tuples(
    st.tuples(st.sampled_from(sorted(SOURCES)), st.integers(0, 12)),
    st.lists(st.tuples(st.sampled_from(sorted(STAGES)), st.integers(1, 5)), max_size=6),
)


def build(recipe: Any, path: Path) -> Dataset[Any]:
    (source, size), stages = recipe
    ds = SOURCES[source](size, path)
    for name, argument in stages:
        ds = STAGES[name](ds, argument, path)
    return ds.take(MOST)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    path.write_bytes(b"one\ntwo\n\nthree\r\nfour\nseventeen")
    return path


def check_chain(recipe: Any, first: int, second: int, face: str, path: Path) -> None:
    make = partial(build, recipe, path)

    async def work() -> None:
        straight, _ = await part(make(), face)
        one = first % (len(straight) + 1)
        begun, state = await part(make(), face, None, one)
        check_rest("the beginning", begun, straight[:one])
        leap = second % (len(straight) - one + 1)
        check_rest(f"restored at {one} and {one + leap}", await relay(make, face, state, (leap,)), straight[one:])

    drive(face, work())


CHAIN = {
    "recipe": recipes,
    "first": st.integers(0, MOST),
    "second": st.integers(0, MOST),
    "face": st.sampled_from(FACES),
}
FIXTURES_ARE_CONSTANT = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(**CHAIN)
@settings(max_examples=60, suppress_health_check=FIXTURES_ARE_CONSTANT)
def test_a_random_chain_is_left_and_picked_up_twice(
    recipe: Any, first: int, second: int, face: str, text: Path
) -> None:
    check_chain(recipe, first, second, face, text)


@pytest.mark.slow
@pytest.mark.timeout(85)
@given(**CHAIN)
@settings(max_examples=300, suppress_health_check=FIXTURES_ARE_CONSTANT)
def test_many_random_chains(recipe: Any, first: int, second: int, face: str, text: Path) -> None:
    check_chain(recipe, first, second, face, text)


def part_of(shard: Any) -> Dataset[Any]:
    return Dataset.range(1000 * int(shard), 1000 * int(shard) + 28)


def long_pipeline() -> Dataset[Any]:
    ds = Dataset.range(8).interleave(part_of, cycle_length=4, block_length=3, num_parallel_calls=3)
    ds = ds.shuffle(32, seed=11).map(as_dict, num_parallel_calls=2).filter(lambda element: bool(element["n"] % 11))
    return ds.batch(2).prefetch(4).take(100)


def test_a_long_pipeline_restores_twice_from_every_element() -> None:
    straight, states = drive("sync", along(long_pipeline(), "sync"))
    assert len(straight) == 100
    for face in FACES:
        check_rest("asking changes nothing", drive(face, part(long_pipeline(), face))[0], straight)
    for number, state in enumerate(states):
        face = FACES[number % 2]
        found = drive(face, relay(long_pipeline, face, state, (1 + number % 7,)))
        check_rest(f"restored before pull {number}, and again", found, straight[number:])


def one_more(x: Any) -> Any:
    return x + 1


def unordered(x: Any) -> Dataset[Any]:
    first = int(x) % 50
    ds = Dataset.range(first, first + 3 + int(x) % 3)
    return ds.map(one_more, num_parallel_calls=1, deterministic=False)


def left_in_the_middle() -> Dataset[Any]:
    ds = Dataset.range(20).map(one_more).repeat(3).interleave(unordered, cycle_length=1)
    ds = ds.map(one_more, num_parallel_calls=1, deterministic=False)
    choices = Dataset.range(2).repeat(20).shuffle(4, seed=9)
    ds = Dataset.choose_from_datasets([ds, ds.map(one_more)], choices, stop_on_empty_dataset=True)
    return ds.concatenate(ds.take(1))


async def test_a_restored_stage_that_runs_ahead_is_left_before_what_it_reads() -> None:
    straight, states = await along(left_in_the_middle(), "async")
    for _ in range(20):  # it depends on which task is where
        found, _ = await part(left_in_the_middle(), "async", states[10])
        assert sorted(map(repr, found)) == sorted(map(repr, straight[10:]))
