"""Many remote objects that each take a while to begin: 200 of 1 MB, 50 ms to the first byte, 64 at once.

The floor is latency, four waves of 50 ms. Elements are whole objects; the names that begin with "records" cut them into
records of 100 kB and give them in batches of 10.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

from benchmarks.workload import Pass, Workload
from benchmarks.workloads import _clients as clients

OBJECTS, SIZE, LATENCY, AT_ONCE = 200, 1_000_000, 0.05, 64
RECORD, BATCH = 100_000, 10
PROCESSES, THREADS = 4, 16


def server(folder: Path) -> list[str]:
    """Give the command of the server."""
    script = Path(__file__).parents[1] / "parts" / "latency_server.py"
    return [sys.executable, str(script), str(OBJECTS), str(SIZE), str(LATENCY)]


def contents(element: Any) -> list[Any]:
    """Give the objects, or records, of an element."""
    return list(element) if isinstance(element, (list, np.ndarray)) else [element]


WORKLOAD = Workload(
    "remote",
    "remote: 200 objects of 1 MB, 50 ms to the first byte of each, 64 at once",
    OBJECTS,
    unit="object",
    # A batch of records counts as one object: there are as many of them as objects.
    size=lambda element: 1 if isinstance(element, np.ndarray) else len(contents(element)),
    total=lambda element: float(sum(len(content) * bytes(content[:1])[0] for content in contents(element))),
    serves=server,
)


def address() -> str:
    """Name the server."""
    return f"http://127.0.0.1:{os.environ['AIODATA_BENCHMARK_SERVER']}"


def urls(scheme: str = "") -> list[str]:
    """Name the objects."""
    return [f"{scheme or address()}/bucket/{number}" for number in range(OBJECTS)]


async def _only_async(dataset: Any) -> Any:
    async for element in dataset:
        yield element


def _read(url: str) -> bytes:
    with urlopen(url) as response:
        content: bytes = response.read()
    return content


# aiodata


def _mapped(names: list[str], **arguments: Any) -> Any:
    from aiodata import Dataset, aread_file

    return Dataset.from_tensor_slices(names).map(aread_file, **{"num_parallel_calls": AT_ONCE, **arguments})


def _records(names: list[str], **arguments: Any) -> Any:
    from aiodata import Dataset, FixedLengthRecordDataset

    read = partial(FixedLengthRecordDataset, record_bytes=RECORD)
    files = Dataset.from_tensor_slices(names)
    return files.interleave(read, **{"cycle_length": AT_ONCE, "num_parallel_calls": AT_ONCE, **arguments}).batch(BATCH)


def _use_store() -> None:
    """Have `s3://` mean the server."""
    from aiodata import storage

    plain: dict[str, Any] = {"endpoint": address(), "skip_signature": True, "region": "local"}
    storage.register("s3", partial(storage.ObjectStorage, **plain, client_options={"allow_http": True}))


@WORKLOAD.ours("aiodata, map(aread_file)")
def mapped(folder: Path) -> Pass:
    """Read whole objects in an event loop."""
    dataset = _mapped(urls())
    return lambda: _only_async(dataset)


@WORKLOAD.ours("aiodata, map(aread_file), for")
def mapped_for(folder: Path) -> Pass:
    """Do the same in a plain loop."""
    dataset = _mapped(urls())
    return lambda: dataset


@WORKLOAD.ours("aiodata, map(aread_file), AUTOTUNE")
def mapped_autotune(folder: Path) -> Pass:
    """Let aiodata choose how many are read at once."""
    from aiodata import AUTOTUNE

    dataset = _mapped(urls(), num_parallel_calls=AUTOTUNE)
    return lambda: _only_async(dataset)


@WORKLOAD.ours("aiodata, map(aread_file), s3")
def mapped_store(folder: Path) -> Pass:
    """Read through obstore."""
    _use_store()
    dataset = _mapped(urls("s3:/"))
    return lambda: _only_async(dataset)


@WORKLOAD.ours("records: aiodata, interleave")
def records(folder: Path) -> Pass:
    """Cut records while they come."""
    dataset = _records(urls())
    return lambda: _only_async(dataset)


@WORKLOAD.ours("records: aiodata, interleave, for")
def records_for(folder: Path) -> Pass:
    """Do the same in a plain loop."""
    dataset = _records(urls())
    return lambda: dataset


@WORKLOAD.ours("records: aiodata, interleave, AUTOTUNE")
def records_autotune(folder: Path) -> Pass:
    """Let aiodata choose how many of 64 objects are read at once."""
    from aiodata import AUTOTUNE

    dataset = _records(urls(), num_parallel_calls=AUTOTUNE)
    return lambda: _only_async(dataset)


@WORKLOAD.ours("records: aiodata, interleave, s3")
def records_store(folder: Path) -> Pass:
    """Read through obstore."""
    _use_store()
    dataset = _records(urls("s3:/"))
    return lambda: _only_async(dataset)


# Peers


def _tf_read(url: Any) -> Any:
    import tensorflow as tf

    content = tf.numpy_function(lambda name: _read(name.decode()), [url], tf.string, stateful=False)
    return tf.ensure_shape(content, [])


def _tf_options() -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.threading.private_threadpool_size = AT_ONCE  # as many as the cores otherwise
    return options


@WORKLOAD.peer("tf.data, map, 64 threads", "tensorflow")
def tensorflow_map(folder: Path) -> Pass:
    """Call urllib from a parallel map."""
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(urls()).map(_tf_read, num_parallel_calls=AT_ONCE)
    dataset = dataset.prefetch(tf.data.AUTOTUNE).with_options(_tf_options())
    return dataset.as_numpy_iterator


@WORKLOAD.peer("tf.data, interleave, 64 threads", "tensorflow")
def tensorflow_interleave(folder: Path) -> Pass:
    """Call urllib from the datasets of a parallel interleave."""
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(urls())
    dataset = dataset.interleave(
        lambda url: tf.data.Dataset.from_tensors(url).map(_tf_read), AT_ONCE, num_parallel_calls=AT_ONCE
    )
    dataset = dataset.prefetch(tf.data.AUTOTUNE).with_options(_tf_options())
    return dataset.as_numpy_iterator


class _Objects:
    """The objects, for torch and Grain; several at once are read by threads that each process makes for itself."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.pool: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> bytes:
        return _read(self.names[index])

    def __getitems__(self, indices: list[int]) -> list[bytes]:
        self.pool = self.pool or ThreadPoolExecutor(THREADS)
        return list(self.pool.map(self.__getitem__, indices))


@WORKLOAD.peer("torch, 4 workers of 16 threads", "torch")
def torch_threads(folder: Path) -> Pass:
    """Have each worker read a batch in threads."""
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(_Objects(urls()), THREADS, num_workers=PROCESSES, collate_fn=list, persistent_workers=True)
    return lambda: loader


@WORKLOAD.peer("torch, 16 workers", "torch")
def torch_workers(folder: Path) -> Pass:
    """Have each worker read one object after the other."""
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(_Objects(urls()), None, num_workers=16, prefetch_factor=4, persistent_workers=True)
    return lambda: loader


@WORKLOAD.peer("SPDL, 64 threads", "spdl")
def spdl_threads(folder: Path) -> Pass:
    """Call urllib from threads."""
    return lambda: _spdl(_read)


def _spdl(read: Callable[[str], Any]) -> Iterator[bytes]:
    from spdl.pipeline import PipelineBuilder

    builder: Any = PipelineBuilder().add_source(urls()).pipe(read, concurrency=AT_ONCE).add_sink(AT_ONCE)
    pipeline = builder.build(num_threads=AT_ONCE)
    with pipeline.auto_stop():
        yield from pipeline


@WORKLOAD.peer("SPDL, aiohttp", "spdl,aiohttp")
def spdl_async(folder: Path) -> Pass:
    """Await aiohttp in the pipeline's loop."""
    import aiohttp

    def one_pass() -> Iterator[bytes]:
        session: Any = None
        left = OBJECTS

        async def read(url: str) -> bytes:
            nonlocal session, left
            session = session or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
            async with session.get(url) as response:
                content: bytes = await response.read()
            left -= 1
            if left == 0:
                await session.close()
            return content

        return _spdl(read)

    return one_pass


@WORKLOAD.peer("Grain, 16 threads", "grain")
def grain(folder: Path) -> Pass:
    """Read with Grain's default threads."""
    from grain import MapDataset, ReadOptions

    dataset = MapDataset.source(_Objects(urls())).to_iter_dataset(ReadOptions(num_threads=THREADS))
    return lambda: dataset


# Limits


@WORKLOAD.limit("aiohttp, bare", "aiohttp")
def bare_aiohttp(folder: Path) -> Pass:
    """Gather requests."""
    return lambda: clients.aiohttp_objects(urls(), AT_ONCE)


@WORKLOAD.limit("asyncio streams, bare")
def bare_streams(folder: Path) -> Pass:
    """Write requests by hand."""
    return lambda: clients.stream_objects(urls(), AT_ONCE)


@WORKLOAD.limit("obstore, bare", "obstore")
def bare_obstore(folder: Path) -> Pass:
    """Gather obstore's requests."""
    names = [str(number) for number in range(OBJECTS)]
    return lambda: clients.obstore_objects(address(), "bucket", names, AT_ONCE)


@WORKLOAD.limit("urllib, bare, 64 threads")
def bare_threads(folder: Path) -> Pass:
    """Read in a pool of threads."""

    def one_pass() -> Iterator[bytes]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(_read, urls())

    return one_pass


OTHERS = ("torch", "Grain", "SPDL", "tf.data")
WORKLOAD.target("aiodata, map(aread_file)", "tf.data", 1, "tf.data's best form")
WORKLOAD.target("aiodata, map(aread_file)", OTHERS, 1, "the fastest peer")
WORKLOAD.target("aiodata, map(aread_file)", "aiohttp, bare", 0.8)
WORKLOAD.target("aiodata, map(aread_file), for", "aiohttp, bare", 0.8)
WORKLOAD.target("aiodata, map(aread_file), s3", "obstore, bare", 0.8)
WORKLOAD.target("aiodata, map(aread_file), AUTOTUNE", "aiohttp, bare", 0.8)
WORKLOAD.target("records: aiodata, interleave", "aiohttp, bare", 0.8)
WORKLOAD.target("records: aiodata, interleave, s3", "obstore, bare", 0.8)
