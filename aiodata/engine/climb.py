"""How a number is found at which a rate is best: by trying steps, and taking back those that do not pay."""

from __future__ import annotations

__all__ = ["Climb"]

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

    def satisfied(self, rate: float) -> int:
        """Note that the reader hardly waits at the present value; give the next one: this, or the one before."""
        if self.on_trial and not self._pays(rate):
            self.value = self._base
        self._base = 0
        return self.value

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
