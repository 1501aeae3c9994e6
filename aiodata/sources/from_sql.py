"""`Dataset.from_sql`: the rows of a query on any database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aiodata.checks import check_integer
from aiodata.engine.plan import Plan
from aiodata.extras import load
from aiodata.sources._queries import shown

if TYPE_CHECKING:
    from aiodata.dataset import Dataset

__all__ = ["from_sql"]

_OWN = re.compile(r"aiodata_(low|high)")


def from_sql(
    cls: type[Dataset[Any]],
    database: Any,
    query: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    partitions: int | None = None,
    num_parallel_reads: int | None = None,
    batch_rows: int = 1000,
    null_values: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Dataset[dict[str, Any]]:
    r"""Give the rows of a query on any database that SQLAlchemy's asyncio layer reaches: a dict of columns for each.

    The query is run anew by each iteration, on a connection of its own that is closed at its end. Rows stay with the
    server until they are fetched, `batch_rows` at a time, and are passed on as columns; memory is that of the rows
    fetched. Nothing is ever committed. What a value becomes depends on its type alone:

    - integers, floats, bools: numpy scalars of 64 bits and bool. Dates: `datetime64[D]`. Dates with a time:
      `datetime64[us]`, in UTC where they have a time zone. Times of day and durations: `timedelta64[us]`.
    - text: `str`; blobs: `bytes`; decimals: `decimal.Decimal`; arrays: numpy arrays; JSON that the driver has
      decoded: dicts and arrays. Others, such as UUIDs, stay as the driver gives them.
    - NULL: None, in every column. `batch` does not stack None with values; `null_values` avoids that.

    SQLite has no types for columns: dates are text there, and a column of type NUMERIC may have integers and floats,
    which a `CAST` in the query makes one type.

    Without `key` a state holds the number of the next row, and restoring runs the query again and leaves out the rows
    before it: it needs an `ORDER BY` that fixes the order. With `key` the rows are ordered by that column, and
    restoring asks only for those from the key on at which the portion began that was fetched last: fewer than
    `batch_rows` are read twice. Rows that are added or removed before that, or behind the saved place, do not matter.

    Args:
        database: A URL as SQLAlchemy writes it, for which `sqlite://` and `postgresql://` choose the drivers of the
            extras `sql` and `postgres`, and `mysql://` asyncmy. Or a function that makes an AsyncEngine, called for
            each connection. Or an AsyncEngine, which is not disposed of, and only for `async for` on its own loop.
            Passwords are in no `repr`, error or state.
        query: One SQL statement that gives rows, with parameters as `:name`; a colon that begins none is `\:`.
        parameters: Values for the parameters. They are sent beside the query, never pasted into it. A tuple is for
            `IN :name`. They are in `repr` and states.
        key: A column of the result by which it is ordered and resumed: unique as the database compares its values, and
            never NULL. The query becomes a subquery, so that an index on the column can be used.
        partitions: Divide the rows into so many parts of equally wide ranges of `key`, which must be a column of
            numbers, each part with a connection and a query of its own. Of two numbers there are two parts at most.
            The parts give a row each in turn, each in the key's order. Every row is in one part; but the connections
            see the data as it is when each of them begins.
        num_parallel_reads: Partitions to read at once, the next one following when one ends; None means all.
        batch_rows: Rows to fetch at a time.
        null_values: What stands for NULL, by column: `{"delay": -1}`.
        name: A name for the stage, shown in `repr`.

    Raises:
        ImportError: SQLAlchemy or the database's driver is not installed.
        TypeError, ValueError: An argument is not what it must be; or parameters are missing, or not in the query.
        Exception: While iterating: what SQLAlchemy or the driver raises if the database cannot be reached, the
            connection is lost, or the query is wrong or fails. It ends the iteration, `ignore_errors` or not; a state
            from before it goes on at the row that could not be read.
        StructureError: While iterating: columns have the same name, or there is none of a name that was given; a key
            is NULL or not unique; the rows end there. Or an integer does not fit 64 bits; the next row follows.

    >>> import aiodata, os, sqlite3, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.db")
    ...     connection = sqlite3.connect(path)
    ...     _ = connection.execute("CREATE TABLE flights AS SELECT 1 AS id, 'UA' AS carrier UNION SELECT 2, 'B6'")
    ...     connection.close()
    ...     query = "SELECT * FROM flights WHERE id < :below"
    ...     list(aiodata.Dataset.from_sql(f"sqlite:///{path}", query, {"below": 9}, key="id"))
    [{'id': np.int64(1), 'carrier': 'UA'}, {'id': np.int64(2), 'carrier': 'B6'}]

    Source: an addition; `tfio.experimental.IODataset.from_sql` reads PostgreSQL. `aiodata.SqlDataset` is tf.data's.
    """
    # What reads databases needs much of the standard library, which costs other programs nothing so.
    from aiodata.sources._databases import Database
    from aiodata.sources._sql_partitions import partition, read_bounds
    from aiodata.sources._sql_rows import Query

    source = Database(database, "from_sql")
    given = _check_parameters(query, parameters)
    values = _check_null_values(null_values)
    _check_parts(key, partitions, num_parallel_reads)
    rows = check_integer(batch_rows, "from_sql", "batch_rows", 1)
    text = query.rstrip().rstrip(";")
    reading = Query(source, text, given, shown(query), rows, values, key)
    options = {"key": key, "partitions": partitions, "null_values": values or None}
    facts = [shown(repr(given)) if given else "", *(f"{n}={v!r}" for n, v in options.items() if v is not None)]
    detail = ", ".join(filter(None, [source.shown, shown(query), *facts]))
    if partitions is None:
        plan = partition(None, None, datasets=cls, query=reading).plan
        return cls.of(replace(plan, detail=detail, title=name))
    stage = partial(read_bounds, query=reading, partitions=partitions)
    bounds = cls.of(Plan("sql_bounds", stage, detail=detail, waits=True, has_coroutines=source.is_engine))
    at_once = min(num_parallel_reads or partitions, partitions)
    parts = bounds.interleave(
        partial(partition, datasets=cls, query=reading), cycle_length=at_once, num_parallel_calls=at_once
    )
    return cls.of(replace(parts.plan, title=name))


def _check_parts(key: Any, partitions: int | None, num_parallel_reads: int | None) -> None:
    if key is not None and (not isinstance(key, str) or not key):
        raise TypeError(f"from_sql: key must be the name of a column, not {key!r:.80}")
    for argument, value in (("partitions", partitions), ("num_parallel_reads", num_parallel_reads)):
        if value is not None:
            check_integer(value, "from_sql", argument, 1)
    if partitions is not None and key is None:
        raise ValueError("from_sql: partitions needs a key, whose values are divided")
    if num_parallel_reads is not None and partitions is None:
        raise ValueError("from_sql: num_parallel_reads needs partitions, of which so many are read at once")


def _check_parameters(query: Any, parameters: Any) -> dict[str, Any]:
    """Give the parameters as plain Python values, after a look at which ones the query has."""
    if not isinstance(query, str):
        raise TypeError(f"from_sql: query must be text, not {type(query).__name__}")
    found = {} if parameters is None else parameters
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise TypeError(f"from_sql: parameters must be a dict of a value for each name, not {found!r:.80}")
    wanted = set(load("sqlalchemy", "sql", "from_sql").text(query).compile().params)
    if missing := sorted(wanted - found.keys()):
        raise ValueError(f"from_sql: the query has :{missing[0]}, for which parameters has no value")
    if unused := sorted(found.keys() - wanted):
        raise ValueError(f"from_sql: parameters has {unused[0]!r}, but the query has no :{unused[0]}")
    if own := sorted(filter(_OWN.fullmatch, wanted)):
        raise ValueError(f"from_sql: the parameter :{own[0]} has a name that from_sql needs itself")
    return {name: _plain(value) for name, value in sorted(found.items())}


def _check_null_values(null_values: Any) -> dict[str, Any]:
    values = {} if null_values is None else null_values
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise TypeError(f"from_sql: null_values must be a dict of a value for each name, not {values!r:.80}")
    if absent := [name for name, value in values.items() if value is None]:
        raise ValueError(f"from_sql: null_values gives None, which is no value, for {absent[0]!r}")
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Give numpy's scalars as Python's, which drivers know; also in the tuple that is for an IN."""
    if type(value) is tuple:
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value
