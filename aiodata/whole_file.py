"""Whole files as bytes, local and remote, for functions that a pipeline maps over names."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import anyio

from aiodata.engine.interrupts import of_this_thread
from aiodata.engine.statistics import Counters
from aiodata.options import StorageOptions
from aiodata.storage.schemes import is_remote, local_path
from aiodata.storage.transfer.download import Download
from aiodata.storage.transfer.network import Lease

if TYPE_CHECKING:
    from aiodata.storage.transfer.network import Network

__all__ = ["aread_file", "content", "read_file"]

_PLAIN = StorageOptions()


def read_file(filename: str | bytes | os.PathLike[str], options: StorageOptions | None = None) -> bytes:
    """Read a whole file.

    For many files at once use `aread_file`, which needs no thread for each. Trouble of a network is waited out as in a
    pipeline. Connections are there for the next file only while another one
    is being read, or a pipeline is open that has listed or read URLs. Memory: the file, twice for a moment where it is
    remote.

    Args:
        filename: A path or a URL.
        options: How a remote file is read.

    Raises:
        OSError: It cannot be read.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, "a.txt"), "wb") as file:
    ...         _ = file.write(b"content")
    ...     list(aiodata.Dataset.list_files(folder + "/*.txt").map(aiodata.read_file))
    [b'content']

    Source: `tf.io.read_file`.
    """
    path = local_path(os.fsdecode(filename))
    if not is_remote(path):
        with open(path, "rb") as file:
            return file.read()
    with closing(Lease()) as lease:
        return lease.network.wait(content(lease.network, path, options or _PLAIN), of_this_thread())


async def aread_file(filename: str | bytes | os.PathLike[str], options: StorageOptions | None = None) -> bytes:
    """Read a whole file, awaited: `map(aread_file, num_parallel_calls=64)` has 64 of them under way at once.

    Args:
        filename: A path or a URL.
        options: How a remote file is read.

    Raises:
        OSError: It cannot be read.

    An addition; see `read_file`.
    """
    path = local_path(os.fsdecode(filename))
    if not is_remote(path):
        return await anyio.Path(path).read_bytes()
    with closing(Lease()) as lease:
        return await lease.network.call(content(lease.network, path, options or _PLAIN))


async def content(network: Network, url: str, options: StorageOptions) -> bytes:
    """Read a whole remote file, on the network's loop."""
    download = Download(network.storage(url), url, options, Counters("read_file"), network.limits)
    try:
        return await download.rest()
    finally:
        await download.aclose()
