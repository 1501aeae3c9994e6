"""A loop that ends right after its reader has left: nothing is left in the process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from aiodata import Dataset, TextLineDataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHAINS: dict[str, Callable[[str], Dataset[Any]]] = {
    "file": lambda path: TextLineDataset(path),
    "threads": lambda _: Dataset.range(100).map(lambda x: x, num_parallel_calls=2),
    "prefetch": lambda path: TextLineDataset(path).prefetch(2),
    "readers": lambda path: TextLineDataset([path, path, path], num_parallel_reads=2).map(len),
}


async def leave_by_break(ds: Dataset[Any]) -> Any:
    async for _ in ds:
        break


async def leave_by_error(ds: Dataset[Any]) -> Any:
    async for _ in ds:
        raise KeyError("stop")


async def leave_by_timeout(ds: Dataset[Any]) -> Any:
    async with asyncio.timeout(0.01):
        async for _ in ds:
            await asyncio.sleep(1)


async def leave_it_open(ds: Dataset[Any]) -> Any:
    iterator = aiter(ds)
    await anext(iterator)
    return iterator


@pytest.mark.parametrize("leave", [leave_by_break, leave_by_error, leave_by_timeout, leave_it_open])
@pytest.mark.parametrize("chain", CHAINS)
def test_the_loops_end_is_the_runs_end(chain: str, leave: Callable[[Dataset[Any]], Any], tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("line\n" * 1000)
    before = threading.active_count()
    for _ in range(3):
        with contextlib.suppress(KeyError, TimeoutError):
            asyncio.run(leave(CHAINS[chain](str(path))))
    assert threading.active_count() == before
