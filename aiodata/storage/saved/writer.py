"""Writing saved datasets: shard files first, the manifest last."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from aiodata.formats.element_archive_writer import ElementArchiveWriter
from aiodata.spec import generalized
from aiodata.storage.saved.dataset import SavedDataset, manifest_of
from aiodata.storage.schemes import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.statistics import Counters
    from aiodata.options import StorageOptions

__all__ = ["SavedDatasetWriter"]


class _File(Protocol):
    @property
    def file(self) -> BinaryIO: ...
    def commit(self) -> None: ...
    def discard(self) -> None: ...


class _Place(Protocol):
    token: str

    def begin(self) -> None: ...
    def new_file(self, name: str) -> _File: ...
    def commit(self, manifest: bytes, replace: bool) -> bool: ...
    def abort(self) -> None: ...
    def discard(self) -> None: ...


class SavedDatasetWriter:
    """One save: writes shard files, and puts the manifest in its place when they are complete.

    It is synchronous. Different shards may be written by several threads at once, each by one.

    Args:
        path: The folder of the saved dataset, or its URL; it is made if it is not there.
        compression: "" or "GZIP".
        owner: What is written, for errors.
        options: How remote storage is used.
        counters: Where requests to it are counted.
    """

    def __init__(self, path: str, compression: str, owner: str, options: StorageOptions, counters: Counters) -> None:
        self._path = path
        self._compression = compression
        self._owner = owner
        self._shards: dict[int, _Shard] = {}
        self._complete = False
        self._place = _place(path, options, counters)
        self.token = self._place.token

    def begin(self) -> None:
        """Make sure that it may be written there, and remove what killed saves have left.

        Raises:
            FileExistsError: The folder is not empty, and is none of a saved dataset; or there is a file of that name.
            OSError: It cannot be written to.
        """
        self._place.begin()

    def write(self, number: int, elements: list[Any] | None, columns: Any) -> None:
        """Write elements, or the rows of columns, to the shard of a number, 0 or more."""
        if number not in self._shards:
            name = f"{number:08d}.npz"
            self._shards[number] = _Shard(name, self._place.new_file(name), self._compression, self._owner)
        writer = self._shards[number].writer
        if elements is None:
            writer.write_columns(columns)
        else:
            writer.write(elements)

    def finish(self) -> list[Callable[[], None]]:
        """Give what completes the shards, a call for each."""
        return [partial(shard.finish, self.token) for shard in self._shards.values()]

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
        names = tuple((shard.name, shard.writer.count) for shard in shards)
        saved = SavedDataset(self._path, self.token, self._compression, names, common)
        is_in_place = self._place.commit(manifest_of(saved), replace)
        if not is_in_place:
            self.discard()
        self._complete = True
        return is_in_place

    def abort(self) -> None:
        """End what other threads are doing, if that can take long; they fail by that, and `discard` has to follow."""
        if not self._complete:
            self._place.abort()

    def discard(self) -> None:
        """Remove what was written, if it has not been committed."""
        if self._complete:
            return
        self._complete = True
        for shard in self._shards.values():
            shard.discard()
        self._place.discard()


class _Shard:
    """One shard file that is being written."""

    def __init__(self, name: str, file: _File, compression: str, owner: str) -> None:
        self.name = name
        self._file = file
        self.writer = ElementArchiveWriter(file.file, compression, owner)

    def finish(self, token: str) -> None:
        """Complete the file, and have it safe."""
        self.writer.finish({"token": token, "shard": self.name})
        self._file.commit()

    def discard(self) -> None:
        """Write nothing more."""
        self.writer.discard()
        self._file.discard()


def _place(path: str, options: StorageOptions, counters: Counters) -> _Place:
    if is_remote(path):
        from aiodata.storage.saved.upload import SaveUpload

        return SaveUpload(path, options, counters)
    from aiodata.storage.saved.folder import SaveFolder

    return SaveFolder(path)


def _common(specs: list[Any]) -> Any:
    try:
        found = specs[0] if specs else None
        for spec in specs[1:]:
            found = generalized(found, spec)
    except TypeError:
        return None
    return found
