"""The shuffle window against the specification's numbers, a plain model and TensorFlow's printed orders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiodata import shuffle_ring
from aiodata.philox import WordStream
from aiodata.random import PairSource, get_seed, set_seed
from aiodata.shuffle_ring import ShuffleRing

GOLDEN = json.loads((Path(__file__).parent / "golden" / "shuffle.json").read_text())
EXAMPLE_PAIR = (2985944072, 4132877644)


@pytest.fixture(autouse=True)
def no_global_seed() -> Iterator[None]:
    """Leave every test, and whatever runs after it, without a global seed."""
    set_seed(None)
    yield
    set_seed(None)


class ModelRing:
    """The window as the specification words it."""

    def __init__(self, pair: tuple[int, int]) -> None:
        self.window: list[int] = []
        self.drawn = 0
        self.stream = WordStream(*pair)

    def pop(self) -> int:
        self.drawn += 1
        offset = self.stream.next_word() % len(self.window)
        out = self.window[offset]
        self.window[offset] = self.window[0]
        del self.window[0]
        return out


def epoch(ids: np.ndarray, pair: tuple[int, int], capacity: int | None) -> list[int]:
    """One epoch in bulk."""
    ring = ShuffleRing(pair, capacity)
    filling = len(ids) if capacity is None else min(capacity - 1, len(ids))
    ring.extend(ids[:filling])
    out = ring.advance(ids[filling:]).tolist() if filling < len(ids) else []
    return out + ring.drain(len(ring)).tolist()


def epoch_singly(ids: np.ndarray, pair: tuple[int, int], capacity: int | None) -> Iterator[int]:
    """One epoch id by id."""
    ring = ShuffleRing(pair, capacity)
    for id_ in ids.tolist():
        ring.push(id_)
        if ring.full:
            yield ring.pop()
    while len(ring):
        yield ring.pop()


def state_of(ring: ShuffleRing) -> tuple[list[int], int]:
    """The ring's snapshot, to compare."""
    window, words = ring.snapshot()
    return window.tolist(), words


def test_ring_worked_example_step_by_step() -> None:
    ring = ShuffleRing(EXAMPLE_PAIR, 3)
    steps = [([0, 1, 2], 0), ([1, 2, 3], 3), ([2, 1, 4], 4), ([1, 2, 5], 2), ([1, 5], 5), ([1], 1)]
    coming = iter(range(6))
    for drawn, (window, out) in enumerate(steps):
        for id_ in islice(coming, 3 - len(ring)):
            ring.push(id_)
        assert state_of(ring) == (window, drawn)
        assert ring.pop() == out
    assert state_of(ring) == ([], 6)


def test_ring_worked_examples() -> None:
    six = np.arange(6)
    assert epoch(six, EXAMPLE_PAIR, 3) == [0, 3, 4, 2, 5, 1]
    assert epoch(six, (929418493, 249609589), 3) == [0, 1, 4, 2, 3, 5]
    assert epoch(six, (87654321, 42), 3) == [2, 0, 3, 4, 5, 1]
    source = PairSource(*get_seed(3), True)
    epochs = ["".join(map(str, epoch(np.arange(4), source.draw(), 4))) for _ in range(6)]
    assert epochs == ["0123", "0321", "0132", "0321", "1320", "2301"]


def test_ring_capacity_beyond_input_changes_nothing() -> None:
    ids = np.arange(300)
    orders = [epoch(ids, (1, 2), capacity) for capacity in (300, 301, 5000, None)]
    assert orders[1:] == orders[:1] * 3
    assert sorted(orders[0]) == ids.tolist()


def test_ring_full_and_len() -> None:
    ring = ShuffleRing((1, 2), 2)
    assert (len(ring), ring.full) == (0, False)
    ring.extend(np.arange(2))
    assert (len(ring), ring.full) == (2, True)
    ring.pop()
    assert (len(ring), ring.full) == (1, False)
    free = ShuffleRing((1, 2), None, window=range(500))
    assert (len(free), free.full) == (500, False)


def test_ring_refuses() -> None:
    for capacity, window in ((0, []), (-2, []), (2, [1, 2, 3])):
        with pytest.raises(ValueError, match="capacity"):
            ShuffleRing((1, 2), capacity, window=window)
    ring = ShuffleRing((1, 2), 4, window=[5, 6])
    with pytest.raises(ValueError, match="do not fit"):
        ring.extend(np.arange(3))
    with pytest.raises(ValueError, match="one short of full"):
        ring.advance(np.arange(3))
    with pytest.raises(ValueError, match="one short of full"):
        ShuffleRing((1, 2), None).advance(np.arange(3))
    for count in (3, -1):
        with pytest.raises(ValueError, match="cannot pop"):
            ring.drain(count)
    assert state_of(ring) == ([5, 6], 0)


@pytest.mark.parametrize("words", [0, 1])
def test_ring_empty_pop_draws_no_word(words: int) -> None:
    ring = ShuffleRing((1, 2), 4, words=words)
    for _ in range(2):
        with pytest.raises(IndexError, match="empty"):
            ring.pop()
    assert state_of(ring) == ([], words)
    ring.push(9)
    assert (ring.pop(), state_of(ring)) == (9, ([], words + 1))


@pytest.mark.parametrize(
    ("capacity", "count"),
    [(1, 5000), (2, 5000), (3, 9000), (17, 20_000), (1000, 9000), (4096, 13_000), (9000, 9000), (20_000, 9001)],
)
@pytest.mark.parametrize("chunk", [100, 4096, 5000])
def test_ring_bulk_equals_single(capacity: int, count: int, chunk: int) -> None:
    ids = np.random.default_rng(0).integers(-(2**62), 2**62, count)
    ring = ShuffleRing((3, 4), capacity)
    out: list[int] = []
    filling = min(capacity - 1, count)
    ring.extend(ids[:filling])
    for start in range(filling, count, chunk):
        out += ring.advance(ids[start : start + chunk]).tolist()
    while len(ring):
        out += ring.drain(min(chunk, len(ring))).tolist()
    assert out == list(epoch_singly(ids, (3, 4), capacity))
    assert state_of(ring) == ([], count)


def test_ring_bulk_results_are_arrays_of_ids() -> None:
    for count in (0, 3, 5000):
        ring = ShuffleRing((1, 2), count + 1)
        ring.extend(np.arange(count, dtype=np.uint16))
        for out in (ring.advance(np.arange(count, dtype=np.int32)), ring.drain(count)):
            assert out.dtype == np.int64
            assert out.shape == (count,)
        assert ring.snapshot()[0].dtype == np.int64


@pytest.mark.parametrize("bulk", [False, True])
def test_ring_snapshot_stays_as_it_is(bulk: bool) -> None:
    ring = ShuffleRing((1, 2), 1000)
    ring.extend(np.arange(999))
    if bulk:
        ring.advance(np.arange(999, 2000))
    window, words = ring.snapshot()
    before = window.tolist()
    for id_ in range(2000, 2500):
        ring.push(id_)
        ring.pop()
    ring.advance(np.arange(2500, 9000))
    assert (window.tolist(), words) == (before, 1001 if bulk else 0)


SIZES = st.one_of(st.integers(0, 12), st.sampled_from([64, 127, 128, 129, 400, 3000, 5000, 9000]))
OPERATIONS = st.tuples(st.sampled_from(["push", "pop", "extend", "advance", "drain", "restore"]), SIZES)


@settings(max_examples=250, deadline=None)
@given(
    capacity=st.one_of(st.none(), st.integers(1, 9), st.sampled_from([50, 128, 300, 1000, 3500])),
    operations=st.lists(OPERATIONS, max_size=25),
    pair=st.tuples(st.integers(-(2**63), 2**64 - 1), st.integers(-(2**63), 2**64 - 1)),
)
def test_ring_any_mixture(capacity: int | None, operations: list[tuple[str, int]], pair: tuple[int, int]) -> None:
    ring, model = ShuffleRing(pair, capacity), ModelRing(pair)
    window = model.window
    limit = 4000 if capacity is None else capacity
    following = 0
    for name, size in operations:
        room = limit - len(window)
        if name == "restore":
            ring = ShuffleRing(pair, capacity, window=ring.snapshot()[0], words=ring.snapshot()[1])
        elif name in ("pop", "drain"):
            size = min(size, len(window))
            got = ring.drain(size).tolist() if name == "drain" else [ring.pop() for _ in range(min(size, 400))]
            assert got == [model.pop() for _ in got]
        else:
            size = size if name == "advance" else min(size, room)
            if name == "advance" and (capacity is None or room != 1):
                continue
            ids = np.arange(following, following + size)
            following += size
            if name == "advance":
                expected = []
                for id_ in ids.tolist():
                    window.append(id_)
                    expected.append(model.pop())
                assert ring.advance(ids).tolist() == expected
                continue
            window.extend(ids.tolist())
            if name == "extend":
                ring.extend(ids)
            else:
                for id_ in ids.tolist():
                    ring.push(id_)
        assert len(ring) == len(window)
        assert ring.full == (len(window) == capacity)
    assert state_of(ring) == (window, model.drawn)


@settings(max_examples=150, deadline=None)
@given(
    capacity=st.one_of(st.integers(2, 9), st.sampled_from([130, 300, 1000])),
    turns=st.lists(st.tuples(st.sampled_from(["single", "bulk", "drain"]), SIZES), max_size=20),
)
def test_ring_near_full_mixture(capacity: int, turns: list[tuple[str, int]]) -> None:
    ring, model = ShuffleRing((5, 6), capacity), ModelRing((5, 6))
    following = 0
    for kind, size in turns:
        missing = capacity - 1 - len(ring)
        ids = np.arange(following, following + missing + size)
        following += len(ids)
        ring.extend(ids[:missing])
        model.window.extend(ids[:missing].tolist())
        expected = []
        for id_ in ids[missing:].tolist():
            model.window.append(id_)
            expected.append(model.pop())
        if kind == "single":
            got = []
            for id_ in ids[missing:].tolist():
                ring.push(id_)
                got.append(ring.pop())
        else:
            got = ring.advance(ids[missing:]).tolist()
        assert got == expected
        if kind == "drain":
            count = min(size, len(ring))
            assert ring.drain(count).tolist() == [model.pop() for _ in range(count)]
    assert state_of(ring) == (model.window, model.drawn)


@settings(max_examples=60, deadline=None)
@given(capacity=st.sampled_from([1, 5, 200, 700, None]), count=st.integers(0, 1500), cut=st.integers(0, 1500))
def test_ring_restored_anywhere_goes_on_alike(capacity: int | None, count: int, cut: int) -> None:
    whole = list(epoch_singly(np.arange(count), (8, 9), capacity))
    ring = ShuffleRing((8, 9), capacity)
    coming = iter(range(count))
    out: list[int] = []

    def fill() -> None:
        for id_ in coming:
            ring.push(id_)
            if ring.full:
                break

    while len(out) < min(cut, count):
        fill()
        out.append(ring.pop())
    window, words = ring.snapshot()
    ring = ShuffleRing((8, 9), capacity, window=window, words=words)
    rest = np.array(list(coming), np.int64)
    filling = len(rest) if capacity is None else min(capacity - 1 - len(window), len(rest))
    ring.extend(rest[:filling])
    if filling < len(rest):
        out += ring.advance(rest[filling:]).tolist()
    assert out + ring.drain(len(ring)).tolist() == whole
    assert state_of(ring) == ([], count)


# --- TensorFlow's own orders ----------------------------------------------------------------------------------


class GoldenPipeline:
    """range(n) [.repeat(before)] .shuffle(...) [.repeat(after)] [.take(take)], as far as the order goes."""

    def __init__(self, case: dict[str, Any], bulk: bool) -> None:
        set_seed(case["global_seed"])
        self.case = case
        self.bulk = bulk
        self.source = PairSource(*get_seed(case["seed"]), case["reshuffle_each_iteration"])

    def ids(self) -> np.ndarray:
        """Input of one epoch."""
        before = self.case["repeat_before"]
        return np.tile(np.arange(self.case["n"]), 1 if before is None else before)

    def one_pass(self) -> list[int]:
        after = self.case["repeat_after"]
        capacity = self.case["buffer_size"]
        ids = self.ids()
        out: list[int] = []
        number = 0
        take = self.case["take"]
        while number != (1 if after is None else after):
            if number and (not len(ids) or (take is not None and len(out) >= take)):
                break  # pairs of later epochs are drawn when their first element is asked for
            pair = self.source.draw()
            out += epoch(ids, pair, capacity) if self.bulk else epoch_singly(ids, pair, capacity)
            number += 1
        return out if take is None or take < 0 else out[:take]


@pytest.mark.parametrize("bulk", [False, True])
def test_golden_cases(bulk: bool) -> None:
    assert len(GOLDEN["cases"]) == 240
    for case in GOLDEN["cases"]:
        pipeline = GoldenPipeline(case, bulk)
        got = [pipeline.one_pass() for _ in range(case["passes"])]
        assert got == case["expected"], {key: value for key, value in case.items() if key != "expected"}


@pytest.mark.parametrize("number", range(len(GOLDEN["long"])))
@pytest.mark.parametrize("bulk", [False, True])
def test_golden_long_cases(number: int, bulk: bool) -> None:
    case = GOLDEN["long"][number]
    pipeline = GoldenPipeline(case, bulk)
    for expected in case["expected"]:
        got = pipeline.one_pass()
        assert (len(got), got[:16], got[-16:]) == (expected["count"], expected["head"], expected["tail"])
        assert hashlib.sha256(np.array(got, "<i8").tobytes()).hexdigest() == expected["sha256"]


def test_public_names() -> None:
    assert shuffle_ring.__all__ == ["ShuffleRing"]
