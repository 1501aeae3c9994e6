"""A storage of one's own, whole and small: the files of a local folder, under URLs such as `folder://a/b.txt`."""

from __future__ import annotations

import asyncio
import glob
import os
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from aiodata.storage import Answer, FileInfo, Storage, Upload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata import StorageOptions


class FolderStorage(Storage):
    """Reads and writes files under a local folder.

    Args:
        root: The folder.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        info, data = await asyncio.to_thread(self._read, url, offset, length)
        return Answer(info, _once(data), offset)

    async def list(self, pattern: str) -> list[str]:
        scheme, _, names = pattern.partition("://")
        found = await asyncio.to_thread(glob.glob, names, root_dir=self._root, include_hidden=True)
        return sorted(f"{scheme}://{name}" for name in found)

    async def create(self, url: str, options: StorageOptions) -> Upload:
        return FolderUpload(self.path(url))

    async def delete(self, url: str) -> None:
        await asyncio.to_thread(self.path(url).unlink, missing_ok=True)

    def path(self, url: str) -> Path:
        return self._root / url.partition("://")[2]

    def _read(self, url: str, offset: int, length: int | None) -> tuple[FileInfo, bytes]:
        with self.path(url).open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(offset)
            return FileInfo(status.st_size, str(status.st_mtime_ns)), file.read(-1 if length is None else length)


class FolderUpload:
    """A new file: written beside its place, then renamed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path.with_name(f".{path.name}.{token_hex(8)}.part"), "xb")  # noqa: SIM115

    async def write(self, data: bytes, /) -> None:
        await asyncio.to_thread(self._file.write, data)

    async def commit(self) -> None:
        self.close()
        await asyncio.to_thread(os.replace, self._file.name, self._path)

    async def discard(self) -> None:
        self.close()
        await asyncio.to_thread(Path(self._file.name).unlink, missing_ok=True)

    def close(self) -> None:
        self._file.close()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
