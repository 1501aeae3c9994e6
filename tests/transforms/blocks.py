"""Datasets of a given block structure, and reading with all places and positions; for the tests in this folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from aiodata import Dataset
from aiodata.engine.block import Block, Failure
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin
from aiodata.engine.run import Run
from tests.programs import Boom

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from aiodata.engine.position import Cursor


@dataclass(frozen=True)
class Piece:
    """One block: its kind, how many elements it has, and which of them fail, where the kind allows that."""

    kind: str
    length: int
    bad: frozenset[int] = frozenset()


PIECES = st.one_of(
    st.builds(
        Piece,
        st.sampled_from(["list", "columns", "float columns", "columns within others", "columns within yet others"]),
        st.integers(0, 9),
    ),
    st.builds(
        Piece,
        st.sampled_from(["list", "rows", "rows of known length"]),
        st.integers(0, 9),
        st.frozensets(st.integers(0, 8)),
    ),
)


def dataset_of(pieces: Sequence[Piece], base: int = 0) -> Dataset[Any]:
    """Give the numbers from `base` on, in blocks; the place of each one is itself in words."""
    whole = np.arange(base, base + sum(piece.length for piece in pieces))
    wholes = {"columns within others": whole, "columns within yet others": np.concatenate([whole[:3], whole])}
    return Dataset(Plan("blocks", partial(_blocks, pieces=pieces, base=base, wholes=wholes)))


def outcomes_of(pieces: Sequence[Piece], base: int = 0) -> list[Any]:
    """Say what comes out of a dataset: a number, or the text of an error."""
    found: list[Any] = []
    for piece in pieces:
        for index in range(piece.length):
            value = base + len(found)
            found.append(f"Boom({value})" if index in piece.bad and "columns" not in piece.kind else value)
    return found


async def _blocks(
    run: Run, *, start: int | None, pieces: Sequence[Piece], base: int, wholes: dict[str, Any]
) -> AsyncIterator[Block[Any]]:
    first = 0
    for piece in pieces:
        skip = max(0, (start or 0) - first)
        if skip < max(1, piece.length):
            yield _block(piece, base, first, skip, wholes.get(piece.kind))
        first += piece.length


def _block(piece: Piece, base: int, first: int, skip: int, whole: Any) -> Block[Any]:
    begin, count = first + skip, piece.length - skip
    origin = Origin(partial(int, begin), lambda offset: f"place {base + begin + offset}")
    values = np.arange(base + begin, base + begin + count)
    bad = {index - skip for index in piece.bad}
    if piece.kind == "columns":
        return Block(origin, columns=values, length=count)
    if whole is not None:
        at = begin + len(whole) - int(whole[-1]) + base - 1 if len(whole) else 0
        return Block(origin, columns=whole[at : at + count], length=count, within=(whole, at))
    if piece.kind == "float columns":
        return Block(origin, columns=values.astype(float), length=count)
    if piece.kind == "list":
        return Block(origin, computed=[Failure(Boom(x)) if i in bad else x for i, x in enumerate(values.tolist())])

    def compute(pair: tuple[int, int]) -> int:
        if pair[0] in bad:
            raise Boom(pair[1])
        return pair[1]

    rows = map(compute, enumerate(values.tolist()))
    return Block(origin, rows=rows, length=count if piece.kind == "rows of known length" else None)


@dataclass(frozen=True)
class Reading:
    """What was read: each outcome; and what gives its place and the position before it."""

    outcomes: list[Any]
    places: list[Callable[[], str | None]]
    cursors: list[Callable[[], Cursor]]
    computed: list[bool]
    """Whether it came in a block that had been computed."""


def read(ds: Dataset[Any], start: Cursor | None = None) -> Reading:
    """Read everything with no loop."""
    run = Run(ds.plan)
    run.stepped = True
    reading = Reading([], [], [], [])
    blocks = run.open(ds.plan, start)
    try:
        while (block := _step(blocks)) is not None:
            computed = block.columns is not None or block.computed is not None
            for index, outcome in enumerate(_pulled(block.rows())):
                reading.outcomes.append(outcome)
                reading.places.append(partial(block.origin.place, block.offset + index))
                reading.cursors.append(partial(block.cursor, index))
                reading.computed.append(computed)
    finally:
        run.close()
    return reading


def _step(blocks: AsyncIterator[Block[Any]]) -> Block[Any] | None:
    step: Any = anext(blocks, None)
    try:
        next(step.__await__())
    except StopIteration as stop:
        found: Block[Any] | None = stop.value
        return found
    raise AssertionError("a pipeline without a loop had to wait")


def _pulled(rows: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            element = next(rows)
        except StopIteration:
            return
        except Boom as error:
            yield f"Boom({error.args[0]})"
        else:
            yield int(element)


def check(make: Callable[[], Dataset[Any]], expected: list[Any]) -> Reading:
    """Compare everything with what is expected, asking for places and positions when all has been read."""
    reading = read(make())
    assert reading.outcomes == expected
    places = [f"place {x}" if isinstance(x, int) else x.replace("Boom(", "place ").rstrip(")") for x in expected]
    assert [place() for place in reading.places] == places
    for number, cursor in enumerate(reading.cursors):
        assert read(make(), cursor()).outcomes == expected[number:]
    return reading
