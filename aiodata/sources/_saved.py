"""How saved datasets are read: a dataset of shards, each a dataset of its elements, and what makes one of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.plan import AUTOTUNE, Plan, plan_of
from aiodata.engine.position import Origin, locate
from aiodata.errors import CorruptRecordError, StateError
from aiodata.formats.element_archive import ElementArchive
from aiodata.functions import check_callable, is_coroutine_function
from aiodata.sources._promises import Promise, failed_position, position
from aiodata.spec import DatasetSpec
from aiodata.storage.masking import masked
from aiodata.storage.saved.dataset import MANIFEST, Held, inside, parsed_manifest, read_manifest
from aiodata.storage.transfer.seekable_files import SeekableFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.storage.saved.dataset import SavedDataset

    ReaderFunc = Callable[[Dataset[Dataset[Any]]], Dataset[Any]]

__all__ = ["read_saved"]

SHARDS_IN_TURN = 8
"""Shards that are read in turn, and at once; a number of its own, so that the order is the same on all machines."""


def read_saved(
    datasets: type[Dataset[Any]],
    where: str | Callable[[], str],
    check: Callable[[SavedDataset], None],
    reader_func: ReaderFunc | None,
    method: str,
    several: bool = True,
    spec: Any = None,
) -> Plan:
    """Give the plan that reads a saved dataset, which is looked up when an iterator begins.

    Args:
        datasets: The class of datasets.
        where: The folder, or its URL; or what gives the path of one, and is called in a thread.
        check: Refuses what is saved there by an exception.
        reader_func: Makes a dataset of a dataset of shards, which are datasets; None reads some in turn.
        method: The public method, for errors.
        several: Whether there may be more than one shard.
        spec: The spec of the elements, if it is known.

    Raises:
        TypeError: `reader_func` is no plain function, or does not give a dataset.
    """
    stage = partial(_shards, datasets=datasets, where=where, check=check)
    shards = datasets.of(Plan("shards", stage, spec=lambda: None if spec is None else DatasetSpec(spec)))
    if reader_func is None:
        if not several:
            return shards.flat_map(_elements).plan
        return shards.interleave(_elements, cycle_length=SHARDS_IN_TURN, num_parallel_calls=AUTOTUNE).plan
    check_callable(reader_func, method, "reader_func")
    if is_coroutine_function(reader_func):
        raise TypeError(f"{method}: reader_func must be a plain function, not a coroutine function")
    made = plan_of(reader_func(shards))
    if made is None:
        raise TypeError(f"{method}: reader_func must give a dataset of the elements")
    return made


def _elements(shard: Dataset[Any]) -> Dataset[Any]:
    return shard


async def _shards(
    run: Run,
    *,
    start: Any,
    datasets: type[Dataset[Any]],
    where: str | Callable[[], str],
    check: Callable[[SavedDataset], None],
) -> AsyncIterator[Block[Any]]:
    """Give the shards; a position is the token of the saved dataset and a shard's number."""
    token, first = start or (None, 0)
    files = SeekableFiles(run, run.statistics.counters("load"), [where] if isinstance(where, str) else [])
    try:
        held = await run.in_thread(_found, where, check, token, files, interrupt=files.interrupt)
    finally:
        await run.in_thread(files.close)
    for number in range(first, len(held.saved.shards)):
        stage = partial(_shard, held=held, number=number)
        name = held.saved.shards[number][0]
        plan = Plan("shard", stage, detail=name, count=partial(_count, held.saved.shards[number][1]))
        origin = Origin(partial(_position, held.saved.token, number))
        yield Block(origin, computed=[datasets.of(plan)], clean=True)


def _count(count: int) -> int:
    return count


def _position(token: str, number: int) -> Any:
    return [token, number]


def _found(
    where: str | Callable[[], str], check: Callable[[SavedDataset], None], token: str | None, files: SeekableFiles
) -> Held:
    """Find a saved dataset and hold it for reading.

    Raises:
        StateError: It is not the one that a saved state was saved in.
    """
    path = where if isinstance(where, str) else where()
    name = masked(path)
    while True:
        try:
            saved = _manifest(path, files)
        except FileNotFoundError:
            if token is None:
                raise
            raise StateError(f"{name}: the saved dataset is not there, as it was when the state was saved") from None
        if token is not None and saved.token != token:
            raise StateError(f"{name}: the saved dataset is another one than when the state was saved")
        check(saved)
        try:
            return Held(saved)
        except FileNotFoundError:
            if read_manifest(path).token == saved.token:
                raise CorruptRecordError(f"the folder {saved.token} is missing", path) from None
            # It has been replaced between the two steps.


def _manifest(path: str, files: SeekableFiles) -> SavedDataset:
    file = files.open(inside(path, MANIFEST))
    return read_manifest(path) if file is None else parsed_manifest(file.read(), path)


async def _shard(run: Run, *, start: Any, held: Held, number: int) -> AsyncIterator[Block[Any]]:
    """Give the elements of a shard; a position has the token and an element's number, see `Promise`.

    A chunk that is damaged is one error, and the next chunk follows; a file that cannot be opened, or read any more, is
    one in all.
    """
    saved = held.saved
    promise = Promise(start, (saved.token, 0))
    token, element = promise.where
    counters = run.statistics.counters("load")
    archive = ElementArchive(inside(saved.folder, saved.shards[number][0]))
    files = SeekableFiles(run, counters, [archive.url])
    call = partial(run.in_thread, interrupt=files.interrupt)
    failed: list[Block[Any]] = []
    over = False
    try:
        if token != saved.token:
            raise StateError(f"{masked(saved.path)}: the saved dataset is another one than when the state was saved")
        try:
            await call(_open, archive, saved, number, files)
        except Exception as error:
            if promise.binds:
                raise
            failed.append(_failed(error, token, element, archive.path))
        else:
            begins = archive.starts[archive.find(element)[0] :] if element < archive.count else []
            for element in begins:
                try:
                    chunk = await call(archive.read, archive.find(element)[0])
                except Exception as error:
                    if promise.binds:
                        raise
                    over = isinstance(error, OSError)
                    failed.append(_failed(error, token, element, archive.path))
                promise.give(1 if failed else chunk.length)
                if failed:
                    yield failed.pop()  # not held: the error holds this frame by its traceback
                    if over:
                        break
                    continue
                counters.elements += chunk.length
                counters.blocks += 1
                place = partial(_place, archive.path, element)
                origin = Origin(partial(position, (token, element), chunk.length), place)
                if chunk.elements is None:
                    yield Block(origin, columns=chunk.columns, length=chunk.length)
                else:
                    yield Block(origin, computed=chunk.elements, clean=True)
            promise.check(_place(archive.path, element, 0))
    finally:
        await run.in_thread(_close, archive, files)
    if failed:
        yield failed.pop()


def _open(archive: ElementArchive, saved: SavedDataset, number: int, files: SeekableFiles) -> None:
    archive.open(files.open(archive.url))
    name, count = saved.shards[number]
    facts = archive.extra.get("token"), archive.extra.get("shard"), archive.count, archive.compression
    if facts != (saved.token, name, count, saved.compression):
        raise CorruptRecordError("this is not the file that the manifest says it is", archive.path)


def _close(archive: ElementArchive, files: SeekableFiles) -> None:
    archive.close()
    files.close()


def _failed(error: Exception, token: str, element: int, path: str) -> Block[Any]:
    origin = Origin(partial(failed_position, (token, element)), partial(_place, path, element))
    locate(error, "load", element, origin, 0)
    return Block.failed(error, origin)


def _place(path: str, begin: int, offset: int) -> str:
    return f"{path} element {begin + offset}"
