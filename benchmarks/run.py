"""Run the benchmarks and print a Markdown table.

    python benchmarks/run.py [names...] [--rounds N] [--check]

Every benchmark runs in a process of its own, and within it the competitors take turns, round by round. A ratio is the
median of the ratios within the rounds: what else the machine does hits both sides of it.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from measuring import Row

NAMES = {
    "overhead": "overhead",
    "memory": "memory",
    "lines": "lines",
    "hand-over": "hand_over",
    "import": "import_time",
    "flights": "flights",
    "memory-use": "memory_use",
    "states": "states",
    "remote": "remote",
    "stages": "stages",
    "formats": "formats",
    "memory-formats": "memory_formats",
}


def main() -> int:
    """Run what the command line asks for; give 1 if a limit is to be checked and does not hold."""
    parser = argparse.ArgumentParser(description="Measure aiodata beside plain Python loops.")
    parser.add_argument("names", nargs="*", help=f"which of them: {', '.join(NAMES)}; all by default")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count (7)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument(
        "--json", action="store_true", help="print the rows of one benchmark as JSON, run in this process"
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"no benchmark {name!r}; there are {', '.join(NAMES)}")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.json:
        (name,) = arguments.names
        print(json.dumps(_measured(name, arguments.rounds)))
        return 0
    print(_heading(arguments.rounds))
    missed = []
    tables: dict[str, dict[str, list[Row]]] = {}
    for name in arguments.names or NAMES:
        command = [sys.executable, __file__, name, "--json", "--rounds", str(arguments.rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for fields in json.loads(done.stdout):
            row = Row(**fields)
            if row.is_missed:
                missed.append(": ".join(filter(None, [name, row.stage, row.what])))
            if row.stage:
                tables.setdefault(name, {}).setdefault(row.stage, []).append(row)
            else:
                print(_line(name, row), flush=True)
    for name, stages in tables.items():
        print("\n" + "\n".join(_stage_lines(name, stages)))
    if missed:
        print(f"\nLimits missed: {'; '.join(missed)}.")
    return 1 if missed and arguments.check else 0


def _measured(name: str, rounds: int) -> list[dict[str, object]]:
    sys.path.append(str(Path(__file__).parent.parent))  # behind an installed aiodata
    return [asdict(row) for row in importlib.import_module(NAMES[name]).measure(rounds)]


def _heading(rounds: int) -> str:
    import numpy as np

    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, "
        f"numpy {np.__version__}, {_cpu()}, {os.cpu_count()} cores{load}; median of {rounds} rounds (import: best), "
        "ratios within rounds.\n\n"
        "| benchmark | what | figure | lowest to highest | unit | ratio | beside | limit | holds |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _line(name: str, row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    limit = "" if row.limit is None else f"{row.limit:g}" + ("x" if row.ratio is not None else f" {row.unit}")
    holds = "" if row.limit is None else "**no**" if row.is_missed else "yes"
    spread = f"{_number(min(row.figures))} to {_number(max(row.figures))}"
    cells = [name, row.what, _number(row.figure), spread, row.unit, ratio, row.beside, limit, holds]
    return "| " + " | ".join(cells) + " |"


def _stage_lines(name: str, stages: dict[str, list[Row]]) -> list[str]:
    """Make a table with a line for each stage: each competitor's figure, and how many times as long the ratio says."""
    names = list(dict.fromkeys(row.what for rows in stages.values() for row in rows))
    unit = next(iter(stages.values()))[0].unit
    lines = [f"| {name}, {unit} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for stage, rows in stages.items():
        ratios = {row.what: "" if row.ratio is None else f" ({row.ratio:.1f}x)" for row in rows}
        figures = {row.what: _number(row.figure) + ratios[row.what] for row in rows}
        lines.append("| " + " | ".join([stage, *(figures.get(name, "") for name in names)]) + " |")
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
