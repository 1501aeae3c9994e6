"""Remote files, as the readers of local ones take them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from aiodata.engine.workers import wait_out
from aiodata.errors import StateError
from aiodata.storage.listing import listed
from aiodata.storage.local import LocalFile
from aiodata.storage.masking import masked
from aiodata.storage.schemes import is_remote
from aiodata.storage.transfer.download import Download
from aiodata.storage.transfer.network import lease_of, network_of, result_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    from aiodata.engine.run import Run
    from aiodata.engine.statistics import Counters
    from aiodata.storage.marks import Mark
    from aiodata.storage.protocol import FileInfo
    from aiodata.storage.transfer.network import Lease, Network

    R = TypeVar("R")

__all__ = ["RemoteFile", "list_remote", "mark_of_info", "open_file"]

PIECE_BYTES = 1024 * 1024
"""Bytes of one hop between threads, if there are as many."""


def open_file(run: Run, path: str, saved: Mark, counters: Counters) -> LocalFile | RemoteFile:
    """Give the file of a path or URL, to be opened, read forward and closed.

    Args:
        run: The run that reads it.
        path: The path or URL.
        saved: The mark that it must have; see `mark_of`.
        counters: Where requests are counted.
    """
    return RemoteFile(run, path, saved, counters) if is_remote(path) else LocalFile(run, path, saved)


def mark_of_info(info: FileInfo, url: str, saved: Mark = None, is_over: bool = False) -> Mark:
    """Give the mark of a remote file, its size and the CRC-32 of its tag, and compare it with a saved one.

    A size that the server does not tell this time, such as that of what it compresses in transfer, is not compared, and
    kept as it was; so is a tag where there is nothing to read.

    Args:
        info: What is known of the file.
        url: Its URL without secrets, for errors.
        saved: The mark that it must have; None for any.
        is_over: Whether nothing of the file is read any more.

    Raises:
        StateError: It is another file, or may be one, for there was a tag and there is none any more.
    """
    mark = (-1 if info.size is None else info.size, crc32(info.tag.encode()) if info.tag else 0)
    if saved is None:
        return mark
    known = tuple(then if now == unknown else now for now, then, unknown in zip(mark, saved, (-1, 0), strict=True))
    if any(now != then and then != unknown for now, then, unknown in zip(known, saved, (-1, 0), strict=True)):
        raise StateError(f"{url}: the file is another one than when the state was saved, by its size or its ETag")
    if not info.tag and saved[1] and not is_over and info.size != 0:
        raise StateError(f"{url}: the server does not say any more whether this is the file that the state is of")
    return known


async def list_remote(run: Run, pattern: str, counters: Counters) -> list[str]:
    """List the URLs that match a pattern, sorted.

    Args:
        run: The run that wants to know.
        pattern: The pattern, a URL with wildcards.
        counters: Where requests are counted.

    Raises:
        OSError, ValueError: They cannot be listed.
    """
    network, options = network_of(run), run.options.storage
    return await _in_run(run, network, listed(network, pattern, options, counters))


async def _in_run(run: Run, network: Network, work: Coroutine[Any, Any, R]) -> R:
    """Wait for a coroutine on the network's loop, as the run waits."""
    if not run.stepped:
        return await network.call(work)
    future = network.submit(work)
    try:
        with run.interrupts.during(future.cancel):
            return result_of(future)
    finally:
        future.cancel()  # if it was Ctrl-C that ended the waiting
        del future  # see `Network.wait`


class RemoteFile:
    """One remote file, read forward, in ranges and ahead; see `LocalFile`, which it resembles.

    Args:
        run: The run that reads it.
        url: The file.
        saved: The mark that it must have; see `mark_of_info`.
        counters: Where requests are counted.
    """

    def __init__(self, run: Run, url: str, saved: Mark, counters: Counters) -> None:
        self._run = run
        self._url = url
        self._counters = counters
        self.path = masked(url)
        """Its URL without secrets, for errors."""
        self.mark = saved
        """What tells the file from another; its own as soon as it is open."""
        self._lease: Lease | None = None
        self._download: Download | None = None

    def size(self) -> int | None:
        """Give its number of bytes, when it is open and the server has told."""
        return None if self._download is None or self._download.info is None else self._download.info.size

    async def open(self, size: int, offset: int = 0) -> bytes:
        """Open the file and read from a byte offset as `read` does.

        Raises:
            OSError: It cannot be opened or read.
            StateError: It is not the file that it must be.
        """
        self._lease = lease_of(self._run)
        data = await self._call(self._begin(self._lease, offset, size))
        assert self._download is not None
        if self._download.info is not None:
            self.mark = mark_of_info(self._download.info, self.path, self.mark, not data)
        return data

    async def _begin(self, lease: Lease, offset: int, size: int) -> bytes:
        network, options = lease.network, self._run.options.storage
        self._download = Download(network.storage(self._url), self._url, options, self._counters, network.limits)
        lease.opened.add(self._download)
        return await self._download.begin(offset, max(size, PIECE_BYTES))

    async def read(self, size: int) -> bytes:
        """Read some bytes, about `size` at most; b"" at the end.

        Raises:
            OSError: They cannot be read.
        """
        if self._lease is None or self._download is None or self._download.is_over:
            return b""
        return await self._call(self._download.take(max(size, PIECE_BYTES)))

    async def _call(self, work: Coroutine[Any, Any, R]) -> R:
        assert self._lease is not None
        return await _in_run(self._run, self._lease.network, work)

    async def aclose(self) -> None:
        """End the requests, also while the task is being cancelled."""
        lease, self._lease = self._lease, None
        if lease is None or not lease.network.is_open:
            return
        if self._download is not None and self._download.is_over:
            lease.opened.discard(self._download)
        elif self._run.stepped:
            lease.network.finish(self._end(lease))
        else:
            # Not a task: those are cancelled all together when asyncio.run ends, and the requests would go on.
            await wait_out(lease.network.call(self._end(lease)))

    async def _end(self, lease: Lease) -> None:
        """Close what there is then, on the network's loop: opening may have been under way, and is cancelled by now."""
        if self._download is not None:
            await self._download.aclose()
            lease.opened.discard(self._download)
