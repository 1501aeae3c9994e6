"""Readers that seek, from a server: Parquet, Arrow, numpy's files and saved datasets, as from the disk."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aiodata import ArrowDataset, Dataset, NpyDataset, Options, ParquetDataset
from aiodata.errors import CorruptRecordError, RemoteError, StateError, StructureError
from aiodata.options import StorageOptions
from aiodata.storage import Answer, FileInfo, Storage, register, schemes
from tests.programs import assert_gives, assert_same, first, outcomes, pull_all, pull_all_async, to_list
from tests.resume.saving import FACES, along, drive, part
from tests.servers.http import HttpServer
from tests.servers.http_faults import CutAt, Normal, Replace, ResetAt, SilentAt, Status

pytest.importorskip("aiohttp", reason="it reads URLs")
pa = pytest.importorskip("pyarrow", reason="it reads Parquet files")

from tests.arrow_files import write_arrow, write_parquet  # noqa: E402

ROWS = 60_000
Make = Callable[[str], Dataset[Any]]


def columns(rows: int = ROWS) -> dict[str, Any]:
    chance = np.random.default_rng(1)
    return {
        "n": np.arange(rows),
        "x": chance.random(rows),
        "text": [f"text {n % 100} of {n}" for n in range(rows)],
        "y": chance.random(rows),
    }


def write_all(folder: Path) -> None:
    table = columns()
    write_parquet(folder / "a.parquet", table, 15_000, use_dictionary=False)
    write_parquet(folder / "whole.parquet", table)
    write_arrow(folder / "a.arrow", table, 10_000)
    write_arrow(folder / "a.arrows", table, 10_000, stream=True)
    numbers = np.stack([table["n"], table["x"], table["y"]], 1)
    np.save(folder / "a.npy", numbers)
    np.save(folder / "fortran.npy", np.asfortranarray(numbers))
    members = {"n": table["n"], "x": table["x"], "numbers": numbers}
    np.savez(folder / "a.npz", **members)
    np.savez_compressed(folder / "deflated.npz", **members)
    saved = Dataset.from_tensor_slices({"n": table["n"], "numbers": numbers})
    saved.save(folder / "saved")
    saved.save(folder / "deflated", compression="GZIP")
    saved.save(folder / "shards", shard_func=shard_of)


def shard_of(row: Any) -> Any:
    return row["n"] % 3


READERS: dict[str, Make] = {
    "Parquet": lambda at: ParquetDataset(f"{at}/a.parquet"),
    "Parquet, one group": lambda at: ParquetDataset(f"{at}/whole.parquet", ["y", "text"]),
    "Parquet, filter": lambda at: ParquetDataset(f"{at}/a.parquet", ["x"], filter=[("n", ">", 31_000)]),
    "Arrow": lambda at: ArrowDataset(f"{at}/a.arrow"),
    "Arrow, columns": lambda at: ArrowDataset(f"{at}/a.arrow", ["text", "n"]),
    "Arrow, stream": lambda at: ArrowDataset(f"{at}/a.arrows", ["n"]),
    "npy": lambda at: NpyDataset(f"{at}/a.npy"),
    "npy, Fortran": lambda at: NpyDataset(f"{at}/fortran.npy"),
    "npz": lambda at: NpyDataset(f"{at}/a.npz"),
    "npz, deflated": lambda at: NpyDataset(f"{at}/deflated.npz", members=["numbers", "n"]),
    "load": lambda at: Dataset.load(f"{at}/saved"),
    "load, deflated": lambda at: Dataset.load(f"{at}/deflated"),
    "load, shards": lambda at: Dataset.load(f"{at}/shards"),
}
FILES = {
    "Parquet": "a.parquet",
    "Parquet, one group": "whole.parquet",
    "Arrow": "a.arrow",
    "Arrow, columns": "a.arrow",
    "Arrow, stream": "a.arrows",
    "npy": "a.npy",
    "npz": "a.npz",
    "npz, deflated": "deflated.npz",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    write_all(made)
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[HttpServer]:
    with HttpServer() as made:
        for path in folder.rglob("*"):
            if path.is_file():
                made.files[f"/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
        yield made


def patient(ds: Dataset[Any], **limits: Any) -> Dataset[Any]:
    given = {"first_wait_seconds": 0.001, "max_wait_seconds": 0.01, "max_attempts": 4, "chunk_bytes": 100_000, **limits}
    return ds.with_options(Options(storage=StorageOptions(**given)))


def blocks(ds: Dataset[Any], rows: int = 7000) -> Dataset[Any]:
    return ds.batch(rows)


def read_counted(ds: Dataset[Any], face: str = "sync") -> tuple[list[Any], dict[str, Any]]:
    """Read everything; give it with the counters of what asks a server."""

    async def read() -> tuple[list[Any], dict[str, Any]]:
        iterator = ds.iterate()
        try:
            found = [each async for each in iterator] if face == "async" else list(iterator)
            (counters,) = [each for each in iterator.statistics() if each.get("requests")]
            return found, counters
        finally:
            if face == "async":
                await iterator.aclose()
            else:
                iterator.close()

    return drive(face, read())


# The same elements


@pytest.mark.parametrize("name", READERS)
def test_the_elements_are_those_of_the_local_file(name: str, folder: Path, server: HttpServer) -> None:
    make = READERS[name]
    assert_gives(patient(blocks(make(server.url))), to_list(blocks(make(str(folder)))))
    server.wait_for_no_connections()


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("how", ["no ranges", "compressed", "chunked"])
def test_servers_without_ranges(name: str, how: str, folder: Path, server: HttpServer) -> None:
    server.ranges, server.compresses, server.chunked = how != "no ranges", how == "compressed", how == "chunked"
    make = READERS[name]
    assert_same(to_list(blocks(make(server.url))), to_list(blocks(make(str(folder)))))
    reads = 2 * (7 if "shards" in name else 3 if "load" in name else 1)  # the copy is read after the first bytes
    assert len(server.requests) <= reads + (len(server.requests) if how == "chunked" else 2)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("face", FACES)
def test_faults_are_healed(name: str, face: str, folder: Path, server: HttpServer) -> None:
    make = READERS[name]
    expected = to_list(blocks(make(str(folder))))
    data = make(server.url)
    faults = [Normal(), Status(503), ResetAt(20_000), CutAt(5000), Status(429, {"Retry-After": "0"})]
    for path in server.files:
        if not path.endswith(".json"):
            server.script(path, faults)
    found, counters = read_counted(patient(blocks(data)), face)
    assert_same(found, expected)
    used = [path for path in server.files if any(each.file == path for each in server.requests)]
    assert {server.scripted(path) for path in used if not path.endswith(".json")} == {0}
    assert counters["retries"] == 4 * sum(not path.endswith(".json") for path in used)
    assert counters["bytes_read"] > 0


def test_a_silent_server_is_asked_again(folder: Path, server: HttpServer) -> None:
    server.script("/a.parquet", [Normal(), Normal(), SilentAt(10_000)])
    found, counters = read_counted(patient(blocks(ParquetDataset(server.url + "/a.parquet")), idle_seconds=0.3))
    assert_same(found, to_list(blocks(ParquetDataset(folder / "a.parquet"))))
    assert counters["retries"] == 1


@pytest.mark.parametrize("reads", [None, 3])
def test_several_files(reads: int | None, folder: Path, server: HttpServer) -> None:
    def make(at: str) -> Dataset[Any]:
        paths = [f"{at}/a.parquet", str(folder / "whole.parquet"), f"{at}/none.parquet", f"{at}/whole.parquet"]
        return ParquetDataset(paths, ["n", "y"], num_parallel_reads=reads).ignore_errors().batch(9000)

    assert_same(to_list(make(server.url)), to_list(make(str(folder))))


def test_a_file_url_is_a_local_file(folder: Path) -> None:
    url = (folder / "a.npy").as_uri()
    assert_same(first(NpyDataset([url, url]), 3), first(NpyDataset(folder / "a.npy"), 3))
    assert len(Dataset.load((folder / "saved").as_uri())) == ROWS


# Positions


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("face", FACES)
def test_resume(name: str, face: str, folder: Path, server: HttpServer) -> None:
    def make() -> Dataset[Any]:
        return patient(READERS[name](server.url)).batch(7000)

    expected, states = drive(face, along(make(), face))
    assert_same(expected, to_list(blocks(READERS[name](str(folder)))))
    for number, state in enumerate(states):
        found, _ = drive(face, part(make(), face, state))
        assert_same(found, expected[number:])


@pytest.mark.parametrize("name", ["Parquet", "Arrow", "npy", "load"])
def test_resuming_reads_what_follows(name: str, folder: Path, server: HttpServer) -> None:
    data = patient(READERS[name](server.url).batch(1000), chunk_bytes=50_000, read_ahead_bytes=100_000)
    _, states = drive("sync", along(data, "sync"))
    size = max(len(server.files[each.file]) for each in server.requests)
    for number in (50, -1):
        server.requests.clear()
        drive("sync", part(data, "sync", states[number]))
        asked = sum((each.range[1] or 0) - each.range[0] + 1 for each in server.requests if each.range)
        assert asked < size * 0.4 + 200_000


@pytest.mark.parametrize("name", FILES)
def test_a_position_in_another_file_is_refused(name: str, server: HttpServer) -> None:
    data = READERS[name](server.url)
    _, state = drive("sync", part(data, "sync", count=10))
    path = "/" + FILES[name]
    content = server.files[path]
    server.files[path] = content[:-1] + bytes([content[-1] ^ 1])
    with data.iterate(state) as iterator, pytest.raises(StateError, match="another one than when the state was saved"):
        next(iterator)


def test_a_position_in_another_saved_dataset_is_refused(tmp_path: Path, server: HttpServer) -> None:
    data = Dataset.load(server.url + "/saved")
    _, state = drive("sync", part(data, "sync", count=10))
    for number in range(2):
        Dataset.range(ROWS).save(tmp_path / str(number))
    manifest = (tmp_path / "1" / "dataset.json").read_bytes()
    server.files["/saved/dataset.json"] = manifest
    with data.iterate(state) as iterator, pytest.raises(StateError, match="/saved: the saved dataset is another one"):
        next(iterator)
    del server.files["/saved/dataset.json"]
    with data.iterate(state) as iterator, pytest.raises(StateError, match="the saved dataset is not there"):
        next(iterator)


# Errors


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_there(name: str, server: HttpServer) -> None:
    del server.files["/" + FILES[name]]
    (error,) = outcomes(READERS[name](server.url))
    assert isinstance(error, FileNotFoundError)
    assert f"{server.url}/{FILES[name]}" in str(error)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_replaced(name: str, server: HttpServer) -> None:
    path = "/" + FILES[name]
    server.script(path, [Normal(), Normal(), Replace(server.files[path][::-1])])
    found = outcomes(patient(READERS[name](server.url)).batch(7000))
    errors = [each for each in found if isinstance(each, Exception)]
    assert [type(error) for error in errors] == [RemoteError], errors
    assert "has been replaced while it was being read" in str(errors[0])


@pytest.mark.parametrize("name", FILES)
def test_a_server_that_stays_down_is_one_error(name: str, server: HttpServer) -> None:
    path = "/" + FILES[name]
    server.script(path, [Normal(), Normal(), Normal(), *[Status(503)] * 200])
    make: Any = {"Parquet": ParquetDataset, "Arrow": ArrowDataset}.get(name.partition(",")[0], NpyDataset)
    with patient(make(f"{server.url}{path}?key=secret"), max_attempts=2).iterate() as iterator:
        found = list(pull_all(iterator, ROWS + 10))
    error = found[-1]
    assert [each for each in found if isinstance(each, Exception)] == [error]
    assert isinstance(error, RemoteError)
    assert error.attempts == 2
    assert error.url == f"{server.url}{path}?key=***"
    assert "secret" not in str(error) + "".join(error.__notes__)
    assert f"{server.url}{path}?key=***" in error.__notes__[0]


def test_shards_that_are_gone_are_errors_and_never_others(folder: Path, server: HttpServer) -> None:
    data = Dataset.load(server.url + "/shards")
    (gone,) = [path for path in server.files if path.startswith("/shards") and path.endswith("1.npz")]
    del server.files[gone]
    with data.iterate() as iterator:
        found = pull_all(iterator, ROWS + 10)
    assert [type(each) for each in found if isinstance(each, Exception)] == [FileNotFoundError]
    assert {int(each["n"]) % 3 for each in found if not isinstance(each, Exception)} == {0, 2}


def test_damage_is_told_from_trouble(server: HttpServer) -> None:
    content = server.files["/a.parquet"]
    server.files["/a.parquet"] = content[:-3] + b"???"
    server.files["/a.npz"] = server.files["/a.npz"][:-10]
    for ds in (ParquetDataset(server.url + "/a.parquet?key=1"), NpyDataset(server.url + "/a.npz?key=1")):
        (error,) = outcomes(ds)
        assert isinstance(error, CorruptRecordError)
        assert "?key=***" in str(error)


class Vague(Storage):
    """Gives the first bytes and the last ones; its errors for all others have no number."""

    content = b""

    async def open(self, url: str, offset: int, length: int | None) -> Answer:
        if 0 < offset < len(self.content) - 100_000:
            raise OSError("out of order")
        return Answer(FileInfo(len(self.content), "1"), self._pieces(offset), offset)

    async def _pieces(self, offset: int) -> Any:
        yield self.content[offset:]


@pytest.mark.parametrize("name", FILES)
def test_an_error_of_a_storage_never_passes_for_damaged_data(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemes, "_registered", dict(schemes._registered))
    monkeypatch.setattr(Vague, "content", (folder / FILES[name]).read_bytes())
    register("vague", Vague)
    found = outcomes(patient(READERS[name]("vague://host")).batch(7000))
    errors = [each for each in found if isinstance(each, Exception)]
    assert [type(error) for error in errors] == [OSError]
    assert str(errors[0]) == "out of order"


def test_files_have_the_types_of_the_first_one(folder: Path, server: HttpServer, tmp_path: Path) -> None:
    np.save(tmp_path / "other.npy", np.zeros((3, 2)))
    server.files["/other.npy"] = (tmp_path / "other.npy").read_bytes()
    ds = NpyDataset([server.url + "/other.npy?sig=1", server.url + "/a.npy?sig=2"])
    with ds.iterate() as iterator:
        assert [next(iterator).shape for _ in range(3)] == [(2,)] * 3
        state = iterator.state_dict()
        with pytest.raises(StructureError, match=r"/a\.npy\?sig=\*\*\*: .*other\.npy\?sig=\*\*\*"):
            next(iterator)
    with ds.iterate(state) as iterator, pytest.raises(StructureError, match=r"other\.npy"):
        next(iterator)


# Load


def test_load_at_the_call(server: HttpServer) -> None:
    data = Dataset.load(server.url + "/saved/")
    assert len(data) == ROWS
    assert Dataset.load(server.url + "/saved?key=secret").plan.detail == f"'{server.url}/saved?key=***'"
    assert [each.file for each in server.requests] == ["/saved/dataset.json"] * 2
    with pytest.raises(FileNotFoundError, match=r"none/dataset\.json"):
        Dataset.load(server.url + "/none")
    server.files["/saved/dataset.json"] += b"?"
    with pytest.raises(CorruptRecordError, match=f"{server.url}/saved/dataset.json"):
        Dataset.load(server.url + "/saved")


def test_load_waits(server: HttpServer) -> None:
    manifest = server.files.pop("/saved/dataset.json")

    def put() -> None:
        server.wait_for_requests(1)
        server.files["/saved/dataset.json"] = manifest

    writer = threading.Thread(target=put)
    writer.start()
    assert len(Dataset.load(server.url + "/saved", wait=True)) == ROWS
    writer.join()
    assert len(server.requests) >= 2


def test_a_signed_folder(server: HttpServer) -> None:
    assert len(first(Dataset.load(server.url + "/saved?signature=secret"), 5)) == 5
    assert {each.path.partition("?")[2] for each in server.requests} == {"signature=secret"}


# The end


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("after", [0, 2])
def test_cancelling_a_read_that_waits(name: str, ahead: bool, after: int, server: HttpServer) -> None:
    data = patient(READERS[name](server.url), read_ahead_bytes=0, chunk_bytes=20_000).batch(9000)
    data = data.prefetch(1) if ahead else data
    before = len(server.requests)

    async def read() -> None:
        async with data.iterate() as iterator:
            pulled = asyncio.create_task(pull_all_async(iterator))
            await asyncio.to_thread(server.wait_for_requests, before + after)
            server.holding = True
            await asyncio.to_thread(server.wait_for_requests_at_once, 1)
            pulled.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pulled

    server.holding = after == 0
    begun = time.monotonic()
    asyncio.run(read())
    assert time.monotonic() - begun < 15  # a request may be silent for 30 s
    server.wait_for_no_connections()
    server.holding = False


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("ahead", [False, True])
def test_control_c_while_a_read_waits(name: str, ahead: bool, server: HttpServer) -> None:
    data = READERS[name](server.url).prefetch(1) if ahead else READERS[name](server.url)

    def interrupt() -> None:
        server.wait_for_requests_at_once(1)
        signal.raise_signal(signal.SIGINT)

    with data.iterate() as iterator:
        server.holding = True
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
        thread.join()
    server.wait_for_no_connections()
    server.holding = False


@pytest.mark.parametrize("name", READERS)
def test_leaving_with_reads_under_way(name: str, server: HttpServer) -> None:
    data = patient(READERS[name](server.url))

    async def read() -> None:
        async for _ in data.batch(3000).prefetch(2):
            server.holding = True
            break

    asyncio.run(read())
    gc.collect()
    server.wait_for_no_connections()
    server.holding = False
    with data.batch(3000).iterate() as iterator:
        next(iterator)
        server.holding = True
    server.wait_for_no_connections()
    server.holding = False
