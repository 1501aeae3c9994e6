"""A storage of one's own, as README shows it: all that reads and writes takes its URLs."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import RemoteError
from aiodata.storage import Answer, FileInfo, Storage, Trouble
from tests.programs import to_list
from tests.storage.folder_storage import FolderStorage
from tests.storage.scripted import fast, registered


def test_its_files_are_read_listed_and_written(tmp_path: Path) -> None:
    with registered("folder", partial(FolderStorage, tmp_path)):
        (tmp_path / "texts").mkdir()
        for number in range(3):
            (tmp_path / f"texts/{number}.txt").write_text(f"line {number}\n" * 2)
        names = Dataset.list_files("folder://texts/*.txt", shuffle=False)
        assert to_list(names) == [b"folder://texts/%d.txt" % number for number in range(3)]
        lines = names.interleave(aiodata.TextLineDataset, cycle_length=3, num_parallel_calls=3)
        assert to_list(lines) == [b"line 0", b"line 1", b"line 2"] * 2
        lines.save("folder://saved")
        assert to_list(Dataset.load("folder://saved")) == to_list(lines)
        assert (tmp_path / "saved/dataset.json").exists()


class OpenOnly(Storage):
    """What has nothing but `open`; the first of them that is asked fails."""

    def __init__(self, files: dict[str, bytes], failures: int = 0) -> None:
        self.files = files
        self.failures = failures

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        if self.failures:
            self.failures -= 1
            raise Trouble("not now")
        if url not in self.files:
            raise FileNotFoundError(url)
        data = self.files[url][offset : None if length is None else offset + length]

        async def pieces() -> AsyncIterator[bytes]:
            yield data

        return Answer(FileInfo(len(self.files[url])), pieces(), offset)


def test_a_plain_url_is_listed_without_list() -> None:
    with registered("only", partial(OpenOnly, {"only://a": b"one"})):
        assert to_list(Dataset.list_files("only://a")) == [b"only://a"]
        with pytest.raises(FileNotFoundError, match="no file matches 'only://b'"):
            to_list(Dataset.list_files("only://b"))
        with pytest.raises(io.UnsupportedOperation, match="cannot be listed"):
            to_list(Dataset.list_files("only://*"))


@pytest.mark.parametrize(
    "begin",
    [
        partial(Dataset.load, "only://saved"),
        partial(aiodata.make_csv_dataset, "only://a.csv", 2),
        partial(aiodata.Vocabulary, "only://a.csv"),
    ],
)
def test_what_reads_at_the_call_takes_limits(begin: Callable[..., Any]) -> None:
    with registered("only", partial(OpenOnly, {}, 9)), pytest.raises(RemoteError, match="not now") as raised:
        begin(storage=fast(max_attempts=2))
    assert raised.value.attempts == 2


def test_files_that_are_looked_at_are_read_within_limits() -> None:
    files = {"only://a.csv": b"x,y\n1,2\n"}
    with registered("only", partial(OpenOnly, files, 2)):
        rows = aiodata.make_csv_dataset("only://a.csv", 1, num_epochs=1, storage=fast())
        plain = aiodata.make_csv_dataset("only://a.csv", 1, num_epochs=1)
        assert repr(rows) == repr(plain)
        assert [{name: int(value[0]) for name, value in row.items()} for row in rows] == [{"x": 1, "y": 2}]
