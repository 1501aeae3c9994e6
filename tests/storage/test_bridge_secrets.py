"""What fsspec's file systems raise has no secrets of chained URLs, however far behind."""

from __future__ import annotations

import traceback

import pytest

from aiodata import TextLineDataset
from tests.programs import to_list
from tests.storage.remote_files import limited

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
from fsspec.asyn import get_loop

get_loop()  # its thread stays from here on


@pytest.mark.parametrize("chain", ["simplecache::", "zip://a::"])
def test_no_error_of_another_library_is_behind_that_of_a_chain(chain: str) -> None:
    url = chain + "http://ann:PASSWORD@127.0.0.1:1/a?sig=SIGNATURE&token=TOKEN"
    with pytest.raises(OSError, match=r"127\.0\.0\.1") as caught:
        to_list(limited(TextLineDataset(url), max_attempts=2))
    error: BaseException | None = caught.value
    while error is not None:
        texts = [*traceback.format_exception_only(error), repr(error), repr(error.args), repr(vars(error))]
        assert not [text for text in texts if any(secret in text for secret in ("PASSWORD", "SIGNATURE", "TOKEN"))]
        error = error.__cause__ or error.__context__
