"""`save` to a URL: a saved dataset is there whole or not at all, on remote storage too."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import aiodata
from aiodata import Dataset
from aiodata.errors import RemoteError
from aiodata.storage import Trouble
from aiodata.storage.saved.upload import ABANDONED_SECONDS
from aiodata.storage.transfer import network
from tests.programs import Boom, assert_same, failing, nested, to_list
from tests.storage.scripted import Scripted, fast, files, registered

URL = "folder://sets/a"
pytestmark = pytest.mark.filterwarnings("error::ResourceWarning")


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Scripted]:
    made = Scripted(tmp_path)
    with registered("folder", lambda: made):
        yield made


@pytest.fixture
def place(tmp_path: Path, storage: Scripted) -> Path:
    """Give where the files of `URL` are locally: the layout is the same."""
    return tmp_path / "sets/a"


def impatient(dataset: Dataset[Any]) -> Dataset[Any]:
    options = aiodata.Options()
    options.storage = fast()
    return dataset.with_options(options)


def values(place: Path) -> list[int]:
    return [int(x) for x in Dataset.load(place)]


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("shard_func", [None, lambda x, y: int(x) % 3])
def test_what_is_saved_comes_back(place: Path, compression: str | None, shard_func: Any) -> None:
    dataset = Dataset.range(20_000).map(lambda x: (x, {"text": b"t" * (x % 5)}))
    dataset.save(URL, compression, shard_func)
    in_order = sorted(Dataset.load(place), key=lambda element: int(element[0]))
    assert_same(in_order, to_list(dataset))
    assert_same(sorted(Dataset.load(URL), key=lambda element: int(element[0])), to_list(dataset))


async def test_on_a_loop(place: Path) -> None:
    await Dataset.range(100).asave(URL)
    assert values(place) == list(range(100))


def test_nothing_is_a_dataset_too(place: Path) -> None:
    Dataset.range(0).save(URL)
    assert files(place) == ["dataset.json"]
    assert to_list(Dataset.load(URL)) == []


def test_nested_elements(place: Path) -> None:
    dataset = nested(40)
    dataset.save(URL)
    assert_same(to_list(Dataset.load(place)), to_list(dataset))


def test_one_that_is_there_is_replaced_and_removed(place: Path) -> None:
    Dataset.range(10).save(URL)
    first = files(place)
    Dataset.range(5).save(URL + "/")
    assert values(place) == list(range(5))
    assert len(files(place)) == 2
    assert set(first) & set(files(place)) == {"dataset.json"}


def test_other_files_are_refused(place: Path) -> None:
    (place / "deep").mkdir(parents=True)
    (place / "deep/x.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="folder://sets/a is not empty, and no saved dataset: it has 'deep'"):
        Dataset.range(5).save(URL)
    assert files(place) == ["deep/x.txt"]


def test_a_manifest_of_something_else_is_refused(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "dataset.json").write_text("{}")
    with pytest.raises(FileExistsError, match=r"'dataset\.json'"):
        Dataset.range(5).save(URL)


def test_an_error_leaves_what_was_there(place: Path) -> None:
    Dataset.range(10).save(URL)
    before = files(place)
    with pytest.raises(Boom):
        failing(Dataset.range(20_000), 15_000).save(URL)
    assert files(place) == before
    assert values(place) == list(range(10))


@pytest.mark.parametrize("method", ["list", "create", "write", "commit", "delete"])
def test_trouble_is_waited_out(storage: Scripted, place: Path, method: str) -> None:
    Dataset.range(10).save(URL)
    storage.faults[method] = [Trouble("the server is busy")] * 2
    impatient(Dataset.range(5)).save(URL)
    assert values(place) == list(range(5))
    assert len(files(place)) == 2


@pytest.mark.parametrize("method", ["list", "create", "write", "commit"])
def test_trouble_that_stays_is_an_error_and_leaves_what_was_there(storage: Scripted, place: Path, method: str) -> None:
    Dataset.range(10).save(URL)
    before = files(place)
    storage.faults[method] = [Trouble("the server is busy")] * 3
    with pytest.raises(RemoteError, match="the server is busy") as error:
        impatient(Dataset.range(5)).save(URL)
    assert error.value.attempts == 3
    assert error.value.url.startswith(URL)
    assert files(place) == before
    assert values(place) == list(range(10))


def test_the_manifest_comes_last(storage: Scripted, place: Path) -> None:
    """What fails at the manifest leaves no shards."""
    storage.faults["commit"] = [asyncio.Event(), Trouble("busy"), Trouble("busy"), Trouble("busy")]
    gate = storage.faults["commit"][0]
    assert isinstance(gate, asyncio.Event)
    gate.set()
    with pytest.raises(RemoteError, match=r"folder://sets/a/dataset.json: busy \(tried 3 times\)"):
        impatient(Dataset.range(5)).save(URL)
    assert files(place) == []


def test_a_removal_that_fails_does_not_fail_the_save(
    storage: Scripted, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Dataset.range(10).save(URL)
    storage.faults["delete"] = [PermissionError(13, "no")]
    Dataset.range(5).save(URL)
    assert values(place) == list(range(5))
    assert "what was saved there before may be left" in caplog.text


@pytest.mark.parametrize("method", ["list", "create", "commit"])
async def test_cancelling_ends_it_at_once(storage: Scripted, place: Path, method: str) -> None:
    await Dataset.range(10).asave(URL)
    before = files(place)
    storage.faults[method] = [asyncio.Event()]
    storage.reached = asyncio.Event()
    saving = asyncio.create_task(Dataset.range(5).asave(URL))
    while not storage.reached.is_set():
        await asyncio.sleep(0.01)
    saving.cancel()
    begun = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert time.monotonic() - begun < 5
    assert files(place) == before


def _age(place: Path, seconds: int) -> str:
    """Leave what a save that began so long ago would leave when it is killed."""
    folder = place / f"elements-{int(time.time()) - seconds:08x}{'ab' * 4}"
    folder.mkdir(parents=True)
    (folder / "00000000.npz").write_bytes(b"half")
    return folder.name


def test_what_a_killed_save_left_is_removed_when_it_is_old(place: Path) -> None:
    old, young = _age(place, ABANDONED_SECONDS + 60), _age(place, 60)
    unknown = place / "elements-0000000012345678"
    unknown.mkdir()
    (unknown / "00000000.npz").write_bytes(b"of another time")
    Dataset.range(5).save(URL)
    left = {name.partition("/")[0] for name in files(place)}
    assert old not in left
    assert {young, unknown.name} <= left
    assert values(place) == list(range(5))


def test_an_old_dataset_is_no_abandoned_one(place: Path) -> None:
    Dataset.range(5).save(URL)
    (folder,) = [path for path in place.iterdir() if path.is_dir()]
    old = _age(place, ABANDONED_SECONDS + 60)
    shutil.rmtree(place / old)
    manifest = (place / "dataset.json").read_text()
    folder.rename(place / old)
    facts = json.loads(manifest)
    del facts["crc32"]
    facts["token"] = old
    facts["crc32"] = crc32(json.dumps(facts, sort_keys=True).encode())
    (place / "dataset.json").write_text(json.dumps(facts))
    with pytest.raises(Boom):
        failing(Dataset.range(10), 5).save(URL)
    assert (place / old / "00000000.npz").exists()


def test_a_save_whose_files_were_removed_puts_no_manifest(storage: Scripted, place: Path) -> None:
    Dataset.range(10).save(URL)
    before = set(place.glob("elements-*/*.npz"))
    gate = asyncio.Event()
    storage.faults["list"] = [_set(), _set(), gate]  # the third one looks for the files, before the manifest
    storage.reached = asyncio.Event()
    errors: list[BaseException] = []

    def save() -> None:
        try:
            Dataset.range(5).save(URL)
        except RemoteError as error:
            errors.append(error)

    thread = threading.Thread(target=save)
    thread.start()
    while storage.calls["list"] < 6:  # those of the first save too
        time.sleep(0.01)
    (new,) = set(place.glob("elements-*/*.npz")) - before
    new.unlink()
    assert network._network is not None
    network._network._loop.call_soon_threadsafe(gate.set)
    thread.join()
    (error,) = errors
    assert re.fullmatch(f"{URL}: elements-.{{16}}/00000000.npz is gone: somebody has removed it", str(error))
    assert values(place) == list(range(10))


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


def test_the_label_has_no_secrets(storage: Scripted) -> None:
    storage.faults["list"] = [Trouble("busy")] * 9
    with pytest.raises(RemoteError) as error:
        impatient(Dataset.range(5)).save("folder://ann:secret@host/a")
    assert "secret" not in str(error.value) + "".join(getattr(error.value, "__notes__", []))


PROGRAM = """
import sys, time
from aiodata import Dataset
from aiodata.storage import register
from tests.storage.folder_storage import FolderStorage
register("folder", lambda: FolderStorage(sys.argv[1]))
def slow(x):
    if x == 30_000:
        print("here", flush=True)
        time.sleep(60)
    return {"x": x, "more": b"x" * 1000}
Dataset.range(40_000).map(slow).save("folder://sets/a")
"""


@pytest.mark.parametrize("before", [False, True])
def test_a_killed_process_leaves_no_dataset_or_the_old_one(tmp_path: Path, place: Path, before: bool) -> None:
    if before:
        Dataset.range(10).save(URL)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGKILL)
    assert (values(place) == list(range(10))) if before else not (place / "dataset.json").exists()
    assert any(name.startswith("elements") for name in files(place))
    Dataset.range(7).save(URL)
    assert values(place) == list(range(7))


def test_two_at_once(place: Path) -> None:
    """The last one to be complete stays, whole."""

    def save(count: int) -> None:
        Dataset.range(count).save(URL)

    threads = [threading.Thread(target=save, args=(count,)) for count in (1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(place) in (list(range(1000)), list(range(2000)))


# What is local only


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    Dataset.range(3).save(f"file://{tmp_path}/saved")
    assert values(tmp_path / "saved") == [0, 1, 2]


def test_what_has_to_be_local_says_so() -> None:
    ds = Dataset.range(3)
    with pytest.raises(ValueError, match="cache: filename must be local, not memory://a; save and load take URLs"):
        ds.cache("memory://a")
    with pytest.raises(ValueError, match=r"snapshot: path must be local, not s3://\*\*\*@b/a; save and load"):
        ds.snapshot("s3://key@b/a")
    with pytest.raises(ValueError, match="CheckpointManager: directory must be local, not s3://b/a; copy the files"):
        aiodata.CheckpointManager("s3://b/a")
