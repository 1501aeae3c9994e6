"""What states cost: their size, the time to ask for one, and what restoring reads and computes again."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from aiodata import Dataset, TextLineDataset
from tests.programs import assert_same, nested
from tests.resume.saving import FACES, drive, part, pull, through_json

if TYPE_CHECKING:
    from pathlib import Path


def double(x: Any) -> Any:
    return x * 2


def is_even(x: Any) -> bool:
    return bool(x % 2 == 0)


def some(x: Any) -> Dataset[Any]:
    return Dataset.range(100 * x, 100 * x + 90).map(double)


def state_after(ds: Dataset[Any], count: int) -> dict[str, Any]:
    """Read some elements through the sync face and give the state then, through JSON."""
    return drive("sync", part(ds, "sync", None, count))[1]


def long_chain() -> Dataset[Any]:
    ds = Dataset.range(40).interleave(some, 4, num_parallel_calls=2).map(double, 2).filter(is_even)
    ds = Dataset.zip({"a": ds, "b": nested(5000)}).batch(8).unbatch().enumerate().shard(2, 0).take(1500).skip(2)
    return ds.concatenate(nested(40).batch(3)).repeat(2).prefetch(50)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("count", [0, 1, 3, 500])
def test_a_state_without_a_shuffle_is_small(face: str, count: int) -> None:
    _, state = drive(face, part(long_chain(), face, None, count))
    size = len(json.dumps(state))
    assert size < 2048, f"{size} bytes after {count} elements"


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("count", [1, 25_000])
def test_a_state_of_a_large_shuffle_does_not_hold_elements(rows: bool, count: int) -> None:
    element = np.zeros(10_000)  # 80 kB each, 800 MB in the buffer if they were not all one array

    def make() -> Dataset[Any]:
        ds = Dataset.range(30_000)
        return (ds.map(lambda x: (x, element)) if rows else ds).shuffle(10_000, seed=1)

    iterator = make().iterate()
    try:
        drive("sync", pull(iterator, "sync", count))
        state = through_json(iterator.state_dict())
        following = next(iterator)
    finally:
        iterator.close()
    size = len(json.dumps(state))
    assert size < 200_000, f"{size} bytes after {count} elements"
    assert_same(drive("sync", part(make(), "sync", state, 1))[0], [following])


def test_asking_takes_little() -> None:
    with long_chain().iterate() as iterator:
        next(iterator)
        start = time.perf_counter()
        for _ in range(100):
            iterator.state_dict()
        seconds = (time.perf_counter() - start) / 100
    assert seconds < 0.005  # some 50 us; machines are shared


def bytes_read(iterator: Any) -> int:
    return sum(int(counters.get("bytes_read", 0)) for counters in iterator.statistics())


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("several", [False, True])
def test_restoring_near_a_files_end_reads_its_tail(compression: str, several: bool, tmp_path: Path) -> None:
    lines = [b"line %07d" % number for number in range(200_000)]  # 2.6 MB, ten chunks
    path = tmp_path / "lines"
    content = b"\n".join(lines)
    path.write_bytes(gzip.compress(content, 1) if compression else content)

    def make() -> Dataset[Any]:
        return TextLineDataset([path, path] if several else path, compression)

    count = len(lines) - 10 + (len(lines) if several else 0)
    with make().iterate() as iterator:
        assert sum(1 for _ in islice(iterator, count)) == count
        state = through_json(iterator.state_dict())
    with make().iterate(state) as iterator:
        assert_same(list(iterator), lines[-10:])
        read = bytes_read(iterator)
    if not compression:
        assert 0 < read <= 2 * 256 * 1024, f"restoring read {read} of {len(content)} bytes"


@pytest.mark.parametrize("calls", [None, 2])
def test_restoring_many_files_reads_those_that_were_open(calls: int | None, tmp_path: Path) -> None:
    for number in range(24):
        (tmp_path / f"{number:02}").write_text("".join(f"{number:02} {line:086}\n" for line in range(500)))  # 45 kB

    def make() -> Dataset[Any]:
        files = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
        return files.interleave(TextLineDataset, 2, num_parallel_calls=calls).prefetch(1)

    whole = drive("async", part(make(), "async"))[0]
    begun, state = drive("async", part(make(), "async", None, 6_123))

    async def go_on() -> int:
        async with make().iterate(state) as iterator:
            assert_same(await pull(iterator, "async", 1), [whole[len(begun)]])
            return bytes_read(iterator)

    # Two files are open, and in parallel as many may have been begun behind them.
    assert asyncio.run(go_on()) <= (2 if calls is None else 5) * 45_000


def test_what_is_never_asked_for_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = Dataset.from_tensor_slices(np.arange(900)).map(double).scan(0, lambda total, x: (total + x, x))
    ds = ds.shuffle(10, seed=1).batch(3).unbatch().enumerate().prefetch(2)

    def fail(*_: Any) -> Any:
        raise AssertionError("nobody has asked for a state")

    for made in ("aiodata.transforms.scan.encode", "aiodata.engine.plan.checksum", "aiodata.engine.iterator.cursor"):
        monkeypatch.setattr(made, fail)
    with ds.iterate() as iterator:
        assert len(list(iterator)) == 900
        with pytest.raises(AssertionError, match="nobody"):
            iterator.state_dict()


def test_a_function_is_not_called_for_what_was_taken() -> None:
    seen: list[int] = []

    def note(x: Any) -> Any:
        seen.append(int(x))
        return x

    state = state_after(Dataset.range(2000).map(note).map(double), 1000)
    assert_same(seen, list(range(1000)))
    seen.clear()
    with Dataset.range(2000).map(note).map(double).iterate(state) as iterator:
        assert_same(next(iterator), np.int64(2000))
    assert seen == [1000]


def test_a_shuffle_calls_the_function_again_for_its_window_only() -> None:
    seen: list[int] = []

    def note(x: Any) -> Any:
        seen.append(int(x))
        return x

    def make() -> Dataset[Any]:
        return Dataset.range(100_000).map(note).shuffle(100, seed=1)

    state = state_after(make(), 50_000)
    seen.clear()
    assert len(drive("sync", part(make(), "sync", state, 1))[0]) == 1
    assert len(seen) < 10_000, "a snapshot is due every 4,096 elements, and an element stays some 100 in the window"
