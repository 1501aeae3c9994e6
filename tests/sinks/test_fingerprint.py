"""`fingerprint`: equal for equal pipelines in any process, else different: other stages, arguments, data or code."""

from __future__ import annotations

import cmath
import datetime
import decimal
import enum
import functools
import math
import os
import re
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from aiodata import AutotuneOptions, Dataset, Options, TensorSpec
from tests.programs import Pair, arr, first, global_seed, objects
from tests.resume.stages import STAGES, write_files

ROOT = Path(__file__).resolve().parents[2]


def holding(value: Any) -> int:
    """Return the fingerprint of a pipeline whose function has closed over `value`."""
    return Dataset.range(1).map(lambda x: (x, value)).fingerprint()


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Settings:
    size: int
    inner: Any = None


class Slotted:
    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def add(self, x: Any) -> Any:
        return x + self.size

    def take(self, x: Any) -> Any:
        return x - self.size


class Adder:
    def __init__(self, number: Any) -> None:
        self.number = number

    def __call__(self, x: Any) -> Any:
        return x + self.number


class Subtracter(Adder):
    def __call__(self, x: Any) -> Any:
        return x - self.number


class Wrapper:
    """Has every attribute, as some proxies do; what it gives shows an address."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in {"__qualname__", "__name__", "__wrapped__"}:
            raise AttributeError(name)
        return object()


def plus(x: Any, number: int = 1, *, more: int = 0) -> Any:
    return x + number + more


@functools.cache
def cached(x: Any) -> Any:
    return x + 1


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("files"))


# The number


def test_is_64_bits() -> None:
    found = [Dataset.range(n).fingerprint() for n in range(50)]
    assert all(type(number) is int and 0 <= number < 2**64 for number in found)
    assert len(set(found)) == 50
    assert max(found) > 2**60  # all bits are used


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_for_two_builds_and_after_iterating(stage: str, files: Path) -> None:
    ds = STAGES[stage](files)
    before = ds.fingerprint()
    assert STAGES[stage](files).fingerprint() == before
    with ds.iterate() as iterator:
        for _ in range(8):
            try:
                if next(iterator, ds) is ds:
                    break
            except Exception:
                continue
        assert ds.fingerprint() == before
    assert ds.fingerprint() == before


def test_every_stage_and_form_has_its_own(files: Path) -> None:
    found: dict[int, str] = {}
    for stage, make in STAGES.items():
        number = make(files).fingerprint()
        assert number not in found, f"{stage} and {found[number]}"
        found[number] = stage


def run_python(code: str, hash_seed: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(code), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_stages_are_the_same_in_other_processes(files: Path) -> None:
    code = """
    import sys
    from pathlib import Path
    from tests.resume.stages import STAGES
    print({name: make(Path(sys.argv[1])).fingerprint() for name, make in STAGES.items()})
    """
    here = {name: make(files).fingerprint() for name, make in STAGES.items()}
    for hash_seed in ("1", "2"):
        assert run_python(code, hash_seed, files) == f"{here}\n"


def test_sets_and_functions_are_the_same_in_other_processes(tmp_path: Path) -> None:
    code = """
    import functools, re, aiodata
    words = {"a", "bc", "def", b"g", ("h", 1)}
    pattern = re.compile("a+", re.I)
    class Count:
        def __init__(self): self.of = {"x": words}
        def __call__(self, x): return x if x in {"one", "two", "three"} else len(words)
    def more(x, by=frozenset(words)):
        return functools.partial(lambda y, z: (y, z, pattern), x)(2)
    ds = aiodata.Dataset.range(3).map(Count()).map(more).filter(lambda x: x in ("a", "b"))
    print(ds.fingerprint())
    """
    assert len({run_python(code, hash_seed, tmp_path) for hash_seed in ("1", "2", "3")}) == 1


# What counts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Dataset.range(3), Dataset.range(4)),
        (Dataset.range(3), Dataset.range(3, output_type=np.int32)),
        (Dataset.range(9).batch(2), Dataset.range(9).batch(3)),
        (Dataset.range(9).batch(2), Dataset.range(9).batch(2, drop_remainder=True)),
        (Dataset.range(9).batch(2).take(1), Dataset.range(9).take(1).batch(2)),
        (Dataset.range(9).take(2), Dataset.range(9).skip(2)),
        (Dataset.range(9), Dataset.range(9).map(plus)),
        (Dataset.zip(Dataset.range(2), Dataset.range(3)), Dataset.zip(Dataset.range(3), Dataset.range(2))),
        (Dataset.zip(Dataset.range(2), Dataset.range(3)), Dataset.zip(Dataset.range(2))),
        (Dataset.range(9).with_options(Options()), Dataset.range(9).with_options(Options(deterministic=False))),
        (
            Dataset.range(9).with_options(Options(autotune=AutotuneOptions(cpu_budget=1))),
            Dataset.range(9).with_options(Options(autotune=AutotuneOptions(cpu_budget=2))),
        ),
    ],
)
def test_stages_arguments_and_their_order_count(one: Dataset[Any], other: Dataset[Any]) -> None:
    assert one.fingerprint() != other.fingerprint()


def test_arrays_count_with_dtype_shape_and_bytes() -> None:
    values = [
        arr([1, 2, 3, 4]),
        arr([1, 2, 3, 5]),
        arr([1, 2, 3, 4], np.int32),
        arr([1, 2, 3, 4], ">i8"),
        arr([[1, 2], [3, 4]]),
        arr([[1], [2], [3], [4]]),
        arr([1, 2, 3, 4], np.float64),
        arr([1, 2, 3, 4], "M8[s]"),
        objects(b"a", b"b"),
        objects("a", "b"),
        objects("a", "c"),
        np.zeros((0, 2)),
        np.zeros((0, 3)),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("c", "f8")]),
    ]
    found = [Dataset.from_tensor_slices(value).fingerprint() for value in values]
    assert len(set(found)) == len(values)
    assert [Dataset.from_tensor_slices(value.copy()).fingerprint() for value in values] == found
    assert Dataset.from_tensor_slices(values[0][::-1][::-1]).fingerprint() == found[0]


def test_structures_count_with_keys_order_and_classes() -> None:
    row = arr([1])
    values = [row, (row,), {"a": row}, {"b": row}, {"a": row, "b": row}, {"b": row, "a": row}, (row, row), (row, None)]
    values += [Pair(row, row), {"a": (row, row)}]
    assert len({Dataset.from_tensor_slices(value).fingerprint() for value in values}) == len(values)


@pytest.mark.parametrize("make", [Dataset.range(9).shuffle, lambda *a, **k: Dataset.random(*a[1:], **k)])
def test_seeds_count_and_two_builds_without_one_are_equal(make: Any) -> None:
    unseeded = make(4).fingerprint()
    assert make(4).fingerprint() == unseeded
    assert make(4, seed=1).fingerprint() == make(4, seed=1).fingerprint()
    assert len({unseeded, *(make(4, seed=seed).fingerprint() for seed in range(3))}) == 4
    with global_seed(1):
        one, two = make(4).fingerprint(), make(4).fingerprint()
    with global_seed(1):
        assert make(4).fingerprint() == one
    with global_seed(2):
        assert make(4).fingerprint() not in {one, two, unseeded}
    assert one != two  # the second takes the next implicit seed


def test_how_far_iterations_have_come_does_not_count() -> None:
    ds = Dataset.range(9).shuffle(4, seed=1).cache()
    before = ds.fingerprint()
    assert len(list(ds)) == 9
    assert ds.fingerprint() == before


def test_names_of_stages_and_learned_specs_do_not_count() -> None:
    ds = Dataset.range(9).map(plus)
    assert Dataset.range(9).map(plus, name="more").fingerprint() == ds.fingerprint()
    other = Dataset.range(9).map(plus)
    other.peek_sync()
    assert other.element_spec is not None
    assert other.fingerprint() == ds.fingerprint()


# Functions


def functions() -> list[Any]:
    """Return functions that all differ."""
    one, two = 1, 2

    def inner_plus(x: Any) -> Any:
        def add(y: Any) -> Any:
            return y + 1

        return add(x)

    def inner_minus(x: Any) -> Any:
        def add(y: Any) -> Any:
            return y - 1

        return add(x)

    async def later(x: Any) -> Any:
        return x + 1

    inner_minus.__qualname__ = inner_plus.__qualname__
    return [
        lambda x: x,
        lambda y: y,
        lambda x: x + 1,
        lambda x: x + 2,
        lambda x: x - 1,
        lambda x: x + 1.0,
        lambda x: x + True,
        lambda x, y=1: x + y,
        lambda x, y=2: x + y,
        lambda x, *, y=1: x + y,
        lambda x: x + one,
        lambda x: x + two,
        lambda x: abs(x),
        lambda x: bin(x),
        lambda x: x.real,
        lambda x: x.imag,
        lambda x: x in {"a", "b"},
        lambda x: x in {"a", "c"},
        lambda x: (1, (2, "a")),
        lambda x: (1, (2, "b")),
        lambda x: [x for _ in "ab"],
        lambda x: [x for _ in "ac"],
        inner_plus,
        inner_minus,
        later,
        plus,
        functools.partial(plus, number=1),
        functools.partial(plus, number=2),
        functools.partial(plus, more=1),
        Adder(1),
        Adder(2),
        Subtracter(1),
        Slotted(1).add,
        Slotted(2).add,
        Slotted(1).take,
        cached,
        abs,
        math.sqrt,
        cmath.sqrt,
        np.sqrt,
        np.exp,
        str,
        bytes,
        [1].count,
        [2].count,
    ]


def test_functions_count_with_code_constants_defaults_closures_and_names() -> None:
    found = [Dataset.range(1).map(function).fingerprint() for function in functions()]
    assert [Dataset.range(1).map(function).fingerprint() for function in functions()] == found
    same = [(i, j) for i, one in enumerate(found) for j, other in enumerate(found[:i]) if one == other]
    assert same == []


def compiled(source: str, line: int) -> Any:
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile("\n" * line + textwrap.dedent(source), f"program{line}.py", "exec"), names)
    return names["function"]


def test_where_code_stands_does_not_count() -> None:
    source = """
    def function(x):
        if x:
            raise ValueError("no")
        return [y + 1 for y in (x,)], lambda: x
    """
    found = {Dataset.range(1).map(compiled(source, line)).fingerprint() for line in (0, 7, 300)}
    assert len(found) == 1
    assert Dataset.range(1).map(compiled(source.replace("+ 1", "+ 2"), 0)).fingerprint() not in found


def test_what_a_cached_function_does_counts() -> None:
    def build(number: int) -> Dataset[Any]:
        @functools.lru_cache(8)
        def add(x: Any) -> Any:
            return x + number

        return Dataset.range(1).map(add)

    assert build(1).fingerprint() == build(1).fingerprint() != build(2).fingerprint()


def test_a_function_counts_inside_other_stages_too() -> None:
    def build(stop: int) -> Dataset[Any]:
        return Dataset.range(2).flat_map(lambda x: Dataset.range(stop)).interleave(lambda x: Dataset.from_tensors(stop))

    assert build(2).fingerprint() == build(2).fingerprint() != build(3).fingerprint()


def test_a_dataset_that_a_function_has_closed_over_counts_by_its_stages() -> None:
    assert holding(Dataset.range(3).batch(2)) == holding(Dataset.range(3).batch(2))
    assert holding(Dataset.range(3).batch(2)) != holding(Dataset.range(3).batch(3))


# Values


def values() -> list[Any]:
    """Return values that all differ, in fresh objects."""
    return [
        None,
        True,
        1,
        1.0,
        1 + 0j,
        -0.0,
        0.0,
        math.nan,
        math.inf,
        10**5000,
        10**5000 + 1,
        "1",
        b"1",
        bytearray(b"1"),
        "\ud800",
        "",
        "x" * 100,
        b"x" * 100,
        (),
        [],
        {},
        set(),
        (1, 2),
        (12,),
        ((1,), 2),
        (1, (2,)),
        [1, 2],
        {1, 2},
        {"a": 1},
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        Pair(1, 2),
        range(3),
        slice(1, 2),
        ...,
        np.int64(1),
        np.int32(1),
        np.float32(1),
        np.bool_(True),
        np.datetime64(1, "s"),
        np.str_("1"),
        np.dtype(np.int64),
        np.dtype(np.int32),
        np.int64,
        arr(1),
        arr([1]),
        np.ma.masked_array([1], [True]),
        np.ma.masked_array([1], [False]),
        np.random.default_rng(1),
        np.random.default_rng(2),
        re.compile("a"),
        re.compile("a", re.I),
        re.compile("b"),
        PurePosixPath("a/b"),
        PurePosixPath("a/c"),
        datetime.date(2020, 1, 1),
        datetime.date(2020, 1, 2),
        decimal.Decimal("1.0"),
        decimal.Decimal("1.00"),
        Colour.RED,
        Colour.BLUE,
        Colour,
        Settings(1),
        Settings(2),
        Settings(1, Settings(1)),
        Slotted(1),
        Slotted(2),
        TensorSpec((2,), np.int64),
        TensorSpec((None,), np.int64),
        Options(deterministic=True),
        Options(deterministic=False),
        ValueError("a"),
        ValueError("b"),
        math,
        cmath,
        threading.Lock(),
        iter(()),
        object(),
        Wrapper(1),
        Wrapper(2),
    ]


def test_values_count_by_what_they_hold() -> None:
    found = [holding(value) for value in values()]
    assert [holding(value) for value in values()] == found
    same = [
        (values()[i], values()[j]) for i, one in enumerate(found) for j, other in enumerate(found[:i]) if one == other
    ]
    assert same == []


def test_what_cannot_be_pickled_counts_by_its_class() -> None:
    assert holding(threading.Lock()) == holding(threading.Lock())
    assert holding([threading.Lock(), 1]) == holding([threading.Lock(), 1]) != holding([threading.Lock(), 2])
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as two:
        pools = [Dataset.range(1).map(plus, num_parallel_calls=1, executor=pool).fingerprint() for pool in (one, two)]
    assert pools[0] == pools[1]


def test_equal_parts_count_alike_whether_they_are_shared_or_not() -> None:
    part = [1, 2]
    assert holding([part, part]) == holding([[1, 2], [1, 2]])
    source = Dataset.range(3)
    assert Dataset.zip(source, source).fingerprint() == Dataset.zip(Dataset.range(3), Dataset.range(3)).fingerprint()


def circle(size: int) -> list[Any]:
    items: list[Any] = [size]
    items.append({"again": items, "deeper": Settings(1, items)})
    return items


def test_values_that_lead_back_to_themselves() -> None:
    assert holding(circle(1)) == holding(circle(1)) != holding(circle(2))


def test_sets_of_objects_count_whatever_their_order() -> None:
    def build(names: str) -> int:
        return holding({Adder(name) for name in names})  # hashed by identity, so each build has another order

    assert len({build("abcdefgh") for _ in range(30)}) == 1
    assert build("abcd") != build("abce")


def test_functions_that_lead_back_to_themselves() -> None:
    def build(number: int) -> Dataset[Any]:
        def down(x: Any) -> Any:
            return down(x - 1) if x > 0 else number

        def even(x: Any) -> Any:
            return x == 0 or odd(x - 1)

        def odd(x: Any) -> Any:
            return x != 0 and even(x - number)

        ds: Dataset[Any] = Dataset.range(3).map(down).filter(even)
        ds = ds.map(lambda x: ds.cardinality())
        return ds

    assert build(1).fingerprint() == build(1).fingerprint() != build(2).fingerprint()


def test_a_variable_that_has_no_value_yet() -> None:
    def build() -> tuple[int, Any]:
        later: Any
        found = Dataset.range(1).map(lambda x: later).fingerprint()
        later = 1
        return found, later

    assert build() == build()


def test_many_objects_with_many_references_are_quick() -> None:
    nodes = [Settings(number) for number in range(300)]
    for node in nodes:
        node.inner = nodes
    assert holding(nodes) == holding(nodes)
    adders = [Adder(number) for number in range(50)]
    for adder in adders:
        adder.number = {*adders}
    assert isinstance(holding(adders), int)
    shared: Any = 1
    for _ in range(200):
        shared = [shared, shared]
    assert holding(shared) == holding(shared)


def test_a_long_chain_is_no_deep_recursion() -> None:
    ds: Dataset[Any] = Dataset.range(3)
    for _ in range(600):
        ds = ds.take(2)
    assert ds.fingerprint() == ds.fingerprint()


def test_does_not_run_the_pipeline() -> None:
    seen: list[int] = []
    Dataset.range(3).map(seen.append).fingerprint()
    assert seen == []
    assert first(Dataset.range(3), 1) == [0]
