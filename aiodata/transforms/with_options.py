"""`with_options`: options for the whole pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.options import AutotuneOptions, Options, StorageOptions
from aiodata.spec import same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["with_options"]

T = TypeVar("T")


def with_options(self: Dataset[T], options: Options, name: str | None = None) -> Dataset[T]:
    """Set options, which hold for the whole pipeline; later ones win, field by field, in groups too.

    The options are copied: changing the object afterwards does not change the dataset.

    Args:
        options: The options; fields that are None leave what was set before.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: It is not an `Options`.

    >>> import aiodata
    >>> options = aiodata.Options()
    >>> options.autotune.cpu_budget = 1
    >>> ds = aiodata.Dataset.range(3).with_options(options)
    >>> [int(x) for x in ds]
    [0, 1, 2]

    Source: `tf.data.Dataset.with_options`.
    """
    if not isinstance(options, Options):
        raise TypeError(f"with_options: options must be an Options, not {type(options).__name__}")
    own = Options().merge(options)
    # Another limit or patience of reading is no other pipeline, nor are other budgets: a state may go on with them.
    told = replace(own, storage=StorageOptions(), autotune=AutotuneOptions())
    return self.then(
        "with_options",
        _with_options,
        detail=repr(told).removeprefix("Options(").removesuffix(")"),
        count=lambda count: count,
        spec=same,
        resumes_by_cursor=True,
        options=own,
        title=name,
    )


def _with_options(run: Run, source: Source, *, start: Cursor | None) -> AsyncIterator[Block[Any]]:
    return source.open(start)
