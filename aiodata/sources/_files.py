"""What the readers of files share: the names and URLs that they take, and how files are read one by one or at once."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from aiodata.checks import check_integer, check_parallelism
from aiodata.engine.plan import plan_of
from aiodata.storage.schemes import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Plan

    Path: TypeAlias = str | bytes | os.PathLike[str]
    Filenames: TypeAlias = Path | Sequence[Path] | Dataset[Any]

__all__ = ["check_buffer_size", "path_of", "read_files"]


def path_of(filename: Any) -> str:
    """Give the path, or the URL, that a name of a file stands for."""
    return local_path(os.fsdecode(filename))


def read_files(
    datasets: type[Dataset[Any]],
    filenames: Filenames,
    read: Callable[[Any], Dataset[Any]],
    num_parallel_reads: int | None,
    method: str,
    spec: Callable[..., Any],
    name: str | None = None,
) -> Plan:
    """Give the plan that reads files in order, or several at once.

    Args:
        datasets: The class of datasets.
        filenames: A path, a list of paths, or a dataset of them.
        read: Gives the dataset of one file's records from its path.
        num_parallel_reads: Files to read at once, their records taken in turn; None reads one after the other.
        method: The reader's name, for refusing arguments.
        spec: Gives the spec of the records.
        name: The user's own name for the stage.

    Raises:
        TypeError: `filenames` is none of these.
        ValueError: `num_parallel_reads` is out of its range.
    """
    reads = check_parallelism(num_parallel_reads, method, "num_parallel_reads")
    if isinstance(filenames, (str, bytes, os.PathLike)):
        records = read(filenames)
    else:
        names: Any = (
            filenames if plan_of(filenames) is not None else datasets.from_tensor_slices(_paths(filenames, method))
        )
        records = (
            names.flat_map(read)
            if reads is None
            else names.interleave(read, cycle_length=reads, num_parallel_calls=reads)
        )
    plan = records.plan
    if plan.inputs:  # what each file is read as, without its name, tells readers with other arguments apart
        plan = replace(plan, contents=read("").plan.mark)
    return replace(plan, spec=spec, title=name)


def _paths(filenames: Any, method: str) -> list[str]:
    if isinstance(filenames, (dict, set)):
        raise TypeError(f"{method}: filenames must be a path, a list or a dataset of paths, not {filenames!r:.80}")
    try:
        return [os.fsdecode(name) for name in filenames]
    except TypeError as error:
        raise TypeError(f"{method}: filenames must be paths or a dataset of paths: {error}") from error


def check_buffer_size(buffer_size: int | None, method: str) -> int | None:
    """Give the number of bytes to read at a time; None for the default, which 0 stands for too.

    Raises:
        TypeError, ValueError: It is not an integer, or negative.
    """
    return None if buffer_size is None else check_integer(buffer_size, method, "buffer_size", 0) or None
