"""`bucket_by_sequence_length`: batches of elements of similar length."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import DataError
from aiodata.spec import TensorSpec
from tests.programs import (
    Boom,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    first,
    objects,
    outcomes,
    to_list,
)
from tests.resume.saving import check_rest, drive, part, relay

LENGTHS = (1, 4, 3, 5, 6, 2)


def ragged(*lengths: int) -> Dataset[Any]:
    """Rows of these lengths, filled with the number of the row, from 1."""
    return Dataset.from_generator(lambda: [np.full(length, row) for row, length in enumerate(lengths, 1)])


def plain_batches(lengths: list[int], boundaries: list[int], sizes: list[int], drop: bool) -> list[list[int]]:
    """Give the rows' numbers, from 1, of each batch."""
    buckets: list[list[int]] = [[] for _ in sizes]
    given: list[list[int]] = []
    for row, length in enumerate(lengths, 1):
        bucket = sum(boundary <= length for boundary in boundaries)
        buckets[bucket].append(row)
        if len(buckets[bucket]) == sizes[bucket]:
            given.append(buckets[bucket])
            buckets[bucket] = []
    return given + [bucket for bucket in buckets if bucket and not drop]


SOURCES: dict[str, Callable[[list[int]], Dataset[Any]]] = {
    "generator": lambda lengths: ragged(*lengths),
    "list": lambda lengths: (
        Dataset.from_list([np.full(length, row) for row, length in enumerate(lengths, 1)])
        if lengths
        else Dataset.range(0)
    ),
    "map": lambda lengths: Dataset.range(1, len(lengths) + 1).map(lambda row: np.full(lengths[row - 1], row)),
    "prefetch": lambda lengths: ragged(*lengths).prefetch(3),
}


@given(
    source=st.sampled_from(sorted(SOURCES)),
    lengths=st.lists(st.integers(0, 9), max_size=30),
    boundaries=st.lists(st.integers(0, 9), max_size=4, unique=True).map(sorted),
    sizes=st.lists(st.integers(1, 4), min_size=5, max_size=5),
    drop=st.booleans(),
)
def test_batches_are_those_of_a_plain_loop(
    source: str, lengths: list[int], boundaries: list[int], sizes: list[int], drop: bool
) -> None:
    sizes = sizes[: len(boundaries) + 1]
    ds = SOURCES[source](lengths).bucket_by_sequence_length(len, boundaries, sizes, drop_remainder=drop)
    batches = to_list(ds)
    rows = plain_batches(lengths, boundaries, sizes, drop)
    assert [batch.shape for batch in batches] == [(len(x), max(lengths[row - 1] for row in x)) for x in rows]
    expected = [
        [[row] * lengths[row - 1] + [0] * (batch.shape[1] - lengths[row - 1]) for row in x]
        for x, batch in zip(rows, batches, strict=True)
    ]
    assert [batch.tolist() for batch in batches] == expected


@given(
    lengths=st.lists(st.integers(1, 6), max_size=30),
    sizes=st.tuples(*[st.integers(1, 5)] * 3),
    bad=st.sets(st.integers(0, 29), max_size=4),
    leaps=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    drop=st.booleans(),
)
def test_is_left_and_picked_up_anywhere(
    lengths: list[int], sizes: tuple[int, ...], bad: set[int], leaps: tuple[int, int], drop: bool
) -> None:
    """Elements fail, their lengths do (4), and their batches (of what is longer than the padded shape)."""

    def length(row: Any) -> int:
        if len(row) == 4:
            raise Boom(4)
        return len(row)

    def make() -> Dataset[Any]:
        ds = failing(Dataset.range(len(lengths)), *bad).map(lambda row: np.full(lengths[row], row))
        return ds.bucket_by_sequence_length(length, [2, 5], sizes, padded_shapes=[5], drop_remainder=drop)

    straight, _ = drive("sync", part(make(), "sync"))
    check_rest(f"left after {leaps}", drive("sync", relay(make, "sync", None, leaps)), straight)


def test_reads_no_further_than_to_a_full_bucket_and_measures_each_element_once() -> None:
    measured: list[int] = []

    def length(x: Any) -> int:
        measured.append(int(x))
        return int(x) % 3

    ds, seen = counted(Dataset.range(100))
    ds = ds.bucket_by_sequence_length(length, [1, 2], [2, 9, 3])
    with ds.iterate() as iterator:
        assert_same([next(iterator), seen[-1]], [arr([0, 3]), 3])
        assert_same([next(iterator), seen[-1]], [arr([2, 5, 8]), 8])
        assert_same([next(iterator), seen[-1]], [arr([6, 9]), 9])
    assert seen == measured == [*range(10)]


def test_an_error_of_a_batch_names_its_first_element() -> None:
    got = outcomes(ragged(1, 2, 1, 3).bucket_by_sequence_length(len, [2], [2, 2], padded_shapes=[2]))
    assert_same(got, [arr([[1, 0], [3, 0]]), DataError])
    assert "row 1 of the batch has shape (3,)" in str(got[1])
    assert got[1].__notes__ == ["in bucket_by_sequence_length(len), element 1"]


def test_arrays_that_were_batched_stay_writable() -> None:
    rows = [np.zeros(1), np.zeros(2)]
    assert_gives(Dataset.from_generator(lambda: rows).bucket_by_sequence_length(len, [], [2]), [np.zeros((2, 2))])
    assert all(row.flags.writeable for row in rows)


async def test_long_reading_lets_the_loop_breathe() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    try:
        ds = Dataset.range(200_000).bucket_by_sequence_length(lambda x: 1, [], [200_000])
        async with ds.iterate() as iterator:
            await anext(iterator)
    finally:
        ticking.cancel()
    assert ticks > 5


def test_pads_to_the_longest_of_the_batch_and_gives_full_buckets_first() -> None:
    ds = ragged(*LENGTHS).bucket_by_sequence_length(len, [3, 5], [2, 2, 2])
    expected = [
        arr([[2, 2, 2, 2], [3, 3, 3, 0]]),
        arr([[4, 4, 4, 4, 4, 0], [5, 5, 5, 5, 5, 5]]),
        arr([[1, 0], [6, 6]]),
    ]
    assert_gives(ds, expected)


def test_a_length_equal_to_a_boundary_belongs_to_the_upper_bucket() -> None:
    ds = ragged(2, 3, 2, 3).bucket_by_sequence_length(len, [3], [2, 2])
    assert_gives(ds, [arr([[1, 1], [3, 3]]), arr([[2, 2, 2], [4, 4, 4]])])


def test_no_boundaries_are_one_bucket() -> None:
    assert_gives(ragged(1, 2, 1).bucket_by_sequence_length(len, [], [2]), [arr([[1, 0], [2, 2]]), arr([[3]])])
    assert_gives(ragged().bucket_by_sequence_length(len, [3], [2, 2]), [])


def test_unsorted_boundaries_are_taken_as_tf_data_takes_them() -> None:
    """The first bucket whose limits a length lies between; here below 5, from 5 below 3 (none), and from 3 on."""
    ds = ragged(2, 4, 5, 9).bucket_by_sequence_length(len, [5, 3], [2, 2, 2])
    assert_gives(ds, [arr([[1, 1, 0, 0], [2, 2, 2, 2]]), arr([[3] * 5 + [0] * 4, [4] * 9])])
    got = outcomes(ragged(4, 6).bucket_by_sequence_length(len, [5, 7, 3], [2, 2, 2, 2]))
    assert_same(got, [arr([[1, 1, 1, 1]]), arr([[2] * 6])])


def test_pads_to_the_boundary_less_one() -> None:
    def make(drop: bool) -> Dataset[Any]:
        return ragged(*LENGTHS).bucket_by_sequence_length(
            len, [4, 7], [2, 2, 2], padding_values=-1, pad_to_bucket_boundary=True, drop_remainder=drop
        )

    whole = [arr([[1, -1, -1], [3, 3, 3]]), arr([[2, 2, 2, 2, -1, -1], [4, 4, 4, 4, 4, -1]])]
    assert_gives(make(True), whole)
    assert_gives(make(False), [*whole, arr([[6, 6, -1]]), arr([[5] * 6])])


@pytest.mark.parametrize("drop", [False, True])
def test_the_last_bucket_has_no_boundary_to_pad_to(drop: bool) -> None:
    ds = ragged(1, 5, 1, 6, 2).bucket_by_sequence_length(
        len, [3], [2, 2], pad_to_bucket_boundary=True, drop_remainder=drop
    )
    last = [] if drop else [arr([[5, 5]])]
    got = outcomes(ds)
    assert_same(got, [arr([[1, 0], [3, 0]]), DataError, *last])
    assert "pad_to_bucket_boundary" in str(got[1])


def test_only_axes_without_a_length_are_padded_to_the_boundary() -> None:
    spec = TensorSpec((None,), np.int64), TensorSpec((2,), np.float64), TensorSpec((), np.int64)

    def make(known: bool, **arguments: Any) -> Dataset[Any]:
        rows = Dataset.zip(ragged(1, 2), Dataset.from_tensors(np.ones(2)).repeat(2), Dataset.range(2))
        if known:
            rows = rows.then(
                "same", lambda run, source, start: source.open(start), resumes_by_cursor=True, spec=lambda _: spec
            )
        return rows.bucket_by_sequence_length(
            lambda row, *_: len(row), [5], [2, 2], pad_to_bucket_boundary=True, **arguments
        )

    row, number = arr([[1, 0, 0, 0], [2, 2, 0, 0]]), arr([0, 1])
    assert_gives(make(True), [(row, np.ones((2, 2)), number)])
    assert_gives(make(False, padded_shapes=([None], [2], [])), [(row, np.ones((2, 2)), number)])
    assert_gives(make(True, padded_shapes=([-1], [3], [])), [(row, np.pad(np.ones((2, 2)), [(0, 0), (0, 1)]), number)])
    padded = np.pad(np.ones((2, 2)), [(0, 0), (0, 2)])
    assert_gives(make(False), [(row, padded, number)])


def test_shapes_and_values_are_those_of_padded_batch() -> None:
    ds = ragged(1, 2).bucket_by_sequence_length(len, [3], [2, 2], padded_shapes=[4], padding_values=np.int64(9))
    assert_gives(ds, [arr([[1, 9, 9, 9], [2, 2, 9, 9]])])
    ds = ragged(1, 2, 1).bucket_by_sequence_length(len, [2], [2, 2], padded_shapes=[1])
    assert_outcomes(ds, [arr([[1], [3]]), DataError])


def test_without_padding() -> None:
    ds = ragged(2, 1, 2, 1).bucket_by_sequence_length(len, [2], [2, 2], no_padding=True)
    assert_gives(ds, [arr([[1, 1], [3, 3]]), arr([[2], [4]])])
    ds = ragged(2, 3, 1, 1).bucket_by_sequence_length(len, [2], [2, 2], no_padding=True, pad_to_bucket_boundary=True)
    assert_outcomes(ds, [DataError, arr([[3], [4]])])


def test_the_length_function_gets_what_map_gets() -> None:
    rows = [({"text": np.arange(length), "id": length}, b"label") for length in (1, 3, 2, 4)]
    ds = Dataset.from_generator(lambda: rows)
    ds = ds.bucket_by_sequence_length(lambda features, label: len(features["text"]), [3], [2, 2])
    expected = [
        ({"text": arr([[0, 0], [0, 1]]), "id": arr([1, 2])}, objects(b"label", b"label")),
        ({"text": arr([[0, 1, 2, 0], [0, 1, 2, 3]]), "id": arr([3, 4])}, objects(b"label", b"label")),
    ]
    assert_gives(ds, expected)
    dicts = Dataset.from_generator(lambda: [features for features, _ in rows])
    got = to_list(dicts.bucket_by_sequence_length(lambda features: np.int32(len(features["text"])), [3], [2, 2]))
    assert_same(got, [features for features, _ in expected])


def test_errors_take_one_place() -> None:
    def length(x: Any) -> Any:
        if x == 3:
            raise Boom(3)
        return 1.5 if x == 4 else int(x)

    got = outcomes(failing(Dataset.range(6), 1).bucket_by_sequence_length(length, [3], [2, 2]))
    assert_same(got, [Boom(1), arr([0, 2]), Boom(3), TypeError, arr([5])])
    assert "element_length_func must give an integer" in str(got[3])
    assert any("bucket_by_sequence_length(" in note for note in got[3].__notes__)


@pytest.mark.parametrize(("boundaries", "sizes"), [([3], [2]), ([3], [2, 2, 2]), ([], []), ([], [1, 1])])
def test_there_is_one_size_more_than_boundaries(boundaries: list[int], sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="bucket_batch_sizes"):
        ragged(1).bucket_by_sequence_length(len, boundaries, sizes)


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_below_one_are_refused_at_the_call(size: int) -> None:
    with pytest.raises(ValueError, match="bucket_batch_sizes must be at least 1"):
        ragged(1).bucket_by_sequence_length(len, [3], [2, size])


@pytest.mark.parametrize("wrong", [3, "34", None, [1.5], [True], ["3"]])
@pytest.mark.parametrize("argument", ["bucket_boundaries", "bucket_batch_sizes"])
def test_what_is_no_list_of_integers_is_refused_at_the_call(argument: str, wrong: Any) -> None:
    arguments: dict[str, Any] = {"bucket_boundaries": [3], "bucket_batch_sizes": [2, 2], argument: wrong}
    with pytest.raises(TypeError, match=f"bucket_by_sequence_length: .*{argument}"):
        ragged(1).bucket_by_sequence_length(len, **arguments)


def test_boundaries_and_sizes_may_be_arrays_and_tuples() -> None:
    ds = ragged(1, 1, 4).bucket_by_sequence_length(len, np.array([3]), (2, 2))
    assert_gives(ds, [arr([[1], [2]]), arr([[3, 3, 3, 3]])])


def test_wrong_padding_is_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match="dimension"):
        ragged(1).bucket_by_sequence_length(len, [3], [2, 2], padded_shapes=[-2])
    function: Any = 3
    with pytest.raises(TypeError, match="element_length_func"):
        ragged(1).bucket_by_sequence_length(function, [3], [2, 2])


def test_cardinality_early_stop_and_repr() -> None:
    ds = ragged(1, 2).repeat().bucket_by_sequence_length(len, [2], [2, 3], name="mine")
    assert_same(first(ds, 2), [arr([[1], [1]]), arr([[2, 2]] * 3)])
    assert ragged(1).bucket_by_sequence_length(len, [2], [2, 3]).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert ds.plan.label == "bucket_by_sequence_length(len, [2], [2, 3])"
    assert ds.plan.title == "mine"
    ds = ragged(1).bucket_by_sequence_length(len, [2], [2, 3], [None], -1, True, drop_remainder=True)
    assert ds.plan.label == (
        "bucket_by_sequence_length(len, [2], [2, 3], padded_shapes=[None], padding_values=-1, "
        "pad_to_bucket_boundary=True, drop_remainder=True)"
    )


def test_element_spec_is_that_of_batches_of_any_size() -> None:
    ds = Dataset.from_tensor_slices({"x": np.zeros((4, 3), np.float32), "n": np.arange(4)})

    def spec(**arguments: Any) -> Any:
        return ds.bucket_by_sequence_length(lambda row: row["n"], [2], [2, 2], **arguments).element_spec

    known = {"x": TensorSpec((None, 3), np.float32), "n": TensorSpec((None,), np.int64)}
    assert spec() == spec(no_padding=True) == spec(drop_remainder=True) == known
    shapes = {"x": [None], "n": []}
    assert spec(padded_shapes=shapes) == {**known, "x": TensorSpec((None, None), np.float32)}
    assert ragged(1).bucket_by_sequence_length(len, [2], [2, 2]).element_spec is None
