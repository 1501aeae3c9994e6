"""A storage whose uploads fail as a test says."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aiodata.storage import Storage, Upload, register, schemes
from tests.storage.folder_storage import FolderStorage, FolderUpload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from aiodata import StorageOptions


class Scripted(FolderStorage):
    """A folder; what is in `faults` for a method is called, or raised, before that does its work, first come first.

    Methods are `list`, `delete`, `create`, `write`, `commit`, `discard`.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.faults: dict[str, list[Exception | asyncio.Event]] = {}
        self.calls: Counter[str] = Counter()
        self.sizes: list[int] = []
        """Of what was written."""
        self.reached = asyncio.Event()
        """Whether something waits for an event of `faults`."""
        self.hang = False
        """Whether `write` and `commit` never end."""

    async def step(self, method: str) -> None:
        self.calls[method] += 1
        faults = self.faults.get(method)
        if faults:
            fault = faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            self.reached.set()
            await fault.wait()

    async def list(self, pattern: str) -> list[str]:
        await self.step("list")
        return await super().list(pattern)

    async def delete(self, url: str) -> None:
        await self.step("delete")
        await super().delete(url)

    async def create(self, url: str, options: StorageOptions) -> Upload:
        await self.step("create")
        return _Upload(self, FolderUpload(self.path(url)))


class _Upload:
    def __init__(self, storage: Scripted, upload: FolderUpload) -> None:
        self._storage = storage
        self._upload = upload

    async def write(self, data: bytes, /) -> None:
        await self._storage.step("write")
        self._storage.sizes.append(len(data))
        await self._upload.write(data)

    async def commit(self) -> None:
        await self._storage.step("commit")
        await self._upload.commit()

    async def discard(self) -> None:
        self._upload.close()
        await self._storage.step("discard")
        await self._upload.discard()


@contextmanager
def registered(scheme: str, storage: Callable[[], Storage]) -> Iterator[None]:
    """Have a scheme known for a while."""
    before = dict(schemes._registered)
    register(scheme, storage)
    try:
        yield
    finally:
        schemes._registered.clear()
        schemes._registered.update(before)


def files(root: Path) -> list[str]:
    """List all files under a folder, hidden ones too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def fast(**limits: Any) -> Any:
    """Give options that do not wait for long."""
    from aiodata import StorageOptions

    return StorageOptions(**{"first_wait_seconds": 0.01, "max_wait_seconds": 0.01, "max_attempts": 3, **limits})
