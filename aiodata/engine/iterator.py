"""The iterator: what the user holds. Closing or dropping it ends its run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aiodata.engine.bridge import Bridge, serve
from aiodata.engine.handoff import HandOff
from aiodata.engine.plan import compare, describe, detachable, load_seeds, needs_loop, save_seeds
from aiodata.engine.run import NeedsLoop, Run
from aiodata.errors import EndedEarlyError, StateError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator
    from types import TracebackType

    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor

__all__ = ["DatasetIterator"]

T_co = TypeVar("T_co", covariant=True)

STATE_VERSION = 1
BREATH_SECONDS = 0.005
SLOW_SECONDS = 0.1
logger = logging.getLogger("aiodata")
_closing: set[asyncio.Task[None]] = set()
_NOTHING: Any = iter(())


class _Interruptible:
    """Awaits one pull so that `interrupt` can end the wait from another task, without cancelling the pulling task."""

    __slots__ = ("_pull", "_waits_for", "interrupted")

    def __init__(self, pull: Awaitable[Any]) -> None:
        self._pull = pull
        self._waits_for: Any = None
        self.interrupted = False

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._pull.__await__()
        send: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                waits_for = send()
            except StopIteration as finished:
                return finished.value
            self._waits_for = waits_for
            if self.interrupted and waits_for is not None:
                waits_for.cancel()
            try:
                yield waits_for
            except BaseException as error:
                send = partial(steps.throw, error)  # type: ignore[attr-defined]
            else:
                send = partial(next, steps)
            self._waits_for = None

    def interrupt(self) -> None:
        self.interrupted = True
        if self._waits_for is not None:
            self._waits_for.cancel()


class DatasetIterator(Generic[T_co]):
    """One iteration over a dataset, for `async for` and for `for`.

    The first use settles the face: `async for`, `anext` and `async with` run the pipeline on the running loop; `for`,
    `next` and `with` run it on a private loop in a private thread, or with no loop at all if nothing needs one.
    """

    def __init__(self, plan: Plan, state: dict[str, Any] | None = None) -> None:
        self._plan = plan
        self._stale: list[Run] = []
        self._open(state)

    def _open(self, state: dict[str, Any] | None) -> None:
        start: Cursor | None = None
        if state is not None:
            start = _checked(state, self._plan)
        self._seeds = save_seeds(self._plan)
        self._start = start
        self._run = Run(self._plan)
        self._blocks: AsyncIterator[Block[T_co]] = self._run.open(self._plan, start)
        self._counters = self._run.statistics.counters("iterator")
        self._block: Block[T_co] | None = None
        self._rows = _NOTHING
        self._taken = 0
        self._face = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bridge: Bridge | None = None
        self._hand_off: HandOff | None = None
        self._pulling: _Interruptible | None = None
        self._finished = False
        self._breathed = 0.0
        self._reported = False

    # State

    def state_dict(self) -> dict[str, Any]:
        """Give the place where the iterator stands, as a small JSON-able dictionary.

        It says which element comes next, whatever has been read ahead, and asking for it changes nothing.
        `Dataset.iterate(state=...)` on an equal pipeline, also in another process, goes on with exactly that element.
        """
        position = self._start if self._block is None else self._block.cursor(self._taken)
        return {
            "version": STATE_VERSION,
            "pipeline": describe(self._plan),
            "position": position,
            "seeds": self._seeds,
            "finished": self._finished,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state`, from the next pull on.

        Args:
            state: What `state_dict` gave, of this or an equal pipeline.

        Raises:
            StateError: The state is of another pipeline; the first difference is named.
        """
        _checked(state, self._plan, apply=False)
        self._stale.append(self._run)
        face, loop, bridge = self._face, self._loop, self._bridge
        if face == "thread" and bridge is not None:
            bridge.stop()
            bridge.join()
        elif face != "async":
            self._run.close()
            self._stale.pop()
        self._open(state)
        if face == "async":
            self._loop = loop

    def statistics(self) -> list[dict[str, Any]]:
        """Give the counters of each stage so far, the iterator's own first."""
        return self._run.statistics.as_list()

    # The async face

    def __aiter__(self) -> DatasetIterator[T_co]:
        """Give the iterator itself."""
        return self

    async def __anext__(self) -> T_co:
        """Give the next element.

        Raises:
            StopAsyncIteration: There are no more.
            Exception: The element failed; the next call goes on behind it.
        """
        while True:
            now = monotonic()
            if now - self._breathed > BREATH_SECONDS:
                await asyncio.sleep(0)
                now = self._breathed = monotonic()
            try:
                for element in self._rows:
                    self._taken += 1
                    if monotonic() - now > SLOW_SECONDS:
                        self._report(monotonic() - now)
                    return element  # type: ignore[no-any-return]
            except Exception:
                self._taken += 1
                raise
            except BaseException:
                await self.aclose()
                raise
            if not await self._advance():
                raise StopAsyncIteration

    async def _advance(self) -> bool:
        """Take the next block in hand; tell whether there is one."""
        if self._face != "async":
            self._begin("async")
        while self._stale:
            await self._stale.pop().aclose()
        if self._finished or self._run.closed:
            return False
        if self._pulling is not None:
            raise RuntimeError("another task is waiting for the next element of this iterator")
        self._pulling = pulling = _Interruptible(anext(self._blocks, None))
        try:
            block = await pulling
        except BaseException as error:
            if pulling.interrupted:
                raise EndedEarlyError("the iterator was closed while it was being read") from error
            self._pulling = None
            await self.aclose()
            raise
        finally:
            self._pulling = None
        if block is None:
            await self._finish()
            return False
        self._take_in_hand(block)
        return True

    async def _finish(self) -> None:
        self._finish_block()
        await self._run.aclose()

    def _finish_block(self) -> None:
        self._finished = True
        self._rows = _NOTHING
        self._counters.elements += self._taken if self._block is not None else 0

    def _take_in_hand(self, block: Block[T_co]) -> None:
        self._counters.blocks += 1
        if self._block is not None:
            self._counters.elements += self._taken
        self._block = block
        self._taken = 0
        self._rows = block.rows()

    async def aclose(self) -> None:
        """End the iteration: when this returns, nothing of it is alive.

        It may be called in any task of the loop, also while another one waits for an element; that wait then raises
        `EndedEarlyError`.
        """
        self._rows = _NOTHING
        if self._face in ("stepped", "thread"):
            self.close()
            return
        if self._pulling is not None:
            self._pulling.interrupt()
            while self._pulling is not None:
                await asyncio.sleep(0)
        for run in [*self._stale, self._run]:
            await run.aclose()
        self._stale.clear()

    async def __aenter__(self) -> DatasetIterator[T_co]:
        """Give the iterator itself."""
        if not self._face:
            self._begin("async")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the iteration."""
        await self.aclose()

    # The sync face

    def __iter__(self) -> DatasetIterator[T_co]:
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
                    return element  # type: ignore[no-any-return]
            except Exception:
                self._taken += 1
                raise
            except BaseException:
                self.close()
                raise
            if not self._advance_blocking():
                raise StopIteration

    def _advance_blocking(self) -> bool:
        if self._face not in ("stepped", "thread"):
            self._begin("sync")
        if self._finished or self._run.closed:
            return False
        try:
            if self._hand_off is not None:
                block = self._hand_off.get()
            else:
                block = _step(anext(self._blocks, None))
        except NeedsLoop:
            state = self.state_dict()
            self.close()
            self._open(state)
            self._begin("thread")
            return self._advance_blocking()
        except BaseException:
            self.close()
            raise
        if block is None:
            self._finish_block()
            self.close()
            return False
        self._take_in_hand(block)
        return True

    def close(self) -> None:
        """End the iteration: when this returns, nothing of it is alive.

        An iterator that `async for` has used is closed by its loop a moment later; `aclose` waits for that.
        """
        self._rows = _NOTHING
        if self._face == "async":
            self._close_soon()
        elif self._face == "thread" and self._bridge is not None:
            self._bridge.stop()
            self._bridge.join()
        elif not self._run.closed:
            self._run.close()

    def __enter__(self) -> DatasetIterator[T_co]:
        """Give the iterator itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the iteration."""
        self.close()

    # Both

    def _begin(self, face: str) -> None:
        """Settle where the pipeline runs."""
        if self._face:
            raise RuntimeError(f"this iterator is being read {_FACES[self._face]}; take another one to mix them")
        run = self._run
        if face == "async":
            self._face = "async"
            self._loop = asyncio.get_running_loop()
        elif face == "sync" and not needs_loop(self._plan, apart_from=detachable(self._plan)):
            self._face = "stepped"
            run.stepped = True
        else:
            self._face = "thread"
            run.detaches = False
            self._hand_off = HandOff(None)
            self._bridge = Bridge(run, partial(serve, self._hand_off, self._blocks), self._hand_off)
            self._bridge.start()
        run.begin()

    def _report(self, seconds: float) -> None:
        if not self._reported and self._run.inline:
            self._reported = True
            logger.warning(
                "computing one element held the event loop for %.2f s; the plain functions that run on the loop are "
                "those of %s: num_parallel_calls=, or an executor, moves them off it",
                seconds,
                ", ".join(self._run.inline),
            )

    def _close_soon(self) -> None:
        loop, runs = self._loop, [run for run in [*self._stale, self._run] if not run.closed]
        if not runs or loop is None:
            return
        with contextlib.suppress(RuntimeError):  # a closed loop has cancelled and closed everything itself
            if _running_loop() is loop:
                loop.call_soon(_close_all, runs)
            else:
                loop.call_soon_threadsafe(_close_all, runs)

    def __del__(self) -> None:
        """End the iteration."""
        if hasattr(self, "_face"):
            with contextlib.suppress(Exception):
                self.close()


_FACES = {"async": "by async for", "stepped": "by a plain for", "thread": "by a plain for"}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _close_all(runs: list[Run]) -> None:
    for run in runs:
        task = asyncio.get_running_loop().create_task(run.aclose(), name="aiodata-close")
        _closing.add(task)
        task.add_done_callback(_closing.discard)


def _step(pull: Awaitable[Any]) -> Any:
    """Run a coroutine that never waits."""
    steps = pull.__await__()
    try:
        next(steps)
    except StopIteration as finished:
        return finished.value
    raise RuntimeError("a stage that says it needs no event loop waited for one")


def _checked(state: dict[str, Any], plan: Plan, apply: bool = True) -> Cursor | None:
    """Give the cursor of a state of `plan`, and set the seed generators as they were."""
    if not isinstance(state, dict) or "version" not in state or "position" not in state:
        raise StateError(f"this is not a saved state: {state!r:.80}")
    if state["version"] != STATE_VERSION:
        raise StateError(f"the state has version {state['version']}; this library reads version {STATE_VERSION}")
    compare(state.get("pipeline"), describe(plan))
    if apply:
        load_seeds(plan, state["seeds"])
    return state["position"]  # type: ignore[no-any-return]
