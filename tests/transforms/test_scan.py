"""`scan`: `(state, element) -> (state, output)`, and a position that holds the state exactly."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aiodata
from aiodata import Dataset
from aiodata.errors import StateError, StructureError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    failing,
    i64,
    objects,
    outcomes,
    plain,
    pull_all,
    to_list,
)


def running(state: Any, x: Any) -> Any:
    return state + x, state + x


@pytest.mark.parametrize("count", [0, 1, 2, 70])
def test_hands_the_state_on(count: int) -> None:
    assert_gives(Dataset.range(count).scan(np.int64(0), running), i64(*itertools.accumulate(range(count))))


@given(st.lists(st.integers(-100, 100), max_size=150), st.integers(-5, 5), st.integers(1, 70))
def test_is_pythons_accumulate(values: list[int], begin: int, size: int) -> None:
    ds = Dataset.from_tensor_slices(np.array(values, np.int64)).batch(size).unbatch().scan(begin, running)
    assert_same(to_list(ds), i64(*itertools.accumulate(values, initial=begin))[1:])


def test_elements_of_every_structure_are_one_argument() -> None:
    def take(state: Any, element: Any) -> Any:
        return state, type(element).__name__

    ranges = [Dataset.range(1), Dataset.range(1)]
    for structure, kind in [((*ranges,), "tuple"), (Pair(*ranges), "Pair"), ({"a": ranges[0]}, "dict")]:
        assert_gives(Dataset.zip(structure).scan(0, take), [kind])


@pytest.mark.parametrize(
    "initial",
    [
        *[0, 0.0, True, 1j, np.int8(1), np.float32(1.5), b"a", "b", arr([1, 2], np.uint8), np.zeros((0, 2)), None],
        *[
            (1, {"x": arr([1.5]), "y": Pair(b"k", None)}),
            {"a": (), "b": np.datetime64("2020-01-01")},
            objects("a", b"b"),
        ],
    ],
    ids=lambda value: type(value).__name__,
)
def test_states_of_every_kind(initial: Any) -> None:
    ds = Dataset.range(3).scan(initial, lambda state, x: (state, (x, state)))
    assert_gives(ds, [(np.int64(x), initial) for x in range(3)])


def test_structured_states() -> None:
    def step(state: Any, x: Any) -> Any:
        total, rest = state
        return (total + x, {"n": rest["n"] + 1.0}), rest["n"]

    assert_gives(Dataset.range(3).scan((np.int64(0), {"n": 0.0}), step), [0.0, 1.0, 2.0])


def test_a_list_is_an_array_and_a_returned_list_is_a_pair() -> None:
    assert_gives(Dataset.range(2).scan([1, 2], lambda s, x: [s, s + x]), [arr([1, 2]), arr([2, 3])])
    assert_gives(Dataset.range(2).scan(0, lambda s, x: (s, [x, x])), [arr([0, 0]), arr([1, 1])])
    assert_gives(Dataset.range(2).scan(arr([0]), lambda s, x: ([int(x) + 1], s)), [arr([0]), arr([1])])


def test_shapes_of_the_state_may_change() -> None:
    ds = Dataset.range(3).scan(np.zeros(1, np.int64), lambda s, x: (np.append(s, x), len(s)))
    assert_gives(ds, [1, 2, 3])


def test_keys_of_a_state_may_change_their_order() -> None:
    step = lambda s, x: ({"b": s["a"], "a": s["b"]}, s["a"])  # noqa: E731
    assert_gives(Dataset.range(3).scan({"a": 0, "b": 1}, step), [0, 1, 0])


@pytest.mark.parametrize(
    ("initial", "bad", "message"),
    [
        (np.int32(0), np.int64(1), "the element is int32 in one and int64 in the other"),
        (0, 1.0, "int64 in one and float64"),
        (0, np.int32(1), "int64 in one and int32"),
        (arr([1]), arr([1.0], float), r"int64\[.*\] in one and float64\[.*\]"),
        ((0, b"a"), (0, 1), r"component \[1\] is object in one and int64"),
        ({"a": 0}, {"b": 0}, r"the keys \['a'\] in one and \['b'\]"),
        ((0, 0), (0, 0, 0), "a tuple of 2 in one and a tuple of 3"),
        (0, None, "int64 in one and None"),
        (Pair(0, 0), (0, 0), "named tuple Pair"),
    ],
    ids=repr,
)
def test_a_state_of_another_kind_is_an_error_at_that_element_and_the_state_stays(
    initial: Any, bad: Any, message: str
) -> None:
    got = outcomes(Dataset.range(3).scan(initial, lambda s, x: (bad if x == 1 else s, (x, s))))
    assert_same([got[0], got[2]], [(np.int64(0), initial), (np.int64(2), initial)])
    with pytest.raises(StructureError, match=message):
        raise got[1]


@pytest.mark.parametrize("result", [None, 1, (1,), (1, 2, 3), {"a": 1, "b": 2}, (0, None), "ab", arr([1, 2])], ids=repr)
def test_what_is_not_a_pair_is_an_error_at_that_element(result: Any) -> None:
    got = outcomes(Dataset.range(3).scan(0, lambda s, x: result if x == 1 else (s + 1, s)))
    assert_same([got[0], got[2]], [0, 1])
    with pytest.raises(TypeError, match="scan_func"):
        raise got[1]


def test_a_failed_step_leaves_the_state_as_it_was() -> None:
    def step(state: Any, x: Any) -> Any:
        if x == 2:
            raise Boom(2)
        return state + x, state + x

    ds = Dataset.range(5).scan(np.int64(0), step)
    assert_outcomes(ds, [*i64(0, 1), Boom(2), *i64(4, 8)])
    assert outcomes(ds)[2].__notes__ == ["in scan(step), element 2"]


def test_an_element_that_fails_leaves_the_state_as_it_was() -> None:
    ds = failing(Dataset.range(5), 0, 2).scan(0, running)
    assert_outcomes(ds, [Boom(0), np.int64(1), Boom(2), *i64(4, 8)])


def test_stop_iteration_of_the_function_is_an_error() -> None:
    def stop(state: Any, x: Any) -> Any:
        raise StopIteration

    assert_outcomes(Dataset.range(2).scan(0, stop), [RuntimeError, RuntimeError])


def test_each_epoch_begins_with_the_initial_state() -> None:
    assert_gives(Dataset.range(3).scan(np.int64(10), running).repeat(2), i64(10, 11, 13, 10, 11, 13))


def test_the_initial_state_is_copied_at_the_call() -> None:
    initial = np.zeros(2)
    ds = Dataset.range(1).scan(initial, lambda s, x: (s, s))
    initial[:] = 7
    assert_gives(ds, [np.zeros(2)])


def test_a_function_that_works_in_place_fails_instead_of_changing_what_is_kept() -> None:
    def careless(state: Any, x: Any) -> Any:
        state += x
        return state, x

    ds = Dataset.range(3).scan(np.zeros(2), careless)
    assert_outcomes(ds, [ValueError, ValueError, ValueError])
    ds = Dataset.range(3).scan(np.zeros(2), lambda s, x: (s + x, x)).map(lambda x: x)
    assert_gives(ds, i64(0, 1, 2))


def test_an_output_that_is_the_state_cannot_change_it() -> None:
    def spoil(total: Any) -> Any:
        total *= 0
        return total

    ds = Dataset.range(4).scan(np.zeros(1), lambda s, x: (s := s + x, s))
    assert_outcomes(ds.map(spoil), [ValueError] * 4)
    assert_gives(ds, [arr([0.0], float), arr([1.0], float), arr([3.0], float), arr([6.0], float)])


STATES = [
    float("nan"),
    float("inf"),
    2**100,
    np.float16(0.1),
    (b"\0\xff", "é", None, -0.0),
    {"a": Pair(np.arange(3, dtype=">i2"), objects("x", b"y\0")), "b": np.bool_(True)},
]


@pytest.mark.parametrize("initial", STATES, ids=repr)
def test_a_saved_state_holds_the_state_exactly(initial: Any) -> None:
    ds = Dataset.range(5).scan(initial, lambda s, x: (s, (x, s)))
    with ds.iterate() as iterator:
        next(iterator)
        saved = json.dumps(iterator.state_dict(), allow_nan=False)
        rest = list(iterator)
    with ds.iterate(json.loads(saved)) as iterator:
        assert_same(list(iterator), rest)


def test_a_state_resumes_in_another_process() -> None:
    program = """
import json, sys
from aiodata import Dataset
def step(state, x):
    return (state[0] + x, {"seen": state[1]["seen"] * 2.0}), (x, state[0], state[1]["seen"])
ds = Dataset.range(6).scan((0, {"seen": 0.1}), step)
iterator = ds.iterate(json.loads(sys.argv[1]) if len(sys.argv) > 1 else None)
if len(sys.argv) == 1:
    next(iterator), next(iterator), next(iterator)
    print(json.dumps(iterator.state_dict()))
print(list(iterator))
iterator.close()
"""

    def run(*arguments: str) -> list[str]:
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=50)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    state, rest = run()
    assert run(state) == [rest]


class Thing:
    """No number and no text."""


def test_a_state_that_cannot_be_saved_runs_and_is_refused_only_when_it_is_asked_for() -> None:
    ds = Dataset.range(3).scan({"x": (0, Thing())}, lambda s, x: (s, x))
    assert_gives(ds, i64(0, 1, 2))
    with ds.iterate() as iterator:
        next(iterator)
        message = r"component \['x'\]\[1\] of the state of scan\(<lambda>\) is a Thing, which a saved state cannot hold"
        with pytest.raises(StateError, match=message):
            iterator.state_dict()
        assert_same(pull_all(iterator), i64(1, 2))


def test_the_state_is_encoded_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import aiodata.transforms.scan as module

    calls: list[Any] = []
    monkeypatch.setattr(module, "encode", lambda value, owner: calls.append(value))
    to_list(Dataset.range(9).scan(0, running).batch(2).shuffle(2).repeat(2))
    assert calls == []


def test_what_is_no_plain_function_is_refused_at_the_call() -> None:
    async def later(state: Any, x: Any) -> Any:
        return state, x

    for refused in (None, 1, later):
        with pytest.raises(TypeError, match="scan: scan_func must be"):
            Dataset.range(3).scan(0, refused)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is a set"):
        Dataset.range(3).scan({1}, running)


def test_cardinality_is_the_inputs() -> None:
    assert Dataset.range(3).scan(0, running).cardinality() == 3
    assert Dataset.range(3).repeat().scan(0, running).cardinality() == aiodata.INFINITE_CARDINALITY
    assert Dataset.range(3).filter(lambda x: True).scan(0, running).cardinality() == aiodata.UNKNOWN_CARDINALITY


def test_repr_shows_the_initial_state_the_function_and_the_name() -> None:
    assert "scan(0, running) 'total': ?" in repr(Dataset.range(3).scan(0, running, name="total"))
    assert "scan({'a': float64[3]}, running)" in repr(Dataset.range(3).scan({"a": np.zeros(3)}, running))


def test_reads_no_further_than_needed() -> None:
    calls: list[int] = []

    def step(state: Any, x: Any) -> Any:
        calls.append(int(x))
        return state, x

    assert_same(to_list(Dataset.range(100).scan(0, step).take(2)), i64(0, 1))
    assert calls == [0, 1]


def test_a_function_that_changes_its_state_in_place_changes_nothing_else() -> None:
    def count(state: Any, x: Any) -> Any:
        state["n"] += 1
        if x == 1:
            raise Boom(int(x))
        return state, state["n"]

    ds = Dataset.range(3).scan({"n": np.int64(0)}, count)
    for _ in range(2):
        assert_outcomes(ds, [np.int64(1), Boom(1), np.int64(2)])


# States of any kind


class Last:
    """The last few elements; a state that is no value, and is changed in place."""

    def __init__(self, seen: tuple[int, ...] = ()) -> None:
        self.seen = list(seen)


def remember(last: Last, x: Any) -> tuple[Last, Any]:
    last.seen = [*last.seen, int(x)][-3:]
    return last, np.array(last.seen)


def remembering(count: int, **coders: Any) -> Dataset[Any]:
    return Dataset.range(count).map(lambda x: x).scan(Last((-1,)), remember, **coders)


CODERS: dict[str, Any] = {"encode_state": lambda last: last.seen, "decode_state": Last}


def test_a_state_of_any_kind_is_saved_by_the_users_own_functions() -> None:
    ds = remembering(200, **CODERS)
    expected = [[-1, 0], [-1, 0, 1], *([x - 2, x - 1, x] for x in range(2, 200))]
    assert plain(to_list(ds)) == plain(to_list(ds)) == expected, "each pass begins with the initial state"
    assert plain(to_list(ds.repeat(2))) == expected * 2
    with ds.iterate() as iterator:
        for number in range(0, 200, 7):
            state = json.loads(json.dumps(iterator.state_dict()))
            assert plain(list(ds.iterate(state))) == expected[number:]
            assert plain([next(iterator) for _ in range(min(7, 200 - number))]) == expected[number : number + 7]


def test_without_them_asking_for_a_state_names_the_stage() -> None:
    with remembering(5).iterate() as iterator:
        next(iterator)
        with pytest.raises(StateError, match=r"the state of scan\(remember\) is a Last"):
            iterator.state_dict()
        assert len(list(iterator)) == 4


def test_an_encoder_that_fails_later_fails_only_the_saving() -> None:
    def encoded(last: Last) -> Any:
        return last.seen if len(last.seen) < 3 else {1: last.seen}

    with remembering(1000, encode_state=encoded, decode_state=Last).iterate() as iterator:
        for _ in range(999):
            next(iterator)
        with pytest.raises(StateError, match=r"a saved state cannot hold the state of scan\(remember\): .* the key 1"):
            iterator.state_dict()
        assert len(list(iterator)) == 1


def test_an_encoder_that_fails_at_once_is_refused_at_the_call() -> None:
    with pytest.raises(StateError, match=r"the state of scan\(remember\): .* is of type Last.*after encode_state"):
        remembering(5, encode_state=lambda last: last, decode_state=Last)


@pytest.mark.parametrize(
    ("coders", "error", "message"),
    [
        ({"encode_state": list}, ValueError, "scan: encode_state and decode_state go together"),
        ({"decode_state": list}, ValueError, "scan: encode_state and decode_state go together"),
        ({"encode_state": 1, "decode_state": list}, TypeError, "scan: encode_state must be callable, not int"),
        ({"encode_state": list, "decode_state": 1}, TypeError, "scan: decode_state must be callable, not int"),
    ],
)
def test_coders_go_together(coders: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        remembering(5, **coders)
