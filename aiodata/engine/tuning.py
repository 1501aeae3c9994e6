"""AUTOTUNE: how many calls an automatic stage runs at once, found while the pipeline runs.

Each automatic stage has a `Knob`. Its reader tells the knob of every portion that it gets, and how long it waited for
it. From time to time, by the reader's own step, the knob looks at the rate since it last looked, and lets its `Climb`
decide on the next value: there is no thread and no timer. How large a buffer may grow is decided by the buffer itself
(`aiodata.engine.channel.Buffer`), within the run's budget of memory.
"""

from __future__ import annotations

from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

from aiodata.engine.budget import Budget, Share, weight
from aiodata.options import available_cores

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.block import Block
    from aiodata.engine.statistics import Counters
    from aiodata.options import AutotuneOptions

__all__ = ["Climb", "Knob", "Tuner"]

MOST_THREADS = 64
MOST_COROUTINES = 256
FIRST_COROUTINES = 16
UNLIMITED = 1 << 30

SHORT_SECONDS = 0.02
"""How long to look before a decision, while a climb has only begun."""

LONG_SECONDS = 0.2
"""How long to look once it has come to rest."""

STARVED = 0.1
"""The share of the time from which a reader that waits for busy calls shows that more of them may help."""

BUSY = 0.9
"""The share of the cores' time from which the process is held to be using all of it."""

GAIN = 0.2
"""How much a step up must bring: this share of what it would if the rate were in proportion to the number."""

LOSS = 0.03
"""How much of the rate a step down may cost."""

FIRST_PATIENCE, LAST_PATIENCE = 8, 128
"""After how many looks to try another step, once none has helped: first, and at last."""


class Climb:
    """A number on its way to where the rate is best, a step at a time; a step that does not pay is taken back.

    It doubles as long as that pays. Then, and whenever it has rested for a while, it tries a smaller step up, or down.

    Args:
        value: Where to begin.
        lowest: The least that it may be.
        rested: Begin by resting: the value has been found before.
    """

    def __init__(self, value: int, lowest: int = 1, rested: bool = False) -> None:
        self.value = value
        self.lowest = lowest
        self.resting = rested
        """Whether the first climb is over."""
        self._base = 0
        self._rate = 0.0
        self._upwards = True
        self._has_gained = False
        self._patience = FIRST_PATIENCE
        self._wait = FIRST_PATIENCE if rested else 0

    @property
    def on_trial(self) -> bool:
        """Whether the value is a step that has not been judged yet."""
        return self._base not in (0, self.value)

    def measured(self, rate: float, highest: int, may_grow: bool) -> int:
        """Take the rate at the present value; give the next one.

        Args:
            rate: Elements per second.
            highest: The most that the value may be now.
            may_grow: Whether more can help at all.
        """
        if self.on_trial:
            if self._pays(rate):
                self._has_gained, self._patience = True, FIRST_PATIENCE
                self._settle(rate)
            else:
                self.value = self._base
                self._turn()
                return self.value
        else:
            # What the rate was is forgotten slowly, as the work may change.
            self._settle(rate if not self._base else 0.5 * (rate + self._rate))
        if self._wait:
            self._wait -= 1
        else:
            self._step(highest, may_grow)
        return self.value

    def satisfied(self) -> None:
        """Note that the reader does not wait at the present value, so that no other one is better."""
        self._base = 0
        self.resting = True

    def _settle(self, rate: float) -> None:
        self._base, self._rate = self.value, rate

    def _pays(self, rate: float) -> bool:
        if self.value > self._base:
            return rate >= self._rate * (1 + GAIN * (self.value / self._base - 1))
        return rate >= self._rate * (1 - LOSS)

    def _step(self, highest: int, may_grow: bool) -> None:
        """Go on in the same direction, or, where there is no way, turn."""
        for _ in range(2):
            step = self.value if not self.resting else max(1, self.value // 2)
            up = min(highest, self.value + step) if may_grow else self.value
            target = up if self._upwards else max(self.lowest, self.value - max(1, self.value // 3))
            if target != self.value:
                self.value = target
                return
            self._turn()
            if self._wait:
                return

    def _turn(self) -> None:
        """Try the other direction next: at once if no step has paid yet, or after a rest."""
        self._upwards = not self._upwards
        if self._has_gained or self._upwards or self.resting:
            self.resting = True
            self._wait = self._patience
            self._patience = min(LAST_PATIENCE, 2 * self._patience)


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
        self._value = value
        self.counters.parallelism = value
        if self.changed is not None:
            self.changed()

    def given(self, block: Block[Any], waited: float, busy: bool) -> None:
        """Note that the reader got a portion.

        Args:
            block: The portion.
            waited: Seconds that the reader waited for it.
            busy: Whether all calls were under way when it began to.
        """


class _Automatic(Knob):
    """A knob that turns itself."""

    def __init__(self, tuner: Tuner, counters: Counters, climb: Climb, highest: int) -> None:
        self._calls, self._memory = Share(tuner.calls), Share(tuner.memory)
        climb.value = self._calls.fit(climb.value)
        climb.lowest = min(climb.lowest, climb.value)
        super().__init__(climb.value, counters)
        self.highest = highest
        self._tuner, self._climb = tuner, climb
        self._portions = self._elements = 0
        self._starved = 0.0
        self._heaviest = 0
        self._began = tuner.clock()
        self._cpu = tuner.cpu()

    def given(self, block: Block[Any], waited: float, busy: bool) -> None:
        self._portions += 1
        self._elements += block.length or 0
        if busy:
            self._starved += waited
        if self._portions >= self._value:
            now = self._tuner.clock()
            seconds = now - self._began
            if seconds >= (LONG_SECONDS if self._climb.resting else SHORT_SECONDS):
                self._look(block, now, seconds)

    def _look(self, block: Block[Any], now: float, seconds: float) -> None:
        cpu = self._tuner.cpu()
        may_grow = cpu - self._cpu < BUSY * seconds * self._tuner.cores
        # Twice as many portions as there are calls may have been taken and not given.
        self._heaviest = max(self._heaviest, 2 * weight(block) * (block.length or 1))
        fits = self._memory.fit(self.highest, self._heaviest)
        target = self._value
        if self._starved >= STARVED * seconds:
            highest = self._calls.fit(min(self.highest, fits))
            target = self._climb.measured(self._elements / seconds, highest, may_grow)
        else:
            self._climb.satisfied()
        self._climb.value = target = self._calls.fit(min(target, fits))
        self._memory.fit(target, self._heaviest)
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
        self.seconds: dict[str, float] = {}
        """What a call of each stage's function costs, so that a stage that is opened again need not find out."""
        self._frozen = {entry["stage"]: entry for entry in options.frozen or ()}

    def frozen(self, stage: str, field: str) -> int | None:
        """Give what was frozen for a stage: its "parallelism" or "capacity"; None if it is free."""
        value = self._frozen.get(stage, {}).get(field)
        return None if value is None else int(value)

    def knob(self, stage: str, counters: Counters, coroutine: bool = False, tunes: bool = True) -> Knob:
        """Make a knob for an automatic number of calls.

        Args:
            stage: The stage's label.
            counters: Its statistics; what they show already is what an earlier opening has found.
            coroutine: Whether the calls are coroutines.
            tunes: Whether the number may change while the calls run.
        """
        options = self.options
        automatic = FIRST_COROUTINES if coroutine else self.cores
        frozen = self.frozen(stage, "parallelism")
        if frozen is not None:
            return Knob(max(1, frozen), counters)
        if options.enabled is False:
            return Knob(automatic, counters)
        if not tunes:
            return Knob(options.cpu_budget or automatic, counters)
        found = counters.parallelism
        first = found or options.initial_parallelism or (automatic if coroutine else options.cpu_budget or automatic)
        lowest = max(1, options.min_parallelism or 1)
        highest = max(first, lowest, MOST_COROUTINES if coroutine else MOST_THREADS)
        highest = min(highest, options.cpu_budget or UNLIMITED)
        return _Automatic(self, counters, Climb(max(first, lowest), lowest, rested=found > 0), highest)

    def share(self) -> Share:
        """Give a share of the memory, for a buffer of automatic size."""
        return Share(self.memory)
