"""`TFRecordWriter`: writes TFRecord files."""

from __future__ import annotations

import asyncio
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.workers import wait_out
from aiodata.formats.compression import check_compression_type
from aiodata.formats.tfrecord import LARGEST_RECORD, checksum_function, frame
from aiodata.storage.atomic import AtomicFile
from aiodata.storage.schemes import is_remote, local_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeAlias

    from aiodata.options import StorageOptions
    from aiodata.storage.transfer.upload import AtomicUpload

    _Function: TypeAlias = Callable[[AtomicFile | AtomicUpload, list[bytes]], None]

__all__ = ["TFRecordWriter"]

BUFFER_BYTES = 1 << 20
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}


class TFRecordWriter:
    """Writes records to a TFRecord file, which appears under its name when it is complete.

    Use it by `with` and `write`, or by `async with` and `awrite`, which compresses and writes in a thread of its own.
    Leaving the block puts the file in its place; leaving it by an exception, or `discard`, leaves nothing. So does a
    writer that is dropped without being closed, with a ResourceWarning. What a killed process leaves, a hidden file
    that ends with `.part`, is removed when the file is written again. Memory: about 1 MiB beside the longest record.

    A URL is written to in the same way, in pieces of 4 MiB, with memory for up to four of them: nothing is seen under
    its name before the file is complete. What a killed process leaves there is up to the storage. Trouble that may
    pass is waited out. Cancelling `awrite` does not wait for the network then; what was handed over is still written.

    One task or thread at a time may call it, except that several tasks may be within `awrite`: their records are
    written in the order of the calls. `write`, `flush` and `close` wait for what they have begun.

    Args:
        path: The file, or its URL; one that is there is replaced when the new one is complete, which gets its
            permissions. A link is followed. What is no regular file, such as a pipe, is written to at once.
        options: The compression: "" or None, "GZIP" or "ZLIB"; named as in TensorFlow.
        compression_level: 0 (none) to 9 (smallest), or -1 for zlib's default.
        storage: How remote storage is used.

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
        self,
        path: str | bytes | os.PathLike[str],
        options: str | None = None,
        *,
        compression_level: int = -1,
        storage: StorageOptions | None = None,
    ) -> None:
        checksum_function("TFRecordWriter")
        compression = check_compression_type(options, "TFRecordWriter")
        if not -1 <= compression_level <= 9:
            raise ValueError(f"TFRecordWriter: compression_level must be from -1 to 9, not {compression_level}")
        bits = _WINDOW_BITS.get(compression)
        self._engine = None if bits is None else zlib.compressobj(compression_level, wbits=bits)
        self._target: AtomicFile | AtomicUpload | None = _target(local_path(os.fsdecode(path)), storage)
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
            self._here(self._flush)

    async def awrite(self, record: bytes) -> None:
        """Write one record; as `write`, but compressing and writing happen in the writer's own thread."""
        self._add(record)
        if self._size >= BUFFER_BYTES:
            await self._in_thread(self._flush)

    def flush(self) -> None:
        """Hand what has been written to the operating system; a compressed stream keeps what it needs.

        A remote file is not seen before it is complete, and is not sent any sooner by this.
        """
        self._check_open()
        self._here(self._flush_through)

    def close(self) -> None:
        """Complete the file and put it in its place; closing again does nothing.

        Raises:
            OSError: The file could not be written, now or before; there is none then.
        """
        self._check()
        if self._target is not None:
            try:
                self._here(self._finish)
            finally:
                self._end()

    async def aclose(self) -> None:
        """Do as `close`, in the writer's thread."""
        self._check()
        if self._target is not None:
            try:
                await self._in_thread(self._finish)
            except asyncio.CancelledError:
                await self._discard_in_thread()
                raise
            finally:
                self._end()

    def discard(self) -> None:
        """Leave no file; what was there under its name before stays."""
        target = self._target
        if target is not None:
            target.abort()
        self._end()  # waits for a write that was cancelled half-way
        if target is not None:
            target.discard()

    def _check(self) -> None:
        if self._failure is not None:
            self.discard()
            raise _failed_before(self._failure)

    def _check_open(self) -> None:
        self._check()
        if self._target is None:
            raise ValueError("TFRecordWriter: the writer is closed")

    def _add(self, record: Any) -> None:
        self._check_open()
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

    # What is done with the records that have been gathered: in the writer's thread if there is one, else in the
    # caller's. One writer has one thread, so that nothing is written before what was to be written earlier.

    def _flush(self, target: AtomicFile | AtomicUpload, parts: list[bytes]) -> None:
        if self._failure is not None:
            raise _failed_before(self._failure)
        data = b"".join(parts)
        try:
            target.file.write(data if self._engine is None else self._engine.compress(data))
        except BaseException as error:
            self._failure = error  # what is in the file now is not what was written
            raise

    def _flush_through(self, target: AtomicFile | AtomicUpload, parts: list[bytes]) -> None:
        self._flush(target, parts)
        target.file.flush()

    def _finish(self, target: AtomicFile | AtomicUpload, parts: list[bytes]) -> None:
        try:
            self._flush(target, parts)
            if self._engine is not None:
                target.file.write(self._engine.flush())
        except BaseException:
            target.discard()
            raise
        target.commit()

    def _work(self, function: _Function) -> Callable[[], None]:
        """Give what does something with the records gathered so far, which are its own from now on."""
        assert self._target is not None
        parts, self._parts, self._size = self._parts, [], 0
        return partial(function, self._target, parts)

    def _here(self, function: _Function) -> None:
        work = self._work(function)
        if self._thread is None:
            work()
        else:
            self._thread.submit(work).result()

    async def _in_thread(self, function: _Function) -> None:
        work = self._work(function)
        writing = self._begun(work)
        try:
            if isinstance(self._target, AtomicFile):
                await wait_out(writing)  # also when cancelled: the records of others may be among the parts
            else:
                await asyncio.wait([writing])  # they are written all the same, but that may take long
            writing.result()
        finally:
            del writing  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    async def _discard_in_thread(self) -> None:
        target = self._target
        if target is not None:
            target.abort()
            await wait_out(self._begun(target.discard))
        self._end()

    def _begun(self, work: Callable[[], None]) -> asyncio.Future[None]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "aiodata-writer")
        begun = asyncio.get_running_loop().run_in_executor(self._thread, work)
        begun.add_done_callback(_look_at)
        return begun

    def _end(self) -> None:
        self._target = None
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

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
            await self._discard_in_thread()


def _target(path: str, storage: StorageOptions | None) -> AtomicFile | AtomicUpload:
    if not is_remote(path):
        return AtomicFile(path)
    from aiodata.storage.transfer.upload import AtomicUpload  # takes a while to import

    return AtomicUpload(path, storage)


def _look_at(done: asyncio.Future[None]) -> None:
    """Take note of an error: the writer remembers it also when nobody waits any more."""
    if not done.cancelled():
        done.exception()


def _failed_before(failure: BaseException) -> OSError:
    error = OSError(f"TFRecordWriter: what was written before failed: {failure}")
    error.__cause__ = failure
    return error
