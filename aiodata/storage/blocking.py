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


def matching_paths(pattern: str) -> list[str]:
    """List the paths, or URLs, that match a pattern.

    Raises:
        OSError, ValueError: They cannot be listed.
    """
    pattern = local_path(pattern)
    if not is_remote(pattern):
        return glob.glob(pattern, include_hidden=True)
    with closing(Lease()) as lease:
        return lease.network.wait(listed(lease.network, pattern, StorageOptions(), Counters("list")))


def open_file(path: str) -> IO[bytes]:
    """Open a file for reading, from its beginning on.

    Raises:
        OSError: It cannot be read.
    """
    return io.BufferedReader(_LeasedFile(path)) if is_remote(path) else open(path, "rb")


class _LeasedFile(SeekableFile):
    """A remote file that keeps the network for as long as it is open."""

    def __init__(self, url: str) -> None:
        self._lease = Lease()
        super().__init__(self._lease.network, url, StorageOptions(), Counters("read"))
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
