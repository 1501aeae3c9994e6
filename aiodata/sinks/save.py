"""`save`: write all elements to files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["save"]


def save(
    self: Dataset[Any],
    path: str | bytes | os.PathLike[str],
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> None:
    """Write all elements to a folder of files, blocking until they are there; `Dataset.load` reads them.

    The folder has a manifest, `dataset.json`, and shard files that `numpy.load` can read: chunks of about 1 MiB, with
    an array for each component. All of it is put in place at once, when it is safely on the disk: whoever loads it
    meanwhile, and whatever happens, finds what was saved before or this, whole. An error, a cancellation or Ctrl-C
    removes what was written; what a killed process leaves is removed by the next save. Of two saves at once the last
    one to be complete stays.

    A URL is written to in the same way, the manifest last, with about 16 MiB of memory a shard. Remote storage has no
    locks: the files of a dataset that is replaced are removed at once, also under those who read them. What a killed
    process leaves is removed by a save that begins a day later, for nobody can tell it from what another process is
    still writing.

    Elements come back exactly: numbers, Python's or numpy's, text, None, arrays of any dtype, object arrays and
    `SparseTensor`s of them, and tuples, named tuples and dicts of all these. They need not agree in shape or structure.
    Nothing is pickled. Memory is taken for some MiB a shard, whatever the number of elements.

    tf.data's `checkpoint_args` are not taken: they make the saving of a dataset go on after an interruption, from
    TensorFlow's own checkpoints; here a save is whole or begins anew.

    Args:
        path: The folder, or its URL. It is made if it is not there; a saved dataset that is in it is replaced.
        compression: "GZIP" deflates the arrays; None does not.
        shard_func: Gives the number of an element's shard, 0 or more; called as `map` calls its function, where the
            pipeline runs. Shards are written at once, by a thread each, and their files are open until the end. None
            puts all elements into one.

    Raises:
        TypeError: `shard_func` is no plain function; a component is of a type that is not kept; names it.
        ValueError: `compression` is unknown; the dataset is endless; `shard_func` gives a number below 0.
        FileExistsError: The folder holds something else than a saved dataset, or is a file.
        OSError: It cannot be written to; a `RemoteError` names the URL and how often it was tried.
        Exception: An element's error, or `shard_func`'s; it ends the save.

    >>> import aiodata, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aiodata.Dataset.range(3).map(lambda x: {"x": x, "text": b"t" * x}).save(folder)
    ...     print(list(aiodata.Dataset.load(folder))[2])
    {'x': np.int64(2), 'text': b'tt'}

    Source: `tf.data.Dataset.save`.
    """
    from aiodata.sinks._saving import saving  # here, for it imports what few programs need

    with saving(self, path, compression, shard_func, "save").iterate() as iterator:
        for _ in iterator:
            pass
