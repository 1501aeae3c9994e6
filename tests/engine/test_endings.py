"""However an `async for` ends, nothing of the iteration stays alive: no task, thread, process, file or element.

The cycle collector is off, so that only references count.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset
from aiodata.errors import EndedEarlyError
from tests.engine.observing import KINDS, Watch, endless
from tests.programs import Boom

pytestmark = pytest.mark.usefixtures("no_cycle_collector")
Scenario = Callable[[Dataset[Any]], Awaitable[None]]


async def start_and_cancel(reading: Callable[[asyncio.Event], Any]) -> None:
    """Cancel a reader once it has said that it is under way."""
    under_way = asyncio.Event()
    task = asyncio.create_task(reading(under_way))
    await under_way.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


# Dropped while open: it ends when the loop has turned


async def leave_by_break(ds: Dataset[Any]) -> None:
    async for _ in ds:
        break


async def leave_by_error_in_the_body(ds: Dataset[Any]) -> None:
    try:
        async for _ in ds:
            raise Boom(0)
    except Boom:
        return
    raise AssertionError("the body's error was lost")


async def leave_by_cancellation_in_the_body(ds: Dataset[Any]) -> None:
    async def read(under_way: asyncio.Event) -> None:
        async for _ in ds:
            under_way.set()
            await asyncio.Event().wait()

    await start_and_cancel(read)


async def leave_by_timeout_in_the_body(ds: Dataset[Any]) -> None:
    try:
        async with asyncio.timeout(0.02):
            async for _ in ds:
                await asyncio.Event().wait()
    except TimeoutError:
        return
    raise AssertionError("no timeout")


async def leave_by_break_inside_a_timeout(ds: Dataset[Any]) -> None:
    async with asyncio.timeout(10):
        async for _ in ds:
            break
    await asyncio.sleep(0)


async def drop_after_two(ds: Dataset[Any]) -> None:
    iterator = aiter(ds)
    await anext(iterator)
    await anext(iterator)
    del iterator


async def drop_unused(ds: Dataset[Any]) -> None:
    iterator = aiter(ds)
    del iterator


async def drop_in_a_task_that_did_not_open_it(ds: Dataset[Any]) -> None:
    held = [aiter(ds)]
    await anext(held[0])

    async def drop() -> None:
        held.clear()

    await asyncio.create_task(drop())


async def drop_in_another_thread(ds: Dataset[Any]) -> None:
    held = [aiter(ds)]
    await anext(held[0])
    await asyncio.get_running_loop().run_in_executor(None, held.clear)
    await asyncio.get_running_loop().shutdown_default_executor()


DROPPED: list[Scenario] = [
    leave_by_break,
    leave_by_error_in_the_body,
    leave_by_cancellation_in_the_body,
    leave_by_timeout_in_the_body,
    leave_by_break_inside_a_timeout,
    drop_after_two,
    drop_unused,
    drop_in_a_task_that_did_not_open_it,
    drop_in_another_thread,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", DROPPED)
async def test_a_dropped_iterator_leaves_nothing_once_the_loop_has_turned(
    scenario: Scenario, kind: str, folder: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    await scenario(endless(folder, kind))
    await watch.nothing_left(seconds=2)


# Closed: it has ended when the statement is over


async def leave_by_cancellation_in_anext(ds: Dataset[Any]) -> None:
    async def read(under_way: asyncio.Event) -> None:
        async for _ in ds:
            under_way.set()  # the body does not wait, so it is `anext` that is cancelled

    await start_and_cancel(read)


async def leave_by_timeout_in_anext(ds: Dataset[Any]) -> None:
    try:
        async with asyncio.timeout(0.05):
            async for _ in ds:
                pass
    except TimeoutError:
        return
    raise AssertionError("no timeout")


async def close_in_another_task(ds: Dataset[Any]) -> None:
    iterator = ds.iterate()
    for _ in range(3):
        await anext(iterator)
    await asyncio.create_task(iterator.aclose())


async def close_twice_at_once(ds: Dataset[Any]) -> None:
    iterator = ds.iterate()
    await anext(iterator)
    await asyncio.gather(iterator.aclose(), iterator.aclose())
    await iterator.aclose()


async def close_unused(ds: Dataset[Any]) -> None:
    await ds.iterate().aclose()


async def pull_in_several_tasks_and_close_in_a_third(ds: Dataset[Any]) -> None:
    iterator = await asyncio.create_task(opened(ds))
    for _ in range(10):
        await asyncio.create_task(pull(iterator))
    await asyncio.create_task(iterator.aclose())


async def opened(ds: Dataset[Any]) -> Any:
    return await ds.iterate().__aenter__()


async def pull(iterator: Any) -> None:
    await anext(iterator)


async def leave_async_with_early(ds: Dataset[Any]) -> None:
    async with ds.iterate() as iterator:
        async for _ in iterator:
            return


async def leave_async_with_unused(ds: Dataset[Any]) -> None:
    async with ds.iterate():
        pass


async def leave_async_with_by_an_error(ds: Dataset[Any]) -> None:
    try:
        async with ds.iterate() as iterator:
            await anext(iterator)
            raise Boom(1)
    except Boom:
        return
    raise AssertionError("the body's error was lost")


async def leave_async_with_by_cancellation(ds: Dataset[Any]) -> None:
    async def read(under_way: asyncio.Event) -> None:
        async with ds.iterate() as iterator:
            await anext(iterator)
            under_way.set()
            await asyncio.Event().wait()

    await start_and_cancel(read)


async def cancel_the_closing(ds: Dataset[Any]) -> None:
    iterator = ds.iterate()
    for _ in range(3):
        await anext(iterator)
    closing = asyncio.create_task(iterator.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await closing


CLOSED: list[Scenario] = [
    leave_by_cancellation_in_anext,
    leave_by_timeout_in_anext,
    close_in_another_task,
    close_twice_at_once,
    close_unused,
    pull_in_several_tasks_and_close_in_a_third,
    leave_async_with_early,
    leave_async_with_unused,
    leave_async_with_by_an_error,
    leave_async_with_by_cancellation,
    cancel_the_closing,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", CLOSED)
async def test_a_closed_iterator_leaves_nothing_at_once(
    scenario: Scenario, kind: str, folder: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    await scenario(endless(folder, kind))
    await asyncio.sleep(0)  # lets the tasks of the scenario itself go
    assert watch.left() == []


async def test_reading_on_after_a_cancelled_pull_says_how_to_go_on() -> None:
    gate = asyncio.Event()

    async def wait(x: int) -> int:
        if x == 2:
            await gate.wait()
        return x

    ds = Dataset.range(4).map(wait)
    iterator = ds.iterate()
    assert [await anext(iterator) for _ in range(2)] == [0, 1]
    pulling = asyncio.create_task(anext(iterator))
    await asyncio.sleep(0)
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    for _ in range(2):
        with pytest.raises(EndedEarlyError, match="cancelling of a pull has ended the run"):
            await anext(iterator)
    gate.set()
    assert [x async for x in ds.iterate(iterator.state_dict())] == [2, 3]
