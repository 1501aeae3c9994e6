"""`aget_single_element`: the element of a dataset that has just one, awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from aiodata.sinks.get_single_element import only

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["aget_single_element"]

T = TypeVar("T")


async def aget_single_element(self: Dataset[T], name: str | None = None) -> T:
    """Give the only element, on the running loop; as `get_single_element`.

    Raises:
        ValueError: There is none, or more than one.

    >>> import aiodata, asyncio
    >>> int(asyncio.run(aiodata.Dataset.range(7, 8).aget_single_element()))
    7
    """
    found: list[T] = []
    async with self.iterate() as iterator:
        async for element in iterator:
            found.append(element)
            if len(found) == 2:
                break
    return only(found)
