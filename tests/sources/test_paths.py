"""What all readers of files say of paths that cannot be read."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from typing import TYPE_CHECKING, Any

import pytest

import aiodata
from tests.programs import outcomes, outcomes_async

if TYPE_CHECKING:
    from pathlib import Path

MODULES = {"TFRecordDataset": "google_crc32c", "ParquetDataset": "pyarrow", "ArrowDataset": "pyarrow"}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "TextLineDataset": {},
    "CsvDataset": {"record_defaults": [bytes]},
    "JsonLinesDataset": {},
    "FixedLengthRecordDataset": {"record_bytes": 1},
    "TFRecordDataset": {},
    "TarDataset": {},
    "NpyDataset": {},
    "ParquetDataset": {},
    "ArrowDataset": {},
}
READERS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name in MODULES and importlib.util.find_spec(MODULES[name]) is None, reason=f"{name} needs what is optional"
        ),
    )
    for name in ARGUMENTS
]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["path", "list", "dataset"])
def test_a_path_that_cannot_be_read_is_the_same_error_from_all(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    paths: list[tuple[str, type[Exception]]] = [
        (str(tmp_path / "missing"), FileNotFoundError),
        (str(tmp_path / "none" / "missing"), FileNotFoundError),
        (str(tmp_path), IsADirectoryError),
        (str(tmp_path / "file" / "inside"), NotADirectoryError),
        (str(tmp_path / "loop"), OSError),
        (str(tmp_path / ("x" * 300)), OSError),
    ]
    for path, expected in paths:
        given: Any = {
            "path": path,
            "list": [path, path],
            "dataset": aiodata.Dataset.from_tensor_slices([path, path]),
        }[kind]
        ds = getattr(aiodata, name)(given, **ARGUMENTS[name])
        for found in (outcomes(ds), asyncio.run(outcomes_async(ds))):
            assert [type(error) for error in found] == [expected] * (1 if kind == "path" else 2)
            assert [error.filename for error in found] == [path] * len(found)
    (error,) = outcomes(getattr(aiodata, name)(["a\0b"], **ARGUMENTS[name]))
    assert type(error) is ValueError
    assert "embedded null" in str(error)


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_may_not_be_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    (error,) = outcomes(getattr(aiodata, name)(path, **ARGUMENTS[name]))
    assert type(error) is PermissionError
    assert error.filename == str(path)
