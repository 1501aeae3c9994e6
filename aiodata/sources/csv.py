"""`CsvDataset`: the records of CSV files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.engine.plan import Plan
from aiodata.formats.compression import check_compression_type
from aiodata.formats.csv import compile_columns
from aiodata.formats.csv_records import CsvRecords
from aiodata.sources._files import check_buffer_size, path_of, read_files
from aiodata.sources._records import read_records
from aiodata.spec import TensorSpec
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.formats.csv_columns import CsvColumns
    from aiodata.sources._files import Filenames

__all__ = ["CsvDataset"]


class CsvDataset(Dataset[tuple[Any, ...]]):
    r"""The records of CSV files (RFC 4180), each a tuple with one numpy scalar or `bytes` per column.

    A record ends at `\n`, `\r\n` or `\r`; inside quotes these belong to the field, and `""` is one quote. The last
    record needs no end. A blank line is a record of one empty field, which only a single column can be. UTF-8's
    byte-order mark is dropped. A quote opens a quoted field only where it is the field's first character; elsewhere it
    is an ordinary character, as in Python's csv module.

    A record with a wrong number of fields, or a field that is not what its column holds, is an error in its place; the
    next record follows. Files are read in chunks by the run's own threads, one after the other unless
    `num_parallel_reads` is given, and decoded in blocks of about 128 KiB, a column at a time. Memory: a few times
    `buffer_size` for each open file, or the longest record, which may have 16 MiB. A state holds the file, the byte
    and the line of the next record; in a compressed file restoring decompresses from its start.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        record_defaults: One entry per column that is read: a dtype (the column is required) or a default, as for
            `decode_csv`.
        compression_type: "" or None, "GZIP" (also several members joined) or "ZLIB".
        buffer_size: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        header: Whether the first record of every file is a header, to be left out.
        field_delim: The one character between fields.
        use_quote_delim: Whether `"` quotes a field; if not, it is an ordinary character.
        na_value: Text of a field that counts as missing, beside the empty field.
        select_cols: Indexes of the columns to read, strictly increasing; all of them by default. With it, what follows
            the last selected column is not counted.
        exclude_cols: Indexes of the columns not to read, strictly increasing; not together with `select_cols`. A
            record has as many fields as there are entries in this and in `record_defaults`.
        name: A name for the stage, shown in `repr`.
        num_parallel_reads: Files to read at once, their records taken in turn; None reads one after the other.

    Raises:
        TypeError: An argument has a type that cannot work.
        ValueError: An argument is out of its range.
        OSError: While iterating: a file cannot be read; the next file follows.
        DataError: While iterating: a record is not what the columns say; it names file, line (the record's first) and
            column. So is a record with quotes and a field beyond `csv.field_size_limit()`. Or a file has no header
            where it should, or a record of more than 16 MiB; the next file follows.
        CorruptRecordError: While iterating: compressed data is damaged or cut short, or a file is compressed and
            `compression_type` does not say so; the next file follows.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write('carrier,delay\nUA,7\n"B6",\n')
    ...     list(aiodata.CsvDataset(path, [bytes, [0.0]], header=True))
    [(b'UA', np.float64(7.0)), (b'B6', np.float64(0.0))]

    Source: `tf.data.experimental.CsvDataset`.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Filenames,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
        name: str | None = None,
        *,
        num_parallel_reads: int | None = None,
    ) -> None:
        compression = check_compression_type(compression_type, "CsvDataset")
        size = check_buffer_size(buffer_size, "CsvDataset")
        try:
            columns = compile_columns(
                record_defaults, field_delim, use_quote_delim, na_value, select_cols, exclude_cols
            )
        except (TypeError, ValueError) as error:
            error.args = (f"CsvDataset: {error}",)
            raise
        read = partial(_records_of, columns=columns, header=bool(header), compression=compression, chunk_bytes=size)
        spec = partial(_spec, columns)
        super().__init__(read_files(Dataset, filenames, read, num_parallel_reads, "CsvDataset", spec, name))


def _spec(columns: CsvColumns, *names: Any) -> tuple[TensorSpec, ...]:
    return tuple([TensorSpec((), column.dtype) for column in columns.columns])


def _records_of(
    filename: Any, *, columns: CsvColumns, header: bool, compression: str, chunk_bytes: int | None
) -> Dataset[tuple[Any, ...]]:
    path = path_of(filename)
    stage = partial(
        read_records,
        path=path,
        compression=compression,
        chunk_bytes=chunk_bytes,
        splitter=partial(CsvRecords, columns, header),
        stage="csv",
        unit="line",
        ends=b"\r\n",
    )
    types = [str(column.dtype) for column in columns.columns]
    detail = ", ".join([masked(path), *types, *(["header"] if header else []), *([compression] if compression else [])])
    return Dataset(Plan("csv", stage, detail=detail, spec=partial(_spec, columns), contents=columns.facts()))
