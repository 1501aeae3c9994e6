"""`TFRecordDataset`: the records of TFRecord files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.engine.plan import Plan
from aiodata.formats.compression import check_compression_type
from aiodata.formats.tfrecord import RecordSplitter, checksum_function
from aiodata.sources._files import check_buffer_size, path_of, read_files
from aiodata.sources._records import read_records
from aiodata.spec import TensorSpec
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from aiodata.sources._files import Filenames

__all__ = ["TFRecordDataset"]


class TFRecordDataset(Dataset[bytes]):
    r"""The records of TFRecord files as bytes, in order, with both checksums of each verified.

    Files are read in chunks by the run's own threads, one after the other unless `num_parallel_reads` is given. A
    damaged payload is an error in its record's place, and the file goes on; behind a damaged length nothing of that
    file can be read, and the next file follows. Memory: a few times `buffer_size`, or the longest record, for each
    open file; a length takes none before its record is there. A state holds the file and the byte of the next record;
    in a compressed file restoring decompresses from its start.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        compression_type: "" or None, "GZIP" or "ZLIB".
        buffer_size: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        num_parallel_reads: Files to read at once, their records taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.

    Raises:
        ImportError: google-crc32c is not installed; it comes with the extra `tfrecord`.
        TypeError: `filenames` is none of these.
        ValueError: An argument is out of its range.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: a checksum is wrong, or the file is cut short or compressed in another
            way; it names file, record (from 0) and byte.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tfrecord")
    ...     with aiodata.TFRecordWriter(path) as writer:
    ...         writer.write(b"one")
    ...     list(aiodata.TFRecordDataset(path))
    [b'one']

    Source: `tf.data.TFRecordDataset`; there a file that ends inside a length just ends, and an unknown compression is
    read as none.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Filenames,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        checksum_function("TFRecordDataset")
        compression = check_compression_type(compression_type, "TFRecordDataset")
        size = check_buffer_size(buffer_size, "TFRecordDataset")
        read = partial(_records_of, compression=compression, chunk_bytes=size)
        super().__init__(read_files(Dataset, filenames, read, num_parallel_reads, "TFRecordDataset", _spec, name))


def _spec(*names: Any) -> TensorSpec:
    return TensorSpec((), object)


def _records_of(filename: Any, *, compression: str, chunk_bytes: int | None) -> Dataset[bytes]:
    path = path_of(filename)
    stage = partial(
        read_records,
        path=path,
        compression=compression,
        chunk_bytes=chunk_bytes,
        splitter=RecordSplitter,
        is_sized=True,
        stage="tf_record",
        first=0,
    )
    detail = masked(path) + (f", {compression}" if compression else "")
    return Dataset(Plan("tf_record", stage, detail=detail, spec=_spec))
