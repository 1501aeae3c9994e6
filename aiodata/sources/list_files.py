"""`Dataset.list_files`: the files that match patterns."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from aiodata.engine.block import Block
from aiodata.engine.plan import UNKNOWN, Plan
from aiodata.engine.position import Origin
from aiodata.errors import StateError
from aiodata.spec import TensorSpec
from aiodata.storage.masking import masked
from aiodata.storage.schemes import is_remote, local_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run

__all__ = ["list_files"]


def list_files(
    cls: type[Dataset[Any]],
    file_pattern: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    shuffle: bool | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Dataset[bytes]:
    """Give the paths that match a pattern, or several, as bytes.

    The files are listed when the iteration begins, so their number is not known before. A state that was saved with
    other files is refused. `*` and `?` do not cross folders, `*` matches folders and dot files too; a path that two
    patterns match comes twice. In object stores (`"s3://bucket/train-*.tfrecord"`) there are files only, and no
    folders. Web servers have no listings, so an `https://` URL can have no wildcards: it is one file, if it is there.

    Args:
        file_pattern: A glob pattern or a list of them; a path, or a URL.
        shuffle: None or True: another random order in each iteration; False: sorted by bytes.
        seed: Makes the random order the same in every process: that of `shuffle(number of files, seed)`.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: A pattern is not a path.
        ValueError: There is no pattern.
        FileNotFoundError: While iterating: nothing matches; it names the patterns. tf.data finds out when the
            dataset is made, which here does no I/O.

    >>> import aiodata, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "b.txt", "a.txt":
    ...         open(os.path.join(folder, name), "w").close()
    ...     [os.path.basename(path) for path in aiodata.Dataset.list_files(folder + "/*.txt", shuffle=False)]
    [b'a.txt', b'b.txt']

    Source: `tf.data.Dataset.list_files`.
    """
    given = [file_pattern] if isinstance(file_pattern, (str, bytes, os.PathLike)) else list(file_pattern)
    if isinstance(file_pattern, (dict, set)):
        raise TypeError(f"list_files: file_pattern must be a pattern or a list of them, not {file_pattern!r:.80}")
    patterns = [os.fsencode(pattern) for pattern in given]
    if not patterns:
        raise ValueError("list_files: file_pattern is empty")
    detail = _in_words(patterns)
    stage = partial(_paths, patterns=patterns)
    spec = TensorSpec((), object)
    files = cls.of(Plan("list_files", stage, detail=detail, spec=lambda: spec, title=name, contents=patterns))
    return files if shuffle is False else files.shuffle(UNKNOWN, seed)


def _as_glob(pattern: bytes) -> str:
    """Write a pattern of tf.data's, which are those of the C library's fnmatch, as Python's glob wants it."""
    text = os.fsdecode(pattern)  # as text, for `?` is one character
    text = re.sub(r"\\([*?[])", r"[\1]", text)
    return text.replace("[^", "[!")


def _in_words(patterns: list[bytes]) -> str:
    return ", ".join(masked(os.fsdecode(pattern)) for pattern in patterns)


def _local_files(patterns: list[bytes]) -> list[bytes]:
    found: list[bytes] = []
    for pattern in patterns:
        found += [os.fsencode(path) for path in glob.glob(_as_glob(pattern), include_hidden=True)]
    return found


async def _matches(run: Run, patterns: list[bytes]) -> list[bytes]:
    """List what matches, sorted.

    Raises:
        FileNotFoundError: Nothing does.
    """
    there = [os.fsencode(local_path(os.fsdecode(pattern))) for pattern in patterns]
    found: list[bytes] = await run.in_thread(_local_files, [each for each in there if not is_remote(os.fsdecode(each))])
    for url in map(os.fsdecode, there):
        if is_remote(url):
            from aiodata.storage.remote import list_remote

            found += [os.fsencode(path) for path in await list_remote(run, url, run.statistics.counters("list_files"))]
    if not found:
        raise FileNotFoundError(f"list_files: no file matches {', '.join(map(repr, _in_words(patterns).split(', ')))}")
    return sorted(found)


async def _paths(run: Run, *, start: list[int] | None, patterns: list[bytes]) -> AsyncIterator[Block[bytes]]:
    paths = await _matches(run, patterns)
    facts = [len(paths), crc32(b"\0".join(paths))]
    if start is not None and start != facts:
        now = "others" if start[0] == facts[0] else str(facts[0])
        raise StateError(
            f"list_files: {start[0]} files matched {_in_words(patterns)} when the state was saved, now {now} do"
        )
    yield Block(Origin(lambda: facts), computed=paths, clean=True)
