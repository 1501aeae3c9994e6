"""`window`: datasets of neighbouring elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer
from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.spec import DatasetSpec
from aiodata.structure import map_structure
from aiodata.transforms._windows import Windows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["window"]


def window(
    self: Dataset[Any],
    size: int,
    shift: int | None = None,
    stride: int = 1,
    drop_remainder: bool = False,
    name: str | None = None,
) -> Dataset[Any]:
    """Give windows of `size` elements, each a dataset.

    For elements that are tuples, named tuples or dicts, a window is such a structure of datasets, one for each
    component. `flat_map` with `Dataset.zip` puts them together again:
    `window(3).flat_map(lambda a, b: Dataset.zip((a.batch(3), b.batch(3))))`.

    A window holds its elements in memory, so it can be read more than once and at any time; their arrays are
    read-only, for windows share them. Up to `(size - 1) * stride + 1` elements are held for the next window.

    An element that fails takes the place of every window that has it; one that no window has is never noticed.

    Args:
        size: Elements in a window, at least 1.
        shift: How many elements further on the next window begins, at least 1; None for `size`.
        stride: Distance between the elements of a window in the input, at least 1.
        drop_remainder: Leave out the windows at the end that have fewer than `size` elements.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of datasets, or of structures of datasets, of known cardinality.

    Raises:
        TypeError: `size`, `shift` or `stride` is not an integer.
        ValueError: One of them is below 1.
        StructureError: While iterating, in place of the window: its elements differ in structure.

    >>> import aiodata
    >>> for part in aiodata.Dataset.range(5).window(3, shift=2):
    ...     print([int(x) for x in part])
    [0, 1, 2]
    [2, 3, 4]
    [4]

    Source: `tf.data.Dataset.window`.
    """
    size = check_integer(size, "window", "size", 1)
    step = size if shift is None else check_integer(shift, "window", "shift", 1)
    stride = check_integer(stride, "window", "stride", 1)
    drop = bool(drop_remainder)
    detail = f"{size}" + (f", shift={step}" if step != size else "") + (f", stride={stride}" if stride != 1 else "")
    span = (size - 1) * stride + 1
    stage = partial(_window, parent=self, span=span, shift=step, stride=stride, drop=drop, label=f"window({size})")
    return self.then(
        "window",
        stage,
        detail=detail + (", drop_remainder=True" if drop else ""),
        count=partial(_count, span=span, shift=step, drop=drop),
        spec=_spec,
        title=name,
    )


def _count(available: int, span: int, shift: int, drop: bool) -> int:
    if available in (INFINITE, UNKNOWN):
        return available
    if drop:
        return max(0, (available - span) // shift + 1)
    return -(-available // shift)


def _spec(known: Any) -> Any:
    return None if known is None else map_structure(DatasetSpec, known)


def _window(run: Run, source: Source, *, start: Cursor | None, **arguments: Any) -> AsyncIterator[Block[Any]]:
    return Windows(run, source.plan, **arguments).windows(source.open(start))
