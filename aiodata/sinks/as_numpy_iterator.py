"""`as_numpy_iterator`: elements as numpy values, with tf.data's save and restore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.structure import map_structure

if TYPE_CHECKING:
    from aiodata.dataset import Dataset
    from aiodata.iterator import DatasetIterator

__all__ = ["NumpyIterator", "as_numpy_iterator"]


class NumpyIterator:
    """An iterator over elements as numpy values, for `for` and `async for`.

    Numbers come as numpy scalars, text as bytes, arrays are read-only.
    """

    def __init__(self, iterator: DatasetIterator[Any]) -> None:
        self._iterator = iterator

    def __iter__(self) -> NumpyIterator:
        """Give the iterator itself."""
        return self

    def __next__(self) -> Any:
        """Give the next element."""
        return map_structure(_as_numpy, next(self._iterator))

    def next(self) -> Any:
        """Give the next element, as `next(iterator)` does."""
        return next(self)

    def __aiter__(self) -> NumpyIterator:
        """Give the iterator itself."""
        return self

    async def __anext__(self) -> Any:
        """Give the next element."""
        return map_structure(_as_numpy, await anext(self._iterator))

    def save(self) -> dict[str, Any]:
        """Give the place where the iterator stands; `DatasetIterator.state_dict`."""
        return self._iterator.state_dict()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a place that `save` gave; `DatasetIterator.load_state_dict`."""
        self._iterator.load_state_dict(state)

    def close(self) -> None:
        """End the iteration."""
        self._iterator.close()

    async def aclose(self) -> None:
        """End the iteration and wait until nothing of it is alive."""
        await self._iterator.aclose()


def as_numpy_iterator(self: Dataset[Any]) -> NumpyIterator:
    """Give an iterator over the elements as numpy values, with tf.data's `save` and `restore`.

    Raises:
        TypeError: While iterating: an element holds a dataset.

    >>> import aiodata
    >>> list(aiodata.Dataset.from_tensors((1, "text")).as_numpy_iterator())
    [(np.int64(1), b'text')]

    Source: `tf.data.Dataset.as_numpy_iterator`.
    """
    return NumpyIterator(self.iterate())


def _as_numpy(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        view = leaf.view()
        view.flags.writeable = False
        return view
    if isinstance(leaf, str):
        return leaf.encode()
    if isinstance(leaf, (bool, int, float, complex)):
        return np.asarray(leaf)[()]
    if hasattr(leaf, "plan"):
        raise TypeError("as_numpy_iterator: an element holds a dataset; flat_map it first")
    return leaf
