"""What the mixes of several datasets share: checks of their arguments, and the stage that draws at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.engine.draws import draw, restore_seeds
from aiodata.engine.plan import plan_of
from aiodata.sources._directed import Directed, Input
from aiodata.sources._row_choices import IndexChoices, WeightChoices
from aiodata.sources._selection import FixedChoices
from aiodata.spec import generalized

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import numpy.typing as npt

    from aiodata.engine.block import Block
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source
    from aiodata.random import Seeds

__all__ = ["check_datasets", "chosen", "common_spec", "sampled"]


def check_datasets(datasets: Any, method: str) -> list[Any]:
    """Give the datasets as a list.

    Raises:
        TypeError: It is not a list or tuple of datasets.
        ValueError: It is empty.
    """
    if plan_of(datasets) is not None or not isinstance(datasets, Sequence):
        raise TypeError(f"{method}: datasets must be a list of datasets, not {type(datasets).__name__}")
    for dataset in datasets:
        if plan_of(dataset) is None:
            raise TypeError(f"{method}: takes datasets, not {type(dataset).__name__}")
    if not datasets:
        raise ValueError(f"{method}: give at least one dataset")
    return list(datasets)


def common_spec(datasets: list[Any], method: str) -> Any:
    """Give the spec that the elements of all datasets have; None if one is not known.

    Raises:
        TypeError: Two are known to differ in structure or dtype.
    """
    specs = [dataset.plan.element_spec() for dataset in datasets]
    common = None
    for number, spec in enumerate(specs):
        try:
            common = spec if common is None else common if spec is None else generalized(common, spec)
        except TypeError as error:
            raise TypeError(f"{method}: dataset {number} does not fit those before it: {error}") from None
    return None if None in specs else common


def sampled(
    run: Run, *sources: Source, start: Any, seeds: Seeds, sums: list[float] | None, stop: bool
) -> AsyncIterator[Block[Any]]:
    """Mix inputs at random; a stage.

    Args:
        run: The run.
        *sources: The inputs; before them, without `sums`, one that gives a row of weights for each selection.
        start: Position.
        seeds: Of the selections.
        sums: What `cumulated` makes of weights that stay the same.
        stop: End as soon as an input is selected that has ended.
    """
    if start is None:
        (pair, saved), used = draw(run, seeds), 0
    else:
        pair, saved, used = tuple(start["pair"]), start["seeds"], start["used"]
        restore_seeds(run, seeds, saved)
    choices: FixedChoices | WeightChoices
    if sums is None:
        rows = Input(run, sources[0], start and start["row"])
        inputs, live = _opened(run, sources[1:], start)
        choices = WeightChoices(rows, live, used, pair)
    else:
        inputs, live = _opened(run, sources, start)
        choices = FixedChoices(pair, used, sums)
    return Directed(run, inputs, live, choices, {"pair": list(pair), "seeds": saved}, stop).elements()


def chosen(run: Run, *sources: Source, start: Any, stop: bool) -> AsyncIterator[Block[Any]]:
    """Mix inputs as the first one says, by the number of the input that comes next; a stage.

    Args:
        run: The run.
        *sources: The input of numbers, and those that they choose from.
        start: Position.
        stop: End as soon as an input is chosen that has ended.
    """
    rows = Input(run, sources[0], start and start["row"])
    inputs, live = _opened(run, sources[1:], start)
    return Directed(run, inputs, live, IndexChoices(rows, live, start["used"] if start else 0), {}, stop).elements()


def _opened(run: Run, sources: Sequence[Source], start: Any) -> tuple[list[Input], npt.NDArray[np.bool_]]:
    """Open the inputs; give them and which have not ended."""
    marks = [None] * len(sources) if start is None else start["inputs"]
    inputs = [Input(run, source, mark) for source, mark in zip(sources, marks, strict=True)]
    return inputs, np.array([not each.ended for each in inputs])
