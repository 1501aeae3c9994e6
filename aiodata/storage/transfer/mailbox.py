"""Calls between event loops in different threads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["Call", "Mailbox", "mailbox_of"]

R = TypeVar("R")


class Mailbox:
    """Calls for a loop, made in the order in which they were posted; one wake-up serves all that come before it does.

    Waking a loop in another thread costs a system call, and a switch between threads that share the interpreter.

    Args:
        loop: The loop that makes the calls. It is not held.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._is_woken = False

    def post(self, call: Callable[..., object], *arguments: Any) -> None:
        """Have the loop call `call`; from any thread. Of a loop that has closed nobody is there to ask for it."""
        self._calls.append((call, arguments))
        if not self._is_woken:
            self._wake()

    def _wake(self) -> None:
        self._is_woken = True
        loop = self._loop()
        if loop is not None:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(self._call_all)

    def _call_all(self) -> None:
        self._is_woken = False  # first: what is posted from here on wakes the loop again
        try:
            while self._calls:
                call, arguments = self._calls.popleft()
                call(*arguments)
        finally:
            if self._calls:  # one has failed, which the loop reports; the others are made all the same
                self._wake()


_mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = WeakKeyDictionary()


def mailbox_of(loop: asyncio.AbstractEventLoop) -> Mailbox:
    """Give the mailbox of a loop; to be called in its thread."""
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _mailboxes[loop] = Mailbox(loop)
    return mailbox


class Call(Generic[R]):
    """A coroutine that a loop runs for another one.

    Args:
        work: The coroutine.
        answer: Gets its outcome, on the caller's loop.
        back: The mailbox of that loop.
    """

    def __init__(self, work: Coroutine[Any, Any, R], answer: asyncio.Future[R], back: Mailbox) -> None:
        self.answer = answer
        self._work = work
        self._back = back
        self._task: asyncio.Task[R] | None = None

    def begin(self) -> None:
        """Begin, on that loop."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(lambda task: self._back.post(self._settle, task))

    def cancel(self) -> None:
        """Cancel it, on that loop."""
        if self._task is not None:
            self._task.cancel()

    def _settle(self, task: asyncio.Task[R]) -> None:
        """Hand the outcome on, on the caller's loop; an error that nobody waits for any more is nobody's."""
        self._task = None
        if self.answer.done():
            if not task.cancelled():
                task.exception()
        elif task.cancelled():
            self.answer.cancel()
        elif (error := task.exception()) is not None:
            self.answer.set_exception(error)
            del error  # else it and its frames would be a cycle
        else:
            self.answer.set_result(task.result())
