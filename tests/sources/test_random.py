"""`random`: tf.data's endless words from a seed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aiodata
from aiodata import Dataset
from aiodata.spec import TensorSpec
from tests.programs import assert_same, collect, first, global_seed, i64, plain, repeated, to_list

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED_5 = [3568415791, 2798973839, 2476249224, 2816106479]


@pytest.fixture(autouse=True)
def _no_global_seed() -> Iterator[None]:
    with global_seed(None):
        yield


def test_values_of_a_seed_are_tensorflows() -> None:
    assert_same(first(Dataset.random(seed=5), 4), i64(*SEED_5))
    assert_same(asyncio.run(collect(Dataset.random(seed=5).take(4))), i64(*SEED_5))


@pytest.mark.parametrize("rerandomize", [None, False])
def test_every_pass_is_the_same_by_default(rerandomize: bool | None) -> None:
    ds = Dataset.random(seed=5, rerandomize_each_iteration=rerandomize).take(4)
    assert_same(to_list(ds), i64(*SEED_5))
    assert_same(to_list(ds), i64(*SEED_5))
    assert_same(to_list(ds.repeat(2)), i64(*SEED_5 * 2))


def test_rerandomized_passes_differ_but_repeat_with_the_seed() -> None:
    def make() -> Dataset[Any]:
        return Dataset.random(seed=5, rerandomize_each_iteration=True).take(4)

    passes = repeated(make, 3)
    assert len({tuple(one) for one in passes}) == 3
    assert SEED_5 not in passes
    assert passes == repeated(make, 3)


def test_repeat_above_a_rerandomized_one_wastes_a_draw_at_its_end() -> None:
    draws = repeated(lambda: Dataset.random(seed=5, rerandomize_each_iteration=True).take(2), 5)
    passes = repeated(lambda: Dataset.random(seed=5, rerandomize_each_iteration=True).take(2).repeat(2), 2)
    assert passes == [draws[0] + draws[1], draws[3] + draws[4]]


def test_values_are_unsigned_words_as_int64() -> None:
    values = first(Dataset.random(seed=0), 2000)
    assert {type(value) for value in values} == {np.int64}
    assert min(values) >= 0
    assert max(values) < 2**32
    assert max(values) > 2**31


def test_two_iterators_do_not_disturb_each_other() -> None:
    ds = Dataset.random(seed=5)
    with ds.iterate() as one, ds.iterate() as other:
        assert plain([next(one), next(one), next(other), next(one), next(other)]) == [
            *(SEED_5[0], SEED_5[1], SEED_5[0], SEED_5[2], SEED_5[1])
        ]


def test_without_a_seed_datasets_differ() -> None:
    assert first(Dataset.random(), 4) != first(Dataset.random(), 4)


def test_global_seed_makes_it_repeatable() -> None:
    aiodata.set_seed(3)
    one = first(Dataset.random(), 4)
    aiodata.set_seed(3)
    assert_same(first(Dataset.random(), 4), one)


@pytest.mark.parametrize(("seed", "equal"), [(2**31 - 1, 0), (2**31 + 4, 5), (5 - (2**31 - 1), 5)])
def test_seeds_are_taken_modulo(seed: int, equal: int) -> None:
    assert_same(first(Dataset.random(seed=seed), 4), first(Dataset.random(seed=equal), 4))


@pytest.mark.parametrize("seed", [1.5, "1"])
def test_wrong_seed_is_refused_at_the_call(seed: Any) -> None:
    with pytest.raises(TypeError):
        Dataset.random(seed=seed)


def test_cardinality_is_infinite() -> None:
    assert Dataset.random().cardinality() == aiodata.INFINITE_CARDINALITY


def test_spec_and_name_are_shown() -> None:
    ds = Dataset.random(seed=5, name="words")
    assert ds.element_spec == TensorSpec((), np.int64)
    assert "random(seed=5) 'words': int64" in repr(ds)
