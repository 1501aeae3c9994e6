"""How the rows of a query are read: from its beginning, or from a key on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from aiodata.engine.block import Block
from aiodata.engine.position import Origin, locate
from aiodata.engine.workers import wait_out
from aiodata.errors import DataError, StateError, StructureError
from aiodata.formats.sql_values import key_from_json, key_to_json, rows_of
from aiodata.sources._databases import Connection
from aiodata.sources._promises import Promise, failed_position, position

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from aiodata.engine.run import Run
    from aiodata.formats.sql_values import Rows
    from aiodata.sources._databases import Database

__all__ = ["Query", "close", "read_rows"]

_ROWS = "aiodata_rows"


@dataclass(frozen=True)
class Query:
    """What is read, and how.

    Args:
        database: Where from.
        text: The query, without a semicolon at its end.
        parameters: What its `:name`s stand for.
        label: The query in short, for errors.
        batch_rows: Rows to fetch at a time.
        null_values: What stands for NULL, by column.
        key: The column by which reading goes on.
        low: The least value of the key, None for any.
        high: What every value of the key is below, None for any.
    """

    database: Database
    text: str
    parameters: Mapping[str, Any]
    label: str
    batch_rows: int
    null_values: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    low: Any = None
    high: Any = None

    def statement(self, quote: Callable[[str], str], first: Any) -> tuple[Any, dict[str, Any]]:
        """Give the statement for the rows from a key on, None for all, and its parameters."""
        if self.key is None:
            return self._bound(self.text, {})
        key = _quoted(self.key, quote)
        limits = {"aiodata_low": self.low if first is None else first, "aiodata_high": self.high}
        conditions = {"aiodata_low": f"{key} >= :aiodata_low", "aiodata_high": f"{key} < :aiodata_high"}
        given = {name: limits[name] for name in conditions if limits[name] is not None}
        where = " AND ".join(conditions[name] for name in given)
        text = f"SELECT * FROM (\n{self.text}\n) {_ROWS}{' WHERE ' * bool(where)}{where} ORDER BY {key}"
        return self._bound(text, given)

    def bounds(self, quote: Callable[[str], str]) -> tuple[Any, dict[str, Any]]:
        """Give the statement for the least and the largest key."""
        key = _quoted(self.key or "", quote)
        return self._bound(
            f"SELECT MIN({key}) AS aiodata_low, MAX({key}) AS aiodata_high FROM (\n{self.text}\n) {_ROWS}", {}
        )

    def without_key(self, quote: Callable[[str], str]) -> tuple[Any, dict[str, Any]]:
        """Give the statement for the rows whose key is NULL."""
        key = _quoted(self.key or "", quote)
        return self._bound(f"SELECT {key} FROM (\n{self.text}\n) {_ROWS} WHERE {key} IS NULL", {})

    def _bound(self, text: str, limits: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        from sqlalchemy import bindparam
        from sqlalchemy import text as statement_of

        names = [name for name, value in self.parameters.items() if type(value) is tuple]
        lists: list[Any] = [bindparam(name, expanding=True) for name in names]
        return statement_of(text).bindparams(*lists), {**self.parameters, **limits}


def _quoted(key: str, quote: Callable[[str], str]) -> str:
    return str(quote(key)).replace(":", r"\:")  # a colon begins a parameter elsewhere


async def read_rows(run: Run, *, start: Any, query: Query) -> AsyncIterator[Block[Any]]:
    """Give the rows of a query.

    What is wrong with the data takes the place of a row, and is the last. But the run ends with what the database
    raises: it may come from a connection that is lost, and then a state from before it goes on at that very row. So it
    does if there is no such row any more.

    A position is `[row, key, count, None]`: the number of the next row, its key, if there is one, and how many rows
    followed, or what was wrong with it; see `Promise`.
    """
    promise = Promise(start, (0, None))
    number, key = promise.where
    begun = number
    counters = run.statistics.counters("from_sql")
    failed: list[Block[Any]] = []
    reader = _Reader(query, Connection(query.database, run), promise.fault)
    try:
        await reader.begin(number, key)
        while (found := await reader.read(number)) is not None:
            promise.give(found.length)
            counters.elements += found.length
            counters.blocks += 1
            where = partial(position, (number, reader.first), found.length)
            yield _block(found, Origin(where, partial(_place, query.label, number)))
            number += found.length
        promise.check(_place(query.label, begun, 0))
    except Exception as error:
        origin = Origin(partial(failed_position, (number, None), str(error)), partial(_place, query.label, number))
        locate(error, "from_sql", number - begun, origin, 0)
        if promise.binds or not isinstance(error, DataError):
            raise
        failed.append(Block.failed(error, origin))
    finally:
        await close(reader.connection)
    if failed:
        yield failed.pop()  # not held: the error holds this frame by its traceback


class _Reader:
    """Reads a query's rows in portions, and watches its key.

    Args:
        query: The query.
        connection: Opened here, closed elsewhere.
        fault: What was found to be wrong with the next row before.
    """

    def __init__(self, query: Query, connection: Connection, fault: str = "") -> None:
        self.query, self.connection = query, connection
        self.first: Any = None
        """The key of the first row of the last portion, as JSON."""
        self._fault = fault
        self._names: list[str] = []
        self._key: int | None = None
        self._previous: Any = None
        self._expected: Any = None

    async def begin(self, row: int, first: Any) -> None:
        """Run the query, and go to a row: by its key, as JSON, or by leaving out the rows before it."""
        self._check_fault()
        query, connection = self.query, self.connection
        quote = await connection.open()
        self._expected = key_from_json(first)
        names = await connection.execute(*query.statement(quote, self._expected), query.batch_rows)
        self._names = names
        known = ", ".join(map(repr, names))
        if unknown := [name for name in query.null_values if name not in names]:
            raise StructureError(f"{query.label}: null_values names {unknown[0]!r}, which is none of {known}")
        if query.key is not None:
            if query.key not in names:
                raise StructureError(f"{query.label}: the key {query.key!r} is none of the columns {known}")
            self._key = names.index(query.key)
            return
        missing = row
        while missing > 0:
            skipped = len(await connection.fetch(min(missing, query.batch_rows)))
            if not skipped:
                raise StateError(_gone(query.label, row))
            missing -= skipped

    async def read(self, number: int) -> Rows | None:
        """Give the next rows, the first of which has a number; None at the end."""
        self._check_fault()
        rows = await self.connection.fetch(self.query.batch_rows)
        if rows and self._key is not None:
            rows = self._checked(rows, number, self._key)
        if not rows:
            return None
        return rows_of(self._names, rows, self.query.null_values, partial(_place, self.query.label, number))

    def _checked(self, rows: Sequence[Any], number: int, column: int) -> Sequence[Any]:
        """Give the rows before the first one whose key is NULL, or that of the row before it."""
        keys = [row[column] for row in rows]
        if self._expected is not None and keys[0] != self._expected:
            raise StateError(_gone(self.query.label, number))
        self._expected = None
        for index, (before, key) in enumerate(pairwise([self._previous, *keys])):
            if key is None or key == before:
                what = "NULL" if key is None else f"{key!r:.80}, as that of the row before"
                self._fault = (
                    f"{_place(self.query.label, number, index)}: the key {self.query.key!r} is {what}; a key must be "
                    "unique and never NULL"
                )
                rows, keys = rows[:index], keys[:index]
                break
        if not keys:
            self._check_fault()
        self.first, self._previous = key_to_json(keys[0]), keys[-1]
        return rows

    def _check_fault(self) -> None:
        if self._fault:
            raise StructureError(self._fault)


async def close(connection: Connection) -> None:
    """Close a connection, even while the task is being cancelled."""
    await wait_out(asyncio.get_running_loop().create_task(connection.close()))


def _block(rows: Rows, origin: Origin) -> Block[Any]:
    if rows.elements is None:
        return Block(origin, columns=rows.columns, length=rows.length)
    return Block(origin, computed=rows.elements)


def _place(label: str, number: int, offset: int) -> str:
    return f"{label} row {number + offset}"


def _gone(label: str, number: int) -> str:
    return f"{label}: row {number}, from which the saved state reads on, is not there any more"
