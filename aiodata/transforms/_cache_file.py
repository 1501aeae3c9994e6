"""A cache in a file: an archive of elements, which the first complete pass writes and later ones read.

The file also says where in its input that pass began, and what the pipeline was, so that a saved state finds the same
elements in it or knows that it does not, and a file that another pipeline has left is not taken for this one's.
"""

from __future__ import annotations

import errno
import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.columns import freeze
from aiodata.engine.block import Block, Failure, Tally
from aiodata.engine.position import Origin
from aiodata.engine.state import describe, difference
from aiodata.errors import DataError
from aiodata.formats.element_archive import ElementArchive
from aiodata.formats.element_archive_writer import ElementArchiveWriter
from aiodata.storage.atomic import AtomicFile
from aiodata.structure import unshared
from aiodata.transforms._saving import portions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.engine.plan import Plan
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["FileStore", "cached_in_file"]


class FileStore:
    """What all iterators over one dataset that is cached in a file share.

    It stands among the seed generators of a pipeline's state, as the store in memory does.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.full = False
        """Whether this process has seen the file complete."""
        self.begun: Callable[[], Any] = _nowhere
        """Gives the cursor of the input's first element in the pass that filled it, or is to fill it."""

    def save(self) -> Any:
        """Give where the pass that filled the file began; None if that is not known."""
        return self.begun() if self.full else None

    def load(self, saved: Any) -> None:
        """Make sure that the file will be filled as it was, if it is not full."""
        if not self.full:
            self.begun = partial(_saved, saved)

    def restore(self, restored: set[int], saved: Any) -> None:
        """Do as `load`."""
        self.load(saved)

    def fill(self, begun: Callable[[], Any]) -> None:
        """Note that the file is complete, and where the pass began that filled it."""
        self.full, self.begun = True, begun

    def is_there(self) -> bool:
        """Tell whether there is a file; one that is gone, although it was full, is filled by a pass of its own."""
        there = os.path.exists(self.path)
        if there and not os.path.isfile(self.path):
            raise FileExistsError(errno.EEXIST, "cache: this is there, and is no file", self.path)
        if self.full and not there:
            self.full, self.begun = False, _nowhere
        return there


def cached_in_file(run: Run, source: Source, *, start: Any, store: FileStore) -> AsyncIterator[Block[Any]]:
    """Give the elements from the file if it is there, else from the input, and write them; a stage.

    Args:
        run: The run.
        source: The input.
        start: A position is `[begun, number, filling]`: the cursor of the input's first element in the pass that filled
            the file or is filling it, the number of the next element, and whether those that failed are counted.
        store: The file.
    """
    there = store.is_there()
    if start is None:
        if there:
            return _kept(run, source.plan, store, 0)
        return _filled(run, source, store, store.begun(), 0, True)
    begun, number, filling = start
    if there and not filling:
        archive = ElementArchive(store.path)
        try:
            _open(archive, source.plan)  # here, for it decides whether the input is opened
            same = archive.extra["begun"] == _as_json(begun)
        finally:
            archive.close()
        if same:
            return _kept(run, source.plan, store, number)
    return _filled(run, source, store, begun, number, filling)


def _open(archive: ElementArchive, plan: Plan) -> None:
    """Open a file, and make sure that it is a cache of this pipeline.

    Raises:
        OSError: It cannot be read.
        CorruptRecordError: It is damaged, or no archive of elements.
        DataError: It belongs to something else.
    """
    archive.open()
    if not {"begun", "pipeline"} <= archive.extra.keys():
        raise DataError(f"cache: {archive.path} is there, and is no cache; name another file")
    if (differs := difference(archive.extra["pipeline"], describe(plan))) is not None:
        raise DataError(
            f"cache: {archive.path} was filled by another pipeline: {differs}; remove the file, or name another one"
        )


async def _kept(run: Run, plan: Plan, store: FileStore, number: int) -> AsyncIterator[Block[Any]]:
    """Give the elements in the file, from one of them on."""
    archive = ElementArchive(store.path)
    try:
        await run.in_thread(_open, archive, plan)
        begun = partial(_saved, archive.extra["begun"])
        store.fill(begun)
        first, behind = archive.find(number) if number < archive.count else (len(archive.starts), 0)
        for at in range(first, len(archive.starts)):
            chunk = await run.in_thread(archive.read, at)
            origin = Origin(partial(_position, begun, archive.starts[at], False))
            block: Block[Any]
            if chunk.columns is None:
                block = Block(origin, computed=chunk.elements, clean=True)
            else:
                block = Block(origin, columns=chunk.columns, length=chunk.length)
            yield block.drop(behind)[0] if behind else block
            behind = 0
    finally:
        await run.in_thread(archive.close)


def _filled(
    run: Run, source: Source, store: FileStore, begun: Any, number: int, with_errors: bool
) -> AsyncIterator[Block[Any]]:
    """Give the input's elements, from one of them on; write them all, unless the file is there.

    Args:
        run: The run.
        source: The input.
        store: The file.
        begun: Where the pass begins in the input.
        number: The first element to give.
        with_errors: Whether those that failed are given and counted: they are in a pass that fills the file, and not in
            one that reads it.
    """
    filling = _Filling(store, source.plan, _nowhere if begun is None else partial(_saved, begun))
    return _filling(run, source.open(begun), filling, number, with_errors)


async def _filling(
    run: Run, blocks: AsyncIterator[Block[Any]], filling: _Filling, number: int, with_errors: bool
) -> AsyncIterator[Block[Any]]:
    seen, limit = 0, Tally(1)
    try:
        await run.in_thread(filling.open)
        async for block in blocks:
            filling.begin(block.here())
            for portion in portions(block, limit):
                await run.in_thread(filling.keep, portion)
                position = partial(_position, filling.begun, seen, with_errors)
                given = portion.moved(block.origin.within(position, portion.offset))
                if not with_errors and given.computed is not None:
                    given = Block(Origin(position), computed=_good(given.computed), clean=True)
                count = given.length or 0
                seen += count
                given, behind = given.drop(number - seen + count) if seen - count < number else (given, 0)
                if filling.is_complete and count > behind:
                    # Whoever does not ask for the last element has not read it all, though all is there.
                    if (before := given.chunk(count - behind - 1)) is not None:
                        yield before
                    await run.in_thread(filling.finish)
                    yield given.remainder()
                elif count > behind:
                    yield given
                await run.breathe()
        await run.in_thread(filling.finish)
    finally:
        await run.in_thread(filling.discard)


def _good(elements: list[Any]) -> list[Any]:
    return [each for each in elements if each.__class__ is not Failure]


class _Filling:
    """The file that one pass writes; if there is one already, nothing is written."""

    def __init__(self, store: FileStore, plan: Plan, begun: Callable[[], Any]) -> None:
        self.begun = begun
        self._store = store
        self._plan = plan
        self._expected = plan.cardinality()
        self._file: AtomicFile | None = None
        self._writer: ElementArchiveWriter | None = None
        self._kept = 0

    def open(self) -> None:
        """Begin to write.

        Raises:
            OSError: There is no such folder, or it cannot be written to.
        """
        if not os.path.exists(self._store.path):
            self._file = AtomicFile(self._store.path)
            self._writer = ElementArchiveWriter(self._file.file, "", "the cache")

    def begin(self, here: Callable[[], Any]) -> None:
        """Note where the input's first element came from; later calls do nothing."""
        if self.begun is _nowhere:
            self.begun = here

    def keep(self, portion: Block[Any]) -> None:
        """Write a portion.

        Raises:
            OSError: It cannot be written.
            TypeError: An element holds something that a file cannot.
        """
        if self._writer is None:
            return
        if portion.computed is None:
            self._kept += portion.length or 0
            self._writer.write_columns(freeze(portion.columns))
        else:
            elements = [unshared(freeze(element)) for element in _good(portion.computed)]
            self._kept += len(elements)
            self._writer.write(elements)

    @property
    def is_complete(self) -> bool:
        """Whether there are as many elements in the file as there will be, and it is not in its place yet."""
        return self._writer is not None and self._kept == self._expected

    def finish(self) -> None:
        """Complete the file and put it in its place; one that another pass has put there meanwhile stays."""
        if self._writer is None or self._file is None:
            return
        begun = _as_json(self.begun())
        if not os.path.exists(self._store.path):
            self._writer.finish({"begun": begun, "pipeline": describe(self._plan)})
            self._file.commit()
            self._store.fill(partial(_saved, begun))
        self.discard()

    def discard(self) -> None:
        """Write nothing more; a file that is not complete is removed."""
        writer, file, self._writer, self._file = self._writer, self._file, None, None
        if writer is not None:
            writer.discard()
        if file is not None:
            file.discard()


def _nowhere() -> None:
    return None


def _saved(cursor: Any) -> Any:
    return cursor


def _as_json(cursor: Any) -> Any:
    """Give a cursor as it comes back from a file."""
    return json.loads(json.dumps(cursor))


def _position(begun: Callable[[], Any], number: int, with_errors: bool) -> Any:
    return [begun(), number, with_errors]
