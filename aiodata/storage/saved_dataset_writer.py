"""Writing saved datasets: shard files first, the manifest last."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING, Any, BinaryIO

from aiodata.errors import CorruptRecordError
from aiodata.formats.element_archive_writer import ElementArchiveWriter
from aiodata.spec import generalized
from aiodata.storage.atomic import AtomicFile, sync_folder
from aiodata.storage.saved_dataset import MANIFEST, TOKEN, SavedDataset, locked, manifest_of, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["SavedDatasetWriter"]


class SavedDatasetWriter:
    """One save: writes shard files, and puts the manifest in its place when they are complete.

    It is synchronous. Different shards may be written by several threads at once, each by one.

    Args:
        path: The folder of the saved dataset; it is made if it is not there.
        compression: "" or "GZIP".
        owner: What is written, for errors.

    Raises:
        FileExistsError: The folder is not empty, and is none of a saved dataset; or there is a file of that name.
        OSError: It cannot be written to.
    """

    def __init__(self, path: str, compression: str, owner: str) -> None:
        self._compression = compression
        self._owner = owner
        self._shards: dict[int, _Shard] = {}
        self._complete = False
        self._lock: AbstractContextManager[bool] | None = None
        self.token = f"elements-{secrets.token_hex(8)}"
        self._made = _make_folders(path)
        self._path = path
        self._folder = os.path.join(path, self.token)
        with locked(path, wait=True) as alone:
            _check_folder(path)
            if alone:
                _remove_abandoned(path)
            os.mkdir(self._folder)
            self._lock = locked(self._folder, wait=True)
            self._lock.__enter__()

    def write(self, number: int, elements: list[Any] | None, columns: Any) -> None:
        """Write elements, or the rows of columns, to the shard of a number, 0 or more."""
        if number not in self._shards:
            path = os.path.join(self._folder, f"{number:08d}.npz")
            self._shards[number] = _Shard(path, self._compression, self._owner)
        writer = self._shards[number].writer
        if elements is None:
            writer.write_columns(columns)
        else:
            writer.write(elements)

    def finish(self) -> list[Callable[[], None]]:
        """Give what completes the shards, a call for each."""
        return [shard.finish for shard in self._shards.values()]

    def commit(self, spec: Any, replace: bool) -> bool:
        """Put the manifest in its place, when all shards are finished; what it replaces is removed.

        Args:
            spec: The spec of the elements if it is known; else what those that were written have in common.
            replace: Whether to replace what is saved there; else it stays, and this is discarded.

        Returns:
            Whether this save is in its place.

        Raises:
            OSError: It cannot be put there; it is to be discarded.
        """
        shards = [shard for _, shard in sorted(self._shards.items())]
        common = _common([shard.writer.spec for shard in shards if shard.writer.count]) if spec is None else spec
        names = tuple((os.path.basename(shard.path), shard.writer.count) for shard in shards)
        saved = SavedDataset(self._path, self.token, self._compression, names, common)
        sync_folder(self._folder)
        with locked(self._path, wait=True) as alone:
            if not replace and os.path.exists(os.path.join(self._path, MANIFEST)):
                self.discard()
                return False
            before = _token_of(self._path)
            manifest = AtomicFile(os.path.join(self._path, MANIFEST))
            try:
                manifest.file.write(manifest_of(saved))
                self._unlock()  # before it is seen, for readers lock it too; nobody takes it for abandoned meanwhile
                manifest.commit()
            except BaseException:
                manifest.discard()
                raise
            self._complete = True
            if before is not None and before != self.token:
                _remove(os.path.join(self._path, before), always=not alone)
        return True

    def discard(self) -> None:
        """Remove what was written, if it has not been committed."""
        if self._complete:
            return
        self._complete = True
        for shard in self._shards.values():
            shard.discard()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unlock()
        with contextlib.suppress(OSError):  # it is not empty: others use it by now
            for folder in self._made:
                os.rmdir(folder)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.__exit__(None, None, None)
        self._lock = None


class _Shard:
    """One shard file that is being written."""

    def __init__(self, path: str, compression: str, owner: str) -> None:
        self.path = path
        self.file: BinaryIO = open(path, "xb")  # noqa: SIM115 - closed by `finish` and `discard`
        self.writer = ElementArchiveWriter(self.file, compression, owner)

    def finish(self) -> None:
        """Complete the file, and have it safely on the disk."""
        token = os.path.basename(os.path.dirname(self.path))
        self.writer.finish({"token": token, "shard": os.path.basename(self.path)})
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def discard(self) -> None:
        """Write nothing more."""
        self.writer.discard()
        with contextlib.suppress(OSError):  # of what is left to be written
            self.file.close()


def _make_folders(path: str) -> list[str]:
    """Make a folder and those above it; give those that were not there, the deepest first."""
    missing = []
    folder = os.path.abspath(path)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    os.makedirs(path, exist_ok=True)
    for folder in missing:
        sync_folder(os.path.dirname(folder))
    return missing


def _check_folder(path: str) -> None:
    """Refuse a folder that holds something else."""
    names = [name for name in os.listdir(path) if not (name.startswith(f".{MANIFEST}.") or TOKEN.fullmatch(name))]
    if MANIFEST in names:
        with contextlib.suppress(CorruptRecordError):
            read_manifest(path)
            return
    if names:
        raise FileExistsError(f"{path!r} is not empty, and no saved dataset: it has {names[0]!r}; name another folder")


def _token_of(path: str) -> str | None:
    """Give the token of what is saved in a folder; None where nothing is, or nobody can say what."""
    try:
        return read_manifest(path).token
    except (FileNotFoundError, CorruptRecordError):
        return None


def _remove_abandoned(path: str) -> None:
    """Remove what killed saves have left, and what readers held when it was replaced; called with the folder locked."""
    kept = _token_of(path)
    for name in os.listdir(path):
        if TOKEN.fullmatch(name) and name != kept:
            _remove(os.path.join(path, name))


def _remove(folder: str, always: bool = False) -> None:
    """Remove a folder of shard files unless somebody holds it."""
    with contextlib.suppress(FileNotFoundError), locked(folder, wait=False) as free:
        if free or always:
            shutil.rmtree(folder, ignore_errors=True)


def _common(specs: list[Any]) -> Any:
    try:
        found = specs[0] if specs else None
        for spec in specs[1:]:
            found = generalized(found, spec)
    except TypeError:
        return None
    return found
