"""From nothing to the first batch and back: imports, first batch, memory, what an early stop leaves.

The textbook CSV chain of each library, in processes of their own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from benchmarks.measuring import Row, ratios
from benchmarks.parts.memory_use import resident
from benchmarks.passes import load
from benchmarks.rounds import data_folder

OURS, PLAIN = "aiodata, vectorized=True", "plain loop, batched"
MODULES = {
    PLAIN: "",
    OURS: "aiodata",
    "tf.data, textbook": "tensorflow",
    "tf.data, vectorised": "tensorflow",
    "torch DataLoader, 0 workers": "torch.utils.data",
    "torch DataLoader, 2 workers": "torch.utils.data",
    "Grain, threads": "grain",
    "SPDL, batched": "spdl.pipeline",
}
"""Peers of the workload "csv", and what a program that uses them imports."""
IMPORT_TRIES, IMPORT_SECONDS = 9, 0.15
BATCHES = 3
SAMPLE_SECONDS = 0.05
QUIET_SECONDS = 1.0
"""How long nothing must have ended any more for what is left to count as left over."""

IMPORT, FIRST, PEAK, STOP = "import beyond numpy, ms", "chain to first batch, ms", "peak of a pass, MB", "closing, ms"
LEFT = ("threads left", "processes left", "descriptors left")
_TIMED = """
import time, numpy
start = time.perf_counter()
{statement}
print(1e3 * (time.perf_counter() - start))
"""


def measure(rounds: int) -> list[Row]:
    """Start each peer three times a round: to import, to begin and stop, and for one whole pass."""
    peers = [name for name, module in MODULES.items() if not module or importlib.util.find_spec(module.split(".")[0])]
    found: dict[str, dict[str, list[float]]] = {name: {} for name in peers}
    for number in range(rounds):
        turn = number % len(peers)
        for name in peers[turn:] + peers[:turn]:
            one = {IMPORT: _import(MODULES[name]) if MODULES[name] else 0.0, PEAK: _peak(name)}
            one |= json.loads(_run(_own("early", name)).stdout)
            for what, figure in one.items():
                found[name].setdefault(what, []).append(figure)
    rows = [Row(what, each[what], "each in its own", stage=name) for name, each in found.items() for what in each]
    return _imports(rounds) + _targets(found) + rows


def _imports(rounds: int) -> list[Row]:
    """Import in fresh processes, in turn; the best of 9 or more counts."""
    seconds: dict[str, list[float]] = {"asyncio": [], "aiodata": []}
    for _ in range(max(IMPORT_TRIES, rounds)):
        for module, each in seconds.items():
            each.append(_import(module) / 1e3)
    limits = {"aiodata": IMPORT_SECONDS}
    return [
        Row(f"{module} beyond numpy", each, "s", limit=limits.get(module), take="best")
        for module, each in seconds.items()
    ]


def _targets(found: dict[str, dict[str, list[float]]]) -> list[Row]:
    """Hold aiodata beside the best of some others."""
    wanted = [
        (IMPORT, "tf.data", 0.1),
        (IMPORT, "", 1),
        (FIRST, "tf.data", 1),
        (FIRST, "", 1),
        (PEAK, "tf.data", 0.1),
        (PEAK, "", 1),
        (PEAK, PLAIN, 1.5),
    ]
    rows = []
    for what, beside, limit in wanted:
        others = [name for name in found if name != OURS and (name.startswith(beside) if beside else name != PLAIN)]
        if others:
            best = min(others, key=lambda name: median(found[name][what]))
            ours, (name, unit) = found[OURS][what], what.rsplit(", ", 1)
            rows.append(Row(f"{OURS}: {name}", ours, unit, best, ratios(ours, found[best][what]), limit))
    return rows


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=_environment())


def _environment() -> dict[str, str]:
    """Have the same package in each process as the other benchmarks measure, wherever they are started."""
    spec = importlib.util.find_spec("aiodata")
    assert spec is not None
    assert spec.origin is not None
    paths = [str(Path(spec.origin).parents[1]), str(Path(__file__).parents[2])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TF_CPP_MIN_LOG_LEVEL": "3"}


def _import(module: str) -> float:
    code = _TIMED.format(statement=f"import {module}")
    return float(_run([sys.executable, "-P", "-c", code]).stdout.splitlines()[-1])


def _own(what: str, peer: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.parts.start", what, peer, str(data_folder(load("csv")))]


# Memory of a process and those that it starts


def _peak(peer: str) -> float:
    """Give what one pass takes: the peak of the process, and the most that others of its own hold beside it."""
    beside = 0.0
    with subprocess.Popen(_own("pass", peer), stdout=subprocess.PIPE, text=True, env=_environment()) as process:
        assert process.stdout is not None
        while process.poll() is None:
            beside = max(beside, sum(map(_private, _descendants(process.pid))))
            sleep(SAMPLE_SECONDS)
        if process.returncode:
            raise SystemExit(f"{peer}: ended with status {process.returncode}")
        return float(process.stdout.read()) + beside


def _descendants(process: int) -> set[int]:
    """Find the processes that a process has started, and those that they have; none where there is no /proc."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    news = {process}
    while news:
        news = {each for each, parent in parents.items() if parent in news} - found
        found |= news
    return found


def _private(process: int) -> float:
    """Give the memory that a process shares with no other, in MB: what it has from its parent is counted there."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1e3


# What runs in a peer's own process


def _pass(peer: str, folder: Path) -> float:
    for _ in load("csv").peers[peer].make(folder)():
        pass
    return resident()[0]


def _early(peer: str, folder: Path) -> dict[str, float]:
    """Take three batches and stop."""
    if MODULES[peer]:
        importlib.import_module(MODULES[peer])
    make: Any = load("csv").peers[peer].make
    gc.collect()
    gc.freeze()  # the collection below is the pipeline's
    before = _held()
    start = perf_counter()
    one_pass = make(folder)
    batches = iter(one_pass())
    next(batches)
    first = perf_counter() - start
    for _ in range(BATCHES - 1):
        next(batches)
    start = perf_counter()
    del batches, one_pass
    gc.collect()
    closed, left = perf_counter(), _held()
    while left != before and perf_counter() - closed < QUIET_SECONDS:
        sleep(0.001)
        now = _held()
        if now != left:
            closed, left = perf_counter(), now
    more = (max(0, now - then) for now, then in zip(left, before, strict=True))
    return {FIRST: 1e3 * first, STOP: 1e3 * (closed - start), **dict(zip(LEFT, map(float, more), strict=True))}


def _held() -> tuple[int, int, int]:
    """Count the threads, processes and descriptors of this process; 0 where the system does not tell."""
    threads = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0
    descriptors = len(os.listdir("/dev/fd")) if os.path.exists("/dev/fd") else 0
    return threads, len(_descendants(os.getpid())), descriptors


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    what, peer, folder = sys.argv[1:]
    answer = _pass(peer, Path(folder)) if what == "pass" else _early(peer, Path(folder))
    print(json.dumps(answer), file=answers, flush=True)
