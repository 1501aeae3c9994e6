"""What `load` does."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.errors import DataError
from aiodata.formats.element_layouts import spec_json
from aiodata.sources._files import path_of
from aiodata.sources._saved import read_saved
from aiodata.spec import generalized, spec_text
from aiodata.storage.masking import masked
from aiodata.storage.saved.dataset import MANIFEST, inside, parsed_manifest, read_manifest
from aiodata.storage.schemes import is_remote
from aiodata.transforms._saving import check_compression
from aiodata.whole_file import read_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.options import StorageOptions
    from aiodata.sources._saved import ReaderFunc
    from aiodata.storage.saved.dataset import SavedDataset

__all__ = ["loaded"]

POLL_SECONDS = 0.5


def loaded(
    cls: type[Dataset[Any]],
    path: str | bytes | os.PathLike[str],
    element_spec: Any,
    compression: str | None,
    reader_func: ReaderFunc | None,
    wait: bool,
    storage: StorageOptions | None,
) -> Dataset[Any]:
    """Do as `load`."""
    folder = path_of(path)
    if not is_remote(folder):
        folder = os.path.abspath(folder)
    name = masked(folder)
    spec_json(element_spec)  # so that its named tuples are the ones that elements of such a class come back as
    while True:
        try:
            saved = _manifest(folder, storage)
            break
        except FileNotFoundError:
            if not wait:
                raise
            time.sleep(POLL_SECONDS)
    if compression is not None and check_compression(compression, "load") != saved.compression:
        raise ValueError(
            f"load: compression is {compression!r}, but what is saved in {name!r} has {saved.compression!r}"
        )
    if element_spec is not None and not _fits(saved.spec, element_spec):
        raise ValueError(
            f"load: element_spec is {spec_text(element_spec)}, but that of what is saved in {name!r} is "
            f"{spec_text(saved.spec)}"
        )
    spec = saved.spec if element_spec is None else element_spec
    check = partial(_check, first=saved)
    several = len(saved.shards) > 1
    plan = read_saved(cls, folder, check, reader_func, "load", several, spec)
    return cls.of(plan).then(
        "load", _load, detail=repr(name), count=lambda _: saved.count, spec=lambda _: spec, resumes_by_cursor=True
    )


def _manifest(folder: str, storage: StorageOptions | None) -> SavedDataset:
    if is_remote(folder):
        return parsed_manifest(read_file(inside(folder, MANIFEST), storage), folder)
    return read_manifest(folder)


def _fits(saved: Any, given: Any) -> bool:
    """Tell whether elements of a spec have another one too; what has no spec may have any."""
    try:
        return saved is None or generalized(saved, given) == given
    except TypeError:
        return False


def _check(saved: SavedDataset, first: SavedDataset) -> None:
    """Refuse what does not keep what was said when it was loaded."""
    if (saved.count, saved.spec) != (first.count, first.spec):
        raise DataError(
            f"{masked(saved.path)}: the saved dataset was replaced since it was loaded: it has {saved.count} elements "
            f"{spec_text(saved.spec)}, and had {first.count} {spec_text(first.spec)}; load it again"
        )


def _load(run: Run, source: Source, *, start: Cursor | None) -> AsyncIterator[Block[Any]]:
    return source.open(start)
