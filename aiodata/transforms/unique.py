"""`unique`: every element once."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.columns import take_columns
from aiodata.engine.block import Block, Tally, pull
from aiodata.engine.skipped import Skipped
from aiodata.spec import TensorSpec, same, spec_text
from aiodata.structure import flatten
from aiodata.transforms._predicate import accepted, kept_origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["unique"]

T = TypeVar("T")
_WHAT = "integers, bools, bytes, str, and arrays of them"


def unique(self: Dataset[T], name: str | None = None) -> Dataset[T]:
    """Give every element where it comes first, and leave out those that are equal to an earlier one.

    One key is held for each distinct element: a number, a text, or the bytes of an array. A saved state does not hold
    them. Restoring one reads the input again from its start, to see once more what has been seen.

    Elements have one component: an integer of any width, a bool, `bytes`, `str`, or an array of these. Numbers are
    equal by value, arrays where also shape and dtype are.

    Args:
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of the distinct elements, in order; its cardinality is unknown.

    Raises:
        TypeError: Elements have several components, or are something else such as floats: at the call where the
            dataset's `element_spec` tells so, else while iterating, in place of the element.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
    [3, 1, 2]

    Source: `tf.data.Dataset.unique`, which takes int32, int64 and strings only.
    """
    spec = self.plan.element_spec()
    if spec is not None:
        leaves = flatten(spec)
        if len(leaves) != 1:
            raise TypeError(f"unique: elements must have one component, not {spec_text(spec)}")
        if not isinstance(leaves[0], TensorSpec) or leaves[0].dtype.kind not in "biuO":
            raise TypeError(f"unique: takes {_WHAT}, not {spec_text(spec)}")
    return self.then("unique", _unique, spec=same, title=name)


def _unique(run: Run, source: Source, *, start: Any) -> AsyncIterator[Block[Any]]:
    begun, behind, at = start or (None, 0, None)
    return _distinct(run, source, source.open(at), begun, behind)


async def _distinct(
    run: Run, source: Source, blocks: AsyncIterator[Block[Any]], first: Any, behind: int
) -> AsyncIterator[Block[Any]]:
    """Give the blocks of distinct elements.

    Args:
        run: The run.
        source: The input.
        blocks: Its blocks from where it is to go on.
        first: Cursor of its first element, if a state has it.
        behind: How many elements a state has behind it.
    """
    seen, index = _Seen(), Tally(behind)
    begun: Callable[[], Any] | None = None if first is None else partial(list, first)
    if behind:
        await _look_again(run, source, first, behind, seen)
    async for block in blocks:
        begun = begun or block.here()
        kept = array("L")
        origin = kept_origin(block, kept, partial(_position, begun, index.count, block.here()))
        if block.columns is None or (keys := _column_keys(block.columns)) is None:
            yield Block(origin, rows=accepted(block, seen, "unique()", index, kept))
            continue
        index.count += len(keys)
        kept.extend(number for number, key in enumerate(keys) if seen.add(key))
        if kept:
            yield Block(origin, columns=take_columns(block.columns, np.array(kept, np.intp)), length=len(kept))
        await run.breathe()


async def _look_again(run: Run, source: Source, first: Any, behind: int, seen: _Seen) -> None:
    """Read the elements once more that a state has behind it.

    Apart from the input that goes on: what that has drawn of a shuffle's orders since is not to be drawn again.
    """
    skipped = Skipped(behind)
    with source.reading_again() as again:
        blocks = again.open(first)
        async for block in blocks:
            while skipped.missing and (chunk := block.chunk(min(skipped.missing, 256))) is not None:
                seen.look_at(chunk)
                skipped.note(chunk.length or 0, chunk.computed or ())
                await run.breathe()
            if not skipped.missing:
                break
        await run.release(blocks)
    skipped.check()


class _Seen:
    """The keys of the elements so far; called on an element, tells whether it is the first of its kind."""

    def __init__(self) -> None:
        self.keys: set[Any] = set()

    def __call__(self, *parts: Any) -> bool:
        leaves = parts if len(parts) == 1 and not isinstance(parts[0], (tuple, dict)) else flatten(parts)
        if len(leaves) != 1:
            raise TypeError(f"elements must have one component, not {len(leaves)}")
        return self.add(_key(leaves[0]))

    def add(self, key: Any) -> bool:
        """Add a key; tell whether it is new."""
        before = len(self.keys)
        self.keys.add(key)
        return len(self.keys) > before

    def look_at(self, chunk: Block[Any]) -> None:
        """Add the keys of computed elements, of which those that fail have none."""
        pull(accepted(chunk, self, "unique()", Tally(), array("L")), chunk.length or 0)


def _column_keys(columns: Any) -> list[Any] | None:
    """List the keys of rows at once; None where it takes a look at each element."""
    leaves = flatten(columns)
    if len(leaves) != 1 or leaves[0] is None:
        return None
    (column,) = leaves
    if column.dtype.kind in "biu":
        return column.tolist() if column.ndim == 1 else [_key(row) for row in column]
    texts = column.tolist() if column.dtype == object and column.ndim == 1 else [None]
    return texts if {bytes, str}.issuperset(map(type, texts)) else None


def _key(leaf: Any) -> Any:
    """Make what is equal for equal elements, and takes little room."""
    if isinstance(leaf, (int, bytes, str)):
        return leaf
    if isinstance(leaf, (np.integer, np.bool_)):
        return leaf.item()
    if isinstance(leaf, np.ndarray):
        if not leaf.ndim:
            return _key(leaf[()])
        if leaf.dtype.kind in "biu":
            return leaf.shape, leaf.dtype.str, leaf.tobytes()
        if leaf.dtype.kind in "OSU":
            return leaf.shape, "O", tuple(map(_key, leaf.ravel().tolist()))
    dtype = f" of dtype {leaf.dtype}" if isinstance(leaf, np.ndarray) else ""
    raise TypeError(f"unique takes {_WHAT}, not {type(leaf).__name__}{dtype}: {leaf!r:.80}")


def _position(begun: Callable[[], Any], behind: int, here: Callable[[], Any]) -> Any:
    return [begun(), behind, here()]
