"""Random chains against `tests/reference.py`, and against themselves in other forms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain as flat
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, currently_in_test_context, given, note, settings
from hypothesis import strategies as st

from aiodata import Dataset, TextLineDataset
from aiodata.spec import NoneTensorSpec, TensorSpec
from aiodata.transforms.group_by_reducer import Reducer
from tests.programs import Boom, Pair
from tests.reference import ANY, Reference, failed
from tests.resume.saving import FACES, check_rest, drive, part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MOST = 80


# Functions of elements of any structure


def number(*element: Any) -> int:
    """Boil any element down to a number."""
    total = len(element)
    for leaf in element:
        if isinstance(leaf, dict):
            total += number(*leaf.values())
        elif isinstance(leaf, (tuple, list)) or (isinstance(leaf, np.ndarray) and leaf.ndim):
            total += 3 * number(*leaf)
        elif isinstance(leaf, (bytes, str)):
            total += len(leaf)
        elif leaf is not None:
            total += int(leaf) % 1000
    return total


def identity(*element: Any) -> Any:
    return element if len(element) > 1 else element[0]


def failing(*element: Any) -> Any:
    if number(*element) % 5 == 3:
        raise Boom(number(*element))
    return identity(*element)


def as_number(*element: Any) -> Any:
    return np.int64(number(*element))


def as_float(*element: Any) -> Any:
    return number(*element) / 4  # a float of Python's


def as_dict(*element: Any) -> Any:
    return {"n": np.int32(number(*element) % 50), "row": np.arange(3) + number(*element), "text": b"x" * len(element)}


def as_pair(*element: Any) -> Any:
    value = number(*element)
    return Pair((np.float32(value), value % 2 == 0), {"part": np.full((2, 1), value % 7, np.int8)})


def as_list(*element: Any) -> Any:
    return [number(*element), [number(*element), 1]]


def ragged(*element: Any) -> Any:
    return np.arange(number(*element) % 4), np.full((1, number(*element) % 3), 0.5)


def uneven(*element: Any) -> Any:
    value = number(*element)
    return np.arange(value % 3), np.arange(value % 3 if value % 5 else 1)


def sequence(*element: Any) -> Any:
    return {"row": np.arange(number(*element) % 7), "n": np.float32(number(*element))}


def grid(*element: Any) -> Any:
    return np.full((number(*element) % 3, number(*element) % 4), number(*element) % 2, np.int16)


def small(*element: Any) -> Any:
    return np.int32(number(*element) % 4)


def small_text(*element: Any) -> Any:
    return b"z" * (number(*element) % 4)


def small_row(*element: Any) -> Any:
    return np.arange(number(*element) % 3) if number(*element) % 4 else np.zeros((0, 2), np.int64)


def length_of(element: Any) -> Any:
    return failing(len(element["row"])) if element["n"] % 6 == 5 else len(element["row"])


def key_of(*element: Any) -> Any:
    return np.int64(failing(number(*element)) % 3 - 1)


def size_of(key: Any) -> Any:
    return np.int64(2 + key)


def add(state: Any, element: Any) -> Any:
    total = np.int64(state + number(element) % 10)
    return total, [total, {"element": element}]


def add_failing(state: Any, element: Any) -> Any:
    total = np.int64(state + failing(number(element)))
    return (total if total % 3 else np.float32(total)), total


def drawn(*element_and_rng: Any) -> Any:
    *element, rng = element_and_rng
    failing(*element)
    return number(*element), rng.integers(1000, size=2)


REDUCER = Reducer(
    lambda key: (failing(key + 4), np.int64(0)),
    lambda state, element: (state[0], state[1] + failing(number(element))),
    lambda key, total: {"key": key, "total": failing(total)},
)


def nothing(*element: Any) -> Any:
    return None if number(*element) % 4 == 1 else number(*element)


def keep(*element: Any) -> bool:
    return number(*element) % 3 != 1


def keep_failing(*element: Any) -> Any:
    failing(*element)
    return number(*element) % 3 != 1 if number(*element) % 7 else "no bool"


FUNCTIONS = [as_number, as_float, as_dict, as_pair, as_list, ragged]


def one_more(*element: Any) -> Any:
    """Add one to every number, in arrays too: the same for a row and for columns."""

    def more(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: more(value) for key, value in part.items()}
        if isinstance(part, Pair):
            return Pair(*map(more, part))
        if isinstance(part, tuple):
            return tuple(map(more, part))
        is_text = isinstance(part, (bytes, str)) or (isinstance(part, np.ndarray) and part.dtype == object)
        return part if part is None or is_text else part + 1

    return more(identity(*element))


# What chains are made of: each is said once, for datasets and for references


@dataclass(frozen=True)
class World:
    """In what a chain is built, and how."""

    dataset: Any
    path: Path
    calls: int | None = None
    rows: bool = False

    def few(self, *element: Any) -> Any:
        first = number(*element)
        return self.dataset.range(first, first + first % 4)

    def few_failing(self, *element: Any) -> Any:
        return self.few(*element).map(failing)

    def few_shuffled(self, *element: Any) -> Any:
        return self.few(*element).concatenate(self.few(*element)).shuffle(3, seed=1)

    def later(self, function: Callable[..., Any]) -> Any:
        """Make a coroutine function of a function, for datasets."""

        async def awaited(*element: Any) -> Any:
            return function(*element)

        return awaited if self.dataset is Dataset else function

    def reunited(self, *windows: Any) -> Any:
        """Make one dataset of the parts of a window."""
        return self.dataset.zip(windows if len(windows) > 1 else windows[0])

    def batches(self, *windows: Any) -> Any:
        return self.reunited(*windows).batch(3)

    def group(self, key: Any, group: Any) -> Any:
        failing(key + 2)
        return group.batch(2).enumerate(int(key))

    def lines(self, *paths: Path) -> Any:
        return TextLineDataset(list(paths)) if self.dataset is Dataset else Reference.text_lines(paths)


def count_up(size: int) -> Iterator[Any]:
    for x in range(size):
        yield [x, b"x" * x]


def count_and_fail(size: int) -> Iterator[Any]:
    yield from range(size // 2)
    raise Boom(size)


SIGNATURE = (TensorSpec((), np.int16), TensorSpec((None,), np.float32))


def count_declared(size: int) -> Iterator[Any]:
    """Give elements of which some are not as `SIGNATURE` says: in their structure, their rank, or their type."""
    for x in range(size):
        yield x if x % 7 == 4 else (x, [[x]] if x % 5 == 3 else [x] * (x % 3)) if x % 6 else (0.5, [])


def columns(size: int) -> Any:
    ids = np.arange(size, dtype=np.int16)
    pair = Pair(ids % 2 == 0, [b"a" * x for x in ids])
    return {"id": ids, "parts": (np.arange(size * 4.0).reshape(size, 2, 2), pair)}


SOURCES: dict[str, Callable[[World, int], Any]] = {
    "range": lambda world, n: world.dataset.range(n),
    "range in steps": lambda world, n: world.dataset.range(n, -n, -2, output_type=np.float32),
    "two blocks": lambda world, n: world.dataset.range(50, 100 + n),
    "columns and rows": lambda world, n: (
        world.dataset.range(n).concatenate(world.dataset.range(n, n + 3).map(identity)).repeat(2)
    ),
    "one element": lambda world, n: world.dataset.from_tensors(([n, 1], {"text": b"x", "none": None})),
    "tuples": lambda world, n: world.dataset.from_tensor_slices((np.arange(n), np.arange(2 * n).reshape(n, 2) % 3)),
    "pairs of rows": lambda world, n: world.dataset.from_tensor_slices(
        Pair(np.arange(2 * n).reshape(n, 2), np.zeros((n, 2, 0), np.uint8))
    ),
    "nested": lambda world, n: world.dataset.from_tensor_slices(columns(n)),
    "text": lambda world, n: world.dataset.from_tensor_slices([b"y" * (x % 5) for x in range(n)]),
    "generator": lambda world, n: world.dataset.from_generator(count_up, args=[n]),
    "declared generator": lambda world, n: world.dataset.from_generator(
        count_declared, args=[n], output_signature=SIGNATURE
    ),
    "failing generator": lambda world, n: world.dataset.from_generator(count_and_fail, args=[n]),
    "failing": lambda world, n: world.dataset.range(n).map(failing),
    "list": lambda world, n: world.dataset.from_list(
        [{"n": x / 2, "row": [[x] * (1 + x % 3)], "s": "a" * x} for x in range(n + 1)]
    ),
    "random": lambda world, n: world.dataset.random(seed=n, rerandomize_each_iteration=n % 2 == 0).take(n),
    "files": lambda world, n: world.dataset.list_files(f"{world.path}/*.txt", shuffle=n % 2 == 0, seed=n),
    "lines": lambda world, n: world.lines(world.path / "a.txt", world.path / "b.txt"),
}

STAGES: dict[str, Callable[[Any, int, World], Any]] = {
    "apply": lambda ds, n, world: ds.apply(lambda one: one.skip(1)),
    "batch": lambda ds, n, world: ds.batch(n, drop_remainder=n % 2 == 0, num_parallel_calls=world.calls),
    "batch as dict": lambda ds, n, world: ds.map(as_dict).batch(n, num_parallel_calls=world.calls),
    "cache": lambda ds, n, world: ds.cache(),
    "concatenate": lambda ds, n, world: ds.take(12).concatenate(ds.skip(n)),
    "enumerate": lambda ds, n, world: ds.enumerate(n - 3),
    "filter": lambda ds, n, world: ds.filter([keep, keep_failing][n % 2]),
    "flat_map": lambda ds, n, world: ds.take(20).flat_map([world.few, world.few_failing, world.few_shuffled][n % 3]),
    "interleave": lambda ds, n, world: ds.take(20).interleave(
        [world.few, world.few_failing, world.few_shuffled][n % 3], 1 + n // 2, 1 + n % 3
    ),
    "interleave, parallel": lambda ds, n, world: ds.take(20).interleave(
        [world.few, world.few_failing][n % 2], 2 + n // 2, 1 + n % 3, num_parallel_calls=world.calls
    ),
    "map": lambda ds, n, world: ds.map(FUNCTIONS[n % 6], num_parallel_calls=world.calls),
    "map, awaited": lambda ds, n, world: ds.map(world.later([as_pair, failing][n % 2]), world.calls),
    "map, failing": lambda ds, n, world: ds.map([failing, nothing][n % 2], num_parallel_calls=world.calls),
    "map, timed": lambda ds, n, world: ds.map(failing, num_parallel_calls=world.calls, timeout_seconds=60),
    "map, vectorized": lambda ds, n, world: [ds.map(as_dict), ds.batch(n), ds.batch(n).unbatch()][n % 3].map(
        one_more, num_parallel_calls=world.calls, vectorized=True
    ),
    "padded_batch": lambda ds, n, world: ds.map(ragged).padded_batch(n, drop_remainder=n % 3 == 0),
    "padded_batch as it is": lambda ds, n, world: ds.padded_batch(n),
    "prefetch": lambda ds, n, world: ds.prefetch(n - 1),
    "repeat": lambda ds, n, world: ds.take(20).repeat(n % 4),
    "sample_from_datasets": lambda ds, n, world: world.dataset.sample_from_datasets(
        [ds, ds.skip(n), ds.take(n)],
        weights=[None, [0.5, 0.2, 0.3]][n % 2],
        seed=n,
        stop_on_empty_dataset=n % 3 == 0,
        rerandomize_each_iteration=n == 4,
    ),
    "shard": lambda ds, n, world: ds.shard(1 + n % 3, n % (1 + n % 3)),
    "shuffle": lambda ds, n, world: ds.shuffle([2, 3, 7, 100, -2][n - 1], seed=n),
    "shuffle once": lambda ds, n, world: ds.shuffle(2 * n, seed=7, reshuffle_each_iteration=False),
    "shuffle epochs": lambda ds, n, world: ds.take(15).shuffle(2 * n, seed=n).repeat(2),
    "skip": lambda ds, n, world: ds.skip([0, 1, 3, 20, -1][n - 1]),
    "take": lambda ds, n, world: ds.take([0, 1, 10, 30, -1][n - 1]),
    "unbatch": lambda ds, n, world: ds.map(identity).unbatch(),
    "unbatch batches": lambda ds, n, world: ds.batch(n, drop_remainder=n % 2 == 0).unbatch(),
    "unbatch uneven": lambda ds, n, world: ds.map(uneven).unbatch(),
    "zip": lambda ds, n, world: world.dataset.zip(ds, world.dataset.range(4 * n).shuffle(n, seed=1)),
    "zip itself": lambda ds, n, world: world.dataset.zip({"a": ds, "b": (ds.skip(n % 2), ds)}),
}
STAGES |= {
    "assert_cardinality": lambda ds, n, world: ds.filter(keep).assert_cardinality([0, 3, 8, 20, -1][n - 1]),
    "assert_cardinality, right": lambda ds, n, world: ds.repeat().take(n).assert_cardinality(n),
    "batch_by_size": lambda ds, n, world: ds.map(sequence).batch_by_size(
        3 * n, length_of, max_elements=[None, 3][n % 2], drop_remainder=n % 3 == 0
    ),
    "bucket_by_sequence_length": lambda ds, n, world: ds.map(sequence).bucket_by_sequence_length(
        length_of, [2, 5], [n, 2, 3], no_padding=n == 5, drop_remainder=n % 2 == 0
    ),
    "bucket_by_sequence_length, to boundary": lambda ds, n, world: (
        ds.map(sequence)
        .map(lambda element: (element["row"],))
        .bucket_by_sequence_length(len, [2, 5], [n, 2, 3], pad_to_bucket_boundary=True)
    ),
    "choose_from_datasets": lambda ds, n, world: world.dataset.choose_from_datasets(
        [ds, ds.skip(n), ds.shuffle(2, seed=n)],
        world.dataset.range(9 * n).map([small, failing][n % 2]).map(lambda x: x % 4),
        stop_on_empty_dataset=n % 3 == 0,
    ),
    "counter": lambda ds, n, world: world.dataset.zip(
        world.dataset.counter(n - 2, -n, np.int8 if n > 3 else np.float32), ds
    ),
    "group_by_reducer": lambda ds, n, world: ds.group_by_reducer([as_number, key_of][n % 2], REDUCER),
    "group_by_window": lambda ds, n, world: ds.group_by_window(key_of, world.group, window_size=n),
    "group_by_window, sizes": lambda ds, n, world: ds.group_by_window(key_of, world.group, window_size_func=size_of),
    "ignore_errors": lambda ds, n, world: ds.ignore_errors(),
    "ignore_errors of some": lambda ds, n, world: ds.map(failing).ignore_errors(),
    "pad_to_cardinality": lambda ds, n, world: (
        ds.map(as_dict).concatenate(world.dataset.range(n).map(as_dict)).repeat().take(n).pad_to_cardinality(n + 2)
    ),
    "ragged_batch": lambda ds, n, world: ds.map([ragged, sequence, grid][n % 3]).ragged_batch(n, n % 4 == 0),
    "random_map": lambda ds, n, world: ds.random_map(drawn, seed=n, num_parallel_calls=world.calls),
    "rebatch": lambda ds, n, world: ds.batch(n).rebatch([3, 1, 2, [2, 1], 7][n - 1], drop_remainder=n % 2 == 0),
    "rebatch as it is": lambda ds, n, world: ds.map(identity).rebatch(n),
    "rebatch, empty": lambda ds, n, world: ds.map(as_dict).batch(n).rebatch([2, 0, 1]),
    "rejection_resample": lambda ds, n, world: ds.rejection_resample(
        lambda *element: small(*element) % 2, [0.5, 0.5], [[0.9, 0.1], [0.5, 0.5], [0.25, 0.75]][n % 3], seed=n
    ),
    "rejection_resample, one class": lambda ds, n, world: ds.rejection_resample(key_of, [0, 0.25, 0.75], [0.25] * 3, n),
    "scan": lambda ds, n, world: ds.scan(np.int64(n), [add, add_failing][n % 2]),
    "shard, dropped": lambda ds, n, world: ds.shard(1 + n % 3, n % (1 + n % 3), remainder="drop"),
    "shard, padded": lambda ds, n, world: ds.shard(1 + n % 3, n % (1 + n % 3), remainder="pad"),
    "shard of unknown, dropped": lambda ds, n, world: ds.filter(keep).shard(3, n % 3, remainder="drop"),
    "shard of unknown, padded": lambda ds, n, world: ds.filter(keep).shard(3, n % 3, remainder="pad"),
    "sparse_batch": lambda ds, n, world: ds.map(grid).sparse_batch(n, [[None, None], [2, 3], [5, None]][n % 3]),
    "take_while": lambda ds, n, world: ds.take_while([keep, keep_failing][n % 2]),
    "unique": lambda ds, n, world: ds.map([small, small_text, small_row][n % 3]).unique(),
    "unique as it is": lambda ds, n, world: ds.map(identity).unique(),
    "window": lambda ds, n, world: ds.window(n, [1, 2, 3, None, 7][n - 1], 1 + n % 2, n % 3 == 0).flat_map(
        world.reunited
    ),
    "window, batched": lambda ds, n, world: ds.window(2 * n).flat_map(world.batches),
}


def endless(name: str, ds: Any, n: int, world: World) -> Any:
    """Put a stage that lets enough through behind an endless repetition."""
    return STAGES[name](ds.repeat(), n, world).take(9 * n)


LASTING = (
    *("batch", "cache", "enumerate", "map", "map, failing", "prefetch", "shuffle once", "unbatch batches", "zip"),
    *("counter", "group_by_window", "random_map", "rebatch", "scan", "window"),
)
STAGES |= {f"endless, {name}": partial(endless, name) for name in LASTING}


REMEMBERING = ("shuffle", "cache", "random", "files", "sample", "choose", "zip", "flat_map", "interleave")
REOPENING = ("repeat", "right", "endless", "epochs", "itself", "concatenate", "sample", "choose", "resample")


def _has(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name for word in words)


class Chain(NamedTuple):
    """A chain in words, which `repr` prints."""

    source: str
    size: int
    stages: list[tuple[str, int]]

    def build(self, world: World) -> Any:
        """Make the dataset, or the reference."""
        made = SOURCES[self.source](world, self.size)
        if world.rows:
            made = made.map(identity)
        for name, argument in self.stages:
            made = STAGES[name](made, argument, world)
        return made.take(MOST)

    def is_followed(self) -> bool:
        """Tell whether the reference knows what comes.

        Cardinalities behind `unbatch` are not followed, but fill a cache and refuse a shard. And a look-ahead that is
        left early may have drawn seeds and filled caches for a pass that comes later, or not. Rows of arrays of any
        shape are rows of their own to the reference, which `rebatch` does not put together again as they were.
        """
        names = [name for name, _ in self.stages]
        if "ragged_batch" in names and any("rebatch" in name for name in names[names.index("ragged_batch") :]):
            return False
        splits = [place for place, name in enumerate(names) if "unbatch" in name or "vectorized" in name]
        behind = names[splits[0] :] if splits else []
        return not any(word in name for name in behind for word in ("cache", "shard, ")) and self.settled("prefetch")

    def settled(self, *ahead: str, again: bool = False) -> bool:
        """Tell whether nothing reads ahead between what remembers passes and what opens it again, or the end."""
        words = iter([self.source, *(name for name, _ in self.stages), *(["repeat"] if again else [])])
        return not all(any(_has(name, group) for name in words) for group in (REMEMBERING, ahead, REOPENING))


CHAINS = st.builds(
    Chain,
    st.sampled_from(sorted(SOURCES)),
    st.integers(0, 40),
    st.lists(st.tuples(st.sampled_from(sorted(STAGES)), st.integers(1, 5)), max_size=6),
).filter(Chain.is_followed)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    (folder / "a.txt").write_bytes(b"one\ntwo\n\nthree\r\nfour\nseventeen")
    (folder / "b.txt").write_bytes(b"\nfive\r\n")
    (folder / "c.txt").write_bytes(b"")
    return folder


# The checks


def covers(spec: Any, element: Any) -> bool:
    """Tell whether an element is as its spec says."""
    if isinstance(spec, dict):
        fits = type(element) is dict and spec.keys() == element.keys()
        return fits and all(covers(part, element[key]) for key, part in spec.items())
    if isinstance(spec, tuple):
        return type(spec) is type(element) and len(spec) == len(element) and all(map(covers, spec, element))
    if isinstance(spec, NoneTensorSpec) or element is None:
        return isinstance(spec, NoneTensorSpec) and element is None
    assert isinstance(spec, TensorSpec)
    array = np.array(element, dtype=object if isinstance(element, (bytes, str)) else None)
    if spec.shape is None:
        return bool(spec.dtype == array.dtype)
    fits = len(spec.shape) == array.ndim and all(a in (None, b) for a, b in zip(spec.shape, array.shape, strict=True))
    return bool(spec.dtype == array.dtype) and fits


def read(ds: Any, face: str) -> list[Any]:
    return drive(face, part(ds, face))[0]


def check_facts(chain: Chain, ds: Any, found: list[Any], world: World) -> None:
    """Check the cardinality and the spec against what came."""
    spec = ds.element_spec
    for element in found if spec is not None else ():
        assert isinstance(element, Exception) or covers(spec, element), f"{spec} is not the spec of {element!r}"
    count, expected = ds.cardinality(), chain.build(world).count
    assert count == expected or expected == ANY, f"cardinality {count} instead of {expected}"
    for length, (name, _) in enumerate(chain.stages):
        before, _ = chain._replace(stages=chain.stages[:length]).build(world).outcomes(MOST)
        if any(map(failed, before)) or ("endless" in name and not before):
            return  # an error can cost more than one element, or less; repeating nothing counts as endless
    failed_now = any(isinstance(x, Exception) for x in found)
    assert count < 0 or count == len(found) or failed_now, f"{count=}, but {len(found)} came"


def check_chain(chain: Chain, place: int, face: str, path: Path) -> None:
    """Compare a chain with its reference in every form."""
    model, world = World(Reference, path), World(Dataset, path)
    try:
        chain.build(model)
    except ValueError:
        with pytest.raises(ValueError, match="shard"):
            chain.build(world)
        return
    ds = chain.build(world)
    if currently_in_test_context():
        note(repr(ds))
    reference = chain.build(model)
    (expected, ended), (again, _) = reference.outcomes(MOST), reference.outcomes(MOST)
    found = read(ds, "sync")
    check_rest("the first pass", found, expected)
    if chain.settled("prefetch", again=True):
        check_rest("the second pass", read(ds, "sync"), again)
    check_facts(chain, ds, found, model)
    check_rest("read by async for", read(chain.build(world), "async"), expected)
    check_rest("in rows", read(chain.build(replace(world, rows=True)), face), expected)
    if chain.settled("prefetch", "map", "batch", "interleave"):
        check_rest("in parallel", read(chain.build(replace(world, calls=2)), face), expected)
    stop = place % (len(expected) + (not ended))  # behind the end of a run there is only the same end
    begun, state = drive(face, part(chain.build(world), face, None, stop))
    check_rest(f"up to element {stop}", begun, expected[:stop])
    check_rest(f"restored at element {stop}", drive(face, part(chain.build(world), face, state))[0], expected[stop:])


CHAIN = {"chain": CHAINS, "place": st.integers(0, MOST), "face": st.sampled_from(FACES)}
FIXTURES_ARE_CONSTANT = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.timeout(85)
@given(**CHAIN)
@settings(max_examples=60, suppress_health_check=FIXTURES_ARE_CONSTANT)
def test_a_random_chain_gives_what_its_reference_gives(chain: Chain, place: int, face: str, path: Path) -> None:
    check_chain(chain, place, face, path)


@given(chain=CHAINS, seed=st.integers(0, 9))
@settings(max_examples=30, suppress_health_check=FIXTURES_ARE_CONSTANT)
def test_the_parts_of_a_random_chain_hold_every_outcome_once(chain: Chain, seed: int, path: Path) -> None:
    names = (chain.source, *dict(chain.stages))
    assume(not any(_has(name, (*REMEMBERING, "assert_cardinality")) for name in names))
    expected, ended = chain.build(World(Reference, path)).enumerate().outcomes(MOST)
    assume(not ended)
    ds = chain.build(World(Dataset, path)).enumerate()
    assume(ds.cardinality() < 0 or len(expected) <= ds.cardinality())  # errors can add elements; those are in no part
    parts = ds.split([0.5, 0.3, 0.2], seed=seed)
    found = [read(each, "sync") for each in parts]
    good = [[x for x in each if not isinstance(x, Exception)] for each in found]
    assert sum(map(len, found)) == len(expected)
    assert all(one[0] < other[0] for each in good for one, other in pairwise(each))
    check_rest("together", sorted(flat.from_iterable(good), key=itemgetter(0)), [x for x in expected if not failed(x)])


@pytest.mark.slow
@pytest.mark.timeout(85)
@pytest.mark.parametrize("source", sorted(SOURCES))
@given(**CHAIN)
@settings(max_examples=15, suppress_health_check=FIXTURES_ARE_CONSTANT)
def test_many_random_chains(source: str, chain: Chain, place: int, face: str, path: Path) -> None:
    chain = chain._replace(source=source)
    assume(chain.is_followed())
    check_chain(chain, place, face, path)


ARGUMENTS = (1, 2, 3, 4, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STAGES))
def test_every_stage_gives_what_its_reference_gives(name: str, path: Path) -> None:
    """Give each stage all sources and all arguments, two of them with each source."""
    for number, source in enumerate(SOURCES):
        for argument in (ARGUMENTS[number % 5], ARGUMENTS[(number + 2) % 5]):
            check_chain(Chain(source, 11, [(name, argument)]), argument, FACES[argument % 2], path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(STAGES))
def test_every_stage_gives_what_its_reference_gives_with_each_argument(name: str, path: Path) -> None:
    for source in SOURCES:
        for argument in ARGUMENTS:
            check_chain(Chain(source, 11, [(name, argument)]), argument, FACES[argument % 2], path)
