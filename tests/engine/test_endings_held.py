"""An iterator that has ended but is still held has let go of everything, and says so to whoever waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from aiodata.errors import EndedEarlyError
from tests.engine.observing import FILES, KINDS, LINES, Line, Watch, endless, pipeline, slow

pytestmark = pytest.mark.usefixtures("no_cycle_collector")


@pytest.mark.parametrize("kind", KINDS)
async def test_exhaustion_gives_every_line_and_leaves_nothing(
    kind: str, folder: Path, child_processes: Callable[[], dict[int, str]]
) -> None:
    watch = Watch(child_processes)
    texts = {line.text async for line in pipeline(folder, kind)}
    assert watch.left() == []
    assert len(texts) == FILES * LINES


@pytest.mark.parametrize("kind", KINDS)
async def test_a_closed_iterator_that_is_still_held_holds_no_element(kind: str, folder: Path) -> None:
    iterator = endless(folder, kind).iterate()
    for _ in range(5):
        await anext(iterator)
    await iterator.aclose()
    assert [line.text for line in Line.alive] == []
    with pytest.raises(StopAsyncIteration):
        await anext(iterator)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_finished_iterator_that_is_still_held_holds_no_element(kind: str, folder: Path) -> None:
    iterator = pipeline(folder, kind).iterate()
    count = 0
    async for _ in iterator:
        count += 1
    del _
    assert count == FILES * LINES
    assert [line.text for line in Line.alive] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_closing_while_another_task_waits_ends_that_wait_with_an_error(
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

    iterator = pipeline(folder, kind, stuck if kind == "threads" else stuck_coroutine).iterate()
    reader = asyncio.create_task(anext(iterator))
    while not entered.is_set():
        await asyncio.sleep(0.001)
    closer = asyncio.create_task(iterator.aclose())
    await asyncio.wait({reader}, timeout=30 if kind == "coroutines" else 0.1)
    gate.set()  # a running call in a thread is waited for
    await asyncio.wait_for(closer, 30)
    await asyncio.wait({reader}, timeout=30)
    assert isinstance(reader.exception(), EndedEarlyError)
    del reader, closer
    await watch.nothing_left(seconds=1)
    with pytest.raises(StopAsyncIteration):
        await anext(iterator)
