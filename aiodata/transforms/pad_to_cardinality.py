"""`pad_to_cardinality`: a mask, and empty elements at the end up to a given number."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.columns import components, freeze, iterate
from aiodata.engine.block import Block, resumable
from aiodata.engine.concurrent import Feed
from aiodata.engine.position import Origin, cursor, locate
from aiodata.errors import StateError, StructureError
from aiodata.spec import NoneTensorSpec, TensorSpec, spec_text
from aiodata.structure import map_structure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["pad_to_cardinality"]


def pad_to_cardinality(
    self: Dataset[dict[str, Any]], cardinality: int, mask_key: str = "valid", name: str | None = None
) -> Dataset[dict[str, Any]]:
    """Add elements of zeros at the end until there are `cardinality`, and a mask that tells which are real.

    With it `batch(size, drop_remainder=True)` drops no data, if `size` divides `cardinality`. The padding is like the
    first element: of its shapes and dtypes, with zeros, False, and empty text. If there is no element, it is like
    `element_spec`. Elements that fail count, as in `cardinality()`.

    Args:
        cardinality: How many elements there are to be.
        mask_key: Key of the mask, an `np.bool_`: True in real elements. A component of that name is replaced.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of dicts with one more component.

    Raises:
        TypeError: `cardinality` is not an integer, or `mask_key` not text.
        ValueError: This dataset's cardinality is unknown, infinite or above `cardinality`, or its elements are known
            not to be dicts.
        StructureError: While iterating: an element is not a dict; or, instead of the padding, a component cannot be
            padded, for it is neither a number nor text, nor an array of them, or nothing tells what it is.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_tensor_slices({"x": [5]}).pad_to_cardinality(2))
    [{'x': np.int64(5), 'valid': np.True_}, {'x': np.int64(0), 'valid': np.False_}]

    Source: `tf.data.experimental.pad_to_cardinality`.
    """
    goal = check_integer(cardinality, "pad_to_cardinality", "cardinality", 0)
    if not isinstance(mask_key, str):
        raise TypeError(f"pad_to_cardinality: mask_key must be a str, not {type(mask_key).__name__}")
    own, spec = self.plan.cardinality(), self.plan.element_spec()
    if own < 0:
        raise ValueError(f"pad_to_cardinality: the dataset's cardinality is {'infinite' if own == -1 else 'unknown'}")
    if own > goal:
        raise ValueError(f"pad_to_cardinality: the dataset has {own} elements, more than cardinality={goal}")
    if spec is not None and not isinstance(spec, dict):
        raise ValueError(f"pad_to_cardinality: the elements must be dicts, not {spec_text(spec)}")
    return self.then(
        "pad_to_cardinality",
        partial(_pad, goal=goal, key=mask_key, spec=spec),
        detail=f"{goal}" + ("" if mask_key == "valid" else f", mask_key={mask_key!r}"),
        count=lambda _: goal,
        spec=lambda known: {**known, mask_key: TensorSpec((), np.bool_)} if isinstance(known, dict) else None,
        title=name,
    )


def _pad(run: Run, source: Source, *, start: Any, goal: int, key: str, spec: Any) -> AsyncIterator[Block[Any]]:
    seen, at, first = start or (0, None, None)
    return _Padding(run, source, goal, key, spec, seen, first).blocks(source.open(at), at)


class _Padding:
    """How many elements there have been, and the first of them."""

    def __init__(
        self, run: Run, source: Source, goal: int, key: str, spec: Any, seen: int, first: Cursor | None
    ) -> None:
        self.run, self.source = run, source
        self.goal, self.key, self.spec = goal, key, spec
        self.seen = seen
        self.pulls = 0
        """Elements of the block in hand."""
        self.first: Callable[[], Cursor] | None = None if first is None else partial(list, first)
        """Gives the cursor of the first element that did not fail."""
        self.like: dict[str, Any] | None = None
        """That element, where it has been read here."""

    async def blocks(self, blocks: AsyncIterator[Block[Any]], start: Cursor | None) -> AsyncIterator[Block[Any]]:
        origin = Origin(partial(_position, 0, None if start is None else partial(list, start), None))
        async for block in blocks:
            position = partial(_position, self.seen, block.here(), self.first)
            origin = block.origin.within(position, block.offset)
            self.pulls = 0
            if isinstance(block.columns, dict) and block.length:
                if self.first is None:
                    self._begin(block, 0, next(iterate(block.sliced(0, 1).columns)))
                self.pulls = block.length
                columns = {**block.columns, self.key: np.ones(block.length, np.bool_)}
                yield Block(origin, columns=columns, length=block.length)
            else:
                yield Block(origin, rows=self._marked(block), length=block.length)
            self.seen += self.pulls
        if self.seen < self.goal:
            # In the places behind the last block's elements, so that a state there reads the input's end again.
            try:
                filler = {**_filler(await self._model()), self.key: np.False_}
            except StructureError as error:
                yield Block.failed(error, origin, self.pulls)
            else:
                rows = (map_structure(lambda leaf: leaf, filler) for _ in range(self.goal - self.seen))
                yield Block(origin, self.pulls, rows=rows, length=self.goal - self.seen)

    def _begin(self, block: Block[Any], number: int, element: dict[str, Any]) -> None:
        self.first, self.like = partial(cursor, block.origin, block.offset + number), element

    def _marked(self, block: Block[Any]) -> Iterator[Any]:
        rows, true = block.rows(), np.True_

        def marking() -> Iterator[Any]:
            number = self.pulls
            try:
                for element in rows:
                    if not isinstance(element, dict):
                        error = StructureError(f"the element must be a dict, not {type(element).__name__}")
                        locate(
                            error,
                            f"pad_to_cardinality({self.goal})",
                            self.seen + number,
                            block.origin,
                            block.offset + number,
                        )
                        try:
                            raise error
                        finally:
                            del error  # else it and this frame, which its traceback holds, would be a cycle
                    if self.first is None:
                        self._begin(block, number, element)
                    number += 1
                    yield {**element, self.key: true}
            except Exception:
                number += 1
                raise
            finally:
                self.pulls = number

        return resumable(marking)

    async def _model(self) -> Any:
        """Give the first element, or the spec where there is none."""
        if self.first is None or self.like is not None:
            return self.spec if self.like is None else self.like
        with self.source.reading_again() as again:
            blocks = again.open(self.first())
            chunk = await Feed(blocks).chunk(1)
            await self.run.release(blocks)
        if chunk is None:
            raise StateError("pad_to_cardinality: the first element of the saved state is not there any more")
        return next(chunk.rows())


def _filler(model: Any) -> Any:
    """Make an element of zeros like an element or a spec."""
    if model is None:
        raise StructureError("there is no element, and no element_spec, to tell what the padding is to be like")
    made = iter([_zeros(name, leaf) for name, leaf in components(model)])
    return freeze(map_structure(lambda leaf: None if leaf is None else next(made), model))


def _zeros(name: str, leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, NoneTensorSpec):
        return None
    if type(leaf) in (bool, int, float, complex, str, bytes, np.str_, np.bytes_):
        return type(leaf)()
    shape: Any = getattr(leaf, "shape", None)
    if isinstance(leaf, (TensorSpec, np.ndarray, np.generic)) and shape is not None and None not in shape:
        dtype: Any = leaf.dtype
        if not dtype.hasobject:
            return np.zeros(shape, dtype)[()]
        text = type(leaf.flat[0]) if isinstance(leaf, np.ndarray) and leaf.size else bytes
        if issubclass(text, (str, bytes)):
            return np.full(shape, text(), dtype)[()]
    what = spec_text(leaf) if isinstance(leaf, TensorSpec) else type(leaf).__name__
    raise StructureError(f"{name} cannot be padded: it is {what}")


def _position(seen: int, start: Callable[[], Any] | None, first: Callable[[], Cursor] | None) -> Any:
    return [seen, start and start(), first and first()]
