"""`BigQueryDataset` by the real client, against a server of ours: rows, streams, faults, resume, closing."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aiodata
from aiodata import BigQueryDataset, Dataset, Options, ParquetDataset
from aiodata.errors import CorruptRecordError, RemoteError, StateError, StructureError
from tests.programs import arr, assert_gives, assert_same, collect, first, i64, outcomes, outcomes_async, to_list
from tests.resume.saving import FACES, along, check_rest, drive, relay

pa: Any = pytest.importorskip("pyarrow", reason="BigQuery needs pyarrow")
pytest.importorskip("google.cloud.bigquery_storage_v1", reason="BigQuery needs google-cloud-bigquery-storage")
from google.cloud.bigquery_storage_v1 import types  # noqa: E402 - behind importorskip

from tests.arrow_files import write_parquet  # noqa: E402
from tests.servers.bigquery import SESSION, BigQueryServer, Fails, Fine, Stalls  # noqa: E402

TABLE = "project.data.table"
RETRIED = ["ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNKNOWN"]
FINAL = ["NOT_FOUND", "PERMISSION_DENIED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED"]


def numbers(count: int) -> Any:
    return pa.table({"n": range(count), "name": [f"name {n}" for n in range(count)]})


def row(n: int) -> dict[str, Any]:
    return {"n": np.int64(n), "name": f"name {n}"}


@pytest.fixture
def server() -> Iterator[BigQueryServer]:
    with BigQueryServer({TABLE: numbers(30)}) as running:
        yield running


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("aiodata.sources._bigquery_streams.TURN_ROWS", 4)
    return 4


def table(server: BigQueryServer, *arguments: Any, **options: Any) -> Dataset[Any]:
    return BigQueryDataset(TABLE, *arguments, client=server.client, **options)


def hurried(ds: Dataset[Any], **storage: Any) -> Dataset[Any]:
    """Read with short waits."""
    options = Options()
    for name, value in {"first_wait_seconds": 0.001, "idle_seconds": 20, **storage}.items():
        setattr(options.storage, name, value)
    return ds.with_options(options)


def ns(found: list[Any]) -> list[Any]:
    return [type(item) if isinstance(item, Exception) else int(item["n"]) for item in found]


def read_counted(ds: Dataset[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Read everything; give it with the counters."""
    with ds.iterate() as iterator:
        found = list(iterator)
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "bigquery"]
    return found, counters


def in_turns(count: int, streams: int, reads: int, turn: int) -> list[int]:
    """Give the numbers of rows as streams in turn give them, in the plainest way."""
    parts = [list(range(count * each // streams, count * (each + 1) // streams)) for each in range(streams)]
    slots, waiting, found, place = parts[:reads], parts[reads:], [], 0
    while slots:
        place %= len(slots)
        taken, slots[place] = slots[place][:turn], slots[place][turn:]
        found += taken
        if len(taken) == turn:
            place += 1
        elif waiting:
            slots[place] = waiting.pop(0)
            place += 1
        else:
            del slots[place]
    return found


# Rows


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 30])
def test_rows_in_order(count: int) -> None:
    with BigQueryServer({TABLE: numbers(count)}) as server:
        assert_gives(table(server), [row(n) for n in range(count)])


def many_types() -> Any:
    utc = dt.UTC
    moment = dt.datetime(2013, 1, 31, 23, 59, 58, 123456)
    struct = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string()), ("d", pa.float64())]))])
    return pa.table(
        {
            "int64": pa.array([1, -(2**63), None], pa.int64()),
            "float64": pa.array([1.5, float("inf"), None], pa.float64()),
            "bool": pa.array([True, False, None], pa.bool_()),
            "string": pa.array(["a", "", None], pa.string()),
            "bytes": pa.array([b"a", b"", None], pa.binary()),
            "numeric": pa.array([Decimal("1.500000000"), Decimal("-2.000000001"), None], pa.decimal128(38, 9)),
            "bignumeric": pa.array([Decimal("1e-38"), Decimal(7), None], pa.decimal256(76, 38)),
            "date": pa.array([moment.date(), dt.date(1, 1, 1), None], pa.date32()),
            "datetime": pa.array([moment, moment, None], pa.timestamp("us")),
            "timestamp": pa.array([moment.replace(tzinfo=utc)] * 2 + [None], pa.timestamp("us", "UTC")),
            "time": pa.array([dt.time(1, 2, 3, 4), dt.time(0), None], pa.time64("us")),
            "array": pa.array([[1, 2], [], [3]], pa.list_(pa.int64())),
            "struct": pa.array([{"a": 1, "b": {"c": "x", "d": 0.5}}, {"a": 2, "b": {"c": "", "d": 0.0}}, None], struct),
            "structs": pa.array([[{"a": 1, "b": {"c": "x", "d": 0.5}}], [], []], pa.list_(struct)),
        }
    )


NULLS = {"int64": -1, "bool": False, "struct.a": -2}


@pytest.mark.parametrize("columns", [None, ["struct.b.d", "int64", "struct.a", "date"], ["structs"], ["struct"]])
def test_the_rows_are_those_of_the_same_table_in_parquet(columns: list[str] | None, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x", many_types())
    nulls = {name: value for name, value in NULLS.items() if not columns or name.partition(".")[0] in str(columns)}
    if columns == ["structs"]:
        nulls = {}
    expected = to_list(ParquetDataset(path, columns, null_values=nulls))
    assert len(expected) == 3
    with BigQueryServer({TABLE: many_types()}, response_rows=2) as server:
        found = to_list(table(server, columns, null_values=nulls))
        assert repr(found) == repr(expected)  # by which types and the order of keys are compared, and NaT equals NaT


def test_nulls_are_errors_in_their_places_where_no_dtype_has_them() -> None:
    columns = pa.table({"n": [1, None, 3, None], "x": [1.0, None, 3.0, 4.0]})
    with BigQueryServer({TABLE: columns}, response_rows=3) as server:
        found = outcomes(table(server))
        assert ns(found) == [1, StructureError, 3, StructureError]
        assert str(found[3]) == (
            "bigquery://project.data.table stream s0 row 3: 'n' is null, which its dtype cannot tell; choose a value "
            "for it with null_values={'n': ...}"
        )
        assert ns(to_list(table(server).ignore_errors())) == [1, 3]
        assert_gives(
            table(server, null_values={"n": 0, "x": 0.5}),
            [{"n": np.int64(n), "x": np.float64(x)} for n, x in ((1, 1), (0, 0.5), (3, 3), (0, 4))],
        )


def test_rows_travel_as_columns() -> None:
    with BigQueryServer({TABLE: numbers(9000)}, response_rows=2500) as server:
        batches = to_list(table(server, num_streams=2).batch(4000))
        assert [len(batch["n"]) for batch in batches] == [4000, 4000, 1000]
        assert_same(batches[0]["n"][1020:1030], arr([*range(1020, 1024), *range(4500, 4506)]))
        assert_same(first(table(server), 1), [row(0)])
        found, counters = read_counted(table(server))
        assert len(found) == 9000
        assert (counters["elements"], counters["blocks"], counters["requests"]) == (9000, 4, 2)
        assert "retries" not in counters


def test_columns_and_restriction_are_the_services_work(server: BigQueryServer) -> None:
    ds = table(server, ["name"], "n > 3 AND name != 'name 6' AND n <= 8")
    assert_gives(ds, [{"name": f"name {n}"} for n in (4, 5, 7, 8)])
    asked = server.sessions[0]
    assert list(asked.read_session.read_options.selected_fields) == ["name"]
    assert asked.read_session.read_options.row_restriction == "n > 3 AND name != 'name 6' AND n <= 8"
    assert ns(to_list(table(server, None, "n > 27", num_streams=4))) == [28, 29]  # three streams are empty
    assert to_list(table(server, None, "n IS NULL", num_streams=4)) == []


def test_what_a_session_is_asked_for(server: BigQueryServer) -> None:
    moment = dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    to_list(table(server, parent="payer", num_streams=7, snapshot_time=moment))
    to_list(table(server, parent="projects/payer"))
    to_list(table(server))
    asked = server.sessions[0]
    assert (asked.parent, asked.max_stream_count) == ("projects/payer", 7)
    assert asked.read_session.table == "projects/project/datasets/data/tables/table"
    assert asked.read_session.data_format == types.DataFormat.ARROW
    assert asked.read_session.table_modifiers.snapshot_time == moment
    assert [each.parent for each in server.sessions[1:]] == ["projects/payer", "projects/project"]
    assert "snapshot_time" not in server.sessions[2].read_session.table_modifiers


def test_a_project_may_have_a_dot() -> None:
    name = "example.com:project.data.table"
    with BigQueryServer({name: numbers(2)}) as server:
        assert_same(to_list(BigQueryDataset(name, client=server.client)), [row(0), row(1)])


# Streams


@pytest.mark.parametrize("reads", [None, 1, 2, 3])
def test_streams_are_read_in_turn(reads: int | None, server: BigQueryServer, short_turns: int) -> None:
    ds = table(server, num_streams=3, num_parallel_reads=reads)
    expected = in_turns(30, 3, reads or 3, short_turns)
    if reads is None:
        assert expected[:10] == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21]
    assert_gives(ds, [row(n) for n in expected])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    count=st.integers(0, 40),
    streams=st.integers(1, 5),
    reads=st.integers(1, 5),
    response=st.integers(1, 9),
    turn=st.integers(1, 6),
)
def test_the_order_is_that_of_the_turns(
    count: int, streams: int, reads: int, response: int, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiodata.sources._bigquery_streams.TURN_ROWS", turn)
    with BigQueryServer({TABLE: numbers(count)}, response, most_streams=5) as server:
        found = ns(to_list(table(server, num_streams=streams, num_parallel_reads=reads)))
        assert found == in_turns(count, min(streams, count), reads, turn)


def test_all_streams_are_read_at_once(server: BigQueryServer) -> None:
    server.script("s0", Stalls(1))
    with hurried(table(server, num_streams=4)).iterate() as iterator:
        assert_same([next(iterator) for _ in range(5)], [row(n) for n in range(5)])
        wait_until(lambda: server.sent == 1 + 3 * 2)  # the others have 7 or 8 rows, and none of them has been asked for
    wait_until(lambda: server.reading == 0)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


# Arguments


def test_cardinality_spec_and_label(server: BigQueryServer) -> None:
    moment = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
    ds = table(
        server,
        ["n", "name"],
        "n > 5",
        num_streams=np.int8(3),
        num_parallel_reads=2,
        snapshot_time=moment,
        null_values={"n": 0},
        parent="other",
        name="mine",
    )
    assert ds.cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.element_spec is None
    assert "mine" in repr(ds)
    assert ds.plan.label == (
        "bigquery(project.data.table, columns=['n', 'name'], null_values={'n': 0}, row_restriction='n > 5', "
        "num_streams=3, num_parallel_reads=2, snapshot_time=2026-01-02T03:00:00+00:00)"
    )
    assert table(server).plan.label == "bigquery(project.data.table)"
    with pytest.raises(StateError, match="another pipeline"):
        ds.iterate(table(server).iterate().state_dict())


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"table": 5}, TypeError, "table must be text"),
    ({"table": "data.table"}, ValueError, "'project.dataset.table', not 'data.table'"),
    ({"table": "project..table"}, ValueError, "'project.dataset.table'"),
    ({"table": "`project.data.table`"}, ValueError, "'project.dataset.table'"),
    ({"table": "projects/p/datasets/d.d/tables.t"}, ValueError, "'project.dataset.table'"),
    ({"columns": "n"}, TypeError, "columns must be a list"),
    ({"columns": []}, ValueError, "columns must be one or more"),
    ({"row_restriction": b"n > 5"}, TypeError, "row_restriction must be text"),
    ({"parent": 1}, TypeError, "parent must be text"),
    ({"num_streams": 0}, ValueError, "num_streams must be at least 1"),
    ({"num_streams": 1.5}, TypeError, "num_streams must be an integer"),
    ({"num_parallel_reads": 0}, ValueError, "num_parallel_reads must be at least 1"),
    ({"snapshot_time": "now"}, TypeError, "snapshot_time must be a datetime"),
    ({"snapshot_time": dt.datetime(2026, 1, 1)}, ValueError, "snapshot_time must have a time zone"),
    ({"null_values": {"n": None}}, ValueError, "null_values gives None"),
    ({"client": 5}, TypeError, "client must be a plain function that gives a client, not int"),
    ({"client": collect}, TypeError, "client must be a plain function"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments_are_refused_at_the_call(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match="BigQueryDataset: ") as raised:
        BigQueryDataset(**{"table": TABLE, **arguments})
    assert message in str(raised.value)


def test_without_the_packages_the_call_says_what_to_install() -> None:
    code = """
import sys
for module in ("pyarrow", "google.cloud.bigquery_storage_v1"):
    sys.modules[module] = None
    import aiodata
    try:
        aiodata.BigQueryDataset("a.b.c")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.stdout.splitlines() == [
        "BigQueryDataset needs pyarrow: pip install 'aiodata-pipeline[bigquery]'",
        "BigQueryDataset needs google-cloud-bigquery-storage: pip install 'aiodata-pipeline[bigquery]'",
    ], done.stderr


def test_a_client_of_another_kind_is_refused() -> None:
    (error,) = outcomes(BigQueryDataset(TABLE, client=lambda: None))  # type: ignore[arg-type, return-value]
    assert str(error) == "BigQueryDataset: client must give a BigQueryReadAsyncClient, not NoneType"


def test_standard_credentials_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    (error,) = outcomes(BigQueryDataset(TABLE))
    assert type(error).__name__ == "DefaultCredentialsError"
    assert "none.json" in str(error)


# Faults


@pytest.mark.parametrize("code", RETRIED)
def test_what_may_pass_is_tried_again(code: str, server: BigQueryServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script(SESSION, Fails(code))
    server.script("s0", Fails(code), Fails(code), Fine())
    server.script("s1", Fails(code, after=1), Fails(code, after=0), Fails(code, after=1))
    found, counters = read_counted(hurried(table(server, num_streams=2)))
    assert_same(found, [row(n) for n in range(30)])
    assert (counters["retries"], counters["requests"]) == (6, 9)
    assert len(server.sessions) == 2
    assert server.clients == 1
    assert [each for each in server.reads if each[0] == "s0"] == [("s0", 0)] * 3
    assert len([each for each in server.reads if each[0] == "s1"]) == 4
    logged = [record.getMessage() for record in caplog.records if record.name == "aiodata"]
    assert len(logged) == 6
    assert {record.levelno for record in caplog.records if record.name == "aiodata"} == {logging.WARNING}
    start = "bigquery://project.data.table"
    assert logged[0] == f"{start}: {code}: as scripted; attempt 2 of 10 follows in 0.00 s"
    assert f"{start} stream s0, row 0: {code}: as scripted; attempt 3 of 10 follows in 0.00 s" in logged


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    faults=st.lists(
        st.tuples(st.sampled_from(["s0", "s1", "s2"]), st.sampled_from(RETRIED), st.integers(0, 4)), max_size=9
    ),
    response=st.integers(1, 7),
)
def test_no_row_is_lost_or_doubled(
    faults: list[tuple[str, str, int]], response: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiodata.sources._bigquery_streams.TURN_ROWS", 4)
    with BigQueryServer({TABLE: numbers(30)}, response) as server:
        for stream, code, after in faults:
            server.script(stream, Fails(code, after))
        found, _ = read_counted(hurried(table(server, num_streams=3), max_attempts=100))
        assert ns(found) == in_turns(30, 3, 3, 4)


@pytest.mark.parametrize("code", FINAL)
def test_what_will_not_pass_is_an_error_at_once(code: str, server: BigQueryServer) -> None:
    ds = table(server)
    for read in (outcomes, lambda ds: asyncio.run(outcomes_async(ds))):
        server.script("s0", Fails(code, after=2, message="no way"))
        *found, error = read(ds)
        assert isinstance(error, RemoteError)
        assert str(error) == f"bigquery://project.data.table stream s0, row {error.offset}: {code}: no way"
        assert error.attempts == 1
        assert ns(found) == list(range(error.offset or 0))
        at = f"bigquery://project.data.table stream s0 row {error.offset}"
        assert error.__notes__ == [f"in bigquery, element {error.offset}, from {at}"]
    assert len(server.reads) == 2
    server.script(SESSION, *[Fails(code, message="no way")] * 2)
    (error,) = outcomes(ds)
    assert str(error) == f"bigquery://project.data.table: {code}: no way"
    with pytest.raises(RemoteError):  # who leaves out bad rows does not want a lost table to look like an empty one
        to_list(ds.ignore_errors())


def test_mistakes_are_the_services_to_find(server: BigQueryServer) -> None:
    (error,) = outcomes(BigQueryDataset("project.data.none", client=server.client))
    assert str(error) == "bigquery://project.data.none: NOT_FOUND: Not found: Table project:data.none"
    for ds in (table(server, ["none"]), table(server, None, "soundex(name)"), table(server, ["name.part"])):
        (error,) = outcomes(ds)
        assert isinstance(error, RemoteError)
        assert "INVALID_ARGUMENT: request failed" in str(error)
    (error,) = outcomes(table(server, null_values={"x": 1}))
    assert isinstance(error, StructureError)
    assert "null_values names 'x', which is none of 'n', 'name'" in str(error)


def test_a_column_that_numpy_has_nothing_for_ends_the_rows() -> None:
    columns = pa.table({"n": [1], "span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with BigQueryServer({TABLE: columns}) as server:
        (error,) = outcomes(table(server))
        assert isinstance(error, StructureError)
        assert "column 'span' cannot be read" in str(error)
        assert_same(to_list(table(server, ["n"])), [{"n": np.int64(1)}])


def test_expired_credentials_are_renewed_once(server: BigQueryServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script(SESSION, Fails("UNAUTHENTICATED"))
    server.script("s0", Fails("UNAUTHENTICATED", after=1), Fails("UNAUTHENTICATED", after=2), Fine())
    found, counters = read_counted(table(server))
    assert_same(found, [row(n) for n in range(30)])
    assert (counters["retries"], counters["requests"], server.clients) == (3, 5, 4)
    assert sum("follows with new credentials" in record.getMessage() for record in caplog.records) == 3
    server.script("s0", Fails("UNAUTHENTICATED", after=1), Fails("UNAUTHENTICATED", message="who?"))
    *_, error = outcomes(table(server))
    assert isinstance(error, RemoteError)
    assert str(error).endswith("UNAUTHENTICATED: who? (tried 2 times)")
    server.script(SESSION, Fails("UNAUTHENTICATED"), Fails("UNAUTHENTICATED"))
    (error,) = outcomes(table(server))
    assert str(error) == "bigquery://project.data.table: UNAUTHENTICATED: as scripted (tried 2 times)"


def test_after_the_limit_it_is_an_error(server: BigQueryServer) -> None:
    server.script("s1", Fails("UNAVAILABLE", after=1), *[Fails("UNAVAILABLE", message="no")] * 4)
    with hurried(table(server, num_streams=2), max_attempts=3).iterate() as iterator:
        with pytest.raises(RemoteError) as raised:
            list(iterator)
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "bigquery"]
    error = raised.value
    assert isinstance(error, OSError)
    assert error.offset in (0, 5)  # a row that has been sent may be lost with the connection
    assert str(error) == f"bigquery://project.data.table stream s1, row {error.offset}: UNAVAILABLE: no (tried 3 times)"
    assert counters["retries"] == 2
    assert error.attempts == 3
    server.script(SESSION, *[Fails("UNAVAILABLE", message="no")] * 3)
    (error,) = outcomes(hurried(table(server), max_attempts=3))
    assert str(error) == "bigquery://project.data.table: UNAVAILABLE: no (tried 3 times)"


def test_attempts_are_counted_from_the_last_row_that_came(server: BigQueryServer) -> None:
    server.script("s0", *[Fails("UNAVAILABLE", after=2)] * 5)
    server.response_rows = 2
    found, counters = read_counted(hurried(table(server), max_attempts=3))
    assert ns(found) == list(range(30))
    assert counters["retries"] == 5


def test_the_service_says_how_long_to_wait(server: BigQueryServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script("s0", Fails("RESOURCE_EXHAUSTED", message="slow down", retry_seconds=0.25))
    begun = time.monotonic()
    assert ns(to_list(hurried(table(server)))) == list(range(30))
    assert time.monotonic() - begun >= 0.25
    (message,) = caplog.messages
    assert message.endswith("stream s0, row 0: RESOURCE_EXHAUSTED: slow down; attempt 2 of 10 follows in 0.25 s")
    server.script("s0", Fails("RESOURCE_EXHAUSTED", message="slow down", retry_seconds=3600))
    (error,) = outcomes(hurried(table(server)))
    assert "RESOURCE_EXHAUSTED: slow down, and asks to wait 3600 s; give_up_seconds (120) leaves" in str(error)


def test_silence_is_an_end_but_length_is_not(server: BigQueryServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script("s0", Stalls(2), Stalls(0))
    found, counters = read_counted(hurried(table(server, num_streams=2), idle_seconds=0.3))
    assert ns(found) == list(range(30))
    assert counters["retries"] == 2
    assert "stream s0, row 10: there was silence for 0.3 s; attempt 2 of 10" in caplog.messages[0]
    server.script(SESSION, Stalls())
    assert ns(to_list(hurried(table(server), idle_seconds=0.3))) == list(range(30))
    assert "bigquery://project.data.table: DEADLINE_EXCEEDED" in caplog.messages[2]
    server.script("s0", *[Stalls()] * 3)
    (error,) = outcomes(hurried(table(server), idle_seconds=0.1, max_attempts=3))
    assert str(error).endswith("stream s0, row 0: there was silence for 0.1 s (tried 3 times)")


def test_a_reader_that_takes_its_time_is_no_silence(server: BigQueryServer) -> None:
    with hurried(table(server), idle_seconds=0.2).iterate() as iterator:
        found = [next(iterator)]
        time.sleep(0.5)
        found += list(iterator)
        (counters,) = [one for one in iterator.statistics() if one["stage"] == "bigquery"]
    assert ns(found) == list(range(30))
    assert "retries" not in counters


def test_a_server_that_comes_back(short_turns: int) -> None:
    with BigQueryServer({TABLE: numbers(4000)}, response_rows=20) as server:
        with hurried(table(server, num_streams=2), first_wait_seconds=0.02).iterate() as iterator:
            found = [next(iterator) for _ in range(100)]
            server.stop()
            timer = threading.Timer(0.4, server.start)
            timer.start()
            found += list(iterator)
            timer.join()
        assert ns(found) == in_turns(4000, 2, 2, short_turns)


def test_a_server_that_stays_away() -> None:
    with BigQueryServer({TABLE: numbers(100_000)}) as server:
        with hurried(table(server, num_streams=2), first_wait_seconds=0.05, give_up_seconds=1).iterate() as iterator:
            next(iterator)
            server.stop()
            begun = time.monotonic()
            with pytest.raises(RemoteError, match=r"stream s\d, row \d+: UNAVAILABLE: .* \(tried \d+ times\)"):
                list(iterator)
            assert time.monotonic() - begun < 10
            assert list(iterator) == []
        (error,) = outcomes(hurried(table(server), give_up_seconds=0.2))
        assert "bigquery://project.data.table: UNAVAILABLE" in str(error)


DAMAGE: list[Callable[[bytes], bytes]] = [
    lambda data: data[:-40],
    lambda data: b"",
    lambda data: data[:60],
    lambda data: pa.record_batch({"n": [1], "name": ["a"]}).serialize().to_pybytes(),
]


@pytest.mark.parametrize("damage", DAMAGE, ids=["short", "empty", "head", "other"])
def test_a_damaged_response_is_an_error(damage: Callable[[bytes], bytes], server: BigQueryServer) -> None:
    server.damage = damage
    (error,) = outcomes(table(server))
    assert isinstance(error, CorruptRecordError)
    assert str(error).startswith("bigquery://project.data.table stream s0: a response ")


# Resume


def twice(server: BigQueryServer) -> Dataset[Any]:
    return table(server, num_streams=3, num_parallel_reads=2).repeat(2)


FORMS: dict[str, Callable[[BigQueryServer], Dataset[Any]]] = {
    "one stream": lambda server: table(server),
    "streams": lambda server: table(server, num_streams=4),
    "streams, two at once": lambda server: table(server, ["n"], "n != 9", num_streams=4, num_parallel_reads=2),
    "failing": lambda server: table(server, ["odd", "n"], num_streams=2),
    "loose": lambda server: table(server, ["odd", "n"], num_streams=2, null_values={"odd": -1}).batch(4),
    "epochs": twice,
    "shuffle": lambda server: table(server, num_streams=2).shuffle(7, seed=1),
    "prefetch": lambda server: table(server, num_streams=3).prefetch(5),
    "interleave": lambda server: Dataset.range(2).interleave(lambda n: table(server, num_streams=2).skip(n), 2, 3),
    "zip": lambda server: Dataset.zip(table(server), table(server, num_streams=2)),
}


@pytest.fixture
def odd_server(short_turns: int) -> Iterator[BigQueryServer]:
    odd = numbers(19).append_column("odd", pa.array([n if n % 5 else None for n in range(19)], pa.int64()))
    with BigQueryServer({TABLE: odd}, response_rows=3) as running:
        yield running


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("form", FORMS)
def test_restores_at_every_element(form: str, face: str, odd_server: BigQueryServer) -> None:
    make = partial(FORMS[form], odd_server)

    async def work() -> None:
        straight, states = await along(make(), face)
        assert len(straight) >= 5
        for number, state in enumerate(states):
            odd_server.response_rows = 2 + number % 4  # responses are not what they were
            found = await relay(make, face, state, ((0,), (1, 2))[number % 2])
            check_rest(f"restored before pull {number}", found, straight[number:])

    # The clients are the loop's, and the sync face has none, so `drive` may run both.
    drive(face, work())


def test_restoring_goes_on_in_the_same_session(server: BigQueryServer, short_turns: int) -> None:
    ds = table(server, num_streams=2)
    with ds.iterate() as iterator:
        start = iterator.state_dict()
        found = [next(iterator) for _ in range(7)]
        state = json.loads(json.dumps(iterator.state_dict()))
    server.reads.clear()
    with ds.iterate(state) as iterator:
        assert_same(found + list(iterator), to_list(ds))
    assert len(server.sessions) == 2
    assert sorted(server.reads[:2]) == [("s0", 4), ("s1", 0)]
    with ds.iterate(start) as iterator:
        list(iterator)
    assert len(server.sessions) == 3  # nothing had been read, so there was no session to go on in


def test_a_session_that_has_expired(server: BigQueryServer) -> None:
    ds = table(server)
    with ds.iterate() as iterator:
        next(iterator)
        state = iterator.state_dict()
        server.is_expired = True
        server.stop()  # so that what has not been sent has to be asked for
        server.start()
    with ds.iterate(state) as iterator, pytest.raises(StateError) as raised:
        next(iterator)
    assert "the session of the saved state has expired, some hours after it was made: FAILED_PRECONDITION: " in str(
        raised.value
    )
    assert "session expired at 2026" in str(raised.value)
    (error,) = outcomes(ds)
    assert isinstance(error, RemoteError)
    assert "session expired at 2026" in str(error)


def test_each_epoch_has_a_session_of_its_own(server: BigQueryServer) -> None:
    ds = table(server).repeat(2)
    with ds.iterate() as iterator:
        found = ns([next(iterator) for _ in range(30)])
        server.tables[TABLE] = numbers(3)
        found += ns(list(iterator))
    assert found == [*range(30), 0, 1, 2]
    assert len(server.sessions) == 2


def test_rows_that_a_session_has_lost_are_noticed(server: BigQueryServer) -> None:
    ds = table(server)
    with ds.iterate() as iterator:
        list(iterator)
        state = iterator.state_dict()
    server._streams = {name: rows.slice(0, 26) for name, rows in server._streams.items()}
    with ds.iterate(state) as iterator, pytest.raises(StateError, match="but now there are 1"):
        list(iterator)


def test_a_state_is_small() -> None:
    wide = pa.table({f"column {n}": [n] for n in range(400)})
    with BigQueryServer({TABLE: wide}) as server, table(server).iterate() as iterator:
        next(iterator)
        assert len(json.dumps(iterator.state_dict())) < 6000


def test_a_new_process_goes_on(server: BigQueryServer, tmp_path: Path) -> None:
    with table(server, num_streams=2).iterate() as iterator:
        found = [next(iterator) for _ in range(11)]
        (tmp_path / "state").write_text(json.dumps(iterator.state_dict()))
    code = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from aiodata import BigQueryDataset
from tests.servers.bigquery import BigQueryServer
server = BigQueryServer({{}})
server._port = {server._port}
ds = BigQueryDataset({TABLE!r}, client=server.client, num_streams=2)
state = json.load(open({str(tmp_path / "state")!r}))
with ds.iterate(state) as iterator:
    print(*(int(element["n"]) for element in iterator))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert ns(found) + list(map(int, done.stdout.split())) == list(range(30))


# The end


def test_leaving_early_ends_all_requests() -> None:
    with BigQueryServer({TABLE: numbers(50_000)}) as server:
        for ds in (
            table(server),
            table(server, num_streams=4).prefetch(2),
            table(server, num_streams=4).batch(7).repeat(),
        ):
            for _element in ds:
                break
            wait_until(lambda: server.reading == 0)


async def test_leaving_early_on_a_loop_ends_all_requests() -> None:
    with BigQueryServer({TABLE: numbers(50_000)}) as server:
        for ds in (table(server), table(server, num_streams=4), table(server, num_streams=4).map(lambda x: x)):
            async for _element in ds:
                break
            deadline = time.monotonic() + 20
            while server.reading:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.002)


async def test_closing_waits_until_nothing_is_open() -> None:
    with BigQueryServer({TABLE: numbers(50_000)}) as server:
        iterator = table(server, num_streams=4).iterate()
        await anext(iterator)
        tasks = asyncio.all_tasks()
        await iterator.aclose()
        assert [task for task in tasks - {asyncio.current_task()} if not task.done()] == []
        await asyncio.to_thread(wait_until, lambda: server.reading == 0)


async def test_cancelling_at_any_moment_leaves_nothing(server: BigQueryServer) -> None:
    server.script("s1", *[Stalls(1)] * 100)
    for turns in range(0, 60, 4):
        iterator = table(server, num_streams=2).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        pull.cancel()
        await asyncio.wait({pull})
        await iterator.aclose()
    await asyncio.to_thread(wait_until, lambda: server.reading == 0)


def test_a_loop_that_is_shut_down_with_an_open_iterator() -> None:
    kept: list[Iterator[Any]] = []
    with BigQueryServer({TABLE: numbers(50_000)}) as server:

        async def leave() -> None:
            iterator = table(server, num_streams=2).map(lambda element: element).iterate()
            kept.append(iterator)
            await anext(iterator)

        for _ in range(20):
            asyncio.run(leave())
        wait_until(lambda: server.reading == 0)


@pytest.mark.parametrize("call", [SESSION, "s0"])
def test_a_loop_that_ends_with_a_request_under_way_is_no_error_elsewhere(call: str, server: BigQueryServer) -> None:
    server.script(call, *[Stalls()] * 100)  # the server's own loop would log the error

    async def leave() -> None:
        iterator = table(server).iterate()
        pull = asyncio.ensure_future(anext(iterator))
        while len(server.sessions) + len(server.reads) <= before:
            await asyncio.sleep(0.001)
        await iterator.aclose()
        await asyncio.gather(pull, return_exceptions=True)

    for _ in range(40):
        before = len(server.sessions) + len(server.reads) + (call != SESSION)
        asyncio.run(leave())


async def test_a_stalled_stream_does_not_hold_the_loop(server: BigQueryServer) -> None:
    server.script("s0", Stalls())
    iterator = table(server).iterate()
    pull = asyncio.ensure_future(anext(iterator))
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert not pull.done()
    await iterator.aclose()
    assert isinstance((await asyncio.gather(pull, return_exceptions=True))[0], Exception)


def test_the_reader_sets_the_pace() -> None:
    blobs = pa.table({"n": range(400), "blob": [bytes(100_000)] * 400})
    with BigQueryServer({TABLE: blobs}, response_rows=10) as server, table(server).iterate() as iterator:
        next(iterator)
        time.sleep(0.5)
        assert server.sent < 20  # of 40, of 1 MB each
        assert len(list(iterator)) == 399


# Secrets


def test_what_makes_the_client_is_shown_nowhere(server: BigQueryServer, caplog: pytest.LogCaptureFixture) -> None:
    def client(token: str) -> Any:
        return server.client()

    made = partial(client, token="s3cret")
    ds = hurried(BigQueryDataset(TABLE, client=made, num_streams=2), max_attempts=2)
    server.script("s0", Fails("UNAVAILABLE", after=1), Fails("UNAUTHENTICATED"), Fails("PERMISSION_DENIED"))
    with ds.iterate() as iterator:
        with pytest.raises(RemoteError) as raised:
            list(iterator)
        state = iterator.state_dict()
    shown = [repr(ds), ds.plan.label, json.dumps(state), str(raised.value), *raised.value.__notes__, *caplog.messages]
    assert len(caplog.messages) == 2
    assert not any("s3cret" in text for text in shown)
    with pytest.raises(TypeError) as refused:
        BigQueryDataset(TABLE, client={"token": "s3cret"})  # type: ignore[arg-type]
    assert "s3cret" not in str(refused.value)


def test_numbers_of_both_faces(server: BigQueryServer) -> None:
    assert ns(asyncio.run(collect(table(server, num_streams=2)))) == list(range(30))
    assert [element["n"] for element in table(server)] == i64(*range(30))
