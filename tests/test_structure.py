from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiodata.structure import (
    array_of,
    flatten,
    is_namedtuple,
    map_structure,
    normalize,
    pack_like,
    paths,
    same_structure,
)

Other = namedtuple("Other", "a")


class Point(NamedTuple):
    x: Any
    y: Any


structures = st.recursive(
    st.one_of(st.integers(), st.text(), st.none(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Point, inner, inner),
    ),
    max_leaves=10,
)


def test_text_in_a_tuple_keeps_its_last_zero_bytes() -> None:
    assert array_of((b"a\0", b"b")).tolist() == [b"a\0", b"b"]


def test_namedtuples_are_told_from_tuples() -> None:
    assert is_namedtuple(Point(1, 2))
    assert is_namedtuple(Other(1))
    assert not any(map(is_namedtuple, [(1, 2), [1], {"_fields": 1}, None]))


def test_flatten_lists_leaves_in_order_and_keeps_lists_and_none_whole() -> None:
    leaf = [1, 2]
    assert flatten({"b": (1, None), "a": Point(leaf, {"z": b"x"})}) == [1, None, leaf, b"x"]
    assert flatten(5) == [5]
    assert flatten(()) == []


def test_pack_like_keeps_the_kinds_of_containers() -> None:
    packed = pack_like({"p": Point(0, (0,)), "q": None}, iter([1, 2, 3]))
    assert packed == {"p": Point(1, (2,)), "q": 3}
    assert type(packed["p"]) is Point


@pytest.mark.parametrize(("leaves", "words"), [([1], "^1 leaves for a structure of 2$"), ([1, 2, 3], "^3 leaves")])
def test_pack_like_refuses_a_wrong_number_of_leaves(leaves: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pack_like((0, 0), leaves)


@given(structures)
def test_packing_the_leaves_gives_the_structure_back(x: Any) -> None:
    packed = pack_like(x, flatten(x))
    assert packed == x
    assert same_structure(x, packed) is None
    assert len(paths(x)) == len(flatten(x))
    assert map_structure(lambda leaf: leaf, x) == x


def test_map_structure_reaches_none_too() -> None:
    assert map_structure(str, Point(None, {"a": 1})) == Point("None", {"a": "1"})


def test_a_stop_iteration_of_the_function_does_not_shorten_a_tuple() -> None:
    with pytest.raises(StopIteration):
        map_structure(lambda leaf: next(iter(())), (1, 2))


def test_paths_read_like_python() -> None:
    assert paths({"image": 0, "box": (Point(1, 2), {"k": 3})}) == [
        "['image']",
        "['box'][0].x",
        "['box'][0].y",
        "['box'][1]['k']",
    ]
    assert paths((Point(1, 2),)) == ["[0].x", "[0].y"]
    assert paths(np.zeros(3)) == ["element"]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ({"a": 1}, {"b": 1}, "element has the keys ['a'] in one and ['b'] in the other"),
        ({"a": {"x": 1}}, {"a": {}}, "['a'] has the keys ['x'] in one and [] in the other"),
        ((1, 2), (1,), "element is a tuple of 2 in one and a tuple of 1 in the other"),
        ((1, (2,)), (1, 2), "[1] is a tuple of 1 in one and a single value in the other"),
        (Point(1, {"a": 1}), Point(1, None), ".y is a dict of 1 in one and None in the other"),
        ((1, 2), Point(1, 2), "element is a tuple of 2 in one and a named tuple Point in the other"),
        ({"a": 1}, {"a": None}, "['a'] is a single value in one and None in the other"),
    ],
)
def test_same_structure_names_the_first_difference(a: Any, b: Any, words: str) -> None:
    assert same_structure(a, b) == words


def test_same_structure_ignores_key_order_and_leaf_values() -> None:
    assert same_structure({"a": 1, "b": (b"x", None)}, {"b": (np.zeros(3), None), "a": "text"}) is None


def test_normalize_gives_plain_leaves_back_untouched() -> None:
    for leaf in [1, 1.5, True, b"x", "x", np.float32(1), np.zeros(2), object()]:
        assert normalize(leaf) is leaf


def test_normalize_makes_a_tuple_of_a_list_and_arrays_of_lists_within() -> None:
    made = normalize([1, [2, 3], (4, [5])])
    assert type(made) is tuple
    assert made[0] == 1
    assert made[1].tolist() == [2, 3]
    assert made[2][1].tolist() == [5]
    point = normalize(Point([1], 2))
    assert type(point) is Point
    assert point.x.tolist() == [1]
    assert normalize([]) == ()


def test_normalize_makes_arrays_of_lists_in_dicts() -> None:
    made = normalize([{"a": [1, 2], "t": (1, [2]), "s": [b"x\0", b"y"], "n": {"f": [0.5]}, "none": None}])
    assert type(made) is tuple
    inner = made[0]
    assert inner["a"].dtype == np.int64
    assert inner["a"].tolist() == [1, 2]
    assert inner["t"][1].tolist() == [2]
    assert inner["s"].dtype == object
    assert inner["s"].tolist() == [b"x\0", b"y"]
    assert inner["n"]["f"].dtype == np.float64
    assert inner["none"] is None


def test_normalize_refuses_none_alone_but_keeps_it_as_a_component() -> None:
    with pytest.raises(TypeError, match="returned None"):
        normalize(None)
    assert normalize((None, (None,))) == (None, (None,))


def test_normalize_does_not_change_what_it_was_given() -> None:
    given_value = OrderedDict(a=[1], b=(2, [3]))
    normalize(given_value)
    assert given_value == OrderedDict(a=[1], b=(2, [3]))


@pytest.mark.parametrize(
    ("x", "dtype", "values"),
    [
        ([1, 2], np.int64, [1, 2]),
        ([1, 2.5], np.float64, [1.0, 2.5]),
        ([True, False], np.bool_, [True, False]),
        ([np.int8(1)], np.int8, [1]),
        ([], np.float32, []),
        ([[], []], np.float32, [[], []]),
        (["a", b"b\0"], object, ["a", b"b\0"]),
        ([["a", "b"], ["c", "d"]], object, [["a", "b"], ["c", "d"]]),
        (np.array(["a", "bc"]), object, ["a", "bc"]),
        (np.array([b"a"]), object, [b"a"]),
        ([np.zeros(0, np.int32)], np.int32, [[]]),
        ([2**63], np.uint64, [2**63]),
        ([2**63, -1], object, [2**63, -1]),
        ([[2**63, 0]], np.uint64, [[2**63, 0]]),
        ([2**70], object, [2**70]),
        (range(3), np.int64, [0, 1, 2]),
    ],
)
def test_array_of_keeps_values_exact(x: Any, dtype: Any, values: list[Any]) -> None:
    array = array_of(x)
    assert array.dtype == dtype
    assert array.tolist() == values


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([[1, 2], [3]], "ragged"),
        ([["a", "b"], ["c"]], "ragged"),
        ([np.zeros((2, 3)), np.zeros((2, 4))], "ragged"),
        (["a", 1], "mixes text with int"),
        ([1, "a"], "mixes text"),
    ],
)
def test_array_of_refuses_what_is_no_array(x: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        array_of(x)


def test_array_of_copies() -> None:
    source = np.zeros(3)
    copy = array_of(source)
    source[0] = 1
    assert copy.tolist() == [0, 0, 0]
