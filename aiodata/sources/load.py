"""`load`: the elements that `save` has written."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.errors import DataError
from aiodata.sources._saved import read_saved
from aiodata.spec import generalized, spec_text
from aiodata.storage.saved_dataset import read_manifest
from aiodata.transforms._saving import check_compression

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.sources._saved import ReaderFunc
    from aiodata.storage.saved_dataset import SavedDataset

__all__ = ["load"]

POLL_SECONDS = 0.5


def load(
    cls: type[Dataset[Any]],
    path: str | bytes | os.PathLike[str],
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: ReaderFunc | None = None,
    wait: bool = False,
) -> Dataset[Any]:
    """Give the elements that `save` has written to a folder, exactly as they were.

    The manifest is read at the call, so the number of elements is known, and their spec where they have one in common.
    Each iteration gives what is saved there then, whole: a save that replaces it does not disturb one that has begun.
    If what is there by then has another number of elements or another spec, it is refused.

    The elements of one shard come in order. Of several, up to 8 are read at once and give an element each in turn, in
    the order of the shards' numbers. Damaged data is never given: a damaged chunk of elements is one error in their
    place, and the elements behind it follow.

    Args:
        path: The folder.
        element_spec: The spec that the elements must have; None takes that which was saved.
        compression: What `save` was given; None takes what the files say.
        reader_func: A plain function that makes the dataset of the elements from a dataset of shards, which are
            datasets themselves; such as `lambda shards: shards.shuffle(8).flat_map(lambda shard: shard)`. It is called
            at once.
        wait: Wait, blocking, until there is a saved dataset, instead of refusing a folder that has none.

    Raises:
        FileNotFoundError: There is no saved dataset.
        CorruptRecordError: Its manifest is damaged. While iterating: so is a shard's file, or a part of it.
        ValueError: `compression` or `element_spec` is another than that of what was saved.
        TypeError: `reader_func` is no plain function, or does not give a dataset.
        DataError: While iterating: what is saved was replaced since by something with another number or spec.

    >>> import aiodata, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aiodata.Dataset.range(5).save(folder, shard_func=lambda x: x % 2)
    ...     ds = aiodata.Dataset.load(folder)
    ...     print(len(ds), ds.element_spec, [int(x) for x in ds])
    5 TensorSpec(shape=(), dtype=int64) [0, 1, 2, 3, 4]

    Source: `tf.data.Dataset.load`.
    """
    folder = os.fsdecode(path)
    while True:
        try:
            saved = read_manifest(folder)
            break
        except FileNotFoundError:
            if not wait:
                raise
            time.sleep(POLL_SECONDS)
    if compression is not None and check_compression(compression, "load") != saved.compression:
        raise ValueError(
            f"load: compression is {compression!r}, but what is saved in {folder!r} has {saved.compression!r}"
        )
    if element_spec is not None and not _fits(saved.spec, element_spec):
        raise ValueError(
            f"load: element_spec is {spec_text(element_spec)}, but that of what is saved in {folder!r} is "
            f"{spec_text(saved.spec)}"
        )
    spec = saved.spec if element_spec is None else element_spec
    check = partial(_check, first=saved)
    several = len(saved.shards) > 1
    plan = read_saved(cls, partial(str, folder), check, reader_func, "load", several, spec)
    return cls.of(plan).then(
        "load", _load, detail=repr(folder), count=lambda _: saved.count, spec=lambda _: spec, resumes_by_cursor=True
    )


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
            f"{saved.path}: the saved dataset was replaced since it was loaded: it has {saved.count} elements "
            f"{spec_text(saved.spec)}, and had {first.count} {spec_text(first.spec)}; load it again"
        )


def _load(run: Run, source: Source, *, start: Cursor | None) -> AsyncIterator[Block[Any]]:
    return source.open(start)
