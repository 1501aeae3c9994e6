"""What the tests of endings share."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.observing import Line, write_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with some text files."""
    write_files(tmp_path)
    return tmp_path


@pytest.fixture
def no_cycle_collector() -> Iterator[None]:
    """Turn the cycle collector off, so that only references count."""
    gc.collect()
    Line.alive.clear()  # a failed test holds its elements
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
