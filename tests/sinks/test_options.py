"""`Dataset.options`: the options of a whole pipeline, merged as tf.data merges them."""

from __future__ import annotations

from aiodata import AutotuneOptions, Dataset, Options


def given(**fields: object) -> Dataset[object]:
    return Dataset.range(3).with_options(Options(**fields))  # type: ignore[arg-type]


def test_without_any_nothing_is_set() -> None:
    assert Dataset.range(3).options() == Options()
    assert Dataset.zip(Dataset.range(3), Dataset.range(3)).map(lambda x, y: x).options() == Options()


def test_later_ones_win_field_by_field_in_groups_too() -> None:
    ds = given(deterministic=False, autotune=AutotuneOptions(cpu_budget=1, ram_budget=5), dataset_name="a")
    ds = ds.batch(2).with_options(Options(deterministic=True, autotune=AutotuneOptions(cpu_budget=2))).repeat()
    autotune = AutotuneOptions(cpu_budget=2, ram_budget=5)
    assert ds.options() == Options(deterministic=True, autotune=autotune, dataset_name="a")


def test_each_call_gives_new_ones() -> None:
    ds = given(deterministic=False)
    options = ds.options()
    options.deterministic = True
    options.autotune.cpu_budget = 1
    assert ds.options() == Options(deterministic=False)
    plain = Dataset.range(3)
    plain.options().deterministic = True
    assert plain.options() == Dataset.range(4).options() == Options()


def test_zip_merges_its_inputs_the_last_over_the_first() -> None:
    one = given(deterministic=False, dataset_name="one")
    two = given(dataset_name="two", switch_interval_seconds=1)
    merged = Options(deterministic=False, dataset_name="two", switch_interval_seconds=1)
    assert Dataset.zip(one, two).options() == merged
    assert Dataset.zip(two, one).options().dataset_name == "one"
    sampled = Dataset.sample_from_datasets([one, two], seed=1)
    assert sampled.options() == merged


def test_concatenate_merges_those_of_its_parts_the_last_over_the_first() -> None:
    one, two = given(deterministic=False), given(dataset_name="two")
    assert one.concatenate(two).options() == Options(deterministic=False, dataset_name="two")
    assert one.concatenate(given(deterministic=True)).options() == Options(deterministic=True)
    assert Dataset.range(2).concatenate(one).options() == Options(deterministic=False)
    behind = two.concatenate(one).with_options(Options(deterministic=True))
    assert behind.options() == Options(deterministic=True, dataset_name="two")


def test_they_are_what_a_run_goes_by() -> None:
    ds = Dataset.range(2).concatenate(given(autotune=AutotuneOptions(cpu_budget=1))).map(abs, num_parallel_calls=-1)
    ds = ds.with_options(Options(autotune=AutotuneOptions(cpu_budget=2)))
    with ds.iterate() as iterator:
        assert len(list(iterator)) == 5
        assert [entry["parallelism"] for entry in iterator.statistics() if entry["stage"] == "map(abs)"] == [2]
