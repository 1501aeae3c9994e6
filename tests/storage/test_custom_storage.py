"""A storage of one's own, as README shows it: all that reads and writes takes its URLs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import aiodata
from aiodata import Dataset
from tests.programs import to_list
from tests.storage.folder_storage import FolderStorage
from tests.storage.scripted import registered


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
