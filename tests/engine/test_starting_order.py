"""Parallel calls start in order, and the first result comes as soon as the first call is done."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from aiodata import Dataset


async def test_coroutines_start_in_order_and_the_first_result_waits_for_one_call() -> None:
    started: list[int] = []
    done = [asyncio.Event() for _ in range(20)]

    async def call(x: Any) -> Any:
        started.append(int(x))
        await done[int(x)].wait()
        return x

    async with Dataset.range(20).map(call, num_parallel_calls=8).iterate() as iterator:
        first = asyncio.ensure_future(anext(iterator))
        while len(started) < 8:
            await asyncio.sleep(0)
        assert started == list(range(8))
        done[0].set()
        assert await asyncio.wait_for(first, 30) == 0  # though no other call is done
        for event in done:
            event.set()
        assert [int(x) async for x in iterator] == list(range(1, 20))
    assert started == list(range(20))


def test_threads_start_in_order_and_the_first_result_waits_for_one_call() -> None:
    started: list[int] = []
    done = [threading.Event() for _ in range(20)]

    def call(x: Any) -> Any:
        started.append(int(x))
        assert done[int(x)].wait(10)
        return x

    with Dataset.range(20).map(call, num_parallel_calls=3).iterate() as iterator:
        done[0].set()
        assert next(iterator) == 0
        for event in done:
            event.set()
        assert [int(x) for x in iterator] == list(range(1, 20))
    assert started[0] == 0
    assert sorted(started) == list(range(20))
