"""`ParquetDataset`: the rows of Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.formats.parquet import ParquetTable
from aiodata.sources._tables import check_request, read_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiodata.sources._files import Filenames

__all__ = ["ParquetDataset"]


class ParquetDataset(Dataset[dict[str, Any]]):
    """The rows of Parquet files: a dict of the chosen columns' values for each.

    The rows travel as columns, so that `batch` and `shuffle` never touch a single value; the arrays are read-only.
    What a value becomes depends on its column's type alone:

    - integers, floats, bools: numpy scalars of the same width. Dates and timestamps: `datetime64` in the column's unit,
      with a time zone in UTC; times of day and durations: `timedelta64`.
    - text: `str`; binary, of a fixed size too: `bytes`; decimals: `decimal.Decimal`. Dictionary-encoded columns: their
      values.
    - structs: dicts. Lists of a fixed size, and fixed-shape tensors: arrays (size, ...). Other lists: arrays (n, ...),
      for `padded_batch` or `ragged_batch`; lists of structs and maps: dicts of such arrays.
    - nulls: NaN for floats, NaT for dates, times and durations, None for text, binary, decimals and lists; a struct
      that is null has nulls in its fields. A row with a null integer or bool is a StructureError in its place. `batch`
      does not stack None with values. `null_values` avoids both.

    Memory: some tens of MiB for each open file, whatever the size of its row groups: each column is read 1 MiB at a
    time, or a page where that is longer, and decoded in pieces of about 2 MiB, of at most 65,536 rows, or 8192 where
    not all columns are numbers. The checksums of pages are verified, where the file has them. A state holds the file,
    the row group and the row; restoring decodes that row group from its start.

    Of a file behind a URL only the chosen columns are asked for, several at once and ahead, by where the file says they
    are: row groups that fit into `options.storage.read_ahead_bytes` (8 MiB) whole, of others up to 1 MiB of each
    column. From a server that does not know ranges the file is copied to a temporary file first.

    Args:
        filenames: A path (str, bytes or path object) or URL, a list of them, or a dataset of them. The files of a list
            must have the types of the first one, whichever files have been read already.
        columns: Names of the columns to read; a field of a struct is `"outer.inner"`. None reads all.
        filter: Which rows to read: a pyarrow expression, or a list such as `[("x", ">", 3), ("name", "in", ["a"])]`,
            all of which must hold, or a list of such lists, one of which must. Row groups in which no row can pass, by
            their statistics, are not read. Columns that only the filter needs are read and left out. A comparison with
            a null does not hold.
        null_values: What stands for nulls, by name (`{"count": -1, "outer.inner": ""}`); inside lists for their items.
        num_parallel_reads: Files to read at once, their rows taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.

    Raises:
        ImportError: pyarrow is not installed; it comes with the extra `arrow`.
        TypeError, ValueError: An argument is not what it must be.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: a file is no Parquet file, or a row group is damaged; the next row group or
            file follows.
        StructureError: While iterating: a file lacks a column, has one of a type that numpy has nothing for, or differs
            from the first file; the next file follows. Or a null, see above; the next row follows.

    >>> import aiodata, os, tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.parquet")
    ...     pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2, 3], "name": ["a", "b", "c"]}), path)
    ...     for batch in aiodata.ParquetDataset(path, filter=[("x", ">", 1)]).batch(2):
    ...         print(batch)
    {'x': array([2, 3]), 'name': array(['b', 'c'], dtype=object)}

    Source: `tfio.IODataset.from_parquet`, which reads plain columns of one file; tf.data itself has no such reader.
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
        request = check_request(columns, filter, null_values, "ParquetDataset")
        plan = read_tables(Dataset, filenames, ParquetTable, request, num_parallel_reads, "ParquetDataset", name)
        super().__init__(plan)
