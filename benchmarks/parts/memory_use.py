"""Memory: whether it stays flat from epoch to epoch, and what reading many remote objects at once takes."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import Row
from benchmarks.passes import load
from benchmarks.rounds import data_folder, served

EPOCHS = 5
REMOTE = "records: aiodata, interleave, for"
_OWN = Path(__file__).parent


def measure(rounds: int) -> list[Row]:
    """Run five epochs of each competitor in a process of its own; the median of the rounds counts."""
    figures: dict[str, list[list[float]]] = {name: [] for name in ("numpy", "plain", "chain", "stepped")}
    for _ in range(min(rounds, 3)):
        for name, found in figures.items():
            done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
    words = {
        "numpy": "import numpy",
        "plain": "plain loop with csv",
        "chain": "aiodata, flights chain, for",
        "stepped": "aiodata, shuffle and batch in memory, for",
    }
    rows = []
    for name, found in figures.items():
        peaks = [one[0] for one in found]
        rows.append(Row(f"{words[name]}: peak", peaks, "MB"))
        if name != "numpy":
            growth = [one[-1] - one[2] for one in found]
            rows.append(Row(f"{words[name]}: growth from epoch 2 to {EPOCHS}", growth, "MB"))
    return [*rows, _remote(rounds)]


def _remote(rounds: int) -> Row:
    """Read remote objects in fresh processes; how much more memory that takes than the imports."""
    from aiodata.storage.transfer.download import MEMORY_BYTES
    from aiodata.transforms._parallel_cycle import AHEAD_BYTES
    from benchmarks.workloads.remote import AT_ONCE

    command = [sys.executable, __file__, "remote"]
    workload = load("remote")
    with served(workload, data_folder(workload)) as environment:
        peaks = [
            float(subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout)
            for _ in range(min(rounds, 3))
        ]
    most = MEMORY_BYTES + AT_ONCE * AHEAD_BYTES  # what the network may hold, and what interleave may
    return Row(f"remote, {REMOTE}: peak", peaks, "MB", limit=most / 1e6)


def _remote_peak() -> float:
    import aiohttp  # noqa: F401 - imported before memory is measured

    elements = load("remote").peers[REMOTE].make(Path())
    before = resident()[0]
    for _ in elements():  # type: ignore[union-attr]
        pass
    return resident()[0] - before


def resident() -> tuple[float, float]:
    """Give the peak and the present resident memory of this process, in MB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:  # no /proc: only the peak is known, in bytes on macOS
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        return peak, peak
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["VmHWM"].split()[0]) / 1e3, int(fields["VmRSS"].split()[0]) / 1e3


def _work(name: str) -> list[float]:
    """Run the epochs; give the peak and the memory after each epoch."""
    after = []
    if name == "numpy":
        import numpy  # noqa: F401 - its memory is what is measured
    else:
        from benchmarks.measuring import drain
        from benchmarks.parts import flights

        dataset = flights.chain() if name == "chain" else _in_memory() if name == "stepped" else None
        for _ in range(EPOCHS):
            drain(flights.by_hand() if dataset is None else dataset)
            gc.collect()
            after.append(resident()[1])
    return [resident()[0], *after]


def _in_memory() -> object:
    import numpy as np

    from aiodata import Dataset

    return Dataset.from_tensor_slices(np.zeros((100_000, 16), np.float32)).shuffle(10_000).batch(256)


if __name__ == "__main__":
    sys.path.append(str(_OWN.parent))
    print(json.dumps(_remote_peak() if sys.argv[1] == "remote" else _work(sys.argv[1])))
