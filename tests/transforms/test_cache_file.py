"""`cache` with a filename: in a file."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset
from aiodata.errors import CorruptRecordError, DataError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_same,
    collect,
    failing,
    first,
    i64,
    nested,
    outcomes,
    to_list,
)
from tests.resume.saving import FACES, along, check_rest, drive, part, relay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


class Counting:
    """A generator function that counts its passes."""

    def __init__(self, *elements: Any) -> None:
        self.elements = elements
        self.passes = 0

    def __call__(self) -> Iterator[Any]:
        self.passes += 1
        yield from self.elements


# What it gives, and when it is complete


@pytest.mark.parametrize("size", [0, 1, 2, 300])
def test_gives_the_input_in_every_pass_and_every_process(size: int, path: str) -> None:
    for _ in range(2):
        ds = Dataset.range(size).cache(path)
        assert_gives(ds, i64(*range(size)))
    assert os.listdir(os.path.dirname(path)) == ["cache"]


@pytest.mark.parametrize(
    "element",
    [np.float32(1.5), b"a\0", "text", True, arr([[1, 2]]), (1, {"x": b"y"}), Pair(1, arr([2.0])), np.array("x")],
    ids=repr,
)
def test_values_of_every_kind_are_kept(element: Any, path: str) -> None:
    straight = to_list(Dataset.from_generator(lambda: [element] * 3))
    ds = Dataset.from_generator(lambda: [element] * 3).cache(path)
    for _ in range(3):
        assert_same(to_list(ds), straight)


def test_structures_of_columns_are_kept(path: str) -> None:
    for _ in range(2):
        assert_same(to_list(nested(7).cache(path)), to_list(nested(7)))


def test_a_complete_pass_is_the_last_that_reads_the_input(path: str) -> None:
    source = Counting(1, 2, 3)
    ds = Dataset.from_generator(source).cache(path)
    assert (to_list(ds), to_list(ds), source.passes) == ([1, 2, 3], [1, 2, 3], 1)
    again = Dataset.from_generator(source).cache(path)
    assert (to_list(again), source.passes) == ([1, 2, 3], 1)


def test_is_complete_when_the_known_number_was_read(path: str) -> None:
    assert first(Dataset.range(5).cache(path), 5) == list(range(5))
    assert os.path.exists(path)


def test_a_partial_pass_keeps_nothing(path: str) -> None:
    source = Counting(*range(600))
    ds = Dataset.from_generator(source).cache(path)
    with ds.iterate() as iterator:
        assert next(iterator) == 0
    assert os.listdir(os.path.dirname(path)) == []
    assert (len(to_list(ds)), source.passes) == (600, 2)


def test_no_false_warning_after_a_complete_pass(path: str, caplog: pytest.LogCaptureFixture) -> None:
    source = Counting(*range(5))
    ds = Dataset.from_generator(source).cache(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [to_list(ds), to_list(ds)] == [list(range(5))] * 2
    assert (caplog.records, source.passes) == ([], 1)


def test_take_behind_a_cache_repeats_rightly(path: str) -> None:
    assert to_list(Dataset.range(5).cache(path).take(2).repeat(2)) == [0, 1, 0, 1]
    assert to_list(Dataset.range(5).cache(path)) == list(range(5))


READ = """
import sys
from aiodata import Dataset
def double(x):
    return 2 * x
print([batch.tolist() for batch in Dataset.range(int(sys.argv[2])).cache(sys.argv[1]).map(double).batch(4)])
"""


def test_a_finished_cache_is_read_in_a_new_process(path: str) -> None:
    to_list(Dataset.range(10).cache(path))
    done = subprocess.run([sys.executable, "-c", READ, path, "10"], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("[[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]\n", "")


def test_errors_are_given_in_their_places_once_and_not_kept(path: str) -> None:
    ds = failing(Dataset.range(6), 0, 3).cache(path)
    assert [type(each) for each in outcomes(ds)] == [Boom, np.int64, np.int64, Boom, np.int64, np.int64]
    assert to_list(ds) == [1, 2, 4, 5]


def test_passes_are_shuffled_anew_until_one_was_complete(path: str) -> None:
    ds = Dataset.range(9).shuffle(9, seed=1).cache(path)
    straight = Dataset.range(9).shuffle(9, seed=1)
    expected = [to_list(straight), to_list(straight)]
    assert first(ds, 2) == expected[0][:2]
    assert [to_list(ds), to_list(ds)] == [expected[1]] * 2


def test_both_faces_and_look_ahead_read_and_fill_it(path: str) -> None:
    ds = Dataset.range(3000).map(np.negative).cache(path).prefetch(2)
    assert asyncio.run(collect(ds)) == to_list(ds) == list(range(0, -3000, -1))


def test_two_iterators_at_once_both_give_everything(path: str) -> None:
    ds = Dataset.range(5).map(abs).cache(path)
    with ds.iterate() as one, ds.iterate() as other:
        assert [(next(one), next(other)) for _ in range(5)] == [(x, x) for x in range(5)]
    assert to_list(ds) == list(range(5))


def test_leaving_while_it_is_filled_leaves_nothing(path: str) -> None:
    async def leave() -> None:
        async for _ in Dataset.range(10_000).map(abs).cache(path):
            break

    asyncio.run(leave())
    for _ in Dataset.range(10_000).map(abs).cache(path):
        break
    assert os.listdir(os.path.dirname(path)) == []


# What is refused


@pytest.mark.parametrize("filename", [None, 3, True])
def test_what_is_no_path_is_refused_at_the_call(filename: Any) -> None:
    with pytest.raises(TypeError, match="cache: filename must be a path, not"):
        Dataset.range(3).cache(filename)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        to_list(Dataset.range(3).cache(tmp_path / "none" / "cache"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Dataset.range(4), r"stage 0 was range\(0, 3, 1\), here it is range\(0, 4, 1\)"),
        (lambda: Dataset.range(3).map(abs), r"only this pipeline has stage 1, map\(absolute\)|map\(abs\)"),
    ],
)
def test_a_file_of_another_pipeline_is_refused(make: Callable[[], Dataset[Any]], words: str, path: str) -> None:
    to_list(Dataset.range(3).cache(path))
    with pytest.raises(DataError, match=f"cache: {path} was filled by another pipeline: {words}"):
        to_list(make().cache(path))
    assert to_list(Dataset.range(3).cache(path)) == [0, 1, 2]


def test_what_a_file_cannot_hold_is_refused_by_name(path: str) -> None:
    with pytest.raises(TypeError, match=r"element 1: .*object.*the cache"):
        to_list(Dataset.from_generator(lambda: iter([1, object()])).cache(path))
    assert os.listdir(os.path.dirname(path)) == []


def test_every_damaged_byte_is_an_error_or_harmless(path: str) -> None:
    ds = Dataset.range(3).map(lambda x: {"x": x, "name": str(x)}).cache(path)
    expected = to_list(ds)
    whole = Path(path).read_bytes()
    refused = 0
    for at in range(len(whole)):
        Path(path).write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        try:
            assert_same(to_list(ds), expected)
        except (CorruptRecordError, DataError) as error:
            assert path in str(error)  # noqa: PT017
            refused += 1
    assert refused > len(whole) // 2
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        Path(path).write_bytes(whole[:size])
        with pytest.raises(CorruptRecordError, match=path):
            to_list(ds)


# Going on


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("removed", ["never", "before", "between"])
@pytest.mark.parametrize("name", ["columns", "failing", "shuffled"])
def test_restores_at_every_element_whether_or_not_the_file_is_there(
    name: str, removed: str, face: str, path: str
) -> None:
    def make() -> Dataset[Any]:
        if removed == "between" and os.path.exists(path):
            os.unlink(path)
        ds = {
            "columns": nested(7),
            "failing": failing(Dataset.range(8), 0, 3),
            "shuffled": Dataset.range(7).shuffle(3, seed=1),
        }[name]
        return ds.cache(path).repeat(2)

    straight, states = drive(face, along(make(), face))
    for number, state in enumerate(states):
        if state["position"] is None and name == "failing" and removed != "between":
            continue  # a start, which finds the file there: errors are not kept
        if removed == "before":
            os.unlink(path)
        saved = json.loads(json.dumps(state))
        check_rest(f"before pull {number}", drive(face, part(make(), face, saved))[0], straight[number:])
        check_rest(f"thrice from pull {number}", drive(face, relay(make, face, saved, (1, 2))), straight[number:])


# Processes that die, and several at once

FILLING = """
import os, signal, sys, time
from random import Random
from aiodata import Dataset

COUNT, path = 6_000, sys.argv[1]

def wide(x):
    return {"x": x, "text": str(x) * 50}

def fill():
    elements = list(Dataset.range(COUNT).map(wide).cache(path))
    assert [int(element["x"]) for element in elements] == list(range(COUNT))
    assert all(element["text"] == str(number) * 50 for number, element in enumerate(elements))

def child():
    process = os.fork()
    if process == 0:
        fill()
        os._exit(0)
    return process

def seconds_of_one():
    begun = time.monotonic()
    assert os.waitpid(child(), 0)[1] == 0
    return time.monotonic() - begun

def remove():
    if os.path.exists(path):
        os.unlink(path)
"""

KILLING = """
seconds, random = seconds_of_one(), Random(0)
for _ in range(25):
    remove()
    process = child()
    time.sleep(seconds * random.random())
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    left = os.listdir(os.path.dirname(path))
    assert left == ["cache"] or all(name.endswith(".part") for name in left), left
    assert os.waitpid(child(), 0)[1] == 0
    assert os.listdir(os.path.dirname(path)) == ["cache"]
print("right")
"""

TOGETHER = """
for _ in range(3):
    remove()
    for process in [child() for _ in range(3)]:
        assert os.waitpid(process, 0)[1] == 0
    fill()
    assert os.listdir(os.path.dirname(path)) == ["cache"]
print("right")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked, which is quick")
@pytest.mark.parametrize("what", [pytest.param(KILLING, id="killed"), pytest.param(TOGETHER, id="several at once")])
def test_processes_leave_a_whole_cache_or_none(what: str, path: str) -> None:
    """Killed at 25 random moments, each time the next process reads or fills it rightly."""
    done = subprocess.run([sys.executable, "-c", FILLING + what, path], capture_output=True, text=True, timeout=55)
    assert (done.stdout, done.stderr) == ("right\n", "")
