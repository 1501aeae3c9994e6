"""What a state is: small JSON, cheap to ask for, refused by other pipelines, good in other processes and in place."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset, TextLineDataset
from aiodata.errors import StateError
from tests.programs import assert_same, failing, plain
from tests.resume.saving import FACES, drive, part, pull, shut, through_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def double(x: Any) -> Any:
    return x * 2


def triple(x: Any) -> Any:
    return x * 3


def is_even(x: Any) -> bool:
    return bool(x % 2 == 0)


async def later(x: Any) -> Any:
    await asyncio.sleep(0)
    return x


def some(x: Any) -> Dataset[Any]:
    return Dataset.range(100 * x, 100 * x + 90).map(double)


def state_after(ds: Dataset[Any], count: int) -> dict[str, Any]:
    """Read some elements through the sync face and give the state then, through JSON."""
    return drive("sync", part(ds, "sync", None, count))[1]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(100).map(double).prefetch(50),
        lambda: Dataset.range(100).map(later).prefetch(50),
        lambda: Dataset.range(100).map(later, num_parallel_calls=10).prefetch(50),
        lambda: Dataset.range(100).prefetch(10).map(later).prefetch(50),
    ],
)
def test_what_was_read_ahead_does_not_count_as_taken(make: Callable[[], Dataset[Any]], face: str) -> None:
    async def work() -> None:
        iterator = make().iterate()
        whole = await pull(iterator, face, 3)
        await asyncio.sleep(0.05) if face == "async" else time.sleep(0.05)
        state = through_json(iterator.state_dict())
        rest = await pull(iterator, face)
        await shut(iterator, face)
        assert len(whole + rest) == 100
        assert_same((await part(make(), face, state))[0], rest)

    drive(face, work())


# Other pipelines and other things


def chain(base: Any = None, size: int = 4, function: Any = double) -> Dataset[Any]:
    return (Dataset.range(30) if base is None else base).map(function).filter(is_even).batch(size)


CHANGED: dict[str, tuple[Callable[[], Dataset[Any]], str]] = {
    "batch size": (lambda: chain(size=5), r"batch\(4\).*batch\(5\)"),
    "function": (lambda: chain(function=triple), r"map\(double\).*map\(triple\)"),
    "missing stage": (lambda: Dataset.range(30).map(double).batch(4), r"filter\(is_even\).*batch\(4\)"),
    "missing last stage": (lambda: Dataset.range(30).map(double).filter(is_even), r"batch\(4\)"),
    "one more stage": (lambda: chain().prefetch(2), r"prefetch\(2\)"),
    "source": (lambda: chain(Dataset.from_tensor_slices(np.arange(30))), r"range\(0, 30, 1\).*from_tensor_slices"),
    "range": (lambda: chain(Dataset.range(1, 30)), r"range\(0, 30, 1\).*range\(1, 30, 1\)"),
    "two differences": (lambda: chain(size=7, function=triple), r"map\(double\).*map\(triple\)"),
}


def refuses(ds: Dataset[Any], state: Any, message: str) -> None:
    with pytest.raises(StateError, match=message):
        ds.iterate(state)
    iterator = ds.iterate()
    with pytest.raises(StateError, match=message):
        iterator.load_state_dict(state)
    assert len(drive("sync", pull(iterator, "sync", 1))) == 1, "a refused state must change nothing"
    iterator.close()


@pytest.mark.parametrize("what", CHANGED)
def test_a_state_of_another_pipeline_is_refused(what: str) -> None:
    make, message = CHANGED[what]
    refuses(make(), state_after(chain(), 2), message)


@pytest.mark.parametrize("what", [what for what in CHANGED if what != "two differences"])
def test_a_difference_inside_a_branch_is_named(what: str) -> None:
    make, message = CHANGED[what]
    state = state_after(Dataset.zip(Dataset.range(9), chain()).take(5), 2)
    refuses(Dataset.zip(Dataset.range(9), make()).take(5), state, message)


def test_another_seed_or_file_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("x\ny\n")
    refuses(TextLineDataset(tmp_path / "a"), state_after(TextLineDataset(tmp_path / "b"), 1), "b.*a")
    refuses(Dataset.range(9).shuffle(4, seed=1), state_after(Dataset.range(9).shuffle(4, seed=2), 1), "seed=2.*seed=1")


GOOD = state_after(Dataset.range(30).shuffle(4, seed=1).batch(3), 1)
GARBAGE: list[Any] = [
    {},
    [],
    [1, 2],
    "state",
    7,
    dict.fromkeys(GOOD),
    {**GOOD, "version": 99},
    {**GOOD, "version": None},
    {**GOOD, "pipeline": None},
    {**GOOD, "pipeline": {}},
    {**GOOD, "seeds": None},
    {**GOOD, "seeds": []},
    {key: value for key, value in GOOD.items() if key != "seeds"},
    {**GOOD, "position": 5},
    {**GOOD, "position": ["?", "?"]},
    {**GOOD, "position": [{"unknown": 1}, 0]},
]


@pytest.mark.parametrize("state", GARBAGE, ids=lambda state: json.dumps(state)[:60])
def test_garbage_is_refused(state: Any) -> None:
    refuses(Dataset.range(30).shuffle(4, seed=1).batch(3), state, ".")


# Other processes, in place, and back


PROGRAM = """
import json, sys
import aiodata

def double(x):
    return x * 2

ds = aiodata.Dataset.range(500).map(double, num_parallel_calls=2).shuffle(20, seed=3).batch(4).prefetch(2)
with open(sys.argv[1]) as file:
    iterator = ds.iterate(json.load(file))
print(json.dumps([x.tolist() for x in iterator]))
"""


def test_another_process_goes_on_from_a_file(tmp_path: Path) -> None:
    ds = Dataset.range(500).map(double, num_parallel_calls=2).shuffle(20, seed=3).batch(4).prefetch(2)
    path = tmp_path / "state.json"
    with ds.iterate() as iterator:
        next(iterator)
        path.write_text(json.dumps(iterator.state_dict()))
        rest = list(iterator)
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == plain(rest)


PLACES: list[Callable[[], Dataset[Any]]] = [
    lambda: failing(Dataset.range(30), 11).batch(2),
    lambda: Dataset.range(30).shuffle(6, seed=1).map(later),
    lambda: Dataset.range(30).map(later, num_parallel_calls=3).prefetch(4),
    lambda: Dataset.range(30).map(double, num_parallel_calls=3).prefetch(4),
    lambda: Dataset.range(4).interleave(some, 2, num_parallel_calls=2).take(30),
]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("make", PLACES)
def test_loading_in_place_goes_back_and_forth(make: Callable[[], Dataset[Any]], face: str) -> None:
    async def work() -> None:
        whole, _ = await part(make(), face)
        iterator = make().iterate()
        early = through_json(iterator.state_dict())
        assert_same(await pull(iterator, face, 9), whole[:9])
        late = through_json(iterator.state_dict())
        for state, place in ((early, 0), (late, 9), (late, 9), (early, 0)):
            iterator.load_state_dict(state)
            assert_same(through_json(iterator.state_dict())["position"], state["position"])
            assert_same(await pull(iterator, face, 5), whole[place : place + 5])
        iterator.load_state_dict(late)
        assert_same(await pull(iterator, face), whole[9:])
        assert_same(await pull(iterator, face, 2), [])
        end = through_json(iterator.state_dict())
        iterator.load_state_dict(late)  # an exhausted iterator can go back
        assert_same(await pull(iterator, face), whole[9:])
        iterator.load_state_dict(end)
        assert_same(await pull(iterator, face), [])
        await shut(iterator, face)

    drive(face, work())


async def test_loading_within_a_loop_goes_on_in_that_loop() -> None:
    iterator = Dataset.range(6).map(later).prefetch(2).iterate()
    seen, saved, jumps = [], None, 1
    async for x in iterator:
        seen.append(int(x))
        if x == 1:
            saved = iterator.state_dict()
        if x == 4 and jumps:
            jumps -= 1
            iterator.load_state_dict(saved or {})
    assert seen == [0, 1, 2, 3, 4, 2, 3, 4, 5]
    await iterator.aclose()


def test_numpy_iterators_save_and_restore() -> None:
    iterator = Dataset.range(20).shuffle(5, seed=1).batch(3).as_numpy_iterator()
    first = next(iterator)
    state = through_json(iterator.save())
    rest = list(iterator)
    iterator.restore(state)
    assert_same(list(iterator), rest)
    fresh = Dataset.range(20).shuffle(5, seed=1).batch(3).as_numpy_iterator()
    assert_same(next(fresh), first)
    fresh.restore(state)
    assert_same([next(fresh), next(fresh)], rest[:2])
    fresh.close()


def test_a_stage_that_refuses_a_position_has_the_word() -> None:
    def stage(run: Any, source: Any, *, start: Any) -> Any:
        if start is not None:
            raise StateError("this cannot be read again")
        return source.open()

    dataset = Dataset.range(3).then("live", stage)
    with dataset.iterate() as iterator:
        assert next(iterator) == 0
        state = iterator.state_dict()
    with pytest.raises(StateError, match=r"^this cannot be read again$"):
        dataset.iterate(state)
