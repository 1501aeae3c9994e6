"""Files of any kind that fsspec knows."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.engine.daemons import Daemons
from aiodata.engine.workers import wait_out
from aiodata.storage.kinds.bridge_faults import fault, tag_of
from aiodata.storage.kinds.bridge_upload import FsspecUpload, remove
from aiodata.storage.kinds.bridge_urls import Link, listed, new_filesystem
from aiodata.storage.masking import masked
from aiodata.storage.protocol import Answer, FileInfo, Storage, Upload
from aiodata.storage.transfer.healing import Trouble

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.options import StorageOptions

__all__ = ["FsspecStorage"]

R = TypeVar("R")
FRESH_SECONDS = 1.0
"""How long what was learned of a file is taken for true."""
MOST_KNOWN = 1000
PIECE_BYTES = 1 << 20
PATIENCE_SECONDS = 1.0
_ARGUMENTS = {"hf": {"cache_type": "none"}}
"""What keeps the file systems of some schemes from reading ahead by themselves, with each range of bytes."""


class FsspecStorage(Storage):
    """Reads and writes what fsspec can, and file systems that look like fsspec's.

    An asynchronous file system's coroutines run on its own loop, fsspec's; the methods of all others in threads, each
    of which has a file system of its own, for few of them may be shared. Ranges of bytes are read by `cat_file`. That a
    file has been replaced is noticed where the file system tells an ETag, a checksum or a time: it is asked when a file
    is opened, when its end has been read, and once a second in between. So the elements of up to a second before the
    error may be of the file that is there now.

    A file is written to a temporary local file, and sent when it is complete: to object stores and hubs, which show
    what is complete only, under its name; else under the name `.NAME.RANDOM.part` beside it, which is then renamed, or
    copied by a file system that cannot rename. Folders that are missing are made; one whose last file is removed is
    removed with it, as object stores have it.

    Args:
        filesystem: A file system that is there already, with fsspec's methods `info`, `cat_file`, `ls`, `put_file`,
            `mv`, `exists` and `rm_file`, as far as they are needed. Several threads call it at once, unless `threads`
            is 1, which is what `FTPFileSystem` and others that have one connection need. None makes one for each kind
            of URL by fsspec.
        threads: How many calls may be in threads at once, at least 1.
        **settings: For the file system that is made, as `fsspec.open` takes them; for one that is within another one,
            in a dict by its scheme.

    Raises:
        TypeError: There are settings for a file system that is there.
        ValueError: `threads` is below 1; the file system belongs to a loop of yours (`asynchronous=True`).

    >>> from functools import partial
    >>> import aiodata, fsspec
    >>> mine = fsspec.filesystem("memory")
    >>> mine.pipe_file("/folder/a.txt", b"one")
    >>> aiodata.storage.register("mine", partial(aiodata.storage.FsspecStorage, mine))
    >>> list(aiodata.TextLineDataset("mine://folder/a.txt"))
    [b'one']
    """

    def __init__(self, filesystem: Any = None, *, threads: int = 32, **settings: Any) -> None:
        if threads < 1:
            raise ValueError(f"FsspecStorage: threads must be at least 1, not {threads}")
        if filesystem is not None and settings:
            raise TypeError("FsspecStorage: settings are for a file system that is made, not for one that is there")
        if getattr(filesystem, "asynchronous", False):
            raise ValueError("FsspecStorage: a file system with asynchronous=True belongs to the loop it is used on")
        self._filesystem = filesystem
        self._settings = settings
        self._turns = asyncio.Semaphore(threads)
        self._threads = Daemons("aiodata-fsspec", PATIENCE_SECONDS)
        self._own = threading.local()
        """What each thread has: file systems, by how URLs begin."""
        self._asynchronous: dict[str, Any] = {}
        """Asynchronous file systems, by how URLs begin; None for the others."""
        self._known: dict[str, tuple[FileInfo, float]] = {}
        """What was learned of files, and when."""

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        """Ask for bytes of a file."""
        info, is_fresh = self._looked_up(url)
        if not offset or info is None or not is_fresh:
            info = await self.info(url)
        if info.size is None:
            return Answer(info, self._stream(url), 0, is_range=False)
        stop = info.size if length is None else min(offset + length, info.size)
        return Answer(info, self._range(url, info, offset, stop), offset)

    async def info(self, url: str) -> FileInfo:
        """Look a file up."""
        found = await self.call(url, "info")
        if found.get("type") == "directory":
            raise IsADirectoryError(f"{masked(url)} is a folder")
        size = found.get("size")
        info = FileInfo(None if size is None else int(size), tag_of(found))
        while len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[url] = (info, monotonic())
        return info

    async def list(self, pattern: str) -> list[str]:
        """List the URLs that match a pattern, sorted: of files and of folders, as `tf.io.gfile.glob` does."""
        return await listed(self, pattern)

    async def create(self, url: str, options: StorageOptions) -> Upload:
        """Begin a new file."""
        return FsspecUpload(self, url, options)

    async def delete(self, url: str) -> None:
        """Remove a file, and its folder if it is empty then; a file that is not there is no error."""
        self.forget(url)
        if await self.is_asynchronous(url):
            with suppress(FileNotFoundError):
                await self.call(url, "rm_file")
        else:
            await self.in_thread(url, remove)

    async def aclose(self) -> None:
        """End the threads."""
        self._asynchronous.clear()
        await asyncio.to_thread(self._threads.shutdown)

    def forget(self, url: str) -> None:
        """Look a file up anew when it is asked for."""
        self._known.pop(url, None)

    async def is_asynchronous(self, url: str) -> bool:
        """Tell whether a URL's file system has coroutines."""
        start = Link(url).start
        if start not in self._asynchronous:
            found = await self.in_thread(url, lambda filesystem, _: filesystem)
            self._asynchronous[start] = found if getattr(found, "async_impl", False) else None
        return self._asynchronous[start] is not None

    async def call(self, url: str, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the file system with the path of a URL.

        Args:
            url: The URL.
            method: The method's name.
            *arguments: What it takes before the path.
            **named: What it takes by name.
        """
        if not await self.is_asynchronous(url):
            return await self.in_thread(url, lambda own, path: getattr(own, method)(*arguments, path, **named))
        filesystem = self._asynchronous[Link(url).start]
        try:
            coroutine = getattr(filesystem, "_" + method)(*arguments, self._path(filesystem, url), **named)
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, filesystem.loop))
        except Exception as error:
            found = fault(error.with_traceback(None), url)
        try:
            raise found  # not in the handler: the error, which may have secrets, would be its context
        finally:
            del found  # else it and this frame, which its traceback holds, would be a cycle

    async def in_thread(self, url: str, work: Callable[[Any, str], R], is_waited_out: bool = False) -> R:
        """Call a function with a thread's file system and the path of a URL.

        Args:
            url: The URL.
            work: The function.
            is_waited_out: Whether it is waited for also while the task is being cancelled; else it is left to itself.
        """
        async with self._turns:
            call = self._threads.submit(self._in_this_thread, url, work)
            waiting = asyncio.wrap_future(call)
            try:
                if is_waited_out:
                    await wait_out(waiting)
                return await waiting
            except asyncio.CancelledError:
                self._threads.leave(call)
                raise
            finally:
                del waiting, call  # else they, their error and this frame, which its traceback holds, would be a cycle

    def _in_this_thread(self, url: str, work: Callable[[Any, str], R]) -> R:
        own, start = vars(self._own), Link(url).start
        try:
            if self._filesystem is None and start not in own:
                own[start] = new_filesystem(url, self._settings)
            filesystem = own.get(start, self._filesystem)
            path = self._path(filesystem, url)
            if self._filesystem is not None:
                _refresh(filesystem, path)
            return work(filesystem, path)
        except Exception as error:
            found = fault(error, url)
            if isinstance(found, (Trouble, ConnectionError, TimeoutError)):
                own.clear()  # their connections may be broken
        try:
            raise found  # as in `call`
        finally:
            del found

    def _path(self, filesystem: Any, url: str) -> str:
        """Give what a file system calls the file of a URL."""
        link = Link(url)
        names = getattr(filesystem, "protocol", ())
        is_known = self._filesystem is None or link.scheme in ((names,) if isinstance(names, str) else names)
        text = link.text if is_known else link.path
        strip = getattr(filesystem, "_strip_protocol", str)
        return str(strip(text))

    def _looked_up(self, url: str) -> tuple[FileInfo | None, bool]:
        """Give what is known of a file, and whether that was learned just now."""
        info, when = self._known.get(url, (None, 0.0))
        return info, monotonic() - when <= FRESH_SECONDS

    async def _range(self, url: str, info: FileInfo, offset: int, stop: int) -> AsyncIterator[bytes]:
        if offset >= stop:
            return
        is_whole = offset == 0 and stop == info.size
        end = stop + is_whole  # one byte more, to tell a longer file
        data = await self.call(url, "cat_file", start=offset, end=end, **_ARGUMENTS.get(Link(url).scheme, {}))
        if len(data) != stop - offset:
            self.forget(url)
            raise Trouble(f"{len(data)} bytes came from byte {offset} on, not {stop - offset}")
        is_due = (stop == info.size and not is_whole) or not self._looked_up(url)[1]
        if is_due and await self.info(url) != info:
            raise Trouble("the file is another one than it was")
        yield data

    async def _stream(self, url: str) -> AsyncIterator[bytes]:
        """Give all of a file whose size nobody knows."""
        file = await self.in_thread(url, lambda filesystem, path: filesystem.open(path, "rb"))
        try:
            while data := await self.in_thread(url, lambda *_: file.read(PIECE_BYTES), is_waited_out=True):
                yield data
        finally:
            await self.in_thread(url, lambda *_: file.close(), is_waited_out=True)


def _refresh(filesystem: Any, path: str) -> None:
    """Let a file system forget what it remembers of a folder; those that are made here remember nothing."""
    forget = getattr(filesystem, "invalidate_cache", None)
    for each in (path, path.rpartition("/")[0]):
        with suppress(Exception):  # some look the folder up
            if forget is not None and each:
                forget(each)
