"""`FixedLengthRecordDataset`: the records of files that hold records of one length."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer
from aiodata.dataset import Dataset
from aiodata.engine.plan import Plan
from aiodata.formats.compression import check_compression_type
from aiodata.formats.fixed_length import FixedLengthSplitter
from aiodata.sources._files import check_buffer_size, path_of, read_files
from aiodata.sources._records import read_records
from aiodata.spec import TensorSpec
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.sources._files import Filenames

__all__ = ["FixedLengthRecordDataset"]


class FixedLengthRecordDataset(Dataset[bytes]):
    r"""The records of files that hold records of one length, as bytes.

    A file is a header, any number of records, and a footer. `decode_raw` makes arrays of them, best of a whole batch.
    Files are read in chunks by the run's own threads, one after the other unless `num_parallel_reads` is given. If the
    length of an uncompressed file shows that records do not fit into it, its first record is an error and none is
    given; in a compressed one the error stands behind the last whole record. The next file follows. Memory: a few
    times `buffer_size`, or a record and a footer, for each open file. A state holds the file and the byte of the next
    record; in a compressed file restoring decompresses from its start.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        record_bytes: Length of a record, at least 1.
        header_bytes: Length of what to leave out before the first record of each file; None is 0.
        footer_bytes: Length of what to leave out at the end of each file; None is 0.
        buffer_size: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        compression_type: "" or None, "GZIP" or "ZLIB".
        num_parallel_reads: Files to read at once, their records taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `filenames` is none of these, or a length is no integer.
        ValueError: An argument is out of its range.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: header, records and footer do not fit into a file; it names the file, its
            size and what is left, and says so if the file looks compressed.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.bin")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"HEAD" + b"one" + b"two")
    ...     list(aiodata.FixedLengthRecordDataset(path, 3, header_bytes=4))
    [b'one', b'two']

    Source: `tf.data.FixedLengthRecordDataset`; there lengths that are out of range are refused while iterating.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Filenames,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        method = "FixedLengthRecordDataset"
        lengths = (
            check_integer(record_bytes, method, "record_bytes", 1),
            check_integer(0 if header_bytes is None else header_bytes, method, "header_bytes", 0),
            check_integer(0 if footer_bytes is None else footer_bytes, method, "footer_bytes", 0),
        )
        size = check_buffer_size(buffer_size, method)
        compression = check_compression_type(compression_type, method)
        read = partial(_records_of, lengths=lengths, compression=compression, chunk_bytes=size)
        super().__init__(read_files(Dataset, filenames, read, num_parallel_reads, method, _spec, name))


def _spec(*names: Any) -> TensorSpec:
    return TensorSpec((), object)


def _records_of(
    filename: Any, *, lengths: tuple[int, int, int], compression: str, chunk_bytes: int | None
) -> Dataset[bytes]:
    path = path_of(filename)
    stage = partial(
        read_records,
        path=path,
        compression=compression,
        chunk_bytes=chunk_bytes,
        splitter=partial(_splitter, lengths=lengths),
        stage="fixed_length_record",
        first=0,
        is_sized=True,
    )
    detail = ", ".join([masked(path), *map(str, lengths), *([compression] if compression else [])])
    return Dataset(Plan("fixed_length_record", stage, detail=detail, spec=_spec))


def _splitter(
    path: str, offset: int, number: int, size: Callable[[], int | None] = lambda: None, *, lengths: tuple[int, int, int]
) -> FixedLengthSplitter:
    return FixedLengthSplitter(path, offset, number, *lengths, size())
