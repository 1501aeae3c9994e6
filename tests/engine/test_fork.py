"""A pipeline can be read after a fork; an iterator of the parent cannot."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.observing import pipeline
from tests.programs import collect

# Fork


def in_child(work: Callable[[], Any]) -> Any:
    """Run `work` in a forked child; give its result, or what it raised in words. The child must end in time."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        result: Any = "nothing"
        try:
            result = work()
        except BaseException as error:
            result = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        finally:
            os.write(writing, pickle.dumps(result))
            os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            if os.waitpid(pid, os.WNOHANG)[0]:
                with open(reading, "rb", closefd=False) as pipe:
                    return pickle.loads(pipe.read())
            time.sleep(0.005)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        raise AssertionError("the child did not end")
    finally:
        os.close(reading)


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_forked_child_reads_after_its_parent_has(kind: str, folder: Path) -> None:
    ds = pipeline(folder, kind)
    parent = [line.text for line in ds]
    assert in_child(lambda: [line.text for line in pipeline(folder, kind)]) == parent
    assert sorted(in_child(lambda: [line.text for line in ds])) == sorted(parent)


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_forked_child_reads_while_its_parent_is_reading(kind: str, folder: Path) -> None:
    with pipeline(folder, kind).iterate() as iterator:
        parent = [next(iterator).text for _ in range(3)]
        child = in_child(lambda: [line.text for line in pipeline(folder, kind)])
        parent += [line.text for line in iterator]
    assert child == parent


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_a_forked_child_may_use_the_async_face(kind: str, folder: Path) -> None:
    with pipeline(folder, kind).iterate() as iterator:
        next(iterator)
        assert len(in_child(lambda: [line.text for line in asyncio.run(collect(pipeline(folder, kind)))])) == 200


def test_an_iterator_of_the_parent_ends_early_in_the_child(folder: Path) -> None:
    with pipeline(folder, "threads").iterate() as iterator:
        next(iterator)

        def read() -> str:
            with contextlib.suppress(StopIteration):
                for _ in range(1000):
                    next(iterator)
            return "read to the end"

        assert in_child(read).startswith("EndedEarlyError")
        assert sum(1 for _ in iterator) == 199


@pytest.mark.parametrize("end", ["close", "drop"])
def test_ending_the_parents_iterator_in_the_child_does_not_hang(end: str, folder: Path) -> None:
    held = [pipeline(folder, "threads").iterate()]
    next(held[0])

    def work() -> str:
        if end == "close":
            held[0].close()
        held.clear()
        return "ended"

    assert in_child(work) == "ended"
    assert sum(1 for _ in held.pop()) == 199
