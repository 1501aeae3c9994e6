"""`Dataset.from_sql` on a PostgreSQL server of its own: types, cursors, keys, lost connections, cancelling."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from aiodata import Dataset
from aiodata.errors import StateError, StructureError
from tests.programs import arr, assert_gives, assert_same, collect, objects, outcomes, outcomes_async, to_list

pytest.importorskip("sqlalchemy", reason="SQL needs SQLAlchemy")
asyncpg: Any = pytest.importorskip("asyncpg", reason="PostgreSQL needs asyncpg")
from sqlalchemy.exc import DBAPIError  # noqa: E402 - behind importorskip
from sqlalchemy.ext.asyncio import create_async_engine  # noqa: E402

PASSWORD = "s3cret"
START_SECONDS = 45


def programs() -> Path | None:
    """Find the folder of PostgreSQL's programs, of the newest version that is installed."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    candidates = [*([Path(found).parent] if found else []), *reversed(folders)]
    whole = [folder for folder in candidates if (folder / "initdb").exists() and (folder / "postgres").exists()]
    return whole[0] if whole else None


def stranger() -> dict[str, Any]:
    """Give what makes a child process run as another user, as PostgreSQL refuses to run as root."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return {}
    import pwd  # there is none on Windows

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def answers(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url, timeout=5)
    except (TimeoutError, OSError, asyncpg.PostgresError):
        return False
    await connection.close()
    return True


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server on loopback, with its data in a temporary folder; give its URL."""
    folder = programs()
    if folder is None:
        pytest.skip("there is no PostgreSQL server: neither initdb on PATH nor /usr/lib/postgresql (apt: postgresql)")
    home = Path(tempfile.mkdtemp(prefix="aiodata-pg-"))
    child: dict[str, Any] = {**stranger(), "cwd": home, "stdin": subprocess.DEVNULL}
    try:
        (home / "password").write_text(PASSWORD)
        if "user" in child:
            for path in (home, home / "password"):
                shutil.chown(path, child["user"], child["group"])
        options = [
            "-U",
            "me",
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(home / "password"),
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]
        command = [str(folder / "initdb"), "-D", str(home / "data"), *options]
        made = subprocess.run(command, capture_output=True, text=True, **child)
        assert made.returncode == 0, made.stderr
        port = free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": 40,
        }
        flags = [f"--{name}={value}" for name, value in {**settings, "shared_buffers": "16MB"}.items()]
        with (home / "log").open("wb") as log:
            command = [str(folder / "postgres"), "-D", str(home / "data"), "-p", str(port), *flags]
            process = subprocess.Popen(command, stdout=log, stderr=log, **child)
        try:
            url = f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/postgres"
            deadline = time.monotonic() + START_SECONDS
            while not asyncio.run(answers(url)):
                assert process.poll() is None, (home / "log").read_text()
                assert time.monotonic() < deadline, (home / "log").read_text()
                time.sleep(0.05)
            yield url
        finally:
            process.send_signal(signal.SIGINT)  # ends all connections
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
async def admin(server: str) -> AsyncIterator[Any]:
    """Give a connection beside those that are tested, in a database whose tables are gone afterwards."""
    connection = await asyncpg.connect(server)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    yield connection
    await connection.close()


async def fill(admin: Any, rows: int) -> None:
    await admin.execute("CREATE TABLE t (id int PRIMARY KEY, half float8 NOT NULL, name text NOT NULL)")
    await admin.execute(f"INSERT INTO t SELECT n, n / 2.0, 'name ' || n FROM generate_series(0, {rows - 1}) n")


def row(n: int) -> dict[str, Any]:
    return {"id": np.int64(n), "half": np.float64(n / 2), "name": f"name {n}"}


async def others(admin: Any) -> int:
    """Count the connections beside `admin`."""
    found = await admin.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    return int(found)


async def all_gone(admin: Any) -> None:
    deadline = time.monotonic() + 20
    while await others(admin):
        assert time.monotonic() < deadline, await admin.fetch("SELECT state, query FROM pg_stat_activity")
        await asyncio.sleep(0.01)


async def states_of(ds: Dataset[Any], count: int) -> list[Any]:
    async with ds.iterate() as iterator:
        states = [iterator.state_dict()]
        for _ in range(count):
            await anext(iterator)
            states.append(json.loads(json.dumps(iterator.state_dict())))
    return states


# Rows


async def test_rows_in_order_on_both_faces(server: str, admin: Any) -> None:
    await fill(admin, 2500)
    ds = Dataset.from_sql(server, "SELECT * FROM t ORDER BY id")
    expected = [row(n) for n in range(2500)]
    assert_same(await collect(ds), expected)
    assert_same(await asyncio.to_thread(to_list, ds), expected)
    batches = await collect(ds.batch(1000))
    assert_same(batches[2]["half"], arr(range(2000, 2500)) / 2)


COLUMNS: list[tuple[str, Any]] = [
    ("7::int2", np.int64(7)),
    ("7::int8", np.int64(7)),
    ("1.5::float4", np.float64(1.5)),
    ("'NaN'::float8", np.float64("nan")),
    ("true", np.bool_(True)),
    ("'text'::text", "text"),
    ("'é'::varchar(9)", "é"),
    (r"'\x00ff'::bytea", b"\x00\xff"),
    ("1.50::numeric(9, 2)", Decimal("1.50")),
    ("'2013-01-31'::date", np.datetime64("2013-01-31", "D")),
    ("'2013-01-31 23:59:58.123456'::timestamp", np.datetime64("2013-01-31T23:59:58.123456", "us")),
    ("'2013-01-31 23:59:58+02'::timestamptz", np.datetime64("2013-01-31T21:59:58", "us")),
    ("'01:02:03.000004'::time", np.timedelta64(3_723_000_004, "us")),
    ("'1 day 5 microseconds'::interval", np.timedelta64(86_400_000_005, "us")),
    ("'{1,2}'::int[]", arr([1, 2])),
    ("'{{1.5,2.5},{3.5,4.5}}'::float8[]", arr([[1.5, 2.5], [3.5, 4.5]], float)),
    ("'{a,NULL}'::text[]", objects("a", None)),
    ("""'{"a": 1}'::jsonb""", {"a": np.int64(1)}),
    ("NULL::int", None),
]


async def test_types(server: str, admin: Any) -> None:
    query = "SELECT " + ", ".join(f"{value} AS c{number}" for number, (value, _) in enumerate(COLUMNS))
    (found,) = await collect(Dataset.from_sql(server, query.replace('"a": 1', r'"a"\: 1')))
    assert_same(list(found.values()), [expected for _, expected in COLUMNS])
    (found,) = await collect(Dataset.from_sql(server, f"SELECT '{UUID(int=7)}'::uuid AS u, 5 % 3 AS m, '{{}} %s' AS t"))
    assert found == {"u": UUID(int=7), "m": 2, "t": "{} %s"}


async def test_parameters_are_bound(server: str, admin: Any) -> None:
    await fill(admin, 6)
    nasty = "'; DROP TABLE t; -- %s {} :x $1"
    query = "SELECT * FROM t WHERE id >= :least AND name <> :name AND id IN :some AND id = ANY(:all)"
    values = {"least": np.int64(2), "name": nasty, "some": (1, 2, 4), "all": [2, 3, 4]}
    for key in (None, "id"):
        assert_same(await collect(Dataset.from_sql(server, query, values, key=key)), [row(2), row(4)])
    assert await admin.fetchval("SELECT count(*) FROM t") == 6


async def test_rows_stay_with_the_server_until_they_are_fetched(server: str, admin: Any) -> None:
    ds = Dataset.from_sql(server, "SELECT generate_series(1, 2000000000) AS n", batch_rows=100)
    async with ds.iterate() as iterator:
        for expected in range(1, 250):
            assert_same(await anext(iterator), {"n": np.int64(expected)})
    await all_gone(admin)


# Keys and partitions


@pytest.mark.parametrize(
    "key",
    [
        "n",
        "('2013-01-01'::timestamptz + n * interval '1 hour')",
        "n::numeric / 8",
        "md5(n::text)::uuid",
        "md5(n::text)",
        "('2013-01-01'::date + n)",
        "(n / 8.0)::float8",
    ],
)
async def test_keys_of_many_types_go_on_exactly(key: str, server: str, admin: Any) -> None:
    query = rf"SELECT {key.replace('::', '::')} AS k, n FROM generate_series(1, 12) n"
    ds = Dataset.from_sql(server, query, key="k", batch_rows=4)
    found = [element["n"] for element in await collect(ds)]
    assert sorted(found) == list(range(1, 13))
    states = await states_of(ds, 12)
    for taken in (0, 1, 3, 4, 5, 11, 12):
        async with ds.iterate(states[taken]) as iterator:
            assert [element["n"] async for element in iterator] == found[taken:]


async def test_restoring_reads_nothing_before_the_key(server: str, admin: Any) -> None:
    await fill(admin, 20)
    ds = Dataset.from_sql(server, "SELECT * FROM t", key="id", batch_rows=5)
    states = await states_of(ds, 12)
    await admin.execute("DELETE FROM t WHERE id < 9; INSERT INTO t VALUES (-5, 0, 'new')")
    async with ds.iterate(states[12]) as iterator:
        assert_same([element async for element in iterator], [row(n) for n in range(12, 20)])


async def test_keys_that_repeat_or_are_null(server: str, admin: Any) -> None:
    await fill(admin, 6)
    twice = await outcomes_async(Dataset.from_sql(server, "SELECT id / 2 AS k FROM t", key="k", batch_rows=3))
    assert [type(item) for item in twice] == [dict, StructureError]
    query = "SELECT nullif(id, 2) AS k FROM t"
    *rows, error = await outcomes_async(Dataset.from_sql(server, query, key="k"))  # NULLs are last here
    assert [element["k"] for element in rows] == [0, 1, 3, 4, 5]
    assert "row 5: the key 'k' is NULL" in str(error)
    (error,) = await outcomes_async(Dataset.from_sql(server, query, key="k", partitions=2))
    assert "is NULL in a row" in str(error)


@pytest.mark.parametrize("kind", ["int", "int8", "numeric", "float8"])
async def test_partitions_have_every_row_once(kind: str, server: str, admin: Any) -> None:
    await fill(admin, 300)
    query = f'SELECT (id - 150)::{kind} AS "The Key", id FROM t WHERE id <> :gone'
    ds = Dataset.from_sql(server, query, {"gone": 7}, key="The Key", partitions=8, num_parallel_reads=4, batch_rows=10)
    found = [int(element["id"]) for element in await collect(ds)]
    assert sorted(found) == [n for n in range(300) if n != 7]
    (state,) = (await states_of(ds, 100))[100:]
    async with ds.iterate(state) as iterator:
        assert [int(element["id"]) async for element in iterator] == found[100:]


async def test_partitions_are_read_at_once_and_left_at_once(server: str, admin: Any) -> None:
    await fill(admin, 9000)
    ds = Dataset.from_sql(server, "SELECT * FROM t", key="id", partitions=3)
    most = 0
    async with ds.iterate() as iterator:
        async for _element in iterator:
            most = max(most, await others(admin))
            if most == 3:
                break
    assert most == 3
    await all_gone(admin)


# Mistakes and lost connections


async def test_a_wrong_password_is_an_error_that_does_not_tell_it(server: str, admin: Any) -> None:
    ds = Dataset.from_sql(server.replace(PASSWORD, "wr0ng"), "SELECT 1 AS x")
    (error,) = await outcomes_async(ds)
    assert "password authentication failed" in str(error)
    assert not any("wr0ng" in text for text in (str(error), repr(error), repr(ds), *error.__notes__))


async def test_mistakes_in_a_query(server: str, admin: Any) -> None:
    await fill(admin, 20)
    (error,) = await outcomes_async(Dataset.from_sql(server, "SELECT no FROM t"))
    assert isinstance(error, DBAPIError)
    assert 'column "no" does not exist' in str(error)
    query = "SELECT 10 / (generate_series(0, 19) - 15) AS x"
    *rows, error = await outcomes_async(Dataset.from_sql(server, query, batch_rows=4))
    assert "division by zero" in str(error)
    assert len(rows) < 16
    assert error.__notes__[-1] == f"in from_sql, element {len(rows)}, from {query} row {len(rows)}"
    await all_gone(admin)


async def read_on(iterator: Any) -> tuple[list[Any], Exception]:
    """Read to the first error."""
    found: list[Any] = []
    while True:
        try:
            found.append(await anext(iterator))
        except StopAsyncIteration:
            raise
        except Exception as error:
            return found, error


async def test_a_connection_that_is_lost_is_an_error_and_no_end(server: str, admin: Any) -> None:
    await fill(admin, 3000)
    for key in (None, "id"):
        ds = Dataset.from_sql(server, "SELECT * FROM t ORDER BY id", key=key, batch_rows=100)
        async with ds.iterate() as iterator:
            found = [await anext(iterator) for _ in range(150)]
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            more, error = await read_on(iterator)
            found += more
            assert not isinstance(error, (StateError, StructureError))  # asyncpg has many words for it
            assert len(found) < 3000
            assert error.__notes__[-1].endswith(f"row {len(found)}")
            assert [element async for element in iterator] == []
        async with ds.iterate(json.loads(json.dumps(iterator.state_dict()))) as iterator:
            rest = [element async for element in iterator]
        assert_same(found + rest, [row(n) for n in range(3000)])
    await all_gone(admin)


def test_a_server_that_is_not_there(server: str) -> None:
    (error,) = outcomes(Dataset.from_sql("postgresql://me@127.0.0.1:1/db", "SELECT 1 AS x"))
    assert isinstance(error, OSError)


# Closing


@pytest.mark.parametrize("around", ["nothing", "map", "prefetch"])
async def test_leaving_early_closes_the_connection(around: str, server: str, admin: Any) -> None:
    await fill(admin, 3000)
    ds = Dataset.from_sql(server, "SELECT * FROM t", key="id", batch_rows=10)
    ds = {"nothing": ds, "map": ds.map(lambda element: element), "prefetch": ds.prefetch(2)}[around]
    async for _element in ds:
        break
    await all_gone(admin)


async def test_cancelling_stops_the_query(server: str, admin: Any) -> None:
    for query in ("SELECT pg_sleep(600) AS x", "SELECT count(*) AS x FROM generate_series(1, 1000000000000)"):
        iterator = Dataset.from_sql(server, query).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        while not await admin.fetchval("SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1", f"%{query[:20]}%"):
            await asyncio.sleep(0.01)
        pull.cancel()
        await asyncio.wait({pull})
        assert pull.cancelled()
        await iterator.aclose()
        await all_gone(admin)


async def test_cancelling_at_any_moment_leaves_nothing(server: str, admin: Any) -> None:
    await fill(admin, 50)
    for turns in range(0, 45, 3):
        iterator = Dataset.from_sql(server, "SELECT * FROM t", key="id", batch_rows=5).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        for _ in range(turns):
            await asyncio.sleep(0.001)
        pull.cancel()
        await asyncio.wait({pull})
        await iterator.aclose()
    await all_gone(admin)


async def test_an_engine_of_the_users_keeps_its_connection(server: str, admin: Any) -> None:
    await fill(admin, 20)
    engine = create_async_engine(server.replace("postgresql:", "postgresql+asyncpg:"), pool_size=1, max_overflow=0)
    ds = Dataset.from_sql(engine, "SELECT * FROM t", key="id", batch_rows=3)
    for _ in range(3):
        assert_same(await collect(ds.prefetch(2)), [row(n) for n in range(20)])
        async for _element in ds:
            break
    assert await others(admin) == 1
    (error,) = await asyncio.to_thread(outcomes, ds)
    assert "an AsyncEngine is read by `async for`" in str(error)
    await engine.dispose()
    await all_gone(admin)


def test_both_ways_to_read(server: str) -> None:
    query = "SELECT n, n * interval '1 day' AS d, now() - now() AS z FROM generate_series(0, 4) n"
    zero = np.timedelta64(0, "us")
    day = np.timedelta64(dt.timedelta(days=1), "us")
    expected = [{"n": np.int64(n), "d": n * day, "z": zero} for n in range(5)]
    assert_gives(Dataset.from_sql(server, query, key="n", batch_rows=2), expected)
