"""Calls between event loops in different threads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["Mailbox", "mailbox_of"]


class Mailbox:
    """Calls for a loop, made in the order in which they were posted; one wake-up serves all that come before it does.

    Waking a loop in another thread costs a system call, and a switch between threads that share the interpreter.

    Args:
        loop: The loop that makes the calls.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake = loop.call_soon_threadsafe
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._is_woken = False

    def post(self, call: Callable[..., object], *arguments: Any) -> None:
        """Have the loop call `call`; from any thread. Of a loop that has closed nobody is there to ask for it."""
        self._calls.append((call, arguments))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # it is closed
                self._wake(self._call_all)

    def _call_all(self) -> None:
        self._is_woken = False  # first: what is posted from here on wakes the loop again
        while self._calls:
            call, arguments = self._calls.popleft()
            call(*arguments)


_mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = WeakKeyDictionary()


def mailbox_of(loop: asyncio.AbstractEventLoop) -> Mailbox:
    """Give the mailbox of a loop; to be called in its thread."""
    mailbox = _mailboxes.get(loop)
    if mailbox is None:
        mailbox = _mailboxes[loop] = Mailbox(loop)
    return mailbox
