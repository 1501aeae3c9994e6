"""`group_by_reducer`: one value for each key, from all elements with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block, Tally
from aiodata.engine.position import Origin, locate
from aiodata.engine.skipped import Skipped
from aiodata.functions import applied, as_error, name_of
from aiodata.structure import normalize, unshared
from aiodata.transforms._keys import as_key, check_plain, keyed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiodata.dataset import Dataset
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["Reducer", "group_by_reducer"]

SECONDS_AT_A_TIME = 0.002


@dataclass(frozen=True)
class Reducer:
    """How the elements of a group become one value, for `group_by_reducer`.

    Args:
        init_func: Gives a group's first state for its key, an int64.
        reduce_func: Gives the next state from the state so far and an element; a tuple element is one argument.
        finalize_func: Gives the value from the last state; called as `map` calls its function, so that a state which
            is a plain tuple is unpacked into arguments.

    Raises:
        TypeError: One of them is not a plain function.

    >>> mean = Reducer(lambda key: (0, 0), lambda state, x: (state[0] + x, state[1] + 1), lambda total, n: total / n)

    Source: `tf.data.experimental.Reducer`.
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]

    def __post_init__(self) -> None:
        """Refuse what is not a plain function."""
        for argument, function in vars(self).items():
            check_plain(function, "Reducer", argument)


def group_by_reducer(
    self: Dataset[Any], key_func: Callable[..., Any], reducer: Reducer, name: str | None = None
) -> Dataset[Any]:
    """Combine all elements with the same key into one value; the values come at the input's end, by ascending keys.

    Only the states are held. An element that fails, whose key does or whose step does, takes a place before the values
    and leaves its group's state as it was. A saved state holds nothing of them: restoring it reads the input again from
    its start, so the functions have to depend on their arguments alone.

    Args:
        key_func: A plain function of an element that gives an integer scalar; called as `map` calls its function.
        reducer: How the elements of a group become one value.
        name: A name for the stage, shown in `repr`.

    Returns:
        A dataset of the values; its cardinality is unknown.

    Raises:
        TypeError: `key_func` is not a plain function, or `reducer` no `Reducer`. While iterating: `key_func` gives no
            integer.

    >>> import aiodata
    >>> add = Reducer(lambda key: 0, lambda total, x: total + x, lambda total: total)
    >>> [int(x) for x in aiodata.Dataset.range(6).group_by_reducer(lambda x: x % 2, add)]
    [6, 9]

    Source: `tf.data.experimental.group_by_reducer`.
    """
    check_plain(key_func, "group_by_reducer", "key_func")
    if not isinstance(reducer, Reducer):
        raise TypeError(f"group_by_reducer: reducer must be a Reducer, not {type(reducer).__name__}")
    stage = partial(_group_by_reducer, key_func=key_func, reducer=reducer)
    functions: tuple[Callable[..., Any], ...] = (
        key_func,
        reducer.init_func,
        reducer.reduce_func,
        reducer.finalize_func,
    )
    return self.then("group_by_reducer", stage, detail=", ".join(map(name_of, functions)), title=name)


def _group_by_reducer(
    run: Run, source: Source, *, start: Any, key_func: Callable[..., Any], reducer: Reducer
) -> AsyncIterator[Block[Any]]:
    begun, known = start or (None, 0)
    return _Reduction(run, key_func, reducer).values(source.open(begun), known)


class _Reduction:
    """The states of all groups. A position is where the input began, and how many elements have been read."""

    def __init__(self, run: Run, key_func: Callable[..., Any], reducer: Reducer) -> None:
        self.run = run
        self.key_func = key_func
        self.reducer = reducer
        self.label = f"group_by_reducer({name_of(key_func)})"
        self.states: dict[int, Any] = {}
        self.read = Tally()

    async def values(self, blocks: AsyncIterator[Block[Any]], known: int) -> AsyncIterator[Block[Any]]:
        """Give the values, and before them the errors, but those of the first `known` elements."""
        self.run.inline.append(self.label)
        begun: Callable[[], Cursor] | None = None
        async for block in blocks:
            begun = begun or block.here()
            pairs = keyed(block, self.key_func, self.label, self.read)
            origin, ahead = block.origin, block.offset - self.read.count
            more = True
            while more:
                failed: Block[Any] | None = None
                try:
                    more = self._reduce(pairs, origin, ahead)
                except Exception as error:
                    failed = Block.failed(error, Origin(partial(_position, begun, self.read.count - 1)))
                if failed is not None and self.read.count > known:
                    yield failed
                await self.run.breathe()
        skipped = Skipped(known)
        skipped.note(self.read.count)
        skipped.check()
        if begun is not None:
            last = [self.states[key] for key in sorted(self.states)]
            states: Block[Any] = Block(Origin(partial(_position, begun, self.read.count)), computed=last, clean=True)
            rows = applied(self.reducer.finalize_func, states, self.label, Tally())
            yield Block(states.origin, rows=rows, length=len(last))

    def _reduce(self, pairs: Iterator[tuple[int, Any]], origin: Origin, ahead: int) -> bool:
        """Take elements into their states; False when the block has ended, True when it has taken a while."""
        deadline = monotonic() + SECONDS_AT_A_TIME
        for key, element in pairs:
            try:
                if key not in self.states:
                    self.states[key] = normalize(self.reducer.init_func(as_key(key)))
                self.states[key] = normalize(self.reducer.reduce_func(unshared(self.states[key]), element))
            except Exception as error:
                failure = as_error(error)
                locate(failure, self.label, self.read.count - 1, origin, ahead + self.read.count - 1)
                try:
                    raise failure
                finally:
                    del failure  # else it and this frame, which its traceback holds, would be a cycle
            if monotonic() > deadline:
                return True
        return False


def _position(begun: Callable[[], Cursor], read: int) -> Any:
    return [begun(), read]
