"""tf.data's stages in plain Python: slow, and so short that they are right at a glance.

A `Reference` is built like a `Dataset`, by methods of the same names, and is written from what tf.data documents. It
shares nothing with the package. A pass is a plain iterator of outcomes: an element, or the class of an exception in
the place of an element that failed. An exception out of it ends the run.
"""

from __future__ import annotations

import glob
from functools import partial
from itertools import count as count_from
from itertools import islice
from math import exp, log
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.errors import CardinalityError, DataError, StructureError
from aiodata.transforms.sparse_batch import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["ANY", "END", "INFINITE", "UNKNOWN", "Reference", "failed"]

Outcomes: TypeAlias = "Iterator[Any]"

INFINITE, UNKNOWN, ANY = -1, -2, -3
END = object()


# Elements


def failed(outcome: Any) -> bool:
    """Tell whether an outcome is an error."""
    return isinstance(outcome, type)


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Give a function's result, or the class of what it raised."""
    try:
        return function(*arguments)
    except Exception as error:
        return type(error)


def applied(function: Callable[..., Any], element: Any) -> Any:
    """Call as `map` does: a plain tuple is unpacked."""
    return called(function, *element) if type(element) is tuple else called(function, element)


def on_leaves(function: Callable[[Any], Any], element: Any) -> Any:
    """Rebuild a structure with a function of its leaves; None stays."""
    if isinstance(element, dict):
        return {key: on_leaves(function, part) for key, part in element.items()}
    if isinstance(element, tuple):
        parts = [on_leaves(function, part) for part in element]
        return type(element)(*parts) if hasattr(element, "_fields") else tuple(parts)
    return None if element is None else function(element)


def leaves(element: Any) -> list[Any]:
    """List the leaves that are not None."""
    found: list[Any] = []
    on_leaves(found.append, element)
    return found


def together(elements: Sequence[Any], join: Callable[[Sequence[Any]], Any]) -> Any:
    """Rebuild the elements' structure with what `join` makes of the values of each leaf."""
    first = elements[0]
    if isinstance(first, dict):
        return {key: together([element[key] for element in elements], join) for key in first}
    if isinstance(first, tuple):
        parts = [together(column, join) for column in zip(*elements, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return None if first is None else join(elements)


def as_array(leaf: Any) -> Any:
    """Give a leaf as an array; text in one of objects, an empty list as float32."""
    sample = leaf[0] if isinstance(leaf, list) and leaf else leaf
    dtype = object if isinstance(sample, (bytes, str)) else np.float32 if isinstance(leaf, list) and not leaf else None
    return np.array(leaf, dtype)


def returned(result: Any) -> Any:
    """Make an element of a function's result: a list is a tuple of components, one inside is an array."""
    if result is None:
        return TypeError
    if isinstance(result, list):
        result = tuple(result)
    return lists_as_arrays(result)


def lists_as_arrays(element: Any) -> Any:
    return on_leaves(lambda leaf: as_array(leaf) if isinstance(leaf, list) else leaf, element)


def declared(element: Any, signature: tuple[Any, ...]) -> Any:
    """Convert an element to what its generator's signature declares."""
    if not isinstance(element, tuple) or len(element) != len(signature):
        raise StructureError
    converted = []
    for leaf, spec in zip(element, signature, strict=True):
        array = np.array(leaf)
        sizes = zip(array.shape, spec.shape, strict=False)
        if array.ndim != len(spec.shape) or any(most not in (None, size) for size, most in sizes):
            raise StructureError
        if array.dtype.kind not in "iu" and spec.dtype.kind in "iu" and array.size:
            raise StructureError
        converted.append(array.astype(spec.dtype)[()])
    return tuple(converted)


def stacked(values: Sequence[Any]) -> Any:
    """Join the values of one leaf along a new axis."""
    arrays = [as_array(value) for value in values]
    if len({(array.shape, array.dtype) for array in arrays}) > 1:
        raise StructureError
    return np.stack(arrays)


def padded(values: Sequence[Any], shape: Any = None, fill: Any = None) -> Any:
    """Join the values of one leaf along a new axis, each padded at its ends."""
    arrays = [as_array(value) for value in values]
    if len({(array.ndim, array.dtype) for array in arrays}) > 1:
        raise StructureError
    longest = [max(sizes) for sizes in zip(*[array.shape for array in arrays], strict=True)]
    target = [
        most if size in (None, -1) else size
        for most, size in zip(longest, longest if shape is None else shape, strict=True)
    ]
    if any(most > size for most, size in zip(longest, target, strict=True)):
        raise StructureError
    dtype = arrays[0].dtype
    default: Any = b"" if dtype.hasobject else np.zeros((), dtype)
    joined = np.full((len(arrays), *target), default if fill is None else fill, dtype)
    for number, array in enumerate(arrays):
        here: tuple[Any, ...] = (number, *map(slice, array.shape))
        joined[here] = array if array.ndim else array[()]
    return joined


def rows_of(element: Any) -> list[Any]:
    """List the rows of an element."""
    found = leaves(element)
    if not all(isinstance(leaf, np.ndarray) and leaf.ndim for leaf in found) or len(set(map(len, found))) != 1:
        raise StructureError
    return [on_leaves(itemgetter(row), element) for row in range(len(found[0]))]


# Random words: tf.data's Philox 4x32, its seed pairs, its selections


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Give one block of four words."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b % 2**32, a >> 32 ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def words(seed: int, seed2: int) -> Iterator[int]:
    """Give the stream of words that a pair of seeds names."""
    for block in count_from():
        yield from philox((block % 2**32, block >> 32, seed2 % 2**32, seed2 >> 32), (seed % 2**32, seed >> 32))


def pairs(seed: int, fresh: bool) -> Iterator[tuple[int, int]]:
    """Give the pair of seeds for each pass over a seeded stage: a fresh one, or always the stage's own."""
    own = (87654321, seed % (2**31 - 1))
    stream = words(*own)
    while True:
        yield (next(stream), next(stream)) if fresh else own


def selections(pair: tuple[int, int], weights: Sequence[float] | None, inputs: int) -> Iterator[int]:
    """Give the numbers of inputs, drawn by their weights."""
    logits = [1.0] * inputs if weights is None else [float(np.float32(log(np.float32(weight)))) for weight in weights]
    sums = [sum(exp(logit - max(logits)) for logit in logits[: number + 1]) for number in range(inputs)]
    stream = words(*pair)
    while True:
        mixed = philox((next(stream), 0, next(stream), 0), (0x3EC8F720, 0x02461E29))
        high, low, *_ = philox((0, 0, mixed[2], mixed[3]), mixed[:2])
        threshold = ((high % 2**20) << 32 | low) * 2.0**-52 * sums[-1]
        yield next(number for number in range(inputs) if sums[number] > threshold)


# One pass over each stage, from the outcomes of its input to its own


def mapped(elements: Outcomes, function: Callable[..., Any]) -> Outcomes:
    for x in elements:
        result = x if failed(x) else applied(function, x)
        yield result if failed(result) else returned(result)


def filtered(elements: Outcomes, predicate: Callable[..., Any]) -> Outcomes:
    for x in elements:
        keep = x if failed(x) else applied(predicate, x)
        if failed(keep):
            yield keep
        elif type(keep) is not bool:
            yield TypeError
        elif keep:
            yield x


def numbered(elements: Outcomes, start: int) -> Outcomes:
    for number, x in enumerate(elements, start):
        yield x if failed(x) else (np.int64(number), x)


def behind(elements: Outcomes, count: int) -> Outcomes:
    for x in islice(elements, count):
        if failed(x):
            yield x
    yield from elements


def epochs(source: Reference, first: Outcomes, times: int) -> Outcomes:
    epoch = first
    for done in count_from(1):
        empty = True
        for x in epoch:
            empty = False
            yield x
        # A repeat that tf.data fuses with the shuffle before it opens no epoch that it does not need.
        if (empty and (times < 0 or source.is_shuffle)) or (done == times and source.is_shuffle):
            return
        epoch = source.begin()
        if done == times:
            return


def shuffled(source: Reference, size: int, stream: Iterator[int]) -> Outcomes:
    elements = source.begin()
    window: list[Any] = []
    x: Any = None
    while True:
        while x is not END and (len(window) < size or size < 0):
            x = next(elements, END)
            if failed(x):
                yield x
            elif x is not END:
                window.append(x)
        if not window:
            return
        place = next(stream) % len(window)
        chosen, window[place] = window[place], window[0]
        del window[0]
        yield chosen


def batched(elements: Outcomes, size: int, drop: bool, collate: Callable[[list[Any]], Any]) -> Outcomes:
    begun: list[Any] = []
    for x in elements:
        if failed(x):
            begun = []
            yield x
            continue
        begun.append(x)
        if len(begun) == size:
            yield called(collate, begun)
            begun = []
    if begun and not drop:
        yield called(collate, begun)


def unbatched(elements: Outcomes) -> Outcomes:
    for x in elements:
        rows = x if failed(x) else called(rows_of, x)
        yield from [rows] if failed(rows) else rows


def interleaved(elements: Outcomes, function: Callable[..., Any], cycle: int, block: int) -> Outcomes:
    slots: list[Any] = [None] * cycle
    x: Any = None
    turn, more = 0, True
    while more or any(slots):
        if slots[turn] is None and more:
            x = next(elements, END)
            if x is END:
                more = False
                continue
            inner: Any = x if failed(x) else applied(function, x)
            if failed(inner):
                yield inner
                continue
            slots[turn] = inner.begin()
        for _ in range(block if slots[turn] else 0):
            y = next(slots[turn], END)
            if y is END:
                slots[turn] = None
                break
            yield y
        turn = (turn + 1) % cycle


def kept(elements: Outcomes, expected: int, store: list[Any]) -> Outcomes:
    seen: list[Any] = []
    for x in elements:
        if not failed(x):
            seen.append(x)
            if len(seen) == expected and not store:
                store.append(list(seen))
        yield x
    if not store:
        store.append(seen)


def zipped(passes: Sequence[Outcomes], pack: Callable[[list[Any]], Any]) -> Outcomes:
    while True:
        row: list[Any] = []
        for each in passes:
            row.append(next(each, END))
            if row[-1] is END:
                break
        errors = [x for x in row if failed(x)]
        if errors:
            yield errors[0]
        elif row[-1] is not END:
            yield pack(row)
        if row[-1] is END:
            return


def directed(choices: Iterator[Any], passes: Sequence[Outcomes], stop: bool) -> Outcomes:
    left = dict(enumerate(passes))
    for choice in choices:
        if failed(choice):
            yield choice
        elif not 0 <= choice < len(passes):
            yield DataError
        elif choice in left:
            x = next(left[choice], END)
            if x is not END:
                yield x
                continue
            del left[choice]
            if stop or not left:
                return


def windows(elements: Outcomes, size: int, shift: int, stride: int, drop: bool) -> Outcomes:
    seen: list[Any] = []
    for start in count_from(0, shift):
        places = range(start, start + size * stride, stride)
        seen.extend(islice(elements, max(0, places[-1] + 1 - len(seen))))
        found = [seen[place] for place in places if place < len(seen)]
        if not found or (drop and len(found) < size):
            return
        errors = [x for x in found if failed(x)]
        yield errors[0] if errors else called(together, found, Reference.of)


def in_groups(
    elements: Outcomes, key_of: Callable[..., Any], size_of: Callable[[Any], int], reduce: Callable[..., Any]
) -> Outcomes:
    groups: dict[Any, list[Any]] = {}

    def closed(key: Any) -> Outcomes:
        given = called(reduce, np.int64(key), Reference.of(groups.pop(key)))
        yield from [given] if failed(given) else given.begin()

    for x in elements:
        key = x if failed(x) else applied(key_of, x)
        if failed(key):
            yield key
            continue
        groups.setdefault(key, []).append(x)
        if len(groups[key]) == size_of(key):
            yield from closed(key)
    for key in sorted(groups):
        yield from closed(key)


def reduced(elements: Outcomes, key_of: Callable[..., Any], reducer: Any) -> Outcomes:
    states: dict[Any, Any] = {}
    for x in elements:
        key = x if failed(x) else applied(key_of, x)
        if failed(key):
            yield key
            continue
        state = states[key] if key in states else called(reducer.init_func, np.int64(key))
        if failed(state):
            yield state
            continue
        states[key] = state
        after = called(reducer.reduce_func, state, x)
        if failed(after):
            yield after
        else:
            states[key] = after
    for key in sorted(states):
        yield applied(reducer.finalize_func, states[key])


def scanned(elements: Outcomes, state: Any, function: Callable[[Any, Any], Any]) -> Outcomes:
    for x in elements:
        pair = x if failed(x) else called(function, state, x)
        if failed(pair):
            yield pair
        elif type(pair[0]) is not type(state):
            yield StructureError
        else:
            state, output = pair
            yield lists_as_arrays(output)


def taken_while(elements: Outcomes, predicate: Callable[..., Any]) -> Outcomes:
    for x in elements:
        keep = x if failed(x) else applied(predicate, x)
        if failed(keep) or type(keep) is not bool:
            yield keep if failed(keep) else TypeError
        elif keep:
            yield x
        else:
            return


def distinct(elements: Outcomes) -> Outcomes:
    seen = set()
    for x in elements:
        if failed(x):
            yield x
        elif isinstance(x, (tuple, dict)) or as_array(x).dtype.kind not in "iubO":
            yield TypeError
        elif (key := (as_array(x).shape, as_array(x).tobytes()) if isinstance(x, np.ndarray) else x) not in seen:
            seen.add(key)
            yield x


def rebatched(elements: Outcomes, sizes: Sequence[int], drop: bool) -> Outcomes:
    turn = 0
    begun: list[Any] = []
    row: Any = None
    for x in unbatched(elements):
        while not sizes[turn]:
            yield empty_batch(x if row is None and not failed(x) else row)
            turn = (turn + 1) % len(sizes)
        if failed(x):
            begun = []
            yield x
            continue
        row = x
        begun.append(x)
        if len(begun) == sizes[turn]:
            yield called(together, begun, stacked)
            begun = []
            turn = (turn + 1) % len(sizes)
    if begun and not drop:
        yield called(together, begun, stacked)
    while not begun and row is not None and not sizes[turn]:
        yield empty_batch(row)
        turn = (turn + 1) % len(sizes)


def empty_batch(row: Any) -> Any:
    return on_leaves(lambda leaf: stacked([leaf])[:0], row)


def in_budget(
    elements: Outcomes, most: int, size_of: Callable[..., Any], longest: float, drop: bool, collate: Callable[..., Any]
) -> Outcomes:
    begun: list[Any] = []
    largest: Any = 0
    for x in elements:
        if failed(x):
            begun, largest = [], 0
            yield x
            continue
        size: Any = applied(size_of, x)
        size = DataError if not failed(size) and size > most else size
        if begun and (failed(size) or max(largest, size) * (len(begun) + 1) > most):
            yield called(collate, begun)
            begun, largest = [], 0
        if failed(size):
            yield size
            continue
        begun.append(x)
        largest = max(largest, size)
        if largest * (len(begun) + 1) > most or len(begun) == longest:  # no other one can join
            yield called(collate, begun)
            begun, largest = [], 0
    if begun and not drop:
        yield called(collate, begun)


def ascertained(elements: Outcomes, expected: int) -> Outcomes:
    count = 0
    for x in elements:
        count += not failed(x)
        if count > expected >= 0:
            yield CardinalityError
            return
        yield x
    if count != expected:
        yield CardinalityError


def evened(elements: Outcomes, shards: int, index: int, pad: bool) -> Outcomes:
    count = 0
    own: Any = None
    good: Any = DataError
    for x in elements:
        if count % shards == index:
            own, good = x, good if failed(x) else x
            if pad:
                yield x
        count += 1
        if not pad and count % shards == 0:
            yield own
    if count < (index + 1 if pad else shards):
        raise DataError  # it ends the run
    if pad and 0 < count % shards <= index:
        yield good


def topped_up(elements: Outcomes, goal: int, key: str) -> Outcomes:
    like: Any = None
    for x in elements:
        goal -= 1
        like = x if like is None and not failed(x) else like
        yield x if failed(x) else {**x, key: np.True_}
    if goal and like is None:
        yield StructureError
        return
    zeros = on_leaves(lambda leaf: type(leaf)() if isinstance(leaf, (bytes, str)) else leaf * 0, like)
    for _ in range(goal):
        yield {**zeros, key: np.False_}


def with_generators(elements: Outcomes, function: Callable[..., Any], key: tuple[int, int]) -> Outcomes:
    for number, x in enumerate(elements):
        generator = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64), counter=[0, 0, 0, number]))
        given = x if failed(x) else called(function, *(x if type(x) is tuple else (x,)), generator)
        yield given if failed(given) else returned(given)


def classified(elements: Outcomes, class_of: Callable[..., Any], classes: int) -> Outcomes:
    for x in elements:
        found = x if failed(x) else applied(class_of, x)
        yield found if failed(found) else (found, x) if 0 <= found < classes else DataError


def accepted(elements: Outcomes, shares: Any, pair: tuple[int, int]) -> Outcomes:
    stream = words(*pair)
    for x in elements:
        if failed(x):
            yield x
            continue
        bits = 127 << 23 | next(stream) & 0x7FFFFF
        for _ in range(256 * 4 - 1):
            next(stream)
        if np.uint32(bits).view(np.float32) - np.float32(1) < shares[x[0]]:
            yield x


def joined(parts: Sequence[Reference]) -> Outcomes:
    for part in parts:
        yield from part.begin()


def lines_of(paths: Iterable[Any]) -> Outcomes:
    for path in paths:
        content = Path(path).read_bytes().replace(b"\r", b"")
        yield from content.removesuffix(b"\n").split(b"\n") if content else ()


# Datasets


class Reference:
    """What a dataset should give.

    Args:
        begin: Opens a pass.
        count: The cardinality; `ANY` where it depends on shapes, which are not followed here.
        is_shuffle: Whether tf.data fuses a `repeat` that follows with this stage.
    """

    def __init__(self, begin: Callable[[], Outcomes], count: int, is_shuffle: bool = False) -> None:
        self.begin = begin
        self.count = count
        self.is_shuffle = is_shuffle

    def outcomes(self, most: int) -> tuple[list[Any], bool]:
        """Read a pass, up to some outcomes; tell whether it was ended by an error, which then comes last."""
        found: list[Any] = []
        try:
            for x in islice(self.begin(), most):
                found += [x]
        except DataError as error:
            return [*found, type(error)], True
        return found, False

    def then(self, stage: Callable[..., Outcomes], *arguments: Any, count: int | None = None) -> Reference:
        """Give the input with a stage behind it, which is opened with it; the cardinality is the input's or `count`."""
        return Reference(lambda: stage(self.begin(), *arguments), self.count if count is None else count)

    def counted(self, function: Callable[[int], int]) -> int:
        """Give what a function makes of the cardinality, if it is a number."""
        return self.count if self.count < 0 else function(self.count)

    # Sources

    @staticmethod
    def of(elements: Sequence[Any]) -> Reference:
        return Reference(lambda: iter(elements), len(elements))

    @staticmethod
    def range(*bounds: int, output_type: Any = np.int64) -> Reference:
        return Reference.of([np.dtype(output_type).type(number) for number in range(*bounds)])

    @staticmethod
    def from_tensors(tensors: Any) -> Reference:
        return Reference.of([lists_as_arrays(tensors)])

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Reference:
        return Reference.of(rows_of(lists_as_arrays(tensors)))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterator[Any]], *, args: Sequence[Any] = (), output_signature: Any = None
    ) -> Reference:
        """Model signatures of flat tuples."""

        def generated() -> Outcomes:
            elements = generator(*args)
            while (x := called(next, elements, END)) is not END:
                if failed(x):
                    yield x
                    return
                yield returned(x) if output_signature is None else called(declared, x, output_signature)

        return Reference(generated, UNKNOWN)

    @staticmethod
    def random(seed: int, rerandomize_each_iteration: bool = False) -> Reference:
        seeds = pairs(seed, rerandomize_each_iteration)
        return Reference(lambda: map(np.int64, words(*next(seeds))), INFINITE)

    @staticmethod
    def list_files(pattern: str, shuffle: bool = True, seed: int = 0) -> Reference:
        names = sorted(name.encode() for name in glob.glob(pattern))
        files = Reference.of(names).shuffle(len(names), seed) if shuffle else Reference.of(names)
        return Reference(files.begin, UNKNOWN, is_shuffle=shuffle)

    @staticmethod
    def text_lines(paths: Sequence[Any]) -> Reference:
        return Reference(lambda: lines_of(paths), UNKNOWN)

    @staticmethod
    def zip(*datasets: Any) -> Reference:
        structure = datasets[0] if len(datasets) == 1 else datasets
        inputs = leaves(structure)
        counts = [each.count for each in inputs]

        def pack(row: list[Any]) -> Any:
            rest = iter(row)
            return on_leaves(lambda _: next(rest), structure)

        finite = min((count for count in counts if count != INFINITE), default=INFINITE)
        count = next((count for count in (UNKNOWN, ANY) if count in counts), finite)
        return Reference(lambda: zipped([each.begin() for each in inputs], pack), count)

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Reference],
        weights: Sequence[float] | None = None,
        seed: int = 0,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool = False,
    ) -> Reference:
        seeds = pairs(seed, rerandomize_each_iteration)

        def begin() -> Outcomes:
            choices = selections(next(seeds), weights, len(datasets))
            return directed(choices, [each.begin() for each in datasets], stop_on_empty_dataset)

        return Reference(begin, INFINITE if all(each.count == INFINITE for each in datasets) else UNKNOWN)

    @staticmethod
    def from_list(elements: Sequence[Any]) -> Reference:
        def converted(leaf: Any) -> Any:
            return as_array(leaf)[()] if isinstance(leaf, (list, int, float)) else leaf

        return Reference.of([on_leaves(converted, element) for element in elements])

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Reference:
        def numbers() -> Outcomes:
            number = np.array([start], dtype)
            while True:
                yield number[0]
                number = number + np.array([step], dtype)

        return Reference(numbers, INFINITE)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Reference], choice_dataset: Reference, stop_on_empty_dataset: bool = True
    ) -> Reference:
        def begin() -> Outcomes:
            choices = choice_dataset.begin()
            return directed(choices, [each.begin() for each in datasets], stop_on_empty_dataset)

        return Reference(
            begin, INFINITE if all(each.count == INFINITE for each in [choice_dataset, *datasets]) else UNKNOWN
        )

    # Transformations

    def apply(self, function: Callable[[Any], Any]) -> Any:
        return function(self)

    def map(
        self,
        function: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        vectorized: bool = False,
        timeout_seconds: float | None = None,
    ) -> Reference:
        return self.then(mapped, function)

    def filter(self, predicate: Callable[..., Any]) -> Reference:
        return self.then(filtered, predicate, count=UNKNOWN)

    def flat_map(self, function: Callable[..., Any]) -> Reference:
        return self.then(interleaved, function, 1, 1, count=UNKNOWN)

    def interleave(
        self,
        function: Callable[..., Any],
        cycle_length: int,
        block_length: int = 1,
        num_parallel_calls: int | None = None,
    ) -> Reference:
        count = INFINITE if self.count == INFINITE and num_parallel_calls else UNKNOWN
        return self.then(interleaved, function, cycle_length, block_length, count=count)

    def batch(self, batch_size: int, drop_remainder: bool = False, num_parallel_calls: int | None = None) -> Reference:
        def collate(elements: list[Any]) -> Any:
            return together(elements, stacked)

        count = self.counted(lambda n: n // batch_size if drop_remainder else -(-n // batch_size))
        return self.then(batched, batch_size, drop_remainder, collate, count=count)

    def padded_batch(self, batch_size: int, drop_remainder: bool = False, padded_shapes: Any = None) -> Reference:
        def collate(elements: list[Any]) -> Any:
            return together(elements, lambda values: padded(values, padded_shapes))

        count = self.counted(lambda n: n // batch_size if drop_remainder else -(-n // batch_size))
        return self.then(batched, batch_size, drop_remainder, collate, count=count)

    def unbatch(self) -> Reference:
        return self.then(unbatched, count=INFINITE if self.count == INFINITE else ANY)

    def cache(self) -> Reference:
        store: list[Any] = []

        def begin() -> Outcomes:
            return iter(store[0]) if store else kept(self.begin(), self.count, store)

        return Reference(begin, self.count)

    def concatenate(self, dataset: Reference) -> Reference:
        counts = [self.count, dataset.count]
        count = next((count for count in (INFINITE, UNKNOWN, ANY) if count in counts), sum(counts))
        return Reference(lambda: joined([self, dataset]), count)

    def enumerate(self, start: int = 0) -> Reference:
        return self.then(numbered, start)

    def prefetch(self, buffer_size: int) -> Reference:
        return self.then(iter)

    def repeat(self, count: int | None = None) -> Reference:
        times = -1 if count is None else max(-1, count)
        if times == 1:
            return self
        if times == 0:
            return Reference(lambda: iter(()), 0)
        known = 0 if self.count == 0 else INFINITE if times < 0 else self.counted(lambda n: n * times)
        return Reference(lambda: epochs(self, self.begin(), times), known)

    def shard(self, num_shards: int, index: int, *, remainder: str = "keep") -> Reference:
        if remainder != "keep":
            count = self.counted(lambda n: n // num_shards if remainder == "drop" else -(-n // num_shards))
            if count == 0 or (remainder == "pad" and 0 <= self.count <= index):
                raise ValueError("the shard is empty")
            return self.then(evened, num_shards, index, remainder == "pad", count=count)
        if num_shards == 1:
            return self
        count = self.counted(lambda n: len(range(index, n, num_shards)))
        return self.then(lambda elements: islice(elements, index, None, num_shards), count=count)

    def shuffle(self, buffer_size: int, seed: int, reshuffle_each_iteration: bool = True) -> Reference:
        seeds = pairs(seed, reshuffle_each_iteration)

        def begin() -> Outcomes:
            return shuffled(self, buffer_size, words(*next(seeds)))

        return Reference(begin, self.count, is_shuffle=True)

    def skip(self, count: int) -> Reference:
        if count < 0:
            return Reference(lambda: iter(()), self.counted(lambda _: 0))
        if count == 0:
            return self
        return self.then(behind, count, count=self.counted(lambda n: max(0, n - count)))

    def take(self, count: int) -> Reference:
        if count < 0:
            return self
        known = count if self.count == INFINITE else self.counted(lambda n: min(count, n))
        return Reference(lambda: islice(self.begin(), count) if count else iter(()), known)

    def window(self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False) -> Reference:
        step, span = shift or size, (size - 1) * stride + 1
        count = self.counted(lambda n: max(0, (n - span) // step + 1) if drop_remainder else -(-n // step))
        return self.then(windows, size, step, stride, drop_remainder, count=count)

    def group_by_window(
        self, key_func: Any, reduce_func: Any, window_size: int | None = None, window_size_func: Any = None
    ) -> Reference:
        size_of = window_size_func or (lambda key: window_size)
        count = INFINITE if self.count == INFINITE else UNKNOWN
        return self.then(in_groups, key_func, size_of, reduce_func, count=count)

    def bucket_by_sequence_length(
        self,
        element_length_func: Any,
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
    ) -> Reference:
        """Model elements of one-dimensional components whose shapes are not known beforehand."""

        def bucket_of(*element: Any) -> int:
            length = element_length_func(*element)
            return sum(boundary <= length for boundary in bucket_boundaries)

        def batch_of(bucket: Any, group: Reference) -> Reference:
            size = bucket_batch_sizes[bucket]
            if no_padding:
                return group.batch(size, drop_remainder)
            if pad_to_bucket_boundary and bucket == len(bucket_boundaries):
                raise DataError
            shape = [bucket_boundaries[bucket] - 1] if pad_to_bucket_boundary else None
            return group.padded_batch(size, drop_remainder, shape)

        count = INFINITE if self.count == INFINITE else UNKNOWN
        return self.then(in_groups, bucket_of, lambda bucket: bucket_batch_sizes[bucket], batch_of, count=count)

    def group_by_reducer(self, key_func: Any, reducer: Any) -> Reference:
        return self.then(reduced, key_func, reducer, count=UNKNOWN)

    def scan(self, initial_state: Any, scan_func: Any) -> Reference:
        return self.then(scanned, initial_state, scan_func)

    def take_while(self, predicate: Any) -> Reference:
        return self.then(taken_while, predicate, count=UNKNOWN)

    def unique(self) -> Reference:
        return self.then(distinct, count=UNKNOWN)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False) -> Reference:
        sizes = [batch_size] if isinstance(batch_size, int) else batch_size
        return self.then(rebatched, sizes, drop_remainder, count=UNKNOWN)

    def ragged_batch(self, batch_size: int, drop_remainder: bool = False) -> Reference:
        """Model elements whose shapes are not known beforehand."""

        def gathered(values: Sequence[Any]) -> Any:
            arrays = [as_array(value) for value in values]
            if len({(array.ndim, array.dtype) for array in arrays}) > 1:
                raise StructureError
            if not arrays[0].ndim:
                return stacked(values)
            rows = np.empty(len(arrays), object)
            for number, array in enumerate(arrays):
                rows[number] = array
            return rows

        count = self.counted(lambda n: n // batch_size if drop_remainder else -(-n // batch_size))
        return self.then(batched, batch_size, drop_remainder, lambda rows: together(rows, gathered), count=count)

    def sparse_batch(self, batch_size: int, row_shape: Sequence[int | None]) -> Reference:
        """Model arrays of the rank of `row_shape`."""

        def checked(elements: Outcomes) -> Outcomes:
            for x in elements:
                sizes = () if failed(x) else x.shape
                misfits = any(most is not None and size > most for size, most in zip(sizes, row_shape, strict=False))
                yield StructureError if misfits else x

        def collate(rows: list[Any]) -> Any:
            places = [(number, *place) for number, row in enumerate(rows) for place in np.ndindex(*row.shape)]
            values = [value for row in rows for value in row.ravel()]
            longest = [max(row.shape[axis] for row in rows) for axis in range(len(row_shape))]
            wanted = [most if size is None else size for most, size in zip(longest, row_shape, strict=True)]
            shape = [len(rows), *wanted]
            indices = np.array(places, np.int64).reshape(len(places), len(shape))
            return SparseTensor(indices, np.array(values, rows[0].dtype), np.array(shape, np.int64))

        count = self.counted(lambda n: -(-n // batch_size))
        return self.then(lambda elements: batched(checked(elements), batch_size, False, collate), count=count)

    def batch_by_size(
        self, max_size: int, size_fn: Any, max_elements: int | None = None, *, drop_remainder: bool = False
    ) -> Reference:
        longest = float("inf") if max_elements is None else max_elements
        count = INFINITE if self.count == INFINITE else UNKNOWN
        collate = partial(together, join=padded)
        return self.then(in_budget, max_size, size_fn, longest, drop_remainder, collate, count=count)

    def assert_cardinality(self, expected_cardinality: int) -> Reference:
        return self.then(ascertained, expected_cardinality, count=expected_cardinality)

    def pad_to_cardinality(self, cardinality: int, mask_key: str = "valid") -> Reference:
        return self.then(topped_up, cardinality, mask_key, count=cardinality)

    def ignore_errors(self) -> Reference:
        return self.then(lambda elements: (x for x in elements if not failed(x)), count=UNKNOWN)

    def random_map(self, map_func: Any, seed: int, num_parallel_calls: int | None = None) -> Reference:
        seeds = pairs(seed, fresh=True)
        return Reference(lambda: with_generators(self.begin(), map_func, next(seeds)), self.count)

    def rejection_resample(self, class_func: Any, target_dist: Any, initial_dist: Any, seed: int) -> Reference:
        target, initial = np.array(target_dist, np.float32), np.array(initial_dist, np.float32)
        ratios = target / (initial + np.float32(1.17549435e-38))
        pair = next(pairs(seed, fresh=False))
        every = self.then(classified, class_func, len(target))
        if min(target / initial) == 1:
            return every
        shares = (ratios - ratios.min()) / (ratios.max() - ratios.min())
        some = every.then(accepted, shares, pair, count=UNKNOWN)
        if min(target / initial) == 0:
            return some
        weights = [float(ratios.min()), float(np.float32(1) - ratios.min())]
        mix = Reference.sample_from_datasets([every, some], weights, seed, stop_on_empty_dataset=True)
        return Reference(mix.begin, INFINITE if self.count == INFINITE else UNKNOWN)
