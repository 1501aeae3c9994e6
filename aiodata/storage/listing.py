"""Files that match patterns, in remote storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiodata.storage.transfer.asking import ask, turn

if TYPE_CHECKING:
    from aiodata.engine.statistics import Counters
    from aiodata.options import StorageOptions
    from aiodata.storage.transfer.network import Network

__all__ = ["listed"]


async def listed(network: Network, pattern: str, options: StorageOptions, counters: Counters) -> list[str]:
    """List the URLs that match a pattern, sorted, on the network's loop.

    Args:
        network: The network.
        pattern: The pattern, a URL with wildcards.
        options: The limits.
        counters: Where requests are counted.

    Raises:
        OSError, ValueError: They cannot be listed.
    """
    storage = network.storage(pattern)

    async def once() -> list[str]:
        async with turn(network.limits, storage, pattern, options, counters):
            return await storage.list(pattern)

    return await ask(storage, pattern, once, options, counters)
