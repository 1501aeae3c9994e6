"""`rejection_resample`: elements chosen so that their classes come as often as asked for."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset, TextLineDataset
from aiodata.errors import DataError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    collect,
    counted,
    failing,
    first,
    global_seed,
    nested,
    nested_rows,
    outcomes,
    to_list,
)
from tests.resume.saving import along, check_rest, drive, part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_global_seed() -> Iterator[None]:
    with global_seed(None):
        yield


def parity(x: Any) -> Any:
    return x % 2


def only(ds: Dataset[Any], class_func: Any = parity, **arguments: Any) -> Dataset[Any]:
    """Drop class 0 and keep all of class 1: there is no draw whose outcome is not known."""
    return ds.rejection_resample(class_func, [0.0, 1.0], [0.5, 0.5], **{"seed": 5, **arguments})


def all_of(ds: Dataset[Any], class_func: Any = parity) -> Dataset[Any]:
    """Keep everything: the input has the target distribution."""
    return ds.rejection_resample(class_func, [0.25, 0.75], [0.25, 0.75])


def mix(ds: Dataset[Any], class_func: Any = parity, initial: Any = None, **arguments: Any) -> Dataset[Any]:
    return ds.rejection_resample(class_func, [0.3, 0.7], initial, **{"seed": 5, **arguments})


def pairs(*numbers: int) -> list[Any]:
    return [(np.int64(x % 2), np.int64(x)) for x in numbers]


# What comes


@pytest.mark.parametrize("initial", [None, [0.8, 0.1, 0.1]])
def test_classes_come_as_often_as_asked_for(initial: Any) -> None:
    classes = arr([0, 0, 0, 0, 1, 0, 0, 2, 0, 0])
    ds = Dataset.from_tensor_slices(classes).repeat().shuffle(100, seed=1)
    found = Counter(
        int(x) for x, _ in first(ds.rejection_resample(lambda x: x, [0.2, 0.5, 0.3], initial, seed=1), 4000)
    )
    assert [round(found[i] / 4000, 1) for i in range(3)] == [0.2, 0.5, 0.3]


def test_the_target_distribution_keeps_everything() -> None:
    assert_gives(all_of(Dataset.range(5)), pairs(0, 1, 2, 3, 4))


def test_a_class_that_is_not_wanted_is_dropped() -> None:
    assert_gives(only(Dataset.range(6)), pairs(1, 3, 5))


@pytest.mark.parametrize("initial", [None, [0.5, 0.5]])
def test_nothing_gives_nothing(initial: Any) -> None:
    assert_gives(mix(Dataset.range(0), initial=initial), [])


@pytest.mark.parametrize("ways", [all_of, only, mix])
def test_one_element(ways: Any) -> None:
    found = to_list(ways(Dataset.range(1, 2)))
    assert_same(found[:1], pairs(1))


def test_arguments_have_tensorflows_names_and_order() -> None:
    ds = Dataset.range(50)
    one = ds.rejection_resample(parity, [0.3, 0.7], [0.5, 0.5], 5, "again")
    other = ds.rejection_resample(
        class_func=parity, target_dist=arr([0.3, 0.7], float), initial_dist=(0.5, 0.5), seed=5, name="again"
    )
    assert_same(to_list(one), to_list(other))


@pytest.mark.parametrize("initial", [None, [0.5, 0.5]])
def test_seeded_passes_and_both_faces_are_alike(initial: Any) -> None:
    ds = mix(Dataset.range(100), initial=initial)
    assert_gives(ds, to_list(ds))
    assert to_list(ds) != to_list(mix(Dataset.range(100), initial=initial, seed=6))


def test_without_a_seed_datasets_differ_and_states_still_hold() -> None:
    def make() -> Dataset[Any]:
        return mix(Dataset.range(100), seed=None).repeat(2)

    assert to_list(make()) != to_list(make())
    straight, states = drive("sync", along(make(), "sync"))
    for number in (0, 1, 40, len(states) - 1):
        check_rest(f"before pull {number}", drive("sync", part(make(), "sync", states[number]))[0], straight[number:])


def test_states_before_the_first_element_hold_under_another_global_seed() -> None:
    with global_seed(3), mix(Dataset.range(60), seed=None).iterate() as iterator:
        state = iterator.state_dict()
        straight = list(iterator)
    with global_seed(4), mix(Dataset.range(60), seed=None).iterate(state) as iterator:
        assert_same(list(iterator), straight)


@pytest.mark.parametrize("initial", [[0.5, 0.5], [0.0, 1.0]])
def test_implicit_seeds_are_taken_only_for_a_mix(initial: Any) -> None:
    # Two draws of the same seeds tell whether the stage between took one of them.
    with global_seed(7):
        Dataset.random()
        after_one = first(Dataset.random(), 3)
    for target, takes in (([0.3, 0.7], True), ([0.5, 0.5], False), ([0.0, 1.0], False)):
        with global_seed(7):
            Dataset.range(9).rejection_resample(parity, target, [0.5, 0.5])
            assert (first(Dataset.random(), 3) == after_one) == takes


# Elements and classes


def test_elements_keep_their_structure() -> None:
    by_id = nested(4).rejection_resample(lambda element: element["id"] % 2, [0, 1], [0.5, 0.5])
    assert_gives(by_id, list(zip([np.int32(1)] * 2, nested_rows(1, 3), strict=True)))
    rows = Dataset.range(4).map(lambda x: (x, {"twice": 2 * x}))
    by_first = rows.rejection_resample(lambda x, twice: x % 2, [0, 1], [0.5, 0.5])
    assert_gives(by_first, [(np.int64(x % 2), (np.int64(x), {"twice": np.int64(2 * x)})) for x in (1, 3)])
    named = Dataset.range(2).map(lambda x: Pair(x, -x))
    by_field = named.rejection_resample(lambda pair: pair.x % 2, [0, 1], [0.5, 0.5])
    assert_gives(by_field, [(np.int64(1), Pair(np.int64(1), np.int64(-1)))])


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1, np.int32(1)), (np.int64(1), np.int64(1)), (np.uint8(1), np.uint8(1)), (np.array(1, np.int16), np.int16(1))],
)
@pytest.mark.parametrize("ways", [all_of, only])
def test_the_class_is_what_the_function_gave_and_a_python_number_int32(ways: Any, given: Any, expected: Any) -> None:
    assert_gives(ways(Dataset.range(1), lambda x: given), [(expected, np.int64(0))])


# Errors


@pytest.mark.parametrize("ways", [all_of, only])
def test_an_element_that_fails_is_an_error_in_its_place(ways: Any) -> None:
    kept = pairs(*range(6)) if ways is all_of else pairs(1, 3, 5)
    bad = ways(failing(Dataset.range(6), 2))
    assert_outcomes(bad, [*kept[:2], Boom(2), *kept[3:]] if ways is all_of else [kept[0], Boom(2), *kept[1:]])


def broken(x: Any) -> Any:
    if x == 2:
        raise Boom(2)
    if x == 3:
        raise StopIteration
    return {4: 2, 5: -1, 6: 1.0, 7: True, 8: "1", 9: None, 10: np.array([1])}.get(int(x), x % 2)


@pytest.mark.parametrize("ways", [all_of, only])
def test_a_function_that_fails_or_gives_no_class_is_an_error_in_the_elements_place(ways: Any) -> None:
    errors = [Boom(2), RuntimeError, DataError, DataError, *[TypeError] * 5]
    kept = [(np.int64(0), np.int64(0))] if ways is all_of else []
    assert_outcomes(ways(Dataset.range(12), broken), [*kept, *pairs(1), *errors, *pairs(11)])


def test_the_error_names_the_class_the_stage_and_the_element() -> None:
    def too_large(x: Any) -> Any:
        return x

    error = outcomes(only(Dataset.range(3), too_large))[1]
    assert str(error) == "class 2 is out of range: classes are numbered 0 to 1"
    assert error.__notes__ == ["in rejection_resample(too_large), element 2"]


def test_an_element_that_fails_uses_no_draw() -> None:
    def some(ds: Dataset[Any]) -> Dataset[Any]:
        return ds.rejection_resample(lambda x: x % 3, [0.0, 0.3, 0.7], [0.3, 0.3, 0.4], seed=1)

    bad = (1, 2, 30, 31, 70)
    found = outcomes(some(failing(Dataset.range(99), *bad)))
    assert_same([x for x in found if isinstance(x, Exception)], [Boom(x) for x in bad])
    kept = [x for x in found if not isinstance(x, Exception)]
    assert_same(kept, to_list(some(Dataset.range(99).filter(lambda x: int(x) not in bad))))
    assert 30 < len(kept) < 60


@pytest.mark.parametrize("target", [[0.0, 1.0], [0.4, 0.6], [0.5, 0.5]])
def test_errors_behind_it_name_the_line_that_the_element_came_from(target: list[float], tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("".join(f"{x}\n" for x in range(40)), encoding="utf-8")

    def refuse(found: Any, line: Any) -> Any:
        raise Boom(int(line))

    lines = TextLineDataset(tmp_path / "numbers.txt")
    for error in outcomes(lines.rejection_resample(lambda line: int(line) % 2, target, [0.5, 0.5]).map(refuse)):
        assert f"line {error.args[0] + 1}" in error.__notes__[0].split(", from ")[1].removeprefix(str(tmp_path))


@given(st.sets(st.integers(0, 39)), st.booleans())
def test_errors_lose_nothing_else(bad: set[int], function: bool) -> None:
    def class_of(x: Any) -> Any:
        if function and int(x) in bad:
            raise Boom(int(x))
        return x % 2

    ds = Dataset.range(40) if function else failing(Dataset.range(40), *bad)
    found = outcomes(only(ds, class_of))
    assert_same(found, [Boom(x) if x in bad else pairs(x)[0] for x in range(40) if x in bad or x % 2])
    for initial in (None, [0.5, 0.5]):
        for x in outcomes(mix(ds, class_of, initial)):
            assert x.args[0] in bad if isinstance(x, Boom) else int(x[1]) not in bad


def test_a_pass_that_estimates_passes_over_errors() -> None:
    """Each error comes once from the pass of all elements, however the mix goes on."""
    ds = failing(Dataset.range(100), *range(0, 100, 10)).rejection_resample(lambda x: 0, [1.0], seed=1)
    expected = [Boom(x) if x % 10 == 0 else (np.int32(0), np.int64(x)) for x in range(100)]
    assert_outcomes(ds, expected)


# Laziness and time


def test_nothing_runs_before_it_is_asked_for() -> None:
    ds, seen = counted(Dataset.range(100))
    mixed = mix(ds, initial=[0.5, 0.5])
    assert seen == []
    first(mixed, 1)
    assert len(seen) < 10


@pytest.mark.parametrize("initial", [None, [0.5, 0.5]])
async def test_a_class_that_never_comes_leaves_the_loop_alive(initial: Any) -> None:
    ds = Dataset.range(5).repeat().rejection_resample(lambda x: 0, [0.0, 1.0], initial, seed=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await collect(ds)


@pytest.mark.parametrize("initial", [None, [0.5, 0.5]])
async def test_inputs_with_coroutines_and_look_aheads_give_the_same(initial: Any) -> None:
    async def same(x: Any) -> Any:
        await asyncio.sleep(0)
        return x

    ds = Dataset.range(70).shuffle(9, seed=1)
    expected = [await collect(one) for one in [mix(ds, initial=initial)] for _ in range(2)]
    for change in (
        lambda one: one.map(same),
        lambda one: one.map(same, num_parallel_calls=2),
        lambda one: one.prefetch(3),
        lambda one: one.prefetch(2).map(same),
    ):
        changed = mix(change(Dataset.range(70).shuffle(9, seed=1)), initial=initial)
        found = [await collect(changed), await asyncio.to_thread(to_list, changed)]
        assert_same(found, expected)


# What is known at the call


def test_cardinality() -> None:
    finite, endless = Dataset.range(4), Dataset.range(4).repeat()
    assert all_of(finite).cardinality() == 4
    assert all_of(endless).cardinality() == aiodata.INFINITE_CARDINALITY
    assert only(finite).cardinality() == only(endless).cardinality() == aiodata.UNKNOWN_CARDINALITY
    for initial in (None, [0.5, 0.5]):
        assert mix(finite, initial=initial).cardinality() == aiodata.UNKNOWN_CARDINALITY
        assert mix(endless, initial=initial).cardinality() == aiodata.INFINITE_CARDINALITY


@pytest.mark.parametrize(("initial", "shown"), [(None, ""), ([0.5, 0.5], ", [0.5, 0.5]"), ([0.3, 0.7], ", [0.3, 0.7]")])
def test_repr_shows_one_stage_and_what_was_said(initial: Any, shown: str) -> None:
    lines = repr(mix(Dataset.range(4), parity, initial, name="halves")).splitlines()
    assert len(lines) == 3
    assert f"rejection_resample(parity, [0.3, 0.7]{shown}, seed=5) 'halves'" in lines[-1]


@pytest.mark.parametrize("class_func", [None, 1, asyncio.sleep])
def test_what_is_no_plain_function_is_refused_at_the_call(class_func: Any) -> None:
    with pytest.raises(TypeError, match="rejection_resample: class_func must be"):
        Dataset.range(4).rejection_resample(class_func, [0.5, 0.5])


@pytest.mark.parametrize("wrong", [0.5, [], [[0.5, 0.5]], [0.5, -0.5, 1.0], [np.nan, 1.0], [np.inf, 1.0], [0, 0]])
@pytest.mark.parametrize("argument", ["target_dist", "initial_dist"])
def test_wrong_distributions_are_refused_at_the_call(argument: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"rejection_resample: {argument} must"):
        Dataset.range(4).rejection_resample(**{"class_func": parity, "target_dist": [0.5, 0.5], argument: wrong})


@pytest.mark.parametrize("wrong", [["a", "b"], "ab", [True, False], [None, 1.0], [1j, 0]])
@pytest.mark.parametrize("argument", ["target_dist", "initial_dist"])
def test_what_is_no_numbers_is_refused_at_the_call(argument: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"rejection_resample: {argument} must be numbers"):
        Dataset.range(4).rejection_resample(**{"class_func": parity, "target_dist": [0.5, 0.5], argument: wrong})


@pytest.mark.parametrize("target", [[1, 1], [0.5, 0.4], [600, 400]])
def test_a_target_that_does_not_add_up_to_one_is_refused_at_the_call(target: Any) -> None:
    with pytest.raises(ValueError, match="target_dist must add up to 1"):
        Dataset.range(4).rejection_resample(parity, target)


def test_distributions_of_other_lengths_are_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match="initial_dist must be as long as target_dist, 2, not 3"):
        Dataset.range(4).rejection_resample(parity, [0.5, 0.5], [0.2, 0.3, 0.5])


def test_a_seed_that_is_no_integer_is_refused_at_the_call() -> None:
    with pytest.raises(TypeError):
        mix(Dataset.range(4), seed=1.5)


def test_a_prefetch_before_it_that_comes_upon_coroutines_keeps_the_orders() -> None:
    async def awaited(x: Any) -> Any:
        return x

    def make() -> Dataset[Any]:
        numbers = Dataset.range(40).shuffle(20, seed=1).flat_map(lambda x: Dataset.from_tensors(x).map(awaited))
        return mix(numbers.prefetch(2), seed=3)

    async def passes() -> list[Any]:
        ds = make()
        return [await collect(ds) for _ in range(3)]

    ds = make()
    assert_same(asyncio.run(passes()), [to_list(ds) for _ in range(3)])
