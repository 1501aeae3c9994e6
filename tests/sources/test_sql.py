"""`SqlDataset`: SQLite's conversions, mistakes, damage, resume, closing."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import SqlDataset, TensorSpec, experimental
from aiodata.errors import CorruptRecordError, StateError, StructureError
from tests.programs import arr, assert_gives, assert_outcomes, assert_same, first, objects, outcomes, pull_all, to_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiodata import Dataset

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
SLOW = f"SELECT count(*) FROM ({ENDLESS})"


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


def row(n: int) -> Any:
    return np.int64(n), np.float64(n / 2), f"name {n}".encode()


def sql(path: Path, query: str = "SELECT * FROM t ORDER BY id", types: Any = (int, float, bytes)) -> SqlDataset:
    return SqlDataset("sqlite", path, query, types)


# Rows


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1000, 1001, 2500])
def test_rows_in_order(count: int, tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=count)
    assert_gives(sql(path), [row(n) for n in range(count)])


def test_one_column_gives_tuples_of_one(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=3)
    assert_gives(sql(path, "SELECT id FROM t WHERE id > 0;", [np.int8]), [(np.int8(1),), (np.int8(2),)])


def test_rows_travel_as_columns(tmp_path: Path) -> None:
    ds = sql(database(tmp_path / "x.db", rows=1500))
    batches = to_list(ds.batch(1000))
    assert_same(batches[1], (arr(range(1000, 1500)), arr(range(1000, 1500)) / 2, batches[1][2]))
    assert batches[1][2][0] == b"name 1000"
    with ds.iterate() as iterator:
        assert len(list(iterator)) == 1500
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "sql"]
    assert counters["elements"] == 1500
    assert counters["blocks"] < 60


def test_wide_rows_are_read_few_at_a_time(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", "CREATE TABLE wide AS SELECT zeroblob(300000) AS blob, id FROM t", rows=40)
    with sql(path, "SELECT blob, id FROM wide", (bytes, int)).iterate() as iterator:
        assert [len(blob) for blob, _ in iterator] == [300_000] * 40
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "sql"]
    assert counters["blocks"] >= 6


VALUES: list[tuple[str, Any, Any]] = [
    ("NULL", int, np.int64(0)),
    ("NULL", "float32", np.float32(0)),
    ("NULL", bool, np.bool_(False)),
    ("NULL", bytes, b""),
    ("NULL", str, ""),
    ("'12'", int, np.int64(12)),
    ("' 12ab'", int, np.int64(12)),
    ("'ab'", int, np.int64(0)),
    ("1.5", int, np.int64(1)),
    ("-1.9", int, np.int64(-1)),
    ("1e30", int, np.int64(2**63 - 1)),
    ("x'3137'", int, np.int64(17)),
    ("'1.5e1x'", float, np.float64(15)),
    ("3", "float16", np.float16(3)),
    ("1e300", "float32", np.float32(np.inf)),
    ("9007199254740993", float, np.float64(2**53)),
    ("12", bytes, b"12"),
    ("1.0", bytes, b"1.0"),
    ("1.5", str, "1.5"),
    ("x'00ff'", bytes, b"\x00\xff"),
    ("'é'", bytes, "é".encode()),
    ("'é'", str, "é"),
    ("7", bool, np.bool_(True)),
    ("-1", bool, np.bool_(True)),
    ("0.5", bool, np.bool_(False)),
    ("'yes'", bool, np.bool_(False)),
    ("255", np.uint8, np.uint8(255)),
    ("-128", np.int8, np.int8(-128)),
    ("-9223372036854775808", np.int64, np.int64(-(2**63))),
    ("9223372036854775807", np.uint64, np.uint64(2**63 - 1)),
    ("'text'", object, b"text"),
    ("'text'", "U", "text"),
    ("'text'", np.bytes_, b"text"),
]


@pytest.mark.parametrize(("value", "kind", "expected"), VALUES)
def test_values_are_converted_as_sqlite_does(value: str, kind: Any, expected: Any) -> None:
    assert_gives(SqlDataset("sqlite", ":memory:", f"SELECT {value}", (kind,)), [(expected,)])
    mixed = (
        f"SELECT 1 UNION ALL SELECT {value} UNION ALL SELECT 'x'"  # the same, where its neighbours are of other types
    )
    assert_same(to_list(SqlDataset("sqlite", ":memory:", mixed, (kind,)))[1], (expected,))


@given(
    values=st.lists(
        st.none()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False)
        | st.text("0123456789.e- x", max_size=6)
        | st.binary(max_size=4),
        max_size=8,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_conversions_are_casts(values: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(database(path, "CREATE TABLE v (x)"))
    with connection:
        connection.executemany("INSERT INTO v VALUES (?)", [(value,) for value in values])
    cast = "ifnull(CAST(x AS INTEGER), 0), ifnull(CAST(x AS REAL), 0.0), ifnull(CAST(x AS BLOB), x'')"
    expected = [
        (np.int64(i), np.float64(r), b) for i, r, b in connection.execute(f"SELECT {cast} FROM v ORDER BY rowid")
    ]
    connection.close()
    assert_same(to_list(sql(path, "SELECT x, x, x FROM v ORDER BY rowid")), expected)


def test_what_a_type_cannot_hold_is_an_error_of_its_row(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", "UPDATE t SET name = x'ff' WHERE id = 1", "UPDATE t SET id = 300 WHERE id = 2")
    assert to_list(sql(path)) == []
    path = database(
        tmp_path / "y.db",
        "UPDATE t SET name = CAST(x'ff' AS TEXT) WHERE id = 1",
        "UPDATE t SET id = 300 WHERE id = 2",
        "UPDATE t SET id = -1, name = CAST(x'ff' AS TEXT) WHERE id = 3",
        rows=6,
    )
    ds = sql(path, "SELECT name, id FROM t ORDER BY rowid", (str, np.uint8))
    order = [StructureError, ("name 0", np.uint8(0)), StructureError, ("name 4", np.uint8(4)), ("name 5", np.uint8(5))]
    assert_outcomes(ds, [*order, StructureError])
    messages = [str(item) for item in outcomes(ds) if isinstance(item, Exception)]
    assert "column 0, 'name', is no UTF-8 text" in messages[0]
    assert messages[2] == f"{path}, row 5 of the query: column 1, 'id', is 300, which uint8 cannot hold"


def test_cardinality_spec_and_label(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    ds = SqlDataset("sqlite", path, "SELECT 1, 2", (bytes, np.float32), name="mine")
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.element_spec == (TensorSpec((), object), TensorSpec((), np.float32))
    assert ds.plan.label == f"sql({path}, SELECT 1, 2, bytes, float32)"
    assert "mine" in repr(ds)
    long = "SELECT " + ", ".join(f"column_{n}" for n in range(100))
    labels = {sql(path, query).plan.label for query in (long, long + " ", long.replace(" ", "\n"), long + ", x")}
    assert len(labels) == 4
    assert max(map(len, labels)) < 200 + len(str(path))
    assert experimental.SqlDataset is SqlDataset


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"driver_name": "postgresql"}, ValueError, "driver_name must be \"sqlite\", not 'postgresql'"),
        ({"driver_name": None}, ValueError, "driver_name"),
        ({"data_source_name": 5}, TypeError, "SqlDataset"),
        ({"query": b"SELECT 1"}, TypeError, "query must be text, not bytes"),
        ({"output_types": ()}, ValueError, "output_types is empty"),
        ({"output_types": int}, TypeError, "output_types must be a tuple"),
        ({"output_types": {"a": int}}, TypeError, "output_types must be a tuple"),
        ({"output_types": "int"}, TypeError, "output_types must be a tuple"),
        ({"output_types": ("complex64",)}, TypeError, "'complex64' is neither"),
        ({"output_types": ("M8[s]",)}, TypeError, "neither"),
        ({"output_types": (None,)}, TypeError, "None is neither"),
        ({"output_types": ("nonsense",)}, TypeError, "'nonsense' is neither"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, error: type[Exception], message: str) -> None:
    given_arguments = {"driver_name": "sqlite", "data_source_name": "x", "query": "SELECT 1", "output_types": (int,)}
    with pytest.raises(error, match="SqlDataset") as raised:
        SqlDataset(**{**given_arguments, **arguments})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELEC 1", sqlite3.OperationalError, "syntax error"),
        ("SELECT * FROM missing", sqlite3.OperationalError, "no such table: missing"),
        ("SELECT id FROM t", StructureError, "the query has 1 columns, but output_types has 3"),
        ("SELECT *, 1 FROM t", StructureError, "the query has 4 columns, but output_types has 3"),
        ("", StructureError, "the query has 0 columns"),
        ("DELETE FROM t RETURNING *", sqlite3.OperationalError, "readonly"),
        ("SELECT * FROM t; SELECT 1", Exception, "one statement at a time"),
        ("SELECT * FROM t WHERE id = ?", sqlite3.ProgrammingError, "binding"),
    ],
)
def test_mistakes_in_a_query_show_when_it_is_iterated(
    query: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = database(tmp_path / "x.db", rows=2)
    (found,) = outcomes(sql(path, query))
    assert isinstance(found, error)
    assert message in str(found)
    assert found.__notes__[0].startswith(f"in sql, element 0, from {path}, {query}")
    assert len(to_list(sql(path))) == 2


def test_an_error_in_the_middle_comes_behind_rows_before_it(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=1500)
    query = "SELECT abs(CASE WHEN id = 1234 THEN -9223372036854775808 ELSE id END) FROM t ORDER BY id"
    with sql(path, query, (int,)).iterate() as iterator:
        found = pull_all(iterator, 2000)
    # Python's sqlite3 looks a row ahead, and loses the row before the one that fails.
    assert [int(item[0]) for item in found[:-1]] == list(range(1233))
    assert str(found[-1]) == "integer overflow"
    assert found[-1].__notes__[0].endswith("row 1233")


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    (error,) = outcomes(sql(tmp_path / "none.db"))
    assert type(error) is FileNotFoundError
    assert error.filename == str(tmp_path / "none.db")
    (error,) = outcomes(sql(tmp_path))
    assert type(error) is sqlite3.OperationalError
    assert list(tmp_path.iterdir()) == []


def test_names_with_odd_characters_and_uris(tmp_path: Path) -> None:
    for name in ("a?b#c%41.db", "sp ace.db", "\udcff.db"):
        assert_same(to_list(sql(database(tmp_path / name, rows=1))), [row(0)])
    assert_same(
        to_list(SqlDataset("sqlite", f"file:{tmp_path}/sp%20ace.db?mode=ro", "SELECT id FROM t", (int,))),
        [(np.int64(0),)],
    )


def test_damaged_databases_are_told(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database " * 1000)
    (error,) = outcomes(sql(tmp_path / "text.db"))
    assert (type(error), error.path) == (CorruptRecordError, str(tmp_path / "text.db"))
    content = database(tmp_path / "good.db", rows=2000).read_bytes()
    for damaged in (content[:9000], content[:8192] + b"\xff" * 4096 + content[12288:]):
        (tmp_path / "bad.db").write_bytes(damaged)
        with sql(tmp_path / "bad.db").iterate() as iterator:
            *rows, error = pull_all(iterator, 3000)
        assert type(error) is CorruptRecordError
        assert_same(rows, [row(n) for n in range(len(rows))])


def test_what_is_being_written_is_not_in_the_way(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", "PRAGMA user_version = 1", rows=3)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("DELETE FROM t")
    assert len(to_list(sql(path))) == 3
    connection.commit()
    assert to_list(sql(path)) == []
    connection.close()


# Resume


def states_of(ds: Dataset[Any], count: int) -> list[Any]:
    with ds.iterate() as iterator:
        states = [iterator.state_dict()]
        for _ in range(count):
            next(iterator)
            states.append(json.loads(json.dumps(iterator.state_dict())))
    return states


def test_a_state_holds_a_number(tmp_path: Path) -> None:
    ds = sql(database(tmp_path / "x.db", rows=2100))
    states = states_of(ds, 2100)
    for taken in (1, 999, 1000, 1001, 2099, 2100):
        assert len(json.dumps(states[taken])) < 300
        with ds.iterate(states[taken]) as iterator:
            assert_same(list(iterator), [row(n) for n in range(taken, 2100)])


def test_a_database_that_has_lost_rows_is_refused(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", rows=2100)
    ds = sql(path)
    state = states_of(ds, 2050)[-1]
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM t WHERE id > 500")
    connection.close()
    with ds.iterate(state) as iterator:
        with pytest.raises(StateError, match="has 501 rows, and row"):
            next(iterator)
        assert next(iterator, None) is None
    path.unlink()
    with ds.iterate(state) as iterator, pytest.raises(FileNotFoundError):
        next(iterator)


# Closing


def test_leaving_early_closes_the_database(tmp_path: Path, open_descriptors: Callable[[], dict[int, str]]) -> None:
    path = database(tmp_path / "x.db", rows=3000)
    for ds in (sql(path), sql(path).prefetch(2), sql(path).batch(7).repeat()):
        for _element in ds:
            break
        assert str(path) not in open_descriptors().values()


async def test_cancelling_interrupts_the_query(tmp_path: Path) -> None:
    for query in (SLOW, f"{ENDLESS} WHERE x < 0"):
        iterator = SqlDataset("sqlite", ":memory:", query, (int,)).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        pull.cancel()
        await asyncio.wait({pull})
        assert pull.cancelled()
        await iterator.aclose()
        assert time.monotonic() - begun < 20  # and not for ever


def test_leaving_a_prefetch_interrupts_the_query() -> None:
    ds = SqlDataset("sqlite", ":memory:", f"{ENDLESS} WHERE x < 2", (int,)).prefetch(2)
    assert_same(first(ds, 1), [(np.int64(0),)])


async def test_the_loop_goes_on_while_a_query_runs() -> None:
    ds = SqlDataset("sqlite", ":memory:", f"SELECT count(*) FROM ({ENDLESS} LIMIT 3000000)", (int,))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.ensure_future(tick())
    assert await ds.aget_single_element() == (3_000_000,)
    ticking.cancel()
    assert ticks > 5


def test_an_endless_query_is_read_as_far_as_asked() -> None:
    assert_same(
        first(SqlDataset("sqlite", ":memory:", ENDLESS, ("int32",)).batch(3), 2)[1], (arr([3, 4, 5], np.int32),)
    )
    assert_same(
        first(SqlDataset("sqlite", ":memory:", ENDLESS, (bytes,)).skip(9).batch(2), 1)[0], (objects(b"9", b"10"),)
    )
