"""URLs without their secrets, for everything that people read: errors, logs, `repr`."""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["masked", "masked_text"]

MASK = "***"
_SECRET = re.compile(
    r"(?i)(^|[-_])(auth|authorization|bearer|code|credential|credentials|hdnea|hdnts|hmac|jwt|key|keyid|key[-_]id|md5"
    r"|pass|passwd|password|pwd|sas|secret|session|sig|sign|signature|ticket|token|policy)$"
    r"|(^|[-_])(apikey|accesskey|accesskeyid|accesstoken|authtoken)$"
)
"""Names of queries' fields whose values are secrets: those of signed URLs, and what services call keys and tokens."""
_LOGIN = re.compile(r"(?<=://)(?:[^/?#\s'\"<>]*@|[^/?#\s'\"<>@:\[]*:(?!:|\d*(?:[/?#]|$))[^\s'\"<>]*@)")
"""A login; also one with a password that has not been quoted, so that what is behind the colon is no port."""
_FIELD = re.compile(r"(?<=[?&;#])([^=&;?#]+)=([^&;#]*)")
_FIELD_IN_TEXT = re.compile(r"(?<=[?&;#])([^=&;?#\s'\"<>]+)=([^&;#\s'\"<>]*)")
_URL_IN_TEXT = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def masked(url: str) -> str:
    """Give a URL with `***` for a password in it, and for the values of fields that look like secrets.

    What is no URL is given as it is.

    >>> masked("https://ann:pw@host/a.csv?part=1&X-Amz-Signature=0a1b")
    'https://***@host/a.csv?part=1&X-Amz-Signature=***'
    """
    if "://" not in url or not ("@" in url or "=" in url):
        return url
    return _FIELD.sub(_without_secret, _LOGIN.sub(MASK + "@", url))


def masked_text(text: str) -> str:
    """Mask all URLs in a text, and all paths with queries.

    >>> masked_text("no answer from 'http://host/a?key=1', nor from http://ann@host")
    "no answer from 'http://host/a?key=***', nor from http://***@host"
    """
    return _FIELD_IN_TEXT.sub(_without_secret, _URL_IN_TEXT.sub(lambda found: masked(found[0]), text))


def _without_secret(field: re.Match[str]) -> str:
    if field[2].startswith(MASK):  # with what follows it in a text
        return field[0]
    name = _HUMP.sub("-", unquote(field[1]))
    return f"{field[1]}={MASK}" if _SECRET.search(name) else field[0]
