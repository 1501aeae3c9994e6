"""Remote files for those that read in threads and by seeking: pyarrow, `zipfile`, numpy."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import tempfile
from concurrent.futures import CancelledError
from typing import IO, TYPE_CHECKING, Any

from aiodata.errors import EndedEarlyError, RemoteError
from aiodata.storage.masking import masked
from aiodata.storage.protocol import FileInfo
from aiodata.storage.transfer.download import Download
from aiodata.storage.transfer.network import result_of
from aiodata.storage.transfer.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence
    from concurrent.futures import Future

    from aiodata.engine.statistics import Counters
    from aiodata.options import StorageOptions
    from aiodata.storage.transfer.expected import Range
    from aiodata.storage.transfer.network import Network

__all__ = ["SeekableFile"]

SPOOL_BYTES = 1 << 20


class SeekableFile(io.RawIOBase):
    """A remote file that blocks the thread that reads it. One thread uses it at a time; any may interrupt it.

    What a format says will be read, by `expect`, is asked for ahead, as far as the options' `read_ahead_bytes` and
    `memory_bytes` allow. The rest is asked for when it is read, 65 KiB at least. From a server that does not know
    ranges all of the file is copied to the disk first.

    Args:
        network: The network, which has to last as long as the file is open.
        url: The file.
        options: The limits.
        counters: Where requests and bytes are counted.
    """

    def __init__(self, network: Network, url: str, options: StorageOptions, counters: Counters) -> None:
        super().__init__()
        self.path = masked(url)
        """The URL without its secrets."""
        self.info = FileInfo()
        """What the first answer told."""
        self._network = network
        self._url = url
        self._options = options
        self._counters = counters
        self._parts = Parts(self._ask, self._result, network.limits, options)
        self._at = 0
        self._spool: IO[bytes] | None = None
        self._waiting: Future[Any] | None = None
        self._interrupted = False
        self._failure: BaseException | None = None
        # What follows belongs to the network's loop.
        self._downloads: list[Download] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._held = 0

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._parts.size

    def start(self) -> None:
        """Make the first request.

        Raises:
            OSError: The file cannot be read.
            ValueError, ImportError: Nothing is known of such URLs, or an optional package is not installed.
        """
        self._call(self._begin())
        self._parts.start()
        download = self._downloads[0]
        self.info = download.info or FileInfo()
        if self.info.size is None or not download.has_ranges:
            self.spooled()
        else:
            self._parts.size = self.info.size

    def expect(self, groups: Iterable[Sequence[Range]]) -> None:
        """Say what will be read from now on, instead of what was said before.

        Args:
            groups: One after the other, ranges of bytes which are read side by side, each forward and once. It is
                iterated as reading goes on.
        """
        if self._spool is None:
            self._parts.expect(groups)

    def spooled(self) -> IO[bytes]:
        """Copy the file to the disk, read it there from now on, and give that copy, which closes with this file.

        Raises:
            OSError: It cannot be read, or there is no room for it.
        """
        if self._spool is None:
            self._parts.expect([])
            spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this file
            try:
                download = self._call(self._begin())
                while data := self._call(self._counted(download.take(SPOOL_BYTES))):
                    spool.write(data)
                spool.flush()
                if download.info is not None and download.info.tag != self.info.tag:
                    raise RemoteError("the file has been replaced while it was being read", self.path)
            except BaseException:
                spool.close()
                raise
            self._spool, self._parts.size = spool, spool.tell()
        return self._spool

    # As a file

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read from anywhere."""
        return True

    def tell(self) -> int:
        """Give the place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte."""
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if at < 0:
            raise OSError(errno.EINVAL, "there is nothing before the start of a file", self.path)
        self._at = at
        return at

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes, or fewer at the end of the file.

        Raises:
            OSError: They cannot be read.
            EndedEarlyError: The file has been interrupted.
        """
        end = self.size if size is None or size < 0 else min(self._at + size, self.size)
        if end <= self._at:
            return b""
        self._failure = None
        try:
            if self._spool is not None:
                self._spool.seek(self._at)
                data = self._spool.read(end - self._at)
            else:
                data = self._parts.read(self._at, end)
        except BaseException as error:
            self._failure = error
            raise
        self._at += len(data)
        return data

    def raise_failure(self) -> None:
        """Raise what the last read raised, if it did: whoever called that may have made another error of it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # else it and this frame, which its traceback holds, would be a cycle

    def readall(self) -> bytes:
        """Read all that follows."""
        return self.read()

    def readinto(self, buffer: Any) -> int:
        """Read into memory that is there."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def interrupt(self) -> None:
        """End what reads, at once and for good; from any thread."""
        self._interrupted = True
        if (waiting := self._waiting) is not None:
            waiting.cancel()

    def close(self) -> None:
        """End all requests."""
        if not self.closed:
            super().close()
            try:
                self._network.finish(self._end())
            finally:
                self._parts.close()
                self._failure = None
                if self._spool is not None:
                    self._spool.close()

    def __del__(self) -> None:
        """Leave it: the requests end with the network, which a collector's thread must not wait for."""

    # The network

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._result(self._network.submit(work))

    def _ask(self, begin: int, end: int, freed: int) -> Future[bytes]:
        return self._network.submit(self._fetch(begin, end, freed))

    def _result(self, future: Future[Any]) -> Any:
        self._waiting = future
        try:
            if self._interrupted:
                future.cancel()
            return result_of(future)
        except CancelledError:
            raise EndedEarlyError(f"{self.path}: the pipeline was closed while the file was being read") from None
        finally:
            self._waiting = None
            future.cancel()  # if it was Ctrl-C that ended the waiting
            del future  # else it, its error and this frame, which the error's traceback holds, would be a cycle

    async def _begin(self) -> Download:
        storage = self._network.storage(self._url)
        download = Download(storage, self._url, self._options, self._counters, self._network.limits)
        self._downloads.append(download)
        return download

    async def _fetch(self, begin: int, end: int, freed: int) -> bytes:
        self._hold(-freed)
        data: bytes = await self._counted(self._downloads[0].range(begin, end))
        self._hold(len(data))
        return data

    async def _counted(self, reading: Coroutine[Any, Any, bytes]) -> bytes:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            data = await reading
            self._counters.bytes_read += len(data)
            return data
        finally:
            self._tasks.discard(task)

    def _hold(self, size: int) -> None:
        self._held += size
        self._network.limits.held += size

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        for download in self._downloads:
            await download.aclose()
        self._hold(-self._held)
