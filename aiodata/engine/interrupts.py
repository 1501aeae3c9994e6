"""What wakes the threads of a pipeline that wait for something, when the pipeline ends."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Interrupts", "of_this_thread"]

_threads = threading.local()


class Interrupts:
    """The interrupts of the calls of one run that block.

    Args:
        parent: Those of the run that it is a part of, which interrupt its calls, too.
    """

    def __init__(self, parent: Interrupts | None) -> None:
        self._parent = parent
        self._calls: dict[object, Callable[[], object]] = {}
        self._stopped = False

    @contextmanager
    def during(self, interrupt: Callable[[], object] | None) -> Iterator[None]:
        """Have a call interrupted if the run is stopped, or has been.

        Args:
            interrupt: Ends the call; called from any thread, and maybe more than once. None if nothing can.
        """
        if interrupt is None:
            yield
            return
        runs: list[Interrupts] = []
        key = object()
        each: Interrupts | None = self
        try:
            while each is not None:
                runs.append(each)
                each._calls[key] = interrupt
                if each._stopped:  # looked at last: who stops the run now finds the call
                    interrupt()
                each = each._parent
            yield
        finally:
            for run in runs:
                del run._calls[key]

    def own_thread(self) -> None:
        """Note that this thread works for the run, from now on."""
        _threads.interrupts = self

    def stop(self) -> None:
        """Interrupt the calls that are under way, and those that follow; from any thread."""
        self._stopped = True
        for interrupt in list(self._calls.values()):
            interrupt()


def of_this_thread() -> Interrupts | None:
    """Give the interrupts of the run that this thread works for; None in a thread of the user's own."""
    interrupts: Interrupts | None = getattr(_threads, "interrupts", None)
    return interrupts
