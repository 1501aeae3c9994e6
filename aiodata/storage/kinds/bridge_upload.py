"""Files that are written by fsspec: gathered locally, and sent when they are complete."""

from __future__ import annotations

import asyncio
import ftplib
import os
import secrets
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiodata.engine.workers import wait_out
from aiodata.storage.transfer.healing import Trouble, sending_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.options import StorageOptions
    from aiodata.storage.kinds.bridge import FsspecStorage

__all__ = ["FsspecUpload", "remove"]

_WHOLE = {"hf"}
"""Schemes, beside those of object stores, of what shows a file when it is complete, and not before."""


class FsspecUpload:
    """A new file that fsspec writes.

    Args:
        storage: What it is written by.
        url: Its URL.
        options: The limits. What only works in threads cannot be ended, and is not limited.
    """

    def __init__(self, storage: FsspecStorage, url: str, options: StorageOptions) -> None:
        self._storage = storage
        self._url = url
        self._options = options
        self._file: Any = None
        self._part = ""
        """The path of what has been sent and is not in its place."""

    async def write(self, data: bytes) -> None:
        """Write more of it, to the local file."""
        await self._locally(self._write, data)

    def _write(self, data: bytes) -> None:
        self._open().write(data)

    def _open(self) -> Any:
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(prefix="aiodata-", delete=False)  # noqa: SIM115 - see `_remove`
        return self._file

    async def commit(self) -> None:
        """Send it, and put it in its place; after trouble it may be called again."""
        await self._locally(lambda: self._open().flush())
        if await self._storage.is_asynchronous(self._url):
            seconds = sending_seconds(self._options, os.path.getsize(self._file.name))  # noqa: ASYNC240 - quick
            try:
                async with asyncio.timeout(seconds) as limit:
                    await self._storage.call(self._url, "put_file", self._file.name)
            except TimeoutError:
                if limit.expired():
                    raise Trouble(f"it could not be sent in {seconds:g} s") from None
                raise
        else:
            await self._storage.in_thread(self._url, self._send, is_waited_out=True)
        self._storage.forget(self._url)
        await self._locally(self._remove)

    async def discard(self) -> None:
        """Give it up."""
        try:
            if self._part:
                await self._storage.in_thread(self._url, self._remove_part, is_waited_out=True)
        finally:
            self._remove()  # here: at the end of the program no thread takes work any more

    def _send(self, filesystem: Any, path: str) -> None:
        names = filesystem.protocol
        if not _WHOLE.isdisjoint((names,) if isinstance(names, str) else names):
            filesystem.put_file(self._file.name, path)
            return
        folder, _, name = path.rpartition("/")
        self._part = self._part or f"{folder}/.{name}.{secrets.token_hex(6)}.part".removeprefix("" if folder else "/")
        filesystem.put_file(self._file.name, self._part)
        _move(filesystem, self._part, path)
        self._part = ""

    def _remove_part(self, filesystem: Any, _: str) -> None:
        remove(filesystem, self._part)
        self._part = ""

    def _remove(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
            os.unlink(file.name)

    async def _locally(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function in a thread, and wait for it also while the task is being cancelled."""
        call = asyncio.get_running_loop().run_in_executor(None, function, *arguments)
        await wait_out(call)
        try:
            call.result()
        finally:
            del call  # else it, its error and this frame, which the error's traceback holds, would be a cycle


def remove(filesystem: Any, path: str) -> None:
    """Remove a file, and its folder if that is empty then; one that is not there is no error."""
    try:
        filesystem.rm_file(path)
    except FileNotFoundError:
        return
    except ftplib.error_perm:  # also where there is no such file
        if filesystem.exists(path):
            raise
        return
    folder = path.rpartition("/")[0]
    with suppress(Exception):  # some have no folders, or hold them otherwise
        if folder.strip("/") and not filesystem.ls(folder, detail=False):
            filesystem.rmdir(folder)


def _move(filesystem: Any, part: str, path: str) -> None:
    """Rename a file, in place of what is there; by a copy where file systems cannot rename."""
    if type(filesystem).mv.__module__ == "fsspec.spec":
        filesystem.cp_file(part, path)
        filesystem.rm_file(part)
        return
    filesystem.mv(part, path)
    if filesystem.exists(part):
        raise FileExistsError("there is such a file, and the file system does not replace it")
