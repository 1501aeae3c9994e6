"""Plans: the immutable description of a pipeline that a dataset holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiodata.engine.block import Block
from aiodata.options import Options

__all__ = [
    "AUTOTUNE",
    "INFINITE",
    "Plan",
    "Stage",
    "UNKNOWN",
    "detachable",
    "load_seeds",
    "merged_options",
    "needs_loop",
    "plan_of",
    "save_seeds",
]

AUTOTUNE = -1
INFINITE = -1
UNKNOWN = -2

Stage: TypeAlias = Callable[..., AsyncIterator[Block[Any]]]
"""`stage(run, *inputs, start)`: open the stage at once and give its blocks.

`inputs` are `aiodata.engine.run.Source`s, which the stage opens itself; `start` is None or a position (for a stage that
is `resumes_by_cursor`, a cursor). What the call does before it gives the iterator happens when the user's iterator is
made, as tf.data makes its iterators; no event loop may be needed for it.
"""


@dataclass(frozen=True, eq=False)
class Plan:
    """One stage of a pipeline and the plans that it reads from.

    Args:
        name: The stage's name, as the method's.
        stage: Opens it, see `Stage`.
        inputs: The plans that it reads.
        detail: The arguments in short, for `repr` and for telling pipelines apart.
        count: Gives the number of elements from those of the inputs, `INFINITE` or `UNKNOWN`.
        resumes_by_cursor: `start` is a cursor: the stage skips by itself, or passes the cursor on to its one input.
        waits: Needs an event loop (files, tasks, coroutines).
        has_coroutines: Runs the user's own coroutines, which belong to the user's loop.
        reads_ahead: Is a plain look-ahead, so that everything behind it may run on a loop of its own.
        options: Options that hold for this stage and those that it reads.
        seeds: The seed generator that this stage's dataset owns, if any, as `aiodata.random.Seeds`.
        rows: Rows that every element is known to have along its first axis.
    """

    name: str
    stage: Stage
    inputs: tuple[Plan, ...] = ()
    detail: str = ""
    count: Callable[..., int] = field(default=lambda *_: UNKNOWN, repr=False)
    resumes_by_cursor: bool = False
    waits: bool = False
    has_coroutines: bool = False
    reads_ahead: bool = False
    options: Options | None = None
    seeds: Any = None
    rows: int | None = None

    @property
    def label(self) -> str:
        """The stage in words: `batch(32)`."""
        return f"{self.name}({self.detail})"

    def cardinality(self) -> int:
        """Give the number of elements, `INFINITE` or `UNKNOWN`."""
        return self.count(*(source.cardinality() for source in self.inputs))

    def walk(self) -> list[Plan]:
        """Give this plan and all that it reads, inputs first, each once for each time it is read."""
        found: list[Plan] = []
        waiting = [self]
        while waiting:
            plan = waiting.pop()
            found.append(plan)
            waiting.extend(plan.inputs)
        found.reverse()
        return found


def save_seeds(plan: Plan) -> list[Any]:
    """Give the state of every seed generator in the pipeline, as JSON."""
    return [stage.seeds.save() for stage in plan.walk() if stage.seeds is not None]


def load_seeds(plan: Plan, saved: list[Any]) -> None:
    """Set every seed generator in the pipeline to a saved state."""
    owners = [stage.seeds for stage in plan.walk() if stage.seeds is not None]
    for owner, state in zip(owners, saved, strict=True):
        owner.load(state)


def plan_of(dataset: object) -> Plan | None:
    """Give the plan of a dataset; None for anything else. Stages tell datasets by it: they do not know the class."""
    plan = getattr(dataset, "plan", None)
    return plan if isinstance(plan, Plan) else None


def merged_options(plan: Plan) -> Options:
    """Give the options of a pipeline: those of all its stages, later ones over earlier ones, field by field."""
    options = Options()
    for stage in plan.walk():
        if stage.options is not None:
            options = stage.options.over(options)
    return options


def needs_loop(plan: Plan, apart_from: Plan | None = None) -> bool:
    """Tell whether a stage of `plan` needs an event loop, leaving `apart_from` and all that it reads out."""
    if plan is apart_from:
        return False
    return plan.waits or any(needs_loop(source, apart_from) for source in plan.inputs)


def detachable(plan: Plan) -> Plan | None:
    """Find the most downstream look-ahead that holds none of the user's coroutines behind it."""
    while True:
        if plan.reads_ahead and not any(source.has_coroutines for source in plan.walk()):
            return plan
        if len(plan.inputs) != 1:
            return None
        plan = plan.inputs[0]
