"""The parts of `rejection_resample`: distributions, their estimate as elements come, and the accepted elements."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.block import Block, Failure, Tally, resumable
from aiodata.engine.concurrent import Feed
from aiodata.engine.position import Origin
from aiodata.errors import DataError
from aiodata.philox import philox
from aiodata.random import Seeds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import numpy.typing as npt

    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

    Distribution = npt.NDArray[np.float32]

__all__ = ["ResampleSeeds", "accepted", "class_of", "distribution", "estimated", "mix_weights", "shares"]

TINY = np.float32(1.17549435e-38)
SMOOTHING = 10
"""Elements of each class that the estimate assumes before it has seen any."""
BATCH = 32
"""Elements that make the estimate for as many."""
PORTION = 4
"""Elements classified between two looks at the clock."""


class ResampleSeeds(Seeds):
    """The seeds of a mix's selections, and the pair that decides which elements are accepted.

    Args:
        selections: The pair of the selections.
        draws: The pair of the decisions.
    """

    __slots__ = ("draws",)

    def __init__(self, selections: tuple[int, int], draws: tuple[int, int]) -> None:
        super().__init__(*selections, reshuffle=False)
        self.draws = draws

    def save(self) -> list[int]:
        """Give the state as JSON."""
        return [*super().save(), *self.draws]

    def load(self, saved: list[int]) -> None:
        """Set a saved state."""
        super().load(saved)
        self.draws = (saved[3], saved[4])


def distribution(values: Any, argument: str) -> Distribution:
    """Give a distribution as float32, which tf.data computes with.

    Raises:
        TypeError: The values are not numbers.
        ValueError: They are not a list of finite numbers from 0 with a positive one among them.
    """
    found = np.asarray(values)
    if found.dtype.kind not in "iuf":
        raise TypeError(f"rejection_resample: {argument} must be numbers, not {values!r:.80}")
    if found.ndim != 1 or not len(found):
        raise ValueError(f"rejection_resample: {argument} must have one number for each class, not shape {found.shape}")
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise ValueError(f"rejection_resample: {argument} must be finite, not negative and not all 0: {values!r:.80}")
    return found.astype(np.float32)


def _ratios(target: Distribution, initial: Distribution) -> Distribution:
    return target / (initial + TINY)


def mix_weights(target: Distribution, initial: Distribution) -> Distribution:
    """Give the weights of all elements and of the accepted ones."""
    least = _ratios(target, initial).min()
    weights = np.array([least, np.float32(1) - least])
    weights.setflags(write=False)
    return weights


def shares(target: Distribution, initial: Distribution) -> list[float]:
    """Give the share of each class that is accepted; NaN, which accepts nothing, where all ratios are alike."""
    ratios = _ratios(target, initial)
    least, most = ratios.min(), ratios.max()
    with np.errstate(invalid="ignore"):
        found: list[float] = ((ratios - least) / (most - least)).tolist()
    return found


def class_of(found: Any, count: int) -> Any:
    """Check what `class_func` gave, and give it with the dtype that tf.data would.

    Raises:
        TypeError: It is not an integer.
        DataError: There is no such class.
    """
    if isinstance(found, np.ndarray) and found.shape == ():
        found = found[()]
    if isinstance(found, bool) or not isinstance(found, (int, np.integer)):
        raise TypeError(f"class_func must give an integer, not {type(found).__name__}: {found!r:.80}")
    if not 0 <= found < count:
        raise DataError(f"class {found} is out of range: classes are numbered 0 to {count - 1}")
    return np.int32(found) if isinstance(found, int) else found


def estimated(
    run: Run, source: Source, *, start: Any, classes: int, give: Callable[[Distribution], Any]
) -> AsyncIterator[Block[Any]]:
    """Give for each element of an input of `(class, element)` what follows from the classes seen so far; a stage.

    An element that failed counts for no class.

    Args:
        run: The run.
        source: The input.
        start: Position: how many there were of each class, and the cursor of the element that is next.
        classes: Number of classes.
        give: Makes an element from the estimated distribution.
    """
    counts, cursor = start or ([SMOOTHING] * classes, None)
    return _estimates(run, source.open(cursor), list(counts), give)


async def _estimates(
    run: Run, blocks: AsyncIterator[Block[Any]], counts: list[int], give: Callable[[Distribution], Any]
) -> AsyncIterator[Block[Any]]:
    feed = Feed(blocks)
    while (chunk := await feed.chunk(PORTION)) is not None:
        origin = Origin(partial(_estimate_position, tuple(counts), chunk.here()))
        missing = BATCH
        while chunk is not None:
            for found in chunk.computed or chunk.rows():
                if found.__class__ is not Failure:
                    counts[found[0]] += 1
                missing -= 1
            await run.breathe()
            chunk = await feed.chunk(min(missing, PORTION)) if missing else None
        seen = np.array(counts)
        estimate = give((seen / seen.sum()).astype(np.float32))
        yield Block(origin, computed=[estimate] * BATCH, clean=True)


def _estimate_position(counts: tuple[int, ...], here: Callable[[], Cursor]) -> Any:
    return [list(counts), here()]


class _Draws:
    """The numbers in [0, 1) that decide, one for each element: tf.data takes one word of every 256th Philox block."""

    def __init__(self, pair: tuple[int, int], used: int) -> None:
        self.used = used
        self._key = (pair[0] & 0xFFFFFFFF, pair[0] >> 32)
        self._tail = (pair[1] & 0xFFFFFFFF, pair[1] >> 32)
        self._size = 64
        self._ready: list[float] = []

    def next(self) -> float:
        if not self._ready:
            blocks = np.arange(self.used, self.used + self._size, dtype=np.uint64) * np.uint64(256)
            self._size = min(4 * self._size, 4096)
            low, high = blocks & np.uint64(0xFFFFFFFF), blocks >> np.uint64(32)
            words = philox((low, high, *self._tail), self._key)[0]
            self._ready = ((words & np.uint64(0x7FFFFF)).astype(np.float64) * 2.0**-23)[::-1].tolist()
        self.used += 1
        return self._ready.pop()


def accepted(
    run: Run, source: Source, *, start: Any, seeds: ResampleSeeds, fixed: list[float] | None
) -> AsyncIterator[Block[Any]]:
    """Give the `(class, element)`s that are accepted; a stage.

    Args:
        run: The run.
        source: Gives them; without `fixed` it gives `(shares, anything, (class, element))`.
        start: Position.
        seeds: Of the decisions.
        fixed: The share of each class that is accepted.
    """
    if start is None:
        saved, used, cursor = seeds.save(), 0, None
    else:
        saved, used, cursor = start["seeds"], start["used"], start["at"]
        seeds.restore(run.restored, saved)
    return _accept(source.open(cursor), _Draws((saved[3], saved[4]), used), saved, fixed)


async def _accept(
    blocks: AsyncIterator[Block[Any]], draws: _Draws, saved: list[int], fixed: list[float] | None
) -> AsyncIterator[Block[Any]]:
    async for block in blocks:
        kept = array("L")
        origin = block.origin.within(partial(_position, saved, draws.used, block.here()), block.offset)
        origin.place = partial(_place, origin.place, kept)
        yield Block(origin, rows=resumable(partial(_accepting, block.rows(), draws, fixed, kept, Tally())))


def _accepting(
    rows: Iterator[Any], draws: _Draws, fixed: list[float] | None, kept: array[int], pulled: Tally
) -> Iterator[Any]:
    try:
        for row in rows:
            share, pair = (row[0], row[2]) if fixed is None else (fixed, row)
            pulled.count += 1
            if draws.next() < share[pair[0]]:
                kept.append(pulled.count - 1)
                yield pair
    except Exception:
        kept.append(pulled.count)
        pulled.count += 1
        raise


def _position(saved: list[int], used: int, here: Callable[[], Cursor]) -> Any:
    return {"seeds": saved, "used": used, "at": here()}


def _place(place: Callable[[int], str | None], kept: array[int], offset: int) -> str | None:
    return place(kept[offset] if offset < len(kept) else kept[-1] + 1 if kept else 0)
