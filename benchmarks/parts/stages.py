"""What each stage costs an element, beside a plain Python loop or generator that does the same.

The input is the same elements as rows (a generator's) and as columns (an array's); the plain loop reads a list of
them. A figure has the source and the reading loop in it, on both sides.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count, islice
from queue import Queue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from aiodata import Dataset
from aiodata.transforms.group_by_reducer import Reducer
from benchmarks.measuring import Row, adrain, drain, interleaved, row_of

COUNT = 16_384
NUMBERS = list(np.arange(COUNT))
RAGGED = [np.arange(1 + number % 16) for number in range(COUNT)]
TABLE = np.arange(COUNT).reshape(-1, 16)
CHOICES = np.arange(COUNT) % 2
DICTS = [{"x": number} for number in NUMBERS]
INNER = 64
FEW = NUMBERS[: COUNT // INNER]
BEGINNING = NUMBERS[: COUNT // 8]
PLAIN = "plain loop"

Elements = Iterable[Any]


def increment(x: Any) -> Any:
    return x + 1


def called(function: Callable[[Any], Any], elements: Iterable[Any]) -> Iterator[Any]:
    for x in elements:
        yield function(x)


def batches(elements: Iterator[Any], size: int) -> Iterator[Any]:
    while batch := list(islice(elements, size)):
        yield np.array(batch)


Case = tuple[Callable[[Any], Any], Callable[[Any], Elements]]


class Input(NamedTuple):
    """What cases read: rows, the same as an array if there is one, and how many elements a figure is divided by."""

    rows: list[Any]
    columns: Any = None
    count: int = COUNT


def measure(rounds: int) -> list[Row]:
    """Time every stage beside its loop."""
    return [
        row
        for given, cases in ALL.items()
        for name, (stage, loop) in cases.items()
        for row in _measured(name, INPUTS[given], stage, loop, rounds)
    ]


def _measured(
    name: str, given: Input, stage: Callable[[Any], Any], loop: Callable[[Any], Elements], rounds: int
) -> list[Row]:
    rows = stage(Dataset.from_generator(iter, args=[given.rows]))
    competitors: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: drain(loop(given.rows)),
        "rows, for": lambda: drain(rows),
        "rows, async for": lambda: asyncio.run(adrain(rows)),
    }
    if given.columns is not None:
        columns = stage(Dataset.from_tensor_slices(given.columns))
        competitors["columns, for"] = lambda: drain(columns)
    seconds = interleaved(competitors, rounds)
    found = [row_of(seconds, what, given.count, "" if what == PLAIN else PLAIN) for what in competitors]
    for row in found:
        row.stage = name
    return found


# The loops


def is_even(x: Any) -> bool:
    return bool(x % 2 == 0)


def is_number(x: Any) -> bool:
    return bool(x >= 0)


def last_digit(x: Any) -> Any:
    return x % 10


def kept(function: Callable[[Any], bool], elements: Elements) -> Iterator[Any]:
    for x in elements:
        if function(x):
            yield x


def passed(elements: Elements) -> Iterator[Any]:
    yield from elements


def first(elements: Elements, limit: int) -> Iterator[Any]:
    for number, x in enumerate(elements):
        if number == limit:
            return
        yield x


def behind(elements: Elements, skipped: int) -> Iterator[Any]:
    for number, x in enumerate(elements):
        if number >= skipped:
            yield x


def every(elements: Elements, shards: int, index: int) -> Iterator[Any]:
    for number, x in enumerate(elements):
        if number % shards == index:
            yield x


def numbered(elements: Elements) -> Iterator[Any]:
    for number, x in enumerate(elements):
        yield np.int64(number), x


def beside(one: Elements, other: Elements) -> Iterator[Any]:
    yield from zip(one, other, strict=True)


def twice(elements: Any) -> Iterator[Any]:
    for _ in range(2):
        yield from elements[: COUNT // 2]


def halved(elements: Elements) -> Iterator[Any]:
    for x in elements:
        if random.random() < 0.5:
            yield x


def until(predicate: Callable[[Any], bool], elements: Elements) -> Iterator[Any]:
    for x in elements:
        if not predicate(x):
            return
        yield x


def scanned(elements: Elements) -> Iterator[Any]:
    state = np.int64(0)
    for x in elements:
        state, output = add(state, x)
        yield output


def rows_of(elements: Elements) -> Iterator[Any]:
    for x in elements:
        yield from x


def counted(elements: Elements) -> Iterator[Any]:
    number = 0
    for x in elements:
        number += 1
        yield x
    assert number == COUNT


def shuffled(elements: Elements, size: int = 1000) -> Iterator[Any]:
    rest = iter(elements)
    window = list(islice(rest, size))
    for x in rest:
        place = random.randrange(size)
        yield window[place]
        window[place] = x
    random.shuffle(window)
    yield from window


def fetched(elements: Elements, size: int = 8) -> Iterator[Any]:
    queue: Queue[Any] = Queue(size)

    def fill() -> None:
        for x in elements:
            queue.put(x)
        queue.put(queue)

    Thread(target=fill).start()
    return iter(queue.get, queue)


def inner(x: Any) -> Any:
    return Dataset.range(int(x), int(x) + INNER)


def flat(elements: Elements) -> Iterator[Any]:
    for x in elements:
        yield from np.arange(x, x + INNER)


def in_turn(elements: Elements, length: int = 4) -> Iterator[Any]:
    waiting = iter(elements)
    slots = [iter(np.arange(x, x + INNER)) for x in islice(waiting, length)]
    while slots:
        for number, slot in enumerate(slots):
            x = next(slot, None)
            if x is not None:
                yield x
            elif (following := next(waiting, None)) is not None:
                slots[number] = iter(np.arange(following, following + INNER))
                yield next(slots[number])
            else:
                del slots[number]
                break


def drawn(inputs: Iterable[int], elements: Elements) -> Iterator[Any]:
    passes = [iter(elements) for _ in range(2)]
    for number in inputs:
        x = next(passes[number], None)
        if x is None:
            return
        yield x


def padded(rows: list[Any]) -> Any:
    out = np.zeros((len(rows), max(map(len, rows))), rows[0].dtype)
    for number, row in enumerate(rows):
        out[number, : len(row)] = row
    return out


def lists(elements: Elements, size: int) -> Iterator[list[Any]]:
    rest = iter(elements)
    while rows := list(islice(rest, size)):
        yield rows


def as_objects(rows: list[Any]) -> Any:
    out = np.empty(len(rows), object)
    out[:] = rows
    return out


def sparse(rows: list[Any]) -> Any:
    lengths = list(map(len, rows))
    places = np.concatenate([np.arange(length) for length in lengths])
    indices = np.stack([np.repeat(np.arange(len(rows)), lengths), places], axis=1)
    return indices, np.concatenate(rows), np.array([len(rows), max(lengths)])


def grouped(
    key_of: Callable[[Any], Any], size: int, collate: Callable[[list[Any]], Any], elements: Elements
) -> Iterator[Any]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for x in elements:
        group = groups[key_of(x)]
        group.append(x)
        if len(group) == size:
            yield collate(group)
            group.clear()
    yield from (collate(groups[key]) for key in sorted(groups) if groups[key])


def plus(total: Any, x: Any) -> Any:
    return total + x


def summed(elements: Elements) -> Iterator[Any]:
    totals: dict[Any, Any] = {}
    for x in elements:
        key = last_digit(x)
        totals[key] = plus(totals.get(key, 0), x)
    yield from totals.values()


def add(total: Any, x: Any) -> Any:
    return total + x, total + x


def distinct(elements: Elements) -> Iterator[Any]:
    seen = set()
    for x in elements:
        if x not in seen:
            seen.add(x)
            yield x


def in_budget(elements: Elements, most: int = 256) -> Iterator[Any]:
    begun: list[Any] = []
    largest = 0
    for x in elements:
        if max(largest, len(x)) * (len(begun) + 1) > most:
            yield padded(begun)
            begun, largest = [], 0
        begun.append(x)
        largest = max(largest, len(x))
    yield padded(begun)


def with_noise(x: Any, generator: np.random.Generator) -> Any:
    return x + generator.random()


def noisy(elements: Elements) -> Iterator[Any]:
    for number, x in enumerate(elements):
        yield with_noise(x, np.random.Generator(np.random.Philox(key=[1, 2], counter=[0, 0, 0, number])))


def resampled(elements: Elements) -> Iterator[Any]:
    for x in elements:
        chosen = int(is_even(x))
        if random.random() < (1, 0.5)[chosen]:
            yield chosen, x


def cut_again(elements: Elements, size: int) -> Iterator[Any]:
    rest = np.empty(0, np.int64)
    for x in elements:
        rest = np.concatenate([rest, x])
        while len(rest) >= size:
            yield rest[:size]
            rest = rest[size:]
    yield rest


def topped_up(elements: Elements) -> Iterator[Any]:
    for x in elements:
        yield {**x, "valid": True}
    for _ in range(8):
        yield {"x": 0, "valid": False}


def filled(dataset: Any) -> Any:
    drain(dataset)
    return dataset


# The cases: what is read, the stage, the loop

INPUTS = {
    "numbers": Input(NUMBERS, np.arange(COUNT)),
    "few numbers": Input(FEW, np.arange(len(FEW))),
    "fewer numbers": Input(BEGINNING, np.arange(len(BEGINNING)), len(BEGINNING)),
    "ragged rows": Input(RAGGED),
    "rows of 16": Input(list(TABLE), TABLE),
    "nothing": Input([]),
}
SOURCES: dict[str, Case] = {
    "range": (lambda _: Dataset.range(COUNT), lambda _: passed(np.arange(COUNT))),
    "from_tensor_slices, two columns": (
        lambda _: Dataset.from_tensor_slices((np.arange(COUNT), np.arange(COUNT))),
        lambda _: beside(np.arange(COUNT), np.arange(COUNT)),
    ),
    "from_list": (lambda _: Dataset.from_list(NUMBERS), lambda _: passed(NUMBERS)),
    "from_generator": (lambda _: Dataset.from_generator(passed, args=[NUMBERS]), lambda _: passed(NUMBERS)),
    "counter": (lambda _: Dataset.counter().take(COUNT), lambda _: map(np.int64, islice(count(), COUNT))),
    "random": (
        lambda _: Dataset.random(seed=1).take(COUNT),
        lambda _: (np.int64(random.getrandbits(32)) for _ in range(COUNT)),
    ),
    "pad_to_cardinality": (
        lambda _: Dataset.from_list(DICTS).pad_to_cardinality(COUNT + 8),
        lambda _: topped_up(DICTS),
    ),
}
STAGES: dict[str, Case] = {
    "assert_cardinality": (lambda ds: ds.assert_cardinality(COUNT), counted),
    "batch(32)": (lambda ds: ds.batch(32), lambda xs: batches(iter(xs), 32)),
    "cache, filled": (lambda ds: filled(ds.cache()), passed),
    "choose_from_datasets": (
        lambda ds: Dataset.choose_from_datasets([ds, ds], Dataset.from_tensor_slices(CHOICES)),
        partial(drawn, CHOICES.tolist()),
    ),
    "concatenate": (
        lambda ds: ds.take(COUNT // 2).concatenate(ds.take(COUNT // 2)),
        twice,
    ),
    "enumerate": (lambda ds: ds.enumerate(), numbered),
    "filter": (lambda ds: ds.filter(is_even), partial(kept, is_even)),
    "group_by_reducer": (
        lambda ds: ds.group_by_reducer(last_digit, Reducer(lambda key: 0, plus, lambda total: total)),
        summed,
    ),
    "group_by_window, batch(32)": (
        lambda ds: ds.group_by_window(last_digit, lambda key, group: group.batch(32), 32),
        partial(grouped, last_digit, 32, np.array),
    ),
    "ignore_errors": (lambda ds: ds.ignore_errors(), passed),
    "map": (lambda ds: ds.map(increment), partial(called, increment)),
    "map, vectorized": (lambda ds: ds.map(increment, vectorized=True), partial(called, increment)),
    "repeat(2)": (lambda ds: ds.take(COUNT // 2).repeat(2), twice),
    "sample_from_datasets": (
        lambda ds: Dataset.sample_from_datasets([ds, ds], seed=1, stop_on_empty_dataset=True).take(COUNT),
        lambda xs: drawn((random.randrange(2) for _ in range(COUNT)), xs),
    ),
    "scan": (lambda ds: ds.scan(np.int64(0), add), scanned),
    "shard": (lambda ds: ds.shard(2, 1), lambda xs: every(xs, 2, 1)),
    "shuffle(1000)": (lambda ds: ds.shuffle(1000, seed=1), shuffled),
    "skip": (lambda ds: ds.skip(COUNT // 2), lambda xs: behind(xs, COUNT // 2)),
    "split": (lambda ds: ds.split([0.5, 0.5], seed=1)[0], halved),
    "take": (lambda ds: ds.take(COUNT - 1), lambda xs: first(xs, COUNT - 1)),
    "take_while": (lambda ds: ds.take_while(is_number), partial(until, is_number)),
    "unique": (lambda ds: ds.unique(), distinct),
    "window(4)": (lambda ds: ds.window(4), lambda xs: lists(xs, 4)),
    "zip": (lambda ds: Dataset.zip(ds, ds), lambda xs: beside(xs, xs)),
}
INNER_DATASETS: dict[str, Case] = {
    f"flat_map, of {INNER} each": (lambda ds: ds.flat_map(inner), flat),
    f"interleave(4), of {INNER} each": (lambda ds: ds.interleave(inner, cycle_length=4), in_turn),
    f"interleave(4), of {INNER} each, parallel": (
        lambda ds: ds.interleave(inner, cycle_length=4, num_parallel_calls=4),
        in_turn,
    ),
}
DEAR: dict[str, Case] = {
    "map, parallel, timeout_seconds": (
        lambda ds: ds.map(increment, num_parallel_calls=2, timeout_seconds=60),
        partial(called, increment),
    ),
    "window(4), flat_map to batches": (
        lambda ds: ds.window(4).flat_map(lambda window: window.batch(4)),
        lambda xs: batches(iter(xs), 4),
    ),
    "rejection_resample": (
        lambda ds: ds.rejection_resample(lambda x: int(is_even(x)), [0.67, 0.33], [0.5, 0.5], seed=1),
        resampled,
    ),
    "prefetch(8)": (lambda ds: ds.prefetch(8), fetched),
    "map, parallel": (lambda ds: ds.map(increment, num_parallel_calls=2), partial(called, increment)),
    "batch(32), parallel": (lambda ds: ds.batch(32, num_parallel_calls=2), lambda xs: batches(iter(xs), 32)),
    "random_map": (lambda ds: ds.random_map(with_noise, seed=1), noisy),
    "random_map, parallel": (lambda ds: ds.random_map(with_noise, seed=1, num_parallel_calls=2), noisy),
}
ON_RAGGED: dict[str, Case] = {
    "batch_by_size(256)": (lambda ds: ds.batch_by_size(256, len), in_budget),
    "bucket_by_sequence_length": (
        lambda ds: ds.bucket_by_sequence_length(len, [5, 9, 13], [32] * 4),
        partial(grouped, lambda row: bisect_right([5, 9, 13], len(row)), 32, padded),
    ),
    "padded_batch(32)": (lambda ds: ds.padded_batch(32), lambda xs: map(padded, lists(xs, 32))),
    "ragged_batch(32)": (lambda ds: ds.ragged_batch(32), lambda xs: map(as_objects, lists(xs, 32))),
    "sparse_batch(32)": (lambda ds: ds.sparse_batch(32, [None]), lambda xs: map(sparse, lists(xs, 32))),
}
ON_BATCHES: dict[str, Case] = {
    "rebatch(10)": (lambda ds: ds.rebatch(10), lambda xs: cut_again(xs, 10)),
    "unbatch": (lambda ds: ds.unbatch(), rows_of),
}
ALL: dict[str, dict[str, Case]] = {
    "nothing": SOURCES,
    "numbers": STAGES,
    "few numbers": INNER_DATASETS,
    "fewer numbers": DEAR,
    "ragged rows": ON_RAGGED,
    "rows of 16": ON_BATCHES,
}
