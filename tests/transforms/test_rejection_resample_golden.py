"""`rejection_resample` in every golden case that TensorFlow 2.21 printed, and resumed at every element."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import collect, global_seed, plain, to_list
from tests.resume.saving import along, check_rest, drive, part

CASES = json.loads((Path(__file__).parents[1] / "golden" / "rejection_resample.json").read_text(encoding="utf-8"))[
    "cases"
]


def name_of(index: int, case: dict[str, Any]) -> str:
    """Name a case so that a failing one can be found in the file."""
    marks = "" if case["initial_dist"] is None else "-initial"
    marks += "" if case["shuffle_before"] is None else "-shuffled"
    return f"{index}-{len(case['target_dist'])}-s{case['seed']}-g{case['global_seed']}{marks}"


each_case = pytest.mark.parametrize("case", CASES, ids=[name_of(index, case) for index, case in enumerate(CASES)])


def build(case: dict[str, Any]) -> Dataset[Any]:
    """Build the chain of a case."""
    classes = np.array(case["classes"], np.int32)
    ds = Dataset.from_tensor_slices((classes, np.arange(len(classes))))
    if case["shuffle_before"] is not None:
        buffer_size, seed = case["shuffle_before"]
        ds = ds.shuffle(buffer_size, seed=seed)
    return ds.rejection_resample(
        lambda found, number: found, case["target_dist"], case["initial_dist"], seed=case["seed"]
    ).map(lambda found, element: (found, element[1]))


@each_case
def test_elements_are_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(to_list(ds)) for _ in range(case["passes"])] == case["expected"]
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(asyncio.run(collect(ds))) for _ in range(case["passes"])] == case["expected"]


@each_case
def test_every_element_can_be_resumed_at(case: dict[str, Any]) -> None:
    def make() -> Dataset[Any]:
        return build(case).repeat(2)

    with global_seed(case["global_seed"]):
        straight, states = drive("sync", along(make(), "sync"))
    for number, state in list(enumerate(states))[::5]:  # in a process with no global seed
        found, _ = drive("sync", part(make(), "sync", state))
        check_rest(f"before pull {number}", found, straight[number:])
