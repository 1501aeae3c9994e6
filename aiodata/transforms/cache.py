"""`cache`: keep the elements in memory or in a file."""

from __future__ import annotations

import os
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.columns import freeze
from aiodata.engine.block import Block, Failure, resumable
from aiodata.engine.position import Origin
from aiodata.spec import same
from aiodata.storage.schemes import check_local
from aiodata.structure import PLAIN, unshared

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["cache"]

T = TypeVar("T")


def cache(self: Dataset[T], filename: str | os.PathLike[str] = "", name: str | None = None) -> Dataset[T]:
    """Keep the elements of the first complete pass in memory or in a file, and give later passes from there.

    A store in memory belongs to the dataset that this call gives and is shared by all iterators over it and over what
    is made of it; one in a file is read by every process that names it. It is complete when the end was reached, or as
    many elements as the input is known to have; a partial pass keeps nothing. Errors are not kept, the elements around
    them are. In the pass that fills the store arrays are marked read-only, and in memory also later, so that a step
    which works in place fails instead of changing what later passes see.

    A file is written under another name and put in its place when it is complete, so a process that is killed leaves
    no half a cache, and nothing to clean up. Two processes that fill one at once each write their own, and the first
    to be complete stays. It is a ZIP file of numpy arrays with checksums, and says which pipeline has filled it: one
    that differs in its stages or their arguments is refused, but not one whose functions have the same names and do
    something else. To fill it anew, remove it. It holds numbers, text, None, arrays, and tuples and dicts of them. In
    the pass that fills it up to 256 elements, or 5 ms of them, are computed ahead.

    A state saved behind a cache is small; restoring it in a process whose cache is not full reads the input again
    from its start, to fill it. So does one that was saved while a store was being filled.

    Args:
        filename: The file, in a folder that exists; "" keeps the elements in memory.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `filename` is no path; while iterating: an element holds what a file of elements cannot.
        ValueError: `filename` is a URL of remote storage.
        OSError: While iterating: the file cannot be written or read.
        CorruptRecordError: While iterating: the file is damaged.
        DataError: While iterating: the file was filled by another pipeline, or is no cache.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(3).cache()
    >>> [int(x) for x in ds], [int(x) for x in ds]
    ([0, 1, 2], [0, 1, 2])

    Source: `tf.data.Dataset.cache`.
    """
    if not isinstance(filename, (str, bytes, os.PathLike)):
        raise TypeError(f"cache: filename must be a path, not {type(filename).__name__}")
    path = check_local(os.fsdecode(filename), "cache", "filename", "save and load take URLs")
    store: Any = _Store()
    stage: Any = partial(_cache, store=store)
    if path:
        from aiodata.transforms._cache_file import FileStore, cached_in_file  # takes a while to import

        store = FileStore(os.path.abspath(path))
        stage = partial(cached_in_file, store=store)
    detail = os.path.basename(path)  # the folder may be another one where a state is restored
    return self.then("cache", stage, detail=detail, count=_itself, spec=same, seeds=store, title=name)


def _itself(count: int) -> int:
    return count


class _Store:
    """What all iterators over one cached dataset share.

    It stands among the seed generators of a pipeline's state, for like theirs its own decides what later passes give:
    the order of the pass that filled it.
    """

    def __init__(self) -> None:
        self.blocks: list[_Kept] | None = None
        """The elements, once complete."""
        self.begun: Callable[[], Any] = _nowhere
        """Gives the cursor of the input's first element in the pass that filled it, or is to fill it."""

    def save(self) -> Any:
        """Give where the pass that filled the store began; None if it is not full."""
        return None if self.blocks is None else self.begun()

    def load(self, saved: Any) -> None:
        """Make sure that the store will be filled as it was, if it is not full."""
        if self.blocks is None:
            self.begun = partial(_saved, saved)

    def restore(self, restored: set[int], saved: Any) -> None:
        """Do as `load`."""
        self.load(saved)


class _Kept:
    """A run of kept elements: a list, or columns."""

    __slots__ = ("columns", "elements", "length")

    def __init__(self, elements: list[Any] | None, columns: Any, length: int) -> None:
        self.elements = elements
        self.columns = columns
        self.length = length


def _cache(run: Run, source: Source, *, start: Any, store: _Store) -> AsyncIterator[Block[Any]]:
    if start is None and store.blocks is not None:
        return _kept(store, store.blocks, 0)
    begun, index, filling = start or (store.begun(), 0, False)
    if store.blocks is not None and not filling and store.begun() == begun:
        return _kept(store, store.blocks, index)
    if begun is not None and not filling:
        return _filled(run, source.open(begun), store, begun, index)
    return _keeping(source.open(begun), source.plan.cardinality(), store, index)


async def _filled(
    run: Run, blocks: AsyncIterator[Block[Any]], store: _Store, begun: Cursor, index: int
) -> AsyncIterator[Block[Any]]:
    """Read the input again as it was read to fill the store, then give from the store."""
    kept: list[_Kept] = []
    async for block in blocks:
        if block.columns is not None and block.length is not None:
            kept.append(_Kept(None, freeze(block.sliced(0, block.length).columns), block.length))
            continue
        while (chunk := block.chunk(256)) is not None:
            elements = [freeze(element) for element in chunk.computed or () if element.__class__ is not Failure]
            kept.append(_Kept(elements, None, len(elements)))
            await run.breathe()
    if store.blocks is None:
        store.begun, store.blocks = partial(_saved, begun), kept
    async with aclosing(_kept(store, kept, index)) as rest:
        async for block in rest:
            yield block


async def _kept(store: _Store, blocks: list[_Kept], index: int) -> AsyncGenerator[Block[Any], None]:
    first = 0
    for kept in blocks:
        origin = Origin(partial(_position, store.begun, first, False))
        first += kept.length
        if first <= index:
            continue
        block: Block[Any]
        if kept.elements is None:
            block = Block(origin, columns=kept.columns, length=kept.length)
        else:
            whole = PLAIN.issuperset(map(type, kept.elements))
            rows = kept.elements if whole else map(unshared, kept.elements)
            block = Block(origin, rows=iter(rows), length=kept.length)
        behind = index - (first - kept.length)
        yield block.drop(behind)[0] if behind > 0 else block


async def _keeping(
    blocks: AsyncIterator[Block[Any]], expected: int, store: _Store, index: int
) -> AsyncIterator[Block[Any]]:
    """Give and keep the elements; the first `index` are only kept."""
    pass_ = _Pass(store, expected)
    async for block in blocks:
        if pass_.begun is None:
            pass_.begun = block.here()
        origin = Origin(partial(_position, pass_.begun, pass_.seen, True), block.origin.place)
        parts: Iterable[Block[Any]]
        if block.columns is not None and block.length is not None:
            columns = freeze(block.sliced(0, block.length).columns)
            parts = pass_.kept_columns(Block(origin, columns=columns, length=block.length), block.length)
        else:
            parts = [Block(origin, rows=pass_.kept_rows(block.rows()))]
        for kept in parts:
            rest, dropped = kept.drop(index) if index > 0 else (kept, 0)
            index -= dropped
            if not index:
                yield rest
    pass_.finish()


class _Pass:
    """One pass that fills the store."""

    def __init__(self, store: _Store, expected: int) -> None:
        self.store = store
        self.expected = expected
        self.begun: Callable[[], Any] | None = None
        self.blocks: list[_Kept] = []
        self.kept = 0
        self.seen = 0

    def kept_columns(self, block: Block[Any], length: int) -> Iterator[Block[Any]]:
        """Give the columns; but the element that completes the store as a row: pulling it shows that it was read."""
        self.blocks.append(_Kept(None, block.columns, length))
        self.kept += length
        self.seen += length
        last = length - 1 if self.kept == self.expected else length
        if last:
            yield block.sliced(0, last)
        if last < length:
            yield Block(block.origin, last, rows=self._finishing(block.sliced(last, length).rows()), length=1)

    def _finishing(self, rows: Iterator[Any]) -> Iterator[Any]:
        for element in rows:
            self.finish()
            yield element

    def kept_rows(self, rows: Iterator[Any]) -> Iterator[Any]:
        kept = _Kept([], None, 0)
        self.blocks.append(kept)
        elements = kept.elements
        assert elements is not None

        def keeping() -> Iterator[Any]:
            try:
                for element in rows:
                    elements.append(unshared(freeze(element)))
                    kept.length += 1
                    self.kept += 1
                    self.seen += 1
                    if self.kept == self.expected:
                        self.finish()
                    yield element
            except Exception:
                self.seen += 1
                raise

        return resumable(keeping)

    def finish(self) -> None:
        if self.store.blocks is None:
            self.store.begun = self.begun or _nowhere
            self.store.blocks = self.blocks


def _nowhere() -> None:
    return None


def _saved(cursor: Any) -> Any:
    return cursor


def _position(begun: Callable[[], Any], index: int, filling: bool) -> Any:
    return [begun(), index, filling]  # in a pass that fills, failed elements count; in the store there are none
