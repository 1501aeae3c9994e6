"""`TFRecordWriter`: writes TFRecord files."""

from __future__ import annotations

import asyncio
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from aiodata.engine.workers import wait_out
from aiodata.formats.compression import check_compression_type
from aiodata.formats.tfrecord import LARGEST_RECORD, checksum_function, frame
from aiodata.storage.atomic import AtomicFile

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["TFRecordWriter"]

BUFFER_BYTES = 1 << 20
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}


class TFRecordWriter:
    """Writes records to a TFRecord file, which appears under its name when it is complete.

    Use it by `with` and `write`, or by `async with` and `awrite`, which compresses and writes in a thread of its own.
    Leaving the block puts the file in its place; leaving it by an exception, or `discard`, leaves nothing. Memory:
    about 1 MiB beside the longest record.

    Args:
        path: The file; one that is there is replaced when the new one is complete.
        options: The compression: "" or None, "GZIP" or "ZLIB"; named as in TensorFlow.
        compression_level: 0 (none) to 9 (smallest), or -1 for zlib's default.

    Raises:
        ImportError: google-crc32c is not installed; it comes with the extra `tfrecord`.
        ValueError: An argument is out of its range.
        OSError: The file cannot be written.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.tfrecord")
    ...     with aiodata.TFRecordWriter(path, "GZIP") as writer:
    ...         writer.write(b"one")
    ...     list(aiodata.TFRecordDataset(path, "GZIP"))
    [b'one']

    Source: `tf.io.TFRecordWriter`; there the file is seen while it is written.
    """

    def __init__(
        self, path: str | bytes | os.PathLike[str], options: str | None = None, *, compression_level: int = -1
    ) -> None:
        checksum_function("TFRecordWriter")
        compression = check_compression_type(options, "TFRecordWriter")
        if not -1 <= compression_level <= 9:
            raise ValueError(f"TFRecordWriter: compression_level must be from -1 to 9, not {compression_level}")
        bits = _WINDOW_BITS.get(compression)
        self._engine = None if bits is None else zlib.compressobj(compression_level, wbits=bits)
        self._target: AtomicFile | None = AtomicFile(path)
        self._parts: list[bytes] = []
        self._size = 0
        self._thread: ThreadPoolExecutor | None = None
        self._failure: BaseException | None = None
        self.records = 0
        """Number of records written."""

    def write(self, record: bytes) -> None:
        """Write one record.

        Args:
            record: `bytes`, or anything with a buffer.

        Raises:
            TypeError: It is something else.
            ValueError: The writer is closed, or the record is longer than 2 GiB.
            OSError: The file cannot be written.
        """
        self._add(record)
        if self._size >= BUFFER_BYTES:
            self._flush(self._taken())

    async def awrite(self, record: bytes) -> None:
        """Write one record; as `write`, but compressing and writing happen in the writer's own thread."""
        self._add(record)
        if self._size >= BUFFER_BYTES:
            await self._in_thread(self._flush, self._taken())

    def flush(self) -> None:
        """Hand what has been written to the operating system; a compressed stream keeps what it needs."""
        self._open()
        self._flush(self._taken())

    def close(self) -> None:
        """Complete the file and put it in its place; closing again does nothing.

        Raises:
            OSError: The file could not be written, now or before; there is none then.
        """
        self._check()
        if self._target is not None:
            try:
                self._finish(self._taken())
            finally:
                self._end()

    async def aclose(self) -> None:
        """Do as `close`, in the writer's thread."""
        self._check()
        if self._target is not None:
            try:
                await self._in_thread(self._finish, self._taken())
            finally:
                self._end()

    def discard(self) -> None:
        """Leave no file; what was there under its name before stays."""
        target = self._target
        self._end()  # waits for a write that was cancelled half-way
        if target is not None:
            target.discard()

    def _check(self) -> None:
        if self._failure is not None:
            self.discard()
            raise OSError(f"TFRecordWriter: what was written before failed: {self._failure}") from self._failure

    def _open(self) -> AtomicFile:
        self._check()
        if self._target is None:
            raise ValueError("TFRecordWriter: the writer is closed")
        return self._target

    def _add(self, record: Any) -> None:
        self._open()
        if not isinstance(record, bytes):
            if isinstance(record, str):
                raise TypeError("TFRecordWriter: a record is bytes, not str; encode it")
            record = bytes(memoryview(record))
        if len(record) > LARGEST_RECORD:
            raise ValueError(f"TFRecordWriter: a record has at most {LARGEST_RECORD} bytes, this one has {len(record)}")
        framed = frame(record)
        self._parts.append(framed)
        self._size += len(framed)
        self.records += 1

    def _taken(self) -> list[bytes]:
        parts, self._parts, self._size = self._parts, [], 0
        return parts

    def _flush(self, parts: list[bytes]) -> None:
        target = self._open()
        data = b"".join(parts)
        try:
            target.file.write(data if self._engine is None else self._engine.compress(data))
        except BaseException as error:
            self._failure = error  # what is in the file now is not what was written
            raise

    def _finish(self, parts: list[bytes]) -> None:
        target = self._open()
        try:
            self._flush(parts)
            if self._engine is not None:
                target.file.write(self._engine.flush())
        except BaseException:
            target.discard()
            raise
        target.commit()

    def _end(self) -> None:
        self._target = None
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    async def _in_thread(self, function: Any, parts: list[bytes]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "aiodata-writer")
        writing = asyncio.get_running_loop().run_in_executor(self._thread, function, parts)
        await wait_out(writing)  # also when cancelled: the records of others may be among the parts
        try:
            writing.result()
        finally:
            del writing  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    def __enter__(self) -> TFRecordWriter:
        """Give the writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the file; after an exception leave none."""
        self.close() if kind is None else self.discard()

    async def __aenter__(self) -> TFRecordWriter:
        """Give the writer itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the file; after an exception leave none."""
        if kind is None:
            await self.aclose()
        else:
            self.discard()
