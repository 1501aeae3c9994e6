"""`BigQueryDataset`: the rows of BigQuery tables."""

from __future__ import annotations

import datetime as dt
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from aiodata.checks import check_integer
from aiodata.dataset import Dataset
from aiodata.engine.plan import Plan
from aiodata.extras import load
from aiodata.sources._queries import shown
from aiodata.sources._tables import check_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadAsyncClient

__all__ = ["BigQueryDataset"]


class BigQueryDataset(Dataset[dict[str, Any]]):
    """The rows of a BigQuery table: a dict of the chosen columns' values for each.

    They come from the Storage Read API as Arrow record batches. What a value becomes is as in `ParquetDataset`, and so
    is what `null_values` is for: INT64 and BOOL that are NULL are errors in their rows' places else. NUMERIC and
    BIGNUMERIC are `decimal.Decimal`, DATE is `datetime64[D]`, DATETIME and TIMESTAMP are `datetime64[us]`, the latter
    in UTC, TIME is `timedelta64[us]`, JSON and GEOGRAPHY are text, STRUCTs dicts, ARRAYs arrays; an INTERVAL has to be
    left out.

    An iteration makes a read session: a view of the table as it is then, in one or more streams, whose rows are in no
    order that SQL would know. With several streams the first 1,024 rows of each are given in turn, then the next 1,024,
    and so on. The order of a session is always the same, also when requests have to be repeated.

    A state holds the session, and the next row of each stream. Restoring goes on in that session, from less than 1,024
    rows before the saved place; BigQuery keeps it for 6 hours. A new epoch makes a new session.

    A request that fails in a way that may pass, or is silent for too long, is repeated from the first row that is
    missing, as `Options.storage` says of attempts and waits; each time is logged, and counted in the statistics of
    `bigquery`. A `row_restriction` that leaves few rows of a large table may need a larger `idle_seconds`. Where
    credentials have expired a new client is made, once.

    Memory: for each stream that is being read one response, some MiB as a rule and 128 MiB at most, and two pieces of
    about 2 MiB that have been turned into rows, beside what gRPC takes in ahead by its flow control.

    Args:
        table: The table, as `"project.dataset.table"`.
        columns: Names of the columns to read; a field of a STRUCT is `"outer.inner"`. None reads all.
        row_restriction: Which rows to read, as in the WHERE of a query: `"x > 5 AND name IS NOT NULL"`.
        parent: The project that pays for reading; None means the table's.
        num_streams: The most streams that the session may have; the service may make fewer.
        num_parallel_reads: Streams to read at once, the next one following when one ends; None means all.
        snapshot_time: Read the table as it was then, a time with a time zone; None means now.
        null_values: What stands for nulls, as in `ParquetDataset`.
        name: A name for the stage, shown in `repr`.
        client: A function that gives a `BigQueryReadAsyncClient`, for credentials or an endpoint of your own. It is
            called while the pipeline's event loop runs, by each iteration, and again if credentials have expired; what
            it gives is closed at the end. None takes the standard credentials, as `google.auth.default` finds them.
            Credentials are in no `repr`, error, log or state.

    Raises:
        ImportError: google-cloud-bigquery-storage or pyarrow is not installed; both come with the extra `bigquery`.
        TypeError, ValueError: An argument is not what it must be.
        RemoteError: While iterating: the service refuses (there is no such table or column, no permission, a wrong
            restriction), or cannot be reached, also not by trying again. It ends the iteration, `ignore_errors` or not;
            a state from before it goes on at the row that could not be read.
        StateError: While iterating: the session of a saved state has expired.
        CorruptRecordError: While iterating: a response cannot be read, which ends the iteration.
        StructureError: While iterating: the table has a column that numpy has nothing for, which ends the iteration. Or
            a null, see above; the next row follows.

    >>> import aiodata
    >>> ds = aiodata.BigQueryDataset("bigquery-public-data.usa_names.usa_1910_2013", ["name", "number"], "year = 2000")
    >>> ds.batch(1000)
    <Dataset
    bigquery(bigquery-public-data.usa_names.usa_1910_2013, columns=['name', 'number'], row_restriction='year = 2000'): ?
    batch(1000): ?>

    Source: `tfio.bigquery.BigQueryClient.read_session`; tf.data itself has no such reader.
    """

    __slots__ = ()

    def __init__(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        row_restriction: str | None = None,
        *,
        parent: str | None = None,
        num_streams: int = 1,
        num_parallel_reads: int | None = None,
        snapshot_time: dt.datetime | None = None,
        null_values: Mapping[str, Any] | None = None,
        name: str | None = None,
        client: Callable[[], BigQueryReadAsyncClient] | None = None,
    ) -> None:
        method = "BigQueryDataset"
        load("google.cloud.bigquery_storage_v1", "bigquery", method, "google-cloud-bigquery-storage")
        load("pyarrow", "bigquery", method)
        # What talks to the service needs much of the standard library, which costs other programs nothing so.
        from aiodata.sources._bigquery_service import Reading
        from aiodata.sources._bigquery_streams import read_table

        project, dataset, found = _check_table(table)
        _check_options(row_restriction, parent, snapshot_time, client)
        request = check_request(columns, None, null_values, method)
        streams = check_integer(num_streams, method, "num_streams", 1)
        reads = num_parallel_reads
        if reads is not None:
            reads = check_integer(reads, method, "num_parallel_reads", 1)
        reading = Reading(
            f"bigquery://{table}",
            f"projects/{project}/datasets/{dataset}/tables/{found}",
            f"projects/{(parent or project).removeprefix('projects/')}",
            streams,
            request.columns,
            row_restriction or "",
            snapshot_time,
            request.null_values,
            reads,
            client,
        )
        facts = [
            table,
            str(request),
            f"row_restriction={shown(row_restriction)!r}" if row_restriction else "",
            f"num_streams={streams}" if streams > 1 else "",
            f"num_parallel_reads={reads}" if reads is not None else "",
            f"snapshot_time={snapshot_time.astimezone(dt.UTC).isoformat()}" if snapshot_time else "",
        ]
        detail = ", ".join(filter(None, facts))
        super().__init__(Plan("bigquery", partial(read_table, reading=reading), detail=detail, waits=True, title=name))


def _check_table(table: Any) -> list[str]:
    """Give project, dataset and table; a project's name may have a dot itself (`"example.com:project"`)."""
    if not isinstance(table, str):
        raise TypeError(f"BigQueryDataset: table must be text, not {type(table).__name__}")
    parts = table.rsplit(".", 2)
    if len(parts) < 3 or not all(parts) or not set("/`'\" ").isdisjoint(table):
        raise ValueError(f"BigQueryDataset: table must be 'project.dataset.table', not {table!r:.80}")
    return parts


def _check_options(row_restriction: Any, parent: Any, snapshot_time: Any, client: Any) -> None:
    method = "BigQueryDataset"
    for argument, text in (("row_restriction", row_restriction), ("parent", parent)):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{method}: {argument} must be text, not {type(text).__name__}")
    if snapshot_time is not None:
        if not isinstance(snapshot_time, dt.datetime):
            raise TypeError(f"{method}: snapshot_time must be a datetime, not {type(snapshot_time).__name__}")
        if snapshot_time.tzinfo is None:
            raise ValueError(f"{method}: snapshot_time must have a time zone, unlike {snapshot_time.isoformat()}")
    if client is not None and (not callable(client) or iscoroutinefunction(client)):
        # Not shown in full: it may be what has the credentials.
        raise TypeError(f"{method}: client must be a plain function that gives a client, not {type(client).__name__}")
