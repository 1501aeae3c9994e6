"""`snapshot`: keep the elements of the first complete pass in files, for other processes too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset
    from aiodata.sources._saved import ReaderFunc

__all__ = ["snapshot"]

T = TypeVar("T")


def snapshot(
    self: Dataset[T],
    path: str | bytes | os.PathLike[str],
    compression: str | None = "AUTO",
    reader_func: ReaderFunc | None = None,
    shard_func: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Dataset[T]:
    """Write the elements of the first complete pass to files, and give later passes from there, in any process.

    In the folder there is one for each pipeline, named by its `fingerprint()`: a pipeline whose functions, arguments or
    data have changed writes anew, and one that is equal reads what any process has written. It is worked out once, when
    the first iteration begins. What it cannot see, such as the content of files, is not noticed. Nothing is removed
    when a pipeline changes.

    A pass is complete when the end was reached, or as many elements as the input is known to have; it is put in place
    at once, as `save` does it, and what is kept is what `save` keeps. A partial pass leaves nothing. Several passes at
    once, of several processes too, each write files of their own; the first one that is complete stays. Errors are not
    kept, the elements around them are. Arrays are marked read-only in all passes.

    A state saved while files are read belongs to these files, and is refused without them. One saved in a pass that
    writes is restored by reading the input again from the start of that pass, and writing, unless some pass has been
    completed since. Writing reads up to 256 elements ahead, or 5 ms of work.

    Args:
        path: The folder; it is made if it is not there.
        compression: "GZIP" deflates the arrays; "AUTO" and None do not.
        reader_func: As for `load`; None gives the elements of one shard in order, and those of several in turn.
        shard_func: As for `save`; None writes one shard.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: A function is no plain function; while iterating: a component is of a type that is not kept.
        ValueError: `compression` is unknown, or `path` is a URL of remote storage; while iterating: `shard_func` gives
            a number below 0.
        OSError: While iterating: the files cannot be read or written.
        CorruptRecordError: While iterating: what was written is damaged; see `load`.

    >>> import aiodata, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ds = aiodata.Dataset.range(3).map(lambda x: x * 2).snapshot(folder)
    ...     print([int(x) for x in ds], [int(x) for x in ds])
    [0, 2, 4] [0, 2, 4]

    Source: `tf.data.Dataset.snapshot`.
    """
    from aiodata.transforms._snapshots import snapshotted  # here, for it imports what few programs need

    return snapshotted(self, path, compression, reader_func, shard_func, name)
