"""`ArrowDataset`: the rows of Arrow IPC files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.formats.arrow_ipc import ArrowTable
from aiodata.sources._tables import check_request, read_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiodata.sources._files import Filenames

__all__ = ["ArrowDataset"]


class ArrowDataset(Dataset[dict[str, Any]]):
    """The rows of files in Arrow's IPC formats, file (which Feather version 2 is) and stream: a dict for each.

    What the rows are, and what `columns`, `filter` and `null_values` ask of the files, is as in `ParquetDataset`, with
    three differences: a column is chosen whole; nothing tells which record batches a filter needs, so all are read; and
    there are no checksums, so that only damage to the form of the data is found.

    Memory: for each open file one record batch of the chosen columns, as large as the writer has made it, and two
    pieces of about 2 MiB of rows. A state holds the file, the record batch and the row; a stream is read again from its
    start.

    A file behind a URL is read ahead, in ranges. If only some columns of one in the file format are chosen, only these
    are asked for, one after the other, and not ahead: that is a wait for each column of each record batch, so of small
    record batches it takes less time to read all columns. From a server that does not know ranges the file is copied to
    a temporary file first.

    Args:
        filenames: A path (str, bytes or path object) or URL, a list of them, or a dataset of them. The files of a list
            must have the types of the first one, whichever files have been read already.
        columns: Names of the columns to read; None reads all.
        filter: Which rows to read, as in `ParquetDataset`.
        null_values: What stands for nulls, as in `ParquetDataset`.
        num_parallel_reads: Files to read at once, their rows taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.

    Raises:
        ImportError: pyarrow is not installed; it comes with the extra `arrow`.
        TypeError, ValueError: An argument is not what it must be.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: a file is no Arrow file, or a record batch is damaged; the next record
            batch follows, or the next file where a stream cannot go on.
        StructureError: While iterating: as in `ParquetDataset`.

    >>> import aiodata, os, tempfile
    >>> import pyarrow, pyarrow.feather
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.feather")
    ...     pyarrow.feather.write_feather(pyarrow.table({"x": [1, 2], "name": ["a", "b"]}), path)
    ...     list(aiodata.ArrowDataset(path))
    [{'x': np.int64(1), 'name': 'a'}, {'x': np.int64(2), 'name': 'b'}]

    Source: `tfio.arrow.ArrowFeatherDataset` and `tfio.arrow.ArrowStreamDataset`; tf.data itself has no such reader.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Filenames,
        columns: Sequence[str] | None = None,
        *,
        filter: Any = None,
        null_values: Mapping[str, Any] | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        request = check_request(columns, filter, null_values, "ArrowDataset")
        plan = read_tables(Dataset, filenames, ArrowTable, request, num_parallel_reads, "ArrowDataset", name)
        super().__init__(plan)
