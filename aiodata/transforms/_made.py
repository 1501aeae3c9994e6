"""How a dataset that a user's function makes is told from another, when a state is restored."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from aiodata.errors import StateError

if TYPE_CHECKING:
    from aiodata.engine.plan import Plan

__all__ = ["check_made", "stages_checksum", "stages_of"]


def stages_of(plan: Plan) -> tuple[str, ...]:
    """Give the names and arguments of a dataset's stages; they do not hold the dataset."""
    return tuple([text for stage in plan.walk() for text in (stage.name, stage.detail)])


def stages_checksum(stages: tuple[str, ...]) -> int:
    """Give a number that tells stages from others; 0 if there are none, for the function failed."""
    return crc32(repr(stages).encode("utf-8", "surrogatepass")) if stages else 0


def check_made(plan: Plan, saved: int, label: str) -> None:
    """Make sure that a function has made the same dataset as when a state was saved.

    Args:
        plan: The dataset that it makes now.
        saved: The checksum of the stages that it made then.
        label: The stage that calls it, for the error.

    Raises:
        StateError: It has not.
    """
    if saved and saved != stages_checksum(stages_of(plan)):
        raise StateError(
            f"the state is of another pipeline: in {label}, the function made another dataset; now its stages are "
            f"{', '.join(stage.label for stage in plan.walk())}"
        )
