"""`Dataset.sample_from_datasets`: elements of several datasets, mixed at random."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.engine.plan import INFINITE, UNKNOWN, plan_of
from aiodata.random import Seeds, get_seed
from aiodata.sources._mixes import check_datasets, common_spec, sampled
from aiodata.sources._selection import cumulated, summary, typed

if TYPE_CHECKING:
    import numpy.typing as npt

    from aiodata.dataset import Dataset

__all__ = ["sample_from_datasets"]

T = TypeVar("T")


def sample_from_datasets(
    cls: type[Dataset[Any]],
    datasets: Sequence[Dataset[T]],
    weights: Sequence[float] | npt.NDArray[np.floating[Any]] | Dataset[Any] | None = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset[T]:
    """Give elements of several datasets, each from one that is drawn at random.

    The draws are tf.data's for the same seeds and weights, in any process. All datasets are opened at once; one is
    read when it is drawn. A dataset that has ended keeps its share of the draws, which are then drawn again.

    Args:
        datasets: The datasets, at least one.
        weights: How often each is drawn, in proportion: floating-point numbers, one for each dataset, or a dataset
            that gives such a row for each draw. One whose weight in a list is not above 0 is left out; if one is
            left, it is the result itself. Without weights all are drawn alike.
        seed: With it, or with `set_seed`, the draws are the same in every process.
        stop_on_empty_dataset: End as soon as a dataset is drawn that has no more elements. Otherwise go on until all
            have ended, or the dataset of weights.
        rerandomize_each_iteration: Draw anew in every iteration. Without it each draws alike.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: What should be a dataset is none, the elements of two are known to differ in structure or dtype,
            the weights are integers, or the seed is not an integer.
        ValueError: There are no datasets, not as many weights as datasets, or no weight is finite.

    While iterating, a row of weights of another length, or without a positive one, raises `StructureError`.

    >>> import aiodata
    >>> low, high = aiodata.Dataset.range(3), aiodata.Dataset.range(10, 13)
    >>> [int(x) for x in aiodata.Dataset.sample_from_datasets([low, high], weights=[0.3, 0.7], seed=5)]
    [0, 1, 2, 10, 11, 12]

    Source: `tf.data.Dataset.sample_from_datasets`.
    """
    found: list[Dataset[T]] = check_datasets(datasets, "sample_from_datasets")
    own = None if seed is None else operator.index(seed)
    inputs = [dataset.plan for dataset in found]
    sums: list[float] | None = None
    shares = ""
    rows_of_weights = plan_of(weights)
    if rows_of_weights is not None:
        inputs.insert(0, rows_of_weights)
        shares = "weights=dataset"
    else:
        if weights is not None:
            found, weights = _with_weight(found, weights)
            if not found:
                nothing: Dataset[T] = datasets[0].take(0)
                return nothing
            sums, shares = cumulated(weights), f"weights={summary(weights)}"
            if not sums[-1] > 0:
                raise ValueError(f"sample_from_datasets: no weight is a positive finite number: {weights.tolist()}")
        if len(found) == 1:
            return found[0]
        inputs = [dataset.plan for dataset in found]
        sums = sums or [float(number + 1) for number in range(len(found))]
    spec = common_spec(found, "sample_from_datasets")
    seeds = Seeds(*get_seed(own), reshuffle=bool(rerandomize_each_iteration))
    marks = [
        shares,
        "" if own is None else f"seed={own}",
        "stop_on_empty_dataset=True" if stop_on_empty_dataset else "",
        "rerandomize_each_iteration=True" if seeds.reshuffle else "",
    ]
    return found[0].then(
        "sample_from_datasets",
        partial(sampled, seeds=seeds, sums=sums, stop=bool(stop_on_empty_dataset)),
        inputs=inputs,
        detail=", ".join(mark for mark in marks if mark),
        count=_count,
        spec=lambda *_: spec,
        seeds=seeds,
        title=name,
    )


def _with_weight(datasets: list[Any], weights: Any) -> tuple[list[Any], npt.NDArray[Any]]:
    """Leave out the datasets whose weight is not above 0; give those that are left and their weights."""
    if not isinstance(weights, (Sequence, np.ndarray)) or isinstance(weights, (str, bytes)):
        raise TypeError(f"sample_from_datasets: weights must be a list, an array or a dataset, not {type(weights)}")
    shape = np.shape(weights)
    if shape != (len(datasets),):
        raise ValueError(f"sample_from_datasets: {len(datasets)} datasets need as many weights, not shape {shape}")
    kept = [number for number, weight in enumerate(weights) if weight > 0]
    left = weights[kept] if isinstance(weights, np.ndarray) else [weights[number] for number in kept]
    return [datasets[number] for number in kept], typed(left) if kept else np.empty(0)


def _count(*counts: int) -> int:
    return INFINITE if all(count == INFINITE for count in counts) else UNKNOWN
