"""Where a save puts its files, remotely: under names that no other save has."""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from aiodata.errors import CorruptRecordError, RemoteError
from aiodata.storage.masking import masked
from aiodata.storage.saved.dataset import MANIFEST, TOKEN, parsed_manifest
from aiodata.storage.transfer.asking import ask, in_time, turn
from aiodata.storage.transfer.network import Lease
from aiodata.storage.transfer.upload import DISCARDING, AtomicUpload, Calls
from aiodata.whole_file import content

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiodata.engine.statistics import Counters
    from aiodata.options import StorageOptions
    from aiodata.storage.protocol import Storage

__all__ = ["SaveUpload"]

R = TypeVar("R")
ABANDONED_SECONDS = 24 * 3600
"""From what age on the files of a save that has no manifest are taken for those of a process that was killed."""
_FIRST_SECOND = 1767225600  # 2026; names from before that are not the time
logger = logging.getLogger("aiodata")


class SaveUpload:
    """The remote files of one save.

    There are no locks there. The name of the files' folder tells when the save began: what is a day old and belongs to
    no manifest is removed by the next save, and a save that takes longer than that makes sure that its files are there
    before it puts the manifest.

    Args:
        url: The URL of the saved dataset.
        options: How the storage is used.
        counters: Where requests are counted.
    """

    def __init__(self, url: str, options: StorageOptions, counters: Counters) -> None:
        self.token = f"elements-{int(time.time()):08x}{secrets.token_hex(4)}"
        self._url = url.rstrip("/")
        self._options = options
        self._counters = counters
        self._files: dict[str, AtomicUpload] = {}
        self._lock = threading.Lock()
        self._lease = Lease()
        self._calls = Calls(self._lease.network, masked(self._url))

    def begin(self) -> None:
        """Make sure that there is nothing else, and remove what killed saves have left, as far as that is certain.

        Raises:
            FileExistsError: There is something else under this URL.
            OSError: It cannot be listed.
        """
        names = self._names()
        before = self._before()
        self._check(names, before is not None)
        self._remove([name for name in names if _is_abandoned(name) and name.partition("/")[0] != before])

    def new_file(self, name: str) -> AtomicUpload:
        """Begin a shard file."""
        return self._new(f"{self.token}/{name}")

    def _new(self, name: str) -> AtomicUpload:
        file = AtomicUpload(f"{self._url}/{name}", self._options, self._counters)
        with self._lock:
            self._files[name] = file
        return file

    def commit(self, manifest: bytes, replace: bool) -> bool:
        """Put the manifest in its place, when all files are committed; what it replaces is removed.

        Args:
            manifest: Its content.
            replace: Whether to replace what is saved there; else it stays.

        Returns:
            Whether it is in its place; else this save is to be discarded.

        Raises:
            OSError: It cannot be put there; the save is to be discarded.
        """
        missing = set(self._files).difference(self._names(f"{self.token}/*"))
        if missing:
            raise RemoteError(f"{min(missing)} is gone: somebody has removed it", masked(self._url))
        before = self._before()
        if before is not None and not replace:
            return False
        file = self._new(MANIFEST)
        try:
            file.file.write(manifest)
        except BaseException:
            file.discard()
            raise
        file.commit()
        try:
            if before is not None and before != self.token:
                self._remove(self._names(f"{before}/*"))
        except OSError as error:
            logger.warning("%s: what was saved there before may be left: %s", masked(self._url), error)
        finally:
            self._lease.close()
        return True

    def abort(self) -> None:
        """End what other threads are doing with the files."""
        self._calls.abort()
        with self._lock:
            files = list(self._files.values())
        for file in files:
            file.abort()

    def discard(self) -> None:
        """Remove all files, which are committed or discarded."""
        self._calls = Calls(self._lease.network, masked(self._url))
        self._options = DISCARDING
        try:
            self._remove([name for name in self._files if name != MANIFEST])
        except OSError as error:
            logger.warning("%s: what was written may be left: %s", masked(self._url), error)
        finally:
            self._lease.close()

    def _check(self, names: list[str], is_saved: bool) -> None:
        """Refuse a place that has something else."""
        others = [
            name for name in names if not (name.startswith(f".{MANIFEST}.") or TOKEN.fullmatch(name.partition("/")[0]))
        ]
        if others and not (is_saved and MANIFEST in others):
            url = masked(self._url)
            raise FileExistsError(f"{url} is not empty, and no saved dataset: it has {others[0]!r}; name another place")

    def _before(self) -> str | None:
        """Give the token of what is saved there; None where nothing is, or nobody can say what."""
        try:
            work = content(self._lease.network, f"{self._url}/{MANIFEST}", self._options)
            return parsed_manifest(self._calls.wait(work), self._url).token
        except (FileNotFoundError, CorruptRecordError):
            return None

    def _names(self, *patterns: str) -> list[str]:
        """List what is there, in the folder and in those in it, by its name from the folder on."""
        folder = re.sub(r"([*?[])", r"[\1]", self._url)
        found: set[str] = set()
        for pattern in patterns or ("*", "*/*"):
            found.update(self._ask(f"{folder}/{pattern}", lambda storage, pattern: storage.list(pattern)))
        return sorted({url.rstrip("/").removeprefix(f"{self._url}/") for url in found})

    def _remove(self, names: list[str]) -> None:
        for name in names:
            if "/" in name:
                self._ask(f"{self._url}/{name}", lambda storage, url: storage.delete(url))

    def _ask(self, url: str, request: Callable[[Storage, str], Awaitable[R]]) -> R:
        network = self._lease.network

        async def asking() -> R:
            storage = network.storage(url)

            async def once() -> R:
                async with turn(network.limits, storage, url, self._options, self._counters):
                    return await in_time(request(storage, url), self._options, "an answer")

            return await ask(storage, url, once, self._options, self._counters)

        return self._calls.wait(asking())


def _is_abandoned(name: str) -> bool:
    """Tell whether a file is in the folder of a save that began a day ago, or before."""
    if not TOKEN.fullmatch(name.partition("/")[0]):
        return False
    begun = int(name.removeprefix("elements-")[:8], 16)
    return _FIRST_SECOND <= begun <= time.time() - ABANDONED_SECONDS
