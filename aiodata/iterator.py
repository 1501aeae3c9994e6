"""The iterator over a dataset: the engine's, with what tf.data calls its parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aiodata.engine.iterator import ElementIterator
from aiodata.errors import OutOfRangeError
from aiodata.optional import Optional
from aiodata.spec import spec_of

__all__ = ["DatasetIterator"]

T_co = TypeVar("T_co", covariant=True)

_END: Any = object()


class DatasetIterator(ElementIterator[T_co]):
    """One iteration over a dataset, for `async for` and for `for`.

    The first use settles the face: `async for`, `anext`, `async with`, `aget_next` and `aget_next_as_optional` run the
    pipeline on the running loop; `for`, `next`, `with`, `get_next` and `get_next_as_optional` run it on a private loop
    in a private thread, or with no loop at all if nothing needs one.

    >>> import aiodata
    >>> iterator = iter(aiodata.Dataset.range(2))
    >>> next(iterator), iterator.get_next()
    (np.int64(0), np.int64(1))
    >>> iterator.get_next_as_optional()
    Optional.empty(TensorSpec(shape=(), dtype=int64))

    Source: `tf.data.Iterator`; the asynchronous face and the state as a dictionary are additions.
    """

    @property
    def element_spec(self) -> Any:
        """The spec of the elements, as that of the dataset; None if it is not known."""
        return self._plan.element_spec(seen=True)

    def get_next(self) -> T_co:
        """Give the next element, as `next` does; `aget_next` is the same to be awaited.

        Raises:
            OutOfRangeError: There are no more.
            Exception: The element failed; the next call goes on behind it.
        """
        with _telling_the_end():
            return next(self)

    async def aget_next(self) -> T_co:
        """Give the next element, as `anext` does.

        Raises:
            OutOfRangeError: There are no more.
            Exception: The element failed; the next call goes on behind it.
        """
        with _telling_the_end():
            return await anext(self)

    def get_next_as_optional(self) -> Optional[T_co]:
        """Give the next element as an `Optional`, empty at the end; `aget_next_as_optional` is the same to be awaited.

        Raises:
            Exception: The element failed; the next call goes on behind it.
        """
        return self._as_optional(next(self, _END))

    async def aget_next_as_optional(self) -> Optional[T_co]:
        """Give the next element as an `Optional`, empty at the end.

        Raises:
            Exception: The element failed; the next call goes on behind it.
        """
        return self._as_optional(await anext(self, _END))

    def _as_optional(self, element: Any) -> Optional[T_co]:
        spec = self.element_spec
        if element is _END:
            return Optional((), spec)
        return Optional((element,), spec_of(element) if spec is None else spec)


@contextmanager
def _telling_the_end() -> Iterator[None]:
    """Raise `OutOfRangeError` at the end, and for no other reason: one that an element raised must not look like it."""
    try:
        yield
    except (StopIteration, StopAsyncIteration):
        raise OutOfRangeError("the dataset has no more elements") from None
    except OutOfRangeError as error:
        raise RuntimeError("an element raised OutOfRangeError") from error
