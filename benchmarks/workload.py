"""Declare what is measured: a workload, the peers that do it, and the targets."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

__all__ = ["Elements", "Pass", "Peer", "Target", "Workload", "rows_of_first"]

Elements: TypeAlias = "Iterable[Any] | AsyncIterable[Any]"
Pass: TypeAlias = "Callable[[], Elements]"
"""Gives the elements of one more pass, from the beginning; what it does once for all is done before."""


def rows_of_first(element: Any) -> int:
    """Count the rows of a batch by its first component."""
    while isinstance(element, (tuple, list, dict)):
        element = next(iter(element.values())) if isinstance(element, dict) else element[0]
    return len(element)


@dataclass(frozen=True)
class Peer:
    """One way to do the work.

    Args:
        name: As the table shows it.
        make: Takes the folder with the data and gives a pass.
        library: What must be installed, by its import name.
        kind: "ours", "peer", or "limit": a loop without a pipeline.
    """

    name: str
    make: Callable[[Path], Pass]
    library: str = ""
    kind: str = "peer"


@dataclass(frozen=True)
class Target:
    """How many times as fast as the fastest of some others one of ours is to be.

    Args:
        ours: A peer's name.
        beside: Names of others; those that are not measured are left out.
        least: The ratio that is wanted.
        what: The others in words.
    """

    ours: str
    beside: tuple[str, ...]
    least: float
    what: str


@dataclass
class Workload:
    """Something that people do with an input pipeline.

    Args:
        name: As on the command line.
        title: What is done, in a line.
        rows: Rows that each pass must give.
        prepare: Makes the data in an empty folder.
        unit: What one row is.
        size: Counts the rows of an element.
        total: Gives a number that depends on an element's values, whatever the order of rows; passes of all peers
            must agree on the sum. It is only asked in the pass that does not count.
        serves: Gives a command that is to run beside the peers; it prints one line, which comes to them as the
            environment variable `AIODATA_BENCHMARK_SERVER`, and ends when its input does.
    """

    name: str
    title: str
    rows: int
    prepare: Callable[[Path], None] = lambda folder: None
    unit: str = "row"
    size: Callable[[Any], int] = rows_of_first
    total: Callable[[Any], float] | None = None
    serves: Callable[[Path], list[str]] | None = None
    peers: dict[str, Peer] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)

    def ours(self, name: str) -> Callable[[Callable[[Path], Pass]], Callable[[Path], Pass]]:
        """Declare one of aiodata's ways."""
        return self._declare(name, "aiodata", "ours")

    def peer(self, name: str, library: str) -> Callable[[Callable[[Path], Pass]], Callable[[Path], Pass]]:
        """Declare another library's way."""
        return self._declare(name, library, "peer")

    def limit(self, name: str, library: str = "") -> Callable[[Callable[[Path], Pass]], Callable[[Path], Pass]]:
        """Declare a loop without a pipeline."""
        return self._declare(name, library, "limit")

    def target(self, ours: str, beside: str | tuple[str, ...], least: float, what: str = "") -> None:
        """Declare how many times as fast as the fastest of others one of ours is to be.

        Args:
            ours: Its name.
            beside: Names of others, or how they begin when there are many, such as "tf.data".
            least: The ratio.
            what: The others in words; their names by default.
        """
        wanted = (beside,) if isinstance(beside, str) else beside
        self.targets.append(Target(ours, wanted, least, what or " / ".join(wanted)))

    def _declare(
        self, name: str, library: str, kind: str
    ) -> Callable[[Callable[[Path], Pass]], Callable[[Path], Pass]]:
        def declared(make: Callable[[Path], Pass]) -> Callable[[Path], Pass]:
            assert name not in self.peers, name
            self.peers[name] = Peer(name, make, library, kind)
            return make

        return declared
