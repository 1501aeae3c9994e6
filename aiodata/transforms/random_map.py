"""`random_map`: apply a function that gets a random generator of its own for every element."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from aiodata.engine.block import Block, Tally, resumable
from aiodata.engine.draws import draw, restore_seeds
from aiodata.engine.plan import Plan
from aiodata.engine.source import Source
from aiodata.functions import check_callable, is_coroutine_function, name_of
from aiodata.random import Seeds, get_seed
from aiodata.transforms.map import mapped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from concurrent.futures import Executor

    from aiodata.dataset import Dataset
    from aiodata.engine.plan import Stage
    from aiodata.engine.position import Cursor
    from aiodata.engine.run import Run

__all__ = ["random_map"]

R = TypeVar("R")


@overload
def random_map(
    self: Dataset[Any],
    map_func: Callable[..., Coroutine[Any, Any, R]],
    seed: int | None = None,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    *,
    executor: str | Executor = "thread",
) -> Dataset[R]: ...
@overload
def random_map(
    self: Dataset[Any],
    map_func: Callable[..., R],
    seed: int | None = None,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    *,
    executor: str | Executor = "thread",
) -> Dataset[R]: ...
def random_map(
    self: Dataset[Any],
    map_func: Callable[..., Any],
    seed: int | None = None,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    *,
    executor: str | Executor = "thread",
) -> Dataset[Any]:
    """Apply `map_func(element, rng)` to every element, with a fresh `numpy.random.Generator` for each call.

    What the generator gives depends on the seed, the epoch and the element's number in the input, and on nothing
    else: it is the same in threads and processes, with any number of calls at once, and after a restore. Each
    iterator that is opened is another epoch, so two passes over the dataset give what `repeat(2)` gives. An element
    that fails uses up its number.

    The generator of element `n` is `Generator(Philox(key=pair, counter=[0, 0, 0, n]))`, where `pair` are the two
    numbers that a `shuffle` with the same seed draws for that epoch; `rng.bit_generator.state` shows them. This rule
    stays. The words of numpy's `Philox` are the same in every version; what the generator's methods make of them may
    change with numpy. Making a generator takes about 3 us.

    Args:
        map_func: A plain or `async def` function. It is called as `map` calls its function, with the generator as one
            more, last argument: `map_func(a, b, rng)` for a tuple. `rng.spawn` is refused.
        seed: With it, or with `set_seed`, the results are the same in every process.
        num_parallel_calls: As for `map`.
        deterministic: As for `map`. It changes the order of the results, not what they are.
        name: A name for the stage, shown in `repr`.
        executor: As for `map`.

    Returns:
        A dataset of the results.

    Raises:
        TypeError: `map_func` is not callable, `seed` is not an integer, or `executor` is not one.
        ValueError: `num_parallel_calls` is 0 or below -1; `executor` is an unknown name, or would not be used.

    >>> import aiodata
    >>> ds = aiodata.Dataset.range(3).random_map(lambda x, rng: x + 10 * rng.integers(10), seed=1)
    >>> [int(x) for x in ds], [int(x) for x in ds]
    ([50, 81, 12], [90, 61, 62])

    Source: `grain.MapDataset.random_map`; an addition to tf.data.
    """
    from aiodata.transforms._random_calls import awaited, called  # numpy.random takes 40 ms to import

    check_callable(map_func, "random_map", "map_func")
    seeds = Seeds(*get_seed(seed), reshuffle=True)
    shown = name_of(map_func)
    results = mapped(
        self,
        partial(awaited if is_coroutine_function(map_func) else called, map_func),
        num_parallel_calls,
        deterministic,
        executor,
        name="random_map",
        label=f"random_map({shown})",
        detail=shown if seed is None else f"{shown}, seed={seed}",
        title=name,
    )
    mapping = results.plan.stage
    assert isinstance(mapping, partial)
    stage = partial(_random_map, stage=mapping.func, seeds=seeds, **mapping.keywords)
    return type(results)(replace(results.plan, stage=stage, seeds=seeds))


def _random_map(
    run: Run, source: Source, *, start: Cursor | None, stage: Stage, seeds: Seeds, **arguments: Any
) -> AsyncIterator[Block[Any]]:
    """Open the stage of a map behind one that gives the elements their numbers; they are one stage to the user."""
    keyed = Source(run, Plan("random_map", partial(_keyed, seeds=seeds), (source.plan,), seeds=seeds))
    return run.own(stage(run, keyed, start=start, **arguments), [keyed])


def _keyed(run: Run, source: Source, *, start: Any, seeds: Seeds) -> AsyncIterator[Block[Any]]:
    """Give each element with what its generator is made from: `(pair, number, element)`."""
    if start is None:
        pair, saved = draw(run, seeds)
        return _numbered(source.open(), pair, saved, 0)
    pair, saved = tuple(start["pair"]), start["seeds"]
    restore_seeds(run, seeds, saved)
    return _numbered(source.open(start["source"]), pair, saved, start["number"])


async def _numbered(
    blocks: AsyncIterator[Block[Any]], pair: Any, saved: list[int], number: int
) -> AsyncIterator[Block[Any]]:
    async for block in blocks:
        origin = block.origin.within(partial(_position, pair, saved, number, block.here()), block.offset)
        tally = Tally(number)
        yield Block(origin, rows=_triples(block.rows(), pair, tally), length=block.length)
        number = tally.count


def _triples(rows: Iterator[Any], pair: Any, tally: Tally) -> Iterator[Any]:
    def numbering() -> Iterator[Any]:
        number = tally.count
        try:
            for element in rows:
                number += 1
                yield pair, number - 1, element
        except Exception:
            number += 1
            raise
        finally:
            tally.count = number

    return resumable(numbering)


def _position(pair: Any, saved: list[int], number: int, cursor: Callable[[], Any]) -> dict[str, Any]:
    return {"pair": list(pair), "seeds": saved, "number": number, "source": cursor()}
