"""Copies of pipelines that give the same elements in the same order every time they are opened.

What a pipeline gives may change from pass to pass: its shuffles draw from generators that all iterators share, and
its caches keep what another pass gave. A frozen pipeline has generators and caches of its own, which stay as they were
when it was made; what is opened is a further copy each time, so that openings do not disturb each other.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.engine.plan import Plan, plan_of
from aiodata.functions import is_coroutine_function
from aiodata.random import PairSource, implicit_seeds, seeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata.engine.plan import Stage

__all__ = ["frozen", "to_open"]

_MAKERS = {"flat_map": "function", "group_by_window": "reduce_func", "interleave": "function"}
"""Stages whose functions make datasets, and as what they have them."""


def frozen(plan: Plan) -> Plan:
    """Copy a pipeline with all that changes between its passes, which in the copy stays as it is now.

    Raises:
        ValueError: A stage was told to give its elements in any order, or its generator cannot be replaced.
    """
    return _Copies(copy.copy, None).of(plan)


def to_open(plan: Plan, seed: int) -> Plan:
    """Copy a frozen pipeline to open it once: what it draws meanwhile does not change the original.

    All its stages keep their order, whatever the options say. Datasets that its functions make have generators as new
    ones do, those without a seed the implicit seeds 0, 1, 2, ... beside `seed`, as in tf.data.
    """
    return _Copies(_own, seed).of(plan)


def _own(generator: Any) -> Any:
    """Copy a generator; a cache is shared, for all passes fill it alike."""
    return copy.copy(generator) if isinstance(generator, PairSource) else generator


def _new(generator: Any) -> Any:
    """Copy a generator as it was when it was made."""
    own = _own(generator)
    if isinstance(own, PairSource):
        own.drawn = 0
    return own


class _Copies:
    """Copies of plans that belong together, each made once.

    Args:
        of_generator: Copies what a plan has for its `seeds`.
        seed: For the functions that make datasets, see `to_open`; None leaves them alone.
    """

    def __init__(self, of_generator: Callable[[Any], Any], seed: int | None) -> None:
        self._of_generator = of_generator
        self._seed = seed
        self._plans: dict[int, Plan] = {}
        self._generators: dict[int, Any] = {}
        self._bound: set[int] = set()
        """Generators that a stage has been given the copy of, by identity."""

    def of(self, plan: Plan) -> Plan:
        """Copy a plan and all that it reads."""
        for stage in plan.walk():  # inputs first
            if id(stage) not in self._plans:
                self._plans[id(stage)] = self._copy(stage)
        return self._plans[id(plan)]

    def _copy(self, plan: Plan) -> Plan:
        if plan.deterministic is False:
            raise ValueError(f"{plan.label} may give its elements in another order each time: it cannot be split")
        if plan.seeds is not None and id(plan.seeds) not in self._generators:
            self._generators[id(plan.seeds)] = self._of_generator(plan.seeds)
        stage = self._stage(plan)
        if plan.seeds is not None and id(plan.seeds) not in self._bound:
            raise ValueError(f"{plan.label} keeps its generator where it cannot be replaced: it cannot be split")
        inputs = tuple(self.of(source) for source in plan.inputs)
        return replace(plan, stage=stage, inputs=inputs, seeds=self._generators.get(id(plan.seeds)))

    def _stage(self, plan: Plan) -> Stage:
        """Give the stage of a plan with other generators, in the order of its input, with functions that repeat."""
        given = plan.stage.keywords if isinstance(plan.stage, partial) else {}
        changed = {key: self._value(value) for key, value in given.items()}
        if plan.deterministic is None:
            if "deterministic" not in given:
                raise ValueError(f"{plan.label} cannot be told to keep its order: it cannot be split")
            changed["deterministic"] = True
        maker = _MAKERS.get(plan.name)
        if self._seed is not None and maker in given:
            made = given[maker]
            changed[maker] = _Repeating(made.function if isinstance(made, _Repeating) else made, self._seed)
        elif self._seed is not None and plan.name == "map" and not is_coroutine_function(given["function"]):
            changed["function"] = seeded(given["function"], self._seed)  # it may make datasets that are opened later
        return partial(plan.stage, **changed) if changed else plan.stage

    def _value(self, value: Any) -> Any:
        """Copy what a stage was given, if it is a generator or made of the input."""
        if isinstance(value, Plan):
            return self.of(value)
        if isinstance(value, list) and value and all(isinstance(part, Plan) for part in value):
            return [self.of(part) for part in value]
        if id(value) not in self._generators:
            return value
        self._bound.add(id(value))
        return self._generators[id(value)]


class _Repeating:
    """A function that makes the same dataset again when it is called with the same element."""

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        self.function = function
        self._seed = seed

    def __call__(self, *arguments: Any) -> Any:
        with implicit_seeds(self._seed):
            dataset = self.function(*arguments)
        plan = plan_of(dataset)
        return dataset if plan is None else _Made(_Copies(_new, self._seed).of(plan))


class _Made:
    """A dataset to the stage that opens it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
