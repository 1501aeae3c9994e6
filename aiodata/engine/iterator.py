"""The iterator: what the user holds, as `aiodata.iterator.DatasetIterator`. Closing or dropping it ends its run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from aiodata.engine.plan import load_seeds, save_seeds
from aiodata.engine.position import cursor
from aiodata.engine.session import Session
from aiodata.engine.source import NeedsLoop
from aiodata.engine.state import cursor_of, make_state
from aiodata.engine.workers import all_of
from aiodata.errors import EndedEarlyError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Origin

__all__ = ["ElementIterator"]

T_co = TypeVar("T_co", covariant=True)

BREATH_SECONDS = 0.005
FAST_SECONDS = 0.0002
SLOW_SECONDS = 0.1
_NOTHING: Any = iter(())
logger = logging.getLogger("aiodata")


class ElementIterator(Generic[T_co]):
    """One iteration over a dataset, for `async for` and for `for`.

    The first use settles the face: `async for`, `anext` and `async with` run the pipeline on the running loop; `for`,
    `next` and `with` run it on a private loop in a private thread, or with no loop at all if nothing needs one.
    """

    def __init__(self, plan: Plan, state: dict[str, Any] | None = None) -> None:
        self._plan = plan
        self._replaced: list[Session] = []
        self._begin_with(_opened(plan, state))

    def _begin_with(self, session: Session) -> None:
        self._session = session
        self._finished = False
        self._hand: tuple[Origin, int] | None = None
        """Where the block in hand begins; the block itself would hold its elements."""
        self._rows: Iterator[T_co] = _NOTHING
        self._taken = 0
        self._pulls = self._until_clock = 1
        self._breathed = self._slept = monotonic()
        self._reported = False
        self._suspect = True

    # State

    def state_dict(self) -> dict[str, Any]:
        """Give the place where the iterator stands, as a small JSON-able dictionary.

        It says which element comes next, whatever has been read ahead, and asking for it changes nothing.
        `Dataset.iterate(state=...)` on an equal pipeline, also in another process, goes on with exactly that element.
        """
        position = self._session.start if self._hand is None else cursor(self._hand[0], self._hand[1] + self._taken)
        return make_state(self._plan, position, self._session.seeds)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state`, from the next pull on; what was read ahead is dropped.

        Args:
            state: What `state_dict` gave, of this or an equal pipeline.

        Raises:
            StateError: The state is of another pipeline; the first difference is named.
        """
        session = _opened(self._plan, state)
        self._session.close()
        if not self._session.run.closed:
            self._replaced.append(self._session)  # its loop is closing it; the next pull waits for that
        self._begin_with(session)

    def statistics(self) -> list[dict[str, Any]]:
        """Give the counters of each stage since the iterator was opened, in the order in which stages were opened.

        `options.autotune.frozen` takes them: automatic stages then keep the parallelism and capacity that they show.
        """
        return self._session.run.statistics.as_list()

    # The async face

    def __aiter__(self) -> Self:
        """Give the iterator itself."""
        return self

    async def __anext__(self) -> T_co:
        """Give the next element.

        Raises:
            StopAsyncIteration: There are no more.
            Exception: The element failed; the next call goes on behind it.
        """
        while True:
            started = monotonic() if self._suspect else 0.0
            try:
                for element in self._rows:
                    self._taken += 1
                    self._until_clock -= 1
                    if not self._until_clock:
                        if started and monotonic() - started > SLOW_SECONDS:
                            self._report(monotonic() - started)
                        await self._look_at_clock()
                    return element
            except StopAsyncIteration as error:
                self._taken += 1
                raise RuntimeError("a function of the pipeline raised StopAsyncIteration") from error
            except Exception:
                self._taken += 1
                raise
            except BaseException:
                await self.aclose()
                raise
            if self._session.orphaned and not self._finished:
                raise EndedEarlyError("the event loop that this iterator belongs to has been shut down")
            if self._session.cancelled and not self._finished:
                raise EndedEarlyError("the cancelling of a pull has ended the run; `state_dict()` says where to go on")
            if self._finished or self._session.closed:
                raise StopAsyncIteration
            self._session.check(asynchronous=True)
            try:
                while self._replaced:
                    await self._replaced.pop().aclose()
                await self._look_at_clock()
                if self._session.closed:
                    raise EndedEarlyError("the iterator was closed while it was being read")
                block = await self._session.fetch_async()
            except BaseException:
                await self.aclose()
                raise
            if not self._take_in_hand(block):
                await self.aclose()

    async def _look_at_clock(self) -> None:
        """Let the loop breathe if it has not for 5 ms, and settle after how many elements to look again.

        Looking costs as much as an element of a fast pipeline, so there it happens every 16 elements.
        """
        now = monotonic()
        spent = now - self._breathed
        self._pulls = 1 if spent > FAST_SECONDS else min(2 * self._pulls, 16)
        self._until_clock = self._pulls
        self._suspect = spent > SLOW_SECONDS and not self._reported  # or was it the reader that took so long?
        self._breathed = now
        if now - self._slept > BREATH_SECONDS:
            await asyncio.sleep(0)
            self._breathed = self._slept = monotonic()

    async def aclose(self) -> None:
        """End the iteration: when this returns, nothing of it is alive.

        It may be called in any task of the loop, also while another one waits for an element; that wait then raises
        `EndedEarlyError`.
        """
        self._rows = _NOTHING
        sessions = [*self._replaced, self._session]
        self._replaced.clear()
        await all_of([session.aclose for session in sessions])

    async def __aenter__(self) -> Self:
        """Give the iterator itself."""
        self._session.begin(asynchronous=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the iteration."""
        await self.aclose()

    # The sync face

    def __iter__(self) -> Self:
        """Give the iterator itself."""
        return self

    def __next__(self) -> T_co:
        """Give the next element.

        Raises:
            StopIteration: There are no more.
            Exception: The element failed; the next call goes on behind it.
        """
        while True:
            try:
                for element in self._rows:
                    self._taken += 1
                    return element
            except Exception:
                self._taken += 1
                raise
            except BaseException:
                self.close()
                raise
            if self._finished or self._session.closed:
                raise StopIteration
            self._session.check(asynchronous=False)
            try:
                block = self._session.fetch()
            except NeedsLoop:
                self._open_with_loop()
                continue
            except BaseException:
                self.close()
                raise
            if not self._take_in_hand(block):
                self.close()

    def _open_with_loop(self) -> None:
        """Open the pipeline anew at the same place, on a private loop."""
        state = self.state_dict()
        self._session.close()
        self._begin_with(_opened(self._plan, state))
        self._session.begin(asynchronous=False, with_loop=True)

    def close(self) -> None:
        """End the iteration: when this returns, nothing of it is alive.

        An iterator that `async for` has used is closed by its loop a moment later; `aclose` waits for that.
        """
        self._rows = _NOTHING
        self._session.close()

    def __enter__(self) -> Self:
        """Give the iterator itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the iteration."""
        self.close()

    def __del__(self) -> None:
        """End the iteration."""
        if hasattr(self, "_session"):
            with contextlib.suppress(Exception):
                self.close()

    # Both

    def _take_in_hand(self, block: Block[T_co] | None) -> bool:
        """Go on with the elements of a block, or note the end."""
        counters = self._session.run.statistics.counters("iterator")
        if self._hand is not None and not self._finished:
            counters.elements += self._taken
        if block is None:
            self._finished = True
            self._rows = _NOTHING
            return False
        counters.blocks += 1
        self._hand = (block.origin, block.offset)
        self._taken = 0
        self._rows = block.rows()
        return True

    def _report(self, seconds: float) -> None:
        stages = self._session.run.inline
        if not self._reported and stages:
            self._reported = True
            logger.warning(
                "computing one element held the event loop for %.2f s; the plain functions that run on the loop are "
                "those of %s: num_parallel_calls=, or an executor, moves them off it",
                seconds,
                ", ".join(stages),
            )


def _opened(plan: Plan, state: dict[str, Any] | None) -> Session:
    """Open a pipeline at a state, or at its start.

    Raises:
        StateError: The state does not fit; nothing has changed then.
    """
    if state is None:
        return Session(plan, None)
    start = cursor_of(state, plan)
    before = save_seeds(plan)
    try:
        load_seeds(plan, state["seeds"])
        return Session(plan, start)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        load_seeds(plan, before)
        if isinstance(error, StateError):
            raise  # a stage says what does not fit
        raise StateError(f"this is not a saved state: its position does not fit the pipeline ({error})") from error
