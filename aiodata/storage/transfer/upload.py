"""Remote files that are there whole or not at all: what `AtomicFile` is for local ones."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import warnings
import weakref
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from aiodata.engine.statistics import Counters
from aiodata.errors import RemoteError
from aiodata.options import StorageOptions
from aiodata.storage.masking import masked
from aiodata.storage.transfer.asking import ask, turn
from aiodata.storage.transfer.network import Lease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from aiodata.storage.protocol import Upload
    from aiodata.storage.transfer.network import Network

__all__ = ["AtomicUpload", "Calls", "DISCARDING"]

R = TypeVar("R")
PIECE_BYTES = 4 * 1024 * 1024
"""Bytes that are handed to the network together."""
DISCARD_SECONDS = 10.0
DISCARDING = StorageOptions(max_attempts=3, first_wait_seconds=0.2, give_up_seconds=DISCARD_SECONDS / 2)
logger = logging.getLogger("aiodata")


class Calls:
    """Work on the network's loop that one thread at a time waits for, and others may end.

    Args:
        network: The network.
        path: What is worked on, for errors.
    """

    def __init__(self, network: Network, path: str) -> None:
        self._network = network
        self._path = path
        self._task: asyncio.Task[Any] | None = None
        self._is_ended = False

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the network's loop while this thread waits.

        Raises:
            RemoteError: It has been ended.
        """
        try:
            return self._network.wait(self._run(work))
        except concurrent.futures.CancelledError:
            raise RemoteError("it was given up before it was complete", self._path) from None

    async def _run(self, work: Coroutine[Any, Any, R]) -> R:
        self._task = asyncio.current_task()
        try:
            if self._is_ended:
                work.close()
                raise asyncio.CancelledError
            return await work
        finally:
            self._task = None

    def abort(self) -> None:
        """End what is under way and what may follow, from any thread."""
        self._is_ended = True
        self._network.submit(self.cancel())

    async def cancel(self) -> None:
        """Do so on the network's loop, and wait until it has ended."""
        self._is_ended = True
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


class AtomicUpload:
    """A new remote file, which is seen under its name when it is complete.

    It is used by one ordinary thread at a time, which waits for the network's; nothing is asked of the storage before
    there are some megabytes, or all. Trouble that may pass is waited out as for reading. One that is dropped, or left
    at the end of the program, is discarded with a ResourceWarning. What a killed process leaves is up to the storage.
    Memory: about 16 MiB, beside what the storage itself takes.

    Args:
        url: Where the file is to be.
        options: The limits; None are the defaults.
        counters: Where requests and retries are counted.
    """

    def __init__(self, url: str, options: StorageOptions | None = None, counters: Counters | None = None) -> None:
        self.path = masked(url)
        self._transfer = _Transfer(url, options or StorageOptions(), counters or Counters("upload"))
        self._dropped = weakref.finalize(self, _drop, self._transfer, os.getpid())

    @property
    def file(self) -> BinaryIO:
        """Where to write it; it cannot be read or sought in, and flushing it has no effect."""
        return cast("BinaryIO", self._transfer)

    def commit(self) -> None:
        """Put the file in its place.

        Raises:
            OSError: It cannot be; it is discarded then.
        """
        try:
            self._transfer.commit()
        except BaseException:
            self.discard()
            raise
        self._dropped.detach()
        self._transfer.end()

    def abort(self) -> None:
        """End what another thread is doing with it, which fails by that; `discard` has to follow."""
        self._transfer.calls.abort()

    def discard(self) -> None:
        """Give up what was written; what was in its place before stays. In a fork of the process nothing is done."""
        if self._dropped.detach():
            self._transfer.discard()


class _Transfer:
    """What writes a remote file, by a storage's `Upload`."""

    def __init__(self, url: str, options: StorageOptions, counters: Counters) -> None:
        self.path = masked(url)
        self._url = url
        self._options = options
        self._counters = counters
        self._upload: Upload | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._is_closed = False
        self._process = os.getpid()
        self._lease = Lease()
        self._network = self._lease.network
        self.calls = Calls(self._network, self.path)

    def write(self, data: Any) -> int:
        """Write more."""
        self._check_open()
        view = memoryview(data).cast("B")
        for start in range(0, len(view), PIECE_BYTES):
            part = bytes(view[start : start + PIECE_BYTES])
            self._parts.append(part)
            self._size += len(part)
            if self._size >= PIECE_BYTES:
                self._send()
        return len(view)

    def flush(self) -> None:
        """Do nothing: what is not complete is not seen."""

    def commit(self) -> None:
        self._check_open()
        if self._parts or self._upload is None:
            self._send()
        assert self._upload is not None
        self.calls.wait(self._asked(self._upload.commit))

    def discard(self, is_waited_for: bool = True) -> None:
        if os.getpid() != self._process:
            return
        self._is_closed = True
        discarding = self._network.submit(self._discard())
        try:
            if is_waited_for:
                concurrent.futures.wait([discarding], DISCARD_SECONDS)
        finally:
            discarding.add_done_callback(lambda _: self.end())

    def end(self) -> None:
        """Let the network go."""
        self._is_closed = True
        self._lease.close()

    def _check_open(self) -> None:
        if self._is_closed or os.getpid() != self._process:
            by = "" if self._is_closed else " in this process, a fork of the one that writes it"
            raise ValueError(f"{self.path}: the file is closed{by}")

    def _send(self) -> None:
        data, self._parts, self._size = b"".join(self._parts), [], 0
        self.calls.wait(self._written(data))

    async def _written(self, data: bytes) -> None:
        if self._upload is None:
            self._upload = await self._asked(lambda: self._network.storage(self._url).create(self._url, self._options))
        if data:
            upload = self._upload
            await self._asked(lambda: upload.write(data))

    async def _asked(self, request: Callable[[], Awaitable[R]], options: StorageOptions | None = None) -> R:
        storage = self._network.storage(self._url)
        limits = options or self._options

        async def once() -> R:
            async with turn(self._network.limits, storage, self._url, self._options, self._counters):
                return await request()

        return await ask(storage, self._url, once, limits, self._counters)

    async def _discard(self) -> None:
        upload, self._upload = self._upload, None
        try:
            async with asyncio.timeout(DISCARD_SECONDS):
                await self.calls.cancel()
                if upload is not None:
                    await self._asked(upload.discard, DISCARDING)
        except (Exception, asyncio.CancelledError) as error:  # the next save, or the storage, removes it
            logger.warning("%s: what was written of it may be left: %s", self.path, str(error) or type(error).__name__)


def _drop(transfer: _Transfer, process: int) -> None:
    """Discard a file that was neither committed nor discarded."""
    if os.getpid() == process:
        # A loop must not wait, least of all the network's: the cycle collector may have come by there.
        transfer.discard(is_waited_for=asyncio._get_running_loop() is None)
        warnings.warn(
            f"{transfer.path!r} was not completed: what was written is discarded", ResourceWarning, stacklevel=2
        )
