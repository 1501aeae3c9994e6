"""`load`: the elements that `save` has written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiodata.dataset import Dataset
    from aiodata.options import StorageOptions
    from aiodata.sources._saved import ReaderFunc

__all__ = ["load"]


def load(
    cls: type[Dataset[Any]],
    path: str | bytes | os.PathLike[str],
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: ReaderFunc | None = None,
    wait: bool = False,
    *,
    storage: StorageOptions | None = None,
) -> Dataset[Any]:
    """Give the elements that `save` has written to a folder, exactly as they were.

    The manifest is read at the call, so the number of elements is known, and their spec where they have one in common.
    Each iteration gives what is saved there then, whole: a save that replaces it does not disturb one that has begun.
    If what is there by then has another number of elements or another spec, it is refused.

    A URL is read in the same way, ahead and in ranges. Remote storage has no locks: a save that replaces the dataset
    removes the files under those who read them, for whom the rest of each shard is an error then; old and new elements
    are never mixed.

    The elements of one shard come in order. Of several, up to 8 are read at once and give an element each in turn, in
    the order of the shards' numbers. Damaged data is never given: a damaged chunk of elements is one error in their
    place, and the elements behind it follow.

    Args:
        path: The folder, or its URL.
        element_spec: The spec that the elements must have; None takes that which was saved.
        compression: What `save` was given; None takes what the files say.
        reader_func: A plain function that makes the dataset of the elements from a dataset of shards, which are
            datasets themselves; such as `lambda shards: shards.shuffle(8).flat_map(lambda shard: shard)`. It is called
            at once.
        wait: Wait, blocking, until there is a saved dataset, instead of refusing a folder that has none.
        storage: How remote files are looked at before there is a pipeline: how the manifest is read, at the
            call. `with_options` says how the pipeline reads.

    Raises:
        FileNotFoundError: There is no saved dataset.
        OSError: It cannot be read. While iterating: a shard cannot be; the next one follows.
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
    from aiodata.sources._loading import loaded  # here, for it imports what few programs need

    return loaded(cls, path, element_spec, compression, reader_func, wait, storage)
