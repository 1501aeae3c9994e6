"""However a plain `for` ends, nothing of the iteration stays alive; Ctrl-C and the interpreter's exit are such ends.

The cycle collector is off, so that only references count.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset
from tests.engine.observing import FILES, KINDS, LINES, Line, Watch, endless, numbers, pipeline, slow
from tests.programs import Boom

pytestmark = pytest.mark.usefixtures("no_cycle_collector")
Scenario = Callable[[Dataset[Any]], None]


def leave_by_break(ds: Dataset[Any]) -> None:
    for _ in ds:
        break


def leave_by_error_in_the_body(ds: Dataset[Any]) -> None:
    try:
        for _ in ds:
            raise Boom(0)
    except Boom:
        return
    raise AssertionError("the body's error was lost")


def leave_by_ctrl_c_in_the_body(ds: Dataset[Any]) -> None:
    try:
        for _ in ds:
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return
    raise AssertionError("the interrupt was lost")


def leave_with_early(ds: Dataset[Any]) -> None:
    with ds.iterate() as iterator:
        for _ in iterator:
            return


def leave_with_by_an_error(ds: Dataset[Any]) -> None:
    try:
        with ds.iterate() as iterator:
            next(iterator)
            raise Boom(1)
    except Boom:
        return
    raise AssertionError("the body's error was lost")


def leave_with_unused(ds: Dataset[Any]) -> None:
    with ds.iterate():
        pass


def close_it(ds: Dataset[Any]) -> None:
    iterator = ds.iterate()
    for _ in range(3):
        next(iterator)
    iterator.close()
    iterator.close()


def close_unused(ds: Dataset[Any]) -> None:
    ds.iterate().close()


def drop_it(ds: Dataset[Any]) -> None:
    iterator = iter(ds)
    next(iterator)
    next(iterator)
    del iterator


def drop_unused(ds: Dataset[Any]) -> None:
    iterator = iter(ds)
    del iterator


def close_in_another_thread(ds: Dataset[Any]) -> None:
    iterator = iter(ds)
    next(iterator)
    thread = threading.Thread(target=iterator.close)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


SCENARIOS: list[Scenario] = [
    leave_by_break,
    leave_by_error_in_the_body,
    leave_by_ctrl_c_in_the_body,
    leave_with_early,
    leave_with_by_an_error,
    leave_with_unused,
    close_it,
    close_unused,
    drop_it,
    drop_unused,
    close_in_another_thread,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_left_iterator_leaves_nothing(
    scenario: Scenario, kind: str, folder: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    scenario(endless(folder, kind))
    assert watch.left() == []


@pytest.mark.parametrize("kind", KINDS)
def test_exhaustion_gives_every_line_and_leaves_nothing(
    kind: str, folder: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    texts = {line.text for line in pipeline(folder, kind)}
    assert watch.left() == []
    assert len(texts) == FILES * LINES


@pytest.mark.parametrize("end", ["close", "exhaust"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_ended_iterator_that_is_still_held_holds_no_element(kind: str, end: str, folder: Path) -> None:
    iterator = pipeline(folder, kind).iterate()
    next(iterator)
    if end == "close":
        iterator.close()
    else:
        assert sum(1 for _ in iterator) == FILES * LINES - 1
    assert [line.text for line in Line.alive] == []
    with pytest.raises(StopIteration):
        next(iterator)


def test_a_stepped_iterator_that_is_dropped_leaves_no_element() -> None:
    def lines() -> Iterator[Line]:
        for number in numbers():
            yield Line(b"%d" % number)

    for _ in Dataset.from_generator(lines).shuffle(10).map(lambda line: line):
        break
    del _
    assert [line.text for line in Line.alive] == []


def _interrupt_when(entered: threading.Event, gate: threading.Event) -> threading.Thread:
    """Send Ctrl-C once the pipeline is stuck, and let its thread go on a moment later."""

    def work() -> None:
        entered.wait(10)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        gate.set()  # a running call in a thread is waited for

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_during_a_waiting_next_leaves_nothing(
    kind: str, folder: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    entered, gate = threading.Event(), threading.Event()

    def stuck(line: Line) -> Line:
        entered.set()
        gate.wait(10)
        return slow(line)

    async def stuck_coroutine(line: Line) -> Line:
        entered.set()
        await asyncio.Event().wait()
        return line

    thread = _interrupt_when(entered, gate)
    interrupted = False
    try:
        for _ in pipeline(folder, kind, stuck if kind == "threads" else stuck_coroutine):
            raise AssertionError("an element came through")
    except KeyboardInterrupt:
        interrupted = True
    thread.join(30)
    assert interrupted
    del thread
    watch.nothing_left_soon(seconds=1)


def test_after_ctrl_c_the_source_is_not_read_any_further() -> None:
    read: list[int] = []
    under_way = threading.Event()

    def source() -> Iterator[int]:
        for number in numbers():
            read.append(number)
            if number == 50:
                under_way.set()
            yield number

    thread = _interrupt_when(under_way, threading.Event())
    try:
        for _ in Dataset.from_generator(source).prefetch(4):
            pass
    except KeyboardInterrupt:
        count = len(read)
    thread.join(30)
    time.sleep(0.05)
    assert len(read) == count
    assert list(Dataset.range(3).prefetch(1)) == [0, 1, 2]


PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.engine.observing import endless

ds = endless(Path(sys.argv[1]), sys.argv[2])
held = None

async def main():
    global held
    held = aiter(ds)
    await anext(held)

if sys.argv[3] == "async":
    asyncio.run(main())
else:
    held = iter(ds)
    next(held)
"""


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_iterator_left_open_does_not_disturb_the_exit(kind: str, face: str, strict: bool, folder: Path) -> None:
    flags = ["-W", "error", "-X", "dev"] if strict else []
    done = subprocess.run(
        [sys.executable, *flags, "-c", PROGRAM, str(folder), kind, face],
        capture_output=True,
        text=True,
        timeout=25,
        cwd=Path(__file__).parents[2],
    )
    # asyncio's debug mode reports steps of more than 0.1 s, which a busy machine makes of any
    noise = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert (done.returncode, done.stdout, noise) == (0, "", [])
