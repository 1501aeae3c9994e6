"""`window`: datasets of neighbouring elements, in memory, one for each component."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import StructureError
from aiodata.spec import DatasetSpec, TensorSpec
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_outcomes,
    assert_same,
    collect,
    counted,
    failing,
    i64,
    nested,
    nested_batch,
    nested_rows,
    objects,
    outcomes,
    to_list,
)
from tests.resume.saving import FACES, along, check_rest, drive, part

if TYPE_CHECKING:
    from collections.abc import Callable


def rowed(count: int) -> Dataset[Any]:
    return Dataset.range(count).map(lambda x: x)


def read(ds: Dataset[Any]) -> list[Any]:
    """Read the windows of a dataset of single components."""
    return [to_list(window) for window in to_list(ds)]


def expected_windows(count: int, size: int, shift: int, stride: int, drop: bool) -> list[list[int]]:
    windows = [list(range(begin, count, stride))[:size] for begin in range(0, count, shift)]
    return [window for window in windows if not drop or len(window) == size]


SOURCES: dict[str, Callable[[int], Dataset[Any]]] = {
    "columns": Dataset.range,
    "rows": rowed,
    "both": lambda count: Dataset.range(count // 2).concatenate(rowed(count).skip(count // 2)),
    "rows, then columns": lambda count: rowed(count // 2).concatenate(Dataset.range(count // 2, count)),
    "small blocks": lambda count: Dataset.range(count).batch(3).unbatch(),
}


@given(
    source=st.sampled_from(sorted(SOURCES)),
    count=st.integers(0, 30),
    size=st.integers(1, 12),
    shift=st.integers(1, 12),
    stride=st.integers(1, 4),
    drop=st.booleans(),
)
def test_windows_are_those_of_a_plain_loop(
    source: str, count: int, size: int, shift: int, stride: int, drop: bool
) -> None:
    ds = SOURCES[source](count).window(size, shift, stride, drop)
    expected = expected_windows(count, size, shift, stride, drop)
    assert_same(read(ds), [i64(*window) for window in expected])
    known = Dataset.range(count).window(size, shift, stride, drop)
    assert known.cardinality() == len(expected)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("size", "shift", "stride"), [(100, 7, 1), (3, 90, 1), (5, 5, 40), (70, 70, 1)])
def test_windows_across_blocks(source: str, size: int, shift: int, stride: int) -> None:
    ds = SOURCES[source](400).window(size, shift, stride)
    assert_same(read(ds), [i64(*window) for window in expected_windows(400, size, shift, stride, False)])


def test_shift_is_the_size_if_it_is_left_out() -> None:
    assert_same(read(Dataset.range(5).window(2)), [i64(0, 1), i64(2, 3), i64(4)])
    assert_same(read(Dataset.range(5).window(2, drop_remainder=True)), [i64(0, 1), i64(2, 3)])


def test_empty_and_one() -> None:
    assert read(Dataset.range(0).window(2)) == []
    assert_same(read(Dataset.range(1).window(2)), [i64(0)])
    assert read(Dataset.range(1).window(2, drop_remainder=True)) == []


@pytest.mark.parametrize("make", [Dataset.range, rowed])
def test_a_window_can_be_read_twice_at_once_and_after_the_end(make: Callable[[int], Dataset[Any]]) -> None:
    first, second = to_list(make(4).window(3, shift=1).take(2))
    assert_same(to_list(first), i64(0, 1, 2))
    assert_same(to_list(first), i64(0, 1, 2))
    assert_same(asyncio.run(collect(second)), i64(1, 2, 3))
    with first.iterate() as one, first.iterate() as other:
        assert_same([next(one), next(other), next(one), next(other)], i64(0, 0, 1, 1))


def test_windows_come_through_both_faces_and_two_iterators() -> None:
    ds = Dataset.range(5).window(2, shift=2)
    assert [to_list(window) for window in asyncio.run(collect(ds))] == [[0, 1], [2, 3], [4]]
    with ds.iterate() as one, ds.iterate() as other:
        next(one)
        assert_same([to_list(next(one)), to_list(next(other))], [i64(2, 3), i64(0, 1)])


def test_a_tuple_gives_a_tuple_of_datasets() -> None:
    ds = Dataset.zip(Dataset.range(3), Dataset.range(5, 8).map(lambda x: x * 2)).window(2)
    (a, b), (c, d) = to_list(ds)
    assert_same([to_list(x) for x in (a, b, c, d)], [i64(0, 1), i64(10, 12), i64(2), i64(14)])


@pytest.mark.parametrize("make", [nested, lambda count: nested(count).map(lambda x: x)])
def test_structures_are_kept(make: Callable[[int], Dataset[Any]]) -> None:
    window, last = to_list(make(3).window(2))
    assert list(window) == ["id", "parts"]
    assert type(window["parts"]) is tuple
    assert type(window["parts"][1]) is Pair
    rows = nested_rows(0, 1, 2)
    assert_same(to_list(window["id"]), [row["id"] for row in rows[:2]])
    assert_same(to_list(window["parts"][0]), [row["parts"][0] for row in rows[:2]])
    assert_same(to_list(window["parts"][1].x), [row["parts"][1].x for row in rows[:2]])
    assert_same(to_list(last["parts"][1].y), [rows[2]["parts"][1].y])


def test_a_one_tuple_stays_one() -> None:
    ((only,),) = to_list(Dataset.from_tensor_slices((np.arange(2),)).window(2))
    assert_same(to_list(only), i64(0, 1))


def test_components_are_zipped_again() -> None:
    ds = Dataset.zip(Dataset.range(4), Dataset.range(10, 14)).window(3, shift=1)
    got = to_list(ds.flat_map(lambda a, b: Dataset.zip((a.batch(3), b.batch(3)))))
    numbers = [[0, 1, 2], [1, 2, 3], [2, 3], [3]]
    assert_same(got, [(arr(row), arr([10 + x for x in row])) for row in numbers])
    ds = nested(4).window(3, shift=1, drop_remainder=True)

    def together(window: Any) -> Dataset[Any]:
        rows, pair = window["parts"]
        parts = (rows.batch(3), Pair(pair.x.batch(3), pair.y.batch(3)))
        return Dataset.zip({"id": window["id"].batch(3), "parts": parts})

    assert_same(to_list(ds.flat_map(together)), [nested_batch(0, 1, 2), nested_batch(1, 2, 3)])


def test_none_components_stay_none() -> None:
    for ds in (Dataset.from_tensor_slices({"a": np.arange(3), "b": None}), rowed(3).map(lambda x: {"a": x, "b": None})):
        window, last = to_list(ds.window(2))
        assert to_list(window["b"]) == [None, None]
        assert to_list(last["b"]) == [None]


def test_keys_in_another_order_are_the_same_structure() -> None:
    elements = [{"a": 1, "b": b"x"}, {"b": b"y", "a": 2}]
    (window,) = to_list(Dataset.from_generator(lambda: elements).window(2))
    assert (to_list(window["a"]), to_list(window["b"])) == ([1, 2], [b"x", b"y"])


def test_windows_of_windows() -> None:
    ds = Dataset.range(6).window(2).window(2)
    assert [[to_list(inner) for inner in outer] for outer in to_list(ds)] == [[[0, 1], [2, 3]], [[4, 5]]]


def test_elements_of_different_structure_are_an_error_in_place_of_the_window() -> None:
    elements = [1, 2, (3, 4), 5, 6, {"a": 7}, {"a": 8}, {"b": 9}]
    got = outcomes(Dataset.from_generator(lambda: elements).window(2, shift=2))
    assert to_list(got[0]) == [1, 2]
    assert isinstance(got[1], StructureError)
    assert isinstance(got[2], StructureError)
    assert isinstance(got[3], StructureError)
    assert any("window(2), element 1" in note for note in got[1].__notes__)


def test_a_failed_element_takes_the_place_of_each_window_that_has_it() -> None:
    ds = failing(Dataset.range(7), 3).window(3, shift=1).map(lambda window: to_list(window))
    assert_outcomes(ds, [(*i64(0, 1, 2),), Boom(3), Boom(3), Boom(3), (*i64(4, 5, 6),), (*i64(5, 6),), (*i64(6),)])


def test_the_first_of_several_failed_elements_counts() -> None:
    ds = failing(Dataset.range(6), 1, 2, 5).window(3, shift=1).map(lambda window: to_list(window))
    assert_outcomes(ds, [Boom(1), Boom(1), Boom(2), Boom(5), Boom(5), Boom(5)])


def test_a_failed_element_that_no_window_has_is_never_seen() -> None:
    ds = failing(Dataset.range(9), 1, 2, 5, 7).window(2, shift=3, stride=1).map(lambda window: to_list(window))
    assert_outcomes(ds, [Boom(1), (*i64(3, 4),), Boom(7)])
    ds = failing(Dataset.range(9), 1, 2, 5).window(2, shift=3).skip(1).map(lambda window: to_list(window))
    assert_outcomes(ds, [Boom(1), (*i64(3, 4),), (*i64(6, 7),)])
    ds = failing(Dataset.range(9), 1, 3, 5).window(3, stride=2, shift=9).map(lambda window: to_list(window))
    assert_outcomes(ds, [(*i64(0, 2, 4),)])


class Worded(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(f"no {number}")
        self.number = number


def test_an_error_in_several_windows_is_the_same_each_time_but_not_one_object() -> None:
    def check(x: Any) -> Any:
        if x == 2:
            raise Worded(2) from KeyError("cause")
        return x

    errors = outcomes(Dataset.range(3).map(check).window(3, shift=1))
    assert len({id(error) for error in errors}) == 3
    for error in errors:
        assert type(error) is Worded
        assert (str(error), error.number) == ("no 2", 2)
        assert isinstance(error.__cause__, KeyError)
        assert [note for note in error.__notes__ if "map" in note] == error.__notes__
        names = []
        trace = error.__traceback__
        while trace is not None:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        assert "check" in names


def test_an_iterator_can_be_dropped_after_an_error_that_comes_again() -> None:
    def begin() -> weakref.ref[Any]:
        iterator = iter(failing(Dataset.range(9), 2).window(3, shift=1))
        with suppress(Boom):
            next(iterator)
        return weakref.ref(iterator)

    gc.disable()  # what is in a reference cycle would be found by it
    try:
        assert begin()() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("stage", ["range", "map"])
def test_arrays_in_windows_are_read_only_and_batches_are_not(stage: str) -> None:
    ds = Dataset.from_tensor_slices(np.zeros((4, 2)))
    if stage == "map":
        ds = ds.map(lambda x: x + 1)
    window = to_list(ds.window(3, shift=1))[0]
    with pytest.raises(ValueError, match="read-only"):
        to_list(window)[0][0] = 7
    batch = to_list(window.batch(3))[0]
    batch[:] = 7
    assert to_list(window)[0][0] == (1 if stage == "map" else 0)


def test_text_stays_text() -> None:
    (window,) = to_list(Dataset.from_tensor_slices([b"a\x00", b"b"]).window(2))
    assert_same(to_list(window), [b"a\x00", b"b"])
    assert_same(to_list(window.batch(2)), [objects(b"a\x00", b"b")])


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    windows = ds.window(3, shift=5)
    assert len(to_list(windows.take(1))) == 1
    assert seen == [0, 1, 2]
    seen.clear()
    assert len(to_list(windows.take(2))) == 2
    assert seen == list(range(8))


def test_endless_input() -> None:
    with Dataset.range(3).repeat().window(2, shift=1).iterate() as iterator:
        assert [to_list(window) for window in islice(iterator, 4)] == [[0, 1], [1, 2], [2, 0], [0, 1]]


@pytest.mark.parametrize("argument", ["size", "shift", "stride"])
@pytest.mark.parametrize("value", [0, -1, -2])
def test_sizes_below_one_are_refused_at_the_call(argument: str, value: int) -> None:
    arguments: dict[str, Any] = {"size": 2, "shift": 1, "stride": 1, argument: value}
    with pytest.raises(ValueError, match=f"window: {argument} must be at least 1, not {value}"):
        Dataset.range(3).window(**arguments)


@pytest.mark.parametrize("argument", ["size", "shift", "stride"])
@pytest.mark.parametrize("value", [1.5, "2", True])
def test_sizes_that_are_no_integers_are_refused_at_the_call(argument: str, value: Any) -> None:
    arguments: dict[str, Any] = {"size": 2, "shift": 1, "stride": 1, argument: value}
    with pytest.raises(TypeError, match=f"window: {argument}"):
        Dataset.range(3).window(**arguments)


def test_cardinality_of_what_is_not_known_or_endless() -> None:
    assert Dataset.range(3).filter(lambda x: True).window(2).cardinality() == aiodata.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().window(2).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(10).window(3, shift=2, stride=4, drop_remainder=True).cardinality() == 1
    assert Dataset.range(8).window(3, shift=2, stride=4, drop_remainder=True).cardinality() == 0


def test_a_window_knows_its_cardinality_and_spec() -> None:
    for make in (Dataset.range, rowed):
        windows = to_list(make(5).window(3))
        assert [len(window) for window in windows] == [3, 2]
        assert windows[1].element_spec == TensorSpec((), np.int64)
    window = to_list(nested(2).map(lambda x: x).window(2))[0]
    assert window["parts"][0].element_spec == TensorSpec((2,), np.float32)
    ragged = to_list(Dataset.range(3).map(lambda n: np.zeros(n)).window(3))[0]
    assert ragged.element_spec == TensorSpec((None,), np.float64)


def test_element_spec() -> None:
    spec = nested(4).window(2).element_spec
    assert spec == {
        "id": DatasetSpec(TensorSpec((), np.int32)),
        "parts": (
            DatasetSpec(TensorSpec((2,), np.float32)),
            Pair(DatasetSpec(TensorSpec((), bool)), DatasetSpec(TensorSpec((), np.int64))),
        ),
    }
    assert to_list(nested(4).window(2))[0]["parts"][1].y.element_spec == TensorSpec((), np.int64)


def test_repr_tells_the_arguments() -> None:
    assert Dataset.range(9).window(3).plan.label == "window(3)"
    label = Dataset.range(9).window(3, 1, 2, True).plan.label
    assert label == "window(3, shift=1, stride=2, drop_remainder=True)"
    assert Dataset.range(9).window(3, name="mine").plan.title == "mine"


@pytest.mark.parametrize("face", FACES)
def test_a_state_taken_while_a_window_is_read_goes_on_there(face: str) -> None:
    def make() -> Dataset[Any]:
        ds = failing(Dataset.range(40), 17).shuffle(5, seed=1).window(6, shift=4)
        return ds.flat_map(lambda window: window.map(lambda x: x).shuffle(4, seed=2)).repeat(2)

    async def work() -> None:
        straight, states = await along(make(), face)
        for number, state in enumerate(states):
            found, _ = await part(make(), face, state)
            check_rest(f"restored before pull {number}", found, straight[number:])

    drive(face, work())


def test_a_window_itself_can_be_left_and_picked_up() -> None:
    for make in (Dataset.range, rowed):
        window = to_list(make(9).window(9))[0]
        with window.iterate() as iterator:
            assert_same([next(iterator) for _ in range(4)], i64(0, 1, 2, 3))
            state = iterator.state_dict()
        assert_same(list(window.iterate(state)), i64(4, 5, 6, 7, 8))
