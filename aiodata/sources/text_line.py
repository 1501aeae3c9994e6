"""`TextLineDataset`: the lines of text files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.dataset import Dataset
from aiodata.engine.plan import Plan
from aiodata.formats.compression import check_compression_type, check_text
from aiodata.formats.cuts import Cut
from aiodata.sources._files import check_buffer_size, path_of, read_files
from aiodata.sources._records import read_records
from aiodata.spec import TensorSpec
from aiodata.storage.masking import masked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiodata.sources._files import Filenames

__all__ = ["TextLineDataset"]

BLOCK_BYTES = 256 * 1024
"""About how many bytes of a file become one block: splitting them takes a millisecond or two."""


class TextLineDataset(Dataset[bytes]):
    r"""The lines of text files as bytes, without their ends.

    A line ends at `\n`; every `\r` is dropped, so that CRLF files give the same lines; the last line needs no end.
    Files are read in chunks by the run's own threads, one after the other unless `num_parallel_reads` is given.
    Memory: a few times `buffer_size`, or the longest line, which has no limit, for each open file. A state holds the
    file and the byte of the next line; in a compressed file restoring decompresses from its start.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        compression_type: "" or None, "GZIP" (also several members joined) or "ZLIB".
        buffer_size: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        num_parallel_reads: Files to read at once, their lines taken in turn; None reads one after the other.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: `filenames` is none of these.
        ValueError: An argument is out of its range.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: compressed data is damaged or cut short, or a file is compressed and
            `compression_type` does not say so; the next file follows.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("one\ntwo")
    ...     list(aiodata.TextLineDataset(path))
    [b'one', b'two']

    Source: `tf.data.TextLineDataset`; there a truncated compressed file just ends, and compressed data is read as text
    where `compression_type` does not name it.
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
        compression = check_compression_type(compression_type, "TextLineDataset")
        size = check_buffer_size(buffer_size, "TextLineDataset")
        read = partial(_lines_of, compression=compression, chunk_bytes=size)
        super().__init__(read_files(Dataset, filenames, read, num_parallel_reads, "TextLineDataset", _spec, name))


def _spec(*names: Any) -> TensorSpec:
    return TensorSpec((), object)


def _lines_of(filename: Any, *, compression: str, chunk_bytes: int | None) -> Dataset[bytes]:
    path = path_of(filename)
    stage = partial(
        read_records,
        path=path,
        compression=compression,
        chunk_bytes=chunk_bytes,
        splitter=_Lines,
        stage="text_line",
        unit="line",
        ends=b"\n",
    )
    detail = masked(path) + (f", {compression}" if compression else "")
    return Dataset(Plan("text_line", stage, detail=detail, spec=_spec))


class _Lines:
    """Cuts content into lines."""

    def __init__(self, path: str, offset: int, number: int) -> None:
        self.path = path
        self.is_start = offset == 0
        self.held: list[bytes] = []
        """What has been fed of a line without its end."""

    def feed(self, piece: bytes) -> Iterator[Cut]:
        self.held.append(piece)
        if b"\n" not in piece:
            return
        text = self._text()
        end = text.rfind(b"\n") + 1
        self.held = [text[end:]] if end < len(text) else []
        begin = 0
        while begin < end:
            stop = _cut(text, begin, end)
            lines = _split(text[begin:stop] if stop < end else text[begin:])
            lines.pop()  # what is behind the last end of a line
            yield _cut_of(stop - begin, lines)
            begin = stop

    def finish(self) -> Iterator[Cut]:
        if self.held:
            text = self._text()
            yield _cut_of(len(text), _split(text))

    def _text(self) -> bytes:
        """Give what is held, which is the first line at least."""
        text = b"".join(self.held)
        if self.is_start:
            check_text(text, self.path)
            self.is_start = False
        return text


def _cut_of(size: int, lines: list[bytes]) -> Cut:
    return Cut(size, columns=np.array(lines, object), length=len(lines))


def _cut(text: bytes, begin: int, end: int) -> int:
    """Give where the block that begins at `begin` stops: behind the end of a line, at `end` at the latest."""
    if end - begin <= BLOCK_BYTES * 3 // 2:
        return end
    return text.rfind(b"\n", begin, begin + BLOCK_BYTES) + 1 or text.index(b"\n", begin) + 1


def _split(text: bytes) -> list[bytes]:
    """Split at the ends of lines, without carriage returns."""
    return (text.replace(b"\r", b"") if b"\r" in text else text).split(b"\n")
