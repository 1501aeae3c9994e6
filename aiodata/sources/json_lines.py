"""`JsonLinesDataset`: the values of JSON Lines files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.dataset import Dataset
from aiodata.engine.plan import Plan
from aiodata.formats.compression import check_compression_type
from aiodata.formats.json_columns import JsonColumns
from aiodata.formats.json_lines import JsonLinesSplitter
from aiodata.sources._files import check_buffer_size, path_of, read_files
from aiodata.sources._records import read_records
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiodata.sources._files import Filenames

__all__ = ["JsonLinesDataset"]

ON_TRUNCATED = ("error", "skip")


class JsonLinesDataset(Dataset[Any]):
    r"""The values of JSON Lines files: one JSON value a line.

    Without `columns` an element is what `map(json.loads)` would give for the line: an object is a dict, a list in it
    an array, a list that is the whole line a tuple; numbers and text stay Python's, null in an object is None. An empty
    list in an object tells no dtype and is float32, as in TensorFlow; with `columns` it has the column's. A list with
    rows of unequal length is refused, as everywhere; choose columns, or map `json.loads` over a `TextLineDataset`, to
    read those. As in Python's `json`, the last of two equal keys counts, and NaN and Infinity are numbers.

    With `columns` an element is a dict of these keys alone, numpy scalars and arrays of the dtypes that are given. If
    all shapes are known, blocks of lines become arrays at once, so that batching copies no single element.

    Lines end at `\n`; blank ones and a byte-order mark at the start are left out. The text is UTF-8. A line that
    cannot be read is an error in its place, and the next one follows. Files are read in chunks by the run's own
    threads, one after the other unless `num_parallel_reads` is given. Memory: a few times `buffer_size` and the
    values of 64 KiB of text, or of the longest line, which has no limit, for each open file. A state holds the file and
    the byte of a line; in a compressed file restoring decompresses from its start.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        compression_type: "" or None, "GZIP" or "ZLIB".
        buffer_size: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        num_parallel_reads: Files to read at once, their values taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.
        columns: What to take out of each object: for a key a dtype (`np.int64`, `float`, `bool`, `str`; `bytes` for
            text as UTF-8; `object` for any value), or a `TensorSpec` for lists, whose shape may hold None; or a tuple
            of that and the value that stands where the key is missing or null. Whole numbers may be read as floats,
            but not the other way round.
        on_truncated: What becomes of a last line that has no end and cannot be read, because the file is still being
            written or was cut short: "error", or "skip" leaves it out.

    Raises:
        TypeError: `filenames` or `columns` is none of these.
        ValueError: An argument is out of its range, or a default does not fit its column.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: a line is no JSON, is nested too deeply, is null, or lacks a key or has a
            value that does not fit; it names file, line, column and byte. Or compressed data is damaged or cut short,
            or a file is compressed and `compression_type` does not say so; the next file follows.

    >>> import aiodata, os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.jsonl")
    ...     with open(path, "w") as file:
    ...         _ = file.write('{"id": 1, "x": [1.5, 2]}\n{"id": 2, "x": [0, 1], "y": 3}\n')
    ...     list(aiodata.JsonLinesDataset(path))
    ...     list(aiodata.JsonLinesDataset(path, columns={"id": np.int32, "y": (float, -1)}))
    [{'id': 1, 'x': array([1.5, 2. ])}, {'id': 2, 'x': array([0, 1]), 'y': 3}]
    [{'id': np.int32(1), 'y': np.float64(-1.0)}, {'id': np.int32(2), 'y': np.float64(3.0)}]

    An addition; tf.data has no reader of JSON. Source of the format: https://jsonlines.org.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Filenames,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        columns: Mapping[str, Any] | None = None,
        on_truncated: str = "error",
    ) -> None:
        method = "JsonLinesDataset"
        compression = check_compression_type(compression_type, method)
        size = check_buffer_size(buffer_size, method)
        chosen = None if columns is None else JsonColumns(columns, method)
        if on_truncated not in ON_TRUNCATED:
            raise ValueError(f"{method}: on_truncated must be 'error' or 'skip', not {on_truncated!r}")
        read = partial(
            _values_of, columns=chosen, skips=on_truncated == "skip", compression=compression, chunk_bytes=size
        )
        spec = partial(_spec, columns=chosen)
        super().__init__(read_files(Dataset, filenames, read, num_parallel_reads, method, spec, name))


def _spec(*names: Any, columns: JsonColumns | None) -> Any:
    return None if columns is None else columns.spec


def _values_of(
    filename: Any, *, columns: JsonColumns | None, skips: bool, compression: str, chunk_bytes: int | None
) -> Dataset[Any]:
    path = path_of(filename)
    stage = partial(
        read_records,
        path=path,
        compression=compression,
        chunk_bytes=chunk_bytes,
        splitter=partial(JsonLinesSplitter, columns=columns, skips_truncated=skips),
        stage="json_lines",
        unit="line",
        ends=b"\n",
    )
    parts = [
        masked(path),
        compression,
        f"{{{columns.detail}}}" if columns else "",
        "on_truncated='skip'" if skips else "",
    ]
    detail = ", ".join(filter(None, parts))
    return Dataset(Plan("json_lines", stage, detail=detail, spec=partial(_spec, columns=columns)))
