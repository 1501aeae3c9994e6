"""`aiodata.experimental`: each function is its method, with tf.data's arguments and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset, Reducer, TensorSpec, experimental
from tests.programs import arr, assert_same, first, nested, to_list

Made = Callable[[], Dataset[Any]]


def is_even(x: Any) -> Any:
    return np.int64(x % 2)


def below_four(x: Any) -> bool:
    return bool(x < 4)


def rows(x: Any) -> Any:
    return np.full(int(x) % 3, x)


def length(x: Any) -> int:
    return len(x)


def few(x: Any) -> Dataset[Any]:
    return Dataset.range(10 * int(x), 10 * int(x) + 3)


def batched(key: Any, group: Dataset[Any]) -> Dataset[Any]:
    return group.batch(10)


def size_of(key: Any) -> Any:
    return key + 2


def add(state: Any, x: Any) -> Any:
    return state + x, state


def double(x: Any) -> Any:
    return x * 2


def fails_at_three(x: Any) -> Any:
    if x == 3:
        raise ValueError("three")
    return x


total = Reducer(lambda key: np.int64(0), lambda state, x: state + x, lambda state: state)
numbers = Dataset.range(11)
ragged = numbers.map(rows)
parts = [Dataset.range(3), Dataset.range(10, 15)]
choices = Dataset.from_tensor_slices(arr([0, 1, 0, 0, 0, 1, 1]))

# What makes a dataset -> what the function's form makes, and what the method makes.
SOURCES: dict[str, tuple[Made, Made]] = {
    "Counter": (lambda: experimental.Counter(), lambda: Dataset.counter()),
    "Counter: all": (lambda: experimental.Counter(3, -2, np.float32), lambda: Dataset.counter(3, -2, np.float32)),
    "RandomDataset": (lambda: experimental.RandomDataset(7), lambda: Dataset.random(7)),
    "RandomDataset: all": (lambda: experimental.RandomDataset(7, True), lambda: Dataset.random(7, True)),
    "choose_from_datasets": (
        lambda: experimental.choose_from_datasets(parts, choices),
        lambda: Dataset.choose_from_datasets(parts, choices, stop_on_empty_dataset=False),
    ),
    "choose_from_datasets: all": (
        lambda: experimental.choose_from_datasets(parts, choices, True),
        lambda: Dataset.choose_from_datasets(parts, choices, stop_on_empty_dataset=True),
    ),
    "from_list": (
        lambda: experimental.from_list([(1, b"a"), (2, b"b")], name="mine"),
        lambda: Dataset.from_list([(1, b"a"), (2, b"b")], name="mine"),
    ),
    "sample_from_datasets": (
        lambda: experimental.sample_from_datasets(parts, seed=1),
        lambda: Dataset.sample_from_datasets(parts, seed=1, stop_on_empty_dataset=False),
    ),
    "sample_from_datasets: all": (
        lambda: experimental.sample_from_datasets(parts, [0.2, 0.8], 1, True),
        lambda: Dataset.sample_from_datasets(parts, [0.2, 0.8], 1, stop_on_empty_dataset=True),
    ),
}

# The input, the function's form, and the method's.
APPLIED: dict[str, tuple[Dataset[Any], Any, Callable[[Dataset[Any]], Dataset[Any]]]] = {
    "assert_cardinality": (
        numbers.filter(below_four),
        experimental.assert_cardinality(4),
        lambda ds: ds.assert_cardinality(4),
    ),
    "bucket_by_sequence_length": (
        ragged,
        experimental.bucket_by_sequence_length(length, [1, 2], [2, 2, 3]),
        lambda ds: ds.bucket_by_sequence_length(length, [1, 2], [2, 2, 3]),
    ),
    "bucket_by_sequence_length: all": (
        ragged,
        experimental.bucket_by_sequence_length(length, [2, 4], [2, 2, 3], [None], np.int64(-1), True, False, True),
        lambda ds: ds.bucket_by_sequence_length(
            length,
            [2, 4],
            [2, 2, 3],
            padded_shapes=[None],
            padding_values=np.int64(-1),
            pad_to_bucket_boundary=True,
            no_padding=False,
            drop_remainder=True,
        ),
    ),
    "dense_to_ragged_batch": (ragged, experimental.dense_to_ragged_batch(4), lambda ds: ds.ragged_batch(4)),
    "dense_to_ragged_batch: all": (
        ragged,
        experimental.dense_to_ragged_batch(4, True, np.int32),
        lambda ds: ds.ragged_batch(4, drop_remainder=True, row_splits_dtype=np.int32),
    ),
    "dense_to_sparse_batch": (ragged, experimental.dense_to_sparse_batch(4, [3]), lambda ds: ds.sparse_batch(4, [3])),
    "enumerate_dataset": (numbers, experimental.enumerate_dataset(), lambda ds: ds.enumerate()),
    "enumerate_dataset: all": (numbers, experimental.enumerate_dataset(5), lambda ds: ds.enumerate(5)),
    "group_by_reducer": (
        numbers,
        experimental.group_by_reducer(is_even, total),
        lambda ds: ds.group_by_reducer(is_even, total),
    ),
    "group_by_window": (
        numbers,
        experimental.group_by_window(is_even, batched, 3),
        lambda ds: ds.group_by_window(is_even, batched, window_size=3),
    ),
    "group_by_window: all": (
        numbers,
        experimental.group_by_window(is_even, batched, None, size_of),
        lambda ds: ds.group_by_window(is_even, batched, window_size_func=size_of),
    ),
    "ignore_errors": (numbers.map(fails_at_three), experimental.ignore_errors(), lambda ds: ds.ignore_errors()),
    "ignore_errors: all": (
        numbers.map(fails_at_three),
        experimental.ignore_errors(log_warning=True),
        lambda ds: ds.ignore_errors(True),
    ),
    "map_and_batch": (
        numbers,
        experimental.map_and_batch(double, 4),
        lambda ds: ds.map(double, num_parallel_calls=4).batch(4),
    ),
    "map_and_batch: batches": (
        numbers,
        experimental.map_and_batch(double, 4, 2, True),
        lambda ds: ds.map(double, num_parallel_calls=8).batch(4, drop_remainder=True),
    ),
    "map_and_batch: calls": (
        numbers,
        experimental.map_and_batch(double, 4, num_parallel_calls=3),
        lambda ds: ds.map(double, num_parallel_calls=3).batch(4),
    ),
    "pad_to_cardinality": (nested(3), experimental.pad_to_cardinality(5), lambda ds: ds.pad_to_cardinality(5)),
    "pad_to_cardinality: all": (
        nested(3),
        experimental.pad_to_cardinality(5, "real"),
        lambda ds: ds.pad_to_cardinality(5, mask_key="real"),
    ),
    "parallel_interleave": (
        numbers,
        experimental.parallel_interleave(few, 3),
        lambda ds: ds.interleave(few, 3, 1, num_parallel_calls=3, deterministic=True),
    ),
    "parallel_interleave: sloppy": (
        numbers.take(1),
        experimental.parallel_interleave(few, 3, 2, True, 5, 6),
        lambda ds: ds.interleave(few, 3, 2, num_parallel_calls=3, deterministic=False),
    ),
    "parallel_interleave: undecided": (
        numbers,
        experimental.parallel_interleave(few, 2, sloppy=None),
        lambda ds: ds.interleave(few, 2, 1, num_parallel_calls=2),
    ),
    "rejection_resample": (
        numbers,
        experimental.rejection_resample(is_even, [0.2, 0.8], seed=3),
        lambda ds: ds.rejection_resample(is_even, [0.2, 0.8], seed=3),
    ),
    "rejection_resample: all": (
        numbers,
        experimental.rejection_resample(is_even, [0.2, 0.8], [0.5, 0.5], 3),
        lambda ds: ds.rejection_resample(is_even, [0.2, 0.8], initial_dist=[0.5, 0.5], seed=3),
    ),
    "scan": (numbers, experimental.scan(np.int64(0), add), lambda ds: ds.scan(np.int64(0), add)),
    "shuffle_and_repeat": (
        numbers,
        experimental.shuffle_and_repeat(4, seed=1),
        lambda ds: ds.shuffle(4, seed=1).repeat(),
    ),
    "shuffle_and_repeat: all": (
        numbers,
        experimental.shuffle_and_repeat(4, 2, 1),
        lambda ds: ds.shuffle(4, seed=1).repeat(2),
    ),
    "take_while": (numbers, experimental.take_while(below_four), lambda ds: ds.take_while(below_four)),
    "unbatch": (numbers.batch(3), experimental.unbatch(), lambda ds: ds.unbatch()),
    "unique": (numbers.map(is_even), experimental.unique(), lambda ds: ds.unique()),
}


def assert_same_datasets(one: Dataset[Any], other: Dataset[Any]) -> None:
    """Check stages, arguments, cardinality and spec, and the first elements."""
    assert repr(one) == repr(other)
    assert one.fingerprint() == other.fingerprint()
    assert one.cardinality() == other.cardinality()
    assert one.element_spec == other.element_spec
    with one.iterate() as ones, other.iterate() as others:
        found = list(islice(ones, 30))
        expected = list(islice(others, 30))
    assert len(found) > 0
    if any(type(part).__module__.startswith("aiodata") for part in found):
        assert list(map(repr, found)) == list(map(repr, expected))
    else:
        assert_same(found, expected)


@pytest.mark.parametrize("name", SOURCES)
def test_sources_are_the_methods(name: str) -> None:
    function, method = SOURCES[name]
    assert_same_datasets(function(), method())


@pytest.mark.parametrize("name", APPLIED)
def test_functions_for_apply_are_the_methods(name: str) -> None:
    source, function, method = APPLIED[name]
    assert_same_datasets(source.apply(function), method(source))


def test_questions_are_the_methods() -> None:
    assert experimental.cardinality(numbers.batch(2)) == 6
    assert experimental.cardinality(numbers.repeat()) == experimental.INFINITE_CARDINALITY
    assert experimental.cardinality(numbers.filter(below_four)) == experimental.UNKNOWN_CARDINALITY
    assert_same(experimental.get_single_element(numbers.skip(10)), np.int64(10))
    assert experimental.get_structure(numbers) == TensorSpec((), np.int64)
    iterator = numbers.take(1).iterate()
    assert experimental.get_structure(iterator) == TensorSpec((), np.int64)
    optionals = [experimental.get_next_as_optional(iterator) for _ in range(2)]
    assert [optional.has_value() for optional in optionals] == [True, False]


def test_files_are_written_and_read_as_by_the_methods(tmp_path: Path) -> None:
    assert experimental.save(numbers, tmp_path / "saved", "GZIP") is None
    assert_same(to_list(experimental.load(tmp_path / "saved", compression="GZIP")), to_list(numbers))
    ds = numbers.apply(experimental.snapshot(tmp_path / "snapshot", "GZIP"))
    assert [to_list(ds) for _ in range(2)] == [to_list(numbers)] * 2
    assert len(list((tmp_path / "snapshot").iterdir())) == 1


def test_the_older_choose_skips_what_has_ended() -> None:
    assert [int(x) for x in experimental.choose_from_datasets(parts, choices)] == [0, 10, 1, 2, 11, 12]
    assert [int(x) for x in Dataset.choose_from_datasets(parts, choices)] == [0, 10, 1, 2]


def test_both_numbers_of_map_and_batch_are_refused() -> None:
    with pytest.raises(ValueError, match="map_and_batch: give num_parallel_batches or num_parallel_calls, not both"):
        experimental.map_and_batch(double, 4, 2, num_parallel_calls=3)


def test_mistakes_show_when_a_function_is_applied() -> None:
    with pytest.raises(ValueError, match="batch"):
        numbers.apply(experimental.map_and_batch(double, 0, num_parallel_calls=1))
    with pytest.raises(TypeError, match="take_while"):
        numbers.apply(experimental.take_while(3))  # type: ignore[arg-type]


def test_every_function_is_tried_above() -> None:
    tried = {name.partition(":")[0] for name in (*SOURCES, *APPLIED)}
    tried |= {"cardinality", "get_next_as_optional", "get_single_element", "get_structure", "make_csv_dataset"}
    tried |= {"save", "snapshot"}
    functions = {name for name in experimental.__all__ if inspect.isfunction(getattr(experimental, name))}
    assert functions == tried


def test_classes_are_those_of_the_package() -> None:
    for name in ("AUTOTUNE", "AutotuneOptions", "INFINITE_CARDINALITY", "Optional", "Reducer", "ThreadingOptions"):
        assert getattr(experimental, name) is getattr(aiodata, name)
    assert (experimental.CsvDataset, experimental.make_csv_dataset) == (aiodata.CsvDataset, aiodata.make_csv_dataset)
    assert aiodata.experimental is experimental
    assert first(experimental.Counter(), 2) == to_list(Dataset.range(2))
