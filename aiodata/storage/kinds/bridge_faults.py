"""What the errors and the details of fsspec's file systems mean; each has its own."""

from __future__ import annotations

import errno
import ftplib
import io
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aiodata.errors import RemoteError
from aiodata.storage.masking import masked, masked_text
from aiodata.storage.transfer.healing import Trouble

__all__ = ["fault", "tag_of"]

_TAGS = ("etag", "ETag", "sha256", "blob_id", "sha", "md5", "content_md5", "md5Hash", "checksum", "CRC", "ukey")
_TIMES = ("mtime", "modified", "modify", "LastModified", "last_modified", "updated", "modificationTime", "created")
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
_PASSING = {
    *(errno.EAGAIN, errno.EBUSY, errno.EIO, errno.EPIPE, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNREFUSED),
    *(errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN),
}
_NETWORK = (
    *("ConnectionError", "ConnectError", "Timeout", "TimeoutError", "SSHException", "IncompleteRead", "gaierror"),
    "ClientPayloadError",
)
"""How classes end that clients of networks have for what may pass."""


def tag_of(details: Mapping[str, Any]) -> str:
    """Give what tells a file's content from another: a checksum if there is one, else a time; "" if there is none."""
    for name in (*_TAGS, *_TIMES):
        found = details.get(name)
        if found is not None and found != "":
            return found.isoformat() if isinstance(found, datetime) else str(found)
    return ""


def fault(error: Exception, url: str) -> Exception:
    """Give what an error of a file system's means to aiodata; that is no cause of it, for its text may have secrets."""
    if isinstance(error, (Trouble, RemoteError, ConnectionError, TimeoutError, ImportError, io.UnsupportedOperation)):
        return error
    where, said = masked(url), f"{type(error).__name__}: {error}".rstrip(": ")
    reason = masked_text(said.replace(url, where))
    status, wait = _status(error)
    if isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
        found = fault(error.__cause__, url)  # fsspec's HTTP file system calls all that fails so
        if isinstance(found, (Trouble, ConnectionError, TimeoutError, PermissionError, RemoteError)):
            return found
    if isinstance(error, FileNotFoundError) or status in (404, 410) or _is_missing(error):
        return FileNotFoundError(errno.ENOENT, "there is no such file", where)
    if isinstance(error, PermissionError) or status in (401, 403):
        return PermissionError(errno.EACCES, reason, where)
    if isinstance(error, (IsADirectoryError, NotADirectoryError, FileExistsError)):
        return type(error)(error.errno or errno.EINVAL, reason, where)
    is_passing = isinstance(error, OSError) and error.errno in _PASSING
    is_broken = isinstance(error, (EOFError, ftplib.error_temp, ftplib.error_reply, ftplib.error_proto))
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if status in _MAY_PASS or is_passing or is_broken or any(kind.endswith(_NETWORK) for kind in kinds):
        return Trouble(reason, wait)
    if isinstance(error, NotImplementedError):
        return io.UnsupportedOperation(f"{where}: the file system cannot do this: {reason}")
    if isinstance(error, (OSError, ftplib.Error)) or status is not None:
        return RemoteError(reason, where)
    return error if reason == said else RemoteError(reason, where)


def _is_missing(error: Exception) -> bool:
    text = str(error).lower()
    return isinstance(error, ftplib.error_perm) and text[:3] == "550" and ("no such" in text or "not found" in text)


def _status(error: Exception) -> tuple[int | None, float | None]:
    """Give the status that an HTTP server has answered, and how long it asks to wait, as far as an error tells them."""
    response = getattr(error, "response", None)
    for holder in (response, error):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int):
                wait = str((getattr(holder, "headers", None) or {}).get("Retry-After", ""))
                return status, float(wait) if wait.isdecimal() else None
    return None, None
