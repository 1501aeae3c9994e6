"""How the rows of a query are divided into ranges of a key's values."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.errors import DataError, StructureError
from aiodata.formats.sql_values import key_from_json, key_to_json
from aiodata.sources._databases import Connection
from aiodata.sources._sql_rows import close, read_rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiodata.dataset import Dataset
    from aiodata.engine.run import Run
    from aiodata.sources._sql_rows import Query

__all__ = ["partition", "read_bounds"]


async def read_bounds(run: Run, *, start: Any, query: Query, partitions: int) -> AsyncIterator[Block[Any]]:
    """Give the limits `(low, high)` of each partition; a position is the bounds between them, in a list."""
    failed: list[Block[Any]] = []
    bounds: list[Any] = []
    connection = Connection(query.database, run)
    try:
        if start is not None:
            bounds = list(map(key_from_json, start[0]))
        else:
            quote = await connection.open()
            await connection.execute(*query.without_key(quote), 1)
            if await connection.fetch(1):
                raise StructureError(f"{query.label}: the key {query.key!r} is NULL in a row, which no partition has")
            await connection.execute(*query.bounds(quote), 1)
            ((low, high),) = await connection.fetch(1)
            bounds = _divided(low, high, partitions, query)
    except Exception as error:
        origin = Origin(lambda: None, lambda _: query.label)
        locate(error, "from_sql", 0, origin, 0)
        if not isinstance(error, DataError):
            raise
        failed.append(Block.failed(error, origin))
    finally:
        await close(connection)
    if failed:
        yield failed.pop()
    elif bounds:
        # The outermost partitions have no limits, so that no row is left out that comes or goes meanwhile.
        edges = [None, *bounds[1:], None]
        limits = list(pairwise(edges))
        yield Block(Origin(partial(list, [list(map(key_to_json, bounds))])), computed=limits, clean=True)


def _divided(low: Any, high: Any, partitions: int, query: Query) -> list[Any]:
    """Divide the keys from `low` to `high`: give the least key of each partition, none if there are no keys."""
    if low is None:
        return []
    if type(low) not in (int, float, Decimal) or type(high) is not type(low):
        raise StructureError(
            f"{query.label}: partitions need a key of numbers, and {query.key!r} is a {type(low).__name__}"
        )
    if type(low) is int:
        found = [low + (high - low + 1) * part // partitions for part in range(partitions)]
    else:
        found = [low + (high - low) / partitions * part for part in range(partitions)]
    return [low, *sorted({bound for bound in found if low < bound <= high})]


def partition(low: Any, high: Any, *, datasets: type[Dataset[Any]], query: Query) -> Dataset[Any]:
    """Give the rows whose keys are from `low` to below `high`."""
    limits = (f", {query.key} >= {low}" if low is not None else "") + (f", < {high}" if high is not None else "")
    part = replace(query, low=low, high=high, label=query.label + limits)
    engine = query.database.is_engine
    plan = Plan("from_sql", partial(read_rows, query=part), detail=part.label, waits=True, has_coroutines=engine)
    return datasets(plan)
