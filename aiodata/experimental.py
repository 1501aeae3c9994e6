"""The older forms of methods, as functions: `tf.data.experimental`.

Most give a function of a dataset, for `Dataset.apply`: `ds.apply(experimental.unbatch())` is `ds.unbatch()`. They take
tf.data's arguments and do what the method does, which has the documentation; where a default differs, it is said.
Arguments are checked when the function is applied.

>>> import aiodata
>>> ds = aiodata.Dataset.range(4).batch(2)
>>> [int(x) for x in ds.apply(aiodata.experimental.unbatch())]
[0, 1, 2, 3]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aiodata.dataset import Dataset
from aiodata.engine.plan import AUTOTUNE
from aiodata.engine.plan import INFINITE as INFINITE_CARDINALITY
from aiodata.engine.plan import UNKNOWN as UNKNOWN_CARDINALITY
from aiodata.optional import Optional
from aiodata.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from aiodata.sources.csv import CsvDataset
from aiodata.sources.make_csv_dataset import make_csv_dataset
from aiodata.sources.sql import SqlDataset
from aiodata.transforms.group_by_reducer import Reducer

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from aiodata.iterator import DatasetIterator

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "ExternalStatePolicy",
    "INFINITE_CARDINALITY",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "ServiceOptions",
    "SqlDataset",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "load",
    "make_csv_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "unbatch",
    "unique",
]

Function: TypeAlias = Callable[..., Any]
Transformation: TypeAlias = Callable[[Dataset[Any]], Dataset[Any]]
load, save = Dataset.load, Dataset.save

# Datasets


def Counter(start: float = 0, step: float = 1, dtype: DTypeLike = np.int64) -> Dataset[Any]:
    """Do as `Dataset.counter`."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(
    seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
) -> Dataset[np.int64]:
    """Do as `Dataset.random`; in tf.data it is a class."""
    return Dataset.random(seed, rerandomize_each_iteration, name)


def choose_from_datasets(
    datasets: Sequence[Dataset[Any]], choice_dataset: Dataset[Any], stop_on_empty_dataset: bool = False
) -> Dataset[Any]:
    """Do as `Dataset.choose_from_datasets`, but skip choices of a dataset that has ended, unless told otherwise."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def from_list(elements: list[Any], name: str | None = None) -> Dataset[Any]:
    """Do as `Dataset.from_list`."""
    return Dataset.from_list(elements, name)


def sample_from_datasets(
    datasets: Sequence[Dataset[Any]], weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False
) -> Dataset[Any]:
    """Do as `Dataset.sample_from_datasets`."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


# Questions about a dataset or an iterator


def cardinality(dataset: Dataset[Any]) -> int:
    """Do as `Dataset.cardinality`."""
    return dataset.cardinality()


def get_next_as_optional(iterator: DatasetIterator[Any]) -> Optional[Any]:
    """Do as `DatasetIterator.get_next_as_optional`."""
    return iterator.get_next_as_optional()


def get_single_element(dataset: Dataset[Any]) -> Any:
    """Do as `Dataset.get_single_element`."""
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Dataset[Any] | DatasetIterator[Any]) -> Any:
    """Give the `element_spec` of a dataset or an iterator."""
    return dataset_or_iterator.element_spec


# Functions for `apply`


def assert_cardinality(expected_cardinality: int) -> Transformation:
    """Do as `Dataset.assert_cardinality`."""
    return lambda dataset: dataset.assert_cardinality(expected_cardinality)


def bucket_by_sequence_length(
    element_length_func: Function,
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Do as `Dataset.bucket_by_sequence_length`."""
    buckets = element_length_func, bucket_boundaries, bucket_batch_sizes
    padding = padded_shapes, padding_values, pad_to_bucket_boundary, no_padding
    return lambda dataset: dataset.bucket_by_sequence_length(*buckets, *padding, drop_remainder)


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: DTypeLike = np.int64
) -> Transformation:
    """Do as `Dataset.ragged_batch`."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Transformation:
    """Do as `Dataset.sparse_batch`."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def enumerate_dataset(start: int = 0) -> Transformation:
    """Do as `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def group_by_reducer(key_func: Function, reducer: Reducer) -> Transformation:
    """Do as `Dataset.group_by_reducer`."""
    return lambda dataset: dataset.group_by_reducer(key_func, reducer)


def group_by_window(
    key_func: Function, reduce_func: Function, window_size: int | None = None, window_size_func: Function | None = None
) -> Transformation:
    """Do as `Dataset.group_by_window`."""
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """Do as `Dataset.ignore_errors`."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def map_and_batch(
    map_func: Function,
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """Do as `Dataset.map` and then `Dataset.batch`.

    Args:
        map_func: As for `map`.
        batch_size: As for `batch`.
        num_parallel_batches: So many times `batch_size` calls run at once; one time if nothing is said.
        drop_remainder: As for `batch`.
        num_parallel_calls: So many calls run at once.

    Raises:
        ValueError: Both numbers are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("map_and_batch: give num_parallel_batches or num_parallel_calls, not both")
    calls = batch_size * (num_parallel_batches or 1) if num_parallel_calls is None else num_parallel_calls
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Transformation:
    """Do as `Dataset.pad_to_cardinality`."""
    return lambda dataset: dataset.pad_to_cardinality(cardinality, mask_key)


def parallel_interleave(
    map_func: Function,
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool | None = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """Do as `Dataset.interleave` with as many parallel calls as the cycle is long.

    Args:
        map_func: As for `interleave`.
        cycle_length: As for `interleave`.
        block_length: As for `interleave`.
        sloppy: True gives elements as they become ready, None leaves that to the options.
        buffer_output_elements: No effect: how far `interleave` reads ahead is its own choice.
        prefetch_input_elements: No effect, likewise.
    """
    deterministic = None if sloppy is None else not sloppy
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length, deterministic)


def rejection_resample(
    class_func: Function, target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """Do as `Dataset.rejection_resample`."""
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def scan(initial_state: Any, scan_func: Function) -> Transformation:
    """Do as `Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Transformation:
    """Do as `Dataset.shuffle` and then `Dataset.repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def snapshot(
    path: Any, compression: str | None = "AUTO", reader_func: Any = None, shard_func: Any = None
) -> Transformation:
    """Do as `Dataset.snapshot`."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Function) -> Transformation:
    """Do as `Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Transformation:
    """Do as `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def unique() -> Transformation:
    """Do as `Dataset.unique`."""
    return lambda dataset: dataset.unique()
