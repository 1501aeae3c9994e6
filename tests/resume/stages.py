"""Every public source and transformation by itself, some in several forms: `name: form` to what makes a dataset."""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata import AUTOTUNE, UNKNOWN_CARDINALITY, Dataset, Options, TextLineDataset
from tests.programs import Boom, Pair, failing, nested

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path


def write_files(folder: Path) -> Path:
    """Write the files that the sources below read."""
    for number, lines in enumerate((5, 0, 7, 3)):
        text = "".join(f"file {number} line {line}{'!' * line}\r\n" for line in range(lines))
        (folder / f"{number}.txt").write_bytes(text.encode())
        (folder / f"{number}.gz").write_bytes(gzip.compress(text.encode()[:-2]))
    return folder


def double(x: Any) -> Any:
    return x * 2


def slowly(x: Any) -> Any:
    time.sleep(0.0002)
    return check(x)


def check(x: Any) -> Any:
    if int(x) % 4 == 2:
        raise Boom(int(x))
    return x


async def awaited(x: Any) -> Any:
    return check(x)


def rows(x: Any) -> Any:
    return {"n": np.full(int(x) % 3, x), "name": b"n" * int(x)}


def few(x: Any) -> Dataset[Any]:
    return Dataset.range(10 * int(x), 10 * int(x) + int(x) % 4)


def few_failing(x: Any) -> Dataset[Any]:
    return failing(few(check(x)), 11, 31, 32)


def few_async(x: Any) -> Dataset[Any]:
    return few(x).map(awaited)


def lines_of(path: Any) -> Dataset[Any]:
    return TextLineDataset(path)


def is_odd(x: Any) -> bool:
    return bool(check(x + 2 if x > 6 else x) % 2 == 1)


def is_third(x: Any) -> bool:
    return bool(x % 3 == 0)


def count_to(n: int) -> Iterator[dict[str, Any]]:
    for x in range(n):
        yield {"x": x, "y": [x, [x + 1]]}


def count_and_fail(n: int) -> Iterator[int]:
    yield from range(n)
    raise Boom(n)


async def count_to_async(n: int) -> AsyncIterator[int]:
    for x in range(n):
        yield x


class Stubborn:
    """An iterator that goes on after an error; sync, or async where `later`."""

    def __init__(self, count: int, later: bool = False) -> None:
        self.numbers = iter(range(count))
        if later:
            self.__class__ = StubbornLater

    def __iter__(self) -> Stubborn:
        return self

    def __next__(self) -> int:
        return int(check(next(self.numbers)))


class StubbornLater(Stubborn):
    __iter__ = None  # type: ignore[assignment]

    def __aiter__(self) -> StubbornLater:
        return self

    async def __anext__(self) -> int:
        for number in self.numbers:
            return int(check(number))
        raise StopAsyncIteration


class Stateful:
    """An iterable that can save its place."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.next = 0

    def __iter__(self) -> Iterator[int]:
        while self.next < self.count:
            self.next += 1
            yield self.next - 1

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


def bad(count: int = 11) -> Dataset[Any]:
    """Numbers of which 2 and 5 fail."""
    return failing(Dataset.range(count), 2, 5)


def rowed(count: int) -> Dataset[Any]:
    """Numbers as rows, not columns."""
    return Dataset.range(count).map(double)


def ragged(x: Any) -> Any:
    return {"x": np.arange(int(x) % 3), "y": np.arange(int(x) % 3 if x != 4 else 1)}


STAGES: dict[str, Callable[[Path], Dataset[Any]]] = {
    "range": lambda _: Dataset.range(3, 90, 7),
    "range: several blocks": lambda _: Dataset.range(130, output_type=np.float32),
    "from_tensors": lambda _: Dataset.from_tensors({"x": [1, 2], "y": (b"x", None)}),
    "from_tensor_slices": lambda _: nested(9),
    "from_tensor_slices: large rows": lambda _: Dataset.from_tensor_slices(
        (np.ones((5, 60_000)), [b"a", b"", b"c", b"", b"e"])
    ),
    "from_generator": lambda _: Dataset.from_generator(count_to, args=[9]),
    "from_generator: failing": lambda _: Dataset.from_generator(count_and_fail, args=[2]),
    "from_generator: failing later": lambda _: Dataset.from_generator(count_and_fail, args=[5]),
    "from_generator: async": lambda _: Dataset.from_generator(count_to_async, args=[6]),
    "from_generator: going on": lambda _: Dataset.from_generator(Stubborn, args=[12]),
    "from_generator: going on, async": lambda _: Dataset.from_generator(Stubborn, args=[8, True]),
    "from_generator: stateful": lambda _: Dataset.from_generator(Stateful, args=[7]),
    "list_files": lambda path: Dataset.list_files(f"{path}/*.txt", shuffle=False),
    "list_files: shuffled": lambda path: Dataset.list_files(f"{path}/*", seed=3),
    "random": lambda _: Dataset.random(seed=5).take(9),
    "sample_from_datasets": lambda _: Dataset.sample_from_datasets(
        [Dataset.range(6), Dataset.range(10, 14), Dataset.range(20, 29)], weights=[0.5, 0.2, 0.3], seed=7
    ),
    "sample_from_datasets: failing": lambda _: Dataset.sample_from_datasets([bad(), rowed(4)], seed=1),
    "zip": lambda _: Dataset.zip(Dataset.range(9), nested(8)),
    "zip: dict of rows": lambda _: Dataset.zip({"a": rowed(7), "b": (Dataset.range(70), rowed(9).batch(2).unbatch())}),
    "zip: failing": lambda _: Dataset.zip(bad(), failing(Dataset.range(20, 29), 25, 27), Dataset.range(9)),
    "zip: behind a block that is all skipped": lambda _: Dataset.zip(
        Dataset.range(9), Dataset.range(75).filter(lambda x: bool(x >= 70)).skip(1)
    ),
    "zip: unequal blocks": lambda _: Dataset.zip(rowed(150).filter(is_third), Dataset.range(66)),
    "TextLineDataset": lambda path: TextLineDataset(path / "2.txt", buffer_size=20),
    "TextLineDataset: several": lambda path: TextLineDataset([path / f"{n}.txt" for n in (0, 1, 2, 9, 3)]),
    "TextLineDataset: gzip": lambda path: TextLineDataset([path / f"{n}.gz" for n in (0, 1, 3)], "GZIP", buffer_size=9),
    "TextLineDataset: parallel": lambda path: TextLineDataset(
        [path / f"{n}.txt" for n in range(4)], num_parallel_reads=2
    ),
    "apply": lambda _: Dataset.range(7).apply(lambda ds: ds.skip(1).batch(2)),
    "batch": lambda _: nested(11).batch(3),
    "batch: across blocks": lambda _: Dataset.range(250).batch(40),
    "batch: rows": lambda _: rowed(130).batch(7),
    "batch: drop": lambda _: rowed(11).batch(3, drop_remainder=True),
    "batch: failing": lambda _: bad().batch(3),
    "batch: not fitting": lambda _: Dataset.range(9).map(rows).batch(2),
    "batch: parallel": lambda _: bad(14).batch(3, num_parallel_calls=2),
    "cache": lambda _: nested(6).cache(),
    "cache: rows": lambda _: rowed(9).cache(),
    "cache: failing": lambda _: bad().cache(),
    "cache: repeated": lambda _: bad(7).cache().repeat(3),
    "concatenate": lambda _: Dataset.range(4).concatenate(rowed(3)).concatenate(bad(7)),
    "concatenate: shuffled": lambda _: Dataset.range(3).concatenate(Dataset.range(5).shuffle(3, seed=1)).repeat(2),
    "enumerate": lambda _: nested(7).enumerate(3),
    "enumerate: failing": lambda _: bad(90).enumerate(-2),
    "filter": lambda _: nested(9).filter(lambda element: bool(element["id"] % 3)),
    "filter: failing": lambda _: bad(13).filter(is_odd),
    "filter: nothing left": lambda _: Dataset.range(100).filter(lambda x: False),
    "flat_map": lambda _: Dataset.range(7).flat_map(few),
    "flat_map: failing": lambda _: failing(Dataset.range(9), 5).flat_map(few_failing),
    "flat_map: async inside": lambda _: Dataset.range(5).flat_map(few_async),
    "flat_map: files": lambda path: Dataset.list_files(f"{path}/*.txt", shuffle=False).flat_map(lines_of),
    "interleave": lambda _: Dataset.range(8).interleave(few, cycle_length=3),
    "interleave: failing": lambda _: bad(9).interleave(few_failing, cycle_length=3, block_length=2),
    "interleave: parallel": lambda _: Dataset.range(8).interleave(few, cycle_length=3, num_parallel_calls=2),
    "interleave: parallel, failing": lambda _: bad(9).interleave(
        few_failing, cycle_length=3, block_length=2, num_parallel_calls=AUTOTUNE
    ),
    "interleave: parallel, async inside": lambda _: Dataset.range(6).interleave(few_async, 2, num_parallel_calls=2),
    "map": lambda _: Dataset.zip(Dataset.range(7), nested(7)).map(lambda number, element: Pair(number, element)),
    "map: failing": lambda _: bad().map(check),
    "map: async": lambda _: bad().map(awaited),
    "map: parallel": lambda _: bad(70).map(check, num_parallel_calls=2),
    "map: parallel, slow": lambda _: bad(14).map(slowly, num_parallel_calls=2),
    "map: parallel, async": lambda _: bad(30).map(awaited, num_parallel_calls=3),
    "map: vectorized": lambda _: Dataset.range(80).map(double, vectorized=True),
    "map: vectorized, failing": lambda _: bad(9).map(double, 2, vectorized=True),
    "padded_batch": lambda _: Dataset.range(11).map(rows).padded_batch(3),
    "padded_batch: failing": lambda _: bad().map(rows).padded_batch(2, {"n": [2], "name": []}, drop_remainder=True),
    "prefetch": lambda _: rowed(9).prefetch(3),
    "prefetch: failing": lambda _: bad().prefetch(4),
    "prefetch: automatic": lambda _: bad(40).prefetch(),
    "prefetch: none": lambda _: bad().prefetch(0),
    "prefetch: twice": lambda _: bad(12).prefetch(2).batch(2).prefetch(2),
    "prefetch: of whole blocks": lambda _: Dataset.range(5).prefetch(20).map(awaited, num_parallel_calls=2),
    "prefetch: of parts of blocks": lambda _: Dataset.range(4).batch(2).unbatch().prefetch(1).map(awaited, 2),
    "prefetch: of coroutines": lambda _: bad().map(awaited).prefetch(3),
    "repeat": lambda _: Dataset.range(4).repeat(3),
    "repeat: failing": lambda _: failing(Dataset.range(3), 0, 2).repeat(3),
    "repeat: of nothing": lambda _: Dataset.range(9).filter(lambda x: False).repeat(),
    "repeat: endless": lambda _: rowed(3).repeat().take(8),
    "shard": lambda _: nested(11).shard(3, 1),
    "shard: failing": lambda _: bad(90).shard(2, 1),
    "shuffle": lambda _: nested(12).shuffle(5, seed=1),
    "shuffle: rows": lambda _: rowed(12).shuffle(5, seed=1),
    "shuffle: failing": lambda _: bad(12).shuffle(5, seed=1),
    "shuffle: all": lambda _: bad(12).shuffle(UNKNOWN_CARDINALITY, seed=1, reshuffle_each_iteration=False),
    "shuffle: repeated": lambda _: Dataset.range(5).shuffle(3, seed=1).repeat(3),
    "shuffle: twice": lambda _: bad(9).shuffle(3, seed=1).batch(2).shuffle(2, seed=2).repeat(2),
    "skip": lambda _: Dataset.range(70).skip(66),
    "skip: failing": lambda _: failing(Dataset.range(9), 1, 4, 6).skip(3),
    "skip: failing behind": lambda _: failing(Dataset.range(9), 4, 6).skip(3),
    "take": lambda _: nested(9).take(5),
    "take: failing": lambda _: bad().take(7),
    "unbatch": lambda _: Dataset.range(9).batch(4).unbatch(),
    "unbatch: failing": lambda _: Dataset.range(9).map(ragged).unbatch(),
    "with_options": lambda _: bad().with_options(Options(cpu_budget=1)),
}
