"""A peer's own process: it makes its pipeline, runs a pass that does not count, then one more for each line it gets.

    python -m benchmarks.passes WORKLOAD PEER FOLDER

Answers in lines of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import AsyncIterable, Iterable
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .workload import Elements, Peer, Workload

__all__ = ["load", "main"]


def load(name: str) -> Workload:
    """Import a workload by its name."""
    workload: Workload = importlib.import_module(f"benchmarks.workloads.{name}").WORKLOAD
    return workload


def main(name: str, peer: str, folder: str) -> None:
    """Serve passes until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    workload = load(name)
    chosen = workload.peers[peer]
    reason = _missing(chosen)
    if reason:
        print(json.dumps({"skipped": reason}), file=answers)
        return
    one_pass = chosen.make(Path(folder))
    print(json.dumps(_checked(workload, one_pass())), file=answers)
    for _ in sys.stdin:
        gc.collect()
        cpu, start = process_time(), perf_counter()
        rows = _drained(workload, one_pass())
        seconds = perf_counter() - start
        print(json.dumps({"seconds": seconds, "cpu": process_time() - cpu, "rows": rows}), file=answers)


def _missing(peer: Peer) -> str:
    for library in filter(None, peer.library.split(",")):
        try:
            found = importlib.util.find_spec(library) is not None
        except ModuleNotFoundError:  # the package that it is a part of
            found = False
        if not found:
            return f"{library} is not installed"
    return ""


def _checked(workload: Workload, elements: Elements) -> dict[str, Any]:
    rows, total = 0, 0.0

    def look(element: Any) -> None:
        nonlocal rows, total
        rows += workload.size(element)
        if workload.total is not None:
            total += float(workload.total(element))

    if isinstance(elements, Iterable):  # looked at first: a Dataset is both
        for element in elements:
            look(element)
    else:

        async def each() -> None:
            async for element in elements:
                look(element)

        asyncio.run(each())
    return {"rows": rows, "total": total}


def _drained(workload: Workload, elements: Elements) -> int:
    size, rows = workload.size, 0
    if isinstance(elements, Iterable):
        for element in elements:
            rows += size(element)
        return rows
    asynchronous: AsyncIterable[Any] = elements

    async def each() -> int:
        count = 0
        async for element in asynchronous:
            count += size(element)
        return count

    return asyncio.run(each())


if __name__ == "__main__":
    main(*sys.argv[1:])
