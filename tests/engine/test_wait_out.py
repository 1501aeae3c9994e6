"""What has to be waited for is waited for, also by a task that is being cancelled, without keeping the loop busy."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from aiodata.engine.workers import wait_out


async def test_a_task_that_is_cancelled_by_a_scope_waits_in_peace() -> None:
    loop, told = asyncio.get_running_loop(), list[int]()
    waiting = loop.create_future()

    async def wait() -> None:
        with anyio.CancelScope() as scope:
            loop.call_soon(scope.cancel)
            await wait_out(waiting, interrupt=lambda: told.append(1))

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.05)
    assert (task.done(), told) == (False, [1])
    waiting.set_result(None)
    await task


async def test_each_cancellation_of_a_task_itself_is_noticed() -> None:
    told = list[int]()
    waiting = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(wait_out(waiting, interrupt=lambda: told.append(1)))
    for count in range(3):
        await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.001)
        assert (task.done(), len(told)) == (False, count + 1)
    waiting.set_result(None)
    with pytest.raises(asyncio.CancelledError):
        await task
