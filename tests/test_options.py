"""`Options`: tf.data's fields and groups, checked when they are set."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from aiodata import AutotuneOptions, Options, StorageOptions, ThreadingOptions
from aiodata.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
)

GROUPS = {
    "autotune": AutotuneOptions,
    "threading": ThreadingOptions,
    "experimental_optimization": OptimizationOptions,
    "experimental_distribute": DistributeOptions,
    "experimental_service": ServiceOptions,
    "storage": StorageOptions,
}


def names(kind: Any) -> set[str]:
    return {entry.name for entry in fields(kind)}


def test_has_the_fields_and_groups_of_tf_data_and_those_for_storage() -> None:
    plain = {"deterministic", "dataset_name", "framework_type", "switch_interval_seconds"}
    ends = ("external_state_policy", "slack", "symbolic_checkpoint", "warm_start")
    assert names(Options) == plain | {f"experimental_{end}" for end in ends} | GROUPS.keys()
    assert names(AutotuneOptions) == {
        "enabled",
        "autotune_algorithm",
        "cpu_budget",
        "ram_budget",
        "initial_parallelism",
        "min_parallelism",
        "frozen",
    }
    assert names(ThreadingOptions) == {"private_threadpool_size", "max_intra_op_parallelism"}
    assert names(DistributeOptions) == {"auto_shard_policy", "num_devices"}
    assert names(ServiceOptions) == {"pinned"}
    waits = {"max_attempts", "first_wait_seconds", "max_wait_seconds", "give_up_seconds", "idle_seconds"}
    sizes = {"requests_per_host", "chunk_bytes", "read_ahead_bytes", "memory_bytes"}
    assert names(StorageOptions) == waits | sizes
    assert {"noop_elimination", "map_and_batch_fusion", "apply_default_optimizations"} < names(OptimizationOptions)


def test_nothing_is_set_at_first() -> None:
    options = Options()
    for entry in fields(Options):
        value = getattr(options, entry.name)
        assert type(value) is GROUPS[entry.name] if entry.name in GROUPS else value is None
    for group in GROUPS.values():
        assert all(getattr(group(), entry.name) is None for entry in fields(group))
    assert repr(options) == "Options()"


def test_fields_are_set_one_by_one() -> None:
    options = Options()
    options.deterministic = False
    options.autotune.cpu_budget = 1
    options.threading.private_threadpool_size = 2
    options.experimental_optimization.noop_elimination = True
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    options.experimental_external_state_policy = ExternalStatePolicy.WARN
    options.autotune.autotune_algorithm = AutotuneAlgorithm.HILL_CLIMB
    options.framework_type = ["a"]
    assert options == Options(
        deterministic=False,
        autotune=AutotuneOptions(cpu_budget=1, autotune_algorithm=AutotuneAlgorithm.HILL_CLIMB),
        threading=ThreadingOptions(private_threadpool_size=2),
        experimental_optimization=OptimizationOptions(noop_elimination=True),
        experimental_distribute=DistributeOptions(auto_shard_policy=AutoShardPolicy.OFF),
        experimental_external_state_policy=ExternalStatePolicy.WARN,
        framework_type=["a"],
    )
    options.deterministic = None
    assert options.deterministic is None


def test_two_options_share_no_group() -> None:
    Options().autotune.cpu_budget = 1
    assert Options().autotune.cpu_budget is None


def test_older_names_are_the_same_fields() -> None:
    options = Options()
    options.experimental_deterministic = False
    assert options.deterministic is False
    assert options.experimental_deterministic is False
    options.experimental_threading.private_threadpool_size = 3
    assert options.threading.private_threadpool_size == 3
    options.experimental_threading = ThreadingOptions()
    assert options == Options(deterministic=False)
    with pytest.raises(TypeError, match="deterministic must be bool"):
        options.experimental_deterministic = 1


@pytest.mark.parametrize("make", [Options, *GROUPS.values()])
def test_unknown_fields_are_refused_and_the_known_named(make: Callable[[], Any]) -> None:
    with pytest.raises(AttributeError, match="has no option 'cpu_bugdet'; it has ") as caught:
        make().cpu_bugdet = 1
    assert all(name in str(caught.value) for name in names(make))
    with pytest.raises(AttributeError):
        _ = make().cpu_bugdet


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        (None, "deterministic", 1),
        (None, "deterministic", "no"),
        (None, "autotune", None),
        (None, "autotune", ThreadingOptions()),
        (None, "autotune", {"cpu_budget": 1}),
        (None, "threading", None),
        (None, "dataset_name", 1),
        (None, "framework_type", "abc"),
        (None, "experimental_external_state_policy", 0),
        (None, "switch_interval_seconds", "0.1"),
        (None, "switch_interval_seconds", True),
        ("autotune", "cpu_budget", 1.0),
        ("autotune", "cpu_budget", True),
        ("autotune", "cpu_budget", "1"),
        ("autotune", "enabled", 0),
        ("autotune", "autotune_algorithm", 1),
        ("autotune", "frozen", {"map(f)": 3}),
        ("threading", "private_threadpool_size", 1.0),
        ("experimental_distribute", "auto_shard_policy", 1),
        ("experimental_optimization", "map_fusion", "True"),
    ],
)
def test_other_types_are_refused(group: str | None, name: str, value: Any) -> None:
    options: Any = Options()
    target = options if group is None else getattr(options, group)
    with pytest.raises(TypeError, match=rf"^{type(target).__name__}\.{name} must be .*, not {type(value).__name__}$"):
        setattr(target, name, value)
    with pytest.raises(TypeError, match=name):
        type(target)(**{name: value})
    assert options == Options()


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("autotune", "cpu_budget", 0),
        ("autotune", "cpu_budget", -1),
        ("autotune", "ram_budget", -1),
        ("threading", "private_threadpool_size", -1),
        (None, "switch_interval_seconds", 0),
        (None, "switch_interval_seconds", -0.5),
        (None, "switch_interval_seconds", float("nan")),
    ],
)
def test_values_out_of_range_are_refused(group: str | None, name: str, value: Any) -> None:
    options: Any = Options()
    target = options if group is None else getattr(options, group)
    with pytest.raises(ValueError, match=rf"^{type(target).__name__}\.{name} must be at least .*, not {value}$"):
        setattr(target, name, value)
    assert options == Options()


@pytest.mark.parametrize("value", [[3], [{"parallelism": 3}], [{"stage": 3}]])
def test_only_statistics_can_be_frozen(value: Any) -> None:
    options = Options()
    with pytest.raises(ValueError, match=r"^AutotuneOptions\.frozen must be what statistics\(\) gave, not a list with"):
        options.autotune.frozen = value
    options.autotune.frozen = [{"stage": "map(f)", "parallelism": 3}]
    assert Options().merge(options) == options


@pytest.mark.parametrize("number", [0, -7, "7", True, 2.0, float("nan")])
@pytest.mark.parametrize("name", ["parallelism", "capacity"])
def test_numbers_that_are_frozen_are_checked(name: str, number: Any) -> None:
    with pytest.raises(ValueError, match=rf"^AutotuneOptions\.frozen: {name} of 'map\(f\)' must be at least 1, not "):
        Options().autotune.frozen = [{"stage": "map(f)", name: number}]


def test_what_is_frozen_is_copied() -> None:
    options, found = Options(), [{"stage": "map(f)", "parallelism": 3}]
    options.autotune.frozen = found
    found[0]["parallelism"] = 9
    assert options.autotune.frozen == [{"stage": "map(f)", "parallelism": 3}]


def test_shows_what_is_set() -> None:
    options = Options(deterministic=True, autotune=AutotuneOptions(enabled=False, cpu_budget=2), dataset_name="a")
    shown = "Options(deterministic=True, autotune=AutotuneOptions(enabled=False, cpu_budget=2), dataset_name='a')"
    assert repr(options) == shown


def test_equal_where_all_fields_are() -> None:
    assert Options(deterministic=False) == Options(deterministic=False) != Options()
    assert AutotuneOptions(cpu_budget=1) != AutotuneOptions(cpu_budget=2)


def test_copies_and_pickles() -> None:
    options = Options(deterministic=False, autotune=AutotuneOptions(cpu_budget=1))
    for other in (copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert other == options
        other.autotune.cpu_budget = 2
        assert options.autotune.cpu_budget == 1


def test_merging_takes_what_is_set_later_field_by_field() -> None:
    one = Options(deterministic=False, autotune=AutotuneOptions(cpu_budget=1, enabled=True), framework_type=["a"])
    other = Options(switch_interval_seconds=1, autotune=AutotuneOptions(cpu_budget=2, ram_budget=3))
    merged = one.merge(other)
    autotune = AutotuneOptions(enabled=True, cpu_budget=2, ram_budget=3)
    expected = Options(deterministic=False, autotune=autotune, framework_type=["a"], switch_interval_seconds=1)
    assert merged == expected
    merged.autotune.cpu_budget = 9
    merged.framework_type = None
    assert one.autotune.cpu_budget == 1
    assert other.autotune.cpu_budget == 2
    assert one.framework_type == ["a"]
    assert one.merge(Options()) == one == Options().merge(one)
