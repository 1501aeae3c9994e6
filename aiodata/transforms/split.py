"""`split`: parts of a dataset that never overlap."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.checks import check_integer
from aiodata.columns import take_columns
from aiodata.engine.block import Block, resumable
from aiodata.engine.plan import INFINITE, UNKNOWN, needs_loop
from aiodata.random import Seeds, get_seed
from aiodata.spec import same
from aiodata.transforms._frozen import frozen, to_open
from aiodata.transforms._parts import BEYOND, TOLERANCE, Parts, exact_sizes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import numpy.typing as npt

    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Plan
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["split"]

T = TypeVar("T")


def split(
    self: Dataset[T],
    fractions_or_sizes: Sequence[float] | Sequence[int],
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Dataset[T], ...]:
    """Part the elements at random into datasets that never overlap, in any epoch.

    Elements are told apart by their number, so this dataset must give them in the same order in every pass of every
    part: for the parts, the seeds of all its shuffles, samplings and random maps stay for ever as they are at this
    call, and its caches are theirs alone. A part has one order in all epochs; shuffle it again to have new ones:

        train, test = ds.shuffle(10_000).split([0.9, 0.1])
        train = train.shuffle(1_000).repeat(3)

    Each part reads the whole input and drops what is not its own. Stages of the input that run in parallel keep their
    order, whatever the options say. An element that fails counts, and raises in its own part only. What a function
    in the input does by itself (draws, reads a changing file) cannot be kept the same.

    Args:
        fractions_or_sizes: One number for each part. Fractions above 0, in sum at most 1: if the number of elements is
            known, the parts' sizes are exact, else each element's part is drawn by itself. Or sizes of at least 1, in
            sum at most the number of elements, which must be known. Elements that are left over are in no part.
        seed: With it, or with `set_seed`, the parts are the same in every process. Without, they are drawn at this
            call, once for all.
        name: A name for the stage, shown in `repr`.

    Returns:
        As many datasets as numbers, with their elements in the order of the input.

    Raises:
        TypeError: The numbers are not a list of only floats or only integers, or the seed is not an integer.
        ValueError: There are none, one is out of its range, the sum is too large, sizes are given and the number of
            elements is not known, or a stage of the input has `deterministic=False`.

    >>> import aiodata
    >>> train, test = aiodata.Dataset.range(10).split([0.7, 0.3], seed=2)
    >>> [int(x) for x in train], [int(x) for x in test]
    ([0, 1, 2, 4, 5, 6, 8], [3, 7, 9])

    Source: an addition to tf.data, where `take` and `skip` part a dataset that has one order only.
    """
    numbers = _checked(fractions_or_sizes)
    available = self.plan.cardinality()
    sizes = _sizes(numbers, available)
    counts = sizes or [INFINITE if available == INFINITE else UNKNOWN] * len(numbers)
    left = None if sizes is None else [*sizes, available - sum(sizes)]
    source = frozen(self.plan)
    seeds = Seeds(*_apart(get_seed(seed), source), reshuffle=False)
    shown = f"{numbers}" if seed is None else f"{numbers}, seed={seed}"
    own = [[part] for part in range(len(numbers))]
    if left is not None and not left[-1]:
        own[-1].append(BEYOND)  # an error may make more elements than are known; they belong somewhere
    parts = [
        self.then(
            "split",
            partial(_split, seeds=seeds, left=left, fractions=numbers, own=own[part]),
            inputs=[source],
            detail=f"{part} of {shown}",
            count=partial(_count, own=count),
            spec=same,
            waits=needs_loop(source),
            seeds=seeds,
            title=name,
        )
        for part, count in enumerate(counts)
    ]
    return tuple(parts)


def _checked(given: Any) -> list[Any]:
    """Give the numbers as Python's, all floats or all integers."""
    if not isinstance(given, (Sequence, np.ndarray)) or isinstance(given, (str, bytes)):
        raise TypeError(f"split: fractions_or_sizes must be a list of numbers, not {type(given).__name__}")
    if not len(given):
        raise ValueError("split: fractions_or_sizes is empty")
    if any(isinstance(number, (float, np.floating)) for number in given):
        for number in given:
            if not isinstance(number, (float, np.floating)):
                raise TypeError(f"split: give fractions or sizes, not both: {list(given)}")
            if not number > 0:
                raise ValueError(f"split: fractions must be above 0, not {number}")
        fractions = [float(number) for number in given]
        if not math.fsum(fractions) <= 1 + TOLERANCE:
            raise ValueError(f"split: fractions must add up to at most 1, not {math.fsum(fractions)}: {fractions}")
        return fractions
    return [check_integer(number, "split", "each size", 1) for number in given]


def _sizes(numbers: list[Any], available: int) -> list[int] | None:
    """Give the parts' sizes; None where they depend on how many elements come."""
    if isinstance(numbers[0], float):
        return None if available < 0 else exact_sizes(numbers, available)
    if available < 0:
        kind = "infinite" if available == INFINITE else "unknown"
        raise ValueError(
            f"split: sizes need a known number of elements, but here it is {kind}; give fractions, or state it with "
            "assert_cardinality"
        )
    if sum(numbers) > available:
        raise ValueError(f"split: the sizes {numbers} add up to {sum(numbers)}, but there are {available} elements")
    return numbers


def _apart(pair: tuple[int, int], source: Plan) -> tuple[int, int]:
    """Give the pair of a stream that nothing in the input takes words from, if it was given the same seed.

    Seeds fill the lower half of the second number only; the upper half gets the number of this split and those before.
    """
    return pair[0], pair[1] + (1 + sum(stage.name == "split" for stage in source.walk()) << 32)


def _count(_: int, own: int) -> int:
    return own


def _split(
    run: Run,
    source: Source,
    *,
    start: Any,
    seeds: Seeds,
    left: list[int] | None,
    fractions: list[float],
    own: list[int],
) -> AsyncIterator[Block[Any]]:
    pair, number, cursor = seeds.seeds, 0, None
    if start is not None:
        pair, number, left, cursor = tuple(start["pair"]), start["number"], start["left"], start["source"]
        seeds.restore(run.restored, [*pair, 0])
    source.above = None  # each opening has generators of its own, which draw for nobody else
    blocks = source.open_inner(to_open(source.plan, pair[1]), cursor)
    return _own(blocks, Parts(pair, number, left, fractions), own, pair)


async def _own(
    blocks: AsyncIterator[Block[Any]], parts: Parts, own: list[int], pair: tuple[int, int]
) -> AsyncIterator[Block[Any]]:
    async for block in blocks:
        origin = block.origin.within(partial(_position, pair, *parts.mark(), block.here()), block.offset)
        if block.columns is not None and block.length is not None:
            rows = np.flatnonzero(np.isin(parts.take(block.length), own))
            origin.place = partial(_place, origin.place, rows)
            yield Block(origin, columns=take_columns(block.columns, rows), length=len(rows))
        else:
            kept = array("L")
            origin.place = partial(_place, origin.place, kept)
            yield Block(origin, rows=_picked(block.rows(), parts, own, kept))


def _picked(rows: Iterator[Any], parts: Parts, own: list[int], kept: array[int]) -> Iterator[Any]:
    ahead = parts.ahead
    done = 0

    def picking() -> Iterator[Any]:
        nonlocal done
        while True:
            if not ahead:
                parts.refill()
            wanted = ahead[-1] in own
            try:
                element = next(rows, parts)
            except Exception:
                ahead.pop()
                done += 1
                if wanted:
                    kept.append(done - 1)
                    raise
                continue
            if element is parts:
                return
            ahead.pop()
            done += 1
            if wanted:
                kept.append(done - 1)
                yield element

    return resumable(picking)


def _place(place: Callable[[int], str | None], kept: array[int] | npt.NDArray[np.intp], offset: int) -> str | None:
    """Name the place of an element, or the one behind those that have been given."""
    return place(int(kept[offset]) if offset < len(kept) else int(kept[-1]) + 1 if len(kept) else 0)


def _position(pair: tuple[int, int], number: int, left: list[int] | None, cursor: Callable[[], Any]) -> dict[str, Any]:
    return {"pair": list(pair), "number": number, "left": left, "source": cursor()}
