"""What the tests of object stores share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.servers.proxy import Proxy
    from tests.servers.s3 import S3Server


@pytest.fixture
def no_standard_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide this machine's credentials, and the address of the service of clouds that gives some."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def proxy(s3: S3Server, no_standard_places: None) -> Iterator[Proxy]:
    """Give a way to the S3 server that breaks when it should; `s3://` URLs go there."""
    from aiodata.storage import ObjectStorage
    from tests.servers.proxy import Proxy
    from tests.storage.scripted import registered

    with Proxy(s3.port) as started:
        with registered("s3", partial(ObjectStorage, **{**s3.settings, "endpoint": started.url})):
            yield started
        started.wait(lambda: not started.open_connections)


@pytest.fixture
def folder(s3: S3Server, request: pytest.FixtureRequest) -> str:
    """Give the key of a folder of the test's own."""
    return re.sub(r"\W", "-", request.node.name)


def counted(iterator: Any, name: str) -> int:
    """Give the sum of a counter over all stages."""
    return sum(stage.get(name, 0) for stage in iterator.statistics())
