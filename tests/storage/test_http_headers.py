"""What headers of answers mean, however odd they are."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata.storage import Trouble
from aiodata.storage.kinds.http_headers import check_of, content_range, retry_after, tag_of

MD5 = base64.b64encode(hashlib.md5(b"content").digest()).decode()
SHA = base64.b64encode(hashlib.sha256(b"content").digest()).decode()
SHA512 = base64.b64encode(hashlib.sha512(b"content").digest()).decode()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("7", 7.0), (" 7 ", 7.0), ("1.5", 1.5), ("-1", None), ("", None), ("soon", None), ("1e3", None)],
)
def test_seconds_to_wait(text: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": text}) == seconds


def test_a_date_to_wait_for() -> None:
    now = datetime.now(UTC)
    found = retry_after({"Retry-After": format_datetime(now + timedelta(seconds=90), usegmt=True)})
    assert found is not None
    assert 80 < found <= 90
    assert retry_after({"Retry-After": format_datetime(now - timedelta(seconds=90), usegmt=True)}) == 0.0
    assert retry_after({}) is None


@given(
    st.one_of(st.text(), st.from_regex(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{1,6} \d{2}:\d{2}:\d{2} [+-]?\w{1,12}"))
)
def test_odd_waits_raise_nothing(text: str) -> None:
    found = retry_after({"Retry-After": text})
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bytes 5-9/10", (5, 10)),
        (" bytes  0-0/1 ", (0, 1)),
        ("bytes */10", (None, 10)),
        ("bytes 5-9/*", (5, None)),
        ("bytes=5-9/10", (None, None)),
        ("", (None, None)),
    ],
)
def test_ranges(text: str, found: Any) -> None:
    assert content_range({"Content-Range": text}) == found


def test_tags() -> None:
    assert tag_of({"ETag": 'W/"a"'}) == tag_of({"ETag": '"a"', "Last-Modified": "x"}) == '"a"'
    assert tag_of({"Last-Modified": "x"}) == "x"
    assert tag_of({}) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Digest": f"sha-256=:{SHA}:"},
        {"Content-Digest": f"md5=:AAAA:, sha-512=:{SHA512}:,unixsum=:AAA=:"},
        {"Repr-Digest": f"sha-256=:{SHA}:"},
        {"Content-MD5": MD5},
        {"X-Goog-Hash": f"md5={MD5}"},
        {"X-Goog-Hash": f"crc32c=,md5={MD5}"},
        {"X-Goog-Hash": f"md5={MD5}", "X-Goog-Stored-Content-Encoding": "gzip", "Content-Encoding": "gzip"},
    ],
)
def test_checksums(headers: dict[str, str]) -> None:
    for content, good in ((b"content", True), (b"contenT", False), (b"", False)):
        check = check_of(headers, True)
        assert check is not None
        for piece in (content[:3], content[3:]):
            if piece:
                check(piece)
        if good:
            check(b"")
        else:
            with pytest.raises(Trouble, match="the answer is damaged"):
                check(b"")
    assert (check_of(headers, False) is not None) == ("Content-Digest" in headers)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-MD5": "no base64!"},
        {"Content-MD5": "AAAA"},
        {"Content-Digest": "sha-256=:AAAA:"},
        {"Content-Digest": "sha-256=AAAA, sha-1=:AAAA:"},
        {"Repr-Digest": "nonsense"},
        {"X-Goog-Hash": "md5, crc32c=x, sha=1"},
        {"X-Goog-Hash": f"md5={MD5}", "X-Goog-Stored-Content-Encoding": "gzip"},
    ],
)
def test_what_tells_no_checksum_of_the_content_is_left_alone(headers: dict[str, str]) -> None:
    assert check_of(headers, True) is None


@given(st.dictionaries(st.sampled_from(["Content-MD5", "Content-Digest", "Repr-Digest", "X-Goog-Hash"]), st.text()))
def test_odd_checksums_raise_nothing(headers: dict[str, str]) -> None:
    check_of(headers, True)
