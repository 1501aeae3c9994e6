"""`list_files` in every golden case that TensorFlow 2.21 printed."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from aiodata import Dataset
from tests.programs import collect, global_seed, to_list

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "list_files.json").read_text(encoding="utf-8"))
CASES = [
    pytest.param(case, id=f"{index}-s{case['seed']}-g{case['global_seed']}-shuffle{case['shuffle']}")
    for index, case in enumerate(GOLDEN["cases"])
]


def build(case: dict[str, Any], folder: Path) -> Dataset[Any]:
    """Make the files and the dataset of a case."""
    for name in case["files"]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    patterns = [f"{folder}/{pattern}" for pattern in case["patterns"]]
    ds: Dataset[Any] = Dataset.list_files(patterns, shuffle=case["shuffle"], seed=case["seed"])
    return ds if case["repeat_after"] is None else ds.repeat(case["repeat_after"])


def names(elements: list[bytes], folder: Path) -> list[str]:
    """Return the paths relative to the folder."""
    return [os.fsdecode(element).removeprefix(f"{folder}/") for element in elements]


@pytest.mark.parametrize("case", CASES)
def test_order_is_tensorflows(case: dict[str, Any], tmp_path: Path) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case, tmp_path)
        assert [names(to_list(ds), tmp_path) for _ in range(case["passes"])] == case["expected"]


@pytest.mark.parametrize("case", CASES[::5])
def test_async_order_is_tensorflows(case: dict[str, Any], tmp_path: Path) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case, tmp_path)
        assert [names(asyncio.run(collect(ds)), tmp_path) for _ in range(case["passes"])] == case["expected"]
