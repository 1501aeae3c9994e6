"""`group_by_window`: elements in groups by a key, each group reduced when it is full."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer
from aiodata.engine.plan import INFINITE, UNKNOWN, plan_of, save_seeds, seed_owners
from aiodata.functions import name_of
from aiodata.random import seeded
from aiodata.transforms._grouping import Grouping
from aiodata.transforms._groups import Group, position
from aiodata.transforms._held import frozen, held
from aiodata.transforms._keys import as_key, check_plain
from aiodata.transforms._made import check_made, stages_checksum, stages_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["count", "group_by_window"]


def group_by_window(
    self: Dataset[Any],
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset[Any]], Dataset[Any]],
    window_size: int | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> Dataset[Any]:
    """Collect elements with the same key, and give the elements of `reduce_func(key, group)` for each full group.

    A group is reduced as soon as it has its number of elements; those that are left at the end follow by their keys,
    the smallest first. An element that fails, or whose key does, takes a place among the results, as does a
    group for which `reduce_func` fails.

    The elements of the groups that are not full are held in memory. A saved state does not hold them: restoring it
    reads the input again from the first of them on and calls the functions again, so these have to depend on their
    arguments alone. A group that never gets full makes that a long way.

    Args:
        key_func: A plain function of an element that gives an integer scalar; called as `map` calls its function.
        reduce_func: A plain function of a key, an int64, and a dataset of the group's elements, which is in memory and
            can be read more than once; gives a dataset.
        window_size: Elements in a full group, at least 1; or else
        window_size_func: a plain function that gives that number for a key. It is called when a group begins.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of what the groups are reduced to; its cardinality is unknown, or infinite as that of the input.

    Raises:
        TypeError: A function is not a plain one, or `window_size` not an integer. While iterating: `key_func` gives
            no integer (a bool is none), or `reduce_func` no dataset.
        ValueError: Not exactly one of `window_size` and `window_size_func` is given, or the size is below 1.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, group: group.batch(3), 3)
    >>> [x.tolist() for x in ds]
    [[0, 2, 4], [1, 3, 5], [6]]

    Source: `tf.data.Dataset.group_by_window`.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError("group_by_window: give either window_size or window_size_func")
    check_plain(key_func, "group_by_window", "key_func")
    check_plain(reduce_func, "group_by_window", "reduce_func")
    if window_size_func is not None:
        check_plain(window_size_func, "group_by_window", "window_size_func")
        size_func, size_text = window_size_func, f"window_size_func={name_of(window_size_func)}"
    else:
        size = check_integer(window_size, "group_by_window", "window_size", 1)
        size_func, size_text = partial(_constant, size), str(size)
    functions = f"{name_of(key_func)}, {name_of(reduce_func)}, {size_text}"
    stage = partial(
        _windows,
        parent=self,
        reduce_func=seeded(reduce_func),
        key_func=key_func,
        size_func=size_func,
        label=f"group_by_window({name_of(key_func)})",
    )
    return self.then("group_by_window", stage, detail=functions, count=count, makes_datasets=True, title=name)


def count(available: int) -> int:
    """Give the number of elements of a stage that gives groups."""
    return INFINITE if available == INFINITE else UNKNOWN


def _constant(size: int, key: Any) -> int:
    return size


def _windows(run: Run, source: Source, *, start: Any, **arguments: Any) -> AsyncIterator[Block[Any]]:
    return _Windows(run, source, start, **arguments).elements(start)


class _Windows(Grouping):
    """Groups that a user's function makes datasets of.

    Args:
        parent: The input, of whose class the groups are made.
        reduce_func: Gives a dataset for a key and a group.
        arguments: Those of `Grouping`.
    """

    def __init__(self, *arguments: Any, parent: Dataset[Any], reduce_func: Callable[..., Any], **rest: Any) -> None:
        super().__init__(*arguments, **rest)
        self.parent = parent
        self.reduce_func = reduce_func

    def reduce(self, group: Group, key: int | None, inner: Any) -> None:
        """Open the dataset that a group is reduced to.

        Args:
            group: The group.
            key: Its key, if the input has ended.
            inner: Where to open it, the state of its seed generators, what tells it from others; None for the start.
        """
        count = len(group.elements)
        elements = held(self.parent, "group", frozen(group.elements), count, self.source.plan.element_spec)
        try:
            dataset = self.reduce_func(as_key(group.key), elements)
            plan = plan_of(dataset)
            if plan is None:
                raise TypeError(f"reduce_func must give a Dataset, not {type(dataset).__name__}")
        except Exception as error:
            self.fail(error, group.number, group.origin, group.offset)
        start, seeds, made = inner or (None, save_seeds(plan), stages_checksum(stages_of(plan)))
        if inner is not None:
            check_made(plan, made, self.label)
            owners = seed_owners(plan)
            for owner, state in zip(owners, seeds, strict=True):
                owner.restore(self.run.restored, state)
        place = partial(position, self.mark, self.read - self.mark.number, key, [seeds, made])
        self.current = self.source.open_inner(plan, start), place
