"""URLs without their secrets, for everything that people read: errors, logs, `repr`."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

__all__ = ["masked"]

MASK = "***"
_SECRET = re.compile(
    r"(?i)(^|[-_])(auth|authorization|code|credential|credentials|key|keyid|pass|passwd|password|pwd|sas|secret|session"
    r"|sig|sign|signature|token|policy)$|(^|[-_])(apikey|accesskey|accesskeyid|accesstoken|authtoken|jwt)$"
)
"""Names of queries' fields whose values are secrets: those of signed URLs, and what services call keys and tokens."""


def masked(url: str) -> str:
    """Give a URL with `***` for a password in it, and for the values of fields that look like secrets.

    What is no URL is given as it is.

    >>> masked("https://ann:pw@host/a.csv?part=1&X-Amz-Signature=0a1b")
    'https://***@host/a.csv?part=1&X-Amz-Signature=***'
    """
    if "://" not in url or ("@" not in url and "?" not in url and "#" not in url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL at all
        return url.partition("://")[0] + "://" + MASK
    host = parts.netloc
    if "@" in host:
        host = f"{MASK}@{host.rpartition('@')[2]}"
    return urlunsplit((parts.scheme, host, parts.path, _query(parts.query), _query(parts.fragment)))


def _query(query: str) -> str:
    fields = [field.partition("=") for field in query.split("&")]
    return "&".join(
        f"{name}={MASK}" if equals and _SECRET.search(name) else name + equals + value for name, equals, value in fields
    )
