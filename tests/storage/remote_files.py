"""What the tests of remote files read, and how."""

from __future__ import annotations

import gzip
import io
import json
import logging
import tarfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from aiodata import (
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    Options,
    StorageOptions,
    TarDataset,
    TextLineDataset,
    TFRecordDataset,
)
from aiodata.formats.tfrecord import frame

if TYPE_CHECKING:
    import pytest

    from tests.servers.http import HttpServer

LINES = [b"line %d %s" % (number, b"x" * (number % 17)) for number in range(40)]
TEXT = b"\n".join(LINES) + b"\n"


def tar() -> bytes:
    """Make an archive of eight samples."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number in range(8):
            for name in (f"{number}.txt", f"{number}.bin"):
                member = tarfile.TarInfo(name)
                member.size = 30 * number
                archive.addfile(member, io.BytesIO(bytes([number]) * member.size))
    return buffer.getvalue()


def records() -> bytes:
    """Make a file of TFRecords."""
    return b"".join(map(frame, LINES))


READERS: dict[str, tuple[Callable[[], bytes], Callable[..., Dataset[Any]]]] = {
    "text": (lambda: TEXT, TextLineDataset),
    "fixed": (lambda: TEXT[:600], lambda path, **how: FixedLengthRecordDataset(path, 12, **how)),
    "csv": (
        lambda: b"".join(b"%d,%r\n" % (number, number / 7) for number in range(40)),
        lambda path, **how: CsvDataset(path, [0, 0.0], **how),
    ),
    "json": (
        lambda: b"".join(json.dumps({"a": number}).encode() + b"\n" for number in range(40)),
        JsonLinesDataset,
    ),
    "tar": (tar, TarDataset),
    "records": (records, TFRecordDataset),
}
"""What makes a file, and what reads it."""
if find_spec("google_crc32c") is None:
    del READERS["records"]
KINDS = [(name, compression) for name in READERS for compression in ("", "GZIP")]


def made(name: str, compression: str) -> bytes:
    """Make a file."""
    data = READERS[name][0]()
    return gzip.compress(data, mtime=0) if compression else data


def read(name: str, compression: str, path: Any) -> Dataset[Any]:
    """Read it."""
    return READERS[name][1](path, compression_type=compression)


def limited(dataset: Dataset[Any], **limits: Any) -> Dataset[Any]:
    """Have a pipeline read with limits; it does not wait for long unless told so."""
    return dataset.with_options(Options(storage=quick(**limits)))


def quick(**limits: Any) -> StorageOptions:
    """Give limits that do not wait for long."""
    return StorageOptions(**{"first_wait_seconds": 0.001, "max_wait_seconds": 0.005, **limits})


def lines_of(url: str, **limits: Any) -> Dataset[bytes]:
    """Read lines."""
    return limited(TextLineDataset(url), **limits)


def counted(iterator: Any) -> tuple[int, int]:
    """Give the number of requests and that of retries."""
    stages = iterator.statistics()
    return sum(stage.get("requests", 0) for stage in stages), sum(stage.get("retries", 0) for stage in stages)


def read_all(dataset: Dataset[Any]) -> tuple[list[Any], int, int]:
    """Give all elements, the number of requests and that of retries."""
    with dataset.iterate() as iterator:
        elements = list(iterator)
        return elements, *counted(iterator)


def assert_heals(
    server: HttpServer, faults: list[Any], retries: int, caplog: pytest.LogCaptureFixture, **how: Any
) -> None:
    """Read through faults: all lines, and as many requests and lines of the log as there were faults."""
    caplog.set_level(logging.WARNING, "aiodata")
    server.script("/a", faults)
    elements, requests, counted_retries = read_all(lines_of(server.url + "/a", **how))
    assert elements == LINES
    assert (requests, counted_retries) == (retries + 1, retries)
    assert requests == len(server.requests)
    assert not server.scripted("/a")
    logged = [record for record in caplog.records if record.name == "aiodata"]
    assert len(logged) == retries
    assert all(record.message.startswith(server.url + "/a, byte ") for record in logged)
