"""Bare clients: so many requests under way at once, the objects in order, and nothing else."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

__all__ = ["aiohttp_objects", "obstore_objects", "stream_objects"]


async def _each(read: Callable[[str], Coroutine[Any, Any, Any]], names: list[str], most: int) -> AsyncIterator[Any]:
    turns = asyncio.Semaphore(most)

    async def in_turn(name: str) -> Any:
        async with turns:
            return await read(name)

    tasks = deque(asyncio.create_task(in_turn(name)) for name in names)
    while tasks:
        yield await tasks.popleft()


async def aiohttp_objects(urls: list[str], most: int) -> AsyncIterator[bytes]:
    """Read by aiohttp."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def read(url: str) -> bytes:
            async with session.get(url) as response:
                return await response.read()

        async for content in _each(read, urls, most):
            yield content


async def stream_objects(urls: list[str], most: int) -> AsyncIterator[bytes]:
    """Read by asyncio's streams, on connections that are used again."""
    free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    host = urlsplit(urls[0])

    async def read(url: str) -> bytes:
        reader, writer = free.pop() if free else await asyncio.open_connection(host.hostname, host.port, limit=1 << 20)
        writer.write(f"GET {urlsplit(url).path} HTTP/1.1\r\nHost: {host.netloc}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        content = await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n", 1)[0]))
        free.append((reader, writer))
        return content

    async for content in _each(read, urls, most):
        yield content
    for _, writer in free:
        writer.close()


async def obstore_objects(address: str, bucket: str, names: list[str], most: int) -> AsyncIterator[Any]:
    """Read by obstore's client for S3."""
    import obstore
    from obstore.store import S3Store

    plain: dict[str, Any] = {"endpoint": address, "skip_signature": True, "region": "local"}
    store: Any = S3Store(bucket, **plain, client_options={"allow_http": True})

    async def read(name: str) -> Any:
        response = await obstore.get_async(store, name)
        return await response.bytes_async()

    async for content in _each(read, names, most):
        yield content
