"""What `snapshot` does."""

from __future__ import annotations

import os
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from aiodata.columns import freeze
from aiodata.engine.block import Block, Failure, Tally
from aiodata.functions import name_of
from aiodata.sinks.fingerprint import fingerprint
from aiodata.sources._saved import read_saved
from aiodata.storage.saved.dataset import MANIFEST
from aiodata.storage.schemes import check_local
from aiodata.structure import unshared
from aiodata.transforms._saving import Saving, check_compression, check_shard_func, portions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Plan
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.sources._saved import ReaderFunc
    from aiodata.storage.saved.dataset import SavedDataset

__all__ = ["snapshotted"]


def snapshotted(
    self: Dataset[Any],
    path: str | bytes | os.PathLike[str],
    compression: str | None,
    reader_func: ReaderFunc | None,
    shard_func: Callable[..., Any] | None,
    name: str | None,
) -> Dataset[Any]:
    """Do as `snapshot`."""
    check_shard_func(shard_func, "snapshot")
    folder = check_local(os.fsdecode(path), "snapshot", "path", "save and load take URLs")
    place = _Place(folder, cache(partial(fingerprint, self)))
    spec = self.plan.element_spec()
    reader = read_saved(type(self), place.folder, _any, reader_func, "snapshot", shard_func is not None, spec)
    stage = partial(
        _snapshot,
        place=place,
        compression=check_compression(compression, "snapshot", automatic=True),
        shard_func=shard_func,
    )
    return self.then(
        "snapshot",
        stage,
        inputs=[self.plan, reader],
        detail=repr(place.path) + ("" if shard_func is None else f", shard_func={name_of(shard_func)}"),
        count=lambda count, _: count,
        spec=lambda spec, _: spec,
        waits=True,
        seeds=place,
        title=name,
    )


def _any(saved: SavedDataset) -> None:
    """Take whatever is saved: its place says that it is of this pipeline."""


class _Place:
    """Where a pipeline's snapshot is.

    It stands among the seed generators of a pipeline's state, for like theirs its own decides what comes: a pass that
    begins before there is a snapshot has the elements that fail too.

    Args:
        path: The folder for all pipelines.
        fingerprint: Gives the pipeline's number, always the same one.
    """

    def __init__(self, path: str, fingerprint: Callable[[], int]) -> None:
        self.path = path
        self.is_ahead = False
        """Whether there may be a snapshot, but was none when the state was saved that is being restored."""
        self._fingerprint = fingerprint

    def folder(self) -> str:
        """Give the pipeline's folder; the first time takes a while where there is much data in memory."""
        return os.path.join(self.path, f"{self._fingerprint():016x}")

    def is_there(self) -> bool:
        """Tell whether there is a snapshot."""
        return os.path.exists(os.path.join(self.folder(), MANIFEST))

    def save(self) -> bool:
        """Tell whether there is a snapshot, for a pass that is about to begin."""
        return self.is_there() and not self.is_ahead

    def load(self, saved: bool) -> None:
        """Let the next pass that begins do as it would have done."""
        self.is_ahead = not saved

    def restore(self, restored: set[int], saved: bool) -> None:
        """Do as `load`."""
        self.load(saved)

    def __copy__(self) -> _Place:
        """Give the same place, for a copy of the pipeline."""
        return _Place(self.path, self._fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out of fingerprints what has been worked out."""
        return type(self), (self.path, None)


def _snapshot(
    run: Run,
    source: Source,
    reader: Source,
    *,
    start: Any,
    place: _Place,
    compression: str,
    shard_func: Callable[..., Any] | None,
) -> AsyncIterator[Block[Any]]:
    """Read or write; a position is `[cursor]` of the reader or, while writing, of the input.

    The second has more: the cursor of the input's first element in that pass, and how many there were before.
    """
    there, is_ahead, place.is_ahead = place.is_there(), place.is_ahead, False
    if start is not None and len(start) == 1:
        return _kept(reader.open(start[0]))
    if there and start is None and not is_ahead:
        return _kept(reader.open())
    here, begun, number = start or (None, None, 0)
    first = None if begun is None else partial(_saved, begun)
    if there:
        return _going_on(source.open(here), first, number)
    saving = Saving(run, place.folder(), compression, shard_func, f"snapshot({place.path!r})")
    writing = _Writing(saving, place, source.plan)
    return _written(run, source.open(begun), writing, first, number)


async def _kept(blocks: AsyncIterator[Block[Any]]) -> AsyncIterator[Block[Any]]:
    """Give what was written."""
    async for block in blocks:
        origin = block.origin.within(partial(_position, block.here()), block.offset)
        if block.columns is not None:
            freeze(block.columns)
        elif block.computed is not None:
            freeze(tuple(block.computed))
        yield block.moved(origin)


async def _going_on(
    blocks: AsyncIterator[Block[Any]], begun: Callable[[], Any] | None, seen: int
) -> AsyncIterator[Block[Any]]:
    """Give the rest of a pass that wrote, when some pass has been completed since."""
    limit = Tally(1)
    async for block in blocks:
        begun = begun or block.here()
        for portion in portions(block, limit):
            given = _given(portion, begun, seen)
            seen += portion.length or 0
            yield given


async def _written(
    run: Run, blocks: AsyncIterator[Block[Any]], writing: _Writing, begun: Callable[[], Any] | None, number: int
) -> AsyncIterator[Block[Any]]:
    """Give the elements from a number on, and write all."""
    seen, limit = 0, Tally(1)
    try:
        await writing.saving.open()
        async for block in blocks:
            begun = begun or block.here()
            for portion in portions(block, limit):
                given = _given(portion, begun, seen)
                await writing.write(portion)
                seen += portion.length or 0
                missing = number - seen + (portion.length or 0)
                if seen > number:
                    yield given.drop(missing)[0] if missing > 0 else given
                await run.breathe()
        await writing.commit()
    finally:
        await writing.saving.discard()


def _given(portion: Block[Any], begun: Callable[[], Any], seen: int) -> Block[Any]:
    if portion.computed is None:
        freeze(portion.columns)
    else:
        freeze(tuple(portion.computed))
    position = partial(_position, portion.here(), begun, seen)
    return portion.moved(portion.origin.within(position, portion.offset))


class _Writing:
    """What is written of a pass: all but the elements that fail."""

    def __init__(self, saving: Saving, place: _Place, plan: Plan) -> None:
        self.saving = saving
        self._place = place
        self._expected = plan.cardinality()
        self._spec = plan.element_spec()
        self._count = 0
        self._complete = False

    async def write(self, portion: Block[Any]) -> None:
        """Write a portion; with as many elements as there will be it is complete, and put in its place."""
        if self._complete:
            return
        block = portion
        if portion.computed is not None:
            good = [unshared(each) for each in portion.computed if each.__class__ is not Failure]
            block = Block(portion.origin, portion.offset, computed=good, clean=True)
        self._count += block.length or 0
        if block.length:
            await self.saving.write(block)
        if self._count == self._expected:
            await self.commit()

    async def commit(self) -> None:
        if not self._complete:
            self._complete = True
            await self.saving.commit(self._spec, replace=False)
            self._place.is_ahead = False


def _saved(cursor: Any) -> Any:
    return cursor


def _position(here: Callable[[], Any], begun: Callable[[], Any] | None = None, seen: int = 0) -> Any:
    return [here()] if begun is None else [here(), begun(), seen]
