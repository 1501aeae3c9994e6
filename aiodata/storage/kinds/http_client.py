"""What all that asks web servers has in common: sessions of aiohttp, URLs as they are sent, what errors mean."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aiodata.errors import RemoteError
from aiodata.extras import load
from aiodata.storage.masking import masked, masked_text
from aiodata.storage.transfer.healing import Trouble

if TYPE_CHECKING:
    import aiohttp
    import yarl

__all__ = ["as_sent", "fault_of", "new_session", "send"]

_AUTHORITY = re.compile(r"[^/?#]*")
_SAFE = "!#$%&'()*+,/:;=?@[]~"
"""What a URL may have beside letters and digits (RFC 3986); anything else is quoted."""
_READY = re.compile(rf"[a-zA-Z][\w+.-]*://[\w{re.escape(_SAFE)}.-]*", re.ASCII)
"""URLs that have nothing else."""
_HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
"""Headers that say what is asked for, and not by whom."""
_own: ContextVar[tuple[yarl.URL, frozenset[str]] | None] = ContextVar("_own", default=None)
"""The origin that the user's headers are for, and the names of those that no other one may get."""


def new_session(method: str, **arguments: Any) -> aiohttp.ClientSession:
    """Make a session without limits of its own, whose requests are made once.

    Args:
        method: Who needs it, for the error.
        **arguments: Further arguments of `aiohttp.ClientSession`.

    Raises:
        ImportError: aiohttp is not installed.
    """
    client = load("aiohttp", "http", method)
    defaults = {
        "connector": client.TCPConnector(limit=0),  # what is asked for at once is limited before it gets here
        "timeout": client.ClientTimeout(total=None),
        "trust_env": _is_told_by_environment(),
        "requote_redirect_url": False,
    }
    settings = {**defaults, **arguments}
    settings["middlewares"] = (_at_home, *settings.get("middlewares", ()), _once)
    session: aiohttp.ClientSession = client.ClientSession(**settings)
    return session


def _is_told_by_environment() -> bool:
    """Tell whether the environment names proxies, or there are logins; aiohttp looks in a thread at each request."""
    from urllib.request import getproxies  # takes a while to import

    netrc = os.environ.get("NETRC") or os.path.join(os.path.expanduser("~"), "_netrc" if os.name == "nt" else ".netrc")
    return bool(getproxies()) or os.path.exists(netrc)


async def send(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    headers: Mapping[str, str],
    own: Mapping[str, str],
    body: bytes | None = None,
) -> aiohttp.ClientResponse:
    """Send a request, and follow where it is redirected to.

    Args:
        session: What sends it; see `new_session`.
        method: Such as "GET".
        url: What to ask for.
        headers: All its headers.
        own: Those among them that the user gave; they are sent to no other origin (scheme, host and port).
        body: What is sent.
    """
    target = as_sent(url)
    names = frozenset(name.lower() for name, value in own.items() if headers.get(name) == value) - _HARMLESS
    if not names:
        return await session.request(method, target, headers=headers, data=body)
    token = _own.set((target.origin(), names))
    try:
        return await session.request(method, target, headers=headers, data=body)
    finally:
        _own.reset(token)


async def _at_home(
    request: aiohttp.ClientRequest, send: Callable[[Any], Awaitable[aiohttp.ClientResponse]]
) -> aiohttp.ClientResponse:
    """Take the user's headers from a request that a redirect has sent elsewhere; aiohttp keeps all but three."""
    own = _own.get()
    if own is not None and request.url.origin() != own[0]:
        for name in own[1]:
            request.headers.popall(name, None)
    return await send(request)


async def _once(
    request: aiohttp.ClientRequest, send: Callable[[Any], Awaitable[aiohttp.ClientResponse]]
) -> aiohttp.ClientResponse:
    """Make a request once: aiohttp would repeat what fails on a connection that it has used before, uncounted."""
    import aiohttp

    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        fault = fault_of(error, str(request.url))
        if not isinstance(fault, Trouble):
            raise  # it is not repeated; aiohttp would take an OSError of ours for one of the system's
    try:
        raise fault
    finally:
        del fault  # else it and this frame, which its traceback holds, would be a cycle


def as_sent(url: str) -> yarl.URL:
    """Give a URL with what must be quoted quoted, and everything else as it is: signed URLs bear no other change."""
    import yarl

    if _READY.fullmatch(url):
        return yarl.URL(url, encoded=True)
    scheme, _, rest = url.partition("://")
    host = _AUTHORITY.match(rest)
    authority = "" if host is None else host[0]
    tail = quote(rest[len(authority) :], safe=_SAFE, errors="surrogateescape")
    if not authority.isascii():
        authority = yarl.URL(f"{scheme}://{authority}").raw_authority
    return yarl.URL(f"{scheme}://{authority}{tail}", encoded=True)


def fault_of(error: Exception, url: str) -> Exception:
    """Give what an error of aiohttp's means; that is no cause of it, for its text may have secrets."""
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError

    if isinstance(error, Trouble | TimeoutError | RemoteError):
        return error
    if isinstance(error, aiohttp.TooManyRedirects):
        return RemoteError("there are too many redirects", masked(url))
    if isinstance(error, aiohttp.RedirectClientError):
        return RemoteError("it redirects to what is no URL that can be read", masked(url))
    if isinstance(error, aiohttp.ClientResponseError) and isinstance(error.__cause__, HttpProcessingError):
        return Trouble("the answer is no HTTP")  # what came may be anything, such as the request with its secrets
    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    first = masked_text(said.partition("\n")[0].rstrip(":"))  # what follows are bytes that came
    if isinstance(error, aiohttp.ClientPayloadError):
        return Trouble(f"the answer ended before it was complete: {first}")
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError) and "certificate" in str(error).lower():
        return RemoteError(f"the server's certificate is refused: {type(error).__name__}", masked(url))
    if isinstance(error, aiohttp.ClientError | OSError) and not isinstance(error, aiohttp.InvalidURL):
        return Trouble(f"{type(error).__name__}: {first}" if first else type(error).__name__)
    if isinstance(error, ValueError):
        return ValueError(f"{masked(url)} cannot be asked for, or not with these headers: {type(error).__name__}")
    return error
