"""`cardinality`, `len` and `bool`: what is known of a dataset without reading it."""

from __future__ import annotations

from typing import Any

import pytest

import aiodata
from aiodata import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from tests.programs import counted, to_list

FIVE: Dataset[Any] = Dataset.range(5)
ENDLESS = FIVE.repeat()
UNKNOWN = FIVE.filter(lambda x: True)

KNOWN: dict[str, tuple[Dataset[Any], int]] = {
    "range": (FIVE, 5),
    "empty": (Dataset.range(0), 0),
    "from_tensors": (Dataset.from_tensors([1, 2]), 1),
    "from_tensor_slices": (Dataset.from_tensor_slices([1, 2]), 2),
    "zip": (Dataset.zip(FIVE, ENDLESS), 5),
    "map": (FIVE.map(lambda x: x), 5),
    "batch": (FIVE.batch(2), 3),
    "batch dropped": (FIVE.batch(2, drop_remainder=True), 2),
    "padded_batch": (FIVE.padded_batch(2), 3),
    "unbatch": (FIVE.batch(2, drop_remainder=True).unbatch(), 4),
    "shuffle": (FIVE.shuffle(2), 5),
    "repeat": (FIVE.repeat(3), 15),
    "repeat none": (UNKNOWN.repeat(0), 0),
    "take": (ENDLESS.take(7), 7),
    "skip": (FIVE.skip(2), 3),
    "shard": (FIVE.shard(2, 1), 2),
    "enumerate": (FIVE.enumerate(), 5),
    "concatenate": (FIVE.concatenate(FIVE), 10),
    "prefetch": (FIVE.prefetch(1), 5),
    "cache": (FIVE.cache(), 5),
}

OPEN: dict[str, tuple[Dataset[Any], int]] = {
    "filter": (UNKNOWN, UNKNOWN_CARDINALITY),
    "filter of endless": (ENDLESS.filter(lambda x: True), UNKNOWN_CARDINALITY),
    "flat_map": (FIVE.flat_map(lambda x: FIVE), UNKNOWN_CARDINALITY),
    "interleave": (FIVE.interleave(lambda x: FIVE, 2), UNKNOWN_CARDINALITY),
    "from_generator": (Dataset.from_generator(lambda: [1]), UNKNOWN_CARDINALITY),
    "unbatch": (FIVE.batch(2).unbatch(), UNKNOWN_CARDINALITY),
    "take none of unknown": (UNKNOWN.take(0), UNKNOWN_CARDINALITY),
    "zip with unknown": (Dataset.zip(FIVE, UNKNOWN), UNKNOWN_CARDINALITY),
    "concatenate with unknown": (FIVE.concatenate(UNKNOWN), UNKNOWN_CARDINALITY),
    "sample": (Dataset.sample_from_datasets([FIVE, FIVE]), UNKNOWN_CARDINALITY),
    "repeat": (ENDLESS, INFINITE_CARDINALITY),
    "repeat of unknown": (UNKNOWN.repeat(), INFINITE_CARDINALITY),
    "skip all of endless": (ENDLESS.skip(-1), INFINITE_CARDINALITY),
    "concatenate with endless": (UNKNOWN.concatenate(ENDLESS), INFINITE_CARDINALITY),
    "random": (Dataset.random(), INFINITE_CARDINALITY),
    "batch of endless": (ENDLESS.batch(2), INFINITE_CARDINALITY),
}


def test_constants_are_tensorflows() -> None:
    assert (aiodata.INFINITE_CARDINALITY, aiodata.UNKNOWN_CARDINALITY, aiodata.AUTOTUNE) == (-1, -2, -1)


@pytest.mark.parametrize("name", KNOWN)
def test_known_number_is_the_number_that_comes(name: str) -> None:
    ds, expected = KNOWN[name]
    assert ds.cardinality() == expected
    assert len(ds) == expected
    assert len(to_list(ds)) == expected


@pytest.mark.parametrize("name", OPEN)
def test_len_is_refused_where_the_number_is_not_known(name: str) -> None:
    ds, expected = OPEN[name]
    assert ds.cardinality() == expected
    with pytest.raises(TypeError, match="infinite" if expected == INFINITE_CARDINALITY else "unknown"):
        len(ds)


@pytest.mark.parametrize("ds", [Dataset.range(0), FIVE, ENDLESS, UNKNOWN], ids=["empty", "five", "endless", "unknown"])
def test_a_dataset_is_always_true(ds: Dataset[Any]) -> None:
    assert bool(ds) is True


def test_nothing_is_read() -> None:
    ds, seen = counted(FIVE)
    ds = ds.batch(2).shuffle(3).repeat(2)
    assert (ds.cardinality(), len(ds), bool(ds)) == (6, 6, True)
    assert seen == []


def test_an_endless_repeat_of_nothing() -> None:
    ds = Dataset.range(0).repeat()
    assert ds.cardinality() in (0, INFINITE_CARDINALITY)
    assert to_list(ds) == []
