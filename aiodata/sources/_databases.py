"""Databases that SQLAlchemy's asyncio layer reaches: how they are named, connected to, read and left."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from aiodata.errors import StructureError
from aiodata.extras import load
from aiodata.functions import name_of
from aiodata.sources._queries import finished

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from aiodata.engine.run import Run

__all__ = ["Connection", "Database"]

_ASYNC_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "mysql": "mysql+asyncmy",
    "mariadb": "mariadb+asyncmy",
}
_EXTRAS = {"sqlite+aiosqlite": ("aiosqlite", "sql"), "postgresql+asyncpg": ("asyncpg", "postgres")}
_INTERRUPT_SECONDS = 0.05
_CANCEL_SECONDS = 5.0
_CONNECT_SECONDS = 1.0
_CLOSE_SECONDS = 10.0
"""How long a connection may take to say goodbye; a server that is gone never does."""


class Database:
    """Where rows come from: a URL, an engine that is the user's, or a function that makes one.

    Args:
        given: Which of them.
        method: The public method, for errors.

    Raises:
        ImportError: SQLAlchemy or the database's driver is not installed.
        TypeError, ValueError: It is none of them, or a URL that SQLAlchemy cannot use.
    """

    def __init__(self, given: Any, method: str) -> None:
        asynchronous = load("sqlalchemy.ext.asyncio", "sql", method)
        sqlalchemy = load("sqlalchemy", "sql", method)
        self.given = given
        self.is_engine = isinstance(given, asynchronous.AsyncEngine)
        self.is_url = isinstance(given, (str, sqlalchemy.URL))
        if self.is_engine:
            self.shown = _shown(given.url)
        elif self.is_url:
            url = _parsed(given, method)
            self.shown = _shown(url)
            self.given = _usable(url, self.shown, method)
        elif callable(given) and not isinstance(given, type):
            self.shown = name_of(given)
        else:
            hint = "; make it by create_async_engine" if isinstance(given, sqlalchemy.Engine) else ""
            raise TypeError(
                f"{method}: database must be a URL, an AsyncEngine, or a function that makes one, not "
                f"{type(given).__name__}{hint}"
            )

    def engine(self) -> Any:
        """Give an engine. Unless it is the user's own, it is new, and to be disposed of.

        Raises:
            TypeError: The function made something else.
        """
        from sqlalchemy.ext.asyncio import AsyncEngine

        if self.is_engine:
            return self.given
        made = self.given() if callable(self.given) else _engine_of(self.given)
        if not isinstance(made, AsyncEngine):
            raise TypeError(f"from_sql: {self.shown} must make an AsyncEngine, not {type(made).__name__}")
        return made


def _parsed(given: Any, method: str) -> Any:
    from sqlalchemy import make_url
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return make_url(given)
    except (SQLAlchemyError, ValueError):  # their texts may quote a part of the password
        raise ValueError(
            f"{method}: database is no URL such as 'postgresql://user@host/name' or 'sqlite:///path'; special "
            "characters in a password are written as %40 and so on"
        ) from None


def _usable(url: Any, named: str, method: str) -> Any:
    """Give a URL with an asynchronous driver, after a look at whether an engine can be made of it."""
    from sqlalchemy.exc import SQLAlchemyError

    url = url.set(drivername=_ASYNC_DRIVERS.get(url.drivername, url.drivername))
    if url.drivername in _EXTRAS:
        load(*_EXTRAS[url.drivername], method)
    if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":", "file:")):
        # Else SQLite would make an empty database of a name that is misspelt.
        url = url.set(database=Path(url.database).absolute().as_uri())
        url = url.update_query_dict({"mode": "rw", "uri": "true"})
    try:
        _engine_of(url)
    except ImportError as error:
        raise ImportError(f"{method} needs a driver for {url.drivername}: {error}", name=error.name) from error
    except (SQLAlchemyError, TypeError) as error:
        raise ValueError(f"{method}: database {named} cannot be used: {error}") from None
    return url


def _engine_of(url: Any) -> Any:
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    return create_async_engine(url, poolclass=NullPool, hide_parameters=True)


def _shown(url: Any) -> str:
    """Name a database without who reads it and how, which may change, and is a secret in part."""
    port = "" if url.port is None else f":{url.port}"
    return f"{url.get_backend_name()}://{url.host or ''}{port}/{url.database or ''}"


def _try_sqlite(engine: Any) -> None:
    """Open and close a SQLite database: when it cannot be opened, aiosqlite leaves a thread that outlives the loop.

    Raises:
        OSError: There is no such file.
        sqlite3.Error: It cannot be opened.
    """
    import sqlite3

    arguments, options = engine.dialect.create_connect_args(engine.url)
    try:
        sqlite3.connect(*arguments, **options).close()
    except sqlite3.OperationalError:
        path = urlsplit(arguments[0]).path
        os.stat(unquote(path, errors="surrogateescape"))  # says so if there is no such file
        raise


class Connection:
    """One connection to a database, used by one call at a time.

    Calls are tasks of their own. When the reader is cancelled, a statement on SQLite is interrupted: to cancel the wait
    for it would leave it running in its thread. Elsewhere the call is cancelled.

    Args:
        database: The database.
        run: The run that reads it.
    """

    def __init__(self, database: Database, run: Run) -> None:
        self._database = database
        self._engine: Any = None
        self._connection: Any = None
        self._driver: Any = None
        self._result: Any = None
        self._interrupts = False
        self._run = run

    async def open(self) -> Any:
        """Connect, and give what quotes names for this database.

        Raises:
            RuntimeError: The engine belongs to another loop.
        """
        # An engine's connections belong to the loop that made them; a plain `for` reads on another one.
        if self._database.is_engine and not self._run.detaches:
            raise RuntimeError("from_sql: an AsyncEngine is read by `async for`; for a plain `for` give the URL")
        self._run.guard()
        self._engine = self._database.engine()
        self._interrupts = self._engine.dialect.name == "sqlite"
        await self._finished(self._connect())
        return self._engine.dialect.identifier_preparer.quote

    async def execute(self, statement: Any, parameters: Mapping[str, Any], rows: int) -> list[str]:
        """Begin a query, whose rows stay with the database until they are fetched; give the names of its columns.

        Raises:
            StructureError: They cannot be the keys of a dict.
        """
        await self._finished(self._execute(statement, parameters, rows))
        names = list(self._result.keys())
        if len(set(names)) < len(names) or not names:
            raise StructureError(f"the columns cannot be the keys of a dict: {', '.join(map(repr, names))}")
        return names

    async def fetch(self, rows: int) -> Sequence[Any]:
        """Give the next rows; none at the end."""
        found: Sequence[Any] = await self._finished(self._result.fetchmany(rows))
        return found

    async def close(self) -> None:
        """Leave the database, also if it does not answer."""
        with suppress(Exception):  # what has been read is whole, or the reader has the error
            async with asyncio.timeout(_CLOSE_SECONDS):
                if self._result is not None:
                    await self._result.close()
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                if self._connection is not None:
                    await self._connection.close()
        if self._engine is not None and not self._database.is_engine:
            await self._engine.dispose()

    async def _connect(self) -> None:
        if self._interrupts and self._database.is_url:
            await self._run.in_thread(_try_sqlite, self._engine)
        self._connection = await self._engine.connect()
        self._driver = (await self._connection.get_raw_connection()).driver_connection

    async def _execute(self, statement: Any, parameters: Mapping[str, Any], rows: int) -> None:
        if self._result is not None:
            await self._result.close()
        options = {"yield_per": rows}  # a cursor on the server, that is; else every row would be loaded
        self._result = await self._connection.stream(statement, parameters, execution_options=options)

    async def _finished(self, call: Coroutine[Any, Any, Any]) -> Any:
        every = _INTERRUPT_SECONDS if self._interrupts else _CANCEL_SECONDS
        return await finished(asyncio.get_running_loop().create_task(call), self._stop, every)

    async def _stop(self, call: asyncio.Future[Any]) -> None:
        if self._interrupts:
            if self._driver is not None:
                with suppress(ValueError):  # it has been closed
                    await self._driver.interrupt()
            return
        if self._driver is None:  # asyncpg leaves a mess of a connection that is cancelled while it is made
            await asyncio.wait({call}, timeout=_CONNECT_SECONDS)
        call.cancel()
