"""`Dataset.from_sql` on SQLite: rows, values, NULL, parameters, keys, partitions, resume, closing, secrets."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import StateError, StructureError
from aiodata.formats.sql_values import key_from_json, key_to_json, rows_of
from tests.programs import (
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    first,
    objects,
    outcomes,
    to_list,
)

sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQL needs SQLAlchemy")
pytest.importorskip("aiosqlite", reason="SQLite needs aiosqlite")
from sqlalchemy.exc import OperationalError, SQLAlchemyError  # noqa: E402 - behind importorskip
from sqlalchemy.ext.asyncio import create_async_engine  # noqa: E402

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
SLOW = f"SELECT count(*) AS x FROM ({ENDLESS})"
QUERY = "SELECT * FROM t ORDER BY id"


def database(path: Path, *statements: str, rows: int = 0) -> Path:
    """Make a database, with a table `t` of so many rows."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, half REAL, name TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(n, n / 2, f"name {n}") for n in range(rows)])
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def row(n: int) -> dict[str, Any]:
    return {"id": np.int64(n), "half": np.float64(n / 2), "name": f"name {n}"}


def sql(path: Path, query: str = QUERY, *arguments: Any, **options: Any) -> Dataset[Any]:
    return Dataset.from_sql(f"sqlite:///{path}", query, *arguments, **options)


def ids(found: list[Any]) -> list[Any]:
    return [type(item) if isinstance(item, Exception) else int(item["id"]) for item in found]


def states_of(ds: Dataset[Any], count: int) -> list[Any]:
    with ds.iterate() as iterator:
        states = [iterator.state_dict()]
        for _ in range(count):
            next(iterator)
            states.append(json.loads(json.dumps(iterator.state_dict())))
    return states


# Rows


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_rows_in_order(count: int, key: str | None, tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=count)
    assert_gives(sql(path, batch_rows=3, key=key), [row(n) for n in range(count)])


def test_rows_travel_as_columns(tmp_path: Path) -> None:
    ds = sql(database(tmp_path / "x.db", rows=2500))
    batches = to_list(ds.batch(1000))
    assert [len(batch["id"]) for batch in batches] == [1000, 1000, 500]
    assert_same(batches[2]["half"], arr(range(2000, 2500)) / 2)
    assert batches[2]["name"].dtype == object
    with ds.iterate() as iterator:
        assert len(list(iterator)) == 2500
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "from_sql"]
    assert (counters["elements"], counters["blocks"]) == (2500, 3)


def test_a_query_may_end_and_look_as_it_likes(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=7)
    query = (
        "WITH few AS (SELECT * FROM t WHERE id % 2 = 0) SELECT id AS \"%%{}\\:x\", '5\\:30 {0} %s' AS text FROM few; "
    )
    expected = [{"%%{}:x": np.int64(n), "text": "5:30 {0} %s"} for n in (0, 2, 4, 6)]
    assert_gives(sql(path, query), expected)
    assert_gives(sql(path, query.replace(";", "-- all of them"), key="%%{}:x", batch_rows=2), expected)
    with sql(path, query, key="%%{}:x", batch_rows=2).iterate() as iterator:
        next(iterator), next(iterator), next(iterator)
        state = iterator.state_dict()
    with sql(path, query, key="%%{}:x", batch_rows=2).iterate(state) as iterator:
        assert_same(list(iterator), expected[3:])


def test_cardinality_spec_and_label(tmp_path: Path) -> None:
    ds = sql(tmp_path / "x.db", "SELECT :a, :b", {"b": (1, 2), "a": np.int8(3)}, key="a", name="mine")
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.element_spec is None
    assert "mine" in repr(ds)
    assert ds.plan.label == f"from_sql(sqlite:///{tmp_path}/x.db, SELECT :a, :b, {{'a': 3, 'b': (1, 2)}}, key='a')"
    other = sql(tmp_path / "x.db", "SELECT :a, :b", {"b": (1, 2), "a": 4}, key="a")
    assert ds.fingerprint() != other.fingerprint()
    with pytest.raises(StateError, match="another pipeline"):
        other.iterate(ds.iterate().state_dict())


# Values

MOMENT = dt.datetime(2013, 1, 31, 23, 59, 58, 123456)
EAST = dt.timezone(dt.timedelta(hours=2))
IDENTITY = UUID(int=7)
VALUES: list[tuple[Any, Any]] = [
    (7, np.int64(7)),
    (-(2**63), np.int64(-(2**63))),
    (1.5, np.float64(1.5)),
    (True, np.bool_(True)),
    ("text", "text"),
    (b"bytes", b"bytes"),
    (Decimal("1.50"), Decimal("1.50")),
    (None, None),
    (IDENTITY, IDENTITY),
    (MOMENT, np.datetime64("2013-01-31T23:59:58.123456", "us")),
    (MOMENT.replace(tzinfo=EAST), np.datetime64("2013-01-31T21:59:58.123456", "us")),
    (dt.date(2013, 1, 31), np.datetime64("2013-01-31", "D")),
    (dt.time(1, 2, 3, 4), np.timedelta64(3_723_000_004, "us")),
    (dt.timedelta(days=-1, microseconds=5), np.timedelta64(-86_399_999_995, "us")),
    ([1, 2], arr([1, 2])),
    ([], objects()),
    ([[1.5, 2.5], [3.5, 4.5]], arr([[1.5, 2.5], [3.5, 4.5]], float)),
    (["a", None], objects("a", None)),
    ({"a": 1, "b": [{"c": None}]}, {"a": np.int64(1), "b": objects({"c": None})}),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_what_a_value_becomes_depends_on_it_alone(value: Any, expected: Any) -> None:
    for rows in ([value], [value, value], [value, None, "x", value]):
        found = rows_of(["x", "y"], [(each, 1) for each in rows], {}, str)
        elements = found.elements if found.columns is None else list(aiodata.columns.iterate(found.columns))
        assert elements is not None
        assert_same([elements[0]["x"], elements[-1]["x"]], [expected, expected])


def test_columns_are_arrays_where_all_values_are_of_one_type() -> None:
    found = rows_of(["n", "s", "t"], [(1, "a", MOMENT), (2, "b", MOMENT)], {}, str)
    assert found.columns is not None
    assert_same(found.columns["n"], arr([1, 2]))
    assert_same(found.columns["s"], objects("a", "b"))
    assert found.columns["t"].dtype == np.dtype("M8[us]")
    assert not found.columns["n"].flags.writeable


def test_an_integer_that_does_not_fit_is_an_error_of_its_row() -> None:
    found = rows_of(["n"], [(1,), (2**63,), (3,)], {}, lambda number: f"row {number}")
    assert found.elements is not None
    assert str(found.elements[1].exception) == "row 1: 'n' is 9223372036854775808, which does not fit 64 bits"
    assert [found.elements[0], found.elements[2]] == [{"n": 1}, {"n": 3}]


def test_null_is_none_in_every_column(tmp_path: Path) -> None:
    query = "SELECT 0 AS id, 1 AS n, 1.5 AS x, 'a' AS s UNION ALL SELECT 1, NULL, NULL, NULL ORDER BY id"
    path = database(tmp_path / "x.db")
    expected = [
        {"id": np.int64(0), "n": np.int64(1), "x": np.float64(1.5), "s": "a"},
        {"id": np.int64(1), "n": None, "x": None, "s": None},
    ]
    for rows in (1, 2):
        assert_gives(sql(path, query, batch_rows=rows), expected)
    filled = sql(path, query, null_values={"n": np.int64(-1), "x": float("nan"), "s": ""}, key="id")
    (batch,) = to_list(filled.batch(2))
    assert_same(batch["n"], arr([1, -1]))
    assert_same(batch["x"], arr([1.5, np.nan], float))
    assert_same(batch["s"], objects("a", ""))


# Parameters


def test_parameters_are_bound(tmp_path: Path) -> None:
    nasty = "'; DROP TABLE t; -- %s {} :x \\ \" $1 ?"
    path = database(tmp_path / "x.db", rows=5)
    values = {"text": nasty, "n": np.int64(3), "none": None}
    assert_same(to_list(sql(path, "SELECT :text AS text, :n AS n, :none AS none", values)), [values])
    wanted = {"names": ("name 1", "name 3", nasty), "least": 2}
    query = "SELECT * FROM t WHERE name IN :names AND id >= :least"
    assert_gives(sql(path, query, wanted), [row(3)])
    assert_gives(sql(path, query, wanted, key="id"), [row(3)])
    assert to_list(sql(path, query, {**wanted, "names": ()})) == []


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"database": 5}, TypeError, "must be a URL, an AsyncEngine, or a function"),
    ({"database": "no url"}, ValueError, "is no URL"),
    ({"database": "nothing://x"}, ValueError, "nothing://x/"),
    ({"database": "sqlite+pysqlite:///x"}, ValueError, "async"),
    ({"database": "mysql+absent://x/y"}, ValueError, "absent"),
    ({"query": b"SELECT 1"}, TypeError, "query must be text"),
    ({"parameters": [1]}, TypeError, "parameters must be a dict"),
    ({"parameters": {1: 1}}, TypeError, "parameters must be a dict"),
    ({"query": "SELECT :x, :y", "parameters": {"x": 1}}, ValueError, "the query has :y"),
    ({"parameters": {"x": 1}}, ValueError, "no :x"),
    ({"query": "SELECT :aiodata_low", "parameters": {"aiodata_low": 1}}, ValueError, ":aiodata_low"),
    ({"key": ""}, TypeError, "key"),
    ({"key": 1}, TypeError, "key"),
    ({"key": "id", "partitions": 0}, ValueError, "partitions"),
    ({"key": "id", "partitions": 1.5}, TypeError, "partitions"),
    ({"partitions": 2}, ValueError, "needs a key"),
    ({"num_parallel_reads": 2}, ValueError, "needs partitions"),
    ({"key": "id", "partitions": 2, "num_parallel_reads": 0}, ValueError, "num_parallel_reads"),
    ({"batch_rows": 0}, ValueError, "batch_rows"),
    ({"null_values": 0}, TypeError, "null_values"),
    ({"null_values": {"n": None}}, ValueError, "null_values"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments_are_refused_at_the_call(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match="from_sql") as raised:
        Dataset.from_sql(**{"database": "sqlite:///x", "query": "SELECT 1", **arguments})
    assert message in str(raised.value)


def test_a_plain_engine_is_refused() -> None:
    with pytest.raises(TypeError, match="create_async_engine"):
        Dataset.from_sql(sqlalchemy.create_engine("sqlite://"), "SELECT 1")
    (error,) = outcomes(Dataset.from_sql(lambda: None, "SELECT 1"))
    assert "must make an AsyncEngine, not NoneType" in str(error)


def test_without_sqlalchemy_the_call_says_what_to_install() -> None:
    code = """
import sys
for module, url in (("asyncpg", "postgresql://x/y"), ("aiosqlite", "sqlite:///x"), ("sqlalchemy", "sqlite:///x")):
    sys.modules[module] = None
    for name in [name for name in sys.modules if name.startswith("sqlalchemy.")]:
        del sys.modules[name]
    import aiodata
    try:
        aiodata.Dataset.from_sql(url, "SELECT 1")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.stdout.splitlines() == [
        "from_sql needs asyncpg: pip install 'aiodata-pipeline[postgres]'",
        "from_sql needs aiosqlite: pip install 'aiodata-pipeline[sql]'",
        "from_sql needs sqlalchemy: pip install 'aiodata-pipeline[sql]'",
    ], done.stderr


# Mistakes


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELEC 1", OperationalError, "syntax error"),
        ("SELECT * FROM missing", OperationalError, "no such table: missing"),
        ("SELECT 1 AS x, 2 AS x", StructureError, "cannot be the keys of a dict: 'x', 'x'"),
        ("DELETE FROM t", SQLAlchemyError, "does not return rows"),
    ],
)
def test_mistakes_in_a_query_show_when_it_is_iterated(
    query: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = database(tmp_path / "x.db", rows=2)
    (found,) = outcomes(sql(path, query))
    assert isinstance(found, error)
    assert message in str(found)
    assert found.__notes__[-1] == f"in from_sql, element 0, from {query} row 0"
    if error is not StructureError:  # who leaves out bad rows does not want a lost database to look like an end
        with pytest.raises(error):
            to_list(sql(path, query).ignore_errors())
    assert len(to_list(sql(path))) == 2


def test_what_a_query_writes_is_not_kept(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=2)
    assert ids(to_list(sql(path, "DELETE FROM t RETURNING id"))) == [0, 1]
    assert len(to_list(sql(path))) == 2


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    (error,) = outcomes(sql(tmp_path / "none.db"))
    assert (type(error), error.filename) == (FileNotFoundError, str(tmp_path / "none.db"))
    (error,) = outcomes(sql(tmp_path))
    assert "unable to open database file" in str(error)
    assert list(tmp_path.iterdir()) == []
    path = database(tmp_path / "a?b#c%41.db", rows=1)
    assert_same(to_list(Dataset.from_sql(sqlalchemy.URL.create("sqlite", database=str(path)), QUERY)), [row(0)])


def test_errors_of_later_stages_name_query_and_row(tmp_path: Path) -> None:
    def refuse(element: Any) -> Any:
        if element["id"] == 7:
            raise KeyError(7)
        return element

    ds = sql(database(tmp_path / "x.db", rows=9), batch_rows=4, key="id").map(refuse)
    (error,) = [item for item in outcomes(ds) if isinstance(item, Exception)]
    assert error.__notes__[0].endswith(f"refuse), element 7, from {QUERY} row 7")


# Keys


def test_a_key_that_repeats_or_is_null_ends_the_rows(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", "CREATE TABLE k AS SELECT id, id / 2 * 2 - (id = 1) AS k FROM t", rows=6)
    for rows in (1, 2, 3, 100):  # k is 0, -1, 2, 2, 4, 4
        ds = sql(path, "SELECT k, id FROM k", key="k", batch_rows=rows)
        rows_before = [{"k": np.int64(k), "id": np.int64(n)} for k, n in ((-1, 1), (0, 0), (2, 2))]
        assert_outcomes(ds, [*rows_before, StructureError])
        assert str(outcomes(ds)[-1]) == (
            "SELECT k, id FROM k row 3: the key 'k' is 2, as that of the row before; "
            "a key must be unique and never NULL"
        )
    ds = sql(path, "SELECT CASE WHEN id <> 3 THEN id END AS id FROM t", key="id")
    (error,) = outcomes(ds)
    assert "the key 'id' is NULL" in str(error)
    (error,) = outcomes(sql(path, key="no"))
    assert "no such column" in str(error) or "the key 'no' is none of the columns 'id', 'half', 'name'" in str(error)
    (error,) = outcomes(sql(path, null_values={"no": 1}))
    assert "null_values names 'no', which is none of 'id', 'half', 'name'" in str(error)


def test_restoring_reads_nothing_before_the_key(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=20)
    states = states_of(sql(path, key="id", batch_rows=5), 20)
    change(path, "UPDATE t SET name = 'gone' WHERE id < 10")
    change(path, "DELETE FROM t WHERE id < 5")
    change(path, "INSERT INTO t VALUES (-7, 0, 'new')")
    for taken in range(10, 21):
        with sql(path, key="id", batch_rows=5).iterate(states[taken]) as iterator:
            assert_same(list(iterator), [row(n) for n in range(taken, 20)])
    assert states[12]["position"] == [[10, 10, 5, None], 2]


@pytest.mark.parametrize(
    "value",
    [
        0,
        2**62,
        0.1,
        "text",
        b"\x00\xff",
        Decimal("1.50"),
        IDENTITY,
        dt.date(2013, 1, 31),
        MOMENT,
        MOMENT.replace(tzinfo=EAST),
    ],
)
def test_keys_are_json_and_come_back(value: Any) -> None:
    saved = json.loads(json.dumps(key_to_json(value)))
    assert (type(key_from_json(saved)), key_from_json(saved)) == (type(value), value)


def test_what_cannot_be_a_key() -> None:
    for value in (True, float("nan"), [1], dt.timedelta(1)):
        with pytest.raises(StructureError, match="cannot be a key"):
            key_to_json(value)
    for saved in (["uuid", "x"], ["decimal", "x"], ["what", "x"], ["date"], []):
        with pytest.raises(StateError, match="not a saved state"):
            key_from_json(saved)


def test_data_that_has_lost_rows_is_refused(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=20)
    for key in (None, "id"):
        state = states_of(sql(path, key=key, batch_rows=5), 17)[-1]
        copy = tmp_path / f"{key}.db"
        copy.write_bytes(path.read_bytes())
        change(path, "DELETE FROM t WHERE id > 3")
        with sql(path, key=key, batch_rows=5).iterate(state) as iterator:
            with pytest.raises(StateError, match="row 15"):
                next(iterator)
            assert next(iterator, None) is None
        path.write_bytes(copy.read_bytes())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(data=st.data())
def test_any_keys_are_read_once_in_parts_and_resumed_anywhere(data: st.DataObject, tmp_path: Path) -> None:
    kind = data.draw(st.sampled_from([st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1), st.floats(-5, 5)]))
    keys = data.draw(st.lists(kind.map(lambda k: k or type(k)(0)), unique=True, max_size=20))
    path = tmp_path / "x.db"
    path.unlink(missing_ok=True)
    database(path, "CREATE TABLE k (k)")
    connection = sqlite3.connect(path)
    with connection:
        connection.executemany("INSERT INTO k VALUES (?)", [(key,) for key in keys])
    connection.close()
    parts = data.draw(st.integers(1, 6))
    ds = sql(
        path,
        "SELECT k FROM k",
        key="k",
        partitions=parts,
        num_parallel_reads=data.draw(st.none() | st.integers(1, 7)),
        batch_rows=data.draw(st.integers(1, 4)),
    )
    found = to_list(ds)
    assert sorted(element["k"].item() for element in found) == sorted(keys)
    taken = data.draw(st.integers(0, len(found)))
    with ds.iterate(states_of(ds, taken)[-1]) as iterator:
        assert_same(list(iterator), found[taken:])


# Partitions


def test_partitions_are_ranges_of_the_key_in_turn(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=12)
    assert ids(to_list(sql(path, key="id", partitions=3))) == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    assert ids(to_list(sql(path, key="id", partitions=3, num_parallel_reads=1))) == list(range(12))
    assert ids(to_list(sql(path, "SELECT * FROM t WHERE id > 9", key="id", partitions=8))) == [10, 11]
    assert to_list(sql(path, "SELECT * FROM t WHERE id > 99", key="id", partitions=8)) == []
    everything = to_list(sql(path, "SELECT * FROM t WHERE id < :n", {"n": 9}, key="id", partitions=100))
    assert ids(everything) == list(range(9))
    assert_same(asyncio.run(collect(sql(path, key="id", partitions=3)))[1], row(4))


def test_partitions_go_on_with_the_bounds_that_they_began_with(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=12)
    ds = sql(path, key="id", partitions=3, num_parallel_reads=2, batch_rows=2)
    found, states = ids(to_list(ds)), states_of(ds, 12)
    change(path, "INSERT INTO t SELECT 1000 + id, half, name FROM t WHERE id > 9")
    for taken in range(1, 12):
        with ds.iterate(states[taken]) as iterator:
            assert ids(list(iterator)) == [*found[taken:], 1010, 1011]


def test_keys_that_cannot_be_divided(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=3)
    (error,) = outcomes(sql(path, key="name", partitions=2))
    assert "partitions need a key of numbers, and 'name' is a str" in str(error)
    (error,) = outcomes(sql(path, "SELECT nullif(id, 1) AS id FROM t", key="id", partitions=2))
    assert "the key 'id' is NULL in a row, which no partition has" in str(error)
    (error,) = outcomes(sql(path, key="no", partitions=2))
    assert isinstance(error, Exception)


# Where rows come from


async def test_an_engine_of_the_users_is_used_and_kept(tmp_path: Path) -> None:
    engine = create_async_engine("sqlite+aiosqlite://")  # in memory: another engine would not see it
    async with engine.begin() as connection:
        await connection.execute(sqlalchemy.text("CREATE TABLE t AS SELECT 1 AS id UNION SELECT 2"))
    ds = Dataset.from_sql(engine, "SELECT id FROM t", key="id").prefetch(1)
    for _ in range(2):
        assert ids(await collect(ds)) == [1, 2]
    async for _element in ds:
        break
    assert engine.pool.checkedout() == 0 if hasattr(engine.pool, "checkedout") else True
    await engine.dispose()


def test_an_engine_is_not_for_a_plain_for(tmp_path: Path) -> None:
    engine = create_async_engine("sqlite+aiosqlite://")
    (error,) = outcomes(Dataset.from_sql(engine, "SELECT 1 AS id"))
    assert "an AsyncEngine is read by `async for`" in str(error)


def test_a_function_makes_an_engine_for_each_connection(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=6)
    made = []

    def connect() -> Any:
        made.append(create_async_engine(f"sqlite+aiosqlite:///{path}"))
        return made[-1]

    assert_gives(Dataset.from_sql(connect, QUERY), [row(n) for n in range(6)])
    made.clear()
    assert len(to_list(Dataset.from_sql(connect, QUERY, key="id", partitions=2))) == 6
    assert len(made) == 3


# Secrets


def test_passwords_are_nowhere(tmp_path: Path) -> None:
    pytest.importorskip("asyncpg", reason="PostgreSQL needs asyncpg")
    url = "postgresql://me:s3cret@127.0.0.1:1/db?password=s3cret"
    for given_url in (url, sqlalchemy.make_url(url.replace("postgresql", "postgresql+asyncpg"))):
        ds = Dataset.from_sql(given_url, "SELECT 1 AS x", key="x")
        (error,) = outcomes(ds)
        assert isinstance(error, OSError)
        shown = [
            repr(ds),
            ds.plan.label,
            repr(error),
            str(error),
            *error.__notes__,
            json.dumps(ds.iterate().state_dict()),
        ]
        assert not any("s3cret" in text for text in shown)
        assert "postgresql://127.0.0.1:1/db" in repr(ds)
    for wrong in (
        "postgresql://me:s3cret@host:s3cret/db",
        "nothing://me:s3cret@host/db",
        "sqlite+pysqlite://me:s3cret@/x",
    ):
        with pytest.raises(ValueError, match="from_sql") as raised:
            Dataset.from_sql(wrong, "SELECT 1")
        assert "s3cret" not in str(raised.value)
        assert raised.value.__cause__ is None


# Closing


def test_leaving_early_closes_the_connection(tmp_path: Path, open_descriptors: Callable[[], dict[int, str]]) -> None:
    path = database(tmp_path / "x.db", rows=3000)
    for ds in (
        sql(path),
        sql(path, key="id").prefetch(2),
        sql(path, key="id", partitions=3).batch(7).repeat(),
    ):
        for _element in ds:
            break
        assert str(path) not in open_descriptors().values()


async def test_leaving_early_on_a_loop_closes_the_connection(
    tmp_path: Path, open_descriptors: Callable[[], dict[int, str]], live_threads: Callable[[], set[threading.Thread]]
) -> None:
    path = database(tmp_path / "x.db", rows=3000)
    before = live_threads()
    for ds in (sql(path), sql(path).map(lambda element: element), sql(path, key="id", partitions=3)):
        async for _element in ds:
            break
        deadline = time.monotonic() + 20
        while str(path) in open_descriptors().values() or live_threads() - before:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)


def test_a_loop_that_is_shut_down_with_an_open_iterator(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=3000)
    kept: list[Iterator[Any]] = []

    async def leave() -> None:
        iterator = sql(path).map(lambda element: element).iterate()
        kept.append(iterator)
        await anext(iterator)

    asyncio.run(leave())


async def test_cancelling_interrupts_the_query(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db")
    for query in (SLOW, f"{ENDLESS} WHERE x < 0"):
        iterator = sql(path, query).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        await asyncio.sleep(0.1)
        pull.cancel()
        await asyncio.wait({pull})  # the test has a time limit; the query has none
        assert pull.cancelled()
        await iterator.aclose()


async def test_cancelling_at_any_moment_leaves_nothing(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=50)
    for turns in range(0, 60, 3):
        iterator = sql(path, key="id", batch_rows=5).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        for _ in range(turns):
            await asyncio.sleep(0.0003)
        pull.cancel()
        await asyncio.wait({pull})
        await iterator.aclose()


def test_leaving_a_prefetch_interrupts_the_query(tmp_path: Path) -> None:
    ds = sql(database(tmp_path / "x.db"), f"{ENDLESS} WHERE x < 2", batch_rows=1).prefetch(2)
    assert_same(first(ds, 1), [{"x": np.int64(0)}])


async def test_the_loop_goes_on_while_a_query_runs(tmp_path: Path) -> None:
    ds = sql(database(tmp_path / "x.db"), f"SELECT count(*) AS x FROM ({ENDLESS} LIMIT 3000000)")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.ensure_future(tick())
    assert_same(await ds.aget_single_element(), {"x": np.int64(3_000_000)})
    ticking.cancel()
    assert ticks > 5


async def test_memory_is_that_of_the_rows_fetched(tmp_path: Path) -> None:
    ds = sql(database(tmp_path / "x.db"), ENDLESS, batch_rows=10).batch(100)
    async with ds.iterate() as iterator:
        for _ in range(30):
            last = await anext(iterator)
    assert_same(last["x"], arr(range(2900, 3000)))
