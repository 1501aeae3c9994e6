"""Files that are there whole or not at all: links, modes, names, devices, what is left behind, several writers."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from aiodata.storage import atomic
from aiodata.storage.atomic import AtomicFile, remove_abandoned

posix = pytest.mark.skipif(sys.platform == "win32", reason="is about links, modes, pipes or locks")


def put(path: Path, content: bytes = b"new") -> None:
    file = AtomicFile(path)
    file.file.write(content)
    file.commit()


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_appears_when_it_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    file = AtomicFile(path)
    file.file.write(b"new")
    file.file.flush()
    assert path.read_bytes() == b"old"
    assert len(names(tmp_path)) == 2
    file.commit()
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["x"]
    file.discard()  # does nothing any more
    assert path.read_bytes() == b"new"


def test_a_discarded_file_leaves_nothing(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "x")
    file.file.write(b"new")
    file.discard()
    file.discard()
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", [str, os.fsencode, lambda path: path])
def test_paths_of_every_kind(kind: Any, tmp_path: Path) -> None:
    put(kind(tmp_path / "x"))
    assert names(tmp_path) == ["x"]


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    file = AtomicFile("x")
    monkeypatch.chdir(tmp_path / "other")
    file.commit()
    assert names(tmp_path) == ["other", "x"]


@posix
def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    target, link, dangling = tmp_path / "data" / "x", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"old")
    link.symlink_to("data/x")
    dangling.symlink_to("data/y")
    for path in (link, dangling):
        put(path)
        assert path.is_symlink()
        assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["dangling", "data", "link"]
    assert names(tmp_path / "data") == ["x", "y"]
    assert not target.is_symlink()


@posix
@pytest.mark.parametrize("before", [0o600, 0o640, 0o664, 0o755, 0o400])
def test_the_mode_of_a_file_is_kept(before: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(before)
    file = AtomicFile(path)
    (part,) = [tmp_path / name for name in names(tmp_path) if name != "x"]
    assert mode(part) == before  # from the beginning: a secret is never to be read by others
    file.commit()
    assert mode(path) == before


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_mode_of_a_new_file_is_the_umask_s(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        put(tmp_path / "x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "x") == 0o666 & ~mask


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "n" * atomic.LONGEST_NAME, "n" * (atomic.LONGEST_NAME + 1)])
def test_long_names(name: str, tmp_path: Path) -> None:
    put(tmp_path / name)
    put(tmp_path / name)
    assert names(tmp_path) == [name]


@posix
def test_a_device_is_written_to() -> None:
    before, listed = os.stat(os.devnull).st_rdev, names(Path("/dev"))
    for end in (AtomicFile.commit, AtomicFile.discard):
        file = AtomicFile(os.devnull)
        file.file.write(b"gone")
        end(file)
        assert file.file.closed
    assert os.stat(os.devnull).st_rdev == before
    assert names(Path("/dev")) == listed


@posix
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    put(path)
    reader.join()
    assert found == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_place_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError if os.name == "posix" else PermissionError):
        AtomicFile(tmp_path)
    with pytest.raises(FileNotFoundError):
        AtomicFile(tmp_path / "none" / "x")
    with pytest.raises(ValueError, match="null"):
        AtomicFile("a\0b")
    assert names(tmp_path) == []


def test_what_cannot_be_put_in_its_place_is_discarded(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "x")
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="x"):
        file.commit()
    assert names(tmp_path) == ["x"]


@posix
def test_a_folder_that_cannot_be_opened_is_not_synchronized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = AtomicFile(tmp_path / "x")
    opens = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "as Windows does")
        return opens(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    file.commit()
    assert names(tmp_path) == ["x"]


# What is left behind


def test_a_file_that_is_dropped_is_discarded_with_a_warning(tmp_path: Path) -> None:
    held = [AtomicFile(tmp_path / "x")]
    held[0].file.write(b"new")
    with pytest.warns(ResourceWarning, match="x' was not completed: what was written is discarded"):
        held.clear()
    assert names(tmp_path) == []


def run(program: str, path: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    head = "import os, sys\nfrom aiodata.storage.atomic import AtomicFile\npath = sys.argv[1]\n"
    command = [sys.executable, "-W", "error", "-c", head + program, str(path)]
    return subprocess.run(command, text=True, capture_output=True, timeout=50, check=False, **options)


def test_a_file_that_is_open_when_the_program_ends_is_discarded(tmp_path: Path) -> None:
    done = run("file = AtomicFile(path)\nfile.file.write(b'new')\n", tmp_path / "x")
    assert "ResourceWarning" in done.stderr
    assert names(tmp_path) == []


@posix
def test_what_a_killed_process_leaves_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    for name in ("x", "y", "é" * 100):
        run("file = AtomicFile(path)\nfile.file.write(b'new')\nos.kill(os.getpid(), 9)\n", tmp_path / name)
    assert len(names(tmp_path)) == 3
    put(tmp_path / "x")
    assert len(names(tmp_path)) == 3
    assert "x" in names(tmp_path)
    remove_abandoned(tmp_path / "y")
    remove_abandoned(tmp_path / ("é" * 100))
    assert names(tmp_path) == ["x"]


@posix
def test_only_parts_of_the_place_are_removed(tmp_path: Path) -> None:
    others = [
        ".x.part",
        ".x.0123456789a.part",
        ".x.0123456789ag.part",
        ".x.0123456789ab.part.x",
        ".xy.0123456789ab.part",
    ]
    for name in [*others, ".x.0123456789ab.part"]:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "secret").write_bytes(b"")
    (tmp_path / ".x.ffffffffffff.part").symlink_to("secret")
    (tmp_path / ".x.eeeeeeeeeeee.part").mkdir()
    os.mkfifo(tmp_path / ".x.dddddddddddd.part")
    remove_abandoned(tmp_path / "x")
    left = set(names(tmp_path))
    assert {*others, "secret", ".x.ffffffffffff.part", ".x.eeeeeeeeeeee.part"} <= left
    assert ".x.0123456789ab.part" not in left


def test_several_writers_of_one_place(tmp_path: Path) -> None:
    files = [AtomicFile(tmp_path / "x") for _ in range(3)]
    for number, file in enumerate(files):
        file.file.write(b"%d" % number)
    for number in (1, 0, 2):
        files[number].commit()
        assert (tmp_path / "x").read_bytes() == b"%d" % number
    assert names(tmp_path) == ["x"]


@posix
def test_what_another_process_is_writing_is_not_removed(tmp_path: Path) -> None:
    program = (
        "file = AtomicFile(path)\nfile.file.write(b'other')\nprint('ready', flush=True)\n"
        "sys.stdin.read()\nfile.commit()\n"
    )
    head = "import sys\nfrom aiodata.storage.atomic import AtomicFile\npath = sys.argv[1]\n"
    command = [sys.executable, "-c", head + program, str(tmp_path / "x")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        put(tmp_path / "x")
        remove_abandoned(tmp_path / "x")
        assert len(names(tmp_path)) == 2
        other.communicate(timeout=50)
    assert (tmp_path / "x").read_bytes() == b"other"
    assert names(tmp_path) == ["x"]


@posix
def test_a_fork_leaves_the_file_alone(tmp_path: Path) -> None:
    program = """
file = AtomicFile(path)
if not (child := os.fork()):
    file.discard()
    os._exit(0)
os.waitpid(child, 0)
file.file.write(b'new')
file.commit()
"""
    done = run(program, tmp_path / "x")
    assert done.stderr == ""
    assert (tmp_path / "x").read_bytes() == b"new"


@posix
def test_a_part_that_was_taken_for_abandoned_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = import_module("fcntl").flock
    stolen: list[str] = []

    def late(file: Any, operation: int) -> None:
        if not stolen:
            stolen.extend(names(tmp_path))
            os.unlink(tmp_path / stolen[0])
        lock(file, operation)

    monkeypatch.setattr("fcntl.flock", late)
    put(tmp_path / "x")
    assert stolen != []
    assert names(tmp_path) == ["x"]


@posix
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: Any, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    (tmp_path / ".x.0123456789ab.part").write_bytes(b"")
    monkeypatch.setattr("fcntl.flock", refuse)
    put(tmp_path / "x")
    assert names(tmp_path) == [".x.0123456789ab.part", "x"]
