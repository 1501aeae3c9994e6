"""`TextLineDataset`: the lines of text files."""

from __future__ import annotations

import os
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer, check_parallelism
from aiodata.dataset import Dataset
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.errors import StateError
from aiodata.formats.compression import Decompressor, check_compression_type
from aiodata.storage.local import LocalFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from aiodata.engine.run import Run

__all__ = ["TextLineDataset"]

CHUNK_BYTES = 256 * 1024
FURTHER_BYTES = 1024 * 1024
"""Bytes of each further read, by default: a small file is read at once, a large one with few hops between threads."""

BLOCK_BYTES = 256 * 1024
"""About how many bytes of a file become one block: splitting them takes a millisecond or two."""


class TextLineDataset(Dataset[bytes]):
    r"""The lines of text files as bytes, without their ends.

    A line ends at `\n`; every `\r` is dropped, so that CRLF files give the same lines; the last line needs no end.
    Files are read in chunks by the run's own threads, one after the other unless `num_parallel_reads` is given.
    Memory: a few times `buffer_size` for each open file. A state holds the file and the byte of the next line; in a
    compressed file restoring decompresses from its start.

    Args:
        filenames: A path (str, bytes or path object), a list of them, or a dataset of them.
        compression_type: "" or None, "GZIP" (also several members joined) or "ZLIB".
        buffer_size: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        num_parallel_reads: Files to read at once, their lines taken in turn; None reads one after the other.

    Raises:
        TypeError: `filenames` is none of these.
        ValueError: An argument is out of its range.
        OSError: While iterating: a file cannot be read; the next file follows.
        CorruptRecordError: While iterating: compressed data is damaged or cut short; the next file follows.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("one\ntwo")
    ...     list(aiodata.TextLineDataset(path))
    [b'one', b'two']

    Source: `tf.data.TextLineDataset`; there a truncated compressed file just ends.
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] | Dataset[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
    ) -> None:
        compression = check_compression_type(compression_type, "TextLineDataset")
        size = 0 if buffer_size is None else check_integer(buffer_size, "TextLineDataset", "buffer_size", 0)
        reads = check_parallelism(num_parallel_reads, "TextLineDataset", "num_parallel_reads")
        read = partial(_lines_of, compression=compression, chunk_bytes=size or None)
        single = _single_path(filenames)
        if single is not None:
            super().__init__(read(single).plan)
            return
        names = filenames if isinstance(filenames, Dataset) else _dataset_of(filenames)
        if reads is None:
            lines = names.flat_map(read)
        else:
            lines = names.interleave(read, cycle_length=reads, num_parallel_calls=reads)
        super().__init__(lines.plan)


def _single_path(filenames: Any) -> str | None:
    if isinstance(filenames, (str, bytes, os.PathLike)):
        return os.fsdecode(filenames)
    return None


def _dataset_of(filenames: Any) -> Dataset[Any]:
    if isinstance(filenames, (dict, set)):
        raise TypeError(
            f"TextLineDataset: filenames must be a path, a list or a dataset of paths, not {filenames!r:.80}"
        )
    try:
        paths = [os.fsdecode(name) for name in filenames]
    except TypeError as error:
        raise TypeError(f"TextLineDataset: filenames must be paths or a dataset of paths: {error}") from error
    return Dataset.from_tensor_slices(paths)


def _lines_of(filename: Any, *, compression: str, chunk_bytes: int | None) -> Dataset[bytes]:
    path = os.fsdecode(filename)
    stage = partial(_lines, path=path, compression=compression, chunk_bytes=chunk_bytes)
    return Dataset(Plan("text_line", stage, detail=path + (f", {compression}" if compression else ""), waits=True))


async def _lines(
    run: Run, *, start: Any, path: str, compression: str, chunk_bytes: int | None
) -> AsyncIterator[Block[bytes]]:
    """Give a file's lines; what goes wrong takes the place of the line that could not be read, and is the last."""
    offset, number = start or (0, 1)
    first_number = number
    counters = run.statistics.counters("text_line")
    held: list[bytes] = []  # what has been read of a line without its end
    failed: list[Block[bytes]] = []
    file = LocalFile(run, path)
    try:
        async with aclosing(_pieces(run, file, compression, chunk_bytes, offset)) as pieces:
            async for piece in pieces:
                counters.bytes_read += len(piece)
                held.append(piece)
                if b"\n" not in piece:
                    continue
                text = b"".join(held)
                end = text.rfind(b"\n") + 1
                held = [text[end:]] if end < len(text) else []
                begin = 0
                while begin < end:
                    stop = _cut(text, begin, end)
                    lines = _split(text[begin:stop] if stop < end else text[begin:])
                    lines.pop()  # what is behind the last end of a line
                    yield Block(_origin(path, offset, number), computed=lines, clean=True)
                    offset += stop - begin
                    begin = stop
                    number += len(lines)
                    counters.elements += len(lines)
                    counters.blocks += 1
    except Exception as error:
        origin = _origin(path, offset, number)
        locate(error, "text_line", number - first_number, origin, 0)
        failed.append(Block.failed(error, origin))
    finally:
        await file.aclose()
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback
    elif held:
        yield Block(_origin(path, offset, number), computed=_split(b"".join(held)), clean=True)
        counters.elements += 1
        counters.blocks += 1


def _cut(text: bytes, begin: int, end: int) -> int:
    """Give where the block that begins at `begin` stops: behind the end of a line, at `end` at the latest."""
    if end - begin <= BLOCK_BYTES * 3 // 2:
        return end
    return text.rfind(b"\n", begin, begin + BLOCK_BYTES) + 1 or text.index(b"\n", begin) + 1


def _split(text: bytes) -> list[bytes]:
    """Split at the ends of lines, without carriage returns."""
    return (text.replace(b"\r", b"") if b"\r" in text else text).split(b"\n")


def _origin(path: str, offset: int, number: int) -> Origin:
    """Give the origin of lines of which the first is line `number` and begins at byte `offset` of the content."""
    return Origin(partial(_position, offset, number), partial(_place, path, number))


def _position(offset: int, number: int) -> list[int]:
    return [offset, number]


def _place(path: str, number: int, offset: int) -> str:
    return f"{path} line {number + offset}"


async def _pieces(
    run: Run, file: LocalFile, compression: str, chunk_bytes: int | None, offset: int
) -> AsyncGenerator[bytes, None]:
    """Give the file's content from a byte of it on, uncompressed."""
    first, further = chunk_bytes or CHUNK_BYTES, chunk_bytes or FURTHER_BYTES
    begin, before = (
        offset,
        max(0, offset - 1),
    )  # the byte before a saved position ends a line, or the file is not what it was
    if not compression:
        data = await file.open(first, before)
        _check_end_of_line(data[: offset - before], offset, file.path)
        data = data[offset - before :] or await file.read(further)
        while data:
            yield data
            data = await file.read(further)
        return
    decompressor = Decompressor(compression, file.path)
    data = await file.open(first)
    while data:
        decompressor.feed(data)
        while decompressor.is_fed:
            piece = await run.in_thread(decompressor.read)
            if before >= len(piece):
                before -= len(piece)
                offset -= len(piece)
                continue
            _check_end_of_line(piece[before:offset], begin if offset else 0, file.path)
            if offset < len(piece):
                yield piece[offset:]
            before = offset = 0
        data = await file.read(further)
    decompressor.finish()
    _check_end_of_line(b"", begin if offset else 0, file.path)


def _check_end_of_line(found: bytes, offset: int, path: str) -> None:
    """Make sure that the byte before a saved position is the end of a line; there is none before the start.

    Raises:
        StateError: It is not, or the file has no such byte.
    """
    if offset and found != b"\n":
        raise StateError(f"{path}, byte {offset}: no line begins there, as one did when the state was saved")
