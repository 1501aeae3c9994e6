"""Files that are looked at before there is a pipeline: read in the caller's own thread, local and remote ones."""

from __future__ import annotations

import glob
import io
from contextlib import closing
from typing import IO

from aiodata.engine.statistics import Counters
from aiodata.options import StorageOptions
from aiodata.storage.listing import listed
from aiodata.storage.schemes import is_remote, local_path
from aiodata.storage.transfer.expected import forward
from aiodata.storage.transfer.network import Lease
from aiodata.storage.transfer.seekable import SeekableFile

__all__ = ["matching_paths", "open_file"]


def matching_paths(pattern: str, storage: StorageOptions | None = None) -> list[str]:
    """List the paths, or URLs, that match a pattern.

    Args:
        pattern: The pattern.
        storage: How remote storage is used.

    Raises:
        OSError, ValueError: They cannot be listed.
    """
    pattern = local_path(pattern)
    if not is_remote(pattern):
        return glob.glob(pattern, include_hidden=True)
    with closing(Lease()) as lease:
        options = storage or StorageOptions()
        return lease.network.wait(listed(lease.network, pattern, options, Counters("list")))


def open_file(path: str, storage: StorageOptions | None = None) -> IO[bytes]:
    """Open a file for reading, from its beginning on.

    Args:
        path: The path or URL.
        storage: How a remote file is read.

    Raises:
        OSError: It cannot be read.
    """
    if not is_remote(path):
        return open(path, "rb")
    return io.BufferedReader(_LeasedFile(path, storage or StorageOptions()))


class _LeasedFile(SeekableFile):
    """A remote file that keeps the network for as long as it is open."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        self._lease = Lease()
        super().__init__(self._lease.network, url, options, Counters("read"))
        try:
            self.start()
            self.expect(forward(0, self.size))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all requests."""
        try:
            super().close()
        finally:
            self._lease.close()
