"""`shuffle` in every golden case that TensorFlow 2.21 printed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aiodata import Dataset
from tests.programs import collect, global_seed, plain, to_list

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "shuffle.json").read_text(encoding="utf-8"))


def name_of(index: int, case: dict[str, Any]) -> str:
    """Name a case so that a failing one can be found in the file."""
    if "kind" in case:
        return f"{index}-{case['kind']}-g{case['global_seed']}"
    steps = f"n{case['n']}-b{case['buffer_size']}-s{case['seed']}-g{case['global_seed']}"
    marks = {
        "reshuffle_each_iteration": "reshuffle",
        "repeat_before": "before",
        "repeat_after": "after",
        "take": "take",
    }
    shown = [f"{mark}{case[key]}" for key, mark in marks.items() if case[key] is not None]
    return "-".join([str(index), steps, *shown])


def cases(group: str, every: int = 1) -> list[Any]:
    """Return the cases of a group as parameters with readable names."""
    return [pytest.param(case, id=name_of(index, case)) for index, case in enumerate(GOLDEN[group])][::every]


def build(case: dict[str, Any]) -> Dataset[Any]:
    """Build the chain of a plain or a long case."""
    ds: Dataset[Any] = Dataset.range(case["n"])
    if case["repeat_before"] is not None:
        ds = ds.repeat(case["repeat_before"])
    ds = ds.shuffle(case["buffer_size"], case["seed"], case["reshuffle_each_iteration"])
    if case["repeat_after"] is not None:
        ds = ds.repeat(case["repeat_after"])
    return ds if case["take"] is None else ds.take(case["take"])


def digest(values: list[Any]) -> dict[str, Any]:
    """Summarise a long pass as the golden file does."""
    numbers = np.array(values, dtype="<i8")
    sha = hashlib.sha256(numbers.tobytes()).hexdigest()
    return {"count": len(values), "sha256": sha, "head": plain(numbers[:16]), "tail": plain(numbers[-16:])}


def make(op: str, args: list[Any], inputs: list[Dataset[Any]]) -> Dataset[Any]:
    """Build one node of a scenario."""
    match op:
        case "zip":
            return Dataset.zip(tuple(inputs))
        case "concatenate":
            return inputs[0].concatenate(inputs[1])
        case "flat_map_same":
            return Dataset.range(args[0]).flat_map(lambda _: inputs[0])
        case "flat_map_fresh":
            count, size, buffer, seed = args
            return Dataset.range(count).flat_map(lambda _: Dataset.range(size).shuffle(buffer, seed=seed))
        case "sample":
            seed, weights, stop, rerandomize = args
            return Dataset.sample_from_datasets(inputs, weights, seed, stop, rerandomize)
        case "filter_mod":
            return inputs[0].filter(lambda x: x % args[0] != args[1])
        case "map_add":
            return inputs[0].map(lambda x: x + args[0])
        case "range" | "random":
            return getattr(Dataset, op)(*args)
        case "shuffle" | "repeat" | "prefetch" | "take" | "skip" | "cache" | "batch":
            return getattr(inputs[0], op)(*args)
    raise AssertionError(f"no such op: {op}")


def nodes_of(case: dict[str, Any]) -> dict[str, Dataset[Any]]:
    """Build all nodes of a scenario, in order."""
    nodes: dict[str, Dataset[Any]] = {}
    for name, op, args, inputs in case["nodes"]:
        nodes[name] = make(op, args, [nodes[key] for key in inputs])
    return nodes


def run_sync(case: dict[str, Any]) -> list[Any]:
    """Do what a scenario says through the sync face."""
    nodes, iterators, lists = nodes_of(case), {}, []
    for step in case["run"]:
        match step:
            case ["all", node]:
                lists.append(plain(to_list(nodes[node])))
            case ["iter", key, node]:
                iterators[key] = nodes[node].iterate()
            case ["next", key, count]:
                lists.append(plain(list(islice(iterators[key], count))))
    for iterator in iterators.values():
        iterator.close()
    return lists


async def run_async(case: dict[str, Any]) -> list[Any]:
    """Do what a scenario says through the async face."""
    nodes, iterators, lists = nodes_of(case), {}, []
    for step in case["run"]:
        match step:
            case ["all", node]:
                lists.append(plain(await collect(nodes[node])))
            case ["iter", key, node]:
                iterators[key] = nodes[node].iterate()
            case ["next", key, count]:
                taken: list[Any] = []
                while len(taken) < count:
                    try:
                        taken.append(plain(await anext(iterators[key])))
                    except StopAsyncIteration:
                        break
                lists.append(taken)
    for iterator in iterators.values():
        await iterator.aclose()
    return lists


@pytest.mark.parametrize("case", cases("cases"))
def test_order_is_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(to_list(ds)) for _ in range(case["passes"])] == case["expected"]


@pytest.mark.parametrize("case", cases("long"))
def test_long_order_is_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [digest(to_list(ds)) for _ in range(case["passes"])] == case["expected"]


@pytest.mark.parametrize("case", cases("scenarios"))
def test_scenario_is_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        assert run_sync(case) == case["expected"]


@pytest.mark.parametrize("case", cases("cases", every=7))
def test_async_order_is_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [plain(asyncio.run(collect(ds))) for _ in range(case["passes"])] == case["expected"]


@pytest.mark.parametrize("case", cases("long", every=3))
def test_async_long_order_is_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        ds = build(case)
        assert [digest(asyncio.run(collect(ds))) for _ in range(case["passes"])] == case["expected"]


@pytest.mark.parametrize("case", cases("scenarios", every=2))
def test_async_scenario_is_tensorflows(case: dict[str, Any]) -> None:
    with global_seed(case["global_seed"]):
        assert asyncio.run(run_async(case)) == case["expected"]
