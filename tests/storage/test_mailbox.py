"""Calls that are posted to another thread's loop are all made, in order, and hold no loop."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from aiodata.storage.transfer.mailbox import Mailbox, mailbox_of


async def test_calls_are_made_in_order_by_few_wake_ups() -> None:
    loop, made, woken = asyncio.get_running_loop(), list[int](), list[int]()
    mailbox = Mailbox(loop)
    wake = loop.call_soon_threadsafe

    def counted(*arguments: Any, **context: Any) -> asyncio.Handle:
        woken.append(1)
        return wake(*arguments, **context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "call_soon_threadsafe", counted)
        for number in range(100):
            mailbox.post(made.append, number)
        assert made == []
        await asyncio.sleep(0)
    assert (made, len(woken)) == (list(range(100)), 1)


async def test_calls_of_many_threads_are_all_made() -> None:
    mailbox, made = mailbox_of(asyncio.get_running_loop()), list[tuple[int, int]]()

    def post(thread: int) -> None:
        for number in range(3000):
            mailbox.post(made.append, (thread, number))

    threads = [threading.Thread(target=post, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while len(made) < 18_000:
        await asyncio.sleep(0)
    for thread in threads:
        thread.join()
    for thread_number in range(6):
        assert [number for thread, number in made if thread == thread_number] == list(range(3000))


async def test_a_call_that_fails_does_not_hold_up_the_others() -> None:
    loop, made, reported = asyncio.get_running_loop(), list[int](), list[Any]()
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    mailbox = Mailbox(loop)

    def fail() -> None:
        raise LookupError("no")

    for call in (lambda: made.append(1), fail, fail, lambda: made.append(2)):
        mailbox.post(call)
    for _ in range(5):
        await asyncio.sleep(0)
    assert made == [1, 2]
    assert [type(error) for error in reported] == [LookupError, LookupError]
    mailbox.post(made.append, 3)
    await asyncio.sleep(0)
    assert made == [1, 2, 3]


async def test_a_call_may_post_another() -> None:
    mailbox, made = mailbox_of(asyncio.get_running_loop()), list[int]()
    mailbox.post(lambda: mailbox.post(made.append, 1))
    for _ in range(3):
        await asyncio.sleep(0)
    assert made == [1]


def test_a_loop_has_one_mailbox_which_does_not_hold_it() -> None:
    async def main() -> Mailbox:
        assert mailbox_of(asyncio.get_running_loop()) is mailbox_of(asyncio.get_running_loop())
        seen.append(weakref.ref(asyncio.get_running_loop()))
        return mailbox_of(asyncio.get_running_loop())

    seen: list[weakref.ref[Any]] = []
    mailbox = asyncio.run(main())
    mailbox.post(seen.clear)  # the loop has closed
    gc.collect()
    mailbox.post(seen.clear)  # and is gone
    assert [loop() for loop in seen] == [None]
