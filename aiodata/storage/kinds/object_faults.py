"""What obstore's errors mean, in one line and without what may be secret in them."""

from __future__ import annotations

import errno
import re

from aiodata.errors import RemoteError
from aiodata.storage.kinds.http_headers import check_status
from aiodata.storage.masking import masked
from aiodata.storage.transfer.healing import Trouble

__all__ = ["LACKS_PERMISSION", "code_of", "fault", "status_of"]

LACKS_PERMISSION = frozenset({"AccessDenied", "AllAccessDisabled", "AuthorizationPermissionMismatch"})
"""Codes for credentials that are good, and do not permit what was asked for."""
_RUN_OUT = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})
"""Codes for credentials that S3 answers 400 to."""
_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3}) ?([^:\n]*)")
_CODE = re.compile(r"<Code>(\w{1,100})</Code>")
_REASON = re.compile(r'message: "([^"\n]{1,200})"|\b(TimedOut|Incomplete\w+|ConnectionClosed|Canceled)\b')
_METADATA = re.compile(
    r"Error performing \w+ https?://(169\.254\.|metadata\.google\.|[^/\s]+/latest/(api/token|meta-data/iam)"
    r"|[^/\s]+/metadata/identity/)"
)
"""How requests to the services of machines that give credentials are told."""
_PROVIDER = re.compile(r"for path External [\w ]* ?credential provider: (\w+)")
_WHERE = re.compile(r"^Generic \S+ error: |Error performing .* in \S+ - |\s*https?://\S+")


def status_of(error: Exception) -> int | None:
    """Give the status that a server answered with, if it is one of obstore's errors for that."""
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def code_of(error: Exception) -> str:
    """Give a store's own code for what is wrong, such as "NoSuchKey"; "" if it gives none."""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def fault(error: Exception, url: str) -> Exception:
    """Give what an error of obstore's means to aiodata.

    Args:
        error: The error; its message has many lines, with a URL that may be signed and with the server's answer.
        url: The object, or the bucket.
    """
    kind, text = type(error).__name__, str(error)
    is_ours = isinstance(error, (OSError, Trouble, ImportError)) and kind != "FileNotFoundError"
    if is_ours or not type(error).__module__.startswith(("obstore", "builtins")):
        return error
    found, first_line = _STATUS.search(text), text.partition("\n")[0]
    if _METADATA.search(first_line) and not (found and found[1].startswith("5")):
        return PermissionError(errno.EACCES, "there are no credentials in any of the standard places", masked(url))
    if kind == "UnauthenticatedError" and (failed := _PROVIDER.search(first_line)):
        return PermissionError(errno.EACCES, f"the credential provider failed: {failed[1]}", masked(url))
    if found is not None:
        return _answered(int(found[1]), found[2].strip(), code_of(error), url)
    if kind == "FileNotFoundError":
        return FileNotFoundError(errno.ENOENT, "there is no such object", masked(url))
    if kind in ("PermissionDeniedError", "UnauthenticatedError"):
        return PermissionError(errno.EACCES, "the credentials are refused", masked(url))
    if kind in ("UnknownConfigurationKeyError", "TypeError", "ValueError"):
        return ValueError(f"ObjectStorage: {_in_short(text)}")
    return _broken(text, url)


def _answered(status: int, reason: str, code: str, url: str) -> Exception:
    if status == 400 and code in _RUN_OUT:
        status = 401
    elif status == 400 and code == "RequestTimeout":  # the server has waited for us
        status = 408
    try:
        check_status(status, {}, f"{reason} ({code})" if code else reason, url)
    except (OSError, Trouble) as told:
        return told
    return RemoteError(f"the server answered {status} {reason}", masked(url))


def _broken(text: str, url: str) -> Exception:
    """Give what is wrong where there was no answer, or a strange one."""
    if "kind: Builder" in text:
        hint = "an http:// endpoint needs client_options={'allow_http': True}" if "BadScheme" in text else "malformed"
        return RemoteError(f"a setting for the store is wrong: {hint}", masked(url))
    short = _in_short(text)
    if "InvalidCertificate" in text or "UnknownIssuer" in text:
        return RemoteError(f"the server's certificate is refused: {short}", masked(url))
    if "HTTP error" in text or "UnexpectedRange" in text:
        reason = _REASON.search(text)
        return Trouble(f"{short} ({reason[1] or reason[2]})" if reason else short)
    return RemoteError(short, masked(url))


def _in_short(text: str) -> str:
    return _WHERE.sub("", text.partition("\n")[0])[:300]
