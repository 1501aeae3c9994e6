"""Marks of files: what they tell apart, and what they do not."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from aiodata.errors import StateError
from aiodata.storage.marks import HEAD_BYTES, mark_at, mark_of

if TYPE_CHECKING:
    from pathlib import Path

SIZES = [1, 2, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 3 * HEAD_BYTES]


def save(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("size", SIZES)
def test_a_copy_and_what_has_grown_are_the_same_file(size: int, tmp_path: Path) -> None:
    path = save(tmp_path / "x", b"a" * size)
    saved = mark_at(path)
    assert saved is not None
    assert saved[0] == size
    assert mark_at(path, saved) == saved
    assert mark_at(str(shutil.copyfile(path, tmp_path / "y")), list(saved)) == saved
    for more in (1, HEAD_BYTES, 2 * HEAD_BYTES):
        longer = mark_at(save(tmp_path / "x", b"a" * size + b"b" * more), saved)
        assert longer is not None
        assert longer[0] == size + more
        assert mark_at(path, longer) == longer


@pytest.mark.parametrize("size", SIZES)
def test_what_is_shorter_or_begins_in_another_way_is_refused(size: int, tmp_path: Path) -> None:
    path = save(tmp_path / "x", b"a" * size)
    saved = mark_at(path)
    save(tmp_path / "x", b"a" * (size - 1))
    with pytest.raises(StateError, match=f"{path}: the file has {size - 1} bytes, but had {size} when"):
        mark_at(path, saved)
    for at in {0, min(size, HEAD_BYTES) - 1}:
        save(tmp_path / "x", b"a" * at + b"b" + b"a" * (size - at))
        with pytest.raises(StateError, match=f"{path}: the file begins with other bytes"):
            mark_at(path, saved)


def test_the_file_is_left_at_its_beginning(tmp_path: Path) -> None:
    path = save(tmp_path / "x", b"content")
    with open(path, "rb", buffering=0) as file:
        assert mark_of(file, path) == mark_at(path)
        assert file.read() == b"content"


def test_what_cannot_be_told_has_no_mark(tmp_path: Path) -> None:
    assert mark_at(save(tmp_path / "empty", b"")) is None
    assert mark_at(str(tmp_path)) is None
    with pytest.raises(FileNotFoundError, match="missing"):
        mark_at(str(tmp_path / "missing"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert mark_at(str(tmp_path / "pipe")) is None
