"""Counters of a running pipeline, a set a stage; updated a block at a time, never an element at a time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Counters", "Statistics", "check_statistics"]


@dataclass
class Counters:
    """What one stage did in this run.

    Args:
        stage: The stage's label; with a number where another stage had it before.
        elements: Elements that went through its channel or pool, or were read by a source; the number of the
            pipeline's own outputs for the iterator's entry.
        blocks: Blocks of those elements.
        waits: How often its reader found nothing ready.
        parallelism: Calls or readers that may run at once; 0 where nothing runs beside the pipeline.
        grain: Elements in one hand-over to a worker pool.
        capacity: Elements that may wait in its channel.
        bytes_read: Bytes read from storage.
        requests: Requests to remote storage and servers, each attempt counted.
        retries: Those that repeated what had failed.
        errors: Elements that failed and were left out.
    """

    stage: str
    elements: int = 0
    blocks: int = 0
    waits: int = 0
    parallelism: int = 0
    grain: int = 0
    capacity: int = 0
    bytes_read: int = 0
    requests: int = 0
    retries: int = 0
    errors: int = 0


class Statistics:
    """The counters of all stages of a run, in the order in which the stages were first opened."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, Hashable], Counters] = {}
        self._numbers: dict[str, int] = {}

    def counters(self, stage: str, function: Hashable | None = None) -> Counters:
        """Give the counters of the stage with this label, which stages with equal labels share.

        Args:
            stage: The label.
            function: What tells stages with equal labels apart, such as the code of their functions.
        """
        found = self._counters.get((stage, function))
        if found is None:
            number = self._numbers[stage] = self._numbers.get(stage, 0) + 1
            found = Counters(stage if number == 1 else f"{stage} {number}")
            self._counters[stage, function] = found
        return found

    def as_list(self) -> list[dict[str, Any]]:
        """Give the counters as plain dictionaries, leaving out what is 0."""
        return [
            {key: value for key, value in asdict(counters).items() if value} for counters in self._counters.values()
        ]


def check_statistics(value: Any, argument: str) -> list[dict[str, Any]]:
    """Give a copy of what an iterator's `statistics()` gave.

    Raises:
        ValueError: It is not that; names the entry.
    """
    for entry in value:
        if not isinstance(entry, dict) or not isinstance(entry.get("stage"), str):
            raise ValueError(f"{argument} must be what statistics() gave, not a list with {entry!r:.80}")
        for name in ("parallelism", "capacity"):
            number = entry.get(name, 1)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"{argument}: {name} of {entry['stage']!r} must be at least 1, not {number!r}")
    return [dict(entry) for entry in value]
