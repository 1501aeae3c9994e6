"""`Dataset.choose_from_datasets`: elements of several datasets, mixed as a further one says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aiodata.engine.plan import INFINITE, UNKNOWN, plan_of
from aiodata.sources._mixes import check_datasets, chosen, common_spec
from aiodata.spec import TensorSpec, spec_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiodata.dataset import Dataset

__all__ = ["choose_from_datasets"]

T = TypeVar("T")


def choose_from_datasets(
    cls: type[Dataset[Any]],
    datasets: Sequence[Dataset[T]],
    choice_dataset: Dataset[Any],
    stop_on_empty_dataset: bool = True,
    name: str | None = None,
) -> Dataset[T]:
    """Give elements of several datasets, each from the one whose number `choice_dataset` gives next.

    All datasets are opened at once; one is read when it is chosen. The result ends with the choices, at the latest. A
    choice that fails, or that is no number of a dataset, is an error in the place of an element.

    Args:
        datasets: The datasets, at least one.
        choice_dataset: Gives integers from 0 to `len(datasets) - 1`.
        stop_on_empty_dataset: End as soon as a dataset is chosen that has no more elements. If False, pass over such
            choices, and end when all datasets have ended.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: What should be a dataset is none, the elements of two are known to differ in structure or dtype, or
            the choices are known not to be integers.
        ValueError: There are no datasets.

    While iterating, a choice that is not an integer raises `StructureError`, one out of range `DataError`.

    >>> import aiodata
    >>> low, high = aiodata.Dataset.range(3), aiodata.Dataset.range(10, 13)
    >>> choices = aiodata.Dataset.from_tensor_slices([1, 0, 1])
    >>> [int(x) for x in aiodata.Dataset.choose_from_datasets([low, high], choices)]
    [10, 0, 11]

    Source: `tf.data.Dataset.choose_from_datasets`.
    """
    found = check_datasets(datasets, "choose_from_datasets")
    choices = plan_of(choice_dataset)
    if choices is None:
        raise TypeError(f"choose_from_datasets: choice_dataset must be a dataset, not {type(choice_dataset).__name__}")
    numbers = choices.element_spec()
    if numbers is not None and not _is_integer(numbers):
        raise TypeError(f"choose_from_datasets: choice_dataset must give integers, not {spec_text(numbers)}")
    spec = common_spec(found, "choose_from_datasets")
    mixed: Dataset[T] = found[0].then(
        "choose_from_datasets",
        partial(chosen, stop=bool(stop_on_empty_dataset)),
        inputs=[choices, *(dataset.plan for dataset in found)],
        detail="" if stop_on_empty_dataset else "stop_on_empty_dataset=False",
        count=_count,
        spec=lambda *_: spec,
        title=name,
    )
    return mixed


def _is_integer(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype.kind in "iu" and spec.shape in ((), None)


def _count(*counts: int) -> int:
    return INFINITE if all(count == INFINITE for count in counts) else UNKNOWN
