"""Jobs: the tasks of a run, and their end."""

from __future__ import annotations

import asyncio

from aiodata.engine.job import Tasks


async def test_a_job_that_another_starts_while_it_ends_is_ended_too() -> None:
    tasks = Tasks()
    log: list[str] = []

    async def wait(name: str) -> None:
        log.append(f"{name} begins")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            log.append(f"{name} ends")

    async def opener() -> None:
        try:
            await wait("first")
        finally:
            tasks.spawn(lambda: wait("second"), lambda error: None)
            await asyncio.sleep(0)

    tasks.spawn(opener, lambda error: None)
    await asyncio.sleep(0)
    await tasks.end()
    assert [entry for entry in log if entry == "first ends"] == ["first ends"]
    assert log.count("second begins") == log.count("second ends")
    assert len(asyncio.all_tasks()) == 1
