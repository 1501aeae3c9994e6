"""`asave`: write all elements to files, awaited."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.dataset import Dataset

__all__ = ["asave"]


async def asave(
    self: Dataset[Any],
    path: str | bytes | os.PathLike[str],
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> None:
    """Write all elements to a folder of files, on the running loop; `save` is the same without one, and says more.

    Cancelling it removes what was written; what was saved there before stays.

    Args:
        path: As for `save`.
        compression: As for `save`.
        shard_func: As for `save`.

    Raises:
        Exception: As for `save`.

    >>> import aiodata, asyncio, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(aiodata.Dataset.range(3).asave(folder))
    ...     print([int(x) for x in aiodata.Dataset.load(folder)])
    [0, 1, 2]
    """
    from aiodata.sinks._saving import saving  # here, for it imports what few programs need

    async with saving(self, path, compression, shard_func, "asave").iterate() as iterator:
        async for _ in iterator:
            pass
