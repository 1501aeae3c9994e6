"""An error arrives as itself, in its element's place, and says where in the real files it came from."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, TextLineDataset
from tests.engine.observing import FLIGHTS
from tests.engine.working import BadDelay, Delay, NeedsKeyword, full_disk
from tests.programs import Boom, outcomes, pull_all, pull_all_async

MARCH = str(FLIGHTS / "flights-03.csv")
MAY = str(FLIGHTS / "flights-05.csv")
FACES = ["sync", "async"]
WAYS = ["sequential", "threads", "cheap", "coroutine", "sequential coroutine", "processes"]


def lines_of(path: str) -> list[bytes]:
    return Path(path).read_bytes().split(b"\n")


def unique_line(path: str, number: int) -> bytes:
    """Give a line of a file by its number; it must occur once."""
    lines = lines_of(path)
    line = lines[number - 1]
    assert lines.count(line) == 1
    return line


def read(ds: Dataset[Any], face: str) -> list[Any]:
    if face == "sync":
        with ds.iterate() as iterator:
            return pull_all(iterator, limit=100_000)

    async def main() -> list[Any]:
        async with ds.iterate() as iterator:
            return await pull_all_async(iterator, limit=100_000)

    return asyncio.run(main())


def mapped(lines: Dataset[bytes], way: str, bad: bytes) -> tuple[Dataset[Any], str]:
    """Map `lines` in one of the ways, and tell the name that the stage has."""
    delay = Delay(bad, 0.0001 if way == "threads" else 0.0)

    async def awaited(line: bytes) -> int:
        await asyncio.sleep(0)
        return delay(line)

    if way == "sequential":
        return lines.map(delay), "Delay"
    if way in ("threads", "cheap"):
        return lines.map(delay, num_parallel_calls=3), "Delay"
    if way == "processes":
        return lines.map(delay, num_parallel_calls=2, executor="process"), "Delay"
    return lines.map(awaited, num_parallel_calls=3 if way == "coroutine" else None), "awaited"


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("way", WAYS)
def test_error_of_element_five_comes_between_four_and_six(way: str, face: str) -> None:
    ds, name = mapped(TextLineDataset(MARCH).skip(1).take(12), way, unique_line(MARCH, 7))
    got = read(ds, face)
    delays = [int(line.split(b",")[5]) for line in lines_of(MARCH)[1:13]]
    assert [*got[:5], *got[6:]] == [*delays[:5], *delays[6:]]
    error = got[5]
    assert type(error) is BadDelay
    assert str(error) == "no delay here"
    assert f"in map({name}), element 5, from {MARCH} line 7" in error.__notes__
    assert sum(note.startswith("in map(") for note in error.__notes__) == 1


@pytest.mark.parametrize("buffer", [0, 2, 64])
def test_note_is_right_behind_prefetches(buffer: int) -> None:
    ds, _ = mapped(TextLineDataset(MARCH).prefetch(buffer).skip(1).take(300), "threads", unique_line(MARCH, 211))
    errors = [item for item in outcomes(ds.prefetch(buffer)) if isinstance(item, Exception)]
    assert [error.__notes__ for error in errors] == [[f"in map(Delay), element 209, from {MARCH} line 211"]]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("way", ["sequential", "threads", "coroutine"])
@pytest.mark.parametrize("number", [2, 40, 777, 2001])
def test_after_a_shuffle_the_note_names_the_right_line(number: int, way: str, face: str) -> None:
    if len(lines_of(MARCH)) <= number:
        number = len(lines_of(MARCH)) - 1
    ds, name = mapped(TextLineDataset(MARCH).skip(1).shuffle(50, seed=3), way, unique_line(MARCH, number))
    (error,) = [item for item in read(ds, face) if isinstance(item, Exception)]
    (note,) = error.__notes__
    assert re.fullmatch(rf"in map\({name}\), element \d+, from {re.escape(MARCH)} line {number}", note)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize("number", [2, 3, 500, 1500])
def test_after_filter_and_interleave_the_note_names_the_right_file_and_line(
    number: int, parallel: int | None, face: str
) -> None:
    bad = unique_line(MAY, number)

    def wanted(line: bytes) -> bool:
        return line == bad or (not line.startswith(b"year") and hash(line[-40:]) % 3 != 0)

    lines = Dataset.from_tensor_slices([MARCH, MAY]).interleave(
        lambda path: TextLineDataset(path), cycle_length=2, block_length=7, num_parallel_calls=parallel
    )
    ds, _ = mapped(lines.filter(wanted), "sequential", bad)
    (error,) = [item for item in read(ds, face) if isinstance(item, Exception)]
    (note,) = error.__notes__
    assert note.endswith(f", from {MAY} line {number}")


def test_error_of_a_predicate_names_the_line() -> None:
    bad = unique_line(MARCH, 99)

    def check(line: bytes) -> bool:
        if line == bad:
            raise Boom(99)
        return True

    (error,) = [item for item in read(TextLineDataset(MARCH).filter(check), "sync") if isinstance(item, Exception)]
    assert error.__notes__ == [f"in filter(check), element 98, from {MARCH} line 99"]


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_an_exception_that_cannot_be_made_again_keeps_its_message(executor: str) -> None:
    got = outcomes(Dataset.from_generator(lambda: range(3)).map(full_disk, num_parallel_calls=1, executor=executor))
    assert (got[0], got[2]) == (0, 2)
    assert "the disk named sda is full" in str(got[1])
    assert any("in map(full_disk), element 1" in note for note in got[1].__notes__)
    if executor == "thread":
        assert type(got[1]) is NeedsKeyword


class Held:
    """An element that can be weakly referred to."""


def count_errors(ds: Dataset[Any]) -> int:
    """Read everything and let go of each error at once; a list of them would hold itself by their tracebacks."""
    errors = 0
    with ds.iterate() as iterator:
        while True:
            try:
                next(iterator)
            except StopIteration:
                return errors
            except Boom:
                errors += 1


async def count_errors_async(ds: Dataset[Any]) -> int:
    errors = 0
    async with ds.iterate() as iterator:
        while True:
            try:
                await anext(iterator)
            except StopAsyncIteration:
                return errors
            except Boom:
                errors += 1


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("way", ["sequential", "threads", "coroutine", "prefetch"])
def test_an_error_that_was_dealt_with_keeps_no_element_alive(way: str, face: str) -> None:
    alive: weakref.WeakSet[Held] = weakref.WeakSet()
    seen = 0

    def source() -> Iterator[Held]:
        for _ in range(8):
            held = Held()
            alive.add(held)
            yield held

    def refuse(held: Held) -> Held:
        nonlocal seen
        seen += 1
        if seen % 3 == 0:
            raise Boom(seen)
        return held

    async def refuse_later(held: Held) -> Held:
        return refuse(held)

    ds = Dataset.from_generator(source)
    if way == "coroutine":
        ds = ds.map(refuse_later, num_parallel_calls=2)
    else:
        ds = ds.map(refuse, num_parallel_calls=2 if way == "threads" else None)
    if way == "prefetch":
        ds = ds.prefetch(3)
    gc.collect()
    gc.disable()
    try:
        assert (count_errors(ds) if face == "sync" else asyncio.run(count_errors_async(ds))) == 2
        assert len(alive) == 0
    finally:
        gc.enable()


def test_pulling_goes_on_behind_every_single_error() -> None:
    def only_even(line: bytes) -> bytes:
        if len(line) % 2:
            raise Boom(len(line))
        return line

    expected = [line if len(line) % 2 == 0 else Boom for line in islice(lines_of(MARCH), 400)]
    for parallel in (None, 1, 4):
        ds = TextLineDataset(MARCH).take(400).map(only_even, num_parallel_calls=parallel)
        with ds.iterate() as iterator:
            got = pull_all(iterator)
        assert [type(item) if isinstance(item, Exception) else item for item in got] == expected
