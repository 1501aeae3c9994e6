"""What a request waits for must not be silent for too long: each wait counts by itself, and nothing between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from aiodata import StorageOptions
from aiodata.storage import Trouble
from aiodata.storage.transfer.asking import Silence
from tests.virtual_time import VirtualLoop

LIMIT = 100.0
OPTIONS = StorageOptions(idle_seconds=LIMIT)


def virtually(work: Callable[[Silence], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine on a loop whose clock jumps; the task must not be left cancelled."""

    async def main() -> Any:
        task = asyncio.current_task()
        assert task is not None
        with Silence(OPTIONS) as silence:
            found = await work(silence)
        assert task.cancelling() == 0
        return found

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


async def silent_for(silence: Silence, waiting: Coroutine[Any, Any, Any]) -> float:
    """Wait for what is too long; give after how many seconds it was ended."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(Trouble, match=r"^there was silence for 100 s instead of a word$"):
        await silence.wait(waiting, "a word")
    return loop.time() - begun


def test_many_waits_may_last_longer_together() -> None:
    async def work(silence: Silence) -> list[int]:
        return [await silence.wait(asyncio.sleep(0.7 * LIMIT, number), "a word") for number in range(9)]

    assert virtually(work) == list(range(9))


def test_what_is_between_waits_does_not_count() -> None:
    async def work(silence: Silence) -> float:
        await asyncio.sleep(5.5 * LIMIT)
        assert await silence.wait(asyncio.sleep(0.9 * LIMIT, "yes"), "a word") == "yes"
        await asyncio.sleep(5.5 * LIMIT)
        return await silent_for(silence, asyncio.Event().wait())

    assert LIMIT <= virtually(work) < 1.01 * LIMIT


@pytest.mark.parametrize("before", [0.0, 0.3 * LIMIT, LIMIT, 1.7 * LIMIT])
def test_silence_ends_at_the_limit(before: float) -> None:
    async def work(silence: Silence) -> list[float]:
        await asyncio.sleep(before)
        return [await silent_for(silence, asyncio.Event().wait()) for _ in range(3)]

    assert all(LIMIT <= seconds < 1.01 * LIMIT for seconds in virtually(work))


def test_a_timeout_of_what_is_waited_for_is_trouble_with_its_own_words() -> None:
    async def work(silence: Silence) -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(TimeoutError("the disk sleeps"))
        with pytest.raises(Trouble, match=r"^the disk sleeps$"):
            await silence.wait(future, "a word")

    virtually(work)


async def test_a_cancellation_from_elsewhere_is_one() -> None:
    entered = asyncio.Event()

    async def work() -> None:
        with Silence(OPTIONS) as silence:
            entered.set()
            await silence.wait(asyncio.Event().wait(), "a word")

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


def test_a_cancellation_from_elsewhere_is_one_in_silence_too() -> None:
    async def main() -> None:
        entered = asyncio.Event()

        async def stubborn() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                entered.set()
                await asyncio.Event().wait()

        async def work() -> None:
            with Silence(OPTIONS) as silence:
                await silence.wait(stubborn(), "a word")

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_what_swallows_the_end_is_ended_again() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    async def work(silence: Silence) -> float:
        return await silent_for(silence, stubborn())

    assert 2 * LIMIT <= virtually(work) < 2.01 * LIMIT


def test_what_answers_when_it_is_ended_has_answered() -> None:
    async def late() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        raise AssertionError

    async def work(silence: Silence) -> float:
        assert await silence.wait(late(), "a word") == "late"
        return await silent_for(silence, asyncio.Event().wait())

    assert LIMIT <= virtually(work) < 1.01 * LIMIT


def test_no_timer_is_left() -> None:
    async def main() -> int:
        loop: Any = asyncio.get_running_loop()
        with Silence(OPTIONS) as silence:
            await silence.wait(asyncio.sleep(0), "a word")
        return sum(not timer.cancelled() for timer in loop._scheduled)

    assert asyncio.run(main()) == 0
