"""`NpyDataset`: the rows of numpy's own files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.errors import StateError
from aiodata.formats.npy import RowFile
from aiodata.sources._files import path_of, read_files
from aiodata.sources._promises import Promise, failed_position, position
from aiodata.sources._tables import FirstTypes
from aiodata.storage.masking import masked
from aiodata.storage.schemes import is_remote
from aiodata.storage.transfer.seekable_files import SeekableFiles, mark_of_file
from aiodata.structure import flatten

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from aiodata.engine.run import Run
    from aiodata.sources._files import Filenames
    from aiodata.storage.marks import Mark

__all__ = ["NpyDataset"]


class NpyDataset(Dataset[Any]):
    r"""The rows of `.npy` files, one element for each, and of `.npz` files, as dicts by the names of their arrays.

    Rows are what `numpy.load(path)[row]` gives, but text is `str` and `bytes`; big-endian data stays so. They are
    read about 2 MiB at a time, by the run's own threads, and passed on as columns; so are those of compressed `.npz`
    files, which `numpy.load` reads whole. An array in Fortran's order is mapped into memory, as its rows are all over
    the file; within a `.npz` file it is read whole. Memory: a few MiB, or a row, for each open file. A state holds
    the file and the number of the next row.

    A file behind a URL is read ahead, all members of a `.npz` file at once. It is copied to a temporary file first if
    its array is in Fortran's order, or the server does not know ranges. Going on from a state asks for what follows;
    only members that are compressed, and before Python 3.12 all, are read again from their start.

    Pickled objects are never read. The files are told apart by their content, not their names.

    Args:
        filenames: A path (str, bytes or path object) or URL, a list of them, or a dataset of them.
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
    path = path_of(filename)
    members = opens.keywords["members"]
    detail = masked(path) + (f", {list(members)}" if members else "")
    return Dataset(Plan("npy", partial(_rows, path=path, opens=opens, first=first), detail=detail))


async def _rows(run: Run, *, start: Any, path: str, opens: Any, first: FirstTypes) -> AsyncIterator[Block[Any]]:
    """Give a file's rows; a position is `[row, count, mark]`, see `Promise`."""
    promise = Promise(start, (0,))
    (number,) = promise.where
    begun = number
    counters = run.statistics.counters("npy")
    failed: list[Block[Any]] = []
    files = SeekableFiles(run, counters, [path, *first.paths])
    call = partial(run.in_thread, interrupt=files.interrupt)
    file = opens(path)
    path = file.path
    try:
        mark = await call(_open, run, file, first, promise.mark, files)
        while number < file.length:
            stop = min(file.length, number + file.portion)
            columns = await call(file.read, number, stop)
            promise.give(stop - number)
            counters.elements += stop - number
            counters.blocks += 1
            if not is_remote(file.url):  # what comes from there is counted as it comes
                counters.bytes_read += sum(array.nbytes for array in flatten(columns))
            origin = Origin(partial(position, (number,), stop - number, mark), partial(_place, path, number))
            yield Block(origin, columns=columns, length=stop - number)
            number = stop
        promise.check(_place(path, begun, 0))
    except Exception as error:
        origin = Origin(partial(failed_position, (number,)), partial(_place, path, number))
        locate(error, "npy", number - begun, origin, 0)
        if promise.binds or isinstance(error, StateError):
            raise
        failed.append(Block.failed(error, origin))
    finally:
        await run.in_thread(_close, file, files)
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback


def _open(run: Run, file: Any, first: FirstTypes, saved: Mark, files: SeekableFiles) -> Mark:
    remote = files.open(file.url)
    mark = mark_of_file(file.url, remote, saved)
    file.open(remote)
    first.check(run, file, files)
    return mark


def _close(file: Any, files: SeekableFiles) -> None:
    file.close()
    files.close()


def _place(path: str, number: int, offset: int) -> str:
    return f"{path} row {number + offset}"
