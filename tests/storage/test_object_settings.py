"""Where `ObjectStorage` finds credentials and stores, and what it does when credentials run out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset, Options, StorageOptions, TextLineDataset
from aiodata.storage import ObjectStorage
from aiodata.storage.kinds.object_settings import parted
from aiodata.storage.transfer.upload import AtomicUpload
from aiodata.whole_file import read_file
from tests.servers.http import HttpServer
from tests.servers.http_faults import IgnoreRange, Status
from tests.servers.proxy import Fault, Proxy, Say
from tests.servers.s3 import BUCKET, KEY, OTHER_KEY, OTHER_SECRET, REGION, SECRET, S3Server
from tests.storage.conftest import counted
from tests.storage.scripted import registered

pytestmark = pytest.mark.usefixtures("no_standard_places")
LINES = [b"%06d" % number + b"." * 93 for number in range(10_000)]
KEYS = [
    {"access_key_id": KEY, "secret_access_key": SECRET, "token": None, "expires_at": None},
    {"access_key_id": OTHER_KEY, "secret_access_key": OTHER_SECRET, "token": None, "expires_at": None},
]


def refusing(key: str, after: int, code: str) -> Any:
    """Give a judge that refuses requests by a key, but for some."""
    left = [after]

    def judge(head: str) -> Fault | None:
        if key not in head:
            return None
        left[0] -= 1
        status = "400 Bad Request" if code == "ExpiredToken" else "403 Forbidden"
        return Say(status, f"<Error><Code>{code}</Code></Error>") if left[0] < 0 else None

    return judge


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_provider_is_asked_again_when_its_keys_are_refused(
    s3: S3Server, proxy: Proxy, folder: str, code: str, kind: str
) -> None:
    url = s3.put(f"{folder}/lines", b"\n".join(LINES))
    asked: list[dict[str, Any]] = []

    def provider() -> dict[str, Any]:
        asked.append(KEYS[len(asked)])
        return asked[-1]

    async def provide() -> dict[str, Any]:
        return provider()

    proxy.judge = refusing(KEY, 3, code)
    settings: dict[str, Any] = {
        "endpoint": proxy.url,
        "region": REGION,
        "credential_provider": provide if kind == "async" else provider,
    }
    options = Options(storage=StorageOptions(chunk_bytes=100_000, read_ahead_bytes=0))
    with (
        registered("s3", partial(ObjectStorage, **settings)),
        TextLineDataset(url).with_options(options).iterate() as iterator,
    ):
        assert list(iterator) == LINES
        assert (counted(iterator, "requests"), counted(iterator, "retries")) == (11, 1)
    assert asked == KEYS


def test_many_requests_that_are_refused_ask_once(s3: S3Server, proxy: Proxy, folder: str) -> None:
    urls = [s3.put(f"{folder}/{number}", b"%d" % number) for number in range(30)]
    asked: list[dict[str, Any]] = []

    def provider() -> dict[str, Any]:
        asked.append(KEYS[min(len(asked), 1)])
        return asked[-1]

    proxy.judge = refusing(KEY, 0, "InvalidAccessKeyId")
    settings: dict[str, Any] = {"endpoint": proxy.url, "region": REGION, "credential_provider": provider}
    with registered("s3", partial(ObjectStorage, **settings)):
        files = Dataset.from_tensor_slices(urls).interleave(TextLineDataset, cycle_length=30, num_parallel_calls=30)
        with files.iterate() as iterator:
            assert sorted(map(int, iterator)) == list(range(30))
            assert 1 <= counted(iterator, "retries") <= 30
    assert len(asked) == 2


def test_keys_that_stay_refused_are_asked_for_once_more(s3: S3Server, proxy: Proxy, folder: str) -> None:
    url = s3.put(f"{folder}/x", b"x")
    asked = []

    def provider() -> dict[str, Any]:
        asked.append(1)
        return {**KEYS[0], "secret_access_key": "mistaken"}

    settings: dict[str, Any] = {"endpoint": proxy.url, "region": REGION, "credential_provider": provider}
    with registered("s3", partial(ObjectStorage, **settings)):
        with pytest.raises(PermissionError, match="SignatureDoesNotMatch"):
            read_file(url)
        assert (len(asked), len(proxy.requests)) == (2, 2)
        proxy.judge = lambda head: Say("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>")
        with pytest.raises(PermissionError, match="AccessDenied"):
            read_file(url)
        assert len(proxy.requests) == 3  # the keys are good, and do not permit it


def test_a_provider_that_fails(s3: S3Server, proxy: Proxy) -> None:
    def provider() -> dict[str, Any]:
        raise KeyError(SECRET)

    settings: dict[str, Any] = {"endpoint": proxy.url, "region": REGION, "credential_provider": provider}
    with (
        registered("s3", partial(ObjectStorage, **settings)),
        pytest.raises(PermissionError, match="the credential provider failed: KeyError") as caught,
    ):
        read_file(f"s3://{BUCKET}/x")
    assert SECRET not in str(caught.value)
    assert proxy.requests == []


def test_the_environment(s3: S3Server, proxy: Proxy, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = s3.put(f"{folder}/x", b"x")
    for name, value in {
        "AWS_ENDPOINT_URL": proxy.url,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }.items():
        monkeypatch.setenv(name, value)
    with registered("s3", ObjectStorage):
        assert read_file(url) == b"x"
        assert read_file(url.replace("s3:", "s3a:")) == b"x"


def files_of_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".aws"
    folder.mkdir(parents=True)
    (folder / "credentials").write_text(
        f"[default]\naws_access_key_id = none\naws_secret_access_key = none\n"
        f"[work]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    (folder / "config").write_text(f"[profile work]\nregion = {REGION}\n")
    monkeypatch.setenv("AWS_PROFILE", "work")


def test_files_and_profiles(
    s3: S3Server, proxy: Proxy, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("boto3")
    url = s3.put(f"{folder}/x", b"x")
    files_of_aws(monkeypatch, tmp_path)
    with registered("s3", partial(ObjectStorage, endpoint=proxy.url)):
        assert read_file(url) == b"x"
        monkeypatch.setenv("AWS_PROFILE", "missing")
        with pytest.raises(PermissionError, match="AWS's files have no credentials: ProfileNotFound"):
            read_file(url)
        monkeypatch.delenv("AWS_PROFILE")
        with pytest.raises(PermissionError, match="403 Forbidden"):
            read_file(url)  # by the default profile's


def test_files_need_boto3(proxy: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files_of_aws(monkeypatch, tmp_path)
    monkeypatch.delitem(sys.modules, "obstore.auth.boto3", raising=False)
    monkeypatch.setitem(sys.modules, "boto3", None)
    with (
        registered("s3", partial(ObjectStorage, endpoint=proxy.url)),
        pytest.raises(ImportError, match=r"AWS's files needs boto3: pip install 'aiodata-pipeline\[aws\]'"),
    ):
        read_file(f"s3://{BUCKET}/x")


def test_the_service_of_a_container(
    s3: S3Server, proxy: Proxy, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, web: HttpServer
) -> None:
    url = s3.put(f"{folder}/x", b"x")
    web.files["/keys"] = json.dumps(
        {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "", "Expiration": "2099-01-01T00:00:00Z"}
    ).encode()
    (tmp_path / "token").write_text("of the container")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", web.url + "/keys")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    with registered("s3", partial(ObjectStorage, endpoint=proxy.url, region=REGION)):
        assert read_file(url) == b"x"


def test_no_credentials_at_all(proxy: Proxy) -> None:
    with (
        registered("s3", partial(ObjectStorage, endpoint=proxy.url, region=REGION)),
        pytest.raises(PermissionError, match="there are no credentials in any of the standard places"),
    ):
        read_file(f"s3://{BUCKET}/x")
    assert proxy.requests == []


@pytest.fixture
def web(obstore_started: None) -> Iterator[HttpServer]:
    with HttpServer() as server:
        server.last_modified = "Mon, 30 Nov 2026 07:00:00 GMT"
        yield server


def stores(web: HttpServer) -> dict[str, tuple[str, dict[str, Any]]]:
    """Give what reads from the web server by each store's protocol: a GET."""
    key = {"gcs_base_url": web.url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    google = {"service_account_key": json.dumps(key), "client_options": {"allow_http": True}}
    azure = {"endpoint": web.url, "skip_signature": True}
    return {
        "s3://bucket": ("s3", {"endpoint": web.url, "skip_signature": True, "region": REGION}),
        "gs://bucket": ("gs", google),
        "az://bucket": ("az", {**azure, "account_name": "account"}),
        "abfss://bucket@account.dfs.core.windows.net": ("abfss", azure),
    }


@pytest.mark.parametrize(
    "start", ["s3://bucket", "gs://bucket", "az://bucket", "abfss://bucket@account.dfs.core.windows.net"]
)
def test_every_store(web: HttpServer, start: str) -> None:
    scheme, settings = stores(web)[start]
    web.files |= {"/bucket/a folder/lines%": b"\n".join(LINES), "/bucket/empty": b""}
    options = Options(storage=StorageOptions(chunk_bytes=300_000, first_wait_seconds=0.01))
    web.script("/bucket/a folder/lines%", [Status(503), IgnoreRange(), Status(500)])
    with registered(scheme, partial(ObjectStorage, **settings)):
        lines = TextLineDataset(f"{start}/a folder/lines%").with_options(options)
        with lines.iterate() as iterator:
            assert list(iterator) == LINES
        assert list(lines) == LINES
        assert read_file(f"{start}/empty") == b""
        with pytest.raises(FileNotFoundError, match="404 Not Found"):
            read_file(f"{start}/missing")
        assert list(Dataset.list_files(f"{start}/empty")) == [f"{start}/empty".encode()]
        upload = AtomicUpload(f"{start}/new")
        upload.file.write(b"abc")
        upload.commit()
        assert read_file(f"{start}/new") == web.files["/bucket/new"] == b"abc"


def test_a_server_without_ranges_is_read_as_a_whole(web: HttpServer) -> None:
    web.ranges = False
    web.files["/bucket/lines"] = b"\n".join(LINES)
    scheme, settings = stores(web)["s3://bucket"]
    with registered(scheme, partial(ObjectStorage, **settings)):
        dataset = TextLineDataset("s3://bucket/lines")
        with dataset.iterate() as iterator:
            assert [next(iterator) for _ in range(6000)] == LINES[:6000]
            state = iterator.state_dict()
        with dataset.iterate() as iterator:
            iterator.load_state_dict(state)
            assert list(iterator) == LINES[6000:]


def test_buckets_and_keys_of_urls() -> None:
    assert parted("s3://b/k/x y%20?#") == ("s3://b/", "k/x y%20?#")
    assert parted("abfss://c@a.dfs.core.windows.net/k") == ("abfss://c@a.dfs.core.windows.net/", "k")
    for url in ("s3://b", "s3:///k", "s3://b/"):
        with pytest.raises(ValueError, match="the URL of an object is s3://bucket/key"):
            parted(url)
