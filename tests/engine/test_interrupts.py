"""Interrupts wake the calls that block, of a run and of its parts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from aiodata import Dataset
from aiodata.engine.interrupts import Interrupts, of_this_thread
from aiodata.errors import EndedEarlyError


def test_only_calls_that_are_under_way_are_interrupted() -> None:
    interrupts, made = Interrupts(None), list[str]()
    with interrupts.during(lambda: made.append("before")):
        pass
    with interrupts.during(lambda: made.append("first")), interrupts.during(lambda: made.append("second")):
        assert made == []
        interrupts.stop()
        assert made == ["first", "second"]
    interrupts.stop()
    assert made == ["first", "second"]


def test_calls_that_follow_are_interrupted_at_once() -> None:
    interrupts, made = Interrupts(None), list[str]()
    interrupts.stop()
    with interrupts.during(lambda: made.append("later")):
        assert made == ["later"]
    with interrupts.during(None):
        pass


def test_a_run_interrupts_its_parts_and_not_the_other_way_round() -> None:
    whole = Interrupts(None)
    part, other = Interrupts(whole), Interrupts(whole)
    made = list[str]()
    with part.during(lambda: made.append("part")), other.during(lambda: made.append("other")):
        with whole.during(lambda: made.append("whole")):
            other.stop()
            assert made == ["other"]
        whole.stop()
        assert made == ["other", "part", "other"]
    with Interrupts(part).during(lambda: made.append("new")):
        assert made[3:] == ["new"]


def test_it_is_used_again_after_an_error() -> None:
    interrupts, made = Interrupts(None), list[str]()
    try:
        with interrupts.during(lambda: made.append("failed")):
            raise ValueError
    except ValueError:
        interrupts.stop()
    assert made == []


def test_from_another_thread() -> None:
    interrupts, woken = Interrupts(None), threading.Event()
    with interrupts.during(woken.set):
        threading.Thread(target=interrupts.stop).start()
        assert woken.wait(10)


def test_a_thread_belongs_to_the_run_that_it_works_for() -> None:
    interrupts, found = Interrupts(None), list[Interrupts | None]()

    def work() -> None:
        found.append(of_this_thread())
        interrupts.own_thread()
        found.append(of_this_thread())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [None, interrupts]
    assert of_this_thread() is None


@pytest.mark.parametrize("how", [{"num_parallel_calls": 2}, {"timeout_seconds": 60.0}])
def test_the_threads_of_a_pipeline_are_woken_when_it_is_closed(how: dict[str, Any]) -> None:
    waiting = threading.Event()

    def wait(element: Any) -> Any:
        interrupts, woken = of_this_thread(), threading.Event()
        assert interrupts is not None
        with interrupts.during(woken.set):
            waiting.set()
            assert woken.wait(10)
        return element

    iterator = Dataset.range(8).map(wait, **how).iterate()

    def close() -> None:
        waiting.wait(10)
        iterator.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(EndedEarlyError):
        next(iterator)
    closing.join(10)
    assert not closing.is_alive()
