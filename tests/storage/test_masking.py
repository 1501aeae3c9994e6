"""What people read of a URL has no secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata.storage.masking import masked, masked_text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("a.txt", "a.txt"),
        ("/a?key=1", "/a?key=1"),
        ("https://host/a.txt", "https://host/a.txt"),
        ("https://host/a@b?page=2&x", "https://host/a@b?page=2&x"),
        ("https://ann@host/a", "https://***@host/a"),
        ("https://ann:p@ss@host:80/a", "https://***@host:80/a"),
        ("https://host/a?token=b=c&x=1#sig=2", "https://host/a?token=***&x=1#sig=***"),
        ("https://host/a?sig=b c\"d'e&x=1", "https://host/a?sig=***&x=1"),
        ("https://host/a?x=1;token=2;y=3", "https://host/a?x=1;token=***;y=3"),
        ("https://host/a?X%2DAmz%2DSignature=1", "https://host/a?X%2DAmz%2DSignature=***"),
        (
            "https://host/a?AWSAccessKeyId=1&Expires=2&Signature=3",
            "https://host/a?AWSAccessKeyId=***&Expires=2&Signature=***",
        ),
        ("https://host/a?Policy=1&Key-Pair-Id=2", "https://host/a?Policy=***&Key-Pair-Id=2"),
        ("https://host/a?X-Goog-Credential=1&X-Goog-Date=2", "https://host/a?X-Goog-Credential=***&X-Goog-Date=2"),
        ("https://host/a?sv=1&se=2&sig=3", "https://host/a?sv=1&se=2&sig=***"),
        (
            "https://host/a?accessToken=1&refreshToken=2&idToken=3",
            "https://host/a?accessToken=***&refreshToken=***&idToken=***",
        ),
        ("https://host/a?monkey=1&design=2&keyboard=3", "https://host/a?monkey=1&design=2&keyboard=3"),
        ("zip://a.txt::https://ann:pw@host/a.zip?key=1", "zip://a.txt::https://***@host/a.zip?key=***"),
        ("s3://key:secret@bucket/a", "s3://***@bucket/a"),
        ("http://[::1", "http://[::1"),
        ("http://ann:p/w@host/a", "http://***@host/a"),
        ("http://ann:p#w?x@host/a@b", "http://***@b"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert masked(shown) == shown


def test_urls_within_a_text() -> None:
    text = "400, message='Bad', url=URL('http://u:p@host/a?token=1&x=2') (see https://host/?sig=3\n4) key=5"
    assert masked_text(text) == (
        "400, message='Bad', url=URL('http://***@host/a?token=***&x=2') (see https://host/?sig=***\n4) key=5"
    )


def test_what_is_masked_stays_as_it_is() -> None:
    text = "http://***@host/a?sig=***: it cannot be read"
    assert masked_text(text) == text


def test_paths_within_a_text() -> None:
    assert masked_text("503 bad /a?x=1&token=2&sig=3 today") == "503 bad /a?x=1&token=***&sig=*** today"


@given(
    st.text(max_size=40), st.sampled_from(["?", "&x=1&", ";", "#", "?a&"]), st.sampled_from(["sig", "api-key", "Token"])
)
def test_no_secret_is_left(path: str, before: str, name: str) -> None:
    url = f"https://host/{path}?{before}{name}=SECRET"
    assert "SECRET" not in masked(url)
    assert masked(masked(url)) == masked(url)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert masked("x://" + text).startswith("x://")
    masked_text(text)
