"""`rejection_resample`: elements of classes in other proportions."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.engine.source import Source
from aiodata.functions import check_callable, is_coroutine_function, name_of
from aiodata.random import get_inner_seed, get_seed
from aiodata.sources._mixes import sampled
from aiodata.sources._selection import cumulated, summary
from aiodata.transforms._resampling import (
    ResampleSeeds,
    accepted,
    class_of,
    distribution,
    estimated,
    mix_weights,
    shares,
)
from aiodata.transforms.map import mapped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.plan import Plan
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.transforms._resampling import Distribution

__all__ = ["rejection_resample"]

T = TypeVar("T")


def rejection_resample(
    self: Dataset[T],
    class_func: Callable[..., Any],
    target_dist: Any,
    initial_dist: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Dataset[tuple[Any, T]]:
    """Give `(class, element)` for elements chosen so that the classes come as often as `target_dist` says.

    It mixes, at random, all elements with those that a draw by their class accepts, and ends when either ends; an
    element may come from both. The draws are tf.data's for the same seeds, in any process.

    The input is read in several passes at once: two, or five where `initial_dist` is estimated, and `class_func` is
    called in each. So the input should not be too dear to read, and the function give the same for the same element.
    The estimate is made anew every 32 elements and runs ahead so far. Nothing else is held.

    Args:
        class_func: A plain function of an element, called as that of `map`, that gives an integer from 0 to
            `len(target_dist) - 1`.
        target_dist: The share that each class shall have; numbers from 0 that add up to 1.
        initial_dist: The share that each class has in the input. None estimates it as elements come, beginning with 10
            of each class. That the shares add up to 1 is not checked, as in tf.data; others give other proportions.
        seed: With it, or with `set_seed`, the draws are the same in every process.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of pairs: the class as `class_func` gave it, a Python number as int32; and the element.

    Raises:
        TypeError: `class_func` is not a plain function, a distribution does not consist of numbers, or the seed is not
            an integer.
        ValueError: A distribution has another shape than one number for each class, a number in it is negative or not
            finite, or those of `target_dist` do not add up to 1.

    While iterating, `class_func` may give something else than an integer (`TypeError`) or a class that does not exist
    (`DataError`). That takes the place of the element, like any error of the function or of the input, in each of the
    passes that give elements; the estimate passes over it.

    >>> import aiodata
    >>> rarely = aiodata.Dataset.from_tensor_slices([0] * 9 + [1]).repeat()
    >>> halves = rarely.rejection_resample(lambda x: x, [0.5, 0.5], [0.9, 0.1], seed=1)
    >>> sum(int(found) for found, _ in halves.take(1000))
    501

    Source: `tf.data.Dataset.rejection_resample`.
    """
    check_callable(class_func, "rejection_resample", "class_func")
    if is_coroutine_function(class_func):
        raise TypeError("rejection_resample: class_func must be a plain function; map to (class, element) before")
    target = distribution(target_dist, "target_dist")
    if not abs(target.sum() - 1) < 0.02:  # a share of the whole that is too large would be more than all elements
        raise ValueError(f"rejection_resample: target_dist must add up to 1, not {target.sum()}")
    initial = None if initial_dist is None else distribution(initial_dist, "initial_dist")
    if initial is not None and initial.shape != target.shape:
        raise ValueError(
            f"rejection_resample: initial_dist must be as long as target_dist, {len(target)}, not {len(initial)}"
        )
    own = None if seed is None else operator.index(seed)
    detail = f"{name_of(class_func)}, {summary(target)}" + ("" if initial is None else f", {summary(initial)}")
    detail += "" if own is None else f", seed={own}"
    call = partial(_with_class, class_func, len(target))
    label = f"rejection_resample({name_of(class_func)})"
    classes = mapped(self, call, name="rejection_resample", label=label, detail=detail, title=name)
    least = np.nan if initial is None else _least_share(target, initial)
    if least == 1:
        return classes  # the input has the target distribution: all elements are wanted
    draws = get_inner_seed(own)
    seeds = ResampleSeeds(draws if least == 0 else get_seed(own), draws)
    wanted = _accepted(classes, target, initial, seeds)
    facts: dict[str, Any] = {"detail": detail, "seeds": seeds, "title": name}
    if least == 0:  # there is a class that is not wanted at all, so that only accepted elements are
        return self.then("rejection_resample", partial(_part, part=wanted.plan), resumes_by_cursor=True, **facts)
    sums, parts = None, [classes.plan, wanted.plan]
    if initial is not None:
        sums = cumulated(mix_weights(target, initial))
    else:
        estimate = partial(estimated, classes=len(target), give=partial(mix_weights, target))
        parts.insert(0, classes.then("weights", estimate).plan)
    stage = partial(_mixed, parts=parts, seeds=seeds, sums=sums)
    return self.then("rejection_resample", stage, count=_count, opens_often=True, **facts)


def _count(available: int) -> int:
    return INFINITE if available == INFINITE else UNKNOWN


def _with_class(class_func: Callable[..., Any], count: int, *parts: Any) -> Any:
    return class_of(class_func(*parts), count), parts[0] if len(parts) == 1 else parts


def _least_share(target: Distribution, initial: Distribution) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((target / initial).min())


def _accepted(
    classes: Dataset[Any],
    target: Distribution,
    initial: Distribution | None,
    seeds: ResampleSeeds,
) -> Dataset[Any]:
    """Give the dataset of the elements that a draw accepts."""
    if initial is not None:
        return classes.then("accept", partial(accepted, seeds=seeds, fixed=shares(target, initial)))
    estimate = partial(estimated, classes=len(target))
    share = classes.then("shares", partial(estimate, give=partial(shares, target)))
    # tf.data reads one more estimate beside it, which shows in the orders that a shuffle before all this takes.
    other = classes.then("estimate", partial(estimate, give=len))
    return share.zip(share, other, classes).then("accept", partial(accepted, seeds=seeds, fixed=None))


class _Part(Source):
    """A dataset that is made of the stage's input, to be opened like an input."""

    __slots__ = ("input",)

    def __init__(self, source: Source, plan: Plan) -> None:
        super().__init__(source.run, plan)
        self.input = source

    def open(self, start: Cursor | None = None) -> AsyncIterator[Block[Any]]:
        """Open it through the input, which is closed with what was opened through it."""
        return self.input.open_inner(self.plan, start)


def _part(run: Run, source: Source, *, start: Cursor | None, part: Plan) -> AsyncIterator[Block[Any]]:
    return source.open_inner(part, start)


def _mixed(
    run: Run, source: Source, *, start: Any, parts: list[Plan], seeds: ResampleSeeds, sums: list[float] | None
) -> AsyncIterator[Block[Any]]:
    opened = [_Part(source, part) for part in parts]
    return sampled(run, *opened, start=start, seeds=seeds, sums=sums, stop=True)
