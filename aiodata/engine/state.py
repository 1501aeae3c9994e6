"""States: where an iterator stands, as JSON, and the check that a state belongs to a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiodata.errors import StateError

if TYPE_CHECKING:
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor

__all__ = ["cursor_of", "describe", "difference", "make_state"]

VERSION = 1


def make_state(plan: Plan, position: Cursor | None, seeds: list[Any]) -> dict[str, Any]:
    """Make the state of an iterator over `plan`.

    Args:
        plan: The pipeline.
        position: Cursor of the next element; None before the first one. At the end it is that of what would follow the
            last element: opening there finds the end again, and leaves seed generators as the end left them.
        seeds: The seed generators as they were before the iterator was opened.
    """
    return {"version": VERSION, "pipeline": describe(plan), "position": position, "seeds": seeds}


def cursor_of(state: Any, plan: Plan) -> Cursor | None:
    """Check a state and give its cursor.

    Raises:
        StateError: It is not a state, or one of another version or pipeline; the first difference is named.
    """
    if not isinstance(state, dict) or not {"version", "pipeline", "position", "seeds"} <= state.keys():
        raise StateError(f"this is not a saved state: {state!r:.80}")
    if state["version"] != VERSION:
        raise StateError(f"the state has version {state['version']!r}; this library reads version {VERSION}")
    saved = state["pipeline"]
    if not isinstance(saved, list):
        raise StateError(f"this is not a saved state: its pipeline is {saved!r:.80}")
    if (differs := difference(saved, describe(plan))) is not None:
        raise StateError(f"the state is of another pipeline: {differs}")
    position, seeds = state["position"], state["seeds"]
    owners = sum(stage.seeds is not None for stage in plan.walk())
    if not (position is None or (isinstance(position, list) and len(position) in (2, 3))):
        raise StateError(f"this is not a saved state: its position is {position!r:.80}")
    if not isinstance(seeds, list) or len(seeds) != owners:
        raise StateError(f"this is not a saved state: its seeds are {seeds!r:.80}")
    return position


def describe(plan: Plan) -> list[Any]:
    """Describe a pipeline as JSON, a line a stage, sources first; several inputs are lists of their own."""
    lines: list[Any] = []
    while True:
        lines.append(plan.mark)
        if len(plan.inputs) != 1:
            break
        plan = plan.inputs[0]
    lines.reverse()
    return [describe(source) for source in plan.inputs] + lines


def difference(saved: list[Any], own: list[Any]) -> str | None:
    """Say in words where the description of a saved pipeline first differs from that of this one; None: nowhere."""
    for number, (theirs, ours) in enumerate(zip(saved, own, strict=False)):
        if isinstance(theirs, list) and isinstance(ours, list):
            if (found := difference(theirs, ours)) is not None:
                return found
        elif theirs != ours:
            return f"stage {number} was {theirs}, here it is {ours}"
    if len(saved) == len(own):
        return None
    longer, where = (saved, "the saved pipeline") if len(saved) > len(own) else (own, "this pipeline")
    number = min(len(saved), len(own))
    return f"only {where} has stage {number}, {longer[number]}"
