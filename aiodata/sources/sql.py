"""`SqlDataset`: the rows of a query on a SQLite database, as in tf.data."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.dataset import Dataset
from aiodata.engine.block import Block
from aiodata.engine.plan import Plan
from aiodata.engine.position import Origin, locate
from aiodata.engine.workers import wait_out
from aiodata.errors import StateError
from aiodata.formats.sqlite import SqliteQuery, output_types_of
from aiodata.sources._promises import Promise, failed_position, position
from aiodata.sources._queries import finished, shown
from aiodata.spec import TensorSpec
from aiodata.storage.schemes import check_local

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from aiodata.engine.run import Run
    from aiodata.formats.sqlite import Portion

__all__ = ["SqlDataset"]

INTERRUPT_SECONDS = 0.05


class SqlDataset(Dataset[tuple[Any, ...]]):
    """The rows of a query on a SQLite database: a tuple for each, of one numpy scalar, `bytes` or `str` per column.

    Values are converted as SQLite itself converts them: NULL is 0, 0.0, False or "", the text "12" is 12, 1.5 is 1,
    12 is "12", what begins with no number is 0, and a bool is True where the value as an integer is not 0.

    For other databases, for rows as dicts of what the columns hold, and for going on at a key without reading what was
    before, see `Dataset.from_sql`.

    The query is run anew by each iteration, in the run's own threads; the database is opened when the first row is
    asked for, never created, and cannot be changed by the query. Rows are passed on as columns, in portions of at most
    1,000 rows or about 1 MiB. A state holds the number of the next row: restoring runs the query again and leaves out
    the rows before it, so the query needs an `ORDER BY` that fixes the order.

    Args:
        driver_name: "sqlite", the only one.
        data_source_name: Path of the database file, or a `file:` URI as SQLite knows it.
        query: One SQL statement that gives rows.
        output_types: A tuple with the type of each column: a bool, integer or float dtype, `bytes` for text and blobs,
            or `str` for text in UTF-8.
        name: A name for the stage, shown in `repr`.

    Raises:
        TypeError: An argument has a type that cannot work.
        ValueError: `driver_name` is not "sqlite", or `output_types` is empty.
        OSError: While iterating: there is no such file.
        CorruptRecordError: While iterating: it is no SQLite database, or damaged.
        sqlite3.Error: While iterating: the query is wrong, or fails at a row, and ends there. Python's sqlite3 looks a
            row ahead, so that the row before is lost, too.
        StructureError: While iterating: the query has another number of columns. Or, in place of a row: an integer
            that its dtype cannot hold, or bytes that are no UTF-8 for `str`; the next row follows.

    >>> import aiodata, os, sqlite3, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.db")
    ...     connection = sqlite3.connect(path)
    ...     _ = connection.execute("CREATE TABLE flights AS SELECT 'UA' AS carrier, 7 AS delay UNION SELECT 'B6', NULL")
    ...     connection.close()
    ...     query = "SELECT carrier, delay FROM flights ORDER BY carrier"
    ...     list(aiodata.SqlDataset("sqlite", path, query, (bytes, "int32")))
    [(b'B6', np.int32(0)), (b'UA', np.int32(7))]

    Source: `tf.data.experimental.SqlDataset`, which wraps integers that its dtype cannot hold.
    """

    __slots__ = ()

    def __init__(
        self,
        driver_name: str,
        data_source_name: str | bytes | os.PathLike[str],
        query: str,
        output_types: Sequence[Any],
        name: str | None = None,
    ) -> None:
        if driver_name != "sqlite":
            raise ValueError(f'SqlDataset: driver_name must be "sqlite", not {driver_name!r:.80}; see Dataset.from_sql')
        try:
            path = os.fsdecode(data_source_name)
            types = output_types_of(output_types)
        except (TypeError, ValueError) as error:
            error.args = (f"SqlDataset: {error}",)
            raise
        check_local(path, "SqlDataset", "data_source_name", "copy the file there")
        if not isinstance(query, str):
            raise TypeError(f"SqlDataset: query must be text, not {type(query).__name__}")
        spec = tuple([TensorSpec((), kind) for kind in types])
        names = [str(kind) if isinstance(kind, np.dtype) else kind.__name__ for kind in types]
        detail = ", ".join([path, shown(query), *names])
        opens = partial(SqliteQuery, path, query, types)
        stage = partial(_rows, opens=opens, query=f"{path}, {shown(query)}")
        super().__init__(Plan("sql", stage, detail=detail, waits=True, spec=lambda: spec, title=name))


async def _rows(run: Run, *, start: Any, opens: Callable[[], SqliteQuery], query: str) -> AsyncIterator[Block[Any]]:
    """Give the rows; a position is `[row, count, None]`, see `Promise`."""
    promise = Promise(start, (0,))
    (number,) = promise.where
    begun = number
    counters = run.statistics.counters("sql")
    failed: list[Block[Any]] = []
    database = opens()
    try:
        await _in_thread(run, database, database.open, number)
        while (portion := await _in_thread(run, database, database.read)) is not None:
            promise.give(portion.length)
            counters.elements += portion.length
            counters.blocks += 1
            yield _block(portion, Origin(partial(position, (number,), portion.length), partial(_place, query, number)))
            number += portion.length
        promise.check(_place(query, begun, 0))
    except Exception as error:
        origin = Origin(partial(failed_position, (number,)), partial(_place, query, number))
        locate(error, "sql", number - begun, origin, 0)
        if promise.binds or isinstance(error, StateError):
            raise
        failed.append(Block.failed(error, origin))
    finally:
        await wait_out(asyncio.get_running_loop().run_in_executor(run.pools.files, database.close))
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback


async def _in_thread(run: Run, database: SqliteQuery, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a thread; if the task is cancelled, the query is interrupted."""

    async def stop(call: asyncio.Future[Any]) -> None:
        database.interrupt()

    loop = asyncio.get_running_loop()
    return await finished(loop.run_in_executor(run.pools.files, function, *arguments), stop, INTERRUPT_SECONDS)


def _block(portion: Portion, origin: Origin) -> Block[Any]:
    if portion.elements is None:
        return Block(origin, columns=portion.columns, length=portion.length)
    return Block(origin, computed=portion.elements)


def _place(query: str, number: int, offset: int) -> str:
    return f"{query} row {number + offset}"
