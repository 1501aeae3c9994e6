"""Tables of results, in Markdown and in JSON."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .rounds import Results

__all__ = ["as_json", "heading", "number", "peers_table", "targets_table"]


def heading(rounds: int) -> str:
    """Say when, where and how often."""
    import numpy as np

    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, "
        f"numpy {np.__version__}, {_cpu()}, {os.cpu_count()} cores{load}; median of {rounds} rounds, "
        "ratios within rounds."
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def peers_table(results: Results) -> str:
    """Give a line for each peer, the fastest first: time for a row, and how many times as long as aiodata's first."""
    workload = results.workload
    firsts: dict[str, str] = {}
    # The first of ours in each group; a name may begin with its group and a colon.
    for name, one in results.peers.items():
        if one.peer.kind == "ours" and one.seconds:
            firsts.setdefault(_group(name), name)
    lines = [
        f"| {workload.name} | us/{workload.unit} | best | processor us/{workload.unit} | aiodata is faster by |",
        "|---|---|---|---|---|",
    ]
    done = [one for one in results.peers.values() if one.seconds]
    for one in sorted(done, key=lambda one: one.median):
        first = firsts.get(_group(one.peer.name), "")
        name = f"*{one.peer.name}*" if one.peer.kind == "limit" else one.peer.name
        name = f"**{name}**" if one.peer.kind == "ours" else name
        ratio = f"{results.ratio(first, one.peer.name):.2f}x" if first and one.peer.kind != "ours" else ""
        figures = (one.median, min(one.seconds), median(one.cpu))
        cells = [number(figure / workload.rows * 1e6) for figure in figures]
        lines.append("| " + " | ".join([name, *cells, ratio]) + " |")
    skipped = [one for one in results.peers.values() if one.skipped]
    lines += [f"| {one.peer.name} | skipped: {one.skipped} | | | |" for one in skipped]
    return "\n".join(lines)


def _group(name: str) -> str:
    return name.partition(": ")[0] if ": " in name else ""


def targets_table(found: list[Results]) -> str:
    """Give a line for each target: what is wanted and what was reached."""
    lines = ["| workload | aiodata | beside | wanted | reached |", "|---|---|---|---|---|"]
    for results in found:
        for target in results.workload.targets:
            if target.ours not in results.peers or (reached := results.reached(target)) is None:
                continue
            ratio, name = reached
            mark = "" if ratio >= target.least else " **no**"
            what = target.what if target.what == name else f"{target.what} ({name})"
            cells = [results.workload.name, target.ours, what, f"{target.least:g}x", f"{ratio:.2f}x{mark}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def as_json(results: Results) -> dict[str, Any]:
    """Give all figures of a workload."""
    return {
        "workload": results.workload.name,
        "title": results.workload.title,
        "rows": results.workload.rows,
        "peers": [
            {
                "name": one.peer.name,
                "kind": one.peer.kind,
                "seconds": one.seconds,
                "cpu_seconds": one.cpu,
                "skipped": one.skipped,
            }
            for one in results.peers.values()
        ],
    }


def number(value: float) -> str:
    """Write a number with three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
