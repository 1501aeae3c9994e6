"""Saved datasets: a folder with a manifest, and a folder of shard files that the manifest names.

The manifest is put in its place by one rename, when all files are safely on the disk: until then there is no saved
dataset, or the one that was there before. Each save writes a folder of its own, so nothing is ever mixed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from aiodata.errors import CorruptRecordError, StateError
from aiodata.formats.element_layouts import spec_json, spec_of_json
from aiodata.storage.masking import masked
from aiodata.storage.schemes import is_remote

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Held",
    "MANIFEST",
    "SavedDataset",
    "TOKEN",
    "inside",
    "locked",
    "manifest_of",
    "parsed_manifest",
    "read_manifest",
]

MANIFEST = "dataset.json"
TOKEN = re.compile("elements-[0-9a-f]{16}")
"""Names of the folders of shard files."""

_FORMAT, _VERSION = "aiodata dataset", 1
_SHARD = re.compile(r"[0-9]{8,19}\.npz")


@dataclass(frozen=True)
class SavedDataset:
    """What a manifest says.

    Args:
        path: The folder of the whole, or its URL.
        token: The name of the folder of shard files, which no other save has.
        compression: "" or "GZIP".
        shards: The name of each shard's file, and how many elements are in it.
        spec: What all elements have in common; None where that is nothing.
    """

    path: str
    token: str
    compression: str
    shards: tuple[tuple[str, int], ...]
    spec: Any

    @property
    def count(self) -> int:
        """Number of elements."""
        return sum(count for _, count in self.shards)

    @property
    def folder(self) -> str:
        """The folder of the shard files."""
        return inside(self.path, self.token)


def inside(folder: str, name: str) -> str:
    """Give the path, or the URL, of what is in a folder.

    >>> inside("https://host/data?key=1", "a.npz")
    'https://host/data/a.npz?key=1'
    """
    if not is_remote(folder):
        return os.path.join(folder, name)
    path, mark, query = folder.partition("?") if folder.startswith("http") else (folder, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{query}"


def manifest_of(saved: SavedDataset) -> bytes:
    """Write the manifest of a saved dataset."""
    facts = {
        "format": _FORMAT,
        "version": _VERSION,
        "token": saved.token,
        "compression": saved.compression,
        "count": saved.count,
        "shards": saved.shards,
        "spec": spec_json(saved.spec),
    }
    return (json.dumps(facts | {"crc32": _checksum(facts)}, indent=1) + "\n").encode()


def _checksum(facts: dict[str, Any]) -> int:
    return crc32(json.dumps(facts, sort_keys=True).encode())


def read_manifest(path: str) -> SavedDataset:
    """Read what is saved in a folder.

    Raises:
        FileNotFoundError: There is no saved dataset.
        OSError: It cannot be read.
        CorruptRecordError: The manifest is damaged, or of another version.
    """
    with open(os.path.join(path, MANIFEST), "rb") as file:
        return parsed_manifest(file.read(), path)


def parsed_manifest(content: bytes, path: str) -> SavedDataset:
    """Give what the manifest of a folder, or of the URL of one, says.

    Raises:
        CorruptRecordError: It is damaged, or of another version.
    """
    try:
        facts = json.loads(content)
        if facts["format"] != _FORMAT:
            raise ValueError("this is no manifest of a saved dataset")
        if facts["version"] != _VERSION:
            raise ValueError(f"the version {facts['version']} of saved datasets is not known; {_VERSION} is")
        if facts.pop("crc32") != _checksum(facts):
            raise ValueError("the manifest's checksum is another one")
        shards = tuple((str(shard), int(count)) for shard, count in facts["shards"])
        names = [TOKEN.fullmatch(facts["token"]), *[_SHARD.fullmatch(shard) for shard, _ in shards]]
        if None in names or any(count < 0 for _, count in shards):
            raise ValueError("what the manifest says of its files cannot be")
        return SavedDataset(path, facts["token"], facts["compression"], shards, spec_of_json(facts["spec"]))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, StateError) as error:
        name = masked(inside(path, MANIFEST))
        raise CorruptRecordError(str(error) or type(error).__name__, name) from error


class Held:
    """The shard files of a saved dataset, held for reading: a save that replaces them does not remove them.

    They are let go with this object; the next save removes them then. Where the system has no such locks, and in remote
    storage, nothing is held.

    Args:
        saved: What to hold.

    Raises:
        FileNotFoundError: It is gone: it has been replaced.
    """

    def __init__(self, saved: SavedDataset) -> None:
        self.saved = saved
        self._descriptor = -1
        if is_remote(saved.path):
            return
        if sys.platform != "win32":
            self._descriptor = os.open(saved.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FileNotFoundError(errno.ENOENT, "it is being removed", saved.folder) from None
            except OSError:
                pass  # the file system has no such locks
        os.stat(saved.folder)  # it may have gone before it was locked

    def __del__(self) -> None:
        """Let go."""
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)


@contextlib.contextmanager
def locked(folder: str, wait: bool) -> Iterator[bool]:
    """Lock a folder for oneself, and tell whether it is locked.

    Args:
        folder: An existing folder.
        wait: Wait until others let it go; else one that others hold is not locked.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    if sys.platform == "win32":
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        got = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:  # others hold it, or the file system has no such locks
            got = False
        yield got
    finally:
        os.close(descriptor)
