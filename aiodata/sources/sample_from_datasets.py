"""`Dataset.sample_from_datasets`: elements of several datasets, mixed at random."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.engine.plan import INFINITE, UNKNOWN, plan_of
from aiodata.random import Seeds, get_seed
from aiodata.sources._directed import Directed, Input
from aiodata.sources._selection import FixedChoices, RowChoices, cumulated, summary, typed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import numpy.typing as npt

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["sample_from_datasets"]

T = TypeVar("T")


def sample_from_datasets(
    cls: type[Dataset[Any]],
    datasets: Sequence[Dataset[T]],
    weights: Sequence[float] | npt.NDArray[np.floating[Any]] | Dataset[Any] | None = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
    rerandomize_each_iteration: bool | None = None,
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

    Raises:
        TypeError: What should be a dataset is none, the weights are integers, or the seed is not an integer.
        ValueError: There are no datasets, not as many weights as datasets, or no weight is finite.

    While iterating, a row of weights of another length, or without a positive one, raises `StructureError`.

    >>> import aiodata
    >>> low, high = aiodata.Dataset.range(3), aiodata.Dataset.range(10, 13)
    >>> [int(x) for x in aiodata.Dataset.sample_from_datasets([low, high], weights=[0.3, 0.7], seed=5)]
    [0, 1, 2, 10, 11, 12]

    Source: `tf.data.Dataset.sample_from_datasets`.
    """
    found: list[Dataset[T]] = _checked(datasets)
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
    seeds = Seeds(*get_seed(own), reshuffle=bool(rerandomize_each_iteration))
    marks = [
        shares,
        "" if own is None else f"seed={own}",
        "stop_on_empty_dataset=True" if stop_on_empty_dataset else "",
        "rerandomize_each_iteration=True" if seeds.reshuffle else "",
    ]
    stage = partial(_sample, seeds=seeds, sums=sums, stop=bool(stop_on_empty_dataset))
    detail = ", ".join(mark for mark in marks if mark)
    return found[0].then("sample_from_datasets", stage, inputs=inputs, detail=detail, count=_count, seeds=seeds)


def _checked(datasets: Any) -> list[Any]:
    if plan_of(datasets) is not None or not isinstance(datasets, Sequence):
        raise TypeError(f"sample_from_datasets: datasets must be a list of datasets, not {type(datasets).__name__}")
    for dataset in datasets:
        if plan_of(dataset) is None:
            raise TypeError(f"sample_from_datasets: takes datasets, not {type(dataset).__name__}")
    if not datasets:
        raise ValueError("sample_from_datasets: give at least one dataset")
    return list(datasets)


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


def _sample(
    run: Run, *sources: Source, start: Any, seeds: Seeds, sums: list[float] | None, stop: bool
) -> AsyncIterator[Block[Any]]:
    if start is None:
        pair, saved, used = seeds.draw(), seeds.save(), 0
    else:
        pair, saved, used = tuple(start["pair"]), start["seeds"], start["used"]
        seeds.restore(run.restored, saved)
    by_row = sums is None
    rows = Input(run, sources[0], start and start["weights"]) if by_row else None
    own = sources[1:] if by_row else sources
    marks = [None] * len(own) if start is None else start["inputs"]
    inputs = [Input(run, source, mark) for source, mark in zip(own, marks, strict=True)]
    live = np.array([not each.ended for each in inputs])
    choices = FixedChoices(pair, used, sums or []) if rows is None else RowChoices(pair, used, rows, live)
    return Directed(run, inputs, live, choices, {"pair": list(pair), "seeds": saved}, stop).elements()
