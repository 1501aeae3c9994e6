"""`pad_to_cardinality`: a mask, and elements of zeros at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aiodata import Dataset, TensorSpec
from aiodata.errors import StructureError
from tests.programs import (
    Boom,
    Pair,
    arr,
    assert_gives,
    assert_outcomes,
    assert_same,
    counted,
    failing,
    nested,
    nested_rows,
    objects,
    outcomes,
    to_list,
)


def real(element: dict[str, Any]) -> dict[str, Any]:
    return {**element, "valid": np.True_}


def test_is_tf_datas() -> None:
    ds = Dataset.from_tensor_slices({"a": arr([1, 2], np.int32), "b": [b"x", b"y"], "c": np.ones((2, 2))})
    rows = [{"a": np.int32(n), "b": b, "c": np.ones(2), "valid": np.True_} for n, b in ((1, b"x"), (2, b"y"))]
    filler = {"a": np.int32(0), "b": b"", "c": np.zeros(2), "valid": np.False_}
    assert_gives(ds.pad_to_cardinality(4), [*rows, filler, filler])
    assert_gives(ds.pad_to_cardinality(2), rows)
    assert_gives(ds.map(lambda x: x).pad_to_cardinality(3), [*rows, filler])


@pytest.mark.parametrize("padding", [0, 1, 300])
@pytest.mark.parametrize("count", [1, 2, 70])
def test_structures_are_padded_in_every_component(count: int, padding: int) -> None:
    filler = {
        "id": np.int32(0),
        "parts": (np.zeros(2, np.float32), Pair(np.False_, np.int64(0))),
        "valid": np.False_,
    }
    expected = [*map(real, nested_rows(*range(count))), *[filler] * padding]
    assert_gives(nested(count).pad_to_cardinality(count + padding), expected)
    assert_gives(nested(count).map(lambda x: x).pad_to_cardinality(count + padding), expected)


def test_every_kind_of_component() -> None:
    element = {
        "python": (7, True, 1.5, 2j, "text", b"bytes", None),
        "numpy": (np.int8(3), np.str_("s"), np.datetime64("2020-01-01", "D"), np.array(5)),
        "arrays": (arr(["a"], "U1"), objects("x", "y"), objects(b"x"), np.ones((0, 3)), objects()),
    }
    filler = {
        "python": (0, False, 0.0, 0j, "", b"", None),
        "numpy": (np.int8(0), np.str_(""), np.datetime64("1970-01-01", "D"), np.int64(0)),
        "arrays": (arr([""], "U1"), objects("", ""), objects(b""), np.zeros((0, 3)), objects()),
        "valid": np.False_,
    }
    ds = Dataset.range(1).map(lambda _: element).pad_to_cardinality(2)
    assert_gives(ds, [real(element), filler])


def test_shapes_are_those_of_the_first_element_that_did_not_fail() -> None:
    ds = failing(Dataset.range(4), 0).map(lambda x: {"x": np.ones(int(x))}).pad_to_cardinality(5)
    assert_outcomes(
        ds, [Boom(0), *[real({"x": np.ones(n)}) for n in (1, 2, 3)], {"x": np.zeros(1), "valid": np.False_}]
    )


def test_elements_that_fail_count() -> None:
    ds = failing(Dataset.range(3), 2).map(lambda x: {"x": x}).pad_to_cardinality(4)
    assert_outcomes(
        ds, [real({"x": np.int64(0)}), real({"x": np.int64(1)}), Boom(2), {"x": np.int64(0), "valid": np.False_}]
    )


def test_nothing_is_padded_as_element_spec_says() -> None:
    filler = {"x": np.float32(0), "t": b"", "a": np.zeros((1, 2)), "valid": np.False_}
    columns = {"x": np.ones(1, np.float32), "t": ["text"], "a": np.ones((1, 1, 2))}
    assert_gives(Dataset.from_tensor_slices(columns).take(0).pad_to_cardinality(2), [filler, filler])
    unknown = Dataset.range(0).map(lambda x: {"x": x})
    assert_outcomes(unknown.pad_to_cardinality(2), [StructureError])
    assert_gives(unknown.pad_to_cardinality(0), [])
    lengths = Dataset.from_tensor_slices({"x": np.ones(3)}).batch(2).take(0)
    assert_outcomes(lengths.pad_to_cardinality(1), [StructureError])


def test_a_mask_that_is_there_is_replaced_as_in_tf_data() -> None:
    ds = Dataset.from_tensor_slices({"valid": [1, 2]}).pad_to_cardinality(3)
    assert_gives(ds, [{"valid": np.True_}, {"valid": np.True_}, {"valid": np.False_}])


def test_another_mask_key() -> None:
    ds = Dataset.from_tensor_slices({"x": [1]}).pad_to_cardinality(2, mask_key="m")
    assert_gives(ds, [{"x": np.int64(1), "m": np.True_}, {"x": np.int64(0), "m": np.False_}])


def test_batches_of_one_size_lose_no_data() -> None:
    ds = Dataset.from_tensor_slices({"x": np.arange(5)})
    got = to_list(ds.pad_to_cardinality(6).batch(3, drop_remainder=True))
    assert_same([batch["valid"] for batch in got], [arr([1, 1, 1], bool), arr([1, 1, 0], bool)])


def test_padding_is_read_only_and_every_element_a_dict_of_its_own() -> None:
    ds = Dataset.from_tensor_slices({"x": np.ones((1, 2))}).pad_to_cardinality(3)
    _, one, other = to_list(ds)
    assert one is not other
    with pytest.raises(ValueError, match="read-only"):
        one["x"] += 1


class Thing:
    """Neither a number nor text."""


def test_what_cannot_be_padded_is_an_error_in_place_of_the_padding() -> None:
    ds = Dataset.range(1).map(lambda x: {"x": x, "t": (Thing(), x)}).pad_to_cardinality(5)
    got = outcomes(ds)
    assert len(got) == 2
    assert str(got[1]) == "component ['t'][0] cannot be padded: it is Thing"
    assert got[0]["valid"]


def test_what_is_no_dict_is_an_error_at_that_element() -> None:
    ds = Dataset.range(3).map(lambda x: x if x == 1 else {"x": x}).pad_to_cardinality(4)
    assert_outcomes(
        ds, [real({"x": np.int64(0)}), StructureError, real({"x": np.int64(2)}), {"x": np.int64(0), "valid": np.False_}]
    )
    assert outcomes(ds)[1].__notes__ == ["in pad_to_cardinality(4), element 1"]


def test_restoring_within_the_padding_reads_the_first_element_again() -> None:
    def make() -> Dataset[Any]:
        ds = Dataset.range(500).map(lambda x: {"x": np.ones(int(x) % 3)})
        return ds.shuffle(10, seed=1).pad_to_cardinality(503).repeat(2)

    whole = to_list(make())
    for number in (1, 499, 500, 501, 503, 900, 1004, 1006):
        with make().iterate() as iterator:
            for _ in range(number):
                next(iterator)
            state = iterator.state_dict()
        with make().iterate(state) as iterator:
            assert_same(list(iterator), whole[number:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda ds: ds.pad_to_cardinality(1), "the dataset has 2 elements, more than cardinality=1"),
        (lambda ds: ds.filter(lambda x: True).pad_to_cardinality(9), "cardinality is unknown"),
        (lambda ds: ds.repeat().pad_to_cardinality(9), "cardinality is infinite"),
        (lambda ds: Dataset.range(2).pad_to_cardinality(9), "the elements must be dicts, not int64"),
        (lambda ds: ds.pad_to_cardinality(-1), "cardinality must be at least 0"),
    ],
)
def test_is_refused_at_the_call_as_in_tf_data(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"pad_to_cardinality: .*{message}"):
        make(Dataset.from_tensor_slices({"a": [1, 2]}))


@pytest.mark.parametrize(("number", "key"), [(1.5, "m"), (None, "m"), (3, None), (3, 1)])
def test_types_are_checked_at_the_call(number: Any, key: Any) -> None:
    with pytest.raises(TypeError, match="pad_to_cardinality: "):
        Dataset.from_tensor_slices({"a": [1, 2]}).pad_to_cardinality(number, key)


def test_cardinality_spec_and_repr() -> None:
    ds = Dataset.from_tensor_slices({"a": [1, 2]}).pad_to_cardinality(5, name="even")
    assert len(ds) == 5
    assert ds.element_spec == {"a": TensorSpec((), np.int64), "valid": TensorSpec((), np.bool_)}
    assert Dataset.range(2).map(lambda x: {"a": x}).pad_to_cardinality(5).element_spec is None
    assert "pad_to_cardinality(5) 'even': {'a': int64, 'valid': bool}" in repr(ds)
    assert "pad_to_cardinality(5, mask_key='m')" in repr(
        Dataset.from_tensor_slices({"a": [1]}).pad_to_cardinality(5, "m")
    )


def test_reads_no_further_than_needed() -> None:
    ds, seen = counted(Dataset.range(100))
    to_list(ds.map(lambda x: {"x": x}).pad_to_cardinality(200).take(2))
    assert seen == [0, 1]
