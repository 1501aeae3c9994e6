"""The content of a file, piece by piece: read in the run's threads, and decompressed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiodata.errors import StateError
from aiodata.formats.compression import Decompressor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from aiodata.engine.run import Run
    from aiodata.storage.local import LocalFile
    from aiodata.storage.remote import RemoteFile

__all__ = ["pieces"]

CHUNK_BYTES = 256 * 1024
FURTHER_BYTES = 1024 * 1024
"""Bytes of each further read, by default: a small file is read at once, a large one with few hops between threads."""


async def pieces(
    run: Run, file: LocalFile | RemoteFile, compression: str, chunk_bytes: int | None, offset: int, ends: bytes = b""
) -> AsyncGenerator[bytes, None]:
    """Give a file's content from a byte of it on, uncompressed.

    Args:
        run: The run whose threads work.
        file: The file; whoever made it closes it.
        compression: "", "GZIP" or "ZLIB"; compressed content is decompressed from its start.
        chunk_bytes: Bytes to read at a time; None means 256 KiB at first, then 1 MiB.
        offset: The first byte of the content to give.
        ends: Bytes of which one stands before every record but the first; b"" where that is not so.

    Raises:
        OSError: The file cannot be read.
        CorruptRecordError: Compressed data is damaged or cut short.
        StateError: No record can begin at `offset`, as one did when a state was saved.
    """
    first, further = chunk_bytes or CHUNK_BYTES, chunk_bytes or FURTHER_BYTES
    begin = offset
    before = max(0, offset - 1) if ends else offset
    if not compression:
        data = await file.open(first, before)
        _check_end(data[: offset - before], offset, ends, file.path)
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
            _check_end(piece[before:offset], begin if offset else 0, ends, file.path)
            if offset < len(piece):
                yield piece[offset:]
            before = offset = 0
        data = await file.read(further)
    decompressor.finish()
    _check_end(b"", begin if offset else 0, ends, file.path)


def _check_end(found: bytes, offset: int, ends: bytes, path: str) -> None:
    """Make sure that a record ends before a saved position; there is none before the start."""
    if offset and ends and (not found or found not in ends):
        raise StateError(f"{path}, byte {offset}: no record begins there, as one did when the state was saved")
