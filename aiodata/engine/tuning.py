"""AUTOTUNE: how many calls an automatic stage runs at once, found while the pipeline runs.

Each automatic stage has a `Knob`. Its reader tells the knob of every portion that it gets, and how long it waited for
it. From time to time, by the reader's own step, the knob looks at the rate since it last looked, and lets its `Climb`
decide on the next value: there is no thread and no timer. How large a buffer may grow is decided by the buffer itself
(`aiodata.engine.channel.Buffer`), within the run's budget of memory.
"""

from __future__ import annotations

from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from aiodata.engine.budget import UNLIMITED, Budget, Share, weight
from aiodata.engine.channel import LARGEST_BYTES, Buffer
from aiodata.engine.climb import Climb
from aiodata.engine.machine import available_cores
from aiodata.engine.plan import AUTOTUNE

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.block import Block
    from aiodata.engine.statistics import Counters
    from aiodata.options import AutotuneOptions

__all__ = ["Knob", "Tuner"]

MOST_THREADS = 64
MOST_COROUTINES = 256
FIRST_WAITING = 16
"""Calls at first, where they are known to wait for something else than a processor."""

SHORT_SECONDS = 0.02
"""How long to look before a decision, while a climb has only begun."""

LONG_SECONDS = 0.2
"""How long to look once it has come to rest."""

STARVED = 0.1
"""The share of the time from which a reader that waits for busy calls shows that more of them may help."""

BUSY = 0.9
"""The share of the cores' time from which the process is held to be using all of it."""


class Knob:
    """How many calls a stage runs at once; one that is automatic turns itself.

    Args:
        value: The number.
        counters: Statistics of the stage, which show it.
    """

    def __init__(self, value: int, counters: Counters) -> None:
        self.counters = counters
        self.highest = value
        self.changed: Callable[[], object] | None = None
        """Called when the value has changed."""
        self.value = value

    @property
    def value(self) -> int:
        """The number."""
        return self._value

    @value.setter
    def value(self, value: int) -> None:
        """Change the number."""
        self._value = value
        self.counters.parallelism = value
        if self.changed is not None:
            self.changed()

    def asked(self) -> None:
        """Note that the reader asks for a portion."""

    def given(self, block: Block[Any], busy: bool) -> None:
        """Note that the reader got the portion that it had asked for.

        Args:
            block: The portion.
            busy: Whether as many calls as may be were under way while it waited.
        """

    def learn_that_calls_wait(self, block: Block[Any]) -> None:
        """Note that calls in threads wait for something else than a processor: many at once may be worth it.

        Args:
            block: What a call gave.
        """


class _Held(Knob):
    """A knob of which the budget of calls decides."""

    def __init__(self, tuner: Tuner, counters: Counters, value: int) -> None:
        self._calls = Share(tuner.calls)
        super().__init__(self._calls.fit(value), counters)


class _Automatic(_Held):
    """A knob that turns itself."""

    def __init__(self, tuner: Tuner, counters: Counters, climb: Climb, highest: int) -> None:
        super().__init__(tuner, counters, climb.value)
        climb.value = self.value
        climb.lowest = min(climb.lowest, climb.value)
        self.highest = highest
        self._tuner, self._climb = tuner, climb
        self._memory = Share(tuner.memory)
        self._portions = self._elements = 0
        self._starved = 0.0
        self._heaviest, self._weighed = 0, False
        self._may_jump = tuner.options.initial_parallelism is None and not climb.resting
        self._asked = 0.0
        self._began: float | None = None
        self._cpu = 0.0

    def asked(self) -> None:
        self._asked = self._tuner.clock()
        if self._began is None:
            self._began, self._cpu = self._asked, self._tuner.cpu()

    def given(self, block: Block[Any], busy: bool) -> None:
        now = self._tuner.clock()
        if not self._weighed:
            self._settle(block, self._value)
        self._portions += 1
        self._elements += block.length or 0
        if busy:
            self._starved += now - self._asked
        if self._portions >= self._value and self._began is not None:
            seconds = now - self._began
            if seconds >= (LONG_SECONDS if self._climb.resting else SHORT_SECONDS):
                self._look(block, now, seconds)

    def learn_that_calls_wait(self, block: Block[Any]) -> None:
        if self._may_jump and self.value < FIRST_WAITING:
            self._settle(block, min(FIRST_WAITING, self.highest))

    def _settle(self, block: Block[Any], target: int) -> None:
        """Have as many calls as there is room for, to judge by a portion, outside of the climb's own steps."""
        self._weigh(block)
        self._climb.value = self._calls.fit(self._memory.fit(target, self._heaviest))
        if self._climb.value != self._value:
            self.value = self._climb.value

    def _weigh(self, block: Block[Any]) -> None:
        # Twice as many portions as there are calls may have been taken and not given.
        self._heaviest = max(self._heaviest, 2 * weight(block) * (block.length or 1))
        self._weighed = True

    def _look(self, block: Block[Any], now: float, seconds: float) -> None:
        cpu = self._tuner.cpu()
        may_grow = cpu - self._cpu < BUSY * seconds * self._tuner.cores
        self._weigh(block)
        rate, fits = self._elements / seconds, self._memory.room(self._heaviest)
        if self._starved >= STARVED * seconds:
            target = self._climb.measured(rate, min(self.highest, fits, self._calls.room()), may_grow)
        else:
            target = self._climb.satisfied(rate)
        target = self._calls.fit(self._memory.fit(target, self._heaviest))
        self._climb.value = target
        self._portions = self._elements = 0
        self._starved, self._began, self._cpu = 0.0, now, cpu
        if target != self._value:
            self.value = target


class Tuner:
    """What the automatic stages of a run share: the budgets, the choices that were frozen, and what they have learned.

    Args:
        options: The limits.
        clock: Gives seconds.
        cpu: Gives the seconds of processor time that the process has taken.
        cores: The processor cores.
    """

    def __init__(
        self,
        options: AutotuneOptions,
        clock: Callable[[], float] = monotonic,
        cpu: Callable[[], float] = process_time,
        cores: int | None = None,
    ) -> None:
        self.options = options
        self.clock, self.cpu = clock, cpu
        self.cores = cores or available_cores()
        self.calls = Budget(options.cpu_budget or UNLIMITED)
        self.memory = Budget(options.ram_budget)
        self.seconds: dict[Any, float] = {}
        """What a call of each function costs, so that a stage that is opened again need not find out."""
        self._frozen = {entry["stage"]: entry for entry in options.frozen or ()}

    def frozen(self, stage: str, field: str) -> int | None:
        """Give what was frozen for a stage: its "parallelism" or "capacity"; None if it is free."""
        value = self._frozen.get(stage, {}).get(field)
        return None if value is None else int(value)

    def knob(
        self,
        counters: Counters,
        calls: int,
        coroutine: bool = False,
        turns: bool = True,
        most: int | None = None,
    ) -> Knob:
        """Make a knob for a number of calls.

        Args:
            counters: The stage's statistics; what they show already is what an earlier opening has found.
            calls: The number, or `AUTOTUNE`.
            coroutine: Whether the calls are coroutines.
            turns: Whether the number may change while the calls run.
            most: A number that there is no reason to begin below, nor to go beyond.
        """
        if calls != AUTOTUNE:
            return Knob(calls, counters)
        options = self.options
        automatic = most or (FIRST_WAITING if coroutine else self.cores)
        frozen = self.frozen(counters.stage, "parallelism")
        if frozen is not None:
            return Knob(max(1, min(frozen, most or frozen)), counters)
        if options.enabled is False:
            return Knob(automatic, counters)
        if most or not turns:
            return _Held(self, counters, most or options.cpu_budget or automatic)
        found = counters.parallelism
        first = found or options.initial_parallelism or (automatic if coroutine else options.cpu_budget or automatic)
        lowest = max(1, options.min_parallelism or 1)
        highest = max(first, lowest, MOST_COROUTINES if coroutine else MOST_THREADS)
        highest = min(highest, options.cpu_budget or UNLIMITED)
        return _Automatic(self, counters, Climb(max(first, lowest), lowest, rested=found > 0), highest)

    def buffer(self, stage: str, counters: Counters, capacity: int = 0, most_bytes: int | None = None) -> Buffer:
        """Make a buffer of automatic size, within the budget of memory.

        Args:
            stage: The stage's label.
            counters: Its statistics.
            capacity: As for `Buffer`, like `most_bytes`.
            most_bytes: What it may hold at first.
        """
        frozen = self.frozen(stage, "capacity")
        if frozen is not None:
            return Buffer(max(1, frozen), counters, most_bytes and LARGEST_BYTES)
        if self.options.enabled is False:
            return Buffer(max(1, capacity), counters, most_bytes)
        return Buffer(capacity, counters, most_bytes, Share(self.memory))
