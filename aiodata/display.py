"""How a dataset is shown: the chain of its stages, a line each, with what is known of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiodata.spec import spec_text

if TYPE_CHECKING:
    from aiodata.engine.plan import Plan

__all__ = ["chain_lines"]

MOST_INPUTS = 8


def chain_lines(plan: Plan) -> list[str]:
    r"""Show a pipeline, a line a stage, sources first; where a stage reads several, each begins with a dash.

    >>> import aiodata
    >>> numbers = aiodata.Dataset.range(3)
    >>> print(*chain_lines(numbers.zip(numbers, numbers.map(abs)).batch(2).plan), sep="\n")
    - range(0, 3, 1): int64
    - range(0, 3, 1): int64
      map(abs): ?
    zip(): ?
    batch(2): ?
    """
    lines: list[str] = []
    while True:
        title = "" if plan.title is None else f" {plan.title!r}"
        lines.append(f"{plan.label}{title}: {spec_text(plan.element_spec(seen=True))}")
        if len(plan.inputs) != 1:
            break
        plan = plan.inputs[0]
    lines.reverse()
    inputs: list[str] = []
    for source in plan.inputs[:MOST_INPUTS]:
        first, *others = chain_lines(source)
        inputs += [f"- {first}", *(f"  {line}" for line in others)]
    if len(plan.inputs) > MOST_INPUTS:
        inputs.append(f"- ... {len(plan.inputs) - MOST_INPUTS} more")
    return inputs + lines
