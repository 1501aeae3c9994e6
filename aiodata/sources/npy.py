"""`NpyDataset`: the rows of numpy's own files."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.engine.workers import wait_out
from aiodata.errors import StateError
from aiodata.formats.npy import RowFile
from aiodata.sources._files import read_files
from aiodata.sources._tables import FirstTypes
from aiodata.structure import flatten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from aiodata.engine.run import Run
    from aiodata.sources._files import Filenames

__all__ = ["NpyDataset"]


class NpyDataset(Dataset[Any]):
    r"""The rows of `.npy` files, one element for each, and of `.npz` files, as dicts by the names of their arrays.

    Rows are what `numpy.load(path)[row]` gives, but text is `str` and `bytes`; big-endian data stays so. They are
    read about 2 MiB at a time, by the run's own threads, and passed on as columns; so are those of compressed `.npz`
    files, which `numpy.load` reads whole. An array in Fortran's order is mapped into memory, as its rows are all over
    the file; within a `.npz` file it is read whole. Memory: a few MiB, or a row, for each open file. A state holds
    the file and the number of the next row.

    Pickled objects are never read. The files are told apart by their content, not their names.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        num_parallel_reads: Files to read at once, their rows taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.
        members: The arrays of `.npz` files to read, by name; None reads all. They must have equally many rows.

    Raises:
        TypeError: An argument is none of these.
        ValueError: `num_parallel_reads` is out of its range, or `members` is empty.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: a file is no such file, cut short or damaged, or an array has no rows, or
            members differ in their number; it names file, member and row. The next file follows.
        StructureError: While iterating: the rows of a file are not like those of the first file of the list; it names
            both. The next file follows.

    >>> import aiodata, os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.npz")
    ...     np.savez(path, x=np.arange(4).reshape(2, 2), y=np.array([0.5, 1.5]))
    ...     list(aiodata.NpyDataset(path))
    [{'x': array([0, 1]), 'y': np.float64(0.5)}, {'x': array([2, 3]), 'y': np.float64(1.5)}]

    An addition: `tf.data.Dataset.from_tensor_slices(numpy.load(path))` without having all of it in memory.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Filenames,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        members: Sequence[str] | None = None,
    ) -> None:
        opens: Any = partial(RowFile, members=None if members is None else _checked_members(members))
        read = partial(_rows_of, opens=opens, first=FirstTypes(filenames, opens))
        super().__init__(read_files(Dataset, filenames, read, num_parallel_reads, "NpyDataset", _spec, name))


def _checked_members(members: Any) -> tuple[str, ...]:
    if isinstance(members, (str, bytes)) or not all(isinstance(member, str) for member in members):
        raise TypeError(f"NpyDataset: members must be a list of names, not {members!r:.80}")
    if not members:
        raise ValueError("NpyDataset: members is empty; None reads all")
    return tuple(members)


def _spec(*names: Any) -> None:
    return None


def _rows_of(filename: Any, *, opens: Any, first: FirstTypes) -> Dataset[Any]:
    path = os.fsdecode(filename)
    members = opens.keywords["members"]
    detail = path + (f", {list(members)}" if members else "")
    return Dataset(Plan("npy", partial(_rows, path=path, opens=opens, first=first), detail=detail, waits=True))


async def _rows(run: Run, *, start: Any, path: str, opens: Any, first: FirstTypes) -> AsyncIterator[Block[Any]]:
    """Give a file's rows; a position is the number of a row, in a list if it could not be read."""
    restored = isinstance(start, int)
    number = begun = start[0] if isinstance(start, list) else start or 0
    counters = run.statistics.counters("npy")
    failed: list[Block[Any]] = []
    file = opens(path)
    try:
        await _in_thread(run, _open, run, file, first)
        if restored and number >= file.length:
            raise StateError(f"{path}: it has {file.length} rows, and row {number} was next when the state was saved")
        while number < file.length:
            stop = min(file.length, number + file.portion)
            columns = await _in_thread(run, file.read, number, stop)
            restored = False
            counters.elements += stop - number
            counters.blocks += 1
            counters.bytes_read += sum(array.nbytes for array in flatten(columns))
            yield Block(_origin(partial(int, number), path, number), columns=columns, length=stop - number)
            number = stop
    except Exception as error:
        origin = _origin(partial(_failed_position, number), path, number)
        locate(error, "npy", number - begun, origin, 0)
        if restored:
            raise
        failed.append(Block.failed(error, origin))
    finally:
        await _in_thread(run, file.close)
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback


def _open(run: Run, file: Any, first: FirstTypes) -> None:
    file.open()
    first.check(run, file)


def _origin(position: Callable[[], Any], path: str, number: int) -> Origin:
    return Origin(position, partial(_place, path, number))


def _failed_position(number: int) -> list[int]:
    return [number]


def _place(path: str, number: int, offset: int) -> str:
    return f"{path} row {number + offset}"


async def _in_thread(run: Run, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the file in a thread, and wait for it also when cancelled: nothing may close it meanwhile."""
    calling = asyncio.get_running_loop().run_in_executor(run.pools.files, function, *arguments)
    await wait_out(calling)
    try:
        return calling.result()
    finally:
        del calling  # else it, its error and this frame, which the error's traceback holds, would be a cycle
