"""An event loop that does not wait: tests of what takes hours take no time, and prove nothing by sleeping."""

from __future__ import annotations

import asyncio
import selectors


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__(_Jumping(self))
        self.jumped = 0.0

    def time(self) -> float:
        return super().time() + self.jumped


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and timeout is not None:
            self.loop.jumped += timeout
        return found if found or timeout is not None else super().select(None)
