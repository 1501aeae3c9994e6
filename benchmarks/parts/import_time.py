"""What `import aiodata` adds to `import numpy`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import Row

TRIES = 9
LIMIT_SECONDS = 0.15
_TIMED = """
import time, {before}
start = time.perf_counter()
import {name}
print(time.perf_counter() - start)
"""


def measure(rounds: int) -> list[Row]:
    """Import in fresh processes, in turn; the best of 9 or more counts."""
    wanted = {"asyncio beyond numpy": ("numpy", "asyncio"), "aiodata beyond numpy": ("numpy", "aiodata")}
    found: dict[str, list[float]] = {name: [] for name in wanted}
    spec = importlib.util.find_spec("aiodata")
    assert spec is not None
    assert spec.origin is not None
    # -P and this: the same package as the other benchmarks measure, wherever they are started.
    environment = {**os.environ, "PYTHONPATH": str(Path(spec.origin).parent.parent)}
    for _ in range(max(TRIES, rounds)):
        for name, (before, module) in wanted.items():
            code = _TIMED.format(before=before, name=module)
            command = [sys.executable, "-P", "-c", code]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            found[name].append(float(done.stdout))
    return [
        Row(name, figures, "s", limit=LIMIT_SECONDS if "aiodata" in name else None, take="best")
        for name, figures in found.items()
    ]
