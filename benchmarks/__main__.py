"""Run the benchmarks and print Markdown tables.

`python -m benchmarks [--only NAMES] [--peers NAMES] [--rounds N] [--json FILE] [--check]`
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from .measuring import Row
from .passes import load
from .report import as_json, heading, number, peers_table, targets_table
from .rounds import Results, measure

WORKLOADS = ["csv", "tfrecord", "memory", "elements", "text", "remote", "images"]
PARTS = [
    "start",
    "overlap",
    "growth",
    "grains",
    "autotune",
    "processes",
    "lines",
    "flights",
    "memory_use",
    "states",
    "stages",
    "formats",
    "memory_formats",
]


def main() -> int:
    """Run what the command line asks for; give 1 if a limit is to be checked and does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure aiodata beside its peers and beside plain loops."
    )
    names = f"workloads: {', '.join(WORKLOADS)}; parts: {', '.join(PARTS)}"
    parser.add_argument("--only", default="", help=f"which of them, separated by commas; all by default. {names}")
    parser.add_argument("--peers", default="", help="parts of peers' names, separated by commas; all by default")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count (7)")
    parser.add_argument("--json", type=Path, help="also write all figures there")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target or limit is missed")
    parser.add_argument("--part", help=argparse.SUPPRESS)  # measured in this process; prints JSON
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.part:
        rows = import_module(f"benchmarks.parts.{arguments.part}").measure(arguments.rounds)
        print(json.dumps([asdict(row) for row in rows]))
        return 0
    wanted = arguments.only.split(",") if arguments.only else [*WORKLOADS, *PARTS]
    for name in wanted:
        if name not in WORKLOADS + PARTS:
            parser.error(f"no benchmark {name!r}; there are {', '.join(WORKLOADS + PARTS)}")
    print(heading(arguments.rounds), flush=True)
    found = []
    for name in wanted:
        if name in WORKLOADS:
            workload = load(name)
            print(f"\n{workload.title}\n", flush=True)
            found.append(measure(workload, arguments.rounds, arguments.peers))
            print(peers_table(found[-1]), flush=True)
    if found:
        print("\n" + targets_table(found), flush=True)
    rows = _parts([name for name in wanted if name in PARTS], arguments.rounds)
    if arguments.json:
        written = {"heading": heading(arguments.rounds), "workloads": list(map(as_json, found)), "parts": rows}
        arguments.json.write_text(json.dumps(written, indent=1))
    missed = _missed(found, rows)
    if missed:
        print(f"\nMissed: {'; '.join(missed)}.")
    return 1 if missed and arguments.check else 0


def _missed(found: list[Results], rows: dict[str, list[dict[str, Any]]]) -> list[str]:
    names = []
    for results in found:
        for target in results.workload.targets:
            reached = results.reached(target) if target.ours in results.peers else None
            if reached is not None and reached[0] < target.least:
                names.append(f"{results.workload.name}: {target.ours} beside {target.what}")
    for part, each in rows.items():
        names += [": ".join(filter(None, [part, row.stage, row.what])) for row in map(_row, each) if row.is_missed]
    return names


def _row(fields: dict[str, Any]) -> Row:
    return Row(**fields)


def _parts(names: list[str], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Measure parts, each in a process of its own, and print their tables."""
    if names:
        print(
            "\n| part | what | figure | lowest to highest | unit | ratio | beside | limit | holds |\n"
            "|---|---|---|---|---|---|---|---|---|"
        )
    found: dict[str, list[dict[str, Any]]] = {}
    tables: dict[str, dict[str, list[Row]]] = {}
    for name in names:
        command = [sys.executable, "-m", "benchmarks", "--part", name, "--rounds", str(rounds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[name] = json.loads(done.stdout)
        for row in map(_row, found[name]):
            if row.stage:
                tables.setdefault(name, {}).setdefault(row.stage, []).append(row)
            else:
                print(_line(name, row), flush=True)
    for name, stages in tables.items():
        print("\n" + "\n".join(_stage_lines(name, stages)))
    return found


def _line(name: str, row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    limit = "" if row.limit is None else f"{row.limit:g}" + ("x" if row.ratio is not None else f" {row.unit}")
    holds = "" if row.limit is None else "**no**" if row.is_missed else "yes"
    spread = f"{number(min(row.figures))} to {number(max(row.figures))}"
    cells = [name, row.what, number(row.figure), spread, row.unit, ratio, row.beside, limit, holds]
    return "| " + " | ".join(cells) + " |"


def _stage_lines(name: str, stages: dict[str, list[Row]]) -> list[str]:
    """Make a table with a line for each stage: each competitor's figure, and how many times as long the ratio says."""
    names = list(dict.fromkeys(row.what for rows in stages.values() for row in rows))
    unit = next(iter(stages.values()))[0].unit
    lines = [f"| {name}, {unit} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for stage, rows in stages.items():
        ratios = {row.what: "" if row.ratio is None else f" ({row.ratio:.1f}x)" for row in rows}
        figures = {row.what: number(row.figure) + ratios[row.what] for row in rows}
        lines.append("| " + " | ".join([stage, *(figures.get(name, "") for name in names)]) + " |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
