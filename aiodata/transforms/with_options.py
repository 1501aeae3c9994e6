"""`with_options`: options for the whole pipeline."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.options import Options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["with_options"]

T = TypeVar("T")


def with_options(self: Dataset[T], options: Options) -> Dataset[T]:
    """Set options, which hold for the whole pipeline; later ones win, field by field.

    Args:
        options: The options; fields that are None leave what was set before.

    Raises:
        TypeError: It is not an `Options`.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(3).with_options(aiodata.Options(cpu_budget=1))
    >>> [int(x) for x in ds]
    [0, 1, 2]

    Source: `tf.data.Dataset.with_options`.
    """
    if not isinstance(options, Options):
        raise TypeError(f"with_options: options must be an Options, not {type(options).__name__}")
    set_fields = [(entry.name, getattr(options, entry.name)) for entry in fields(options)]
    detail = ", ".join(f"{name}={value!r}" for name, value in set_fields if value is not None)
    return self.then(
        "with_options",
        _with_options,
        detail=detail,
        count=lambda count: count,
        resumes_by_cursor=True,
        options=options,
    )


def _with_options(run: Run, source: Source, *, start: Cursor | None) -> AsyncIterator[Block[Any]]:
    return source.open(start)
