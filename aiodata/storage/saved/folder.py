"""Where a save puts its files, locally: a folder of its own, locked while it is written."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING, BinaryIO

from aiodata.errors import CorruptRecordError
from aiodata.storage.atomic import AtomicFile, sync_folder
from aiodata.storage.saved.dataset import MANIFEST, TOKEN, locked, read_manifest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["SaveFolder"]


class SaveFolder:
    """The local folder of one save.

    Args:
        path: The folder of the saved dataset; it is made if it is not there.
    """

    def __init__(self, path: str) -> None:
        self._lock: AbstractContextManager[bool] | None = None
        self.token = f"elements-{secrets.token_hex(8)}"
        self._made: list[str] = []
        self._path = path
        self._folder = os.path.join(path, self.token)

    def begin(self) -> None:
        """Make it.

        Raises:
            FileExistsError: The folder is not empty, and is none of a saved dataset; or there is a file of that name.
            OSError: It cannot be written to.
        """
        self._made = _make_folders(self._path)
        with locked(self._path, wait=True) as alone:
            _check_folder(self._path)
            if alone:
                _remove_abandoned(self._path)
            os.mkdir(self._folder)
            self._lock = locked(self._folder, wait=True)
            self._lock.__enter__()

    def new_file(self, name: str) -> _File:
        """Begin a shard file."""
        return _File(os.path.join(self._folder, name))

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
        sync_folder(self._folder)
        with locked(self._path, wait=True) as alone:
            if not replace and os.path.exists(os.path.join(self._path, MANIFEST)):
                return False
            before = _token_of(self._path)
            file = AtomicFile(os.path.join(self._path, MANIFEST))
            try:
                file.file.write(manifest)
                self._unlock()  # before it is seen, for readers lock it too; nobody takes it for abandoned meanwhile
                file.commit()
            except BaseException:
                file.discard()
                raise
            if before is not None and before != self.token:
                _remove(os.path.join(self._path, before), always=not alone)
        return True

    def abort(self) -> None:
        """Do nothing: nothing here takes long."""

    def discard(self) -> None:
        """Remove all files, which are committed or discarded, and the folders that were made."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unlock()
        with contextlib.suppress(OSError):  # it is not empty: others use it by now
            for folder in self._made:
                os.rmdir(folder)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.__exit__(None, None, None)
        self._lock = None


class _File:
    """A file that is being written, in a folder that nobody looks into before it is complete."""

    def __init__(self, path: str) -> None:
        self.file: BinaryIO = open(path, "xb")  # noqa: SIM115 - closed by `commit` and `discard`

    def commit(self) -> None:
        """Have it safely on the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def discard(self) -> None:
        """Write nothing more."""
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
