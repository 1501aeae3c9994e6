"""What `import aiodata` adds to `import numpy`."""

from __future__ import annotations

import subprocess
import sys

from measuring import Row

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
    for _ in range(max(TRIES, rounds)):
        for name, (before, module) in wanted.items():
            code = _TIMED.format(before=before, name=module)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            found[name].append(float(done.stdout))
    return [
        Row(name, figures, "s", limit=LIMIT_SECONDS if "aiodata" in name else None, take="best")
        for name, figures in found.items()
    ]
