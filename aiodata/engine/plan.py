"""Plans: the immutable description of a pipeline that a dataset holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypeAlias

from aiodata.engine.block import Block
from aiodata.engine.contents import checksum
from aiodata.options import Options

__all__ = [
    "AUTOTUNE",
    "INFINITE",
    "Plan",
    "Stage",
    "UNKNOWN",
    "detachable",
    "draws_seeds",
    "load_seeds",
    "merged_options",
    "needs_loop",
    "plan_of",
    "save_seeds",
    "seed_owners",
]

AUTOTUNE = -1
INFINITE = -1
UNKNOWN = -2
_NOTHING_SET = Options()

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
        opens_often: Opens its input several times at once, so that one that runs ahead cannot be begun anew by itself.
        makes_datasets: Opens datasets that a user's function makes.
        reads_ahead: Is a plain look-ahead, so that everything behind it may run on a loop of its own.
        options: Options that hold for this stage and those that it reads.
        seeds: The seed generator that this stage's dataset owns, if any, as `aiodata.random.Seeds`.
        spec: Gives the spec of the elements from those of the inputs, None where it is not known; see `aiodata.spec`.
        deterministic: For a stage that can give elements as they become ready: what it was told, None for the options'.
        rows: Rows that every element has along its first axis, where that is known without the spec.
        title: The user's own name for the stage, shown in `repr`.
        known: The spec itself, where it was settled when the stage was made.
        learned: The spec of an element that was looked at.
        contents: Values that tell the stage from others beside its label, such as arrays in memory; None for none.
    """

    name: str
    stage: Stage
    inputs: tuple[Plan, ...] = ()
    detail: str = ""
    count: Callable[..., int] = field(default=lambda *_: UNKNOWN, repr=False)
    resumes_by_cursor: bool = False
    waits: bool = False
    has_coroutines: bool = False
    opens_often: bool = False
    makes_datasets: bool = False
    reads_ahead: bool = False
    options: Options | None = None
    seeds: Any = None
    spec: Callable[..., Any] = field(default=lambda *_: None, repr=False)
    deterministic: bool | None = True
    rows: int | None = None
    title: str | None = None
    known: Any = None
    learned: list[Any] = field(default_factory=list, repr=False)
    contents: Any = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The stage in words: `batch(32)`."""
        return f"{self.name}({self.detail})"

    @cached_property
    def mark(self) -> str:
        """What tells the stage from others when a state is loaded: its label, and a checksum of its contents."""
        return self.label if self.contents is None else f"{self.label}, contents {checksum(self.contents)}"

    def cardinality(self) -> int:
        """Give the number of elements, `INFINITE` or `UNKNOWN`."""
        return self.count(*(source.cardinality() for source in self.inputs))

    def element_spec(self, seen: bool = False) -> Any:
        """Give the spec of all elements; None if it is not known.

        Args:
            seen: Where it is not known give what looking at an element has told, which need not hold for the others.
        """
        if self.known is not None:
            return self.known
        if seen and self.learned:
            return self.learned[0]
        return self.spec(*(source.element_spec(seen) for source in self.inputs))

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


def seed_owners(plan: Plan) -> list[Any]:
    """List the seed generators in the pipeline."""
    return [stage.seeds for stage in plan.walk() if stage.seeds is not None]


def draws_seeds(plan: Plan) -> bool:
    """Tell whether seed pairs may be drawn while the pipeline is read."""
    return any(stage.seeds is not None or stage.makes_datasets for stage in plan.walk())


def save_seeds(plan: Plan) -> list[Any]:
    """Give the state of every seed generator in the pipeline, as JSON."""
    return [owner.save() for owner in seed_owners(plan)]


def load_seeds(plan: Plan, saved: list[Any]) -> None:
    """Set every seed generator in the pipeline to a saved state."""
    for owner, state in zip(seed_owners(plan), saved, strict=True):
        owner.load(state)


def plan_of(dataset: object) -> Plan | None:
    """Give the plan of a dataset; None for anything else. Stages tell datasets by it: they do not know the class."""
    plan = getattr(dataset, "plan", None)
    return plan if isinstance(plan, Plan) else None


def merged_options(plan: Plan) -> Options:
    """Give the options of a pipeline: those of all its stages, later ones over earlier ones, field by field."""
    found: list[Options] = []
    waiting = [plan]
    while waiting:
        stage = waiting.pop()
        if stage.options is not None:
            found.append(stage.options)
        waiting.extend(stage.inputs)
    return reduce(Options.merge, reversed(found), _NOTHING_SET)


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
        if len(plan.inputs) != 1 or plan.opens_often:
            return None
        plan = plan.inputs[0]
