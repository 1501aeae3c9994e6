"""`snapshot`: the elements of the first complete pass in files."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset
from aiodata.errors import CorruptRecordError, StateError
from aiodata.storage.saved.dataset import MANIFEST
from tests.formats.elements import KINDS, assert_exact
from tests.programs import (
    Boom,
    Pair,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    counted,
    failing,
    first,
    i64,
    nested,
    nested_rows,
    outcomes,
    to_list,
)
from tests.resume.saving import FACES, along, check_rest, drive, part, relay

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshots"


def manifests(path: Path) -> list[Path]:
    return sorted(path.glob(f"*/{MANIFEST}"))


# What it gives


@pytest.mark.parametrize("count", [0, 1, 9, 700])
def test_gives_the_input_in_every_pass(path: Path, count: int) -> None:
    assert_gives(nested(count).snapshot(path), nested_rows(*range(count)))
    assert_gives(nested(count).snapshot(path), nested_rows(*range(count)))
    rows = nested(count).map(lambda x: x).snapshot(path, compression="GZIP")
    assert_gives(rows, nested_rows(*range(count)))
    assert len(manifests(path)) == 2
    assert len(list(path.glob("*/elements-*"))) == 2


def test_the_input_is_read_once(path: Path) -> None:
    ds, seen = counted(Dataset.range(5))
    ds = ds.snapshot(path)
    assert_same(to_list(ds), i64(*range(5)))
    assert_same(asyncio.run(collect(ds)), i64(*range(5)))
    assert_same(to_list(ds.repeat(2)), i64(*range(5)) * 2)
    assert seen == list(range(5))


def test_an_order_by_chance_is_kept(path: Path) -> None:
    ds = Dataset.range(20).shuffle(20).snapshot(path)
    order = to_list(ds)
    assert sorted(order) == list(range(20))
    assert_same(to_list(ds.repeat(3)), order * 3)


def test_every_kind_of_element_is_the_same_in_all_passes(path: Path) -> None:
    ds = Dataset.range(len(KINDS)).map(lambda n: (n, KINDS[n]))
    expected = to_list(ds)
    ds = ds.snapshot(path)
    for _ in range(3):
        assert_exact(to_list(ds), expected)


def test_facts_are_those_of_the_input(path: Path) -> None:
    ds = nested(9).snapshot(path, name="kept")
    assert (ds.cardinality(), ds.element_spec) == (9, nested(9).element_spec)
    assert f"snapshot('{path}')" in repr(ds)
    assert "kept" in repr(ds)
    assert nested(9).repeat().snapshot(path).cardinality() == -1
    assert not path.exists()


def test_a_reader_that_changes_elements_does_not_change_what_is_written(path: Path) -> None:
    ds = Dataset.range(3).map(lambda x: {"x": np.full(2, x), "y": x}).snapshot(path)
    for element in ds:
        with pytest.raises(ValueError, match="read-only"):
            element["x"][0] = 7
        element["y"] = "changed"
    expected = [{"x": np.full(2, x), "y": np.int64(x)} for x in range(3)]
    assert_same(to_list(ds), expected)
    with pytest.raises(ValueError, match="read-only"):
        to_list(ds)[0]["x"][0] = 7


# When it is complete


def test_a_partial_pass_leaves_nothing(path: Path) -> None:
    ds, seen = counted(Dataset.range(2000).filter(lambda x: True))
    ds = ds.snapshot(path)
    assert_same(first(ds, 3), i64(0, 1, 2))
    assert not path.exists()
    assert len(seen) < 600
    assert_same(to_list(ds), i64(*range(2000)))
    assert len(manifests(path)) == 1


def test_a_pass_of_as_many_elements_as_are_known_is_complete(path: Path) -> None:
    for name, ds in (("columns", Dataset.range(5)), ("rows", Dataset.range(5).map(lambda x: x))):
        ds, seen = counted(ds)
        ds = ds.snapshot(path / name)
        assert_same(to_list(ds.take(5)), i64(*range(5)))
        assert_same(to_list(ds), i64(*range(5)))
        assert seen == list(range(5))


def test_errors_are_not_kept(path: Path) -> None:
    ds = failing(Dataset.range(6), 2, 5).snapshot(path)
    assert_outcomes(ds.take(3), [*i64(0, 1), Boom(2)])
    assert_same(outcomes(ds), [*i64(0, 1), Boom(2), *i64(3, 4), Boom(5)])
    assert_outcomes(ds, i64(0, 1, 3, 4))


def test_cancelling_leaves_nothing(path: Path) -> None:
    async def work() -> None:
        begun = asyncio.Event()

        async def slow(x: Any) -> Any:
            if x == 3:
                begun.set()
                await asyncio.sleep(3600)
            return x

        task = asyncio.create_task(collect(Dataset.range(9).map(slow).snapshot(path)))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert not path.exists()


def test_two_passes_at_once(path: Path) -> None:
    ds = Dataset.range(5).snapshot(path)
    with ds.iterate() as one, ds.iterate() as other:
        assert_same([(next(one), next(other)) for _ in range(5)], [(x, x) for x in i64(*range(5))])
    assert len(list(path.glob("*/elements-*"))) == 1
    assert_same(to_list(ds), i64(*range(5)))


def test_the_first_complete_pass_stays(path: Path) -> None:
    ds = Dataset.range(300).map(lambda x: x).shuffle(300).snapshot(path)
    with ds.iterate() as one, ds.iterate() as other:
        orders = [[next(one)], [next(other)]]
        orders[0] += list(one)
        orders[1] += list(other)
    assert orders[0] != orders[1]
    assert_same(to_list(ds), orders[0])


# Other pipelines, other processes


def test_another_pipeline_has_files_of_its_own(path: Path) -> None:
    assert_same(to_list(Dataset.range(5).snapshot(path)), i64(*range(5)))
    assert_same(to_list(Dataset.range(4).snapshot(path)), i64(*range(4)))
    assert_same(to_list(Dataset.range(4).map(lambda x: x + 1).snapshot(path)), i64(*range(1, 5)))
    assert_same(to_list(Dataset.range(4).map(lambda x: x + 2).snapshot(path)), i64(*range(2, 6)))
    assert len(manifests(path)) == 4
    assert_same(
        to_list(Dataset.load(manifests(path)[0].parent))[:1], to_list(Dataset.load(manifests(path)[0].parent))[:1]
    )


def test_what_was_iterated_over_has_the_same_fingerprint(path: Path) -> None:
    ds = Dataset.range(5).snapshot(path).map(abs)
    before = ds.fingerprint()
    to_list(ds)
    assert ds.fingerprint() == before == Dataset.range(5).snapshot(path).map(abs).fingerprint()


PROGRAM = """
import sys
from aiodata import Dataset
def note(x):
    print("computed", end=" ")
    return x
ds = Dataset.range(4).map(note).snapshot(sys.argv[1])
print([int(x) for x in ds])
"""


def test_other_processes_read_it(path: Path) -> None:
    def run() -> bytes:
        return subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, check=True).stdout

    assert run() == b"computed computed computed computed [0, 1, 2, 3]\n"
    assert run() == b"[0, 1, 2, 3]\n"


def test_parts_of_a_split_share_it(path: Path) -> None:
    ds, seen = counted(Dataset.range(9))
    parts = ds.snapshot(path).split([0.5, 0.5], seed=1)
    found = [[int(x) for x in part] for part in parts for _ in range(2)]
    assert found[0] == found[1] and found[2] == found[3] and sorted(found[0] + found[2]) == list(range(9))  # noqa: PT018
    assert seen == list(range(9))


# Shards


def test_shards_are_read_in_turn_or_as_told(path: Path) -> None:
    def make(**arguments: Any) -> Dataset[Any]:
        return Dataset.range(8).snapshot(path, shard_func=lambda x: int(x > 2), **arguments)

    assert_same(to_list(make()), i64(*range(8)))
    assert_same(to_list(make()), i64(0, 3, 1, 4, 2, 5, 6, 7))
    in_order = make(reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    assert_same(to_list(in_order), i64(*range(8)))
    last = make(reader_func=lambda shards: shards.skip(1).flat_map(lambda shard: shard))
    assert_same(to_list(last), i64(*range(3, 8)))


def test_a_failing_shard_func_ends_the_pass(path: Path) -> None:
    ds = Dataset.range(5).snapshot(path, shard_func=lambda x: x - 2)
    with pytest.raises(ValueError, match="what shard_func gives must be at least 0, not -2"):
        to_list(ds)
    assert not path.exists()


# Arguments


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"compression": "SNAPPY"}, ValueError, "snapshot: compression must be None or one of 'AUTO', 'GZIP', 'NONE'"),
        ({"shard_func": 3}, TypeError, "snapshot: shard_func must be callable, not int"),
        ({"reader_func": 3}, TypeError, "snapshot: reader_func must be callable, not int"),
        ({"reader_func": lambda shards: 3}, TypeError, "snapshot: reader_func must give a dataset"),
        ({"path": 3}, TypeError, "int"),
    ],
)
def test_wrong_arguments(path: Path, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Dataset.range(3).snapshot(**{"path": path} | arguments)


@pytest.mark.parametrize("compression", ["AUTO", "GZIP", "NONE", "", None])
def test_compressions(path: Path, compression: str | None) -> None:
    assert_gives(Dataset.range(5).snapshot(path, compression), i64(*range(5)))


# Damage


def test_a_damaged_snapshot_is_an_error(path: Path) -> None:
    ds = Dataset.range(5).snapshot(path)
    to_list(ds)
    (file,) = path.glob("*/*/*.npz")
    good = file.read_bytes()
    file.write_bytes(good[:-30])
    assert_same(outcomes(ds), [CorruptRecordError])
    manifests(path)[0].write_bytes(b"{")
    with pytest.raises(CorruptRecordError):
        to_list(ds)


# States


def bad() -> Dataset[Any]:
    return failing(Dataset.range(9), 0, 4).map(lambda x: Pair(x, str(x)))


PIPELINES: dict[str, Callable[[Path], Dataset[Any]]] = {
    "columns": lambda path: nested(9).snapshot(path),
    "failing": lambda path: bad().snapshot(path),
    "failing, repeated": lambda path: bad().snapshot(path).repeat(3),
    "shuffled, repeated": lambda path: Dataset.range(9).shuffle(4).snapshot(path, "GZIP").repeat(2),
    "sharded": lambda path: Dataset.range(9).snapshot(path, shard_func=lambda x: int(x > 3)).repeat(3),
    "shuffled before and behind": lambda path: (
        Dataset.range(9).shuffle(4, seed=1).snapshot(path).shuffle(3, seed=2).repeat(2)
    ),
    "shards shuffled": lambda path: (
        Dataset.range(9)
        .snapshot(
            path,
            shard_func=lambda x: x % 3,
            reader_func=lambda shards: shards.shuffle(3, seed=5).flat_map(lambda shard: shard),
        )
        .repeat(3)
    ),
    "prefetched": lambda path: bad().snapshot(path).prefetch(2).batch(2),
    "after another": lambda path: Dataset.range(3).map(lambda x: Pair(x, str(x))).concatenate(bad().snapshot(path)),
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_goes_on_where_the_files_are(pipeline: str, face: str, path: Path) -> None:
    """Every state of the run that wrote gives the rest of it when the files are complete."""

    def make() -> Dataset[Any]:
        return PIPELINES[pipeline](path)

    async def work() -> None:
        straight, states = await along(make(), face)
        for number, state in enumerate(states):
            found, _ = await part(make(), face, state)
            check_rest(f"restored before pull {number}", found, straight[number:])
            found = await relay(make, face, state, (1, 2))
            check_rest(f"restored thrice from pull {number}", found, straight[number:])

    drive(face, work())


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_goes_on_where_the_pass_was_not_completed(pipeline: str, face: str, path: Path) -> None:
    """Every state of the pass that writes gives the rest of the run when nothing was left of it."""

    def make() -> Dataset[Any]:
        return PIPELINES[pipeline](path)

    async def work() -> None:
        straight, states = await along(make(), face)
        for number, state in enumerate(states):
            for leaps in ((), (1,)):
                shutil.rmtree(path, ignore_errors=True)
                found: list[Any] = []
                again = state
                for leap in leaps:
                    found, again = await part(make(), face, again, leap)
                    shutil.rmtree(path, ignore_errors=True)
                more, _ = await part(make(), face, again)
                found = [*found, *more, StateError()]
                count = list(map(type, found)).index(StateError)
                check_rest(f"restored before pull {number}", found[:count], straight[number:][:count])
                if count < len(straight[number:]):  # it is a state of the files that this test has removed
                    assert number + len(leaps) > 4
                    assert found[count].args

    drive(face, work())


def test_a_state_of_the_files_is_refused_without_them(path: Path) -> None:
    ds = Dataset.range(5).snapshot(path)
    to_list(ds)
    with ds.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
    shutil.rmtree(path)
    with ds.iterate(state) as iterator, pytest.raises(StateError, match="the saved dataset is not there, as it was"):
        next(iterator)
    to_list(ds)
    with ds.iterate(state) as iterator, pytest.raises(StateError, match="another one than when the state was saved"):
        next(iterator)


def test_goes_on_in_a_new_process(path: Path) -> None:
    code = """
import json, sys
from aiodata import Dataset
ds = Dataset.range(600).map(abs).snapshot(sys.argv[1]).repeat(2)
state = json.loads(sys.stdin.read() or "null")
with ds.iterate(state) as iterator:
    for x in iterator:
        if state is None and x == 300:
            print(json.dumps(iterator.state_dict()))
            break
    else:
        print(iterator.statistics is not None and "whole")
    if state is not None:
        print(int(x))
"""

    def run(state: bytes) -> bytes:
        done = subprocess.run([sys.executable, "-c", code, str(path)], input=state, capture_output=True, check=True)
        return done.stdout

    state = run(b"")
    assert json.loads(state)["version"] == 1
    assert not path.exists()
    assert run(state) == b"whole\n599\n"
    assert len(manifests(path)) == 1
    assert run(state) == b"whole\n599\n"


def test_folders_are_bytes_or_paths(path: Path) -> None:
    assert_same(to_list(Dataset.range(3).snapshot(os.fsencode(path))), i64(0, 1, 2))
    assert_same(to_list(Dataset.range(3).snapshot(str(path))), i64(0, 1, 2))
    assert len(manifests(path)) == 1
