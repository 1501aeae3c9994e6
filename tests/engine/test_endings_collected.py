"""An iterator that only the cycle collector finds, such as one that a traceback holds, ends as any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.observing import KINDS, write_files

PROGRAM = """
import asyncio, gc, os, sys, threading
from pathlib import Path
from aiodata import TextLineDataset
from tests.engine.observing import endless

folder, kind, face = sys.argv[1:]
gc.disable()
ds = TextLineDataset(os.path.join(folder, "0000.txt")) if kind == "file" else endless(Path(folder), kind)

def in_a_cycle(iterator):
    cycle = [iterator]
    cycle.append(cycle)

async def main():
    iterator = aiter(ds)
    await anext(iterator)
    in_a_cycle(iterator)
    del iterator
    gc.collect()
    for _ in range(200):
        if threading.active_count() == 1:
            break
        await asyncio.sleep(0.01)

if face == "async":
    asyncio.run(main())
else:
    iterator = iter(ds)
    next(iterator)
    in_a_cycle(iterator)
    del iterator
    gc.collect()
assert threading.active_count() == 1, threading.enumerate()
left = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
assert not [path for path in left if path.startswith(folder)], left
print("ended")
"""


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("kind", ["file", *KINDS])
def test_an_iterator_in_a_reference_cycle_is_ended_by_the_collector(kind: str, face: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), kind, face],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
