"""Counters of a running pipeline, a set a stage; updated a block at a time, never an element at a time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Counters", "Statistics"]


@dataclass
class Counters:
    """What one stage did in this run.

    Args:
        stage: The stage's label.
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
        self._counters: dict[str, Counters] = {}

    def counters(self, stage: str) -> Counters:
        """Give the counters of the stage with this label; equal labels share them."""
        return self._counters.setdefault(stage, Counters(stage))

    def as_list(self) -> list[dict[str, Any]]:
        """Give the counters as plain dictionaries, leaving out what is 0."""
        return [
            {key: value for key, value in asdict(counters).items() if value} for counters in self._counters.values()
        ]
