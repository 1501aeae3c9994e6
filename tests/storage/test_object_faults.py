"""What goes wrong between `ObjectStorage` and a real S3 server."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import threading
import time
from functools import partial
from typing import Any

import pytest

from aiodata import Options, StorageOptions, TextLineDataset
from aiodata.errors import RemoteError
from aiodata.storage import ObjectStorage, Trouble
from aiodata.storage.kinds.object_faults import fault
from aiodata.storage.kinds.object_upload import PART_BYTES
from aiodata.storage.transfer.upload import AtomicUpload
from aiodata.whole_file import read_file
from tests.servers.proxy import Break, Fault, Proxy, Say
from tests.servers.s3 import BUCKET, KEY, SECRET, S3Server
from tests.storage.conftest import counted
from tests.storage.scripted import registered

pytestmark = pytest.mark.usefixtures("no_standard_places")
LINES = [b"%06d" % number + b"." * 93 for number in range(10_000)]
SIZE = 1_000_000


def quick(**limits: Any) -> Options:
    return Options(storage=StorageOptions(**{"first_wait_seconds": 0.01, "max_wait_seconds": 0.02, **limits}))


def xml(code: str) -> str:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{SECRET}</Message></Error>"


FAULTS: dict[str, list[Fault]] = {
    "a reset before the answer": [Break()],
    "a close before the answer": [Break(how="close")],
    "a reset in the body": [Break(500_000)],
    "a short body": [Break(500_000, "close")],
    "a short body twice": [Break(500_000, "close"), Break(300_000, "close")],
    "a body without an end": [Break(SIZE, "close")],
    "429 twice": [Say("429 Too Many Requests"), Say("429 Too Many Requests")],
    "500": [Say("500 Internal Server Error", xml("InternalError"))],
    "502": [Say("502 Bad Gateway", "<html>")],
    "503": [Say("503 Service Unavailable", xml("SlowDown"))],
    "504": [Say("504 Gateway Timeout")],
    "400 for a server that has waited": [Say("400 Bad Request", xml("RequestTimeout"))],
    "all kinds": [Say("503 Slow Down"), Break(), Break(400_000), Break(200_000, "close"), Say("500 No")],
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_may_pass_is_waited_out(
    s3: S3Server, proxy: Proxy, folder: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    proxy.script(FAULTS[kind])
    with TextLineDataset(url).with_options(quick()).iterate() as iterator:
        assert list(iterator) == LINES
        assert counted(iterator, "retries") == len(FAULTS[kind])
        assert counted(iterator, "requests") == len(proxy.ranges("lines")) == len(FAULTS[kind]) + 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * len(FAULTS[kind])
    assert all(url in record.message and "\n" not in record.message for record in caplog.records)
    assert SECRET not in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(("at", "least"), [(500_000, 350_000), (990_000, 800_000)])
def test_reading_goes_on_where_it_was_cut(s3: S3Server, proxy: Proxy, folder: str, at: int, least: int) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    proxy.script([Break(at, "close")])
    assert list(TextLineDataset(url).with_options(quick())) == LINES
    again = int(proxy.ranges("lines")[1].partition("-")[0])
    assert least < again <= at


@pytest.mark.parametrize("at", [0, 500_000])
def test_silence_is_not_waited_for(s3: S3Server, proxy: Proxy, folder: str, at: int) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    proxy.script([Break(at, "hold")])
    with TextLineDataset(url).with_options(quick(idle_seconds=0.3)).iterate() as iterator:
        assert list(iterator) == LINES
        assert counted(iterator, "retries") == 1
    proxy.wait(lambda: not proxy.open_connections)


def test_a_slow_answer_is_no_silence(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    proxy.latency_seconds = 0.3
    with TextLineDataset(url).with_options(quick(idle_seconds=5)).iterate() as iterator:
        assert list(iterator) == LINES
        assert counted(iterator, "retries") == 0


def test_trouble_that_does_not_pass_ends_at_the_limit(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    proxy.script([Break(500_000, "close"), *[Say("503 Service Unavailable", xml("SlowDown"))] * 2])
    with TextLineDataset(url).with_options(quick(max_attempts=3)).iterate() as iterator:
        with pytest.raises(RemoteError) as caught:
            list(iterator)
        assert counted(iterator, "requests") == 3
    assert str(caught.value).endswith("the server answered 503 Service Unavailable (SlowDown) (tried 3 times)")
    assert caught.value.url == url
    assert caught.value.offset is not None
    assert 350_000 < caught.value.offset <= 500_000


def test_a_server_that_comes_back(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    dataset = TextLineDataset(url).with_options(quick(chunk_bytes=100_000, read_ahead_bytes=0, max_wait_seconds=0.2))
    found = []
    with dataset.iterate() as iterator:
        for line in iterator:
            found.append(line)
            if len(found) == 3000:
                proxy.stop()
                back = threading.Timer(0.5, proxy.start)
                back.start()
        back.join()
        assert counted(iterator, "retries") > 0
    assert found == LINES


def test_a_server_that_stays_away(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    options = quick(chunk_bytes=100_000, read_ahead_bytes=0, give_up_seconds=0.5, max_attempts=1000)
    with TextLineDataset(url).with_options(options).iterate() as iterator:
        found = [next(iterator) for _ in range(3000)]
        proxy.stop()
        before = time.monotonic()
        with pytest.raises(RemoteError, match=r"error sending request \(Connection refused\).*\(tried \d+ times\)"):
            found.extend(iterator)
        assert time.monotonic() - before < 2
    assert found == LINES[: len(found)]
    assert proxy.open_connections == 0


@pytest.mark.slow
def test_a_server_that_is_killed_and_started_again(obstore_started: None) -> None:
    with S3Server() as server, registered("s3", partial(ObjectStorage, **server.settings)):
        url = server.put("lines", b"\n".join(LINES))
        dataset = TextLineDataset(url).with_options(quick(chunk_bytes=100_000, read_ahead_bytes=0, max_attempts=1000))
        found = []
        with dataset.iterate() as iterator:
            for line in iterator:
                found.append(line)
                if len(found) == 3000:
                    server.stop()
                    again = threading.Thread(target=server.start)
                    again.start()
            again.join()
            assert counted(iterator, "retries") > 0
        assert found == LINES


@pytest.mark.parametrize("wrong", ["secret_access_key", "access_key_id"])
def test_wrong_credentials_are_not_tried_again(s3: S3Server, proxy: Proxy, wrong: str, folder: str) -> None:
    url = s3.put(f"{folder}/lines", b"a")
    settings: dict[str, Any] = {**s3.settings, "endpoint": proxy.url, wrong: "mistaken"}
    with registered("s3", partial(ObjectStorage, **settings)), TextLineDataset(url).iterate() as iterator:
        with pytest.raises(PermissionError, match="403 Forbidden") as caught:
            list(iterator)
        assert (counted(iterator, "requests"), counted(iterator, "retries")) == (1, 0)
    assert len(proxy.requests) == 1
    assert "mistaken" not in str(caught.value)
    assert KEY not in str(caught.value)


async def test_a_wrong_setting_is_named(s3: S3Server) -> None:
    endpoint: dict[str, Any] = {"endpoint": s3.url, "region": "us-east-1", "skip_signature": True}
    with pytest.raises(RemoteError, match=r"needs client_options=\{'allow_http': True\}"):
        await ObjectStorage(client_options={"allow_http": False}, **endpoint).info(f"s3://{BUCKET}/x")
    with pytest.raises(ValueError, match=r"ObjectStorage: Configuration key: 'nonsense' is not valid for store 'S3'"):
        await ObjectStorage(nonsense=1).info(f"s3://{BUCKET}/x")
    with pytest.raises(ValueError, match=r"s3://\*\*\*@bucket/x: credentials are not taken from URLs"):
        await ObjectStorage().info("s3://key:secret@bucket/x")


async def test_what_else_comes_back_is_permanent(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/x", b"abc")
    for said, match in [
        (Say("400 Bad Request", xml("InvalidRequest")), r"400 Bad Request \(InvalidRequest\)"),
        (Say("301 Moved Permanently", xml("PermanentRedirect")), "redirect without LOCATION"),
        (Say("412 Precondition Failed"), "412 Precondition Failed"),
        (Say("206 Partial Content"), "header"),
    ]:
        proxy.script([said])
        with pytest.raises(RemoteError, match=match) as caught:
            await asyncio.to_thread(read_file, url)
        assert "\n" not in str(caught.value)
        assert caught.value.attempts == 1


def test_a_refusal_behind_the_end_of_an_object(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/empty", b"")
    proxy.script([Say("403 Forbidden")], "HEAD")
    with pytest.raises(PermissionError, match="403 Forbidden"):
        read_file(url)


def test_errors_that_are_no_store_s_are_themselves() -> None:
    for error in (Trouble("x"), RemoteError("x", "s3://b/x"), ImportError("x")):
        assert fault(error, "s3://b/x") is error


LIMITS = StorageOptions(
    max_attempts=2, first_wait_seconds=0.01, max_wait_seconds=0.02, give_up_seconds=0.2, idle_seconds=0.2
)


@pytest.mark.parametrize("parts", [0, 3])
def test_an_upload_to_a_silent_server_ends_at_the_limits(s3: S3Server, proxy: Proxy, folder: str, parts: int) -> None:
    upload = AtomicUpload(f"s3://{BUCKET}/{folder}/new", LIMITS)
    proxy.judge = lambda head: Break(how="hold") if head.startswith("PUT") else None
    upload.file.write(bytes(parts * PART_BYTES + 1))
    begun = time.monotonic()
    with pytest.raises(RemoteError):
        upload.commit()
    assert time.monotonic() - begun < 4
    proxy.wait(lambda: not s3.uploads())


def test_parts_are_repeated_as_often_as_the_limits_say(s3: S3Server, proxy: Proxy, folder: str) -> None:
    upload = AtomicUpload(f"s3://{BUCKET}/{folder}/new", dataclasses.replace(LIMITS, idle_seconds=2))
    proxy.judge = lambda head: Say("503 Slow Down") if head.startswith("PUT") else None
    upload.file.write(bytes(2 * PART_BYTES))
    with pytest.raises(RemoteError, match=r"503 Service Unavailable.*tried 2 times") as caught:
        upload.commit()
    assert caught.value.attempts == 2
    assert caught.value.offset in (PART_BYTES, 2 * PART_BYTES)
    assert sum(head.startswith("PUT") for head in proxy.requests) <= 4
    assert s3.uploads() == []


def test_the_failure_of_a_part_is_told_and_not_that_of_giving_up(
    s3: S3Server, proxy: Proxy, folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    upload = AtomicUpload(f"s3://{BUCKET}/{folder}/new", dataclasses.replace(LIMITS, idle_seconds=2))
    proxy.judge = lambda head: Break() if head.startswith(("PUT", "DELETE")) else None
    upload.file.write(bytes(2 * PART_BYTES))
    with pytest.raises(RemoteError, match="a part could not be sent") as caught:
        upload.commit()
    assert "DELETE" not in str(caught.value)
    assert "parts of an upload may be left" in caplog.text
    s3.give_up()
