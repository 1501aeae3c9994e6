"""Let peers take turns, each in a process of its own that lives for all rounds."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .workload import Peer, Target, Workload

__all__ = ["Measured", "Results", "data_folder", "measure", "served"]


@dataclass
class Measured:
    """A peer's passes.

    Args:
        peer: Whose.
        seconds: Of each pass that counts.
        cpu: Seconds of processor time of its own process, all threads, for each pass.
        skipped: Why there are none.
    """

    peer: Peer
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    skipped: str = ""

    @property
    def median(self) -> float:
        """Seconds of a pass."""
        return median(self.seconds)


@dataclass
class Results:
    """What became of a workload's peers."""

    workload: Workload
    peers: dict[str, Measured]

    def ratio(self, ours: str, other: str) -> float:
        """Say how many times as long the other one took: the median of the ratios within rounds."""
        pairs = zip(self.peers[ours].seconds, self.peers[other].seconds, strict=True)
        return median(theirs / mine for mine, theirs in pairs)

    def reached(self, target: Target) -> tuple[float, str] | None:
        """Give the ratio that a target asks for and who was the fastest of the others; None if none was measured."""
        if not self.peers[target.ours].seconds:
            return None
        others = [
            name
            for name, found in self.peers.items()
            if found.seconds
            and (name.startswith(target.beside) if found.peer.kind != "ours" else name in target.beside)
            and name != target.ours
        ]
        return min(((self.ratio(target.ours, name), name) for name in others), default=None)


def data_folder(workload: Workload) -> Path:
    """Give the folder with a workload's data, which is made once and kept in the system's temporary folder."""
    folder = Path(tempfile.gettempdir()) / f"aiodata-benchmarks-{os.getuid()}" / workload.name
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        workload.prepare(folder)
        (folder / "complete").touch()
    return folder


@contextlib.contextmanager
def served(workload: Workload, folder: Path) -> Iterator[dict[str, str]]:
    """Run the workload's server, if it has one; give the environment for its peers."""
    # One thread for torch's own arithmetic: with more, its threads wait for each other by spinning, which costs it up
    # to ten times as much where something else runs.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    if workload.serves is None:
        yield environment
        return
    with subprocess.Popen(workload.serves(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield {**environment, "AIODATA_BENCHMARK_SERVER": server.stdout.readline().strip()}
        finally:
            server.stdin.close()


def measure(workload: Workload, rounds: int, only: str = "") -> Results:
    """Time each peer once a round; who begins changes from round to round.

    Args:
        workload: What to measure.
        rounds: Passes that count.
        only: Leaves out the peers whose names do not have one of these parts, separated by commas, in them.
    """
    folder = data_folder(workload)
    wanted = [
        peer for name, peer in workload.peers.items() if not only or any(part in name for part in only.split(","))
    ]
    results = Results(workload, {peer.name: Measured(peer) for peer in wanted})
    with served(workload, folder) as environment, contextlib.ExitStack() as stack:
        running: dict[str, _Running] = {}
        totals: dict[str, float] = {}
        for peer in wanted:
            process = stack.enter_context(_started(workload, peer, folder, environment))
            answer = process.ask(peer)
            if "skipped" in answer:
                results.peers[peer.name].skipped = answer["skipped"]
                continue
            _check_rows(workload, peer, answer)
            running[peer.name], totals[peer.name] = process, answer["total"]
        _check_totals(totals)
        names = list(running)
        for number in range(rounds):
            turn = number % max(1, len(names))
            for name in names[turn:] + names[:turn]:
                answer = running[name].ask(workload.peers[name], "go")
                _check_rows(workload, workload.peers[name], answer)
                results.peers[name].seconds.append(answer["seconds"])
                results.peers[name].cpu.append(answer["cpu"])
    return results


@dataclass
class _Running:
    """A peer's process and what it has written to its standard error."""

    process: Any
    errors: Any

    def ask(self, peer: Peer, request: str = "") -> dict[str, Any]:
        """Send a line, if there is one, and read the answer."""
        if request:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise SystemExit(f"{peer.name} ended with status {self.process.returncode}:\n{self.errors.read()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def _started(workload: Workload, peer: Peer, folder: Path, environment: dict[str, str]) -> Iterator[_Running]:
    command = [sys.executable, "-m", "benchmarks.passes", workload.name, peer.name, str(folder)]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        try:
            yield _Running(process, errors)
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:  # some libraries' threads do not end
                process.kill()


def _check_rows(workload: Workload, peer: Peer, answer: dict[str, Any]) -> None:
    if answer["rows"] != workload.rows:
        raise SystemExit(f"{workload.name}: {peer.name} gave {answer['rows']} rows, not {workload.rows}")


def _check_totals(totals: dict[str, float]) -> None:
    """See that all peers computed the same."""
    middle = median(totals.values()) if totals else 0.0
    for name, total in totals.items():
        if abs(total - middle) > 1e-3 * abs(middle) + 1e-6:
            raise SystemExit(f"{name} gave other values: their sum is {total}, not {middle}")
