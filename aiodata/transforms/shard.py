"""`shard`: every n-th element."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from aiodata.engine.plan import INFINITE, UNKNOWN
from aiodata.spec import same
from aiodata.transforms._shards import Padded, Whole, check_share, every

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.block import Block
    from aiodata.engine.run import Run
    from aiodata.engine.source import Source

__all__ = ["shard"]

T = TypeVar("T")
_REMAINDERS = ("keep", "drop", "pad")


def shard(
    self: Dataset[T],
    num_shards: int,
    index: int,
    name: str | None = None,
    *,
    remainder: Literal["keep", "drop", "pad"] = "keep",
) -> Dataset[T]:
    """Give the elements whose number is `index` modulo `num_shards`.

    The shards 0 to `num_shards - 1` together hold each element once. Put it before a `shuffle`, or give the shuffle
    a seed: shards of different orders overlap. The elements of the other shards are computed and dropped. An element
    that fails counts (in tf.data counting starts over) and raises in its own shard only.

    Where `num_shards` does not divide the number of elements, the shards differ by one in theirs. Processes that
    train in step need the same number; `remainder` says how to get there:

    - "keep" leaves it so, as in tf.data.
    - "drop" leaves the elements of the last, incomplete round out, so that each shard has `count // num_shards`. An
      element is given when its round has been read, `num_shards - 1` elements further at most.
    - "pad" gives the last element of a shard that has one less a second time, the last one that did not fail, so
      that each shard has `count / num_shards`, rounded up, and no element is in two shards. Arrays of elements are
      copied for it.

    Args:
        num_shards: Number of shards, at least 1.
        index: This shard's number, from 0.
        name: A name for the stage, shown in `repr`.
        remainder: "keep", "drop" or "pad".

    Raises:
        TypeError: `num_shards` or `index` is not an integer.
        ValueError: Not `0 <= index < num_shards`; `remainder` is none of the three; or it is "drop" or "pad", and the
            shard is known to be empty.
        DataError: While iterating, at the end: `remainder` is "drop" or "pad", and the shard turned out to be empty;
            or, with "pad", all of its elements have failed.

    >>> import aiodata
    >>> [int(x) for x in aiodata.Dataset.range(5).shard(2, 1)]
    [1, 3]
    >>> [int(x) for x in aiodata.Dataset.range(5).shard(2, 1, remainder="pad")]
    [1, 3, 3]

    Source: `tf.data.Dataset.shard`; `remainder` is an addition.
    """
    shards, number = check_share(num_shards, index, "shard")
    if remainder not in _REMAINDERS:
        raise ValueError(f"shard: remainder must be 'keep', 'drop' or 'pad', not {remainder!r}")
    available = self.plan.cardinality()
    least = {"keep": 0, "drop": shards, "pad": number + 1}[remainder]
    if 0 <= available < least:
        raise ValueError(
            f"shard: with remainder={remainder!r}, shard {number} of num_shards={shards} would be empty: the dataset's "
            f"cardinality is {available}"
        )
    return self.then(
        "shard",
        partial(_shard, shards=shards, number=number, remainder=remainder),
        detail=f"{shards}, {number}" + ("" if remainder == "keep" else f", remainder={remainder!r}"),
        count=partial(_count, shards=shards, number=number, remainder=remainder),
        spec=same,
        title=name,
    )


def _count(available: int, shards: int, number: int, remainder: str) -> int:
    if available in (INFINITE, UNKNOWN):
        return available
    shorter = {"keep": shards - 1 - number, "drop": 0, "pad": shards - 1}[remainder]
    return (available + shorter) // shards


def _shard(
    run: Run, source: Source, *, start: Any, shards: int, number: int, remainder: str
) -> AsyncIterator[Block[Any]]:
    head, cursor = start or (0, None)
    blocks = source.open(cursor)
    if remainder == "drop":
        return Whole(run, shards, number, bool(head)).blocks(blocks)
    if remainder == "pad":
        return Padded(shards, number, head).blocks(blocks)
    return every(blocks, shards, number, head)
